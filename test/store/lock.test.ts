import { afterEach, beforeEach, describe, test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { takeLock } from "../../src/store/lock.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "writ-lock-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function startOf(pid: number): string {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
}

describe("takeLock()", () => {
  test("holds until it is released, and leaves nothing behind", () => {
    const path = join(dir, "lock");
    const first = takeLock(path);
    assert("release" in first);
    assertEquals(takeLock(path), { heldBy: `process ${process.pid}` });
    assertEquals(readdirSync(dir).length, 1);
    first.release();
    first.release();
    assertEquals(readdirSync(dir), []);
    const second = takeLock(path);
    assert("release" in second);
    second.release();
  });

  test("names the process that holds it, and looks at no other lock", async () => {
    const child = spawn("sleep", ["60"], { stdio: "ignore" });
    const gone = new Promise((resolve) => child.on("exit", resolve));
    const pid = child.pid ?? 0;
    writeFileSync(join(dir, `lock.${pid}-${startOf(pid)}`), "");
    writeFileSync(join(dir, "log.jsonl"), "");
    try {
      assertEquals(takeLock(join(dir, "lock")), { heldBy: `process ${pid}` });
      const other = takeLock(join(dir, "other"));
      assert("release" in other);
      other.release();
    } finally {
      child.kill("SIGKILL");
      await gone;
    }
    const free = takeLock(join(dir, "lock"));
    assert("release" in free);
    free.release();
    assertEquals(readdirSync(dir), ["log.jsonl"]);
  });

  const dead: readonly (readonly [string, string])[] = [
    ["a process that is gone", "lock.999999999-1"],
    ["a process whose number somebody else has now", `lock.${process.pid}-1`],
    ["nobody", "lock."],
    ["no number", "lock.abc-1"],
  ];
  for (const [name, file] of dead) {
    test(`takes over the claim of ${name}`, () => {
      writeFileSync(join(dir, file), "");
      const lock = takeLock(join(dir, "lock"));
      assert("release" in lock);
      assertEquals(readdirSync(dir).includes(file), false);
      lock.release();
      assertEquals(readdirSync(dir), []);
    });
  }
});
