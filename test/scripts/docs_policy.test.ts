// What the tables of the documents say of keys and tools is what the program does.
import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { policyKeyRows, ruleKeyRows, toolRows } from "../../scripts/docs_policy.ts";
import { loadPolicyFile } from "../../src/load/policy_file.ts";
import { builtinTools } from "../../src/tools/registry.ts";

const bare = (cell = "") => cell.replaceAll("`", "");

describe("the table of keys", () => {
  const rows = policyKeyRows();

  const some: readonly (readonly [string, string, string])[] = [
    ["version", "the number `1`", "must be set"],
    ["model.provider", "one of `anthropic`, `script`", "`anthropic`"],
    ["model.api_key.env", "the name of an environment variable", "–"],
    ["limits.iterations", "a whole number above zero", "`50`"],
    [
      "skills.sources",
      "a list of tiers (`builtin`, `machine`, `user`, `project`) and folders (`{path: …}`)",
      "`builtin`, `machine`, `user`, `project`",
    ],
    ["skills.sources[].path", "text", "must be set"],
    ["skills.forced[].before", "`finish`, or a list of call patterns such as `shell(git merge *)`", "–"],
    ["skills.triggers.NAME.patterns", "a list of regular expressions", "must be set"],
    ["permissions.default.read", "one of `allow`, `ask`, `deny`", "`allow`"],
    ["permissions.default.write", "one of `allow`, `ask`, `deny`", "`ask`"],
    ["sandbox.mode", "one of `required`, `off`", "`required`"],
  ];
  for (const [key, value, fallback] of some) {
    test(`says of \`${key}\` what it takes and what holds without it`, () => {
      assertEquals(rows.filter((row) => bare(row[0]) === key).map((row) => row.slice(1, 3)), [[
        value,
        fallback,
      ]]);
    });
  }

  test("names each key once and leaves out what is not in this version", () => {
    const keys = rows.map((row) => bare(row[0]));
    assertEquals(keys.length, new Set(keys).size);
    assertEquals(keys.filter((k) => /cassette|^output|tier$/.test(k)), [
      "skills.sources[].tier",
      "skills.forced[].tier",
    ]);
  });

  for (const [key, , fallback] of rows.filter((row) => row[2]?.startsWith("`"))) {
    test(`gives a default of ${key} that can be written`, () => {
      const path = bare(key).split(".");
      const listed = [
        "skills.sources",
        "tools.enabled",
        "sandbox.env",
        "sandbox.read",
        "sandbox.write",
        "sandbox.hide",
        "workspace.instructions",
      ].includes(bare(key));
      const value = listed ? `[${bare(fallback)}]` : bare(fallback);
      const text = path.map((part, depth) => `${"  ".repeat(depth)}${part}:`).join("\n");
      const loaded = loadPolicyFile(`version: 1\n${text} ${value}\n`, "/p.yaml", "user", "0.1.0");
      assertEquals(loaded.problems, []);
    });
  }
});

test("the table of rule keys begins with what every rule has, boxes included", () => {
  const keys = ruleKeyRows().map((row) => bare(row[0]));
  assertEquals(keys.slice(0, 6), ["id", "tool", "command", "path", "host", "arg"]);
  assertEquals(keys.includes("box"), true);
});

describe("the table of tools", () => {
  const rows = toolRows();

  test("has every tool, in order", () => {
    assertEquals(rows.map((row) => bare(row[0])), builtinTools.map((t) => t.name));
  });

  for (const [name, , risk] of rows) {
    const tool = builtinTools.find((t) => t.name === bare(name));
    if (tool === undefined || tool.name === "shell") continue;
    test(`says of ${name} the risk that its calls have`, () => {
      const args = { path: "a", url: "https://docs.example.com/", name: "a", skill: "a" };
      const place = { root: "/ws", home: "/home/u", protectedBy: () => undefined };
      assertEquals(tool.inspect(args, place).risk as string, risk);
    });
  }
});
