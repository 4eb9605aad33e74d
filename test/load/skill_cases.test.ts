import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { checkSkillCases, type SkillCase } from "../../scripts/cases_skills.ts";
import { parseYaml } from "../../src/load/yaml.ts";

type Row = Omit<SkillCase, "file"> & { readonly front?: string; readonly file?: string };

const path = fileURLToPath(new URL("../cases/skill_front_matter.yaml", import.meta.url));
const loaded = parseYaml(readFileSync(path, "utf8"), path, 256 * 1024);
assert(loaded.ok, loaded.ok ? "" : JSON.stringify(loaded.problems));
const { cases } = loaded.value.value as { readonly cases: readonly Row[] };

for (const row of cases) {
  test(`SKILL.md ${row.id}`, () => {
    const file = row.file ?? `---\n${row.front}---\n\n# Steps\n\n1. Look.\n`;
    assertEquals(checkSkillCases([{ ...row, file }]), { passed: 1, failed: [] });
  });
}

test("checkSkillCases() tells what differs", () => {
  const wrong = {
    id: "wrong",
    dir: "a",
    file: "---\nname: a\ndescription: Text\nallowed-tools: Read\n---\nBody.\n",
    expect: {
      accepted: true,
      name: "b",
      warnings: ["name-invalid"],
      forbid_keys: ["allowed_tools"],
      body_includes: ["Bodies"],
      trigger_matches: { x: true },
    },
  };
  assertEquals(checkSkillCases([wrong]), {
    passed: 0,
    failed: [{
      id: "wrong",
      message: 'warnings: found [], expected ["name-invalid"]; name: found "a", expected "b"; ' +
        'allowed_tools: found ["Read"], expected undefined; match of "x": found false, expected true; ' +
        'body includes "Bodies": found false, expected true',
    }],
  });
});
