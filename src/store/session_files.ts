// Where sessions lie on disk, `<dir>/<id>/log.jsonl`, and how they are looked at without being claimed.
import {
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import { LogFailure } from "../agent/ports.ts";
import type { Event, SessionFacts } from "../core/event.ts";
import { codeOf, messageOf } from "../core/thrown.ts";
import { checkChain, linesOf, readLine } from "./chain.ts";

const idPattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

/** Whether this is an id and no path. */
export function isSessionId(id: string): boolean {
  return idPattern.test(id);
}

/** The log of a session; undefined when there is none. */
export function findLog(dir: string, id: string): string | undefined {
  const path = join(dir, id, "log.jsonl");
  return isSessionId(id) && existsSync(path) ? path : undefined;
}

/** The log of a session that is there; throws LogFailure `no_session`. */
export function logPath(dir: string, id: string): string {
  const path = findLog(dir, id);
  if (path !== undefined) return path;
  throw new LogFailure(
    "no_session",
    `no session \`${id}\` in ${dir} (writ session list shows what is there)`,
  );
}

/** The bytes of a session's log. Throws LogFailure. */
export function readLog(path: string): Uint8Array {
  try {
    return readFileSync(path);
  } catch (error) {
    throw cannot("read", path, error);
  }
}

export type SessionSummary = {
  readonly id: string;
  readonly path: string;
  readonly changedMs: number;
};

/** Sessions of this folder, the newest first; none where there is no folder. Throws LogFailure when it cannot be read. */
export function listSessions(dir: string): readonly SessionSummary[] {
  if (!existsSync(dir)) return [];
  let names: readonly string[];
  try {
    names = readdirSync(dir);
  } catch (error) {
    throw cannot("list", dir, error);
  }
  return names.flatMap((id): SessionSummary[] => {
    const path = findLog(dir, id);
    if (path === undefined) return [];
    try {
      const { mtimeMs } = statSync(path);
      return [{ id, path, changedMs: mtimeMs }];
    } catch {
      // Removed in between.
      return [];
    }
  }).sort((a, b) => b.changedMs - a.changedMs || (a.id < b.id ? 1 : -1));
}

/** What a session starts with is short; a longer line is no such event. */
const longestStart = 1024 * 1024;

/** The event with which a log begins, without reading the rest; undefined when it does not begin with a sound one. */
export function readFirstEvent(path: string): Event | undefined {
  return readStart(path, () => true)[0];
}

/** What a session says of itself at its start; undefined for a log that cannot be read or begins as none. */
export function startOf(path: string): SessionFacts | undefined {
  try {
    const first = readFirstEvent(path);
    return first?.type === "session.started" ? first.data : undefined;
  } catch (error) {
    if (error instanceof LogFailure) return undefined;
    throw error;
  }
}

/** The sound events from the beginning up to the first that `enough` holds for, within the first MiB. */
export function readStart(path: string, enough: (event: Event) => boolean): readonly Event[] {
  return withFile(path, (file) => {
    const buffer = new Uint8Array(longestStart);
    let length = 0;
    while (length < buffer.length) {
      const count = readSync(file, buffer, length, Math.min(65_536, buffer.length - length), length);
      if (count === 0) break;
      length += count;
      const { events, damage } = checkChain(buffer.subarray(0, length));
      const at = events.findIndex(enough);
      if (at >= 0) return events.slice(0, at + 1);
      if (damage !== undefined) return events;
    }
    return checkChain(buffer.subarray(0, length)).events;
  });
}

export type LogEnd = {
  readonly size: number;
  /** The last whole line, if it holds an event. */
  readonly last?: Event;
  /** The last event before it that belongs to a turn, or it itself. */
  readonly inTurn?: Event;
  /** Bytes after the last newline. */
  readonly tornBytes: number;
};

/** How a log ends, by its last lines alone. */
export function readEnd(path: string): LogEnd {
  return withFile(path, (file) => {
    const { size } = fstatSync(file);
    for (let length = 65_536;; length *= 4) {
      const bytes = new Uint8Array(Math.min(length, size));
      const count = readSync(file, bytes, 0, bytes.length, size - bytes.length);
      const end = endOf(bytes.subarray(0, count), bytes.length === size);
      if (end !== undefined) return { size, ...end };
    }
  });
}

// Undefined where more has to be read to tell.
function endOf(bytes: Uint8Array, whole: boolean): Omit<LogEnd, "size"> | undefined {
  const lines = [...linesOf(bytes)].slice(whole ? 0 : 1);
  const tornBytes = bytes.length - (bytes.lastIndexOf(0x0a) + 1);
  const [start, end] = lines.at(-1) ?? [0, 0];
  const last = end === 0 ? undefined : readLine(bytes.subarray(start, end));
  if (typeof last === "string") return { tornBytes };
  for (const [from, to] of lines.toReversed()) {
    const event = readLine(bytes.subarray(from, to));
    if (last !== undefined && typeof event !== "string" && event.turn !== undefined) {
      return { tornBytes, last, inTurn: event };
    }
  }
  if (!whole) return undefined;
  return last === undefined ? { tornBytes } : { tornBytes, last };
}

function withFile<T>(path: string, use: (file: number) => T): T {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (error) {
    throw cannot("read", path, error);
  }
  try {
    return use(file);
  } catch (error) {
    throw cannot("read", path, error);
  } finally {
    closeSync(file);
  }
}

/** The failure of something outside, in words. */
export function cannot(verb: string, path: string, error: unknown): LogFailure {
  return new LogFailure(
    "log_unwritable",
    `cannot ${verb} ${path}: ${messageOf(error)}${roomHint(error)}`,
    error,
  );
}

function roomHint(error: unknown): string {
  return codeOf(error) === "ENOSPC" || codeOf(error) === "EDQUOT" ? "; make room, then go on" : "";
}
