import { assertEquals, assertMatch } from "@std/assert";
import { afterEach, beforeEach, describe, test } from "bun:test";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import type { Args } from "../../src/core/message.ts";
import { readFile } from "../../src/tools/read_file.ts";
import { writeFile } from "../../src/tools/write_file.ts";
import { call, makeWorkspace, type Workspace } from "./workspace.ts";

let ws: Workspace;
beforeEach(() => ws = makeWorkspace());
afterEach(() => ws.remove());
const write = (args: Args) => call(writeFile, args, ws.at);
const read = (path: string) => call(readFile, { path }, ws.at);

describe("write_file writes", () => {
  test("a new file and the folders above it", async () => {
    assertEquals(await write({ path: "neu/深/a b.txt", content: "x\ny" }), {
      ok: true,
      content: "created `neu/深/a b.txt`: 2 lines, 3 bytes",
      data: { path: "neu/深/a b.txt", bytes: 3, created: true },
    });
    assertEquals([ws.read("neu/深/a b.txt"), ws.kept, readdirSync(`${ws.root}/neu/深`)], ["x\ny", [
      ["neu/深/a b.txt", undefined],
    ], ["a b.txt"]]);
  });

  test("over a file that was read, keeping the old bytes and the mode", async () => {
    chmodSync(ws.write("run.sh", "old\n"), 0o754);
    await read("run.sh");
    assertEquals(await write({ path: "run.sh", content: "new\r\n" }), {
      ok: true,
      content: "replaced `run.sh`: 1 line, 5 bytes",
      data: { path: "run.sh", bytes: 5, created: false },
    });
    const { mode } = statSync(`${ws.root}/run.sh`);
    assertEquals([ws.read("run.sh"), ws.kept, mode & 0o777], ["new\r\n", [["run.sh", "old\n"]], 0o754]);
  });

  test("twice in a row without reading in between", async () => {
    await write({ path: "f", content: "1" });
    assertEquals([(await write({ path: "f", content: "2" })).ok, ws.read("f")], [true, "2"]);
  });

  test("to where a link leads, which stays a link", async () => {
    ws.write("real", "old");
    ws.link("l", "real");
    await read("l");
    await write({ path: "l", content: "new" });
    assertEquals([ws.read("real"), lstatSync(`${ws.root}/l`).isSymbolicLink()], ["new", true]);
  });

  test("exactly the content, whatever it is", async () => {
    const contents = ["", "\r\n\r\n", "a\0b", "\ufeffx", "é 😀", "[redacted]"];
    for (const [i, content] of contents.entries()) await write({ path: `f${i}`, content });
    assertEquals(contents.map((_, i) => ws.read(`f${i}`)), contents);
  });
});

describe("write_file refuses and changes nothing", () => {
  test("a file that was not read", async () => {
    ws.write("f", "old");
    assertEquals(await write({ path: "f", content: "new" }), {
      ok: false,
      code: "not_read",
      content: "`f` exists and was not read in this session; nothing was written: read it first",
    });
    assertEquals([ws.read("f"), ws.kept], ["old", []]);
  });

  test("a file that was changed since it was read", async () => {
    ws.write("f", "old");
    await read("f");
    ws.write("f", "other");
    assertEquals(await write({ path: "f", content: "new" }), {
      ok: false,
      code: "changed_since_read",
      content: "`f` was changed by something else since it was read; nothing was written: read it again",
    });
    assertEquals([ws.read("f"), ws.kept], ["other", []]);
  });

  test("a file that is changed while its old bytes are kept", async () => {
    ws.write("f", "old");
    await read("f");
    const keepBefore = async () => void ws.write("f", "other");
    const outcome = await call(writeFile, { path: "f", content: "new" }, { ...ws.at, keepBefore });
    assertEquals([outcome.code, ws.read("f"), readdirSync(ws.root)], ["changed_since_read", "other", ["f"]]);
  });

  test("a file that appears while it is to be created", async () => {
    const keepBefore = async () => void ws.write("f", "other");
    const outcome = await call(writeFile, { path: "f", content: "new" }, { ...ws.at, keepBefore });
    assertEquals([outcome.code, ws.read("f"), readdirSync(ws.root)], ["changed_since_read", "other", ["f"]]);
  });

  test("when the old bytes cannot be kept", async () => {
    ws.write("f", "old");
    await read("f");
    const keepBefore = () => Promise.reject(new Error("no space for the old bytes"));
    const told = await call(writeFile, { path: "f", content: "new" }, { ...ws.at, keepBefore }).catch((e) =>
      e.message
    );
    assertEquals([told, ws.read("f")], ["no space for the old bytes", "old"]);
  });

  test("a placeholder of a redacted secret, when inspected and when run", async () => {
    const args = { path: "f", content: "key: [redacted:github]\n" };
    assertEquals(writeFile.inspect(args, ws.at).errors?.map((e) => e.code), ["redacted_content"]);
    assertEquals([(await write(args)).code, readdirSync(ws.root)], ["redacted_content", []]);
  });

  const rows: readonly (readonly [string, () => unknown, string, string])[] = [
    ["a folder", () => mkdirSync(`${ws.root}/d`), "d", "is_folder"],
    ["below a file", () => ws.write("f", ""), "f/x", "write_failed"],
    ["a device", () => {}, "/dev/null", "not_regular"],
    ["a link loop", () => ws.link("l", "l"), "l", "unresolved_path"],
    ["a name that is too long", () => {}, "n".repeat(300), "unresolved_path"],
  ];
  for (const [name, prepare, path, code] of rows) {
    test(name, async () => {
      prepare();
      assertEquals((await write({ path, content: "x" })).code, code);
    });
  }
});

