// Forced skills and gates of a policy: what is loaded from the start, and what must wait for evidence.
import { decide } from "../core/decide.ts";
import type { LayerName } from "../core/decision.ts";
import type { Facts, Mode } from "../core/facts.ts";
import { unreported } from "../core/gate_state.ts";
import type { ForcedSkill, Gate, Layer, SkillTier } from "../core/policy.ts";
import { isWithin } from "../core/path.ts";
import { type Problem, showPosition } from "../core/problem.ts";
import type { Matchers, Rule } from "../core/rule.ts";
import { escapeLine } from "../core/text.ts";
import type { PolicyFile } from "./policy_file.ts";
import { compileRule, type RuleContext, type RuleExample } from "./policy_rules.ts";
import type { ForcedEntry, RuleEntry } from "./policy_schema.ts";
import type { Settings } from "./policy_settings.ts";
import type { YamlPath } from "./yaml.ts";

export type ForcedParts = {
  readonly forced: readonly ForcedSkill[];
  readonly gates: readonly Gate[];
  readonly examples: readonly RuleExample[];
};

/** In the order of layers, files and entries. A skill that several entries force from the start is kept once. */
export function compileForced(settings: Settings, contextOf: (file: PolicyFile) => RuleContext): ForcedParts {
  const forced: ForcedSkill[] = [];
  const gates: Gate[] = [];
  const examples: RuleExample[] = [];
  const counts = new Map<string, number>();
  for (const file of settings.files) {
    (file.data.skills?.forced ?? []).forEach((entry, index) => {
      const n = counts.get(file.layer) ?? 0;
      counts.set(file.layer, n + 1);
      const path = ["skills", "forced", index];
      const at = file.at(path);
      const fault = forcedFault(entry);
      if (fault !== undefined) {
        settings.problems.push({ code: "wrong-value", severity: "error", at, ...fault });
        return;
      }
      const id = entry.id ?? `${file.layer}.forced[${n}]`;
      settings.origin.push({ key: "skills.forced", value: showForced(entry), layer: file.layer, at });
      if (entry.before !== undefined) {
        const made = compileGate(entry, { id, path, file }, settings, contextOf(file));
        gates.push(made.gate);
        examples.push(...made.examples);
      }
      if (entry.skill !== undefined) {
        const places = { at, nameAt: file.at([...path, "skill"]) };
        forced.push(forcedSkill(entry, entry.skill, id, file.layer, places));
      }
    });
  }
  return { forced: mergeSessionForced(settings, forced), gates, examples };
}

function forcedSkill(
  entry: ForcedEntry,
  skill: string,
  id: string,
  layer: LayerName,
  places: Pick<ForcedSkill, "at" | "nameAt">,
): ForcedSkill {
  return {
    skill,
    layer,
    ...places,
    arguments: entry.arguments ?? "",
    ...(entry.tier === undefined ? {} : { tier: entry.tier }),
    bounding: entry.bounding ?? false,
    when: entry.when === undefined ? { at: "gate", gate: id } : { at: "session" },
  };
}

type Said = Pick<Problem, "message" | "hint">;

function forcedFault(entry: ForcedEntry): Said | undefined {
  const { when, before, evidence, verdict, skill } = entry;
  if ((when === undefined) === (before === undefined)) {
    return {
      message: `the entry has ${when === undefined ? "neither" : "both"} \`when\` ${
        when === undefined ? "nor" : "and"
      } \`before\``,
      hint: "write one of them",
    };
  }
  if (skill?.includes("*")) return { message: `the skill \`${skill}\` is a glob`, hint: "name one skill" };
  if (when !== undefined) {
    if (skill === undefined) return { message: "the entry forces no skill", hint: "add `skill`" };
    const [first, ...others] = gateKeys.filter((k) => entry[k] !== undefined).map((k) => `\`${k}\``);
    if (first === undefined) return undefined;
    return {
      message: `${[first, ...others].join(" and ")} ${others.length === 0 ? "belongs" : "belong"} to a gate`,
      hint: "use `before` in place of `when`",
    };
  }
  if (before?.length === 0) {
    return { message: "`before` is empty, so the gate guards nothing", hint: "list what must wait" };
  }
  if (evidence === undefined && verdict === undefined) {
    return { message: "the gate asks for nothing", hint: "add `evidence`, or `skill` with `verdict`" };
  }
  if (entry.gate_retries !== undefined && !holdsFinish(entry)) {
    return {
      message: "`gate_retries` says how often the end of a turn is refused, which this gate does not guard",
      hint: "remove it, or add `finish` to `before`",
    };
  }
  if (entry.by !== undefined && verdict === undefined) {
    return { message: "`by` says who must give a verdict, and none is wanted", hint: "add `verdict`" };
  }
  if (verdict?.includes(unreported)) {
    return {
      message:
        `\`${unreported}\` is what is recorded when a skill reports nothing, so no gate can wait for it`,
      hint: "name an outcome such as PASS",
    };
  }
  if (skill !== undefined) return undefined;
  const lonely = (["verdict", "arguments", "bounding", "tier"] as const).find((k) => entry[k] !== undefined);
  return lonely === undefined ? undefined : { message: `\`${lonely}\` needs a skill`, hint: "add `skill`" };
}

