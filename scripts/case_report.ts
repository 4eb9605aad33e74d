// What files of cases have in common: how they are read, and what comes of them.
import { readFileSync } from "node:fs";

/** What came of a file of cases. */
export type CaseReport = {
  readonly passed: number;
  readonly failed: readonly { readonly id: string; readonly message: string }[];
};

/** The list `cases` of a JSON file; what its entries hold is for `lacking` to say. Throws when there is none. */
export function readCases<C>(file: string): readonly C[] {
  const value: unknown = JSON.parse(readFileSync(file, "utf8"));
  const cases = typeof value === "object" && value !== null && "cases" in value ? value.cases : undefined;
  if (!Array.isArray(cases)) throw new Error("it holds no list `cases`");
  return cases;
}

/** What a case must have and has not, in words; undefined when all is there. */
export function lacking(found: unknown, members: readonly string[]): string | undefined {
  if (typeof found !== "object" || found === null) return "the case is no mapping";
  const missing = members.filter((name) => !Object.hasOwn(found, name));
  if (missing.length === 0) return undefined;
  return `the case has no ${missing.map((name) => `\`${name}\``).join(", ")}`;
}

/** How a case is named in the report. */
export function idOf(found: unknown, index: number): string {
  const id = typeof found === "object" && found !== null && "id" in found ? found.id : undefined;
  return typeof id === "string" ? id : `case ${index + 1}`;
}
