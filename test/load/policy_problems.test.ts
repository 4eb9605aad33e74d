import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { readFileSync } from "node:fs";
import { parse } from "yaml";
import type { Problem } from "../../src/core/problem.ts";
import { loadPolicyFile, type PolicyFile, type PolicyLayer } from "../../src/load/policy_file.ts";
import { mergePolicy } from "../../src/load/policy_merge.ts";

type Row = {
  readonly name: string;
  readonly layer?: PolicyLayer;
  readonly yaml?: string;
  /** Files of several layers, in place of `yaml`. */
  readonly files?: readonly { readonly layer: PolicyLayer; readonly yaml: string }[];
  /** `code line:col`, with `file N ` before it from the second file on; warnings start with `~`. */
  readonly problems: readonly string[];
  /** Text of the first problem, as message, expected and hint. */
  readonly says?: readonly string[];
};

const rows = parse(
  readFileSync(new URL("../cases/policy_problems.yaml", import.meta.url), "utf8"),
) as readonly Row[];

function load(row: Row): readonly Problem[] {
  const written = row.files ?? [{ layer: row.layer ?? "user", yaml: row.yaml ?? "" }];
  const problems: Problem[] = [];
  const files: PolicyFile[] = [];
  written.forEach(({ layer, yaml }, index) => {
    const loaded = loadPolicyFile(yaml, `/etc/p${index}.yaml`, layer, "0.1.0");
    problems.push(...loaded.problems);
    if (loaded.ok) files.push(loaded.value);
  });
  if (problems.length > 0) return problems;
  return mergePolicy({
    files,
    revision: "r",
    root: "/ws",
    home: "/home/u",
    protect: { skillFolders: [], gitFolders: [], own: [] },
  }).problems;
}

function show(problem: Problem): string {
  const file = /p(\d+)\.yaml$/.exec(problem.at?.file ?? "")?.[1] ?? "0";
  const place = problem.at === undefined ? "" : ` ${problem.at.line}:${problem.at.col}`;
  return `${problem.severity === "warning" ? "~" : ""}${
    file === "0" ? "" : `file ${file} `
  }${problem.code}${place}`;
}

describe("problems of policy files", () => {
  for (const row of rows) {
    test(row.name, () => {
      const problems = load(row);
      assertEquals(problems.map(show), row.problems);
      if (row.says === undefined) return;
      const [first] = problems;
      const said = [first?.message ?? "", first?.expected ?? "-", first?.hint ?? "-"];
      assertEquals(said, ["", "-", "-"].map((none, i) => row.says?.[i] ?? none));
    });
  }

  test("names are unique and the table is of some size", () => {
    assertEquals(new Set(rows.map((r) => r.name)).size, rows.length);
    assertEquals(rows.length >= 50, true);
  });

  test("no object was changed by prototype keys", () => {
    assertEquals(("allow" in {}) || ("prototype" in {}), false);
  });

  test("a file over the cap is refused unread", () => {
    const loaded = loadPolicyFile(`version: 1 # ${"x".repeat(300_000)}`, "/etc/p0.yaml", "user", "0.1.0");
    assertEquals(loaded.problems.map(show), ["too-large 1:1"]);
  });
});

test("every one of thousands of unknown keys is told with its place, and the first ones with what was meant", () => {
  const yaml = `version: 1\n${Array.from({ length: 20_000 }, (_, i) => `l${i}: 1\n`).join("")}`;
  const loaded = loadPolicyFile(yaml, "/etc/p0.yaml", "user", "0.1.0");
  const { problems } = loaded;
  assertEquals(
    [
      problems.length,
      problems.filter((p) => p.hint !== undefined).length,
      problems.filter((p, i) => p.at?.line !== i + 2).length,
      !loaded.ok && loaded.rest === undefined,
    ],
    [20_000, 200, 0, true],
  );
});
