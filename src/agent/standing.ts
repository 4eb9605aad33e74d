// What the session adds to the policy when one call is decided; the same for a run and for `writ explain`.
import { type AllowedTool, type Bound, bounds } from "../core/bound.ts";
import type { Standing } from "../core/decide.ts";
import type { Facts } from "../core/facts.ts";
import { gateBlocks, gatesOf } from "../core/gate.ts";
import type { GateState } from "../core/gate_state.ts";
import type { Policy } from "../core/policy.ts";
import type { ActiveSkill } from "../core/session.ts";
import { isUndeclared } from "../core/skill.ts";

export type StandingSkill = Pick<ActiveSkill, "name" | "trigger" | "bounding" | "allowedTools">;
export type StandingSite = {
  readonly policy: Pick<Policy, "gates" | "skills" | "root">;
  /** In the order in which they became active. */
  readonly active: readonly StandingSkill[];
  /** Of a fork: the same of the sessions around it, the outermost first. Each bounds it as it bounds its own calls. */
  readonly outer?: readonly (readonly StandingSkill[])[];
  readonly gates: GateState;
  /** The content of the workspace, where it is known; else what gates hold goes stale by order. */
  readonly tree?: string;
  /** An entry of allowed_tools in the words of Writ; one that cannot be read allows nothing. */
  allowedTool(declared: string): AllowedTool;
};

export function standingOf(site: StandingSite, facts: Facts): Standing {
  const { policy, gates, outer = [] } = site;
  const levels = [...outer, site.active];
  const active = levels.flat();
  return {
    root: policy.root,
    active: [...new Set(active.map((s) => s.name))],
    vouched: [...new Set(active.filter((s) => isVouched(policy, s)).map((s) => s.name))],
    bounds: levels.flatMap((level) => boundsInForce(site, level, facts)),
    blocks: gateBlocks(policy.gates, gates, facts, policy.root, site.tree),
  };
}

// The user named it, or machine or user policy forces it: nobody else's word counts for an allow rule.
function isVouched(policy: StandingSite["policy"], skill: StandingSkill): boolean {
  if (skill.trigger === "explicit") return true;
  return skill.trigger === "policy" &&
    policy.skills.forced.some((f) => f.skill === skill.name && f.layer !== "project");
}

// A gate's own skill never bounds the calls that it guards.
function boundsInForce(
  { policy, allowedTool }: StandingSite,
  active: readonly StandingSkill[],
  facts: Facts,
): readonly Bound[] {
  const guarded = gatesOf(policy.gates, facts, policy.root).map((g) => g.skill);
  const bounding = active.filter((s) => s.bounding && !guarded.includes(s.name));
  return bounds(
    bounding.map((s) => ({
      name: s.name,
      trigger: s.trigger,
      allowed: isUndeclared(s) ? undefined : s.allowedTools?.map((declared) => allowedTool(declared)),
    })),
    policy.skills,
  );
}
