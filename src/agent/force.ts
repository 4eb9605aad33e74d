// The skills that policy forces on every session, its forks included.
import { activate } from "./activate.ts";
import type { Agent } from "./agent.ts";
import { missingForced } from "../core/catalog.ts";
import { sessionForced } from "../core/policy.ts";
import type { Problem } from "../core/problem.ts";

/** Makes the skills that policy forces active and ends those that it no longer does. */
export async function forceSkills(agent: Agent): Promise<readonly Problem[]> {
  const { recorder, policy } = agent;
  const wanted = sessionForced(policy.skills);
  for (
    const skill of recorder.state.active.filter((s) => s.forced && !wanted.some((f) => f.skill === s.name))
  ) {
    recorder.emit("skill.unloaded", { name: skill.name, reason: "no longer forced by policy" });
  }
  const due = wanted.filter((f) => !recorder.state.active.some((s) => s.forced && s.name === f.skill));
  const problems = [...missingForced(agent.catalog, due)];
  for (const entry of due) {
    const skill = agent.catalog.get(entry.skill);
    if (skill === undefined) continue;
    const result = await activate(agent, {
      skill,
      trigger: { kind: "policy" },
      arguments: entry.arguments,
      bounding: entry.bounding,
      scope: "session",
    });
    if (result.ok) continue;
    problems.push({
      code: "forced-skill-unavailable",
      severity: "error",
      message: result.message,
      at: entry.at,
      hint: "the session does not start without a skill that the policy forces",
    });
  }
  return problems;
}
