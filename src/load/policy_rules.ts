// Entries of allow, ask, deny, delegate, before and evidence → compiled rules. What can never match is a Problem.
import { undefinedBox } from "../core/box.ts";
import type { Effect, Risk } from "../core/decision.ts";
import { isError, type Loaded, nearest, type Position, type Problem } from "../core/problem.ts";
import type { Matchers, Rule } from "../core/rule.ts";
import { escapeLine, wildcard } from "../core/text.ts";
import {
  builtinsOf,
  builtinTools,
  type Matcher,
  mayNameOutsideTool,
  specifierOf,
} from "../core/tool_names.ts";
import type { PolicyLayer } from "./policy_file.ts";
import {
  type Compiled,
  compileText,
  join,
  type MatcherContext,
  type MatcherFault,
  matchersOf,
} from "./policy_matchers.ts";
import type { RuleEntry, RuleMapping } from "./policy_schema.ts";
import { unknownTool } from "./policy_values.ts";
import type { YamlPath } from "./yaml.ts";

export type RuleContext = MatcherContext & {
  /** Full names of the tools that the policy lists of MCP servers. */
  readonly serverTools: readonly string[];
  /** Names of the boxes that the policy defines; absent: names of boxes are not looked at. */
  readonly boxes?: readonly string[];
  /** Makes a path of the file absolute. */
  resolve(path: string): string;
};
/** Whose rule it is and where it stands; `at([])` is the entry itself. */
export type RuleSite = {
  readonly layer: PolicyLayer;
  /** What the rule votes; `delegate` and `evidence` match as an allow does, `before` as a deny. */
  readonly effect: Effect;
  readonly list: "rules" | "delegate" | "before" | "evidence";
  readonly defaultId: string;
  at(path: YamlPath): Position;
};
/** A text that a rule must, or must not, match; decided when the policy is loaded. */
export type RuleExample = {
  readonly rule: Rule;
  readonly text: string;
  readonly want: "match" | "no_match";
  readonly at: Position;
};
export type CompiledRule = { readonly rule: Rule; readonly examples: readonly RuleExample[] };

/** All faults of the entry at once; warnings may come with a rule. */
export function compileRule(entry: RuleEntry, site: RuleSite, context: RuleContext): Loaded<CompiledRule> {
  const mapping: RuleMapping = typeof entry === "string" ? { tool: entry } : entry;
  const inString = typeof entry === "string";
  const problems: Problem[] = [];
  const report = (fault: MatcherFault, path: YamlPath, severity: "error" | "warning" = "error") =>
    problems.push({ ...fault, severity, at: site.at(inString ? [] : path) });

  const tools = readTools(mapping, report);
  const written = writtenMatchers(mapping, tools, report);
  const compiled = compileMatchers(mapping, written, context, report);
  for (const tool of tools) checkToolName(tool.name, context, report, tool.path);
  if (!problems.some(isError)) checkReach(mapping, written, tools.map((t) => t.name), site, report);
  checkUse(mapping, site, report);
  checkBoxes(mapping, context, report);
  if (problems.some((p) => p.severity === "error")) return { ok: false, problems };

  const text = showRule(mapping, tools.map((t) => t.name), written);
  const rule: Rule = {
    ...buildMatchers(mapping, tools.map((t) => t.name), compiled, site, context),
    id: mapping.id ?? site.defaultId,
    effect: site.effect,
    layer: site.layer,
    at: site.at([]),
    text: typeof entry === "string" ? escapeLine(entry) : text,
    ...(mapping.reason === undefined ? {} : { reason: mapping.reason }),
    ...(mapping.always === undefined ? {} : { always: mapping.always }),
  };
  return { ok: true, value: { rule, examples: examplesOf(rule, mapping, site) }, problems };
}

/**
 * The examples that fail, given whether a rule matches a text of its tool's main argument: a shell command, a path, an
 * address, a skill's name. In the order of the examples.
 */
