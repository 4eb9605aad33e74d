// What is left when a process that writes a session is ended from outside.
import { afterEach, beforeEach, describe, test } from "bun:test";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LogFailure } from "../../src/agent/ports.ts";
import { openFileLock } from "../../src/session/file_lock.ts";
import { fileStore } from "../../src/store/file_store.ts";
import { createLog } from "../../src/store/session_log.ts";
import { draftOf } from "./conformance.ts";
import { crash, write, writerCommand } from "../support/crashes.ts";

let dir = "";
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "writ-crash-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

describe("a writer that is ended by SIGKILL", () => {
  test("sixty times at any moment loses nothing that was acknowledged, and its session goes on", async () => {
    const { kills, acknowledged, faults } = await crash(60, 1);
    assertEquals([kills, faults], [60, []]);
    assert(acknowledged > 200, `${acknowledged}`);
  });
});

describe("h-sl-04: two processes resume one session of ten events", () => {
  beforeEach(async () => {
    const { log } = await createLog(fileStore({ dir }), "s1");
    for (let n = 0; n < 10; n++) log.append(draftOf(`event ${n}`));
    await log.close();
  });

  /** Two that start at once and write until they are ended; the one that has the session, and the end of the other. */
  async function race() {
    const [program, ...args] = writerCommand();
    const both = [1, 2].map(() =>
      spawn(program, [...args, dir, "s1", "1000000", "1"], { stdio: ["ignore", "pipe", "inherit"] })
    );
    const said = both.map((child) => {
      let text = "";
      child.stdout.on("data", (piece) => text = text.length < 1000 ? text + piece : text);
      return () => text;
    });
    const codes = both.map((child) => new Promise<number | null>((resolve) => child.on("close", resolve)));
    const loser = await Promise.race(codes.map((code, i) => code.then(() => i)));
    const winner = 1 - loser;
    return {
      refused: { code: await codes[loser], said: said[loser]?.() ?? "" },
      pid: both[winner]?.pid ?? 0,
      won: said[winner]?.().startsWith("open 10\n"),
      async kill() {
        both[winner]?.kill("SIGKILL");
        await codes[winner];
      },
    };
  }

  test("exactly one gets it, the other is told whose it is within 500 ms; after SIGKILL the next try succeeds at once", async () => {
    const { refused, pid, won, kill } = await race();
    try {
      assertEquals([won, refused.code], [true, 8]);
      assertEquals(
        refused.said,
        `failed session_busy: session \`s1\` is open in process ${pid}; end that first\n`,
      );
      const lock = await openFileLock();
      const store = fileStore({ dir, ...(lock === undefined ? {} : { lock }) });
      let fastest = Infinity;
      for (let n = 0; n < 3; n++) {
        const started = performance.now();
        const error = await assertRejects(() => store.claim("s1"), LogFailure);
        fastest = Math.min(fastest, performance.now() - started);
        assertStringIncludes(error.message, `is open in process ${pid}`);
      }
      assert(fastest < 500, `${fastest} ms`);
    } finally {
      await kill();
    }
    const next = await write([...writerCommand(), dir, "s1", "1", "1"]);
    assertEquals([next.failed, next.done], [[], true], next.stderr);
  });
});
