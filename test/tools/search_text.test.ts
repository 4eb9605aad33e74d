import { assert, assertEquals, assertMatch } from "@std/assert";
import { afterEach, beforeEach, describe, test } from "bun:test";
import type { ToolContext } from "../../src/agent/ports.ts";
import type { Args } from "../../src/core/message.ts";
import { lineSearch } from "../../src/tools/line_search.ts";
import { searchText } from "../../src/tools/search_text.ts";
import { call, makeWorkspace, type Workspace } from "./workspace.ts";

let ws: Workspace;
beforeEach(() => ws = makeWorkspace());
afterEach(() => ws.remove());
const search = (args: Args, at: Partial<ToolContext> = {}) => call(searchText, args, { ...ws.at, ...at });

describe("search_text finds", () => {
  beforeEach(() => {
    ws.write("a.ts", "import x\nconst Alpha = 1;\n");
    ws.write("src/b.ts", "alpha\r\nbeta ALPHA\r\n");
    ws.write("src/文 c.md", "阿尔法 alpha");
  });

  const rows: readonly (readonly [string, Args, readonly string[]])[] = [
    ["a literal", { pattern: "alpha" }, ["src/b.ts:1: alpha", "src/文 c.md:1: 阿尔法 alpha"]],
    ["without case", { pattern: "ALPHA", ignore_case: true }, [
      "a.ts:2: const Alpha = 1;",
      "src/b.ts:1: alpha",
      "src/b.ts:2: beta ALPHA",
      "src/文 c.md:1: 阿尔法 alpha",
    ]],
    ["a pattern", { pattern: "^const \\w+ = \\d;$" }, ["a.ts:2: const Alpha = 1;"]],
    ["the end of a CRLF line", { pattern: "alpha$" }, ["src/b.ts:1: alpha", "src/文 c.md:1: 阿尔法 alpha"]],
    ["by glob", { pattern: "alpha", glob: "*.md" }, ["src/文 c.md:1: 阿尔法 alpha"]],
    ["by path glob", { pattern: "alpha", glob: "src/*.ts" }, ["src/b.ts:1: alpha"]],
    ["in a folder", { pattern: "x", path: "." }, ["a.ts:1: import x"]],
    ["in a file", { pattern: "beta", path: "src/b.ts" }, ["src/b.ts:2: beta ALPHA"]],
    ["Chinese", { pattern: "[\\p{Han}]{3}" }, ["src/文 c.md:1: 阿尔法 alpha"]],
  ];
  for (const [name, args, expected] of rows) {
    test(name, async () => {
      const outcome = await search(args);
      assertEquals([outcome.ok, outcome.content.split("\n"), outcome.partial ?? false], [
        true,
        expected,
        false,
      ]);
    });
  }

  test("nothing, and says so", async () => {
    assertEquals(await search({ pattern: "gamma" }), {
      ok: true,
      content: "[no match]",
      data: { matches: 0, files: 0 },
      partial: true,
    });
  });
});

describe("search_text leaves out", () => {
  test("ignored, binary and refused files, and links", async () => {
    ws.write(".gitignore", "dist\n");
    ws.write("dist/x", "needle\n");
    ws.write("bin", "\0needle\n");
    ws.write("secret/.env", "needle\n");
    ws.write("f", "needle\n");
    ws.link("l", "f");
    const mayRead = (path: string) => !path.endsWith("/secret");
    assertEquals(
      (await search({ pattern: "needle" }, { mayRead })).content,
      "f:1: needle\n[1 left out because rules refuse reading them]",
    );
    assertEquals((await search({ pattern: "needle", path: "secret" }, { mayRead })).code, "read_refused");
  });

  test("files that are too large, and says how many", async () => {
    ws.write("big", "needle\n" + "x".repeat(5_000_000));
    assertEquals(
      (await search({ pattern: "needle" })).content,
      "[no match; 1 file too large to be searched]",
    );
  });

  test("a binary file that was asked for says why", async () => {
    ws.write("bin", "\0needle\n");
    assertEquals((await search({ pattern: "needle", path: "bin" })).code, "binary");
  });
});

