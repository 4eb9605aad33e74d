import { assert, assertEquals } from "@std/assert";
import { test } from "bun:test";
import { loadScenario } from "../../src/cli/scenario_file.ts";
import { showProblem } from "../../src/core/problem.ts";

const head = "policy: 'version: 1'\nuser: hi\n";

test("loadScenario() reads the replies of the model", () => {
  const loaded = loadScenario(`${head}model:\n  - text: a\n  - call: {git_diff: }\n`, "t.yaml");
  assert(loaded.ok);
  assertEquals(loaded.value.model, [
    { text: "a", calls: [], stop: "end" },
    { text: "", calls: [{ tool: "git_diff", args: {} }], stop: "tool_use" },
  ]);
});

test("loadScenario() tells the faults of replies at their places, together with all others", () => {
  const loaded = loadScenario(`${head}strict: 1\nmodel:\n  - text: 7\n  - call: {a: {}, b: {}}\n`, "t.yaml");
  assertEquals(loaded.problems.map(showProblem), [
    "t.yaml:3:9: error: `strict` is `1`; expected `true` or `false` [wrong-type]",
    "t.yaml:5:11: error: `model[0].text` is `7`; expected text; put quotes around it [wrong-type]",
    "t.yaml:6:11: error: `model[1].call` has `a`, `b`; expected exactly one tool name [wrong-value]",
  ]);
});
