import { assert, assertEquals } from "@std/assert";
import { afterEach, beforeEach, describe, test } from "bun:test";
import type { SkillDesk } from "../../src/agent/ports.ts";
import { builtins, mainArgument } from "../../src/core/tool_names.ts";
import { builtinTools, toolNames } from "../../src/tools/registry.ts";
import { call, makeWorkspace, type Workspace } from "./workspace.ts";

describe("the built-in tools", () => {
  test("are these, in this order", () => {
    assertEquals(toolNames, [
      "read_file",
      "list_files",
      "search_text",
      "git_diff",
      "write_file",
      "edit_file",
      "shell",
      "fetch_url",
      "load_skill",
      "read_skill_file",
      "complete_skill",
      "find_skill",
    ]);
  });

  test("cost few tokens, all together", () => {
    const definitions = builtinTools.map((t) => ({
      name: t.name,
      description: t.description,
      input_schema: t.inputSchema,
    }));
    const { length } = JSON.stringify(definitions);
    assert(length / 3.6 < 1200, `${length} characters`);
  });

  test("take no member that they do not name", () => {
    assertEquals(builtinTools.filter((t) => t.inputSchema["additionalProperties"] !== false), []);
  });

  test("the engine's own are marked, and those that change what is active are barriers", () => {
    const engine = builtinTools.filter((t) => t.engine === true).map((t) => t.name);
    const barriers = builtinTools.filter((t) => t.barrier === true).map((t) => t.name);
    assertEquals([engine, barriers], [["load_skill", "read_skill_file", "complete_skill", "find_skill"], [
      "fetch_url",
      "load_skill",
      "complete_skill",
    ]]);
  });

  test("are what the table in core says of them", () => {
    const ws = makeWorkspace();
    // More than the least that a call can be.
    const texts: { readonly [tool: string]: string } = { shell: "rm x", fetch_url: "https://example.com/" };
    const kinds = { command: "part", path: "path", host: "host", skill: "call" } as const;
    const seen = builtinTools.map((tool) => {
      const name = mainArgument(tool.name) ?? "none";
      const text = texts[tool.name] ?? "x";
      const { risk, subjects } = tool.inspect({ [name]: text }, ws.at);
      return {
        name: tool.name,
        engine: tool.engine === true,
        kind: subjects[0].kind,
        reads: risk === "read",
        takes: (tool.inputSchema["properties"] as { [argument: string]: { type?: string } })[name]?.type,
      };
    });
    ws.remove();
    assertEquals(
      seen,
      builtins.map(({ name, engine, matcher, reads }) => ({
        name,
        engine,
        kind: kinds[matcher],
        reads,
        takes: "string",
      })),
    );
  });
});

describe("the skill tools", () => {
  let ws: Workspace;
  beforeEach(() => ws = makeWorkspace());
  afterEach(() => ws.remove());

  test("hand over to the skill desk what they were given", async () => {
    const heard: (readonly string[])[] = [];
    const skills: SkillDesk = {
      load: async (...args) => ({ ok: heard.push(["load", ...args]) > 0, content: "1" }),
      complete: async (...args) => ({ ok: heard.push(["complete", ...args]) > 0, content: "2" }),
      readFile: async (...args) => ({ ok: heard.push(["readFile", ...args]) > 0, content: "3" }),
      find: (...args) => ({ ok: heard.push(["find", ...args]) > 0, content: "4" }),
    };
    const at = { ...ws.at, skills };
    const tool = (name: string) => builtinTools.find((t) => t.name === name)!;
    const outcomes = [
      await call(tool("load_skill"), { name: "a", arguments: "x y" }, at),
      await call(tool("load_skill"), { name: "a" }, at),
      await call(tool("complete_skill"), { name: "a", outcome: "PASS", summary: "s" }, at),
      await call(tool("read_skill_file"), { skill: "a", path: "p" }, at),
      await call(tool("find_skill"), { query: "x y" }, at),
    ];
    assertEquals([heard, outcomes.map((o) => o.content)], [
      [["load", "a", "x y"], ["load", "a", ""], ["complete", "a", "PASS", "s"], ["readFile", "a", "p"], [
        "find",
        "x y",
      ]],
      ["1", "1", "2", "3", "4"],
    ]);
  });

  test("are reads of nothing", () => {
    const found = builtinTools.filter((t) => t.engine === true).map((t) => t.inspect({}, ws.at));
    assertEquals(found, found.map(() => ({ risk: "read", subjects: [{ kind: "call" }] })) as never);
  });
});
