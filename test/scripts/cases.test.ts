// The samples of case files that CONTRIBUTING names are accepted and hold.
import { assertEquals } from "@std/assert";
import { test } from "bun:test";
import { runPermissionCases } from "../../scripts/cases_permissions.ts";
import { runSkillCases } from "../../scripts/cases_skills.ts";

const sample = (name: string) => new URL(`../cases/${name}.json`, import.meta.url).pathname;

test("the sample of permission cases holds", () => {
  assertEquals(runPermissionCases(sample("permissions")), { passed: 2, failed: [] });
});

test("the sample of skill cases holds", () => {
  assertEquals(runSkillCases(sample("skills")), { passed: 2, failed: [] });
});
