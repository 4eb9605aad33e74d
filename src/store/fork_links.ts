// The links between the log of a session and those of its forks: each names the other by a hash.
import { LogFailure } from "../agent/ports.ts";
import type { Event } from "../core/event.ts";
import { firstHash } from "../core/session.ts";
import { checkChain } from "./chain.ts";
import { logPath, readLog } from "./session_files.ts";

/** What does not hold of the links that this log, itself sound, has to others in `dir`; empty when all hold. */
export function linkFaults(dir: string, events: readonly Event[]): readonly string[] {
  return events.flatMap((event): readonly string[] => {
    switch (event.type) {
      case "session.started": {
        const { parent } = event.data;
        if (parent === undefined) return [];
        const around = eventsOf(dir, parent.session);
        if (around === undefined) {
          return [`the log of ${parent.session}, of which it is a fork, is not there`];
        }
        const named = around.some((e) =>
          e.type === "fork.started" && e.hash === parent.hash && e.data.session === event.session
        );
        return named ? [] : [`${parent.session} does not name it as its fork`];
      }
      case "fork.completed": {
        const { session, hash } = event.data;
        if (hash === firstHash) return [];
        const fork = eventsOf(dir, session);
        if (fork === undefined) return [`the log of its fork ${session} is not there`];
        return fork.at(-1)?.hash === hash
          ? []
          : [`the log of its fork ${session} does not end as it was recorded`];
      }
      default:
        return [];
    }
  });
}

/** The forks that a log names, in the order in which they were started. */
export function forksOf(events: readonly Event[]): readonly string[] {
  return events.flatMap((e) => (e.type === "fork.started" ? [e.data.session] : []));
}

// The sound part: damage is told where that log is checked.
function eventsOf(dir: string, session: string): readonly Event[] | undefined {
  try {
    return checkChain(readLog(logPath(dir, session))).events;
  } catch (error) {
    if (error instanceof LogFailure) return undefined;
    throw error;
  }
}
