// What is legal in a policy and yet seldom meant: rules that never count, rules that give away too much, rules that nobody
// has tried. Looks at the compiled policy alone; finds nothing where it cannot be sure.
import { broadness } from "./broad.ts";
import { commandRisk } from "./command_risk.ts";
import type { Effect, Risk } from "./decision.ts";
import type { Part } from "./facts.ts";
import { absoluteGlob, type GlobBase } from "./glob.ts";
import type { Layer, Policy } from "./policy.ts";
import { type Problem, showPosition } from "./problem.ts";
import { commandCovers, coversRule, coversSubject, type Reaches } from "./rule_cover.ts";
import type { Matchers, Reach, Rule } from "./rule.ts";
import { shippedSets } from "./shipped_sets.ts";
import { builtinsOf, builtinTool, enableableTools, mayNameOutsideTool } from "./tool_names.ts";

export type LintInput = {
  readonly policy: Pick<Policy, "layers" | "protect" | "tools" | "root">;
  readonly home: string;
  /** Ids of the rules that have a `match` or `no_match`. */
  readonly tried: ReadonlySet<string>;
  /** Whether a command that starts with these words runs another one that follows them. */
  runsOthers(words: readonly string[]): boolean;
};

type Finding = { readonly code: string; readonly message: string; readonly hint: string };

/** Warnings with stable codes, in the order of layers and rules. */
export function lintPolicy(input: LintInput): readonly Problem[] {
  const { layers } = input.policy;
  return layers.flatMap((layer, index) => [
    ...floors(layer, layers.slice(index + 1)),
    ...layer.rules.flatMap((rule) =>
      findings(input, layers.slice(0, index + 1), rule).map((finding): Problem => ({
        code: finding.code,
        severity: "warning",
        message: finding.message,
        at: rule.at,
        hint: finding.hint,
      }))
    ),
  ]);
}

// A rule that never counts has no other faults worth naming.
function findings(input: LintInput, upper: readonly Layer[], rule: Rule): readonly Finding[] {
  const useless = deadRule(input, rule) ?? silencedRule(input, upper, rule) ??
    doubledRule(input, upper, rule) ??
    undelegatedRule(input, upper, rule);
  return useless === undefined ? [...broadRule(input, rule), ...untriedRule(input, rule)] : [useless];
}

function baseOf({ policy, home }: LintInput): GlobBase {
  return { root: policy.root, home };
}

function reachOf(effect: Effect): Reach {
  return effect === "allow" ? "allow" : "restrict";
}

function named(rule: Rule): string {
  return `${rule.effect} rule \`${rule.text}\` (${rule.id})`;
}

// ---- never matches ----------------------------------------------------------------------------------------------------

function deadRule(input: LintInput, rule: Rule): Finding | undefined {
  const why = carvedWhole(rule, input) ??
    (rule.effect === "allow"
      ? switchedOff(rule, input) ?? impossibleRisk(rule) ?? allProtected(rule, input)
      : undefined);
  return why && { code: "dead-rule", message: `${named(rule)} never matches: ${why.why}`, hint: why.hint };
}

type Why = { readonly why: string; readonly hint: string };

function carvedWhole(rule: Rule, input: LintInput): Why | undefined {
  const { exceptCommand, exceptPath, exceptHost, command, path, host } = rule;
  if (exceptCommand === undefined && exceptPath === undefined && exceptHost === undefined) return undefined;
  // What is carved from a rule that restricts is matched narrowly, so that some spellings of it stay.
  const restricts = rule.effect !== "allow";
  const reaches: Reaches = restricts
    ? { wide: "allow", narrow: "allow" }
    : { wide: "restrict", narrow: "allow" };
  const wide = matchersOf(exceptCommand, exceptPath, exceptHost);
  if (!coversSubject(wide, matchersOf(command, path, host), reaches, baseOf(input))) return undefined;
  return {
    why: `its \`except\` takes out all that it names${restricts ? ", odd spellings apart" : ""}`,
    hint: "narrow `except`, or remove the rule",
  };
}

function matchersOf(
  command: Matchers["command"] | undefined,
  path: Matchers["path"] | undefined,
  host: Matchers["host"] | undefined,
): Matchers {
  return {
    tools: ["*"],
    ...(command === undefined ? {} : { command }),
    ...(path === undefined ? {} : { path }),
    ...(host === undefined ? {} : { host }),
  };
}