describe("search_text is bounded", () => {
  test("in the number of lines shown, not of those counted", async () => {
    ws.write("f", "hit\n".repeat(1000));
    const { content, data, partial } = await search({ pattern: "hit" });
    assertEquals(content.split("\n").slice(199), [
      "f:200: hit",
      "[800 more matches, in 1 file altogether: narrow pattern, path or glob]",
    ]);
    assertEquals([data, partial], [{ matches: 1000, files: 1 }, true]);
  });

  test("in the length of a line, shown around its match", async () => {
    ws.write(
      "f",
      `${"a ".repeat(500)}needle${" b".repeat(500)}\n${"a".repeat(1000)}needle${"b".repeat(1000)}\n`,
    );
    const { content } = await search({ pattern: "needle" });
    assertMatch(
      content,
      /^f:1: …( a)+ needle( b)+ …\nf:2: \[a line of 2006 characters, without a blank near the match\]$/,
    );
  });

  test("in time, whatever the pattern", async () => {
    ws.write("f", `${"a".repeat(30_000)}\n`);
    assertEquals((await search({ pattern: "(a+)+$" })).ok, true);
    assertEquals((await search({ pattern: "(x+x+)+y" })).content, "[no match]");
  });

  test("by cancelling", async () => {
    ws.write("f", "x\n");
    assertEquals((await search({ pattern: "x" }, { signal: AbortSignal.abort() })).code, "cancelled");
  });

  test("a name with a line end cannot fake a result", async () => {
    ws.write("a\nb:1: fake", "hit\n");
    assertEquals((await search({ pattern: "hit" })).content, '"a\\nb:1: fake":1: hit');
  });
});

test("search_text says what is wrong with a pattern", async () => {
  const outcomes = [
    await search({ pattern: "a(" }),
    await search({ pattern: "(?=a)" }),
    await search({ pattern: "a", path: "none" }),
  ];
  assertEquals(outcomes.map((o) => o.code), ["bad_pattern", "bad_pattern", "not_found"]);
  assertMatch(
    outcomes[0]?.content ?? "",
    /^the pattern `a\(` opens a group that is not closed; close it with/,
  );
});

describe("lineSearch()", () => {
  test("finds the same with and without its shortcut", () => {
    const text = "foo\nfoo bar\r\n\nKelvin \u212a\nſtop STOP\nİ x\na{b\naab\naaab xyz\n".repeat(3) +
      "last foo";
    for (const [pattern, ignoreCase] of patterns()) {
      const quick: string[] = [], slow: string[] = [];
      lineSearch(pattern, { ignoreCase }).each(text, (line, found) => quick.push(`${line}:${found}`) > 0);
      // An alternative keeps the shortcut from being taken.
      lineSearch(`(?:${pattern})|[^\\x00-\\x{10FFFF}]`, { ignoreCase }).each(
        text,
        (line, found) => slow.push(`${line}:${found}`) > 0,
      );
      assertEquals([pattern, quick], [pattern, slow]);
    }
    assert(patterns().length > 20);
  });

  test("stops when told to", () => {
    let calls = 0;
    lineSearch("a", { ignoreCase: false }).each("a\na\na\n", () => ++calls < 2);
    assertEquals(calls, 2);
  });
});

function patterns(): readonly (readonly [string, boolean])[] {
  const all = [
    "foo",
    "bar$",
    "^foo",
    "k",
    "stop",
    "x",
    "a{2,3}b",
    "a+b x",
    "a{b",
    "\\bfoo\\b",
    "o{2}",
    "[fk]o",
    ".",
    "",
    "fo?o",
    "aab",
  ];
  return all.flatMap((p) => [[p, false], [p, true]] as const);
}