export function checkExamples(
  examples: readonly RuleExample[],
  matchesExample: (rule: Rule, example: string) => boolean,
): readonly Problem[] {
  return examples.filter((e) => matchesExample(e.rule, e.text) !== (e.want === "match")).map((e) => ({
    code: "example-fails",
    severity: "error",
    message: e.want === "match"
      ? `rule \`${e.rule.id}\` does not match its example \`${escapeLine(e.text)}\``
      : `rule \`${e.rule.id}\` matches \`${escapeLine(e.text)}\`, which it must not`,
    at: e.at,
    hint: `the rule is \`${e.rule.text}\`; change it or the example`,
  }));
}

type Report = (fault: MatcherFault, path: YamlPath, severity?: "error" | "warning") => void;
type ToolText = { readonly name: string; readonly specifier?: string; readonly path: YamlPath };
/** The rule's one matcher over the subject, as written; undefined: the rule is about the whole call. */
type Written = { readonly kind: Matcher; readonly texts: readonly string[]; readonly path: YamlPath };

/** `tool` or `tool(specifier)`; undefined when the parentheses do not fit. */
function splitToolText(
  text: string,
): { readonly name: string; readonly specifier?: string } | undefined {
  const open = text.indexOf("(");
  if (open < 0) return /[\s)]/.test(text) ? undefined : { name: text };
  const name = text.slice(0, open);
  if (!text.endsWith(")") || name === "" || /\s/.test(name)) return undefined;
  return { name, specifier: text.slice(open + 1, -1).trim() };
}

function readTools(mapping: RuleMapping, report: Report): ToolText[] {
  const tools: ToolText[] = [];
  for (const [text, path] of textsAt(mapping.tool, ["tool"])) {
    const split = splitToolText(text);
    if (split === undefined) {
      report({
        code: "bad-pattern",
        message: `\`${escapeLine(text)}\` is neither \`tool\` nor \`tool(specifier)\``,
        ...(text.includes("(") && !text.includes(")") ? { hint: "close the parenthesis with `)`" } : {}),
      }, path);
    } else tools.push({ ...split, path });
  }
  return tools;
}

function writtenMatchers(
  mapping: RuleMapping,
  tools: readonly ToolText[],
  report: Report,
): Written | undefined {
  const found: Written[] = [];
  for (const kind of ["command", "path", "host"] as const) {
    const value = mapping[kind];
    if (value !== undefined) found.push({ kind, texts: asList(value), path: [kind] });
  }
  const [specified, second] = tools.filter((t) => t.specifier !== undefined);
  if (specified?.specifier !== undefined) {
    const kind = specifierOf(specified.name);
    if (second !== undefined || tools.length > 1) {
      report(
        { code: "bad-pattern", message: "a list of tools takes no specifier", hint: "write two rules" },
        specified.path,
      );
    } else if (
      kind === undefined && builtinsOf(specified.name).length === 0 && !mayNameOutsideTool(specified.name)
    ) {
      // Nobody knows the tool: that is said elsewhere.
      return found[0];
    } else if (kind === undefined) {
      const hint = "use a mapping with `command`, `path`, `host` or `arg`";
      report(
        { code: "bad-pattern", message: `\`${specified.name}\` takes no specifier`, hint },
        specified.path,
      );
    } else if (specified.specifier === "") {
      report({
        code: "bad-pattern",
        message: "the specifier is empty",
        hint: `write \`${specified.name}\` for every call`,
      }, specified.path);
    } else found.push({ kind, texts: [specified.specifier], path: specified.path });
  }
  const [first, other] = found;
  if (first !== undefined && other !== undefined) {
    report({
      code: "never-matches",
      message: `\`${first.kind}\` and \`${other.kind}\` never hold for one and the same thing`,
      hint: "write two rules",
    }, other.path);
  }
  return first;
}

