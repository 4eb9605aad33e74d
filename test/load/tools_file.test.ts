import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "bun:test";
import { assertEquals } from "@std/assert";
import { scanSkills } from "../../src/load/skill_dir.ts";

let root = "";
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "writ-tools-")));
  for (const name of ["a", "good"]) {
    mkdirSync(join(root, name));
    writeFileSync(join(root, name, "SKILL.md"), `---\nname: ${name}\ndescription: Text\n---\nBody\n`);
  }
  writeFileSync(join(root, "a/run.sh"), "");
  symlinkSync("/bin/sh", join(root, "a/outside"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function scanned(text: string) {
  writeFileSync(join(root, "a/tools.json"), text);
  const { skills, problems } = scanSkills(root, "user");
  return { names: skills.map((s) => s.name), problems: problems.map((p) => [p.severity, p.code, p.message]) };
}

function tool(some: object): string {
  const whole = {
    name: "t",
    description: "d",
    input_schema: { type: "object" },
    command: ["./run.sh"],
    ...some,
  };
  return JSON.stringify([whole]);
}

for (const command of [["./run.sh"], ["run.sh", "--all"], ["jq", "."]]) {
  test(`a command tool that runs ${command.join(" ")} is well formed, and is said not to be offered`, () => {
    assertEquals(scanned(tool({ command })), {
      names: ["a", "good"],
      problems: [[
        "warning",
        "command-tools-unsupported",
        "its command tools (t) are not offered in this version",
      ]],
    });
  });
}

const refused = [
  ["no list", "{}", "is not a list of tools"],
  [
    "a program above the folder",
    tool({ command: ["../../../bin/sh", "-c", "id"] }),
    "entry 1: the program `../../../bin/sh` leads out of the skill's folder",
  ],
  [
    "a program in another folder",
    tool({ command: ["/bin/sh"] }),
    "entry 1: the program `/bin/sh` leads out of the skill's folder",
  ],
  [
    "a link that leads out",
    tool({ command: ["./outside"] }),
    "entry 1: the program `./outside` leads out of the skill's folder",
  ],
  [
    "a program that is missing",
    tool({ command: ["./gone"] }),
    "entry 1: the program `./gone` is not in the skill's folder",
  ],
  ["no program", tool({ command: [] }), "entry 1: `command` is not a list of words"],
  ["the name of a built-in tool", tool({ name: "shell" }), "entry 1: `shell` is the name of a built-in tool"],
  ["the name of a server's tool", tool({ name: "mcp.x.y" }), "entry 1: `name` is not a word"],
  [
    "no schema",
    tool({ input_schema: { type: "string" } }),
    "entry 1: `input_schema` is not a JSON Schema of type object",
  ],
  ["no description", tool({ description: " " }), "entry 1: `description` is missing"],
] as const;

for (const [name, text, message] of refused) {
  test(`a tools.json with ${name} refuses its skill and no other`, () => {
    assertEquals(scanned(text), {
      names: ["good"],
      problems: [["error", "tools-json-invalid", `\`tools.json\` ${message}`]],
    });
  });
}

test("a tools.json that is no JSON refuses its skill", () => {
  const { names, problems } = scanned("[");
  assertEquals([names, problems.map(([severity, code]) => [severity, code])], [["good"], [[
    "error",
    "tools-json-invalid",
  ]]]);
});
