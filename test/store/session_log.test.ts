import { afterEach, beforeEach, describe, test } from "bun:test";
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LogFailure } from "../../src/agent/ports.ts";
import type { Draft } from "../../src/core/event.ts";
import { checkChain } from "../../src/store/chain.ts";
import { createLog, listSessions, readFirstEvent, readLog, resumeLog } from "../../src/store/session_log.ts";

let dir = "";
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "writ-log-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function draft(text: string): Draft {
  return { ts: "2026-01-01T00:00:00.000Z", session: "s1", turn: 1, type: "model.delta", data: { text } };
}

function written(texts: readonly string[]): string {
  const { log } = createLog(dir, "s1");
  for (const text of texts) log.append(draft(text));
  log.sync();
  log.close();
  return log.path;
}

describe("session log", () => {
  test("append() seals each event with its number, the hash before it and its own hash", () => {
    const { log } = createLog(dir, "s1");
    const first = log.append(draft("a"));
    const second = log.append(draft("b"));
    log.close();
    assertEquals([first.seq, second.seq], [1, 2]);
    assertEquals(first.prev, "0".repeat(64));
    assertEquals(second.prev, first.hash);
    const report = checkChain(readLog(log.path));
    assertEquals(report.events, [first, second]);
    assertEquals([report.tornBytes, report.damage], [0, undefined]);
  });

  test("resumeLog() goes on with the chain", () => {
    written(["a", "b"]);
    const { log, events, recovered } = resumeLog(dir, "s1");
    assertEquals([events.length, recovered], [2, undefined]);
    log.append(draft("c"));
    log.close();
    assertEquals(checkChain(readLog(log.path)).events.length, 3);
  });

  test("the log and its folder are readable by their owner only", () => {
    const path = written(["a"]);
    assertEquals(statSync(path).mode & 0o777, 0o600);
    assertEquals(statSync(join(dir, "s1")).mode & 0o777, 0o700);
  });

  test("resumeLog() saves a torn tail aside and cuts it, for every place of the cut", () => {
    const path = written(["first", "second 汉字"]);
    const whole = readFileSync(path);
    const firstEnd = whole.indexOf(10) + 1;
    for (let cut = firstEnd + 1; cut < whole.length; cut++) {
      writeFileSync(path, whole.subarray(0, cut));
      const { log, events, recovered } = resumeLog(dir, "s1");
      log.close();
      assertEquals(events.length, 1);
      assertEquals(recovered?.bytes, cut - firstEnd);
      assertEquals(readFileSync(recovered?.savedAs ?? "").length, cut - firstEnd);
      assertEquals(readFileSync(path).length, firstEnd);
    }
  });

  test("resumeLog() refuses a log in which any one byte before the tail was changed", () => {
    const path = written(["first", "second"]);
    const whole = readFileSync(path);
    for (let at = 0; at < whole.length - 1; at++) {
      const changed = new Uint8Array(whole);
      changed[at] = (changed[at] ?? 0) ^ 1;
      if (changed[at] === 10 || whole[at] === 10) continue;
      writeFileSync(path, changed);
      const report = checkChain(readLog(path));
      assert(report.damage !== undefined, `byte ${at} was changed unnoticed`);
    }
    const error = assertThrows(() => resumeLog(dir, "s1"), LogFailure);
    assertStringIncludes(error.message, "log.jsonl:2: ");
  });

  test("dropped and swapped lines are damage", () => {
    const path = written(["a", "b", "c"]);
    const lines = readFileSync(path, "utf8").trimEnd().split("\n");
    const [a = "", b = "", c = ""] = lines;
    for (
      const [name, kept] of [["dropped", [a, c]], ["swapped", [b, a, c]], ["first dropped", [b, c]]] as const
    ) {
      const report = checkChain(Buffer.from(`${kept.join("\n")}\n`));
      assert(report.damage !== undefined, name);
    }
  });

  test("a session that is open elsewhere is refused until it is closed", () => {
    const { log } = createLog(dir, "s1");
    log.append(draft("a"));
    const error = assertThrows(() => resumeLog(dir, "s1"), LogFailure);
    assertStringIncludes(error.message, "is open in process");
    log.close();
    resumeLog(dir, "s1").log.close();
  });

  test("a lock whose holder no longer lives is taken over", () => {
    written(["a"]);
    writeFileSync(join(dir, "s1", "lock.999999-12345"), "");
    resumeLog(dir, "s1").log.close();
    assertEquals(readdirSync(join(dir, "s1")), ["log.jsonl"]);
  });

  test("unknown ids and ids that are paths give no_session", () => {
    for (const id of ["nope", "../s1", "", "a/b", "."]) {
      const error = assertThrows(() => resumeLog(dir, id), LogFailure) as LogFailure;
      assertEquals(error.code, "no_session");
    }
  });

  test("readFirstEvent() gives the first event, whatever comes after it", () => {
    const path = written(["a", "x".repeat(200_000)]);
    const [first] = checkChain(readLog(path)).events;
    assertEquals(readFirstEvent(path), first);
    writeFileSync(path, `${readFileSync(path, "utf8").split("\n")[0]}\nnot an event\n`);
    assertEquals(readFirstEvent(path), first);
    for (const broken of ["", "no line", "not an event\n"]) {
      writeFileSync(path, broken);
      assertEquals(readFirstEvent(path), undefined);
    }
  });

  test("listSessions() knows what is there", () => {
    assertEquals(listSessions(join(dir, "none")), []);
    written(["a"]);
    assertEquals(listSessions(dir).map((s) => s.id), ["s1"]);
  });
});
