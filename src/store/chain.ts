// The hash chain of a session log: how a line is sealed, and what a check of the bytes finds.
import { sha256 } from "../disk/sha256.ts";
import type { Draft, Event } from "../core/event.ts";
import { firstHash } from "../core/session.ts";

const seal = ',"hash":"';
const newline = 0x0a;

/** The line (newline included) and the event for a draft that follows `seq` and `prev`. */
export function sealEvent(
  draft: Draft,
  seq: number,
  prev: string,
): { readonly line: Uint8Array; readonly event: Event } {
  const { ts, session, turn, type, data } = draft;
  const open = { seq, ts, session, ...(turn === undefined ? {} : { turn }), type, data, prev };
  const body = Buffer.from(JSON.stringify(open).slice(0, -1), "utf8");
  const hash = sha256(body);
  const line = Buffer.concat([body, Buffer.from(`${seal}${hash}"}\n`, "utf8")]);
  return { line, event: { ...open, hash } as unknown as Event };
}

export type ChainReport = {
  readonly events: readonly Event[];
  /** Bytes up to and including the last good line. */
  readonly goodBytes: number;
  /** Bytes after the last newline: a write that was cut off. */
  readonly tornBytes: number;
  /** The first line that does not hold; nothing after it is read. */
  readonly damage?: { readonly line: number; readonly message: string };
};

/** Reads a whole log and checks each line's form, number, link and hash. */
export function checkChain(bytes: Uint8Array): ChainReport {
  const events: Event[] = [];
  let prev = firstHash;
  let offset = 0;
  while (offset < bytes.length) {
    const end = bytes.indexOf(newline, offset);
    if (end < 0) break;
    const checked = checkLine(bytes.subarray(offset, end), events.length + 1, prev);
    if (typeof checked === "string") {
      // A last line that is complete but wrong was not cut off: it was changed.
      return {
        events,
        goodBytes: offset,
        tornBytes: 0,
        damage: { line: events.length + 1, message: checked },
      };
    }
    events.push(checked);
    prev = checked.hash;
    offset = end + 1;
  }
  return { events, goodBytes: offset, tornBytes: bytes.length - offset };
}

function checkLine(line: Uint8Array, seq: number, prev: string): Event | string {
  const buffer = Buffer.from(line.buffer, line.byteOffset, line.byteLength);
  const at = buffer.length - seal.length - 66;
  if (
    at <= 0 || buffer.toString("latin1", at, at + seal.length) !== seal ||
    !buffer.toString("latin1").endsWith('"}')
  ) {
    return "not a sealed event";
  }
  const hash = buffer.toString("latin1", at + seal.length, buffer.length - 2);
  if (sha256(buffer.subarray(0, at)) !== hash) return "the hash does not fit the line";
  let event: Event;
  try {
    event = JSON.parse(buffer.toString("utf8"));
  } catch {
    return "not JSON";
  }
  if (event.seq !== seq) return `the event has seq ${event.seq}, expected ${seq}`;
  if (event.prev !== prev) return "the event does not follow the one before it";
  return event;
}
