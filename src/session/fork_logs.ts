// Logs of forks: sessions of their own in the store of the session that they belong to.
import type { ForkLog, ForkLogs } from "../agent/agent.ts";
import { replay } from "../agent/open.ts";
import { LogFailure } from "../agent/ports.ts";
import { createRecorder, type RecorderParts } from "../agent/recorder.ts";
import { emptySession } from "../core/session.ts";
import { createLog, resumeLog } from "../store/session_log.ts";
import type { SessionStore } from "./session_store.ts";

/** What says that a log cannot be had, now or later. */
const lostCodes: ReadonlySet<string> = new Set(["no_session", "log_damaged"]);

/** What is recorded is redacted and told as that of the session itself. */
export function forkLogs(
  { store, anchor }: Pick<SessionStore, "store" | "anchor">,
  parts: Pick<RecorderParts, "clock" | "redact" | "settled" | "listeners">,
): ForkLogs {
  return {
    async create(session, tell): Promise<ForkLog> {
      const { log } = await createLog(store, session, anchor);
      const listeners = [tell, ...parts.listeners];
      const recorder = createRecorder({ ...parts, log, session, initial: emptySession, listeners });
      return { recorder, close: () => log.close() };
    },
    async reopen(session) {
      const opened = await resumeLog(store, session, anchor).catch((error) => {
        // Damaged, or never written: `writ session verify` says which. The session around it can go on.
        if (error instanceof LogFailure && lostCodes.has(error.code)) return undefined;
        throw error;
      });
      if (opened === undefined) return undefined;
      const { log, events, recovered } = opened;
      const recorder = createRecorder({ ...parts, log, session, initial: replay(events) });
      try {
        if (recovered !== undefined) recorder.emit("session.recovered", recovered);
      } catch (error) {
        // Not lost: it is tried again when its disk can be written.
        await log.close();
        throw error;
      }
      return { recorder, close: () => log.close() };
    },
  };
}
