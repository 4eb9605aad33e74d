// Opening a session: a new one, or a log replayed into its state; then the skills that policy forces.
import type { Agent } from "./agent.ts";
import { forceSkills } from "./force.ts";
import { closeLeftOpen } from "./turn.ts";
import type { Event, SessionFacts } from "../core/event.ts";
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
 * Records the opening. A turn and forks that a crash left open are closed first, running calls as interrupted. A forced
 * skill that cannot be had is a Problem: the caller must not go on.
 */
export async function openSession(agent: Agent, options: OpenOptions): Promise<readonly Problem[]> {
  const { recorder } = agent;
  if (options.recovered !== undefined) recorder.emit("session.recovered", options.recovered);
  await closeLeftOpen(agent, { stop: "interrupted", message: "the process ended within this turn" });
  recorder.emit(options.resumed ? "session.resumed" : "session.started", options.facts);
  for (const fault of options.skillFaults) recorder.emit("skill.registry_error", fault);
  for (const omission of options.omitted) recorder.emit("skill.omitted", omission);
  const problems = await forceSkills(agent);
  await recorder.sync();
  return problems;
}
