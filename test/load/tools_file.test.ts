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
  return {
    names: skills.map((s) => s.name),
    tools: skills.flatMap((s) => s.tools),
    problems: problems.map((p) => [p.severity, p.code, p.message]),
  };
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

const whole = {
  name: "t",
  description: "d",
  inputSchema: { type: "object" },
  command: ["./run.sh"],
} as const;

const read: readonly (readonly [string, object, object])[] = [
  ["a program of its folder", {}, {}],
  ["a program that is named without `./`", { command: ["sub/../run.sh", "--all"] }, {
    command: ["./run.sh", "--all"],
  }],
  ["a bare word", { command: ["jq", "."] }, { command: ["jq", "."] }],
  ["seconds", { timeout: 1.5 }, { timeoutMs: 1500 }],
  ["a duration", { timeout: "2m" }, { timeoutMs: 120_000 }],
  ["a risk", { risk: "network" }, { risk: "network" }],
  ["a schema with more", { input_schema: { type: "object", properties: { a: { type: "string" } } } }, {
    inputSchema: { type: "object", properties: { a: { type: "string" } } },
  }],
];

for (const [name, some, expected] of read) {
  test(`a command tool with ${name}`, () => {
    assertEquals(scanned(tool(some)), {
      names: ["a", "good"],
      tools: [{ ...whole, ...expected }],
      problems: [],
    });
  });
}

test("an absolute path into the folder is kept relative, so that a copy of the folder runs its own file", () => {
  assertEquals(scanned(tool({ command: [join(root, "a/run.sh")] })).tools, [whole]);
});

const refused = [
  ["no list", "{}", "is not a list of tools"],
  [
    "a program above the folder",
    tool({ command: ["../../../bin/sh", "-c", "id"] }),
    "entry 1 (t): `command`: the program `../../../bin/sh` leads out of the skill's folder",
  ],
  [
    "a program in another folder",
    tool({ command: ["/bin/sh"] }),
    "entry 1 (t): `command`: the program `/bin/sh` leads out of the skill's folder",
  ],
  [
    "a link that leads out",
    tool({ command: ["./outside"] }),
    "entry 1 (t): `command`: the program `./outside` leads out of the skill's folder",
  ],
  [
    "a program that is missing",
    tool({ command: ["./gone"] }),
    "entry 1 (t): `command`: the program `./gone` is not in the skill's folder",
  ],
  [
    "no program",
    tool({ command: [] }),
    "entry 1 (t): `command` is not a list of words, the program first",
  ],
  [
    "a word that is no text",
    tool({ command: ["jq", 1] }),
    "entry 1 (t): `command` is not a list of words, the program first",
  ],
  ["a program without name", tool({ command: [""] }), "entry 1 (t): `command`: it names no program"],
  [
    "the name of a built-in tool",
    tool({ name: "fetch_url" }),
    "entry 1 (fetch_url): `name`: `fetch_url` is the name of a built-in tool",
  ],
  [
    "the name of a server's tool",
    tool({ name: "mcp.x.y" }),
    "entry 1 (mcp.x.y): `name` is not a word of letters, digits, `_` and `-`, at most 64",
  ],
  [
    "a name that goes to the model as that of a server's tool",
    tool({ name: "mcp__x__y" }),
    "entry 1 (mcp__x__y): `name`: `mcp__x__y` reads as the tool of an MCP server",
  ],
  [
    "one name twice",
    `[${tool({}).slice(1, -1)},${tool({}).slice(1, -1)}]`,
    "entry 2 (t): `name`: `t` is there twice",
  ],
  [
    "a key that is not known",
    tool({ cmd: "x" }),
    "entry 1 (t): the key `cmd` is not known; expected `name`, `description`, `input_schema`, `command`, `timeout`, `risk`",
  ],
  [
    "a timeout of nothing",
    tool({ timeout: 0 }),
    "entry 1 (t): `timeout` is neither a number of seconds above zero nor a duration such as `90s`",
  ],
  [
    "a risk that there is not",
    tool({ risk: "none" }),
    "entry 1 (t): `risk` is none of `read`, `write`, `execute`, `network`, `destructive`",
  ],
  ["an entry that is no map", "[1]", "entry 1: is not a map"],
  [
    "properties that are none",
    tool({ input_schema: { type: "object", properties: [1] } }),
    "entry 1 (t): `input_schema`: `properties` is not a map of schemas",
  ],
  [
    "required names that are none",
    tool({ input_schema: { type: "object", required: "a" } }),
    "entry 1 (t): `input_schema`: `required` is not a list of names",
  ],
  [
    "a schema that refers to itself at every step",
    tool({ input_schema: { type: "object", allOf: Array.from({ length: 33 }, () => ({ $ref: "#" })) } }),
    "entry 1 (t): `input_schema`: it holds more than 32 `$ref`",
  ],
  ["levels without end", "[".repeat(3000) + "]".repeat(3000), "nests deeper than 64 levels"],
  [
    "too many tools",
    JSON.stringify(Array.from({ length: 65 }, () => 1)),
    "has 65 tools; at most 64 are taken",
  ],
  ["too many bytes", `["${"x".repeat(300_000)}"]`, "has 300004 bytes; at most 262144 are read"],
  [
    "no schema",
    tool({ input_schema: { type: "string" } }),
    "entry 1 (t): `input_schema` is not a JSON Schema of type object",
  ],
  ["no description", tool({ description: " " }), "entry 1 (t): `description` is missing"],
] as const;

for (const [name, text, message] of refused) {
  test(`a tools.json with ${name} refuses its skill and no other`, () => {
    assertEquals(scanned(text), {
      names: ["good"],
      tools: [],
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

test("a tools.json that is not UTF-8 refuses its skill", () => {
  writeFileSync(join(root, "a/tools.json"), new Uint8Array([0x5b, 0xff, 0x5d]));
  const { skills, problems } = scanSkills(root, "user");
  assertEquals([skills.map((s) => s.name), problems.map((p) => p.message)], [["good"], [
    "`tools.json` is not UTF-8",
  ]]);
});

for (const name of ["a.b", "a b", "a*"]) {
  test(`a skill named \`${name}\` cannot bring tools: rules could not speak of them alone`, () => {
    writeFileSync(join(root, "a/SKILL.md"), `---\nname: "${name}"\ndescription: Text\n---\nBody\n`);
    const { names, problems } = scanned(tool({}));
    assertEquals([names, problems.filter(([severity]) => severity === "error").map(([, code]) => code)], [
      ["good"],
      ["tools-json-invalid"],
    ]);
  });
}