const gateKeys = ["evidence", "verdict", "by", "reuse", "gate_retries"] as const;
const defaultRetries = 3;

function holdsFinish({ before }: ForcedEntry): boolean {
  return before === "finish" || before?.includes("finish") === true;
}

type GatePlace = { readonly id: string; readonly path: YamlPath; readonly file: PolicyFile };

function compileGate(
  entry: ForcedEntry,
  place: GatePlace,
  settings: Settings,
  context: RuleContext,
): { readonly gate: Gate; readonly examples: readonly RuleExample[] } {
  const examples: RuleExample[] = [];
  const rules = (list: "before" | "evidence", entries: readonly RuleEntry[]): Rule[] =>
    entries.flatMap((rule, index) => {
      if (list === "before" && rule === "finish") return [];
      const made = compileRule(rule, {
        layer: place.file.layer,
        effect: list === "before" ? "deny" : "allow",
        list,
        defaultId: `${place.id}.${list}[${index}]`,
        at: (path) => place.file.at([...place.path, list, index, ...path]),
      }, context);
      settings.problems.push(...made.problems);
      if (!made.ok) return [];
      examples.push(...made.value.examples);
      return [made.value.rule];
    });
  const gate: Gate = {
    id: place.id,
    layer: place.file.layer,
    at: place.file.at(place.path),
    before: rules("before", Array.isArray(entry.before) ? entry.before : []),
    ...(holdsFinish(entry) ? { finish: { retries: entry.gate_retries ?? defaultRetries } } : {}),
    evidence: rules("evidence", entry.evidence ?? []),
    ...(entry.skill === undefined ? {} : { skill: entry.skill }),
    ...(entry.verdict === undefined ? {} : { verdict: entry.verdict }),
    ...(entry.by === undefined ? {} : { by: entry.by }),
    ...(entry.reuse === true ? { reuse: true as const } : {}),
  };
  settings.problems.push(...gate.evidence.flatMap((rule) => workspaceEvidence(rule, context.root)));
  return { gate, examples };
}

// What commands may write proves nothing: such a program is never evidence, whatever it says.
function workspaceEvidence(rule: Rule, root: string): readonly Problem[] {
  const programs = rule.command?.map((c) => c.words[0] ?? "") ?? [];
  const inside = (word: string) =>
    word.includes("/") && !word.split("/").includes("..") &&
    isWithin(word.startsWith("/") ? word : `${root}/${word}`, root);
  if (programs.length === 0 || !programs.every(inside)) return [];
  return [{
    code: "gate-unreachable",
    severity: "error",
    message: `\`${
      escapeLine(rule.text)
    }\` can never be evidence: its program lies in the workspace, where commands may write`,
    at: rule.at,
    hint: "name a program that is installed, such as `bun test` or `make check`",
  }];
}

// A tier that the lower entry names counts where it is nearer to what ships with Writ than what the upper one admits.
function narrowerTier(upper: ForcedSkill, lower: ForcedSkill): { readonly tier?: SkillTier } {
  const order: readonly SkillTier[] = ["builtin", "machine", "user", "project"];
  const admitted = upper.tier ?? (upper.layer === "builtin" ? "machine" : upper.layer);
  const { tier } = lower;
  return tier !== undefined && order.indexOf(tier) < order.indexOf(admitted) ? { tier } : {};
}