describe("write_file notices a path that was changed after it was judged", () => {
  test("a folder that has become a link", async () => {
    mkdirSync(`${ws.root}/d`);
    const args = { path: "d/new", content: "x" };
    writeFile.inspect(args, ws.at);
    renameSync(`${ws.root}/d`, `${ws.root}/e`);
    symlinkSync(ws.outside, `${ws.root}/d`);
    assertEquals([(await writeFile.run(args, ws.at)).code, readdirSync(ws.outside)], ["path_changed", []]);
  });

  test("a folder that becomes a link at the last moment", async () => {
    mkdirSync(`${ws.root}/d`);
    const keepBefore = async () => {
      renameSync(`${ws.root}/d`, `${ws.root}/e`);
      symlinkSync(ws.outside, `${ws.root}/d`);
    };
    const outcome = await call(writeFile, { path: "d/new", content: "x" }, { ...ws.at, keepBefore });
    assertEquals([outcome.code, readdirSync(ws.outside), readdirSync(`${ws.root}/e`)], [
      "path_changed",
      [],
      [],
    ]);
  });

  test("a dangling link that appears in its place", async () => {
    const args = { path: "f", content: "x" };
    writeFile.inspect(args, ws.at);
    symlinkSync(`${ws.outside}/new`, `${ws.root}/f`);
    assertEquals([(await writeFile.run(args, ws.at)).code, readdirSync(ws.outside)], ["path_changed", []]);
  });
});

describe("write_file shows what it would do", () => {
  const preview = (args: Args) => writeFile.preview?.(args, ws.at);

  test("as a diff against what is there", () => {
    ws.write("f", "one\ntwo\nthree\n");
    assertEquals(
      preview({ path: "f", content: "one\n2\nthree\n" }),
      "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
    );
  });

  test("as a new file", () => {
    assertEquals(preview({ path: "f", content: "x\n" }), "--- /dev/null\n+++ b/f\n@@ -0,0 +1,1 @@\n+x\n");
  });

  test("over a binary file", () => {
    ws.write("f", new Uint8Array([0, 1]));
    assertMatch(
      preview({ path: "f", content: "x\n" }) ?? "",
      /^\[f: binary data, 2 bytes, is replaced by:\]\n---/,
    );
  });

  test("within a cap, head and tail kept", () => {
    const text =
      preview({ path: "f", content: "x".repeat(50) + "\n".repeat(1) + "y\n".repeat(30_000) + "last\n" }) ??
        "";
    assertMatch(text, /^--- \/dev\/null[\s\S]*characters cut[\s\S]*\+last\n$/);
    assertEquals(text.length < 20_200, true);
  });

  test("when too much differs for a diff, as the new text", () => {
    ws.write("f", Array.from({ length: 6000 }, (_, i) => `old ${i}\n`).join(""));
    const text =
      preview({ path: "f", content: Array.from({ length: 6000 }, (_, i) => `new ${i}\n`).join("") }) ?? "";
    assertMatch(text, /too many changes for a diff: 6,000 lines replaced by 6,000 lines/);
  });

  test("as nothing where the call will fail", () => {
    mkdirSync(`${ws.root}/d`);
    assertEquals([preview({ path: "d", content: "x" }), preview({ path: "", content: "x" })], [
      undefined,
      undefined,
    ]);
    rmSync(`${ws.root}/d`, { recursive: true });
  });
});
