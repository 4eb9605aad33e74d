import { assertEquals, assertMatch } from "@std/assert";
import { afterEach, beforeEach, describe, test } from "bun:test";
import { chmodSync, mkdirSync, renameSync, symlinkSync } from "node:fs";
import type { ToolContext } from "../../src/agent/ports.ts";
import type { Args } from "../../src/core/message.ts";
import { listFiles } from "../../src/tools/list_files.ts";
import { call, makeWorkspace, type Workspace } from "./workspace.ts";

let ws: Workspace;
beforeEach(() => ws = makeWorkspace());
afterEach(() => ws.remove());
const list = (args: Args = {}, at: Partial<ToolContext> = {}) => call(listFiles, args, { ...ws.at, ...at });
const lines = async (args: Args = {}, at: Partial<ToolContext> = {}) =>
  (await list(args, at)).content.split("\n");

describe("list_files lists", () => {
  beforeEach(() =>
    ["b.ts", "a/z.md", "a/b/c.ts", "B.ts", ".env", ".git/config"].forEach((path) => ws.write(path, "x"))
  );

  test("everything but .git, a folder before what is in it, in one order everywhere", async () => {
    assertEquals(await list(), {
      ok: true,
      content: ".env\nB.ts\na/\na/b/\na/b/c.ts\na/z.md\nb.ts",
      data: { shown: 7, leftOut: 0 },
    });
  });

  const rows: readonly (readonly [string, Args, readonly string[]])[] = [
    ["a folder, with paths from the root", { path: "a" }, ["a/b/", "a/b/c.ts", "a/z.md"]],
    ["one level", { depth: 1 }, [".env", "B.ts", "a/ (3 inside)", "b.ts"]],
    ["names by glob at any depth", { pattern: "*.ts" }, ["B.ts", "a/b/c.ts", "b.ts"]],
    ["paths by glob from the folder", { pattern: "a/*" }, ["a/z.md"]],
    ["paths by glob below a path", { path: "a", pattern: "b/**" }, ["a/b/c.ts"]],
  ];
  for (const [name, args, expected] of rows) {
    test(name, async () => {
      const outcome = await list(args);
      assertEquals(outcome.content.split("\n").filter((l) => !l.startsWith("[")), expected);
    });
  }

  test("nothing, and says so", async () => {
    assertEquals(await list({ pattern: "*.rs" }), {
      ok: true,
      content: "[nothing found]",
      data: { shown: 0, leftOut: 0 },
      partial: true,
    });
  });

  test("files outside by their full path", async () => {
    ws.write(`${ws.outside}/o`, "");
    assertEquals(await lines({ path: ws.outside }), [`${ws.outside}/o`]);
  });

  test("without what rules refuse, and says how much", async () => {
    const mayRead = (path: string) => !path.endsWith("/.env") && !path.endsWith("/a");
    assertEquals(await lines({}, { mayRead }), [
      "B.ts",
      "b.ts",
      "[2 left out because rules refuse reading them]",
    ]);
    assertEquals((await list({ path: "a" }, { mayRead })).code, "read_refused");
  });
});

describe("list_files shows names safely", () => {
  test("on one line each, so that none can pass for another", async () => {
    for (
      const name of [
        "new\nline",
        "tab\tx",
        "esc\u001b[31m",
        "bidi\u202etxt",
        " blank ",
        'q"uote',
        "back\\slash",
        "文件",
        "a b",
      ]
    ) {
      ws.write(name, "");
    }
    assertEquals(await lines(), [
      '" blank "',
      "a b",
      '"back\\\\slash"',
      '"bidi\\u202etxt"',
      '"esc\\u001b[31m"',
      '"new\\nline"',
      '"q\\"uote"',
      '"tab\\tx"',
      "文件",
    ]);
  });

  test("links with their target, not followed", async () => {
    ws.write("d/f", "");
    ws.link("in", "d");
    ws.link("loop", ".");
    ws.link("out", "/etc");
    ws.link("odd", "a\nb");
    assertEquals(await lines(), ["d/", "d/f", "in -> d", "loop -> .", 'odd -> "a\\nb"', "out -> /etc"]);
  });
});

