import { assertEquals, assertMatch } from "@std/assert";
import { describe, test } from "bun:test";
import type { Args, InputSchema, Json } from "../../src/core/message.ts";
import { checkArguments, schemaFault } from "../../src/tools/arguments.ts";
import { builtinTools } from "../../src/tools/registry.ts";

const file: InputSchema = {
  type: "object",
  properties: {
    path: { type: "string" },
    limit: { type: "integer", minimum: 1, maximum: 10 },
    mode: { enum: ["read", "write"] },
    tags: { type: "array", items: { type: "string" }, maxItems: 2 },
    deep: {
      type: "object",
      properties: { name: { type: ["string", "null"] } },
      required: ["name"],
      additionalProperties: false,
    },
  },
  required: ["path"],
  additionalProperties: false,
};

function object(
  properties: { readonly [name: string]: Json },
  more: { readonly [key: string]: Json } = {},
): InputSchema {
  return { type: "object", properties, ...more };
}

const rows: readonly (readonly [string, InputSchema, Args, readonly string[]])[] = [
  ["what fits", file, { path: "a", limit: 10, mode: "read", tags: ["x"], deep: { name: null } }, []],
  ["a missing member", file, {}, ["`path` is missing"]],
  ["a wrong type", file, { path: 1 }, ["`path`: expected string, got number"]],
  ["a fraction for a whole number", file, { path: "a", limit: 1.5 }, [
    "`limit`: expected integer, got number",
  ]],
  ["a number that is too small", file, { path: "a", limit: 0 }, ["`limit`: 0 is less than 1"]],
  ["a number that is too large", file, { path: "a", limit: 11 }, ["`limit`: 11 is greater than 10"]],
  ["a word that is none of the choices", file, { path: "a", mode: "raed" }, [
    '`mode`: expected ["read","write"]',
  ]],
  ["an unknown member with a near one", file, { pth: "a", path: "b" }, [
    "`pth` is not known; did you mean `path`? (known: path, limit, mode, tags, deep)",
  ]],
  ["an unknown member with none near", file, { path: "a", zzzzz: 1 }, [
    "`zzzzz` is not known (known: path, limit, mode, tags, deep)",
  ]],
  ["a wrong item", file, { path: "a", tags: ["x", 2] }, ["`tags.1`: expected string, got number"]],
  ["too many items", file, { path: "a", tags: ["1", "2", "3"] }, [
    "`tags`: array has too many items (3 > 2)",
  ]],
  ["one level down", file, { path: "a", deep: { nam: "x" } }, [
    "`deep.name` is missing",
    "`deep.nam` is not known; did you mean `name`? (known: name)",
  ]],
  ["one of several types", file, { path: "a", deep: { name: 1 } }, [
    "`deep.name`: expected string or null, got number",
  ]],
  ["a member named like a prototype's", file, JSON.parse('{"path": "a", "__proto__": 1}'), [
    "`__proto__` is not known (known: path, limit, mode, tags, deep)",
  ]],
  ["a member that every object has", file, JSON.parse('{"path": "a", "constructor": 1}'), [
    "`constructor` is not known (known: path, limit, mode, tags, deep)",
  ]],
  ["a pattern that fits", object({ id: { type: "string", pattern: "^[a-z]+$" } }), { id: "abc" }, []],
  ["a pattern that does not", object({ id: { type: "string", pattern: "^[a-z]+$" } }), { id: "A" }, [
    "`id`: expected text that matches `^[a-z]+$`",
  ]],
  ["a pattern beside a format", object({ id: { type: "string", pattern: "^a", format: "email" } }), {
    id: "b",
  }, ["`id`: expected text that matches `^a`"]],
  ["a format is no rule", object({ id: { type: "string", format: "email" } }), { id: "no mail" }, []],
  ["a pattern that is denied", object({ id: { not: { pattern: "^x" } } }), { id: "xa" }, [
    '`id`: instance matched "not" schema',
  ]],
  ["a denied pattern that does not match", object({ id: { not: { pattern: "^x" } } }), { id: "ax" }, []],
  ["a property named pattern", object({ pattern: { type: "string" } }), { pattern: "(" }, []],
  ["a pattern for names", object({}, { propertyNames: { pattern: "^[a-z]$" } }), { a: 1, B: 2 }, [
    "`B`: expected text that matches `^[a-z]$`",
  ]],
  [
    "members by pattern that fit",
    object({ a: {} }, { patternProperties: { "^x-": { type: "string" } }, additionalProperties: false }),
    { a: 1, "x-b": "c" },
    [],
  ],
  [
    "members by pattern that do not",
    object({ a: {} }, { patternProperties: { "^x-": { type: "string" } }, additionalProperties: false }),
    { "x-b": 1 },
    ["`x-b`: expected string, got number"],
  ],
  ["members by no pattern", object({}, { patternProperties: { "^x-": {} }, additionalProperties: false }), {
    y: 1,
  }, ["`y` is not known"]],
  [
    "a member that two patterns speak of",
    object({}, { patternProperties: { a: { type: "string" }, b: { minLength: 3 } } }),
    { ab: "x" },
    ["`ab`: string is too short (1 < 3)"],
  ],
  ["alternatives that all fail", object({ v: { anyOf: [{ type: "string" }, { type: "null" }] } }), { v: 1 }, [
    "`v`: expected string, got number",
    "`v`: expected null, got number",
  ]],
  ["a reference", object({ v: { $ref: "#/$defs/s" } }, { $defs: { s: { type: "string" } } }), { v: 1 }, [
    "`v`: expected string, got number",
  ]],
  ["a constant", object({ v: { const: 1 } }), { v: 2 }, ["`v`: expected 1"]],
  ["conditions", object({}, { if: { required: ["a"] }, then: { required: ["b"] } }), { a: 1 }, [
    "`b` is missing",
  ]],
  ["slashes and tildes in names", object({ "a/b~c": { type: "string" } }), { "a/b~c": 1 }, [
    "`a/b~c`: expected string, got number",
  ]],
];

