// The driver that keeps sessions as files: `<dir>/<id>/log.jsonl`, one sealed event a line, with `head.json` beside it. One
// process at a time writes a session; the operating system knows which.
import {
  closeSync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  rmdirSync,
  rmSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { LogFailure } from "../agent/ports.ts";
import { syncFolder, writeAll, writeWhole } from "../disk/whole_file.ts";
import { type ChainReport, checkChain, noEvents, type Tip } from "./chain.ts";
import { type Head, readHead, type Sign, writeHead } from "./head_file.ts";
import { cannot, isSessionId, logPath, readLog } from "./session_files.ts";
import { letGo, lockFile, lockNames, type LockOptions, openLocked } from "./session_lock.ts";
import type { Claim, Recovered, Sealed, Store } from "./store.ts";

export type FileStoreOptions = LockOptions & {
  readonly dir: string;
  /** Signs heads. */
  readonly sign?: Sign;
};

type Held = {
  readonly folder: string;
  readonly path: string;
  readonly file: number;
  readonly epoch: number;
  readonly release: () => void;
  tip: Tip;
  size: number;
  /** Up to there the bytes are known to be on disk. */
  synced: number;
  /** The names of log and folder are on disk. */
  named: boolean;
  /** Half a line may stand behind `size`. */
  untidy: boolean;
  /** A sync failed: the system may have forgotten that bytes still are to be written. */
  doubtful: boolean;
  /** A turn ended since the head was written. */
  turnEnded: boolean;
};

const pollMs = 50;

export function fileStore(options: FileStoreOptions): Store {
  const { dir } = options;
  const held = new Map<string, Held>();
  const newest = (id: string, epoch: number) => {
    const own = held.get(id);
    return own?.epoch === epoch ? own : undefined;
  };
  const keep = (id: string, own: Held, events: Claim["events"], recovered?: Recovered): Claim => {
    held.set(id, own);
    return { epoch: own.epoch, events, ...(recovered === undefined ? {} : { recovered }) };
  };
  return {
    async create(id) {
      return keep(id, createFile(options, id), []);
    },
    async claim(id) {
      const { own, events, recovered } = openFile(options, id);
      return keep(id, own, events, recovered);
    },
    async renew(id, epoch) {
      return newest(id, epoch) !== undefined;
    },
    async release(id, epoch) {
      const own = newest(id, epoch);
      if (own === undefined) return;
      held.delete(id);
      try {
        if (own.synced < own.size) fdatasyncSync(own.file);
        writeHead(own.folder, headOf(options, id, own));
      } catch {
        // The log itself is whole, and every turn end has been secured: a head that is older says less, but nothing wrong.
      }
      own.release();
    },
    async remove(id, epoch) {
      const own = newest(id, epoch);
      if (own === undefined) throw new LogFailure("session_busy", `session \`${id}\` is not held`);
      held.delete(id);
      try {
        rmSync(own.folder, { recursive: true, force: true });
      } catch (error) {
        throw cannot("remove", own.folder, error);
      } finally {
        own.release();
      }
    },
    append(id, expectedSeq, epoch, events) {
      const own = newest(id, epoch);
      if (own === undefined) {
        return { kind: "fenced", epoch: held.get(id)?.epoch ?? readHead(join(dir, id))?.epoch ?? 0 };
      }
      if (own.tip.seq !== expectedSeq) return { kind: "conflict", lastSeq: own.tip.seq };
      write(own, events);
      return { kind: "appended", seq: own.tip.seq };
    },
    sync(id, epoch) {
      const own = newest(id, epoch);
      if (own === undefined) throw new LogFailure("log_taken", `session \`${id}\` is not held any more`);
      sync(own);
      if (!own.turnEnded) return;
      try {
        writeHead(own.folder, headOf(options, id, own));
      } catch (error) {
        throw cannot("write the head of", own.path, error);
      }
      own.turnEnded = false;
    },
    async read(id, after, limit) {
      const path = logPath(dir, id);
      return soundChain(id, path, readLog(path)).events.slice(after, after + limit);
    },
    tail: (id, after, signal) => follow(dir, id, after, signal),
  };
}

function createFile(options: FileStoreOptions, id: string): Held {
  const { dir } = options;
  const folder = join(dir, id);
  if (!isSessionId(id)) throw new LogFailure("no_session", `\`${id}\` cannot be the id of a session`);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw cannot("create", folder, error);
  }
  const path = join(folder, "log.jsonl");
  let unlock: (() => void) | undefined;
  let file: number | undefined;
  try {
    unlock = lockNames(folder, id);
    file = openSync(path, "wx+", 0o600);
    lockFile(options, id, file, path);
    const opened = { file, unlock };
    const release = () => letGo(opened);
    const own = { ...fresh, folder, path, file, epoch: 1, release, tip: noEvents, size: 0 };
    writeHead(folder, headOf(options, id, own));
    return own;
  } catch (error) {
    if (file !== undefined) {
      closeSync(file);
      rmSync(path, { force: true });
      rmSync(join(folder, "head.json"), { force: true });
    }
    unlock?.();
    // A folder without a log is no session.
    removeIfEmpty(folder);
    throw error instanceof LogFailure ? error : cannot("create", path, error);
  }
}

const fresh = { synced: 0, named: false, untidy: false, doubtful: false, turnEnded: false };

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // Somebody else's, or gone: the fault that led here says more.
  }
}