function compileMatchers(
  mapping: RuleMapping,
  written: Written | undefined,
  context: RuleContext,
  report: Report,
): { readonly main: Compiled | undefined; readonly except: Compiled | undefined } {
  const compile = (kind: Matcher, texts: readonly string[], path: YamlPath, listed: boolean) => {
    const all: Compiled[] = [];
    texts.forEach((text, index) => {
      const one = compileText(kind, text, context);
      const place = listed ? [...path, index] : path;
      if ("code" in one) report(one, place);
      else all.push(one);
      if (kind === "path" && /\\[\p{L}\p{N}_]/u.test(text)) report(backslash(text), place, "warning");
    });
    return join(kind, all);
  };
  if (mapping.except !== undefined && (written === undefined || written.kind === "skill")) {
    report({
      code: "wrong-value",
      message: "`except` stands beside nothing that it could carve from",
      hint: "put it beside one of `command`, `path` and `host`",
    }, ["except"]);
    return { main: undefined, except: undefined };
  }
  if (written === undefined) return { main: undefined, except: undefined };
  const main = compile(written.kind, written.texts, written.path, isList(mapping, written.kind));
  const except = mapping.except === undefined
    ? undefined
    : compile(written.kind, asList(mapping.except), ["except"], Array.isArray(mapping.except));
  if (except !== undefined && takesAll(except)) {
    report({
      code: "dead-rule",
      message: "the rule can never match: its `except` takes out everything",
      hint: "narrow `except`, or remove the rule",
    }, ["except"]);
  }
  return { main, except };
}

function takesAll(except: Compiled): boolean {
  switch (except.kind) {
    case "command":
      return except.entries.some((c) => c.words.length === 0 && c.assignments.length === 0 && c.rest);
    case "path":
      return except.entries.some((p) => p.source === "/**");
    case "host":
      return except.entries.some((h) => h.kind === "any");
    case "skill":
      return false;
  }
}

function backslash(text: string): MatcherFault {
  return {
    code: "backslash",
    message: `\`${escapeLine(text)}\` has a \`\\\` before a letter or digit, where it says nothing`,
    hint: "write `/` between the steps of a path",
  };
}

function checkToolName(
  name: string,
  { serverTools }: Pick<RuleContext, "serverTools">,
  report: Report,
  path: YamlPath,
): void {
  if (builtinsOf(name).length > 0) return;
  if (!mayNameOutsideTool(name)) {
    return report(unknownTool(name, builtinTools), path);
  }
  if (!/^mcp\./.test(name) || serverTools.some((tool) => wildcard(name, tool))) return;
  const near = nearest(name, serverTools);
  report(
    {
      code: "absent-tool",
      message: `no server in \`mcp_servers\` lists \`${name}\``,
      hint: near === undefined ? "the rule has no effect" : `did you mean \`${near}\`?`,
    },
    path,
    "warning",
  );
}

