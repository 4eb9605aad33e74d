// What active skills bound: an upper limit on calls, never a grant. One function says which bounds are in force.
import { splitIdentity } from "./command_tool.ts";
import { type Cause, type Risk, risks } from "./decision.ts";
import { covering, isOperand } from "./covering.ts";
import type { Facts } from "./facts.ts";
import type { TriggerKind } from "./event.ts";
import type { SkillSettings } from "./policy.ts";
import type { Matchers } from "./rule.ts";
import { wildcard } from "./text.ts";
import { builtinTool, engineTools } from "./tool_names.ts";

export type BoundingSkill = {
  readonly name: string;
  readonly trigger: TriggerKind;
  /** Mapped entries of allowed_tools; undefined: the skill declares none, or a bare `*`. */
  readonly allowed: readonly AllowedTool[] | undefined;
};
/** `shown` is the entry as declared; an entry whose specifier cannot be read allows nothing. */
export type AllowedTool = { readonly shown: string; readonly matchers?: Matchers };

/** One upper limit: a call must fit one of `allowed`. */
export type Bound = {
  readonly skill: string;
  readonly allowed: readonly AllowedTool[] | "read_only";
  /** The skills whose bounds are united in this one; absent: `skill` alone. */
  readonly united?: readonly string[];
};

/** Bounds of the skills in force; a call must fit every one of them. */
export function bounds(
  active: readonly BoundingSkill[],
  settings: Pick<SkillSettings, "undeclaredTools" | "combineBounds">,
): readonly Bound[] {
  const single = active.flatMap((skill): Bound[] => {
    if (skill.allowed !== undefined) return [{ skill: skill.name, allowed: skill.allowed }];
    return settings.undeclaredTools === "unbounded" ? [] : [{ skill: skill.name, allowed: "read_only" }];
  });
  if (settings.combineBounds === "intersection") return single;
  const byUser = new Set(
    active.filter((s) => s.trigger === "explicit" || s.trigger === "pattern").map((s) => s.name),
  );
  const declared = single.filter((b) => byUser.has(b.skill));
  if (declared.length < 2) return single;
  return [unite(declared), ...single.filter((b) => !byUser.has(b.skill))];
}

const readCalls: AllowedTool = { shown: "calls of risk read", matchers: { tools: ["*"], risk: ["read"] } };

function unite(all: readonly Bound[]): Bound {
  return {
    skill: all.map((b) => b.skill).join(" + "),
    allowed: all.flatMap((b) => b.allowed === "read_only" ? [readCalls] : b.allowed),
    united: all.map((b) => b.skill),
  };
}

/** The deny votes of the bounds that this call does not fit. */
export function boundVotes(all: readonly Bound[], facts: Facts, root: string): readonly Cause[] {
  if (engineTools.includes(facts.tool)) return [];
  return all.filter((b) => !fits(b, facts, root)).map((b) => ({
    by: "bound",
    effect: "deny",
    skill: b.skill,
    allowed: b.allowed === "read_only" ? [readCalls.shown] : b.allowed.map((a) => a.shown),
  }));
}

function fits(bound: Bound, facts: Facts, root: string): boolean {
  if (ownsTool(bound, facts.tool)) return true;
  if (bound.allowed === "read_only") return facts.risk === "read";
  const entries = bound.allowed.flatMap((a) => (a.matchers === undefined ? [] : [a.matchers]));
  if (entries.some((m) => isBare(m) && m.tools.some((glob) => wildcard(glob, facts.tool)))) return true;
  // A skill cannot name boxes: which box a call may have is for the policy to say.
  const anywhere = { ...facts, box: "default" };
  return facts.subjects.every((s) => isOperand(s) || covering(entries, anywhere, s, root).length > 0);
}

// A skill's own command tools count as declared.
function ownsTool(bound: Bound, tool: string): boolean {
  const owner = splitIdentity(tool)?.skill;
  return owner !== undefined && (bound.united ?? [bound.skill]).includes(owner);
}

/** `only`: of a tool that is open in part, what stays open, in the words of the skills. */
export type LeftOpen = {
  readonly open: "yes" | "in part" | "no";
  readonly by?: string;
  readonly only?: string;
};

/**
 * What the bounds leave of the calls of a tool, by its name and the risks that a call can have: `in part` where it depends on
 * the call, and may come to none where bounds exclude each other. `by` names the bound that leaves none.
 */
export function leftOpen(
  all: readonly Bound[],
  tool: string,
  possible: readonly Risk[] = risksOf(tool),
): LeftOpen {
  let open: LeftOpen["open"] = "yes";
  const only: string[] = [];
  for (const bound of all.filter((b) => !ownsTool(b, tool))) {
    const allowed = bound.allowed === "read_only" ? [readCalls] : bound.allowed;
    const met = allowed.filter(({ matchers: m }) =>
      m !== undefined && m.tools.some((glob) => wildcard(glob, tool)) &&
      (m.risk === undefined || possible.some((r) => m.risk?.includes(r)))
    );
    const entries = met.flatMap((a) => a.matchers ?? []);
    if (entries.length === 0) return { open: "no", by: bound.skill };
    const whole = entries.some(({ risk, ...m }) =>
      isBare(m) && (risk === undefined || possible.every((r) => risk.includes(r)))
    );
    if (whole) continue;
    open = "in part";
    only.push(met.map((a) => a.shown).join(" or "));
  }
  return only.length === 0 ? { open } : { open, only: [...new Set(only)].join(", and of these ") };
}

// Of a command it depends on the command.
function risksOf(tool: string): readonly Risk[] {
  const builtin = builtinTool(tool);
  if (builtin?.reads === true) return ["read"];
  if (builtin?.matcher === "path") return ["write"];
  return builtin?.matcher === "host" ? ["network"] : risks;
}

function isBare(m: Matchers): boolean {
  return m.command === undefined && m.path === undefined && m.host === undefined && m.skill === undefined &&
    m.risk === undefined;
}
