// What all parts of a host share: the sessions that it knows, what runs, and how a caller finds a session.
import { LogFailure } from "../agent/ports.ts";
import type { Event } from "../core/event.ts";
import { requestId } from "./track.ts";
import type { Host } from "../session/host.ts";
import type { SessionOptions } from "../session/session.ts";
import { type Entry, forkQuestion, questionsOf, take, trackOf, wake } from "./entry.ts";
import type { Caller, Done, Idempotency, Outcome } from "./host.ts";
import { refuse } from "./outcome.ts";
import type { Policies } from "./policies.ts";

export type Counters = {
  readonly turns: Map<string, number>;
  readonly permissions: Map<string, number>;
  readonly tokens: Map<string, number>;
};

/** One event of one session, at its place among those of all sessions. */
export type Told = { readonly entry: Entry; readonly seq: number };

export type Hub = {
  readonly machine: Host;
  readonly policies: Policies;
  readonly mostQueued: number;
  /** What a session is opened with beside the rest; for scripts in the place of a model. */
  model(): Pick<SessionOptions, "script" | "replies">;
  /** A line for whoever runs the server. */
  note(line: string): void;
  readonly entries: Map<string, Entry>;
  /** Sessions with a turn that runs. */
  readonly busy: Set<Entry>;
  /** By scope and key of the request that made them: ids of sessions. */
  readonly made: Map<string, { readonly bodyHash: string; readonly session: string; readonly atMs: number }>;
  readonly doing: Map<string, { readonly bodyHash: string; readonly outcome: Promise<Outcome<unknown>> }>;
  readonly feed: Feed;
  readonly counters: Counters;
  draining: boolean;
};

/** The newest events of all sessions; `first` is the place of the oldest that is kept. */
export type Feed = {
  /** New for every process: places mean nothing in another one. */
  readonly instance: string;
  first: number;
  readonly told: Told[];
  readonly watchers: Set<() => void>;
};

const mostTold = 100_000;

/** Every event of every session comes by here, after it is recorded. */
export function hear(hub: Hub, entry: Entry, event: Event): void {
  take(entry, event);
  if (event.type === "permission.resolved") {
    for (const { id, question } of questionsOf(entry)) {
      if (question.resolved?.seq === event.seq && question.call === event.data.call) entry.pending.delete(id);
    }
    // What policy decided by itself is no question and was never pending.
    count(hub.counters.permissions, event.data.decision);
  } else if (event.type === "turn.completed" && event.session === entry.id) {
    count(hub.counters.turns, event.data.stopReason);
  } else if (event.type === "model.completed") {
    for (const [kind, n] of Object.entries(event.data.usage)) count(hub.counters.tokens, kind, n);
  }
  if (event.session === entry.id) tell(hub.feed, { entry, seq: event.seq });
  wake(entry);
}

function tell(feed: Feed, told: Told): void {
  feed.told.push(told);
  if (feed.told.length > mostTold) {
    const gone = Math.floor(mostTold / 2);
    feed.told.splice(0, gone);
    feed.first += gone;
  }
  for (const call of [...feed.watchers]) call();
}

/** Adds to one count of several. */
export function count(counter: Map<string, number>, name: string, by = 1): void {
  counter.set(name, (counter.get(name) ?? 0) + by);
}

/** Whether a session is among those of the caller. */
export function maySee(caller: Caller, entry: Entry): boolean {
  return !entry.removed && (caller.sessions === "all" || entry.served.owner === caller.name);
}

/** A session that the caller may see. */
export function find(hub: Hub, caller: Caller, id: string): Outcome<Entry> {
  const entry = hub.entries.get(id);
  if (entry !== undefined && maySee(caller, entry)) return { ok: true, value: entry };
  return refuse("session-not-found", `there is no session \`${id}\` that \`${caller.name}\` may see`);
}

/** Id that callers know a question by: where it was asked, in the session or in a fork of it. */
export function questionIdOf(entry: Entry, call: string): string | undefined {
  const open = (q: { readonly call: string; readonly resolved?: unknown; readonly left?: true }) =>
    q.call === call && q.resolved === undefined && q.left !== true;
  const own = trackOf(entry).questions.findLast(open);
  if (own !== undefined) return own.id;
  for (const [fork, track] of [...entry.forks].reverse()) {
    const found = track.questions.findLast(open);
    if (found !== undefined) return forkQuestion(found.id, fork);
  }
  return undefined;
}

/**
 * Carries a request out once. `before` is what came of it, where it is recorded; a request with the same key that is under way
 * is waited for.
 */
export async function once<T>(
  hub: Hub,
  request: Idempotency | undefined,
  before: () => Outcome<T> | "other-body" | undefined,
  carryOut: () => Promise<Outcome<T>>,
): Promise<Outcome<Done<T>>> {
  if (request === undefined) return done(await guarded(carryOut), false);
  const id = requestId(request);
  const under = hub.doing.get(id);
  if (under !== undefined) {
    if (under.bodyHash !== request.bodyHash) return otherBody(request);
    return done(await under.outcome as Outcome<T>, true);
  }
  const known = before();
  if (known === "other-body") return otherBody(request);
  if (known !== undefined) return done(known, true);
  const outcome = guarded(carryOut);
  hub.doing.set(id, { bodyHash: request.bodyHash, outcome });
  try {
    return done(await outcome, false);
  } finally {
    hub.doing.delete(id);
  }
}

const dayMs = 24 * 60 * 60 * 1000;

/** What a session's log says of a request; undefined where it is new, or longer ago than a day. */
export function recorded(
  entry: Entry,
  request: Idempotency | undefined,
): { readonly of: number } | "other-body" | undefined {
  if (request === undefined) return undefined;
  const found = trackOf(entry).requests[requestId(request)];
  if (found === undefined || Date.now() - Date.parse(found.at) > dayMs) return undefined;
  return found.bodyHash === request.bodyHash ? found : "other-body";
}

/** Whether a request of that time still counts as carried out. */
export function isFresh(atMs: number): boolean {
  return Date.now() - atMs <= dayMs;
}

function otherBody({ key }: Idempotency): ReturnType<typeof refuse> {
  return refuse(
    "idempotency-mismatch",
    `the key \`${key}\` was used for a request with another body; use a new one`,
  );
}

function done<T>(outcome: Outcome<T>, replayed: boolean): Outcome<Done<T>> {
  return outcome.ok ? { ok: true, value: { value: outcome.value, replayed } } : outcome;
}

/** A log that cannot be written refuses the request; nothing else of it is lost. */
export async function guarded<T>(work: () => Promise<Outcome<T>>): Promise<Outcome<T>> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof LogFailure)) throw error;
    if (error.code === "session_busy" || error.code === "log_taken") {
      return refuse("not-owner", error.message);
    }
    return refuse("not-ready", error.message, { retryAfter: 5 });
  }
}

/** Resolves when `is` holds, at the latest after `ms`, or when `signal` aborts. */
export function waitFor(
  entry: Entry,
  is: () => boolean,
  how: { readonly ms: number; readonly signal?: AbortSignal },
): Promise<void> {
  if (is() || how.signal?.aborted === true) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      entry.watchers.delete(look);
      how.signal?.removeEventListener("abort", end);
      resolve();
    };
    const look = () => {
      if (is()) end();
    };
    const timer = setTimeout(end, how.ms);
    entry.watchers.add(look);
    how.signal?.addEventListener("abort", end, { once: true });
  });
}
