import { assertEquals } from "@std/assert";
import { afterEach, beforeEach, describe, test } from "bun:test";
import { chmodSync, statSync } from "node:fs";
import type { Args } from "../../src/core/message.ts";
import { editFile } from "../../src/tools/edit_file.ts";
import { readFile } from "../../src/tools/read_file.ts";
import { replaceText } from "../../src/tools/replace_text.ts";
import { call, makeWorkspace, type Workspace } from "./workspace.ts";

type Row = {
  readonly name: string;
  readonly text: string;
  readonly old: string;
  readonly put: string;
  readonly all?: boolean;
  readonly becomes: string;
};

const edits: readonly Row[] = [
  { name: "in the middle", text: "a b c", old: "b", put: "B", becomes: "a B c" },
  { name: "at the start", text: "ab", old: "a", put: "", becomes: "b" },
  { name: "at the end, no newline added", text: "a\nb", old: "b", put: "c", becomes: "a\nc" },
  { name: "several lines", text: "1\n2\n3\n4\n", old: "2\n3\n", put: "x\n", becomes: "1\nx\n4\n" },
  {
    name: "CRLF asked for as LF",
    text: "1\r\n2\r\n3\r\n",
    old: "1\n2\n",
    put: "a\nb\nc\n",
    becomes: "a\r\nb\r\nc\r\n3\r\n",
  },
  { name: "CRLF asked for as CRLF", text: "1\r\n2\r\n", old: "1\r\n2", put: "a\r\nb", becomes: "a\r\nb\r\n" },
  { name: "LF asked for as CRLF", text: "1\n2\n", old: "1\r\n2", put: "a\r\nb", becomes: "a\nb\n" },
  { name: "new lines in a CRLF file", text: "1\r\n2\r\n", old: "2", put: "2\n3", becomes: "1\r\n2\r\n3\r\n" },
  {
    name: "mixed line ends stay mixed",
    text: "1\r\n2\n3\r\n4\n",
    old: "2\n3",
    put: "x\ny",
    becomes: "1\r\nx\ny\r\n4\n",
  },
  { name: "all places", text: "x.x.x", old: "x", put: "yy", all: true, becomes: "yy.yy.yy" },
  {
    name: "all places in a CRLF file",
    text: "x\r\nx\r\n",
    old: "x\n",
    put: "y\n",
    all: true,
    becomes: "y\r\ny\r\n",
  },
  { name: "all does not overlap", text: "aaa", old: "aa", put: "b", all: true, becomes: "ba" },
  { name: "dollar signs are plain", text: "a", old: "a", put: "$& $1 $$", becomes: "$& $1 $$" },
  { name: "pattern characters are plain", text: "f(x.y)*", old: "(x.y)*", put: "[z]", becomes: "f[z]" },
  { name: "Chinese and emoji", text: "你好😀世界", old: "😀", put: "，", becomes: "你好，世界" },
  { name: "a lone carriage return is kept", text: "a\rb\n", old: "b", put: "c", becomes: "a\rc\n" },
];

describe("replaceText()", () => {
  for (const { name, text, old, put, all, becomes } of edits) {
    test(name, () => {
      const replaced = replaceText(text, { old, new: put, all: all ?? false });
      assertEquals(replaced.ok && replaced.text, becomes);
    });
  }

  const misses: readonly (readonly [string, string, string, string, string])[] = [
    [
      "nothing like it",
      "a\nb\n",
      "zz",
      "no_match",
      "`old` does not occur; read the file again and copy the text exactly",
    ],
    [
      "other blanks",
      "if (x) {\n    go();\n}\n",
      "if (x) {\n  go();\n}",
      "no_match",
      "`old` does not occur; with other blanks it is at line 1: copy the blanks exactly",
    ],
    [
      "the first line only",
      "a\nstart\nb\nstart\n",
      "start\nmiddle",
      "no_match",
      "`old` does not occur; its first line is at line 2, 4, but what follows differs: read there again",
    ],
    ["blanks only", "a\n", "   ", "no_match", "`old` does not occur; it holds only blanks"],
    [
      "twice",
      "x\ny\nx\n",
      "x",
      "not_unique",
      "`old` occurs 2 times (lines 1, 3); add lines around it until it is unique, or set `all`",
    ],
    [
      "overlapping",
      "aaa",
      "aa",
      "not_unique",
      "`old` occurs 2 times (lines 1, 1); add lines around it until it is unique, or set `all`",
    ],
    ["empty", "a", "", "no_match", "`old` is empty; expected the text to be replaced"],
  ];
  for (const [name, text, old, code, message] of misses) {
    test(`says why: ${name}`, () => {
      assertEquals(replaceText(text, { old, new: "n", all: false }), { ok: false, code, message } as never);
    });
  }

  test("says why: the same text", () => {
    const replaced = replaceText("a\r\nb", { old: "a\nb", new: "a\r\nb", all: false });
    assertEquals(replaced.ok ? "" : replaced.code, "no_change");
  });
});

