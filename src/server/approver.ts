// Whoever may answer is asked by showing the question to all of them; the first answer counts.
import type { Approver } from "../agent/ports.ts";
import { type Entry, wake } from "./entry.ts";
import { questionIdOf } from "./hub.ts";

/** Nobody is asked: what would be is denied. */
export const nobody: Approver = {
  ask: async () => ({ allow: false, answer: { by: "non_interactive" } }),
};

/** Each question waits at the entry until it is answered or `signal` aborts. */
export function approverOf(entryOf: () => Entry): Approver {
  return {
    ask(approval, signal) {
      const entry = entryOf();
      const id = questionIdOf(entry, approval.call.id);
      if (id === undefined) return nobody.ask(approval, signal);
      const timeoutMs = entry.live?.agent.policy.askTimeoutMs ?? 0;
      return new Promise((resolve, reject) => {
        const stop = () => {
          entry.pending.delete(id);
          wake(entry);
          reject(signal.reason);
        };
        const pending = {
          id,
          approval,
          expiresMs: Date.now() + timeoutMs,
          settle() {
            signal.removeEventListener("abort", stop);
            const { allow, ...answer } = pending.answer ?? { allow: false, by: "non_interactive" };
            resolve({ allow, answer });
          },
        } as Parameters<Entry["pending"]["set"]>[1];
        if (signal.aborted) return stop();
        signal.addEventListener("abort", stop, { once: true });
        entry.pending.set(id, pending);
        wake(entry);
      });
    },
  };
}
