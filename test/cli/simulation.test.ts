import { test } from "bun:test";
import { assert, assertEquals, assertNotEquals } from "@std/assert";
import process from "node:process";
import { simulate, type Simulated, simulateTwice } from "../support/simulation.ts";

// A share of what `scripts/faults simulation` does; SIMULATED_WORLDS=N tries more.
const worlds = Number(process.env["SIMULATED_WORLDS"] ?? 8);

test(`a session in a world that fails holds, and the same seed gives the same bytes: ${worlds} worlds`, async () => {
  const all: Simulated[] = [];
  for (let seed = 1; seed <= worlds; seed++) {
    const played = await simulateTwice(seed);
    assertEquals(played.faults, [], `seed ${seed}`);
    all.push(played);
  }
  const text = all.flatMap((s) => [...s.logs.values()]).join("");
  // Enough of it went wrong.
  const wrong = ["session.resumed", "tool.interrupted", "model.failed", "limit.reached", "tool.started"];
  assertEquals(wrong.filter((type) => !text.includes(`"type":"${type}"`)), []);
  assert(all.some((s) => s.lives > 2));
});

test("another seed is another world", async () => {
  assertNotEquals((await simulate(1)).fingerprint, (await simulate(2)).fingerprint);
});

// Worlds that once showed what no test did: the end of a fork that was said in the session before it was safe in the fork's own
// log, and a fork that was given up because its disk could not be written for a moment.
for (const seed of [100_479, 100_494]) {
  test(`a fork that a failing disk leaves open is closed in its own log as well: world ${seed}`, async () => {
    const { faults, logs } = await simulate(seed);
    assertEquals([faults, [...logs.keys()].some((id) => id.endsWith("-f1"))], [[], true]);
  });
}
