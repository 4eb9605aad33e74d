// What becomes of a log that was changed in any way: nothing goes unnoticed, nothing is cut in silence.
import { afterEach, beforeEach, describe, test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LogFailure } from "../../src/agent/ports.ts";
import type { Event } from "../../src/core/event.ts";
import { checkChain, damagesOf } from "../../src/store/chain.ts";
import { fileStore } from "../../src/store/file_store.ts";
import { readHead, signer } from "../../src/store/head_file.ts";
import { repairLog, salvage } from "../../src/store/salvage.ts";
import { createLog, resumeLog } from "../../src/store/session_log.ts";
import { type Verdict, verifySession, type Witness } from "../../src/store/verify.ts";
import { draftOf } from "./conformance.ts";

let dir = "";
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "writ-damage-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const path = () => join(dir, "s1/log.jsonl");
const newline = Buffer.from("\n");

/** A log whose turn has ended, so that its head names its last event. */
async function written(texts: readonly string[], sign?: ReturnType<typeof signer>): Promise<Buffer> {
  const { log } = await createLog(fileStore({ dir, ...(sign === undefined ? {} : { sign }) }), "s1");
  for (const text of texts) log.append(draftOf(text));
  log.append(draftOf("", "turn.completed"));
  await log.sync();
  await log.close();
  return readFileSync(path());
}

function verify(witness: Witness = {}): Verdict {
  return verifySession(dir, { id: "s1", path: path() }, witness);
}

type Resumed = { readonly events: readonly Event[]; readonly recovered: boolean } | "refused";

async function resumed(): Promise<Resumed> {
  try {
    const { log, events, recovered } = await resumeLog(fileStore({ dir }), "s1");
    await log.close();
    return { events, recovered: recovered !== undefined };
  } catch (error) {
    if (error instanceof LogFailure && error.code === "log_damaged") return "refused";
    throw error;
  }
}

function linesOf(bytes: Buffer): readonly Buffer[] {
  return bytes.toString("latin1").trimEnd().split("\n").map((l) => Buffer.from(`${l}\n`, "latin1"));
}

describe("every truncation", () => {
  test("is found by verify; a resume gives the whole events before it and says so, or refuses", async () => {
    const whole = await written(["first", "second 汉字", "third"]);
    const { events } = checkChain(whole);
    const head = readFileSync(join(dir, "s1/head.json"));
    const borders = new Set([0]);
    for (let at = 0, sum = 0; at < 4; at++) borders.add(sum += linesOf(whole)[at]?.length ?? 0);
    for (let cut = 0; cut < whole.length; cut++) {
      writeFileSync(path(), whole.subarray(0, cut));
      writeFileSync(join(dir, "s1/head.json"), head);
      assertEquals(verify().result, "damaged", `cut at ${cut}`);
      // Resuming writes and syncs: around the borders and one of seven are enough.
      if (cut % 7 !== 0 && ![cut - 1, cut, cut + 1].some((at) => borders.has(at))) continue;
      const before = [...borders].filter((b) => b <= cut).length - 1;
      assertEquals(
        await resumed(),
        borders.has(cut) ? "refused" : { events: events.slice(0, before), recovered: true },
        `cut at ${cut}`,
      );
    }
  });
});

describe("every byte that is changed", () => {
  for (const mask of [0x01, 0x80, 0xff]) {
    test(`by ${mask} is found by verify, and a resume is refused or says so`, async () => {
      const whole = await written(["first", "second 汉字"]);
      const head = readFileSync(join(dir, "s1/head.json"));
      for (let at = 0; at < whole.length; at++) {
        const changed = Buffer.from(whole);
        changed[at] = (changed[at] ?? 0) ^ mask;
        const { damage, tornBytes, events } = checkChain(changed);
        assert(damage !== undefined || tornBytes > 0, `byte ${at}`);
        // Resuming writes: one of seven is enough to see that it does what the check says.
        if (at % 7 !== 0 && at !== whole.length - 1) continue;
        writeFileSync(path(), changed);
        writeFileSync(join(dir, "s1/head.json"), head);
        assertEquals(verify().result, "damaged", `byte ${at}`);
        assertEquals(
          await resumed(),
          damage !== undefined ? "refused" : { events, recovered: true },
          `byte ${at}`,
        );
      }
    });
  }
});