describe("checkArguments()", () => {
  for (const [name, schema, args, problems] of rows) {
    test(name, () => assertEquals(checkArguments(schema, args), problems));
  }

  test("tells at most ten problems", () => {
    const args = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`member${i}`, 1]));
    assertEquals(checkArguments(object({}, { additionalProperties: false }), args).length, 10);
  });

  const broken: readonly (readonly [string, InputSchema])[] = [
    ["a reference that leads nowhere", object({ v: { $ref: "#/none" } })],
    ["a reference to itself", { type: "object", $ref: "#" }],
    ["a pattern that RE2 does not know", object({ v: { pattern: "(?=a)" } })],
    ["a pattern for names that RE2 does not know", object({}, { patternProperties: { "(?=a)": {} } })],
    ["a schema that is nested without end", object({ v: nested(100) as Json })],
  ];
  for (const [name, schema] of broken) {
    test(`never lets a call pass: ${name}`, () => {
      const problems = checkArguments(schema, { v: "a" });
      assertEquals(problems.length, 1);
      assertMatch(problems[0] ?? "", /^the schema of this tool cannot be used: /);
    });
  }

  test("arguments that are nested without end", () => {
    assertEquals(checkArguments(object({}), { v: nested(100) }), ["arguments: nested deeper than 64 levels"]);
    assertEquals(checkArguments(object({}), { v: nested(40) }), []);
  });

  test("a pattern takes linear time, and is not remembered from one schema to the next", () => {
    const text = `${"a".repeat(50_000)}!`;
    assertEquals(checkArguments(object({ v: { pattern: "^(a+)+$" } }), { v: text }).length, 1);
    assertEquals(checkArguments(object({ v: { pattern: "^a+!$" } }), { v: text }), []);
  });

  test("a schema with patterns for names is read anew for each call", () => {
    const schema = object({}, {
      patternProperties: { "^x": { type: "string" } },
      additionalProperties: false,
    });
    assertEquals([
      checkArguments(schema, { x1: "a" }),
      checkArguments(schema, { x2: 1 }),
      checkArguments(schema, { y: 1 }),
    ], [
      [],
      ["`x2`: expected string, got number"],
      ["`y` is not known"],
    ]);
  });

  test("leaves the schema as it was", () => {
    const schema = object({ id: { type: "string", pattern: "^a" } }, { patternProperties: { b: {} } });
    const before = JSON.stringify(schema);
    checkArguments(schema, { id: "a", b: 1 });
    assertEquals(JSON.stringify(schema), before);
  });

  test("takes what the built-in tools are meant to take", () => {
    const calls: { readonly [tool: string]: Args } = {
      read_file: { path: "a", offset: 1, limit: 1 },
      list_files: {},
      search_text: { pattern: "a(", path: "b", glob: "*.c", ignore_case: true },
      git_diff: { ref: "HEAD", path: "a", staged: false },
      write_file: { path: "a", content: "" },
      edit_file: { path: "a", old: "b", new: "", all: true },
      shell: { command: "ls", cwd: ".", timeout: 3, box: "push" },
      fetch_url: { url: "https://a.test/", max_chars: 10 },
      load_skill: { name: "a", arguments: "b" },
      read_skill_file: { skill: "a", path: "b" },
      complete_skill: { name: "a", outcome: "PASS", summary: "" },
      find_skill: { query: "a" },
    };
    const found = builtinTools.map((
      tool,
    ) => [tool.name, checkArguments(tool.inputSchema, calls[tool.name] ?? {})]);
    assertEquals(found, Object.keys(calls).map((name) => [name, []]));
    const refused = builtinTools.map((tool) =>
      checkArguments(tool.inputSchema, { ...calls[tool.name], pathh: 1 }).length
    );
    assertEquals(refused, builtinTools.map(() => 1));
  });
});

