// The samples of case files that CONTRIBUTING names are accepted and hold.
import { assertEquals } from "@std/assert";
import { test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runPermissionCases } from "../../scripts/cases_permissions.ts";
import { runSkillCases } from "../../scripts/cases_skills.ts";

const sample = (name: string) => new URL(`../cases/${name}.json`, import.meta.url).pathname;

test("the sample of permission cases holds", () => {
  assertEquals(runPermissionCases(sample("permissions")), { passed: 2, failed: [] });
});

test("the sample of skill cases holds", () => {
  assertEquals(runSkillCases(sample("skills")), { passed: 2, failed: [] });
});

test("a case that lacks a part is told by its name, and the others run", () => {
  const folder = mkdtempSync(join(tmpdir(), "writ-cases-"));
  try {
    const file = (name: string, extra: readonly unknown[]) => {
      const { cases } = JSON.parse(readFileSync(sample(name), "utf8"));
      const path = join(folder, `${name}.json`);
      writeFileSync(path, JSON.stringify({ cases: [...extra, ...cases] }));
      return path;
    };
    assertEquals(runPermissionCases(file("permissions", [{ id: "bare", call: {}, expect: "ask" }, 7])), {
      passed: 2,
      failed: [
        { id: "bare", message: "the case has no `policy`" },
        { id: "case 2", message: "the case is no mapping" },
      ],
    });
    assertEquals(runSkillCases(file("skills", [{ dir: "a" }])), {
      passed: 2,
      failed: [{ id: "case 1", message: "the case has no `file`, `expect`" }],
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
