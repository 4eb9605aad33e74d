// Events as a session's log would hold them, for tests of what is folded from them.
import type { Draft, Event, EventData, EventType } from "../../src/core/event.ts";
import { emptySession, reduce, type SessionState } from "../../src/core/session.ts";

export type EventList = {
  emit<T extends EventType>(type: T, data: EventData[T]): void;
  /** Everything emitted so far, in order. */
  readonly events: Event[];
  /** The state after each event. */
  readonly states: SessionState[];
  state(): SessionState;
};

/** Hashes are not real: the fold only carries them on. */
export function eventList(): EventList {
  const events: Event[] = [];
  const states: SessionState[] = [];
  const state = () => states.at(-1) ?? emptySession;
  return {
    events,
    states,
    state,
    emit(type, data) {
      const seq = events.length + 1;
      const draft = { ts: `t${seq}`, session: "s1", type, data } as unknown as Draft;
      const event = { ...draft, seq, prev: `h${seq - 1}`, hash: `h${seq}` } as Event;
      events.push(event);
      states.push(reduce(state(), event));
    },
  };
}

export const noTokens = { system: 0, instructions: 0, tools: 0, catalog: 0, skills: 0, transcript: 0 };
export const sessionFacts = {
  version: "0.1.0",
  policy: { revision: "r1" },
  layers: [],
  provider: "script",
  model: "m",
  workspace: "/ws",
  cwd: "/ws",
  platform: "linux",
  sandbox: "off",
  trust: "trusted",
  actor: "user",
};