function switchedOff(rule: Rule, { policy }: LintInput): Why | undefined {
  if (rule.tools.some(mayNameOutsideTool)) return undefined;
  const tools = rule.tools.flatMap((tool) => builtinsOf(tool));
  const off = tools.filter((tool) => enableableTools.includes(tool) && !policy.tools.enabled.includes(tool));
  if (off.length < tools.length || off.length === 0) return undefined;
  // A redirection of a shell command is judged as write_file, whether a model is offered that tool or not.
  if (policy.tools.enabled.includes("shell") && off.includes("write_file")) return undefined;
  return {
    why: `\`${off.join("`, `")}\` ${off.length === 1 ? "is" : "are"} not in \`tools.enabled\``,
    hint: "enable the tool, or remove the rule",
  };
}

function onlyRisk(tool: string): Risk | undefined {
  // A redirection to or from a file is judged as one of these two, at the risk of the whole command.
  if (tool === "read_file" || tool === "write_file" || tool === "shell") return undefined;
  if (tool === "fetch_url") return "network";
  return builtinTool(tool)?.reads === true ? "read" : "write";
}

function impossibleRisk(rule: Rule): Why | undefined {
  const { risk } = rule;
  if (risk === undefined || rule.tools.some(mayNameOutsideTool)) return undefined;
  const tools = rule.tools.flatMap((tool) => builtinsOf(tool));
  const possible = tools.some((tool) => {
    const only = onlyRisk(tool);
    return only === undefined || risk.some((r) => r === only);
  });
  if (possible) return undefined;
  const said = rule.sourcedBy === undefined
    ? `no call of it is of risk ${risk.join(" or ")}`
    : "an allow rule with `sourced_by` covers calls of risk read, and no call of it is";
  return { why: said, hint: "change the risk or the tool, or remove the rule" };
}

function allProtected(rule: Rule, input: LintInput): Why | undefined {
  const { path } = rule;
  if (path === undefined || path.length === 0) return undefined;
  const entries = path.map((p) => {
    const made = p.literal ? undefined : absoluteGlob(p.source, baseOf(input));
    if (made === undefined || "error" in made) return undefined;
    const below = [`${made.prefix}/x`, `${made.prefix}/x/y`];
    return input.policy.protect.find((e) => below.every((b) => e.pattern.test(b)))?.shown;
  });
  const [first] = entries;
  if (first === undefined || entries.some((e) => e === undefined)) return undefined;
  return {
    why: `all that it names is protected (\`${first}\`)`,
    hint: "a protected path is covered only by a rule that names it without wildcards",
  };
}

// ---- never counts -----------------------------------------------------------------------------------------------------

const stricterThan: Readonly<Record<Effect, readonly Effect[]>> = {
  allow: ["deny", "ask"],
  ask: ["deny"],
  deny: [],
};

function silencedRule(input: LintInput, upper: readonly Layer[], rule: Rule): Finding | undefined {
  const reaches: Reaches = { wide: "restrict", narrow: reachOf(rule.effect) };
  const stricter = upper.flatMap((l) => l.rules).find((other) =>
    stricterThan[rule.effect].includes(other.effect) && coversRule(other, rule, reaches, baseOf(input))
  );
  return stricter && {
    code: "shadowed-rule",
    message: `${named(rule)} never counts: ${named(stricter)} at ${
      showPosition(stricter.at)
    } covers all of it`,
    hint: "the strictest rule wins whatever the order; remove one of them, or narrow the stricter one",
  };
}

// Another layer's allow or ask is a vote of its own; a deny of an upper layer is the last word.
function doubledRule(input: LintInput, upper: readonly Layer[], rule: Rule): Finding | undefined {
  const own = upper.at(-1)?.rules ?? [];
  const above = rule.effect === "deny" ? upper.slice(0, -1).flatMap((l) => l.rules) : [];
  const reach = reachOf(rule.effect);
  const reaches: Reaches = { wide: reach, narrow: reach };
  const base = baseOf(input);
  for (const other of [...above, ...own]) {
    if (other === rule || other.effect !== rule.effect || !coversRule(other, rule, reaches, base)) continue;
    if (rule.always === true && other.always !== true) continue;
    const same = coversRule(rule, other, reaches, base);
    // Of two equal ones it is the second that can go.
    if (same && own.indexOf(other) > own.indexOf(rule)) continue;
    if (!same && saysMore(input, rule, other)) continue;
    return {
      code: same ? "duplicate-rule" : "redundant-rule",
      message: same
        ? `${named(rule)} says the same as ${named(other)} at ${showPosition(other.at)}`
        : `${named(rule)} is covered by ${named(other)} at ${showPosition(other.at)}`,
      hint: "remove it",
    };
  }
  return undefined;
}

