import { afterEach, beforeEach, describe, test } from "bun:test";
import { assertEquals } from "@std/assert";
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decideBusy, type Load } from "../../src/server/busy.ts";
import type { NewTurn } from "../../src/server/host.ts";
import { logLines } from "../../src/server/log_lines.ts";

const idle: Load = {
  running: false,
  queued: 0,
  mostQueued: 2,
  turns: 0,
  mostTurns: 4,
  workspaceBusy: false,
};

describe("decideBusy()", () => {
  const cases: readonly (readonly [string, NewTurn["onBusy"], Partial<Load>, string])[] = [
    ["idle", "reject", {}, "start"],
    ["idle", "queue", {}, "start"],
    ["idle", "interrupt", {}, "start"],
    ["running", "reject", { running: true, turns: 1 }, "session-busy"],
    ["running", "queue", { running: true, turns: 1 }, "queue"],
    ["running", "interrupt", { running: true, turns: 1 }, "interrupt"],
    ["running, with others that wait", "interrupt", { running: true, queued: 2, turns: 4 }, "interrupt"],
    ["others wait for room", "reject", { queued: 1 }, "session-busy"],
    ["others wait for room", "queue", { queued: 1 }, "queue"],
    ["the queue is full", "queue", { running: true, queued: 2 }, "queue-full"],
    ["too many turns", "reject", { turns: 4 }, "too-many-turns"],
    ["too many turns", "queue", { turns: 4 }, "queue"],
    ["too many turns", "interrupt", { turns: 4 }, "too-many-turns"],
    ["the workspace is busy", "reject", { turns: 1, workspaceBusy: true }, "workspace-busy"],
    ["the workspace is busy", "queue", { turns: 1, workspaceBusy: true }, "queue"],
    ["the workspace is busy", "interrupt", { turns: 1, workspaceBusy: true }, "workspace-busy"],
  ];
  for (const [name, onBusy, load, wanted] of cases) {
    test(`${name}, ${onBusy}: ${wanted}`, () => {
      const decision = decideBusy(onBusy, { ...idle, ...load });
      assertEquals(decision.kind === "refuse" ? decision.code : decision.kind, wanted);
    });
  }
});

describe("logLines()", () => {
  let folder: string;
  beforeEach(() => folder = mkdtempSync(join(tmpdir(), "writ-lines-")));
  afterEach(() => rmSync(folder, { recursive: true }));

  const line = (seq: number, type = "model.delta") =>
    `{"seq":${seq},"ts":"t","session":"s","turn":1,"type":"${type}","data":{"text":"${
      "ä".repeat(seq * 7 % 900)
    }"}}`;

  test("reads from every place to the end, whatever is read at once", () => {
    const path = join(folder, "log.jsonl");
    const all = Array.from({ length: 300 }, (_, n) => line(n + 1));
    writeFileSync(path, all.map((l) => `${l}\n`).join(""));
    const lines = logLines(path);
    for (
      const most of [{ events: 1, bytes: 1e6 }, { events: 7, bytes: 1e6 }, { events: 1000, bytes: 3000 }]
    ) {
      for (const start of [0, 1, 63, 64, 65, 128, 299, 300]) {
        const read: string[] = [];
        for (let at = start;;) {
          const some = lines.read(at, most);
          if (some.length === 0) break;
          read.push(...some.map((l) => l.line));
          at = some.at(-1)!.seq;
        }
        assertEquals(read, all.slice(start));
      }
    }
  });

  test("gives no half line, and the whole one once it is there", () => {
    const path = join(folder, "log.jsonl");
    writeFileSync(path, `${line(1)}\n${line(2).slice(0, 20)}`);
    const lines = logLines(path);
    const most = { events: 10, bytes: 1e6 };
    assertEquals(lines.read(0, most), [{ seq: 1, type: "model.delta", turn: 1, line: line(1) }]);
    assertEquals(lines.read(1, most), []);
    appendFileSync(path, `${line(2).slice(20)}\n`);
    assertEquals(lines.read(1, most).map((l) => l.line), [line(2)]);
  });

  test("of a log that is gone has none", () => {
    assertEquals(logLines(join(folder, "none")).read(0, { events: 1, bytes: 1 }), []);
  });
});
