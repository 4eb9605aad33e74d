// Sessions on a disk that there is none of: appends and syncs that fail when asked to, a process that ends in the middle of a write,
// a loss of power that takes what no sync has secured. Its stores pass test/store/conformance.ts.
import { Buffer } from "node:buffer";
import { setTimeout } from "node:timers/promises";
import { LogFailure } from "../../src/agent/ports.ts";
import { checkChain } from "../../src/store/chain.ts";
import { isSessionId } from "../../src/store/session_files.ts";
import type { Appended, Sealed, Store } from "../../src/store/store.ts";

/** The process has ended: nothing that it does from here on has an effect. */
export class ProcessEnded extends Error {}

/** What becomes of the next append or sync. `torn`: the process ends when so much of the line, from 0 to below 1, is written. */
export type Fate = "done" | "fails" | { readonly torn: number };
export type DiskFates = {
  append(): Fate;
  sync(): Exclude<Fate, object>;
  /** Appends are answered later, as over a network. */
  readonly later?: boolean;
};
export const soundDisk: DiskFates = { append: () => "done", sync: () => "done" };

type File = {
  bytes: Buffer;
  /** Up to there, they survive a loss of power. */
  synced: number;
  epoch: number;
  /** Events in whole lines. */
  seq: number;
  /** By which process. */
  held: Process | undefined;
};

export type SimulatedDisk = {
  /** The sessions, as a process sees them that starts now. */
  open(fates?: DiskFates): Store;
  /** Ends the process that has sessions open, between two appends. */
  end(): void;
  /** Every process that had a session open is gone; of what no sync secured, so much is left, from 0 to 1. */
  crash(left: number): void;
  /** Session → its log. */
  logs(): ReadonlyMap<string, Buffer>;
  /** Session → seq up to which a sync came back. */
  secured(): ReadonlyMap<string, number>;
  /** Whether a process was ended in an append. */
  readonly ended: boolean;
};

export function simulatedDisk(): SimulatedDisk {
  const files = new Map<string, File>();
  const secured = new Map<string, number>();
  let generation = 0;
  let ended = false;
  return {
    get ended() {
      return ended;
    },
    open: (fates = soundDisk) => {
      const own = generation;
      return storeOn(files, fates, {
        secured,
        alive() {
          if (ended || own !== generation) throw new ProcessEnded("the process has ended");
        },
        end() {
          ended = true;
        },
      });
    },
    end() {
      ended = true;
    },
    crash(left) {
      generation++;
      ended = false;
      for (const file of files.values()) {
        file.held = undefined;
        const kept = file.synced + Math.floor((file.bytes.length - file.synced) * left);
        file.bytes = file.bytes.subarray(0, kept);
      }
    },
    logs: () => new Map([...files].map(([id, file]) => [id, file.bytes])),
    secured: () => secured,
  };
}

type Process = { readonly secured: Map<string, number>; alive(): void; end(): void };

function storeOn(files: Map<string, File>, fates: DiskFates, process: Process): Store {
  const fileOf = (id: string): File => {
    process.alive();
    const file = isSessionId(id) ? files.get(id) : undefined;
    if (file === undefined) throw new LogFailure("no_session", `no session \`${id}\``);
    return file;
  };
  const held = (id: string, epoch: number) => {
    process.alive();
    const file = files.get(id);
    return file?.held === process && file.epoch === epoch ? file : undefined;
  };
  const eventsOf = (id: string) => checkChain(fileOf(id).bytes).events;
  return {
    async create(id) {
      process.alive();
      if (!isSessionId(id)) throw new LogFailure("no_session", `\`${id}\` cannot be the id of a session`);
      if (files.has(id)) throw new LogFailure("log_unwritable", `session \`${id}\` is there`);
      files.set(id, { bytes: Buffer.alloc(0), synced: 0, epoch: 1, seq: 0, held: process });
      return { epoch: 1, events: [] };
    },
    async claim(id) {
      const file = fileOf(id);
      if (file.held !== undefined) throw new LogFailure("session_busy", `session \`${id}\` is open`);
      const { events, goodBytes, tornBytes, damage } = checkChain(file.bytes);
      if (damage !== undefined) throw new LogFailure("log_damaged", `line ${damage.line}: ${damage.message}`);
      file.bytes = file.bytes.subarray(0, goodBytes);
      file.synced = Math.min(file.synced, goodBytes);
      file.epoch++;
      file.seq = events.length;
      file.held = process;
      const recovered = { bytes: tornBytes, savedAs: `/disk/${id}.torn-${goodBytes}` };
      return { epoch: file.epoch, events, ...(tornBytes === 0 ? {} : { recovered }) };
    },
    async renew(id, epoch) {
      return held(id, epoch) !== undefined;
    },
    async release(id, epoch) {
      const file = held(id, epoch);
      if (file !== undefined) file.held = undefined;
    },
    async remove(id, epoch) {
      if (held(id, epoch) === undefined) {
        throw new LogFailure("session_busy", `session \`${id}\` is not held`);
      }
      files.delete(id);
    },
    append(id, expectedSeq, epoch, events) {
      const answer = appended(held(id, epoch), files.get(id), { expectedSeq, events, fates, process });
      return fates.later === true ? answeredLater(answer) : answer();
    },
    sync(id, epoch) {
      const file = held(id, epoch);
      if (file === undefined) throw new LogFailure("log_taken", `session \`${id}\` is not held any more`);
      if (fates.sync() === "fails") throw new LogFailure("log_unwritable", "cannot sync: EIO");
      file.synced = file.bytes.length;
      process.secured.set(id, file.seq);
    },
    async read(id, after, limit) {
      return eventsOf(id).slice(after, after + limit);
    },
    async *tail(id, after, signal) {
      for (let seen = after; !signal.aborted;) {
        const next = eventsOf(id)[seen];
        if (next !== undefined) {
          seen++;
          yield next;
        } else await setTimeout(5, undefined, { signal }).catch(() => undefined);
      }
    },
  };
}

type Append = {
  readonly expectedSeq: number;
  readonly events: readonly Sealed[];
  readonly fates: DiskFates;
  readonly process: Process;
};

// Takes effect at once, in the order of the calls; the answer may come later.
function appended(
  own: File | undefined,
  any: File | undefined,
  { expectedSeq, events, fates, process }: Append,
): () => Appended {
  if (own === undefined) return () => ({ kind: "fenced", epoch: any?.epoch ?? 0 });
  const lastSeq = own.seq;
  if (lastSeq !== expectedSeq) return () => ({ kind: "conflict", lastSeq });
  const fate = fates.append();
  const lines = Buffer.concat(events.map((e) => e.line));
  if (fate === "fails") {
    return () => {
      throw new LogFailure("log_unwritable", "cannot write: ENOSPC");
    };
  }
  if (typeof fate === "object") {
    process.end();
    own.bytes = Buffer.concat([own.bytes, lines.subarray(0, Math.floor(lines.length * fate.torn))]);
    return () => process.alive() as never;
  }
  own.bytes = Buffer.concat([own.bytes, lines]);
  own.seq += events.length;
  const { seq } = own;
  return () => ({ kind: "appended", seq });
}

async function answeredLater(answer: () => Appended): Promise<Appended> {
  await Promise.resolve();
  return answer();
}
