import { assertEquals } from "@std/assert";
import { test } from "bun:test";
import { gateLabel } from "../../src/core/gate_label.ts";
import { ruleOf } from "../support/rules.ts";

test("gateLabel() is advice for calls, as long as there are no boxes", () => {
  assertEquals([[], [ruleOf("shell(git push *)")]].map((before) => gateLabel({ before }).label), [
    "enforced",
    "advice",
  ]);
});