// Without wildcards a rule also answers the risk floor, names what is hidden in a command, and lifts protection.
function saysMore(input: LintInput, rule: Rule, wide: Rule): boolean {
  if (rule.effect !== "allow") return false;
  const commands = (rule.command ?? []).filter((c) => !c.rest);
  const hidden = commands.some((c) => {
    const part: Part = { argv: c.words, text: c.source, assignments: c.assignments, level: "top" };
    const said = wide.command?.some((w) =>
      !w.rest && commandCovers(w, c, { wide: "allow", narrow: "allow" })
    );
    return said !== true && (commandRisk(part) === "destructive" || input.runsOthers(c.words.slice(0, 1)));
  });
  const guarded = (rule.path ?? []).some((p) => {
    const made = absoluteGlob(p.source, baseOf(input));
    return p.literal && !("error" in made) && input.policy.protect.some((e) => e.pattern.test(made.prefix));
  });
  const exactHost = rule.host?.some((h) => h.kind === "exact") === true &&
    wide.host?.some((h) => h.kind !== "exact");
  return hidden || guarded || exactHost === true;
}

function undelegatedRule(input: LintInput, upper: readonly Layer[], rule: Rule): Finding | undefined {
  if (rule.layer !== "project" || rule.effect !== "allow") return undefined;
  const delegates = upper.slice(0, -1).flatMap((l) => l.delegates);
  const reaches: Reaches = { wide: "allow", narrow: "allow" };
  if (delegates.some((d) => coversRule(d, rule, reaches, baseOf(input)))) return undefined;
  return {
    code: "not-delegated",
    message: `${
      named(rule)
    } counts only for calls that an upper layer delegates, and none delegates all of it`,
    hint: "add `permissions.delegate` to the user or machine policy, or remove the rule",
  };
}

// ---- counts too much, or nobody knows ---------------------------------------------------------------------------------

function broadRule(input: LintInput, rule: Rule): readonly Finding[] {
  if (rule.effect !== "allow") return [];
  return broadness(rule, baseOf(input), (words) => input.runsOthers(words)).map((why) => ({
    code: "broad-rule",
    message: `${named(rule)} is very broad: ${why}`,
    hint: "name the commands, paths or hosts that are meant",
  }));
}

function untriedRule({ tried }: LintInput, rule: Rule): readonly Finding[] {
  if (tried.has(rule.id) || !hasWildcards(rule)) return [];
  return [{
    code: "no-examples",
    message: `${named(rule)} has no example`,
    hint: "add `match` and `no_match`: they are decided at every load",
  }];
}

const shipped: ReadonlySet<string> = new Set(Object.values(shippedSets).flatMap((set) => set.entries));

function hasWildcards({ command, path, host }: Rule): boolean {
  return (command?.some((c) => c.rest && !shipped.has(c.source)) ?? false) ||
    (path?.some((p) => !p.literal && !shipped.has(p.source)) ?? false) ||
    (host?.some((h) => h.kind === "any" || h.kind === "under") ?? false);
}

function floors(layer: Layer, lower: readonly Layer[]): readonly Problem[] {
  if (layer.name !== "machine") return [];
  const allows = lower.filter((l) => l.name === "user").flatMap((l) => l.rules).filter((r) =>
    r.effect === "allow"
  );
  return Object.entries(layer.defaults).flatMap(([risk, { effect, at }]): Problem[] => {
    if (effect === "allow") return [];
    const now = allows.length === 0 ? "" : `; the user layer has ${allows.length} now`;
    return [{
      code: "default-floor",
      severity: "warning",
      message:
        `the machine's default \`${effect}\` for risk ${risk} is a floor: no allow rule of a lower layer loosens it${now}`,
      at,
      hint: "leave the default to the lower layers, or add the allow rules here",
    }];
  });
}
