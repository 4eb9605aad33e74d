import { assert, assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { corrected, counted, requested, uncalibrated } from "../../src/core/budget.ts";
import { noUsage } from "../../src/core/message.ts";
import { eventList, noTokens, sessionFacts } from "./session_events.ts";

/** Requests of so many estimated tokens each, and what the provider counted. */
function after(...rounds: readonly (readonly [estimate: number, count: number])[]) {
  return rounds.reduce(
    (c, [estimate, count]) => counted(requested(c, corrected(estimate, c)), count),
    uncalibrated,
  );
}

describe("the token estimate", () => {
  const rows: readonly (readonly [
    name: string,
    rounds: readonly (readonly [estimate: number, count: number])[],
    factor: number,
  ])[] = [
    ["stands before anything was counted", [], 1],
    ["takes the first count as it is", [[10_000, 13_000]], 1.3],
    ["goes half the way to a later one", [[10_000, 13_000], [10_000, 11_000]], 1.2],
    ["comes to rest where the provider counts", [...Array(12)].map(() => [10_000, 12_340] as const), 1.234],
    ["is not corrected by a provider that counts nothing", [[10_000, 0]], 1],
    ["nor by one that counts something else", [[10_000, 10], [10_000, 90_000]], 1],
    ["nor by a small request", [[900, 1800]], 1],
    ["grows by no more than a bound", [[10_000, 39_000]], 2.5],
    ["shrinks by no more than a bound", [[10_000, 3_000]], 0.75],
  ];
  for (const [name, rounds, factor] of rows) {
    test(name, () => {
      const { factor: got } = after(...rounds);
      assert(Math.abs(got - factor) < 0.002, `${got}`);
      assertEquals(got, Math.round(got * 1000) / 1000);
    });
  }

  const built = (transcript: number) => ({
    iteration: 1,
    sources: { skills: [], instructions: [] },
    tokens: { ...noTokens, transcript },
    truncated: false,
  });
  const usage = { ...noUsage, input: 1_000, cacheRead: 9_000, cacheWrite: 3_000 };

  test("is corrected by what was read from and written to the cache as well, and not by a summary", () => {
    const log = eventList();
    log.emit("session.started", sessionFacts);
    log.emit("context.built", built(10_000));
    log.emit("model.completed", { stopReason: "end", usage, content: [], purpose: "summary" });
    assertEquals(log.state().calibration.factor, 1);
    assertEquals(log.state().transcript, []);
    log.emit("model.completed", { stopReason: "end", usage, content: [] });
    assertEquals(log.state().calibration.factor, 1.3);
    assertEquals(log.state().usage.cacheRead, 18_000);
  });

  test("begins anew with another model", () => {
    const log = eventList();
    log.emit("session.started", sessionFacts);
    log.emit("context.built", built(10_000));
    log.emit("model.completed", { stopReason: "end", usage, content: [] });
    log.emit("session.resumed", sessionFacts);
    assertEquals(log.state().calibration.factor, 1.3);
    log.emit("session.resumed", { ...sessionFacts, model: "other" });
    assertEquals(log.state().calibration.factor, 1);
  });
});