// The upper layer's words stand; a lower one can only add that the skill bounds, and narrow where it comes from.
function mergeSessionForced(settings: Settings, all: readonly ForcedSkill[]): readonly ForcedSkill[] {
  const merged: ForcedSkill[] = [];
  for (const entry of all) {
    const index = merged.findIndex((m) =>
      m.skill === entry.skill && m.when.at === "session" && entry.when.at === "session"
    );
    const upper = merged[index];
    if (upper === undefined) {
      merged.push(entry);
      continue;
    }
    merged[index] = { ...upper, bounding: upper.bounding || entry.bounding, ...narrowerTier(upper, entry) };
    if (upper.arguments === entry.arguments || entry.arguments === "") continue;
    settings.problems.push({
      code: upper.layer === entry.layer ? "set-twice" : "no-effect",
      severity: upper.layer === entry.layer ? "error" : "warning",
      message: `the arguments of the forced skill \`${entry.skill}\` are already set at ${
        showPosition(upper.at)
      }`,
      at: entry.at,
      hint: "a skill is forced from the start once, with one set of arguments",
    });
  }
  return merged;
}

function showForced(entry: ForcedEntry): string {
  const list = (rules: readonly RuleEntry[]) =>
    rules.map((r) => typeof r === "string" ? r : [r.tool].flat().join(", ")).join(", ");
  const parts = [
    entry.skill === undefined ? "gate" : `skill ${entry.skill}`,
    ...(entry.when === undefined ? [] : [`when ${entry.when}`]),
    ...(entry.before === undefined ? [] : [`before ${list([entry.before].flat())}`]),
    ...(entry.evidence === undefined ? [] : [`evidence ${list(entry.evidence)}`]),
    ...(entry.verdict === undefined ? [] : [`verdict ${entry.verdict.join(" or ")}`]),
    ...(entry.by === undefined ? [] : [`by a ${entry.by}`]),
    ...(entry.bounding === true ? ["bounding"] : []),
    ...(entry.reuse === true ? ["reuse"] : []),
    ...(entry.gate_retries === undefined ? [] : [`gate_retries ${entry.gate_retries}`]),
    ...(entry.tier === undefined ? [] : [`tier ${entry.tier}`]),
  ];
  return escapeLine(parts.join(", "));
}

/** Gates whose verdict no call of complete_skill can ever give, whoever watches the run and whatever it says. */
export function unreachableVerdicts(
  gates: readonly Gate[],
  layers: readonly Layer[],
  root: string,
): readonly Problem[] {
  const open = layers.map((layer) => ({
    ...layer,
    rules: layer.rules.filter((r) => r.effect === "allow" || r.args?.["summary"] === undefined).map(
      anySummary,
    ),
    delegates: layer.delegates.map(anySummary),
  }));
  return gates.flatMap((gate): Problem[] => {
    const { skill, verdict } = gate;
    if (verdict === undefined || skill === undefined) return [];
    const standing = { root, active: [skill], vouched: [skill], bounds: [], blocks: [] };
    const decided = verdict.flatMap((outcome) =>
      (["interactive", "unattended"] as const).map((mode) =>
        decide(open, completion(skill, outcome, mode), standing)
      )
    );
    const [first] = decided;
    if (first === undefined || decided.some((d) => d.effect !== "deny")) return [];
    const [cause] = first.causes;
    const place = "at" in cause && cause.at !== undefined ? ` at ${showPosition(cause.at)}` : "";
    return [{
      code: "gate-unreachable",
      severity: "error",
      message: `the gate \`${gate.id}\` waits for a verdict, and \`complete_skill\` is denied${place}`,
      at: gate.at,
      hint: `allow \`complete_skill(${skill})\` there`,
    }];
  });
}

// The skill is active when it is completed, so rules that are about its calls apply.
function completion(skill: string, outcome: string, mode: Mode): Facts {
  return {
    tool: "complete_skill",
    args: { name: skill, outcome, summary: "" },
    risk: "read",
    subjects: [{ kind: "call" }],
    box: "default",
    sourcedBy: [`skill:${skill}`],
    mode,
    errors: [],
  };
}

// The model chooses the summary: what an allow rule wants of it can be met, what another rule is about can be avoided.
function anySummary<M extends Matchers>(matchers: M): M {
  const { summary: _, ...args } = matchers.args ?? {};
  return matchers.args === undefined ? matchers : { ...matchers, args };
}
