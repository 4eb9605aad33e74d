// The same scenario gives the same log, byte by byte, from source under Bun and Deno and from the executable.
import { describe, test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { reduce } from "../../src/core/session.ts";
import { replay } from "../../src/agent/open.ts";
import { emptySession } from "../../src/core/session.ts";
import { checkChain } from "../../src/store/chain.ts";
import { root, runtimes, runWith } from "../support/runtimes.ts";

const golden = join(root, "test/golden");

for (const name of readdirSync(golden).sort()) {
  describe(`golden log ${name}`, () => {
    const expected = readFileSync(join(golden, name, "events.jsonl"), "utf8");
    for (const runtime of runtimes) {
      test(`is the same under ${runtime.name}`, () => {
        const ran = runWith(runtime.command, ["__scenario", join(golden, name, "scenario.yaml")]);
        assertEquals({ stderr: ran.stderr, log: ran.stdout.split("\n") }, {
          stderr: "",
          log: expected.split("\n"),
        });
      });
    }

    test("is a sound chain whose replay gives every call of every reply one result", () => {
      const report = checkChain(Buffer.from(expected));
      assertEquals([report.damage, report.tornBytes], [undefined, 0]);
      let state = emptySession;
      for (const event of report.events) {
        if (event.type === "model.completed") assertEquals(state.turn.awaiting, []);
        state = reduce(state, event);
      }
      assertEquals(state, replay(report.events));
      assertEquals([state.turn.open, state.turn.awaiting], [false, []]);
    });

    test("starts no tool that was not allowed before", () => {
      const allowed = new Set<string>();
      for (const event of checkChain(Buffer.from(expected)).events) {
        if (event.type === "permission.resolved" && event.data.decision === "allow") {
          allowed.add(event.data.call);
        }
        if (event.type === "tool.started") assert(allowed.has(event.data.call), event.data.call);
      }
    });
  });
}
