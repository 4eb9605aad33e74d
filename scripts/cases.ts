// Runs a file of cases through the project's own code: prints what fails and `N passed, N failed`.
//   bun scripts/cases.ts KIND FILE        KIND: permissions, skills
import process from "node:process";
import type { CaseReport } from "./case_report.ts";
import { runPermissionCases } from "./cases_permissions.ts";
import { runSkillCases } from "./cases_skills.ts";

const kinds: { readonly [kind: string]: (file: string) => CaseReport | Promise<CaseReport> } = {
  permissions: runPermissionCases,
  skills: runSkillCases,
};

const [kind = "", file] = process.argv.slice(2);
const run = kinds[kind];
if (run === undefined || file === undefined) {
  console.error(`usage: bun scripts/cases.ts ${Object.keys(kinds).join("|")} FILE`);
  process.exit(2);
}
try {
  const { passed, failed } = await run(file);
  for (const { id, message } of failed) console.log(`${id}: ${message}`);
  console.log(`${passed} passed, ${failed.length} failed`);
  process.exitCode = failed.length === 0 ? 0 : 1;
} catch (error) {
  console.error(`error: ${file}: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 2;
}
