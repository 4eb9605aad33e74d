import { assertEquals } from "@std/assert";
import { afterAll, beforeAll, describe, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isWritableProgram } from "../../src/tools/program_place.ts";

let top = "";
beforeAll(() => {
  top = realpathSync(mkdtempSync(join(tmpdir(), "writ-programs-")));
  for (const folder of ["bin", "late", "ws/bin"]) mkdirSync(join(top, folder), { recursive: true });
  const add = (path: string, mode = 0o755) => {
    writeFileSync(join(top, path), "");
    chmodSync(join(top, path), mode);
  };
  add("bin/tool");
  add("bin/plain", 0o644);
  add("late/plain");
  mkdirSync(join(top, "bin/folder"));
  add("ws/own");
  symlinkSync(join(top, "ws/own"), join(top, "bin/led"));
  symlinkSync(join(top, "bin/tool"), join(top, "ws/out"));
  symlinkSync(join(top, "nowhere"), join(top, "bin/dangling"));
});
afterAll(() => rmSync(top, { recursive: true, force: true }));

describe("isWritableProgram()", () => {
  const rows: readonly (readonly [name: string, word: string, writable: boolean])[] = [
    ["a program on PATH", "tool", false],
    ["one that leads into the workspace", "led", true],
    ["the first that may be run", "plain", false],
    ["a builtin, or nothing", "true-nothing", false],
    ["a folder of that name", "folder", false],
    ["no word", "", false],
    ["a path into the workspace", "./own", true],
    ["an absolute path into it", "{top}/ws/own", true],
    ["a path through it that leads out", "./out", true],
    ["a path out of it", "../bin/tool", false],
    ["a path that leads back in", "../bin/led", true],
    ["a path that leads nowhere", "../bin/dangling", true],
    ["a path to nothing", "../bin/gone", true],
  ];
  for (const [name, word, writable] of rows) {
    test(name, () => {
      const path = [`${top}/bin`, "relative", `${top}/late`].join(":");
      const found = isWritableProgram(word.replace("{top}", top), {
        cwd: join(top, "ws"),
        env: { PATH: path },
        writable: [join(top, "ws")],
      });
      assertEquals(found, writable);
    });
  }
});
