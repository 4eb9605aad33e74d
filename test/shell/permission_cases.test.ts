import { test } from "bun:test";
import { assertEquals } from "@std/assert";
import { checkPermissionCases } from "../../scripts/cases_permissions.ts";
import { permissionRows } from "./permission_rows.ts";

for (const row of permissionRows) {
  test(`decides ${row.id}`, () => assertEquals(checkPermissionCases([row]).failed, []));
}

test("checkPermissionCases() tells a wrong expectation", () => {
  const [row] = permissionRows;
  const { passed, failed } = checkPermissionCases(row === undefined ? [] : [{ ...row, expect: "deny" }]);
  assertEquals([passed, failed.map((f) => f.id)], [0, [row?.id]]);
});