describe("list_files leaves ignored files out", () => {
  test("as git does: deeper files win, folders are not entered, negation counts", async () => {
    ws.write(".gitignore", "dist/\n*.log\n/top\nnode_modules\n# note\n\n");
    ws.write("pkg/.gitignore", "!keep.log\nlocal\n");
    const paths = [
      "dist/x",
      "a.log",
      "top",
      "src/top",
      "pkg/keep.log",
      "pkg/other.log",
      "pkg/local",
      "local",
      "pkg/node_modules/y",
      "文.log",
    ];
    for (const path of paths) ws.write(path, "");
    assertEquals(await lines(), [
      ".gitignore",
      "local",
      "pkg/",
      "pkg/.gitignore",
      "pkg/keep.log",
      "src/",
      "src/top",
    ]);
    assertEquals(await lines({ path: "pkg" }), ["pkg/.gitignore", "pkg/keep.log"]);
  });

  test("unless the ignored folder itself is asked for", async () => {
    ws.write(".gitignore", "dist\n");
    ws.write("dist/a/x", "");
    assertEquals([await lines({ path: "dist" }), await lines({ path: "dist/a" })], [["dist/a/", "dist/a/x"], [
      "dist/a/x",
    ]]);
  });

  test("also by .git/info/exclude", async () => {
    ws.write(".git/info/exclude", "secret*\n");
    ws.write("secrets.txt", "");
    ws.write("x", "");
    assertEquals(await lines(), ["x"]);
  });

  test("and a rule that would take for ever to match is passed over", async () => {
    ws.write(".gitignore", `${"*a".repeat(40)}b\nx\n`);
    const name = "a".repeat(200);
    for (const path of [name, "x"]) ws.write(path, "");
    assertEquals(await lines(), [".gitignore", name]);
  });

  test("a .gitignore that is a link is not followed", async () => {
    ws.write(`${ws.outside}/rules`, "x\n");
    ws.link(".gitignore", `${ws.outside}/rules`);
    ws.write("x", "");
    assertEquals(await lines(), [`.gitignore -> ${ws.outside}/rules`, "x"]);
  });
});

describe("list_files is bounded", () => {
  test("by level: the overview stays whole", async () => {
    for (let folder = 0; folder < 3; folder++) {
      for (let file = 0; file < 200; file++) ws.write(`f${folder}/${file}`, "");
    }
    const outcome = await list();
    assertEquals(outcome, {
      ok: true,
      content:
        "f0/ (200 inside)\nf1/ (200 inside)\nf2/ (200 inside)\n[only 1 level shown; 600 entries not shown: give path, depth or pattern]",
      data: { shown: 3, leftOut: 600 },
      partial: true,
    });
  });

  test("by number: one full folder", async () => {
    for (let file = 0; file < 600; file++) ws.write(`${1000 + file}`, "");
    const { content, data, partial } = await list();
    assertMatch(
      content,
      /^1000\n1001\n[\s\S]*\n1499\n\[100 more entries here; .*100 entries not shown: give path, depth or pattern\]$/,
    );
    assertEquals([data, partial], [{ shown: 500, leftOut: 100 }, true]);
  });

  test("by cancelling", async () => {
    ws.write("x", "");
    assertEquals((await list({}, { signal: AbortSignal.abort() })).code, "cancelled");
  });
});

describe("list_files refuses", () => {
  test("a file, nothing, and a glob that cannot be read", async () => {
    ws.write("f", "");
    const outcomes = [await list({ path: "f" }), await list({ path: "none" }), await list({ pattern: "a[" })];
    assertEquals(outcomes.map((o) => o.code), ["not_a_folder", "not_found", "bad_glob"]);
  });

  test("a folder that became a link after it was judged", async () => {
    mkdirSync(`${ws.root}/d`);
    const args = { path: "d" };
    listFiles.inspect(args, ws.at);
    renameSync(`${ws.root}/d`, `${ws.root}/e`);
    symlinkSync("/etc", `${ws.root}/d`);
    assertEquals((await listFiles.run(args, ws.at)).code, "path_changed");
  });

  test("no folder that it cannot read, but says so", async () => {
    ws.write("open/x", "");
    mkdirSync(`${ws.root}/closed`);
    chmodSync(`${ws.root}/closed`, 0);
    const note = "[1 folders could not be read]";
    const all = await lines();
    chmodSync(`${ws.root}/closed`, 0o755);
    // The superuser reads it all the same.
    assertEquals(all.filter((l) => l !== note), ["closed/", "open/", "open/x"]);
  });
});
