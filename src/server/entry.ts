// A session that the host knows: what is held of it in memory, loaded or put away.
import { readFileSync, statSync } from "node:fs";
import { replay } from "../agent/open.ts";
import type { Approval } from "../agent/ports.ts";
import type { Answer, Event, ServedFacts } from "../core/event.ts";
import type { SessionState } from "../core/session.ts";
import type { Session } from "../session/session.ts";
import { checkChain } from "../store/chain.ts";
import type { Caller, NewTurn, Outcome } from "./host.ts";
import { type LogLines, logLines } from "./log_lines.ts";
import { follow, followAll, noTrack, type Track } from "./track.ts";

/** A turn that waits for the one before it, or for room. */
export type Waiting = {
  readonly id: string;
  readonly submitted: number;
  readonly caller: Caller;
  readonly wanted: NewTurn;
};

export type Running = {
  /** Of its `turn.submitted`. */
  readonly id: string;
  /** What it writes to. */
  readonly root: string;
  readonly control: AbortController;
  readonly startedMs: number;
  /** Said to it and not shown to the model yet. */
  readonly steered: { readonly content: string; readonly actor: string }[];
  /** After the turn and all that belongs to it. */
  readonly ended: Promise<void>;
};

/** A question that somebody is being asked. */
export type Pending = {
  /** Of the question. */
  readonly id: string;
  readonly approval: Approval;
  readonly expiresMs: number;
  /** The first answer; nothing comes behind it. */
  answer?: Answer & { readonly allow: boolean };
  settle(): void;
};

export type Entry = {
  readonly id: string;
  readonly path: string;
  readonly served: ServedFacts;
  /** Folder that it was begun in. */
  readonly cwd: string;
  readonly lines: LogLines;
  /** What the log says; absent: not read since it was put away. */
  track: Track | undefined;
  /** As it was put away; absent while it is loaded, or not read. */
  state: SessionState | undefined;
  /** Of the forks that ran since it was loaded. */
  readonly forks: Map<string, Track>;
  /** Bytes of the log when it was read for these. */
  readBytes: number;
  lastSeq: number;
  live: Session | undefined;
  /** No turn ran since it was loaded. */
  fresh: boolean;
  opening: Promise<Outcome<Session>> | undefined;
  /** While it is being put away; never rejects. */
  closing: Promise<void> | undefined;
  readonly queue: Waiting[];
  running: Running | undefined;
  /** What is done to it besides turns, so that it stays loaded. */
  held: number;
  readonly pending: Map<string, Pending>;
  readonly watchers: Set<() => void>;
  removed: boolean;
  usedMs: number;
};

export function newEntry(
  from: Pick<Entry, "id" | "path" | "served" | "cwd"> & { readonly lastSeq?: number },
): Entry {
  const { id, path, served, cwd, lastSeq = 0 } = from;
  return {
    id,
    path,
    served,
    cwd,
    lines: logLines(path),
    track: undefined,
    state: undefined,
    forks: new Map(),
    readBytes: 0,
    lastSeq,
    live: undefined,
    fresh: true,
    opening: undefined,
    closing: undefined,
    queue: [],
    running: undefined,
    held: 0,
    pending: new Map(),
    watchers: new Set(),
    removed: false,
    usedMs: Date.now(),
  };
}

/** Takes one event in; those of forks beside. */
export function take(entry: Entry, event: Event): void {
  if (event.session !== entry.id) {
    entry.forks.set(event.session, follow(entry.forks.get(event.session) ?? noTrack, event));
    return;
  }
  if (entry.track !== undefined) entry.track = follow(entry.track, event);
  entry.lastSeq = event.seq;
}

export function wake(entry: Entry): void {
  for (const call of [...entry.watchers]) call();
}

/** What the log says of it, read where it is not known. */
export function trackOf(entry: Entry): Track {
  forgetOld(entry);
  return entry.track ?? readEntry(entry).track;
}

// Another process may have gone on with a session that is not loaded here.
function forgetOld(entry: Entry): void {
  if (entry.live !== undefined || entry.opening !== undefined || entry.track === undefined) return;
  const { size = 0 } = statSync(entry.path, { throwIfNoEntry: false }) ?? {};
  if (size === 0 || size === entry.readBytes) return;
  entry.track = undefined;
  entry.state = undefined;
}

export function stateOf(entry: Entry): SessionState {
  forgetOld(entry);
  return entry.live?.agent.recorder.state ?? entry.state ?? readEntry(entry).state;
}

function readEntry(entry: Entry): { readonly track: Track; readonly state: SessionState } {
  const bytes = readFileSync(entry.path);
  const { events } = checkChain(bytes);
  entry.readBytes = bytes.length;
  const track = entry.track ?? followAll(events);
  const state = replay(events);
  entry.track = track;
  entry.lastSeq = Math.max(entry.lastSeq, track.lastSeq);
  if (entry.live === undefined) entry.state = state;
  return { track, state };
}

/** A turn whose end is recorded is over for whoever has seen that: resolves when its place is free again, at once otherwise. */
export async function settled(entry: Entry): Promise<void> {
  const { running } = entry;
  if (running !== undefined && !stillRuns(entry, running.id)) await running.ended;
}

export function stillRuns(entry: Entry, turn: string): boolean {
  const stage = trackOf(entry).turns.find((t) => t.id === turn)?.stage;
  return entry.running?.id === turn && (stage === "running" || stage === "queued");
}

/** The sound events of its log, in order. */
export function eventsOf(entry: Pick<Entry, "path">): readonly Event[] {
  return checkChain(readFileSync(entry.path)).events;
}

/** Of the session itself and of its forks, by the id that callers know the question by. */
export function questionsOf(entry: Entry) {
  return [
    ...trackOf(entry).questions.map((question) => ({ id: question.id, question })),
    ...[...entry.forks].flatMap(([fork, track]) =>
      track.questions.map((question) => ({ id: forkQuestion(question.id, fork), question }))
    ),
  ];
}

export function forkQuestion(id: string, fork: string): string {
  return `${id}_${fork}`;
}