function checkReach(
  mapping: RuleMapping,
  written: Written | undefined,
  tools: readonly string[],
  site: RuleSite,
  report: Report,
): void {
  if (mapping.sourced_by !== undefined) {
    const odd = asList(mapping.sourced_by).find((s) => !s.startsWith("skill:") && s !== "*");
    if (odd !== undefined) {
      report({
        code: "never-matches",
        message: `no call is sourced by \`${odd}\``,
        hint: `write \`skill:${odd}\``,
      }, ["sourced_by"]);
    }
  }
  if (written === undefined) return;
  const restricts = site.effect !== "allow";
  if (
    tools.some((tool) =>
      mayNameOutsideTool(tool) || builtinsOf(tool).some((name) => canMeet(name, written.kind, restricts))
    )
  ) return;
  const shellPath = written.kind === "path" && tools.includes("shell");
  report({
    code: "never-matches",
    message: `${tools.map((t) => `\`${t}\``).join(", ")} never ${
      tools.length === 1 ? "has" : "have"
    } a ${written.kind} to match`,
    hint: shellPath
      ? "a file that a command writes is allowed by a rule on `write_file`"
      : "name a tool that has one, or remove the matcher",
  }, written.path);
}

function canMeet(tool: string, kind: Matcher, restricts: boolean): boolean {
  return specifierOf(tool) === kind || (tool === "shell" && kind === "path" && restricts);
}

function checkUse(mapping: RuleMapping, site: RuleSite, report: Report): void {
  if (mapping.always !== undefined && (site.effect !== "ask" || site.list !== "rules")) {
    report(
      { code: "wrong-value", message: "`always` is only known in `permissions.ask`", hint: "remove it" },
      ["always"],
    );
  }
  const risks = mapping.risk === undefined ? [] : asList<Risk>(mapping.risk);
  if (
    mapping.sourced_by !== undefined && site.effect === "allow" && site.list === "rules" &&
    risks.some((r) => r !== "read")
  ) {
    report({
      code: "wrong-value",
      message: "an allow rule with `sourced_by` covers calls of risk `read` only",
      hint: "remove `risk`, or name the calls without `sourced_by`",
    }, ["risk"]);
  }
}

function checkBoxes(mapping: RuleMapping, { boxes }: RuleContext, report: Report): void {
  if (mapping.box === undefined || boxes === undefined) return;
  for (const [name, path] of textsAt(mapping.box, ["box"])) {
    const fault = undefinedBox(boxes, name);
    if (fault !== undefined) report({ code: "unknown-box", ...fault }, path);
  }
}

function buildMatchers(
  mapping: RuleMapping,
  tools: readonly string[],
  compiled: { readonly main: Compiled | undefined; readonly except: Compiled | undefined },
  site: RuleSite,
  context: RuleContext,
): Matchers {
  const { main, except } = compiled;
  const sourcedAllow = mapping.sourced_by !== undefined && site.effect === "allow" && site.list === "rules";
  const risk: readonly Risk[] | undefined = sourcedAllow
    ? ["read"]
    : mapping.risk === undefined
    ? undefined
    : asList<Risk>(mapping.risk);
  return {
    tools,
    ...(main === undefined ? {} : matchersOf(main, except)),
    ...(mapping.arg === undefined ? {} : {
      args: Object.fromEntries(Object.entries(mapping.arg).map(([name, globs]) => [name, asList(globs)])),
    }),
    ...(mapping.box === undefined ? {} : { box: asList(mapping.box) }),
    ...(risk === undefined ? {} : { risk }),
    ...(mapping.sourced_by === undefined ? {} : { sourcedBy: asList(mapping.sourced_by) }),
    ...(mapping.mode === undefined ? {} : { mode: mapping.mode }),
    ...(mapping.workspace === undefined ? {} : { workspace: context.resolve(mapping.workspace) }),
  };
}

// In the words of the file, on one line: `shell(git diff *, git log *) except …`.
function showRule(mapping: RuleMapping, tools: readonly string[], written: Written | undefined): string {
  const listed = (value: string | readonly string[]) => asList(value).join(", ");
  const [tool] = tools;
  const natural = tools.length === 1 && tool !== undefined && specifierOf(tool) === written?.kind;
  const parts = [
    written === undefined
      ? tools.join(", ")
      : natural
      ? `${tool}(${listed(written.texts)})`
      : `${tools.join(", ")} ${written.kind} ${listed(written.texts)}`,
  ];
  if (mapping.except !== undefined) parts.push(`except ${listed(mapping.except)}`);
  for (const [name, globs] of Object.entries(mapping.arg ?? {})) parts.push(`arg ${name}=${listed(globs)}`);
  if (mapping.box !== undefined) parts.push(`box ${listed(mapping.box)}`);
  if (mapping.risk !== undefined) parts.push(`risk ${listed(mapping.risk)}`);
  if (mapping.sourced_by !== undefined) parts.push(`sourced_by ${listed(mapping.sourced_by)}`);
  if (mapping.mode !== undefined) parts.push(`mode ${mapping.mode}`);
  if (mapping.workspace !== undefined) parts.push(`workspace ${mapping.workspace}`);
  return escapeLine(parts.join(" "));
}

function examplesOf(rule: Rule, mapping: RuleMapping, site: RuleSite): RuleExample[] {
  return (["match", "no_match"] as const).flatMap((want) =>
    textsAt(mapping[want] ?? [], [want]).map(([text, path]) => ({ rule, text, want, at: site.at(path) }))
  );
}

function isList(mapping: RuleMapping, kind: Matcher): boolean {
  return kind !== "skill" && Array.isArray(mapping[kind]);
}

function textsAt(value: string | readonly string[], path: YamlPath): (readonly [string, YamlPath])[] {
  return typeof value === "string" ? [[value, path]] : value.map((text, index) => [text, [...path, index]]);
}

function asList<T extends string = string>(value: T | readonly T[]): readonly T[] {
  return typeof value === "string" ? [value] : value;
}
