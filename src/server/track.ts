// What a session's log says of its turns, questions and requests: a fold of the events, from which the views are made.
import type { Cause, Risk } from "../core/decision.ts";
import type {
  Answer,
  Denial,
  Event,
  EventData,
  EventOf,
  RequestKey,
  ServedFacts,
  StopReason,
} from "../core/event.ts";
import { addUsage, type Args, noUsage, type Usage } from "../core/message.ts";

export type TurnTrack = {
  readonly id: string;
  /** Seq of its `turn.submitted`; of its first event, where it was asked for otherwise. */
  readonly submitted: number;
  readonly stage: "queued" | "running" | "ended" | "dropped";
  readonly firstSeq?: number;
  readonly lastSeq?: number;
  readonly stopReason?: StopReason;
  readonly message?: string;
  readonly dropped?: "cancelled" | "shutdown" | "restart" | "failed";
  /** Of its newest reply. */
  readonly text: string;
  readonly denied: readonly Denial[];
  readonly usage: Usage;
  readonly costUsd?: number;
};

export type QuestionTrack = {
  readonly id: string;
  readonly turn?: string;
  readonly call: string;
  readonly tool: string;
  readonly input: Args;
  readonly risk: Risk;
  readonly sourcedBy: readonly string[];
  readonly preview?: string;
  readonly requestedAt: string;
  readonly resolved?: {
    readonly seq: number;
    readonly decision: "allow" | "deny";
    readonly causes: readonly Cause[];
    readonly answer?: Answer;
  };
  /** The turn ended before anybody answered. */
  readonly left?: true;
};

export type Track = {
  readonly lastSeq: number;
  readonly startedAt: string;
  readonly updatedAt: string;
  readonly served?: ServedFacts;
  readonly policyRevision: string;
  readonly closed: boolean;
  readonly turns: readonly TurnTrack[];
  /** Every call that is being decided, and those decided ones that somebody had to be asked about. */
  readonly questions: readonly QuestionTrack[];
  /** By scope and key; `of`: seq of the event that tells what came of it. */
  readonly requests: {
    readonly [id: string]: { readonly bodyHash: string; readonly of: number; readonly at: string };
  };
  /** Of skills that were loaded. */
  readonly versions: { readonly [skill: string]: string };
  /** Arguments of the calls of the turn that runs. */
  readonly calls: { readonly [call: string]: Args };
};

export const noTrack: Track = {
  lastSeq: 0,
  startedAt: "",
  updatedAt: "",
  policyRevision: "",
  closed: false,
  turns: [],
  questions: [],
  requests: {},
  versions: {},
  calls: {},
};

export function follow(track: Track, event: Event): Track {
  const next = { ...track, lastSeq: event.seq, updatedAt: event.ts };
  switch (event.type) {
    case "session.started": {
      const { served, policy } = event.data;
      const started = { ...next, startedAt: event.ts, policyRevision: policy.revision };
      return served === undefined
        ? started
        : { ...started, served, requests: withRequest(track, served.request, event.seq, event.ts) };
    }
    case "session.resumed":
      return { ...next, policyRevision: event.data.policy.revision };
    case "policy.changed":
      return { ...next, policyRevision: event.data.to };
    case "session.described":
      return track.served === undefined ? next : { ...next, served: { ...track.served, ...event.data } };
    case "session.closed":
      return { ...next, closed: true };
    case "request.done":
      return { ...next, requests: withRequest(track, event.data.request, event.data.of, event.ts) };
    case "turn.submitted":
      return {
        ...next,
        turns: [...track.turns, { ...emptyTurn(event.seq), stage: "queued" }],
        requests: withRequest(track, event.data.request, event.seq, event.ts),
      };
    case "turn.dropped": {
      return drop(next, event.data);
    }
    case "user.message":
      return beginTurn(next, event);
    case "skill.loaded": {
      const { name, version } = event.data;
      return version === undefined ? next : { ...next, versions: { ...track.versions, [name]: version } };
    }
    case "model.tool_call_requested":
      return { ...next, calls: { ...track.calls, [event.data.call]: event.data.args } };
    case "model.completed":
      return event.data.purpose === "summary" ? next : withReply(next, event);
    case "permission.requested":
      return { ...next, questions: [...track.questions, questionOf(track, event)] };
    case "permission.resolved":
      return { ...next, questions: resolve(track.questions, event) };
    case "turn.completed":
      return endTurn(next, event);
    default:
      return next;
  }
}

