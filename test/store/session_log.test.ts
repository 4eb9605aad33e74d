import { afterEach, beforeEach, describe, test } from "bun:test";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LogFailure } from "../../src/agent/ports.ts";
import type { Draft } from "../../src/core/event.ts";
import { checkChain } from "../../src/store/chain.ts";
import { fileStore } from "../../src/store/file_store.ts";
import { listSessions, readEnd, readFirstEvent, readLog, readStart } from "../../src/store/session_files.ts";
import { createLog, resumeLog } from "../../src/store/session_log.ts";
import { draftOf } from "./conformance.ts";
import type { Appended, Store } from "../../src/store/store.ts";

let dir = "";
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "writ-log-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function draft(text: string): Draft {
  return { ts: "2026-01-01T00:00:00.000Z", session: "s1", turn: 1, type: "model.delta", data: { text } };
}

async function written(texts: readonly string[]): Promise<string> {
  const { log } = await createLog(fileStore({ dir }), "s1");
  for (const text of texts) log.append(draft(text));
  await log.sync();
  await log.close();
  return join(dir, "s1/log.jsonl");
}

const resume = () => resumeLog(fileStore({ dir }), "s1");

describe("session log", () => {
  test("append() seals each event with its number, the hash before it and its own hash", async () => {
    const { log } = await createLog(fileStore({ dir }), "s1");
    const first = log.append(draft("a"));
    const second = log.append(draft("b"));
    await log.close();
    assertEquals([first.seq, second.seq], [1, 2]);
    assertEquals(first.prev, "0".repeat(64));
    assertEquals(second.prev, first.hash);
    const report = checkChain(readLog(join(dir, "s1/log.jsonl")));
    assertEquals(report.events, [first, second]);
    assertEquals([report.tornBytes, report.damage], [0, undefined]);
  });

  test("resumeLog() goes on with the chain", async () => {
    await written(["a", "b"]);
    const { log, events, recovered } = await resume();
    assertEquals([events.length, recovered], [2, undefined]);
    log.append(draft("c"));
    await log.close();
    assertEquals(checkChain(readLog(join(dir, "s1/log.jsonl"))).events.length, 3);
  });

  test("the log and its folder are readable by their owner only", async () => {
    const path = await written(["a"]);
    assertEquals(statSync(path).mode & 0o777, 0o600);
    assertEquals(statSync(join(dir, "s1")).mode & 0o777, 0o700);
  });

  test("resumeLog() saves a torn tail aside and cuts it, for every place of the cut", async () => {
    const path = await written(["first", "second 汉字"]);
    const whole = readFileSync(path);
    const firstEnd = whole.indexOf(10) + 1;
    for (let cut = firstEnd + 1; cut < whole.length; cut++) {
      writeFileSync(path, whole.subarray(0, cut));
      const { log, events, recovered } = await resume();
      await log.close();
      assertEquals(events.length, 1);
      assertEquals(recovered?.bytes, cut - firstEnd);
      assertEquals(readFileSync(recovered?.savedAs ?? "").length, cut - firstEnd);
      assertEquals(readFileSync(path).length, firstEnd);
    }
  });

  test("resumeLog() refuses a log in which any one byte before the tail was changed", async () => {
    const path = await written(["first", "second"]);
    const whole = readFileSync(path);
    for (let at = 0; at < whole.length - 1; at++) {
      const changed = new Uint8Array(whole);
      changed[at] = (changed[at] ?? 0) ^ 1;
      if (changed[at] === 10 || whole[at] === 10) continue;
      writeFileSync(path, changed);
      const report = checkChain(readLog(path));
      assert(report.damage !== undefined, `byte ${at} was changed unnoticed`);
    }
    const error = await assertRejects(() => resume(), LogFailure);
    assertStringIncludes(error.message, "log.jsonl:2: ");
  });

  test("dropped and swapped lines are damage", async () => {
    const path = await written(["a", "b", "c"]);
    const lines = readFileSync(path, "utf8").trimEnd().split("\n");
    const [a = "", b = "", c = ""] = lines;
    for (
      const [name, kept] of [["dropped", [a, c]], ["swapped", [b, a, c]], ["first dropped", [b, c]]] as const
    ) {
      const report = checkChain(Buffer.from(`${kept.join("\n")}\n`));
      assert(report.damage !== undefined, name);
    }
  });

  test("a session that is open elsewhere is refused until it is closed", async () => {
    const { log } = await createLog(fileStore({ dir }), "s1");
    log.append(draft("a"));
    const error = await assertRejects(() => resume(), LogFailure);
    assertStringIncludes(error.message, "is open in process");
    await log.close();
    await (await resume()).log.close();
  });

  test("a lock whose holder no longer lives is taken over", async () => {
    await written(["a"]);
    writeFileSync(join(dir, "s1", "lock.999999-12345"), "");
    await (await resume()).log.close();
    assertEquals(readdirSync(join(dir, "s1")).sort(), ["head.json", "log.jsonl"]);
  });

  test("unknown ids and ids that are paths give no_session", async () => {
    for (const id of ["nope", "../s1", "", "a/b", "."]) {
      const error = await assertRejects(() => resumeLog(fileStore({ dir }), id), LogFailure) as LogFailure;
      assertEquals(error.code, "no_session");
    }
  });

  test("readFirstEvent() gives the first event, whatever comes after it", async () => {
    const path = await written(["a", "x".repeat(200_000)]);
    const [first] = checkChain(readLog(path)).events;
    assertEquals(readFirstEvent(path), first);
    writeFileSync(path, `${readFileSync(path, "utf8").split("\n")[0]}\nnot an event\n`);
    assertEquals(readFirstEvent(path), first);
    for (const broken of ["", "no line", "not an event\n"]) {
      writeFileSync(path, broken);
      assertEquals(readFirstEvent(path), undefined);
    }
  });

  test("readStart() reads up to what is looked for, readEnd() how it ends", async () => {
    const long = "x".repeat(200_000);
    const path = await written(["a", "b", long, "c"]);
    const { events } = checkChain(readLog(path));
    const last = events[3]!;
    assertEquals(readStart(path, (e) => e.seq === 2), events.slice(0, 2));
    assertEquals(readStart(path, () => false), events);
    const size = readFileSync(path).length;
    assertEquals(readEnd(path), { size, tornBytes: 0, last, inTurn: last });
    writeFileSync(path, `${readFileSync(path, "utf8")}{"seq":5`);
    assertEquals(readEnd(path), { size: size + 8, tornBytes: 8, last, inTurn: last });
    writeFileSync(path, "garbage\n");
    assertEquals(readEnd(path), { size: 8, tornBytes: 0 });
    writeFileSync(path, "");
    assertEquals(readEnd(path), { size: 0, tornBytes: 0 });
  });

  test("listSessions() knows what is there", async () => {
    assertEquals(listSessions(join(dir, "none")), []);
    await written(["a"]);
    assertEquals(listSessions(dir).map((s) => s.id), ["s1"]);
  });
});

