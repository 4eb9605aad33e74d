import { assertEquals, assertMatch } from "@std/assert";
import { describe, test } from "bun:test";
import type { ListedTool } from "../../src/core/mcp.ts";
import { freezeDefinitions } from "../../src/mcp/definitions.ts";
import { schemaFault } from "../../src/tools/arguments.ts";

const at = { file: "/p.yaml", line: 1, col: 1 };
const listed = (name: string): ListedTool => ({ name, risk: "read", at });
const freeze = (names: readonly string[], offered: readonly unknown[]) =>
  freezeDefinitions(names.map(listed), offered, schemaFault);
const offer = (more: { readonly [key: string]: unknown } = {}) => ({
  name: "do",
  description: "Does",
  inputSchema: { type: "object" },
  ...more,
});

describe("freezeDefinitions()", () => {
  test("takes what is listed, in the order of the list, and nothing of what a server hints", () => {
    const { definitions, absent } = freeze(["b", "do"], [
      offer({ annotations: { readOnlyHint: true }, title: "T", outputSchema: { type: "object" } }),
      offer({ name: "not-listed" }),
      offer({ name: "b", description: undefined }),
    ]);
    assertEquals(definitions, [
      { tool: listed("b"), description: "", inputSchema: { type: "object" } },
      { tool: listed("do"), description: "Does", inputSchema: { type: "object" } },
    ]);
    assertEquals(absent, []);
  });

  test("drops what words would hide, and cuts them", () => {
    const { definitions } = freeze(["do"], [offer({
      description: " a\u202eb\u200b\u001b[31mc\r\nd\u0000 ",
      inputSchema: { type: "object", description: "x\u2066y", properties: { p: { title: "\u0007z" } } },
    })]);
    assertEquals(definitions.map(({ description, inputSchema }) => [description, inputSchema]), [[
      "ab[31mc\nd",
      { type: "object", description: "xy", properties: { p: { title: "z" } } },
    ]]);
    const [long] = freeze(["do"], [offer({ description: `${"a\n".repeat(5000)}z` })]).definitions;
    assertMatch(
      long?.description ?? "",
      /^(a\n){900,1000}\[… 6\d\d\d characters cut …\]\n(a\n){900,1000}z$/,
    );
  });

  let deep: unknown = { type: "string" };
  for (let i = 0; i < 100; i++) deep = { items: deep };
  const rows: readonly (readonly [string, unknown, string])[] = [
    ["no schema", offer({ inputSchema: undefined }), "its schema is not that of an object"],
    [
      "a schema of something else",
      offer({ inputSchema: { type: "array" } }),
      "its schema is not that of an object",
    ],
    [
      "a deep schema",
      offer({ inputSchema: { type: "object", items: deep } }),
      "its schema is nested deeper than 64 levels",
    ],
    [
      "a large schema",
      offer({ inputSchema: { type: "object", enum: ["x".repeat(70_000)] } }),
      "its schema has 70029 characters; at most 65536 are taken",
    ],
    [
      "hidden characters where they mean something",
      offer({ inputSchema: { type: "object", properties: { "a\u200bb": {} } } }),
      "its schema holds control or hidden characters",
    ],
    [
      "a type that is none",
      offer({ inputSchema: { type: "object", properties: { a: { type: "text" } } } }),
      'its schema cannot be used: there is no type "text"',
    ],
    [
      "nothing of that name",
      offer({ name: "other\u001b" }),
      "the server has no such tool; it has `other\\x1b`",
    ],
    ["nothing at all", 5, "the server has no tools"],
  ];
  for (const [name, offered, reason] of rows) {
    test(`a tool with ${name} is absent`, () => {
      assertEquals(freeze(["do"], [offered]), { definitions: [], absent: [{ tool: listed("do"), reason }] });
    });
  }
});
