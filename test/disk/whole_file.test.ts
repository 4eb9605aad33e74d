import { afterEach, beforeEach, describe, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assertEquals, assertThrows } from "@std/assert";
import { sha256 } from "../../src/disk/sha256.ts";
import { writeNew, writeWhole } from "../../src/disk/whole_file.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "writ-disk-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("writeWhole()", () => {
  test("makes a file for this user alone and leaves nothing beside it", () => {
    writeWhole(join(folder, "a"), "tür");
    assertEquals(readFileSync(join(folder, "a"), "utf8"), "tür");
    assertEquals(statSync(join(folder, "a")).mode & 0o777, 0o600);
    assertEquals(readdirSync(folder), ["a"]);
  });
  test("takes the place of what was there", () => {
    writeFileSync(join(folder, "a"), "a longer text");
    writeWhole(join(folder, "a"), new Uint8Array([104, 105]));
    assertEquals(readFileSync(join(folder, "a"), "utf8"), "hi");
  });
  test("changes nothing where it cannot write, and leaves no draft", () => {
    assertThrows(() => writeWhole(join(folder, "none", "a"), "x"));
    rmSync(join(folder, "none"), { force: true });
    assertThrows(() => writeWhole(folder, "x"));
    assertEquals([readdirSync(folder), existsSync(folder)], [[], true]);
  });
});

describe("writeNew()", () => {
  test("does not write to a file that is there", () => {
    writeFileSync(join(folder, "a"), "old");
    assertThrows(() => writeNew(join(folder, "a"), new Uint8Array([1]), 0o600));
    assertEquals(readFileSync(join(folder, "a"), "utf8"), "old");
  });
  test("writes no byte when the opened file is not the one that was meant", () => {
    assertEquals(writeNew(join(folder, "a"), new Uint8Array([1]), 0o600, () => false), false);
    assertEquals(statSync(join(folder, "a")).size, 0);
  });
});

test("sha256() takes text as UTF-8", () => {
  const ofAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  assertEquals([sha256("abc"), sha256(new Uint8Array([97, 98, 99]))], [ofAbc, ofAbc]);
});
