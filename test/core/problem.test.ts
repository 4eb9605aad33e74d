import { assertEquals } from "@std/assert";
import { test } from "bun:test";
import { type Problem, showProblems } from "../../src/core/problem.ts";

const problem = (severity: Problem["severity"], n: number): Problem => ({
  code: "c",
  severity,
  message: `m${n}`,
});
const many = (severity: Problem["severity"], count: number) =>
  Array.from({ length: count }, (_, i) => problem(severity, i));

test("up to a hundred problems are shown in their order", () => {
  const problems = [...many("warning", 99), problem("error", 99)];
  assertEquals(showProblems(problems), problems.map((p, i) => `${p.severity}: m${i} [c]`));
});

test("of more the first hundred are shown, errors before warnings, and how many are left", () => {
  const lines = showProblems([...many("warning", 200), ...many("error", 60)]);
  assertEquals([lines.length, lines[0], lines[59], lines[60], lines[99], lines[100]], [
    101,
    "error: m0 [c]",
    "error: m59 [c]",
    "warning: m0 [c]",
    "warning: m39 [c]",
    "… and 160 more",
  ]);
});
