// The hash chain of a session log: how a line is sealed, and what a check of the bytes finds.
import { sha256 } from "../disk/sha256.ts";
import type { Draft, Event } from "../core/event.ts";
import { firstHash } from "../core/session.ts";
import { escapeJson } from "../core/text.ts";
import type { Sealed } from "./store.ts";

const seal = ',"hash":"';
const newline = 0x0a;
const closing = Buffer.from('"}');

/** The line (newline included; safe to print) and the event for a draft that follows `seq` and `prev`. */
export function sealEvent(draft: Draft, seq: number, prev: string): Sealed {
  const { ts, session, turn, type, data } = draft;
  const open = { seq, ts, session, ...(turn === undefined ? {} : { turn }), type, data, prev };
  const body = Buffer.from(escapeJson(JSON.stringify(open)).slice(0, -1), "utf8");
  const hash = sha256(body);
  const line = Buffer.concat([body, Buffer.from(`${seal}${hash}"}\n`, "utf8")]);
  return { line, event: { ...open, hash } as unknown as Event };
}

export type Damage = { readonly line: number; readonly message: string };
export type ChainReport = {
  readonly events: readonly Event[];
  /** Bytes up to and including the last good line. */
  readonly goodBytes: number;
  /** Bytes after the last newline: a write that was cut off. */
  readonly tornBytes: number;
  /** The first line that does not hold; nothing after it is read. */
  readonly damage?: Damage;
};

/** Where a log stands: the last event. */
export type Tip = { readonly seq: number; readonly hash: string };
export const noEvents: Tip = { seq: 0, hash: firstHash };

/** Reads a log, or what follows `after` of one, and checks each line's form, number, link and hash. */
export function checkChain(bytes: Uint8Array, after: Tip = noEvents): ChainReport {
  const events: Event[] = [];
  let last = after;
  let offset = 0;
  while (offset < bytes.length) {
    const end = bytes.indexOf(newline, offset);
    if (end < 0) break;
    const next = nextEvent(bytes.subarray(offset, end), last);
    if (typeof next === "string") {
      // A last line that is complete but wrong was not cut off: it was changed.
      return { events, goodBytes: offset, tornBytes: 0, damage: { line: last.seq + 1, message: next } };
    }
    events.push(next);
    last = next;
    offset = end + 1;
  }
  return { events, goodBytes: offset, tornBytes: bytes.length - offset };
}

const mostDamages = 20;

/** Every line that does not hold or does not follow the last that does, in order; at most twenty. */
export function damagesOf(bytes: Uint8Array): readonly Damage[] {
  const damages: Damage[] = [];
  let last = noEvents;
  let line = 0;
  let unreadable = 0;
  for (const [start, end] of linesOf(bytes)) {
    line++;
    const read = readLine(bytes.subarray(start, end));
    // What a line that cannot be read stood for is not missed once more in the next one.
    const goesOn = typeof read !== "string" && unreadable > 0 && read.seq === last.seq + 1 + unreadable;
    const message = typeof read === "string" ? read : goesOn ? undefined : linkFault(read, last);
    if (message !== undefined) damages.push({ line, message });
    if (damages.length === mostDamages) break;
    unreadable = typeof read === "string" ? unreadable + 1 : 0;
    // What comes after a gap is measured by itself: one gap is one finding.
    if (typeof read !== "string") last = read;
  }
  return damages;
}

/** Start and end of every line that a newline ends, which is not part of it. */
export function* linesOf(bytes: Uint8Array): Generator<readonly [number, number]> {
  for (let start = 0; start < bytes.length;) {
    const end = bytes.indexOf(newline, start);
    if (end < 0) return;
    yield [start, end];
    start = end + 1;
  }
}

/** The event that a line holds, its newline not included, or why it holds none. Says nothing about its place. */
export function readLine(line: Uint8Array): Event | string {
  const buffer = Buffer.from(line.buffer, line.byteOffset, line.byteLength);
  const at = buffer.length - seal.length - 66;
  if (
    at <= 0 || buffer.toString("latin1", at, at + seal.length) !== seal ||
    !buffer.subarray(buffer.length - 2).equals(closing)
  ) {
    return "not a sealed event";
  }
  const hash = buffer.toString("latin1", at + seal.length, buffer.length - 2);
  if (sha256(buffer.subarray(0, at)) !== hash) return "the hash does not fit the line";
  try {
    return JSON.parse(buffer.toString("utf8"));
  } catch {
    return "not JSON";
  }
}

function nextEvent(line: Uint8Array, last: Tip): Event | string {
  const event = readLine(line);
  return typeof event === "string" ? event : linkFault(event, last) ?? event;
}

function linkFault(event: Event, last: Tip): string | undefined {
  if (event.seq !== last.seq + 1) return `the event has seq ${event.seq}, expected ${last.seq + 1}`;
  return event.prev === last.hash ? undefined : "the event does not follow the one before it";
}
