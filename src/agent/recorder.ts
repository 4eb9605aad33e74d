// The only way to record: redact, append, reduce, tell. What could not be appended has not happened.
import type { Draft, Event, EventData, EventOf, EventType } from "../core/event.ts";
import { settledLength } from "../core/redact.ts";
import { reduce, type SessionState } from "../core/session.ts";
import type { Clock, Log } from "./ports.ts";

export type Recorder = {
  readonly state: SessionState;
  /** Appends one event; throws LogFailure and changes nothing when it cannot be written. */
  emit<T extends EventType>(type: T, data: EventData[T]): EventOf<T>;
  /** As it would be recorded; for what goes to the model and was never an event. */
  redact<T>(data: T): T;
  /** How much of a text that is still growing can be recorded by itself: what is redacted as a whole is not in two parts. */
  settled(text: string): number;
  /** Everything so far is on disk when this resolves; rejects with LogFailure. */
  sync(): Promise<void>;
};

export type RecorderParts = {
  readonly log: Log;
  readonly clock: Clock;
  readonly session: string;
  readonly initial: SessionState;
  /** Applied to every text of an event; block values that must go back verbatim are left alone by it. */
  redact<T>(data: T): T;
  /** By what `redact` knows [by the shapes that everybody knows]. */
  settled?(text: string): number;
  /** Told of each event after it is recorded. */
  readonly listeners: readonly ((event: Event) => void)[];
};

export function createRecorder(parts: RecorderParts): Recorder {
  let state = parts.initial;
  return {
    get state() {
      return state;
    },
    emit<T extends EventType>(type: T, data: EventData[T]) {
      const turn = turnOf(state, type);
      const draft = {
        ts: new Date(parts.clock.now()).toISOString(),
        session: parts.session,
        ...(turn === undefined ? {} : { turn }),
        type,
        data: parts.redact(data),
      } as unknown as Draft;
      const event = parts.log.append(draft);
      state = reduce(state, event);
      for (const listener of parts.listeners) listener(event);
      return event as EventOf<T>;
    },
    redact: (data) => parts.redact(data),
    settled: parts.settled ?? ((text) => settledLength({ values: [], patterns: [] }, text)),
    sync: () => parts.log.sync(),
  };
}

/** What is said of a session while a turn may run, and is no part of that turn. */
const besideTurns: ReadonlySet<EventType> = new Set<EventType>([
  "turn.submitted",
  "turn.dropped",
  "session.described",
  "session.closed",
  "request.done",
]);

function turnOf(state: SessionState, type: EventType): number | undefined {
  if (besideTurns.has(type)) return undefined;
  if (type === "user.message") return state.turn.number + 1;
  return state.turn.open ? state.turn.number : undefined;
}
