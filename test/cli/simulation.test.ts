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
