// Opening a session: a new one, or a log replayed into its state; then the skills that policy forces.
import { activate } from "./activate.ts";
import type { Agent } from "./agent.ts";
import { closeTurn } from "./turn.ts";
import { missingForced } from "../core/catalog.ts";
import type { Event, SessionFacts } from "../core/event.ts";
import { sessionForced } from "../core/policy.ts";
import type { Problem } from "../core/problem.ts";
import { emptySession, reduce, type SessionState } from "../core/session.ts";

export function replay(events: readonly Event[]): SessionState {
  return events.reduce(reduce, emptySession);
}

export type OpenOptions = {
  readonly facts: SessionFacts;
  readonly resumed: boolean;
  readonly recovered?: { readonly bytes: number; readonly savedAs: string };
  /** Faults of skills, each an event of its own. */
  readonly skillFaults: readonly { readonly path: string; readonly code: string; readonly message: string }[];
  readonly omitted: readonly { readonly name: string; readonly reason: string }[];
};

/**
 * Records the opening. A turn that a crash left open is closed first, its running calls as interrupted. A forced
 * skill that cannot be had is a Problem: the caller must not go on.
 */
export async function openSession(agent: Agent, options: OpenOptions): Promise<readonly Problem[]> {
  const { recorder } = agent;
  if (options.recovered !== undefined) recorder.emit("session.recovered", options.recovered);
  if (recorder.state.turn.open) {
    closeTurn(agent, { stop: "interrupted", message: "the process ended within this turn" });
  }
  recorder.emit(options.resumed ? "session.resumed" : "session.started", options.facts);
  for (const fault of options.skillFaults) recorder.emit("skill.registry_error", fault);
  for (const omission of options.omitted) recorder.emit("skill.omitted", omission);
  const problems = await forceSkills(agent);
  recorder.sync();
  return problems;
}

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
