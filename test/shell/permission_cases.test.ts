import { test } from "bun:test";
import { assertEquals } from "@std/assert";
import { fileURLToPath } from "node:url";
import { readCases } from "../../scripts/case_report.ts";
import { checkPermissionCases, type PermissionCase } from "../../scripts/cases_permissions.ts";
import { permissionRows } from "./permission_rows.ts";

const command = (
  id: string,
  command: string,
  rules: PermissionCase["policy"]["rules"],
  expect: "allow" | "deny",
) => ({
  id,
  policy: { rules: rules ?? [], default: expect === "allow" ? "ask" : "allow" },
  call: { tool: "shell", args: { command } },
  expect,
} as const);
// Too long to be written out.
const long: readonly PermissionCase[] = [
  command("comp-two-hundred", "git status; ".repeat(200), [{
    effect: "allow",
    tool: "shell",
    command: "git status",
  }], "allow"),
  command("comp-two-hundred-denied", "true; ".repeat(200) + "rm x", [{
    effect: "deny",
    tool: "shell",
    command: "rm *",
  }], "deny"),
  command(
    "comp-two-thousand",
    "a;".repeat(2000),
    [{ effect: "allow", tool: "shell", command: "a *" }],
    "allow",
  ),
];
const kinds: readonly PermissionCase[] = readCases(
  fileURLToPath(new URL("../cases/permission_kinds.json", import.meta.url)),
);

for (const row of [...permissionRows, ...kinds, ...long]) {
  test(`decides ${row.id}`, () => assertEquals(checkPermissionCases([row]).failed, []));
}

test("checkPermissionCases() tells a wrong expectation", () => {
  const [row] = permissionRows;
  const { passed, failed } = checkPermissionCases(row === undefined ? [] : [{ ...row, expect: "deny" }]);
  assertEquals([passed, failed.map((f) => f.id)], [0, [row?.id]]);
});
