// Going down in order: no more work, time for what runs, then an end to it, and every log closed.
import type { Hub } from "./hub.ts";
import { unload } from "./loading.ts";
import { endWork } from "./sessions.ts";
import { dropQueued } from "./turns.ts";

export type Drain = {
  /** Later calls join the first; a shorter grace than what is left makes it hurry. */
  drain(graceMs: number): Promise<void>;
};

const lookMs = 20;

export function drainOf(hub: Hub, stop: () => void): Drain {
  let deadlineMs = Infinity;
  let going: Promise<void> | undefined;
  const run = async () => {
    const entries = () => [...hub.entries.values()];
    await Promise.allSettled(entries().map((e) => dropQueued(e, () => true, "shutdown")));
    // Whoever waits for a person could wait for good.
    const works = () => [...hub.busy].some((e) => e.pending.size === 0);
    while (works() && performance.now() < deadlineMs) {
      await new Promise((resolve) => setTimeout(resolve, lookMs));
    }
    await Promise.allSettled(entries().map((e) => endWork(e, "shutdown")));
    await Promise.allSettled(entries().map((e) => e.opening));
    await Promise.allSettled(entries().map(unload));
    stop();
  };
  return {
    drain(graceMs) {
      hub.draining = true;
      deadlineMs = Math.min(deadlineMs, performance.now() + graceMs);
      return going ??= run();
    },
  };
}
