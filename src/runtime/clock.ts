// Time as the loop sees it: the machine's, or one that stands still for runs whose logs must be the same everywhere.
import type { Clock } from "../agent/ports.ts";

export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  sleep,
  after(ms, call) {
    const timer = setTimeout(call, Math.min(ms, 2 ** 31 - 1));
    return () => clearTimeout(timer);
  },
};

/** The same instant for ever: sleeps end at once, timers never fire. */
export function fixedClock(now: number): Clock {
  return { now: () => now, elapsed: () => 0, sleep: async () => {}, after: () => () => {} };
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}
