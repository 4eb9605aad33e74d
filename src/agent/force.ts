// The skills that policy forces on every session, its forks included.
import { type LoadSite, type PreparedSkill, prepareSkill, recordSkill } from "./activate.ts";
import { unavailable } from "../core/catalog.ts";
import { sessionForced } from "../core/policy.ts";
import type { Loaded, Problem } from "../core/problem.ts";

/** What `recordForced` has to do. */
export type ForcedSkills = {
  /** Names of skills that were forced and no longer are. */
  readonly ended: readonly string[];
  readonly due: readonly PreparedSkill[];
};

/**
 * Makes the skills that policy forces active and ends those that it no longer does: all of it, or, when one cannot be had,
 * nothing.
 */
export async function forceSkills(agent: LoadSite): Promise<readonly Problem[]> {
  const prepared = await prepareForced(agent);
  if (!prepared.ok) return prepared.problems;
  recordForced(agent, prepared.value);
  return [];
}

/** Reads and renders what is not active yet, and checks that all of it fits. Records nothing. */
export async function prepareForced(agent: LoadSite): Promise<Loaded<ForcedSkills>> {
  const { recorder, policy } = agent;
  const wanted = sessionForced(policy.skills);
  const { active } = recorder.state;
  const ended = active.filter((s) => s.forced && !wanted.some((f) => f.skill === s.name)).map((s) => s.name);
  const left = active.filter((s) => !ended.includes(s.name));
  const missing = wanted.filter((f) => !left.some((s) => s.forced && s.name === f.skill));
  const problems: Problem[] = [...unavailable(agent.catalog, policy)];
  const due: PreparedSkill[] = [];
  for (const entry of missing) {
    const skill = agent.catalog.get(entry.skill);
    if (skill === undefined) continue;
    const result = await prepareSkill(agent, {
      skill,
      trigger: { kind: "policy" },
      arguments: entry.arguments,
      bounding: entry.bounding,
      scope: "session",
    }, [...left, ...due.map(asActive)]);
    if (result.ok) {
      due.push(result);
      continue;
    }
    problems.push({
      code: "forced-skill-unavailable",
      severity: "error",
      message: result.message,
      at: entry.at,
      hint: "no session starts, and no changed policy is taken, without a skill that the policy forces",
    });
  }
  return problems.length > 0 ? { ok: false, problems } : { ok: true, value: { ended, due }, problems: [] };
}

export function recordForced(agent: LoadSite, { ended, due }: ForcedSkills): void {
  for (const name of ended) {
    agent.recorder.emit("skill.unloaded", { name, reason: "no longer forced by policy" });
  }
  for (const prepared of due) recordSkill(agent, prepared);
}

function asActive({ activation, text }: PreparedSkill): Parameters<typeof prepareSkill>[2][number] {
  return { name: activation.skill.name, forced: true, body: text };
}
