// The wall time of a turn: runs while the agent works, stands still while it waits for a person.
import type { Clock } from "./ports.ts";

export type Deadline = {
  /** Aborted when the time is used up. */
  readonly signal: AbortSignal;
  waiting<T>(work: () => Promise<T>): Promise<T>;
  stop(): void;
};

export function startDeadline(clock: Clock, ms: number): Deadline {
  const controller = new AbortController();
  let left = ms;
  let since = 0;
  let cancel = () => {};
  const run = () => {
    since = clock.elapsed();
    cancel = clock.after(left, () => controller.abort());
  };
  const pause = () => {
    cancel();
    left = Math.max(0, left - (clock.elapsed() - since));
  };
  run();
  return {
    signal: controller.signal,
    async waiting(work) {
      pause();
      try {
        return await work();
      } finally {
        run();
      }
    },
    stop: () => cancel(),
  };
}