export function followAll(events: readonly Event[]): Track {
  return events.reduce(follow, noTrack);
}

export function requestId({ scope, key }: Pick<RequestKey, "scope" | "key">): string {
  return `${scope}\n${key}`;
}

function withRequest(
  track: Track,
  request: RequestKey | undefined,
  of: number,
  at: string,
): Track["requests"] {
  if (request === undefined) return track.requests;
  return { ...track.requests, [requestId(request)]: { bodyHash: request.bodyHash, of, at } };
}

function emptyTurn(seq: number): Omit<TurnTrack, "stage"> {
  return { id: `t_${seq}`, submitted: seq, text: "", denied: [], usage: noUsage };
}

function changed(track: Track, is: (turn: TurnTrack) => boolean, change: Partial<TurnTrack>): Track {
  return { ...track, turns: track.turns.map((t) => is(t) ? { ...t, ...change } : t) };
}

/** The turn will not begin. */
export function drop(track: Track, { submitted, reason, message }: EventData["turn.dropped"]): Track {
  return changed(track, (t) => t.submitted === submitted, {
    stage: "dropped",
    dropped: reason,
    ...(message === undefined ? {} : { message }),
  });
}

const runs = (turn: TurnTrack) => turn.stage === "running";

function beginTurn(track: Track, { seq, data: { submitted } }: EventOf<"user.message">): Track {
  const begun = { stage: "running", firstSeq: seq } as const;
  const known = track.turns.some((t) => t.submitted === submitted && t.stage === "queued");
  return known
    ? changed(track, (t) => t.submitted === submitted, begun)
    : { ...track, turns: [...track.turns, { ...emptyTurn(seq), ...begun }] };
}

function withReply(track: Track, { data }: EventOf<"model.completed">): Track {
  const text = data.content.flatMap((b) => b.type === "text" ? [b.text] : []).join("");
  return {
    ...track,
    turns: track.turns.map((t) => runs(t) ? { ...t, text, usage: addUsage(t.usage, data.usage) } : t),
  };
}

function endTurn(track: Track, { seq, data }: EventOf<"turn.completed">): Track {
  const { stopReason, usage, denied, costUsd, message } = data;
  const ended = changed(track, runs, {
    stage: "ended",
    lastSeq: seq,
    stopReason,
    usage,
    denied,
    ...(costUsd === undefined ? {} : { costUsd }),
    ...(message === undefined ? {} : { message }),
  });
  const questions = track.questions.map((q): QuestionTrack =>
    q.resolved === undefined ? { ...q, left: true } : q
  );
  return { ...ended, questions, calls: {} };
}

function questionOf(track: Track, event: EventOf<"permission.requested">): QuestionTrack {
  const { call, tool, risk, sourcedBy, preview } = event.data;
  const turn = track.turns.find(runs)?.id;
  return {
    id: `p_${event.seq}`,
    ...(turn === undefined ? {} : { turn }),
    call,
    tool,
    input: track.calls[call] ?? {},
    risk,
    sourcedBy,
    ...(preview === undefined ? {} : { preview }),
    requestedAt: event.ts,
  };
}

// Only what somebody was asked about is a question; what policy or a kept answer decided by itself is none.
function resolve(
  questions: Track["questions"],
  { seq, data }: EventOf<"permission.resolved">,
): Track["questions"] {
  const { call, decision, causes, answer, effect } = data;
  const isIt = (q: QuestionTrack) => q.call === call && q.resolved === undefined && q.left !== true;
  if (answer?.by !== "restart" && (effect !== "ask" || answer?.by === "grant")) {
    return questions.filter((q) => !isIt(q));
  }
  const resolved = { seq, decision, causes, ...(answer === undefined ? {} : { answer }) };
  return questions.map((q) => isIt(q) ? { ...q, resolved } : q);
}