function openFile(
  options: FileStoreOptions,
  id: string,
): { readonly own: Held; readonly events: Claim["events"]; readonly recovered: Recovered | undefined } {
  const path = logPath(options.dir, id);
  const folder = dirname(path);
  const { file, release } = openLocked(options, id, path);
  try {
    const bytes = readFileSync(file);
    const report = soundChain(id, path, bytes);
    const head = readHead(folder);
    const lost = Math.max(0, (head?.seq ?? 0) - report.events.length);
    if (report.tornBytes === 0 && lost > 0) throw cutLog(id, path, report, head);
    const recovered = report.tornBytes === 0 ? undefined : {
      ...cutTail(path, file, bytes, report.goodBytes),
      ...(lost === 0 ? {} : { lost }),
    };
    const tip = report.events.at(-1) ?? noEvents;
    const epoch = (head?.epoch ?? 0) + 1;
    const own = { ...fresh, folder, path, file, epoch, release, tip, size: report.goodBytes };
    // What it says of the log stays until a turn ends, save that it may not name what is gone.
    writeHead(folder, head === undefined || lost > 0 ? headOf(options, id, own) : { ...head, epoch });
    return { own, events: report.events, recovered };
  } catch (error) {
    release();
    throw error instanceof LogFailure ? error : cannot("open", path, error);
  }
}

function soundChain(id: string, path: string, bytes: Uint8Array): ChainReport {
  const report = checkChain(bytes);
  if (report.damage === undefined) return report;
  throw new LogFailure(
    "log_damaged",
    `${path}:${report.damage.line}: ${report.damage.message}; the session is not resumed (see writ session verify ${id}, then writ session repair ${id})`,
  );
}

function cutLog(id: string, path: string, report: ChainReport, head: Head | undefined): LogFailure {
  return new LogFailure(
    "log_damaged",
    `${path}:${report.events.length}: the log ends here, but its head names event ${head?.seq}: its end is gone; the session is not resumed (writ session repair ${id} goes on without it)`,
  );
}

function headOf(
  { sign }: FileStoreOptions,
  session: string,
  own: Pick<Held, "epoch" | "tip" | "size">,
): Head {
  const { seq, hash } = own.tip;
  const head = { session, epoch: own.epoch, seq, hash, size: own.size };
  return sign === undefined ? head : { ...head, mac: sign(head) };
}

// Half a line must not stay: the next one would be glued to it.
function write(own: Held, events: readonly Sealed[]): void {
  const last = events.at(-1);
  if (last === undefined) return;
  const bytes = events.length === 1 ? last.line : Buffer.concat(events.map((e) => e.line));
  try {
    if (own.untidy) ftruncateSync(own.file, own.size);
    own.untidy = false;
    writeAll(own.file, bytes, own.size);
  } catch (error) {
    own.untidy = true;
    try {
      ftruncateSync(own.file, own.size);
      own.untidy = false;
    } catch {
      // Tried again before the next write; the write's own fault says more.
    }
    throw cannot("write", own.path, error);
  }
  own.tip = last.event;
  own.size += bytes.length;
  if (events.some((e) => e.event.type === "turn.completed")) own.turnEnded = true;
}

function sync(own: Held): void {
  if (own.synced === own.size) return;
  try {
    if (own.doubtful) writeAgain(own);
    own.doubtful = true;
    fdatasyncSync(own.file);
    own.doubtful = false;
    if (!own.named) {
      syncFolder(own.folder);
      syncFolder(dirname(own.folder));
    }
  } catch (error) {
    throw cannot("sync", own.path, error);
  }
  own.named = true;
  own.synced = own.size;
}

// After a sync that failed the system takes the bytes for written: they are given to it once more.
function writeAgain(own: Held): void {
  const bytes = new Uint8Array(own.size - own.synced);
  for (let done = 0; done < bytes.length;) {
    const count = readSync(own.file, bytes, done, bytes.length - done, own.synced + done);
    if (count === 0) throw new Error("the log is shorter than what was written");
    done += count;
  }
  writeAll(own.file, bytes, own.synced);
}

function cutTail(
  path: string,
  file: number,
  bytes: Uint8Array,
  goodBytes: number,
): { readonly bytes: number; readonly savedAs: string } {
  const savedAs = `${path}.torn-${goodBytes}`;
  writeWhole(savedAs, bytes.subarray(goodBytes));
  ftruncateSync(file, goodBytes);
  fsyncSync(file);
  return { bytes: bytes.length - goodBytes, savedAs };
}

async function* follow(dir: string, id: string, after: number, signal: AbortSignal) {
  const path = logPath(dir, id);
  let tip = noEvents;
  let offset = 0;
  while (!signal.aborted) {
    const bytes = readFrom(path, offset);
    const report = checkChain(bytes, tip);
    if (report.damage !== undefined) soundChain(id, path, readLog(path));
    for (const event of report.events) {
      if (signal.aborted) return;
      if (event.seq > after) yield event;
    }
    tip = report.events.at(-1) ?? tip;
    offset += report.goodBytes;
    if (report.events.length === 0) await setTimeout(pollMs, undefined, { signal }).catch(() => undefined);
  }
}

function readFrom(path: string, offset: number): Uint8Array {
  let file: number | undefined;
  try {
    file = openSync(path, "r");
    const bytes = new Uint8Array(Math.max(0, fstatSync(file).size - offset));
    return bytes.subarray(0, bytes.length === 0 ? 0 : readSync(file, bytes, 0, bytes.length, offset));
  } catch (error) {
    throw cannot("read", path, error);
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
