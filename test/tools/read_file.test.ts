import { assertEquals, assertStringIncludes } from "@std/assert";
import { afterEach, beforeEach, describe, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { renameSync, rmSync, symlinkSync } from "node:fs";
import type { Args } from "../../src/core/message.ts";
import { readFile } from "../../src/tools/read_file.ts";
import { call, makeWorkspace, type Workspace } from "./workspace.ts";

let ws: Workspace;
beforeEach(() => ws = makeWorkspace());
afterEach(() => ws.remove());
const read = (args: Args, maxOutput = ws.at.shell.maxOutput) =>
  call(readFile, args, { ...ws.at, shell: { ...ws.at.shell, maxOutput } });
const lines = (count: number) => Array.from({ length: count }, (_, i) => `line ${i + 1}\n`).join("");

describe("read_file gives the exact text", () => {
  const texts: readonly (readonly [string, string])[] = [
    ["plain", "a\nb\n"],
    ["CRLF", "a\r\nb\r\n"],
    ["mixed line ends", "a\r\nb\nc\rd"],
    ["no final newline", "a\nb"],
    ["blank lines only", "\n\n\n"],
    ["Chinese and emoji", "你好，世界 😀\n"],
    ["brackets like a note", "[lines 1-2 of 3]\n"],
  ];
  for (const [name, text] of texts) {
    test(name, async () => {
      ws.write("f", text);
      const bytes = new TextEncoder().encode(text).length;
      const count = text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
      assertEquals(await read({ path: "f" }), {
        ok: true,
        content: text,
        data: { path: "f", bytes, lines: count },
      });
    });
  }

  const names = ["a b.txt", 'it\'s "q".txt', "$(x);`y`", "文件.txt", "-rf", "café.txt", "a\tb", "*"];
  for (const name of names) {
    test(`of a file named ${JSON.stringify(name)}`, async () => {
      ws.write(name, "here\n");
      assertEquals((await read({ path: `./${name}` })).content, "here\n");
    });
  }

  test("a byte order mark is left out", async () => {
    ws.write("f", "\ufefftext\n");
    assertEquals((await read({ path: "f" })).content, "text\n");
  });

  test("bytes that are no UTF-8 are told", async () => {
    ws.write("f", new Uint8Array([0x66, 0xfc, 0x72, 0x0a]));
    assertEquals(
      (await read({ path: "f" })).content,
      "f\ufffdr\n[some bytes are not UTF-8 and stand as \ufffd; edit_file cannot change this file]",
    );
  });

  test("an empty file is no evidence of anything", async () => {
    ws.write("f", "");
    assertEquals(await read({ path: "f" }), {
      ok: true,
      content: "[the file is empty]",
      data: { path: "f", bytes: 0, lines: 0 },
      partial: true,
    });
  });

  test("through a link, and remembers the bytes under the real path", async () => {
    ws.write("真/f", "x\n");
    ws.link("l", "真");
    assertEquals((await read({ path: "l/f" })).content, "x\n");
    assertEquals([...ws.at.seen], [[`${ws.root}/真/f`, createHash("sha256").update("x\n").digest("hex")]]);
  });
});

describe("read_file gives pages", () => {
  const rows: readonly (readonly [string, Args, string])[] = [
    ["from the start", { limit: 2 }, "line 1\nline 2\n[lines 1-2 of 5; go on with offset 3]"],
    ["from the middle", { offset: 3, limit: 2 }, "line 3\nline 4\n[lines 3-4 of 5; go on with offset 5]"],
    ["to the end", { offset: 4 }, "line 4\nline 5\n[lines 4-5 of 5]"],
    ["just all", { limit: 5 }, lines(5)],
    ["more than there is", { limit: 99 }, lines(5)],
  ];
  for (const [name, args, content] of rows) {
    test(name, async () => {
      ws.write("f", lines(5));
      const outcome = await read({ path: "f", ...args });
      assertEquals([outcome.ok, outcome.content, outcome.partial ?? false], [
        true,
        content,
        content !== lines(5),
      ]);
    });
  }

  test("a page of a file without a final newline ends before its note", async () => {
    ws.write("f", "a\nb");
    assertEquals((await read({ path: "f", offset: 2 })).content, "b\n[lines 2-2 of 2]");
  });

  test("past the end", async () => {
    ws.write("f", lines(3));
    assertEquals(await read({ path: "f", offset: 9 }), {
      ok: false,
      code: "out_of_range",
      content: "`f` has 3 lines; there is no line 9",
    });
  });

  test("2,000 lines unless asked otherwise", async () => {
    ws.write("f", lines(2500));
    const { content, partial } = await read({ path: "f" });
    assertEquals([content.split("\n").length, partial], [2001, true]);
    assertStringIncludes(content, "\nline 2000\n[lines 1-2000 of 2500; go on with offset 2001]");
  });

  test("whole lines up to the cap of characters", async () => {
    ws.write("f", lines(5));
    assertEquals(
      (await read({ path: "f" }, 20)).content,
      "line 1\nline 2\n[lines 1-2 of 5; go on with offset 3]",
    );
  });

  test("one line longer than the cap is cut between its words", async () => {
    ws.write("f", "abc de😀fg\nnext\n");
    assertEquals(
      (await read({ path: "f" }, 7)).content,
      "abc \n[line 1 goes on for 6 characters: use search_text; lines 1-1 of 2; go on with offset 2]",
    );
  });

  const begin = "-----BEGIN RSA PRIVATE KEY-----", end = "-----END RSA PRIVATE KEY-----";
  const hidden = "[redacted:private-key]\n";
  const keyPages: readonly (readonly [name: string, args: Args, page: string])[] = [
    ["that ends in a key", { limit: 2 }, `a\n${hidden}`],
    ["within a key", { offset: 3, limit: 1 }, hidden],
    ["that begins in a key", { offset: 3, limit: 4 }, `${hidden}z\n`],
    ["that ends with the key", { offset: 4, limit: 2 }, hidden],
    ["behind the key", { offset: 6, limit: 1 }, "z\n"],
  ];
  for (const [name, args, page] of keyPages) {
    for (const [size, after] of [["small", ""], ["large", "word ".repeat(1_800_000)]] as const) {
      test(`a page ${name}, of a ${size} file`, async () => {
        ws.write("f", `a\n${begin}\nMII\nabc\n${end}\nz\n${after}`);
        const { content } = await read({ path: "f", ...args });
        assertEquals(content.replace(/\[lines[^]*$/, ""), page);
      });
    }
  }

  test("no part of a key that lies on the border of what is read at once", async () => {
    const line = `${"x".repeat(63)}\n`;
    ws.write(
      "f",
      `${line.repeat(1023)}${"y".repeat(50)}\n${begin}\n${line.repeat(4)}${end}\nz\n${line.repeat(140_000)}`,
    );
    const { content } = await read({ path: "f", offset: 1027, limit: 5 });
    assertEquals(content.split("[lines")[0], `${hidden}z\n`);
  });

  test("a huge file is read as far as needed and does not count as seen", async () => {
    ws.write("f", lines(1_000_000));
    const first = await read({ path: "f", limit: 1 });
    const late = await read({ path: "f", offset: 900_000, limit: 2 });
    const size = "the file has 11,888,896 bytes, too many to be read or written as a whole";
    assertEquals([first.content, late.content], [
      `line 1\n[lines 1-1 of an unknown number; go on with offset 2; ${size}]`,
      `line 900000\nline 900001\n[lines 900000-900001 of an unknown number; go on with offset 900002; ${size}]`,
    ]);
    assertEquals([first.partial, late.partial, ws.at.seen.size], [true, true, 0]);
    assertEquals((await read({ path: "f", offset: 1_000_001 })).code, "out_of_range");
  });
});

describe("read_file refuses", () => {
  const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 1, 2, 3]);
  const rows: readonly (readonly [string, () => void, string, string, string])[] = [
    ["what is not there", () => {}, "nope", "not_found", "`nope` does not exist"],
    [
      "what is nearly there",
      () => ws.write("src/main.ts", ""),
      "src/mian.ts",
      "not_found",
      "`src/mian.ts` does not exist; did you mean `main.ts` in the same folder?",
    ],
    [
      "a folder",
      () => ws.write("d/x", ""),
      "d",
      "is_folder",
      "`d` is a folder, expected a file: use list_files",
    ],
    ["the root", () => {}, ".", "is_folder", "`.` is a folder, expected a file: use list_files"],
    ["below a file", () => ws.write("f", ""), "f/x", "not_found", "`f/x` does not exist"],
    ["an image", () => ws.write("i.png", png), "i.png", "binary", "`i.png` is no text: PNG image, 7 bytes"],
    [
      "UTF-16",
      () => ws.write("u", new Uint8Array([0xff, 0xfe, 0x61, 0])),
      "u",
      "binary",
      "`u` is no text: UTF-16 text, 4 bytes",
    ],
    [
      "other binary data",
      () => ws.write("b", new Uint8Array([65, 0, 66])),
      "b",
      "binary",
      "`b` is no text: binary data, 3 bytes",
    ],
    ["a dangling link", () => ws.link("l", "none"), "l", "not_found", "`none` does not exist"],
    [
      "a link loop",
      () => ws.link("l", "l"),
      "l",
      "unresolved_path",
      "the path `l` cannot be resolved: expected one that is not empty, leads through no link loop and can be looked at",
    ],
    [
      "an empty path",
      () => {},
      "",
      "unresolved_path",
      'the path `""` cannot be resolved: expected one that is not empty, leads through no link loop and can be looked at',
    ],
    ["a device", () => {}, "/dev/null", "not_regular", "`/dev/null` is a device, expected a regular file"],
    ["an open file of ours", () => {}, "/proc/self/fd/0", "not_found", "`/proc/self/fd/0` does not exist"],
  ];
  for (
    const [name, prepare, path, code, content] of rows.filter(([name]) => name !== "an open file of ours")
  ) {
    test(name, async () => {
      prepare();
      assertEquals(await read({ path }), { ok: false, code, content });
    });
  }

  test("an open file of ours, whatever it is", async () => {
    assertEquals((await read({ path: "/proc/self/fd/0" })).ok, false);
  });

  test("a FIFO, without waiting for a writer", async () => {
    execFileSync("mkfifo", [`${ws.root}/p`]);
    assertEquals(await read({ path: "p" }), {
      ok: false,
      code: "not_regular",
      content: "`p` is a FIFO, expected a regular file",
    });
  });
});