function nested(levels: number): Json {
  let value: Json = {};
  for (let i = 0; i < levels; i++) value = { items: value };
  return value;
}

describe("schemaFault()", () => {
  const doubling: Record<string, Json> = { d40: { type: "string" } };
  for (let i = 0; i < 40; i++) {
    doubling[`d${i}`] = { allOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] };
  }
  let deep: Json = { type: "string" };
  for (let i = 0; i < 70; i++) deep = { items: deep };
  const rows: readonly (readonly [name: string, schema: { readonly [key: string]: Json }, fault?: string])[] =
    [
      ["a usual one", file],
      ["nothing but its type", {}],
      ["a property that has the name of a keyword", { properties: { type: { enum: [1] }, $ref: {} } }],
      ["a tree", {
        properties: { node: { $ref: "#/$defs/n" } },
        $defs: { n: { items: { $ref: "#/$defs/n" } } },
      }],
      ["a type that is none", { properties: { a: { type: "strnig" } } }, 'there is no type "strnig"'],
      [
        "a type that is none, in a list",
        { properties: { a: { type: ["string", 5] } } },
        "there is no type 5",
      ],
      ["a reference to nothing", { items: { $ref: "#/$defs/x" } }, 'the reference "#/$defs/x" leads nowhere'],
      [
        "a reference to elsewhere",
        { items: { $ref: "https://h/s" } },
        'the reference "https://h/s" leads nowhere',
      ],
      ["a reference to a name", { items: { $ref: "#x" } }, 'the reference "#x" leads nowhere'],
      ["a pattern that is none", { properties: { a: { pattern: "(?=x)" } } }, "error parsing regexp"],
      ["a name's pattern that is none", { patternProperties: { "(": {} } }, "error parsing regexp"],
      ["references that double", { $defs: doubling, $ref: "#/$defs/d0" }, "its references make it too large"],
      ["a reference to itself", { $ref: "#" }, "Maximum call stack"],
      ["more levels than can be", { items: deep }, "it is nested deeper than 64 levels"],
    ];
  for (const [name, schema, fault] of rows) {
    test(name, () => {
      const said = schemaFault({ type: "object", ...schema });
      if (fault === undefined) assertEquals(said, undefined);
      else assertMatch(said ?? "no fault", new RegExp(`^${fault.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}`));
    });
  }
});