type Change = {
  readonly name: string;
  readonly change: (lines: readonly Buffer[]) => readonly Buffer[];
  /** Lines that verify names. */
  readonly lines: readonly number[];
  /** Events that a repair finds again, of five. */
  readonly kept: number;
};
const nul = (count: number) => Buffer.alloc(count);
const changes: readonly Change[] = [
  { name: "a line that is gone", change: (l) => l.toSpliced(2, 1), lines: [3], kept: 2 },
  { name: "two lines that are gone", change: (l) => l.toSpliced(1, 2), lines: [2], kept: 1 },
  {
    name: "two lines that changed places",
    change: ([a, b, c, ...rest]) => [a!, c!, b!, ...rest],
    lines: [2, 3, 4],
    kept: 5,
  },
  { name: "a line that stands twice", change: (l) => l.toSpliced(1, 0, l[1]!), lines: [3], kept: 5 },
  { name: "a copy of an early line at the end", change: (l) => [...l, l[0]!], lines: [6], kept: 5 },
  {
    name: "NUL bytes as a line",
    change: (l) => l.toSpliced(3, 0, Buffer.concat([nul(300), newline])),
    lines: [4],
    kept: 5,
  },
  {
    name: "NUL bytes before an event",
    change: (l) => l.with(3, Buffer.concat([nul(40), l[3]!])),
    lines: [4],
    kept: 5,
  },
  {
    name: "NUL bytes in the place of an event",
    change: (l) => l.with(1, Buffer.concat([nul(200), newline])),
    lines: [2],
    kept: 1,
  },
  {
    name: "an event that is glued to half of one",
    change: (l) => l.with(2, Buffer.concat([l[2]!.subarray(0, 60), l[2]!])),
    lines: [3],
    kept: 5,
  },
  {
    name: "two events without the newline between them",
    change: (l) => [...l.slice(0, 1), Buffer.concat([l[1]!.subarray(0, -1), l[2]!]), ...l.slice(3)],
    lines: [2, 3],
    kept: 5,
  },
  { name: "an empty line", change: (l) => l.toSpliced(2, 0, newline), lines: [3], kept: 5 },
  {
    name: "carriage returns",
    change: (l) => l.map((x) => Buffer.concat([x.subarray(0, -1), Buffer.from("\r\n")])),
    lines: [1, 2, 3, 4, 5],
    kept: 5,
  },
];

describe("a log with", () => {
  for (const { name, change, lines, kept } of changes) {
    test(`${name}: is refused, verify names the lines, repair keeps what follows from the first event`, async () => {
      const whole = await written(["a", "b", "c", "d"]);
      const { events } = checkChain(whole);
      const damaged = Buffer.concat(change(linesOf(whole)));
      writeFileSync(path(), damaged);
      assertEquals(damagesOf(damaged).map((d) => d.line), lines);
      assertEquals(
        verify().faults.flatMap((f) => f.line ?? []),
        lines,
      );
      assertEquals(await resumed(), "refused");
      assertEquals(new Uint8Array(readFileSync(path())), new Uint8Array(damaged));

      const ts = "2026-01-02T00:00:00.000Z";
      const looked = repairLog({ dir, ts, look: true }, "s1");
      assertEquals(new Uint8Array(readFileSync(path())), new Uint8Array(damaged));
      const done = repairLog({ dir, ts }, "s1");
      assertEquals(done, looked);
      assertEquals([done?.kept, done?.lost, done?.savedAs], [kept, 5 - kept, `${path()}.damaged-1`]);
      assertEquals(new Uint8Array(readFileSync(`${path()}.damaged-1`)), new Uint8Array(damaged));
      const after = checkChain(readFileSync(path())).events;
      assertEquals(after.slice(0, -1), events.slice(0, kept));
      const last = after.at(-1);
      assert(last?.type === "session.recovered");
      assertEquals(last.data, {
        bytes: done?.bytes ?? -1,
        savedAs: `${path()}.damaged-1`,
        ...(kept === 5 ? {} : { lost: 5 - kept }),
      });
      assertEquals(verify().result, "consistent");
      assertEquals(repairLog({ dir, ts }, "s1"), undefined);
      assertEquals(await resumed(), { events: after, recovered: false });
    });
  }

  test("its end cut off at the border of an event: is refused, and repaired with the number of what is lost", async () => {
    const whole = await written(["a", "b"]);
    writeFileSync(path(), Buffer.concat(linesOf(whole).slice(0, 1)));
    assertEquals(verify().faults, [{ message: "its head names event 3, but the log ends at event 1" }]);
    assertEquals(await resumed(), "refused");
    assertEquals(repairLog({ dir, ts: "2026-01-02T00:00:00.000Z" }, "s1")?.lost, 2);
    assertEquals(verify().result, "consistent");
  });

  test("nothing left of its beginning: a repair refuses as well", async () => {
    const whole = await written(["a", "b"]);
    const rest = Buffer.concat(linesOf(whole).slice(1));
    writeFileSync(path(), rest);
    let code = "";
    try {
      repairLog({ dir, ts: "2026-01-02T00:00:00.000Z" }, "s1");
    } catch (error) {
      if (error instanceof LogFailure) code = error.code;
    }
    assertEquals(code, "log_damaged");
    assertEquals(new Uint8Array(readFileSync(path())), new Uint8Array(rest));
    assertEquals(readdirSync(join(dir, "s1")).sort(), ["head.json", "log.jsonl"]);
  });

  test("bytes that look like many events take no time", () => {
    assertEquals(salvage(Buffer.from('{"seq":'.repeat(100_000) + '"}\n')), []);
  });
});

