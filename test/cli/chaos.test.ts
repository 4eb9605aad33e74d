import { test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import process from "node:process";
import { chaosSession } from "../support/chaos.ts";

// A share of what `scripts/faults` does; CHAOS_SESSIONS=N tries more.
const sessions = Number(process.env["CHAOS_SESSIONS"] ?? 12);

test(`whatever a model asks for, what must hold does: ${sessions} sessions`, async () => {
  const total = { requests: 0, calls: 0, started: 0 };
  for (let seed = 1; seed <= sessions; seed++) {
    const { faults, requests, calls, started } = await chaosSession(seed);
    assertEquals(faults, [], `seed ${seed}`);
    total.requests += requests;
    total.calls += calls;
    total.started += started;
  }
  // It asked for much, and some of it was carried out.
  assert(total.calls > sessions && total.started > sessions / 2, JSON.stringify(total));
});
