// Runs a file of front-matter cases through the real loader: each case as a folder on disk, scanned alone.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Catalog, mergeCatalog } from "../src/core/catalog.ts";
import type { Skill } from "../src/core/skill.ts";
import { readSkillBody } from "../src/load/skill_body.ts";
import { type Scan, scanSkills } from "../src/load/skill_dir.ts";
import { type CaseReport, idOf, lacking, readCases } from "./case_report.ts";

export type SkillCase = {
  readonly id: string;
  readonly dir: string;
  readonly filename?: string;
  readonly file: string;
  readonly forbid_keys?: readonly string[];
  readonly forbid_warnings?: readonly string[];
  readonly expect: SkillExpectation;
};
type SkillExpectation = {
  readonly accepted: boolean;
  readonly reason?: string;
  readonly name?: string;
  readonly description?: string;
  readonly allowed_tools?: readonly string[];
  readonly model_invocable?: boolean;
  readonly user_invocable?: boolean;
  readonly warnings?: readonly string[];
  readonly forbid_keys?: readonly string[];
  readonly forbid_warnings?: readonly string[];
  readonly body_includes?: string | readonly string[];
  readonly trigger_matches?: { readonly [message: string]: boolean };
};

/** Runs every case of a JSON file with a `cases` list. Throws when the file cannot be read. */
export function runSkillCases(file: string): CaseReport {
  return checkSkillCases(readCases(file));
}

export function checkSkillCases(cases: readonly SkillCase[]): CaseReport {
  const failed: { id: string; message: string }[] = [];
  for (const [index, c] of cases.entries()) {
    const fault = lacking(c, ["dir", "file", "expect"]);
    if (fault !== undefined) {
      failed.push({ id: idOf(c, index), message: fault });
      continue;
    }
    const faults = checkCase(c);
    if (faults.length > 0) failed.push({ id: c.id, message: faults.join("; ") });
  }
  return { passed: cases.length - failed.length, failed };
}

function checkCase(c: SkillCase): string[] {
  const root = mkdtempSync(join(tmpdir(), "writ-skill-case-"));
  try {
    mkdirSync(join(root, c.dir));
    writeFileSync(join(root, c.dir, c.filename ?? "SKILL.md"), c.file);
    const scan = scanSkills(join(root, c.dir), "user");
    const rules = { forced: [], disabled: [], undeclaredTools: "read_only" } as const;
    const { catalog, errors } = mergeCatalog(scan.skills, rules);
    return compare(c, scan, catalog, errors.map((e) => e.code));
  } catch (error) {
    return [`threw: ${error instanceof Error ? error.stack : error}`];
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

function compare(c: SkillCase, scan: Scan, catalog: Catalog, errors: readonly string[]): string[] {
  const { expect } = c;
  const codes = (severity: string) => scan.problems.filter((p) => p.severity === severity).map((p) => p.code);
  const warnings = [...new Set(codes("warning"))].sort();
  const faults: string[] = [];
  const differ = (what: string, found: unknown, expected: unknown) => {
    const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
    if (a !== b) faults.push(`${what}: found ${a}, expected ${b}`);
  };
  const [skill] = catalog.items;
  differ("accepted", skill !== undefined, expect.accepted);
  if (expect.reason !== undefined) differ("reason", [...codes("error"), ...errors], [expect.reason]);
  if (expect.warnings !== undefined) differ("warnings", warnings, [...expect.warnings].sort());
  for (const code of [...(c.forbid_warnings ?? []), ...(expect.forbid_warnings ?? [])]) {
    if (warnings.includes(code)) faults.push(`warning ${code} is forbidden`);
  }
  if (skill !== undefined) compareSkill(c, skill, differ);
  return faults;
}

function compareSkill(
  c: SkillCase,
  skill: Skill,
  differ: (what: string, found: unknown, expected: unknown) => void,
): void {
  const { expect } = c;
  const shown: Readonly<Record<string, unknown>> = {
    name: skill.name,
    description: skill.description,
    allowed_tools: skill.allowedTools,
    model_invocable: skill.modelInvocable,
    user_invocable: skill.userInvocable,
  };
  for (const [key, expected] of Object.entries(expect)) {
    if (key in shown) differ(key, shown[key], expected);
  }
  for (const key of [...(c.forbid_keys ?? []), ...(expect.forbid_keys ?? [])]) {
    differ(key, shown[key], undefined);
  }
  for (const [message, expected] of Object.entries(expect.trigger_matches ?? {})) {
    differ(`match of ${JSON.stringify(message)}`, skill.patterns.some((p) => p.test(message)), expected);
  }
  const texts = expect.body_includes ?? [];
  const read = readSkillBody(skill);
  if (!read.ok) return differ("body", read.message, "a body");
  for (const text of typeof texts === "string" ? [texts] : texts) {
    differ(`body includes ${JSON.stringify(text)}`, read.body.body.includes(text), true);
  }
}