describe("a session that is open", () => {
  test("is not repaired", async () => {
    const { log } = await createLog(fileStore({ dir }), "s1");
    log.append(draftOf("a"));
    let code = "";
    try {
      repairLog({ dir, ts: "2026-01-02T00:00:00.000Z" }, "s1");
    } catch (error) {
      if (error instanceof LogFailure) code = error.code;
    }
    assertEquals(code, "session_busy");
    await log.close();
  });
});

describe("a log that was rewritten as a whole", () => {
  // What whoever may write the folder can do: another log, sealed anew, with a head that fits.
  async function rewritten(sign?: ReturnType<typeof signer>): Promise<void> {
    rmSync(join(dir, "s1"), { recursive: true });
    await written(["a", "forged"], sign);
  }

  test("is consistent by itself: a bare chain does not prove who wrote it", async () => {
    await written(["a", "b"]);
    await rewritten();
    assertEquals(verify().result, "consistent");
  });

  test("is found by the lines that were shipped", async () => {
    const whole = await written(["a", "b"]);
    const end = checkChain(whole).events.at(-1)!;
    const heads = new Map([["s1", [{ ts: end.ts, session: "s1", seq: end.seq, hash: end.hash }]]]);
    assertEquals([verify({ heads }).result, verify({ heads }).anchoredBy], ["anchored", ["heads"]]);
    await rewritten();
    assertEquals(verify({ heads }).faults, [
      { message: "the file of heads names another event 3 than the log holds" },
    ]);
  });

  test("is not signed by who has no key, and found when it is signed with another", async () => {
    const sign = signer("the key of the operator");
    await written(["a", "b"], sign);
    assertEquals([verify({ sign }).result, verify({ sign }).anchoredBy], ["anchored", ["key"]]);
    assertEquals(verify().result, "consistent");
    await rewritten();
    assertEquals(verify({ sign }).result, "consistent");
    await rewritten(signer("another key, that of nobody"));
    assertEquals(verify({ sign }).faults, [{
      message: "its head names event 3, but is not signed with this key",
    }]);
  });

  test("back to the end of an earlier turn is found by the lines that were shipped", async () => {
    const sign = signer("the key of the operator");
    await written(["a"], sign);
    const early = [readFileSync(path()), readFileSync(join(dir, "s1/head.json"))] as const;
    const { log } = await resumeLog(fileStore({ dir, sign }), "s1");
    const end = log.append(draftOf("", "turn.completed"));
    await log.sync();
    await log.close();
    const line = {
      ts: end.ts,
      session: "s1",
      seq: end.seq,
      hash: end.hash,
      mac: sign({ ...end, session: "s1" }),
    };
    const heads = new Map([["s1", [line]]]);
    assertEquals(verify({ sign, heads }).anchoredBy, ["heads", "key"]);
    writeFileSync(path(), early[0]);
    writeFileSync(join(dir, "s1/head.json"), early[1]);
    assertEquals(verify({ sign }).result, "anchored");
    assertEquals(verify({ sign, heads }).faults, [
      { message: "the file of heads names event 3, but the log ends at event 2" },
    ]);
    assertEquals(readHead(join(dir, "s1"))?.seq, 2);
  });
});
