// What can be had back from a log that does not hold, and the repair that keeps the damaged file aside.
import { existsSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { replay } from "../agent/open.ts";
import { LogFailure } from "../agent/ports.ts";
import { writeWhole } from "../disk/whole_file.ts";
import type { Draft, Event, EventData } from "../core/event.ts";
import { checkChain, linesOf, noEvents, readLine, sealEvent } from "./chain.ts";
import { readHead, writeHead } from "./head_file.ts";
import { cannot, logPath } from "./session_files.ts";
import { type LockOptions, openLocked } from "./session_lock.ts";
import type { Sealed } from "./store.ts";

const mark = Buffer.from('{"seq":');
const closing = Buffer.from('"}');
/** So many beginnings of events are tried in a line that is none. */
const mostMarks = 16;

/**
 * The events from the first on, as far as they follow each other by their hashes, wherever in the file they stand: lines that
 * changed places, stand twice, are glued to each other or to garbage are found again.
 */
export function salvage(bytes: Uint8Array): readonly Sealed[] {
  const followers = new Map<string, Sealed>();
  for (const piece of pieces(bytes)) {
    const event = readLine(piece);
    if (typeof event === "string" || followers.has(event.prev)) continue;
    followers.set(event.prev, { event, line: Buffer.concat([piece, Buffer.from("\n")]) });
  }
  const found: Sealed[] = [];
  for (let last: { readonly seq: number; readonly hash: string } = noEvents;;) {
    const next = followers.get(last.hash);
    if (next === undefined || next.event.seq !== last.seq + 1) return found;
    found.push(next);
    last = next.event;
  }
}

function* pieces(bytes: Uint8Array): Generator<Uint8Array> {
  let end = 0;
  for (const [start, stop] of linesOf(bytes)) {
    yield* piecesOf(bytes.subarray(start, stop));
    end = stop + 1;
  }
  if (end < bytes.length) yield* piecesOf(bytes.subarray(end));
}

function* piecesOf(line: Uint8Array): Generator<Uint8Array> {
  if (typeof readLine(line) !== "string") return yield line;
  const buffer = Buffer.from(line.buffer, line.byteOffset, line.byteLength);
  const starts: number[] = [];
  for (
    let at = buffer.indexOf(mark);
    at >= 0 && starts.length < mostMarks;
    at = buffer.indexOf(mark, at + 1)
  ) {
    starts.push(at);
  }
  const last = buffer.lastIndexOf(closing);
  for (const [i, start] of starts.entries()) {
    for (const end of [...starts.slice(i + 1), ...(last < 0 ? [] : [last + closing.length])]) {
      yield line.subarray(start, end);
    }
  }
}

export type Repair = {
  readonly kept: number;
  /** Seqs that are known to have been recorded and are gone. */
  readonly lost: number;
  /** Bytes that belong to no event that was kept. */
  readonly bytes: number;
  /** The log as it was. */
  readonly savedAs: string;
};

/**
 * Makes a log that does not hold one that does: what can be had back, and `session.recovered` behind it, which says what is
 * missing. The damaged file stays, under another name. Undefined: the log holds, and nothing was done. Its head is not signed:
 * a repair proves nothing. `look`: only says what would be done. Throws LogFailure.
 */
export function repairLog(
  options: LockOptions & { readonly dir: string; readonly ts: string; readonly look?: boolean },
  id: string,
): Repair | undefined {
  const path = logPath(options.dir, id);
  const { file, release } = openLocked(options, id, path);
  try {
    const bytes = readFileSync(file);
    const head = readHead(dirname(path));
    const report = checkChain(bytes);
    const whole = report.damage === undefined && report.tornBytes === 0;
    if (whole && (head?.seq ?? 0) <= report.events.length) return undefined;
    const kept = salvage(bytes);
    const known = Math.max(head?.seq ?? 0, highestSeq(bytes));
    const repair = {
      kept: kept.length,
      lost: Math.max(0, known - kept.length),
      bytes: Math.max(0, bytes.length - kept.reduce((sum, s) => sum + s.line.length, 0)),
      savedAs: freeName(`${path}.damaged`),
    };
    if (kept.length === 0) {
      throw new LogFailure("log_damaged", `${path}: no event from the first on is left; it is kept as it is`);
    }
    if (options.look === true) return repair;
    writeWhole(repair.savedAs, bytes);
    replaceLog(path, id, kept, repair, options.ts, (head?.epoch ?? 0) + 1);
    return repair;
  } catch (error) {
    throw error instanceof LogFailure ? error : cannot("repair", path, error);
  } finally {
    release();
  }
}

function replaceLog(
  path: string,
  id: string,
  kept: readonly Sealed[],
  { bytes, savedAs, lost }: Repair,
  ts: string,
  epoch: number,
): void {
  const events = kept.map((s) => s.event);
  const { turn } = replay(events);
  const data: EventData["session.recovered"] = { bytes, savedAs, ...(lost === 0 ? {} : { lost }) };
  const draft: Draft = {
    ts,
    session: id,
    ...(turn.open ? { turn: turn.number } : {}),
    type: "session.recovered",
    data,
  };
  const tip: Pick<Event, "seq" | "hash"> = events.at(-1) ?? noEvents;
  const mended = sealEvent(draft, tip.seq + 1, tip.hash);
  const content = Buffer.concat([...kept, mended].map((s) => s.line));
  writeWhole(path, content);
  const { seq, hash } = mended.event;
  writeHead(dirname(path), { session: id, epoch, seq, hash, size: content.length });
}

function highestSeq(bytes: Uint8Array): number {
  let highest = 0;
  for (const piece of pieces(bytes)) {
    const event = readLine(piece);
    if (typeof event !== "string") highest = Math.max(highest, event.seq);
  }
  return highest;
}

function freeName(base: string): string {
  for (let n = 1;; n++) {
    const name = `${base}-${n}`;
    if (!existsSync(name)) return name;
  }
}
