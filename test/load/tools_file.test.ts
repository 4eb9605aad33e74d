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
    problems: problems.map((
      p,
    ) => [p.severity, p.code, p.message.replace(/^`tools\.json:\d+:\d+`/, "`tools.json`")]),
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
  ["no list", "{}", 'is a mapping; expected a list of tools, `[{"name": …}]`'],
  [
    "a program above the folder",
    tool({ command: ["../../../bin/sh", "-c", "id"] }),
    "entry 1 (t): `command`: the program `../../../bin/sh` leads out of the skill's folder; name a file in it, or a program of PATH without a slash",
  ],
  [
    "a program in another folder",
    tool({ command: ["/bin/sh"] }),
    "entry 1 (t): `command`: the program `/bin/sh` leads out of the skill's folder; name a file in it, or a program of PATH without a slash",
  ],
  [
    "a link that leads out",
    tool({ command: ["./outside"] }),
    "entry 1 (t): `command`: the program `./outside` leads out of the skill's folder; name a file in it, or a program of PATH without a slash",
  ],
  [
    "a program that is missing",
    tool({ command: ["./gone"] }),
    "entry 1 (t): `command`: the program `./gone` is not in the skill's folder; put it there, or name one of PATH without a slash",
  ],
  [
    "no program",
    tool({ command: [] }),
    'entry 1 (t): `command` is `[]`; expected a list of words, the program first, such as `["./run.sh", "--all"]`',
  ],
  [
    "a word that is no text",
    tool({ command: ["jq", 1] }),
    'entry 1 (t): `command` is `["jq",1]`; expected a list of words, the program first, such as `["./run.sh", "--all"]`',
  ],
  ["a program without name", tool({ command: [""] }), "entry 1 (t): `command`: it names no program"],
  [
    "the name of a built-in tool",
    tool({ name: "fetch_url" }),
    "entry 1 (fetch_url): `name`: `fetch_url` is the name of a built-in tool; choose another one",
  ],
  [
    "the name of a server's tool",
    tool({ name: "mcp.x.y" }),
    "entry 1 (mcp.x.y): `name` is `mcp.x.y`; expected a word of letters, digits, `_` and `-`, at most 64, a letter first",
  ],
  [
    "a name that goes to the model as that of a server's tool",
    tool({ name: "mcp__x__y" }),
    "entry 1 (mcp__x__y): `name`: `mcp__x__y` reads as the tool of an MCP server; choose another one",
  ],
  [
    "one name twice",
    `[${tool({}).slice(1, -1)},${tool({}).slice(1, -1)}]`,
    "entry 2 (t): `name`: `t` is there twice; rename one of them",
  ],
  [
    "a key that is not known",
    tool({ cmd: "x" }),
    "entry 1 (t): unknown key `cmd`; did you mean `command`?",
  ],
  [
    "a timeout of nothing",
    tool({ timeout: 0 }),
    "entry 1 (t): `timeout` is `0`; expected a number of seconds above zero, or a duration such as `90s`",
  ],
  [
    "a risk that there is not",
    tool({ risk: "none" }),
    "entry 1 (t): `risk` is `none`; expected one of `read`, `write`, `execute`, `network`, `destructive`",
  ],
  ["an entry that is no map", "[1]", "entry 1: is `1`; expected a mapping with the keys of a tool"],
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
    "entry 1 (t): `input_schema`: its `type` is `string`; expected `object`",
  ],
  [
    "no description",
    tool({ description: " " }),
    "entry 1 (t): `description` is empty; expected a text that says when the model should call it",
  ],
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

const lines = `[
  {"name": "one", "description": "d", "command": ["jq"],
   "input_schema": {"type": "object"}},
  {
    "name": "two",
    "description": "d",
    "command": ["jq"],
    "input_schema": {"type": "object"},
    "risk": "read"
  }
]
`;
const placed: readonly (readonly [name: string, from: string, to: string, message: string])[] = [
  [
    "a value",
    '"risk": "read"',
    '"risk": "reed"',
    "9:13` entry 2 (two): `risk` is `reed`; expected one of `read`, `write`, `execute`, `network`, `destructive`",
  ],
  ["a key", '"risk"', '"riks"', "9:5` entry 2 (two): unknown key `riks`; did you mean `risk`?"],
  [
    "what is missing",
    '    "description": "d",\n',
    "",
    "4:3` entry 2 (two): `description` is missing; expected a text that says when the model should call it",
  ],
  [
    "an entry",
    lines.slice(2, -3),
    "  1\n",
    "2:3` entry 1: is `1`; expected a mapping with the keys of a tool",
  ],
  [
    "a comma too many",
    '"read"\n',
    '"read",\n',
    "10:3` is not JSON: found `}`, expected another entry after the `,`",
  ],
  ["a comma that is missing", '"two",', '"two"', '6:5` is not JSON: found `"`, expected `,` or `}`'],
  [
    "single quotes",
    '"risk"',
    "'risk'",
    "9:5` is not JSON: found `'`, expected a key in double quotes; JSON knows double quotes only",
  ],
  [
    "a comment",
    '    "risk"',
    '    // mine\n    "risk"',
    "9:5` is not JSON: found `/`, expected a key in double quotes; JSON has no comments",
  ],
  ["a bare word", '"risk": "read"', '"risk": read', "9:13` is not JSON: found `r`, expected a value"],
  [
    "a text that is not closed",
    '"two"',
    '"two',
    '5:18` is not JSON: the line ends, expected the closing `"`',
  ],
  [
    "an escape that JSON does not know",
    '"two"',
    '"t\\wo"',
    "5:15` is not JSON: found `\\`, expected `\\\\` for the character itself",
  ],
  ["a list that is not closed", "\n]\n", "\n", "11:1` is not JSON: the text ends, expected `,` or `]`"],
  ["something behind it", "\n]\n", "\n]\n[]\n", "12:1` is not JSON: found `[`, expected nothing more"],
];
for (const [name, from, to, message] of placed) {
  test(`tools.json: the place of ${name}`, () => {
    writeFileSync(join(root, "a/tools.json"), lines.replace(from, () => to));
    assertEquals(scanSkills(root, "user").problems.map((p) => p.message), [`\`tools.json:${message}`]);
  });
}

test("a tools.json that is not UTF-8 refuses its skill", () => {
  writeFileSync(join(root, "a/tools.json"), new Uint8Array([0x5b, 0xff, 0x5d]));
  const { skills, problems } = scanSkills(root, "user");
  assertEquals([skills.map((s) => s.name), problems.map((p) => p.message)], [["good"], [
    "`tools.json:1:1` is not UTF-8",
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