describe("a log in a store that answers later", () => {
  // As a data base would: every answer comes after the caller has gone on.
  const later = (answers: readonly (Appended | Error)[]): Store => {
    let next = 0;
    return {
      ...fileStore({ dir }),
      create: async () => ({ epoch: 1, events: [] }),
      append: async () => {
        const answer = answers[next++] ?? { kind: "appended", seq: next };
        await new Promise((resolve) => setTimeout(resolve, 5));
        if (answer instanceof Error) throw answer;
        return answer;
      },
      sync: async () => {},
      release: async () => {},
    };
  };
  const rows: readonly (readonly [string, Appended | Error, string])[] = [
    ["somebody else went on", { kind: "conflict", lastSeq: 7 }, "has gone on elsewhere, up to event 7"],
    ["it was taken over", { kind: "fenced", epoch: 2 }, "was taken over by another process"],
    ["it cannot be reached", new LogFailure("log_unwritable", "no connection"), "no connection"],
  ];
  for (const [name, answer, says] of rows) {
    test(`fails at the sync, and for good, when ${name}`, async () => {
      const { log } = await createLog(later([{ kind: "appended", seq: 1 }, answer]), "s1");
      log.append(draft("a"));
      await log.sync();
      log.append(draft("b"));
      for (let again = 0; again < 2; again++) {
        const error = await assertRejects(() => log.sync(), LogFailure) as LogFailure;
        assertStringIncludes(error.message, says);
      }
      const error = await assertRejects(async () => log.append(draft("c")), LogFailure) as LogFailure;
      assertStringIncludes(error.message, says);
      await log.close();
    });
  }

  test("waits for every answer at the sync", async () => {
    const { log } = await createLog(later([]), "s1");
    for (const text of ["a", "b", "c"]) log.append(draft(text));
    await log.sync();
    await log.close();
  });
});

describe("the ends of turns", () => {
  test("are told once each, when they are on disk, and again when telling failed", async () => {
    const told: number[] = [];
    let broken = true;
    const { log } = await createLog(fileStore({ dir }), "s1", (head) => {
      if (broken) throw new LogFailure("log_unwritable", "no room for heads");
      told.push(head.seq);
    });
    log.append(draftOf("a"));
    await log.sync();
    const first = log.append(draftOf("", "turn.completed"));
    await assertRejects(() => log.sync(), LogFailure, "no room for heads");
    broken = false;
    const second = log.append(draftOf("", "turn.completed"));
    await log.sync();
    await log.sync();
    assertEquals(told, [first.seq, second.seq]);
    await log.close();
  });
});