describe("read_file notices a path that was changed after it was judged", () => {
  const changed = {
    ok: false,
    code: "path_changed",
    content:
      "`f` does not lead any more to where it led when the call was judged; nothing was done: make the call again",
  };

  test("a link that points elsewhere now", async () => {
    ws.write("harmless", "fine\n");
    ws.write(`${ws.outside}/secret`, "secret\n");
    ws.link("f", "harmless");
    const args = { path: "f" };
    readFile.inspect(args, ws.at);
    rmSync(`${ws.root}/f`);
    symlinkSync(`${ws.outside}/secret`, `${ws.root}/f`);
    assertEquals(await readFile.run(args, ws.at), changed);
  });

  test("a file that has become a link", async () => {
    ws.write("f", "fine\n");
    ws.write(`${ws.outside}/secret`, "secret\n");
    const args = { path: "f" };
    readFile.inspect(args, ws.at);
    renameSync(`${ws.root}/f`, `${ws.root}/g`);
    symlinkSync(`${ws.outside}/secret`, `${ws.root}/f`);
    assertEquals(await readFile.run(args, ws.at), changed);
  });

  test("a folder above that has become a link", async () => {
    ws.write("d/f", "fine\n");
    ws.write(`${ws.outside}/f`, "secret\n");
    const args = { path: "d/f" };
    readFile.inspect(args, ws.at);
    renameSync(`${ws.root}/d`, `${ws.root}/e`);
    symlinkSync(ws.outside, `${ws.root}/d`);
    assertEquals((await readFile.run(args, ws.at)).code, "path_changed");
  });

  test("a new file in the same place is no change of the path", async () => {
    ws.write("f", "old\n");
    const args = { path: "f" };
    readFile.inspect(args, ws.at);
    rmSync(`${ws.root}/f`);
    ws.write("f", "new\n");
    assertEquals((await readFile.run(args, ws.at)).content, "new\n");
  });
});

describe("read_file is inspected", () => {
  test("as a read of where the path leads", () => {
    ws.write("真/f", "");
    ws.link("l", "真");
    assertEquals(readFile.inspect({ path: "l/f" }, ws.at), {
      risk: "read",
      subjects: [{
        kind: "path",
        tool: "read_file",
        operand: false,
        path: { written: "l/f", absolute: `${ws.root}/l/f`, resolved: `${ws.root}/真/f`, inWorkspace: true },
      }],
    });
  });

  test("with an error where it leads nowhere", () => {
    const { errors } = readFile.inspect({ path: "a\0" }, ws.at);
    assertEquals(errors?.map((e) => e.code), ["unresolved_path"]);
  });
});