describe("edit_file", () => {
  let ws: Workspace;
  beforeEach(() => ws = makeWorkspace());
  afterEach(() => ws.remove());
  const edit = (args: Args) => call(editFile, args, ws.at);

  test("changes one place, keeps the old bytes and the mode, and may go on without reading", async () => {
    chmodSync(ws.write("f", "one\r\ntwo\r\nthree"), 0o640);
    assertEquals(await edit({ path: "f", old: "two", new: "2" }), {
      ok: true,
      content: "edited `f`: 1 place, line 2",
      data: { path: "f", places: 1 },
    });
    assertEquals((await edit({ path: "f", old: "2", new: "zwei" })).ok, true);
    assertEquals([ws.read("f"), ws.kept, statSync(`${ws.root}/f`).mode & 0o777], [
      "one\r\nzwei\r\nthree",
      [["f", "one\r\ntwo\r\nthree"], ["f", "one\r\n2\r\nthree"]],
      0o640,
    ]);
  });

  test("keeps a byte order mark", async () => {
    ws.write("f", "\ufeffa\n");
    await edit({ path: "f", old: "a", new: "b" });
    assertEquals([...ws.bytes("f")], [0xef, 0xbb, 0xbf, 0x62, 0x0a]);
  });

  const refusals: readonly (readonly [string, string | Uint8Array, Args, string])[] = [
    ["a file that is no text", new Uint8Array([1, 0, 2]), { old: "a", new: "b" }, "binary"],
    ["a file that is no UTF-8", new Uint8Array([0x61, 0xff]), { old: "a", new: "b" }, "not_utf8"],
    ["a text that is not there", "a", { old: "x", new: "b" }, "no_match"],
    ["a text that is there twice", "a a", { old: "a", new: "b" }, "not_unique"],
    ["a placeholder of a secret", "a", { old: "a", new: "[redacted:x]" }, "redacted_content"],
  ];
  for (const [name, content, args, code] of refusals) {
    test(`refuses ${name} and changes nothing`, async () => {
      ws.write("f", content);
      const before = ws.bytes("f");
      assertEquals([(await edit({ path: "f", ...args })).code, ws.kept, ws.bytes("f")], [code, [], before]);
    });
  }

  test("refuses a file that was changed since it was read", async () => {
    ws.write("f", "a b");
    await call(readFile, { path: "f" }, ws.at);
    ws.write("f", "a c");
    assertEquals([(await edit({ path: "f", old: "a", new: "x" })).code, ws.read("f")], [
      "changed_since_read",
      "a c",
    ]);
  });

  test("refuses a file that is not there", async () => {
    assertEquals((await edit({ path: "f", old: "a", new: "x" })).code, "not_found");
  });

  test("shows a diff", () => {
    ws.write("f", "a\nb\n");
    assertEquals(
      [
        editFile.preview?.({ path: "f", old: "b", new: "c" }, ws.at),
        editFile.preview?.({ path: "f", old: "x", new: "c" }, ws.at),
      ],
      ["--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n", undefined],
    );
  });
});
