// A session on disk: `<dir>/<id>/log.jsonl`, one sealed event a line, written by one process at a time.
import {
  closeSync,
  existsSync,
  fdatasyncSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { syncFolder } from "../disk/whole_file.ts";
import { LogFailure } from "../agent/ports.ts";
import type { Draft, Event } from "../core/event.ts";
import { firstHash } from "../core/session.ts";
import { messageOf } from "../core/thrown.ts";
import { checkChain, sealEvent } from "./chain.ts";
import { takeLock } from "./lock.ts";

export type SessionLog = {
  readonly path: string;
  append(draft: Draft): Event;
  sync(): Promise<void>;
  close(): void;
  /** Closes and removes the whole session, as if it had never been opened: for a start that was refused. */
  discard(): void;
};
export type Opened = {
  readonly log: SessionLog;
  /** What the log held; empty for a new session. */
  readonly events: readonly Event[];
  /** A write that was cut off was saved aside and removed. */
  readonly recovered?: { readonly bytes: number; readonly savedAs: string };
};

const idPattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

/** Creates the session's folder and log. Throws LogFailure with what to do about it. */
export function createLog(dir: string, id: string): Opened {
  const folder = join(dir, id);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw cannot("create", folder, error);
  }
  try {
    const release = lockOrThrow(folder, id);
    return { log: createFile(join(folder, "log.jsonl"), release), events: [] };
  } catch (error) {
    // A folder without a log is no session.
    removeIfEmpty(folder);
    throw error;
  }
}

function createFile(path: string, release: () => void): SessionLog {
  try {
    const file = openSync(path, "ax", 0o600);
    syncFolder(dirname(path));
    return openedLog(path, file, { seq: 0, hash: firstHash, size: 0 }, release);
  } catch (error) {
    release();
    throw cannot("create", path, error);
  }
}

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // Somebody else's, or gone: the fault that led here says more.
  }
}

/** Opens an existing session for more events; refuses a log that was damaged before its tail. */
export function resumeLog(dir: string, id: string): Opened {
  const path = logPath(dir, id);
  const release = lockOrThrow(join(dir, id), id);
  try {
    const bytes = readLog(path);
    const report = checkChain(bytes);
    if (report.damage !== undefined) {
      throw new LogFailure(
        "log_damaged",
        `${path}:${report.damage.line}: ${report.damage.message}; the session is not resumed (see writ session verify ${id})`,
      );
    }
    const file = openSync(path, "r+");
    const recovered = report.tornBytes > 0 ? cutTail(path, file, bytes, report.goodBytes) : undefined;
    const last = report.events.at(-1);
    const head = { seq: last?.seq ?? 0, hash: last?.hash ?? firstHash, size: report.goodBytes };
    return {
      log: openedLog(path, file, head, release),
      events: report.events,
      ...(recovered === undefined ? {} : { recovered }),
    };
  } catch (error) {
    release();
    throw error instanceof LogFailure ? error : cannot("open", path, error);
  }
}

/** The bytes of a session's log; throws LogFailure `no_session` when there is none. */
export function readLog(path: string): Uint8Array {
  try {
    return readFileSync(path);
  } catch (error) {
    throw cannot("read", path, error);
  }
}

/** The event with which a log begins, without reading the rest; undefined when it does not begin with a sound one. */
export function readFirstEvent(path: string): Event | undefined {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (error) {
    throw cannot("read", path, error);
  }
  try {
    const buffer = new Uint8Array(longestFirstLine);
    let length = 0;
    while (length < buffer.length) {
      const count = readSync(file, buffer, length, Math.min(65_536, buffer.length - length), length);
      const end = buffer.subarray(length, length + count).indexOf(0x0a);
      if (end >= 0) return checkChain(buffer.subarray(0, length + end + 1)).events[0];
      if (count === 0) return undefined;
      length += count;
    }
    return undefined;
  } catch (error) {
    throw cannot("read", path, error);
  } finally {
    closeSync(file);
  }
}
/** What a session starts with is short; a longer line is no such event. */
const longestFirstLine = 1024 * 1024;

export function logPath(dir: string, id: string): string {
  const path = join(dir, id, "log.jsonl");
  if (!idPattern.test(id) || !existsSync(path)) {
    throw new LogFailure(
      "no_session",
      `no session \`${id}\` in ${dir} (writ session list shows what is there)`,
    );
  }
  return path;
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
    const path = join(dir, id, "log.jsonl");
    if (!idPattern.test(id) || !existsSync(path)) return [];
    try {
      const { mtimeMs } = statSync(path);
      return [{ id, path, changedMs: mtimeMs }];
    } catch {
      // Removed in between.
      return [];
    }
  }).sort((a, b) => b.changedMs - a.changedMs || (a.id < b.id ? 1 : -1));
}

function openedLog(
  path: string,
  file: number,
  head: { seq: number; hash: string; size: number },
  release: () => void,
): SessionLog {
  let open = true;
  const close = () => {
    if (!open) return;
    open = false;
    closeSync(file);
    release();
  };
  return {
    path,
    append(draft) {
      const { line, event } = sealEvent(draft, head.seq + 1, head.hash);
      writeWhole(path, file, line, head.size);
      head = { seq: event.seq, hash: event.hash, size: head.size + line.length };
      return event;
    },
    async sync() {
      try {
        fdatasyncSync(file);
      } catch (error) {
        throw cannot("sync", path, error);
      }
    },
    close,
    discard() {
      close();
      rmSync(dirname(path), { recursive: true, force: true });
    },
  };
}

// Half a line must not stay: the next append would be glued to it.
function writeWhole(path: string, file: number, line: Uint8Array, offset: number): void {
  let written = 0;
  try {
    while (written < line.length) {
      written += writeSync(file, line, written, line.length - written, offset + written);
    }
  } catch (error) {
    try {
      ftruncateSync(file, offset);
    } catch {
      // The write's own fault says more than that of the clean-up; a torn tail is found at the next resume.
    }
    throw cannot("write", path, error);
  }
}

function cutTail(
  path: string,
  file: number,
  bytes: Uint8Array,
  goodBytes: number,
): { bytes: number; savedAs: string } {
  const savedAs = `${path}.torn-${goodBytes}`;
  writeFileSync(savedAs, bytes.subarray(goodBytes), { mode: 0o600 });
  ftruncateSync(file, goodBytes);
  fsyncSync(file);
  return { bytes: bytes.length - goodBytes, savedAs };
}

function lockOrThrow(folder: string, id: string): () => void {
  let lock: ReturnType<typeof takeLock>;
  try {
    lock = takeLock(join(folder, "lock"));
  } catch (error) {
    throw cannot("lock", folder, error);
  }
  if ("release" in lock) return lock.release;
  throw new LogFailure("session_busy", `session \`${id}\` is open in ${lock.heldBy}; end that first`);
}

function cannot(verb: string, path: string, error: unknown): LogFailure {
  const message = messageOf(error);
  return new LogFailure("log_unwritable", `cannot ${verb} ${path}: ${message}`, error);
}
