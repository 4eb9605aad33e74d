// The loop in worlds that seeds make: see test/support/simulation.ts. Each is played twice and must give the same bytes.
import { simulateTwice } from "../test/support/simulation.ts";
import type { FaultOptions, Finding } from "./faults.ts";

export async function* simulationFaults({ nightly, seed, until }: FaultOptions): AsyncIterable<Finding> {
  const seeds = nightly ? 10_000 : 40;
  const faults: string[] = [];
  const total = { events: 0, lives: 0 };
  let n = 0;
  for (; n < seeds && Date.now() < until; n++) {
    const played = await simulateTwice(seed + n);
    faults.push(...played.faults.map((fault) => `scripts/faults --seed ${seed + n} simulation: ${fault}`));
    total.events += played.events;
    total.lives += played.lives;
  }
  yield {
    name: "worlds, each played twice",
    tried: n,
    faults,
    note: `${total.events} events in ${total.lives} lives of the process`,
  };
}
