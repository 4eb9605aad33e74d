// The state of a session is a fold of its events; this reducer is the only writer.
import { type Calibration, counted, requested, uncalibrated } from "./budget.ts";
import { compactTranscript } from "./compaction.ts";
import {
  type Denial,
  type Event,
  type EventData,
  type SessionFacts,
  totalTokens,
  type TriggerKind,
} from "./event.ts";
import { emptyGateState, type GateState, reduceGates } from "./gate_state.ts";
import { addCost } from "./price.ts";
import { renderEnvironment, renderHeldBack } from "./prompt.ts";
import { interruptedText, type Placed, type ResultEntry, withMarkers, withoutForce } from "./transcript.ts";
import { neutralText } from "./text.ts";
import { addUsage, noUsage, type Usage } from "./message.ts";
import type { Risk } from "./decision.ts";

export type ActiveSkill = {
  readonly name: string;
  readonly trigger: TriggerKind;
  readonly scope: "turn" | "session";
  readonly allowedTools?: readonly string[];
  /** In force now: a policy skill bounds only when its entry says so, or while a trigger of this turn names it. */
  readonly bounding: boolean;
  /** What `bounding` returns to when the turn ends. */
  readonly boundingBetweenTurns: boolean;
  /** Part of the stable system text, from the first request on. */
  readonly forced: boolean;
  readonly body: string;
  /** The model choice that it asks for. */
  readonly model?: string;
  readonly outcome?: string;
};

export type TurnState = {
  readonly number: number;
  readonly open: boolean;
  readonly toolCalls: number;
  readonly denied: readonly Denial[];
  /** Seq of the newest start of a call that may change something. */
  readonly changedAt: number;
  /** Gates that have refused something since the newest request. */
  readonly blocked: readonly EventData["gate.blocked"][];
  /** Calls of the newest reply that have no result yet, in call order. */
  readonly awaiting: readonly {
    readonly id: string;
    readonly tool: string;
    readonly started: boolean;
    /** Its risk, while it is not decided whether it may run. */
    readonly asked?: Risk;
  }[];
  readonly usage: Usage;
  /** In USD; absent while no reply had a price. */
  readonly costUsd?: number;
};

export type ForkState = {
  /** How many were started. */
  readonly count: number;
  /** Those that have not ended. */
  readonly open: readonly Pick<EventData["fork.started"], "skill" | "session" | "call">[];
  /** Seq of the newest end of a fork of each skill. */
  readonly ended: { readonly [skill: string]: number };
};

export type SessionState = {
  readonly id: string;
  readonly seq: number;
  readonly hash: string;
  readonly startedAt: string;
  readonly facts: SessionFacts | undefined;
  /** The environment text that the model was shown last. */
  readonly environment: string;
  /** What the next turn's environment says of skills that came, changed or went. */
  readonly catalogNews: readonly string[];
  /** Such news that was told since the list of skills was made. */
  readonly catalogTold: readonly string[];
  readonly transcript: readonly Placed[];
  readonly active: readonly ActiveSkill[];
  /** Seq of the last time each skill was loaded. */
  readonly recent: { readonly [skill: string]: number };
  readonly gates: GateState;
  readonly forks: ForkState;
  readonly turn: TurnState;
  /** Of the session and its forks. */
  readonly usage: Usage;
  /** In USD; absent while no reply had a price. */
  readonly costUsd?: number;
  /** Seq of the newest context.built: what the newest reply can have seen. */
  readonly requestSeq: number;
  readonly calibration: Calibration;
  /** Estimated tokens that compactions took out of what is shown. */
  readonly compacted: number;
};

export const firstHash = "0".repeat(64);
const noTurn: TurnState = {
  number: 0,
  open: false,
  toolCalls: 0,
  denied: [],
  changedAt: 0,
  blocked: [],
  awaiting: [],
  usage: noUsage,
};
export const emptySession: SessionState = {
  id: "",
  seq: 0,
  hash: firstHash,
  startedAt: "",
  facts: undefined,
  environment: "",
  catalogNews: [],
  catalogTold: [],
  transcript: [],
  active: [],
  recent: {},
  gates: emptyGateState,
  forks: { count: 0, open: [], ended: {} },
  turn: noTurn,
  usage: noUsage,
  requestSeq: 0,
  calibration: uncalibrated,
  compacted: 0,
};

export function reduce(state: SessionState, event: Event): SessionState {
  const gates = reduceGates(state.gates, event);
  const next = { ...state, seq: event.seq, hash: event.hash, gates };
  switch (event.type) {
    case "session.started":
      return { ...next, id: event.session, startedAt: event.ts, facts: event.data };
    case "session.resumed":
      return resume(next, event.data);
    case "policy.changed":
      return withoutNews(next);
    case "catalog.changed":
      return { ...next, catalogNews: withNews(state.catalogNews, event.data.text) };
    case "user.message":
      return startTurn(next, event.data.content, event.seq);
    case "user.steered": {
      const said: Placed = { kind: "user", seq: event.seq, text: event.data.content };
      return { ...next, transcript: [...state.transcript, said] };
    }
    case "session.described":
      return describe(next, event.data);
    case "skill.loaded":
      return loadSkill(next, event.data, event.seq);
    case "skill.unloaded":
      return {
        ...next,
        transcript: withoutForce(state.transcript, event.data.name),
        active: state.active.filter((s) => s.name !== event.data.name),
      };
    case "skill.completed":
      return completeSkill(next, event.data);
    case "context.built":
      return {
        ...next,
        requestSeq: event.seq,
        calibration: requested(state.calibration, totalTokens(event.data.tokens)),
        turn: { ...state.turn, blocked: [] },
      };
    case "context.compacted":
      return {
        ...withoutNews(next),
        transcript: compactTranscript(withoutNews(state), event.data),
        compacted: state.compacted + event.data.tokensBefore - event.data.tokensAfter,
      };
    case "model.completed":
      return modelCompleted(next, event.data, event.seq);
    case "permission.requested":
      return withAsked(next, event.data.call, event.data.risk);
    case "permission.resolved":
      return withAsked(
        { ...next, turn: { ...state.turn, denied: withDenial(state.turn.denied, event.data) } },
        event.data.call,
        undefined,
      );
    case "tool.started":
      return toolStarted(next, event.data, event.seq);
    case "tool.completed":
      return withResult(next, {
        seq: event.seq,
        call: event.data.call,
        ok: event.data.ok,
        content: neutralText(event.data.result),
        ...(event.data.code === "denied" ? { denied: true } : {}),
      });
    case "tool.interrupted":
      return withResult(next, {
        seq: event.seq,
        call: event.data.call,
        ok: false,
        content: interruptedText(event.data.started),
      });
    case "gate.blocked":
      return holdBack(next, event.data, event.seq);
    case "fork.started":
      return startFork(next, event.data, event.seq);
    case "fork.history":
      return { ...next, transcript: event.data.transcript.map((e) => ({ ...e, seq: event.seq })) };
    case "fork.reported":
      return event.data.event === "tool.started" && event.data.data.risk !== "read"
        ? { ...next, turn: { ...state.turn, changedAt: event.seq } }
        : next;
    case "fork.completed":
      return endFork(next, event.data, event.seq);
    case "model.changed":
      return state.facts === undefined ? next : { ...next, facts: { ...state.facts, model: event.data.to } };
    case "turn.completed":
      return endTurn(next);
    case "session.recovered":
    case "skill.registry_error":
    case "skill.omitted":
    case "skill.skipped":
    case "model.delta":
    case "model.tool_call_requested":
    case "model.failed":
    case "limit.reached":
    case "turn.submitted":
    case "turn.dropped":
    case "session.closed":
    case "request.done":
      return next;
  }
}

function describe(state: SessionState, data: EventData["session.described"]): SessionState {
  const { facts } = state;
  if (facts?.served === undefined) return state;
  return { ...state, facts: { ...facts, served: { ...facts.served, ...data } } };
}

// Another model counts otherwise.
function resume(state: SessionState, facts: SessionFacts): SessionState {
  const same = facts.provider === state.facts?.provider && facts.model === state.facts?.model;
  const { served } = state.facts ?? {};
  const kept = served === undefined ? facts : { ...facts, served };
  return { ...withoutNews(state), facts: kept, calibration: same ? state.calibration : uncalibrated };
}

function startTurn(state: SessionState, content: string, seq: number): SessionState {
  // From the first request of a turn on, a body whose skill has ended is a marker: never a body without its bound.
  const transcript = withMarkers(state.transcript);
  const environment = state.facts === undefined ? "" : renderEnvironment(state.facts);
  const news = environment === state.environment ? state.catalogNews : [environment, ...state.catalogNews];
  const shown = news.map((text): Placed => ({ kind: "environment", seq, text }));
  return {
    ...state,
    environment,
    catalogNews: [],
    catalogTold: [...state.catalogTold, ...state.catalogNews],
    transcript: [...transcript, { kind: "user", seq, text: content }, ...shown],
    turn: { ...noTurn, number: state.turn.number + 1, open: true },
  };
}

/** Where the list of skills is made anew: what was told of the one before would now be wrong. */
export function withoutNews(state: SessionState): SessionState {
  const told = new Set(state.catalogTold);
  const transcript = state.transcript.filter((e) => e.kind !== "environment" || !told.has(e.text));
  return { ...state, catalogNews: [], catalogTold: [], transcript };
}

function withNews(news: readonly string[], text: string): readonly string[] {
  return text === "" ? news : [...news, text];
}

function loadSkill(state: SessionState, data: EventData["skill.loaded"], seq: number): SessionState {
  const before = state.active.find((s) => s.name === data.name);
  const byPolicy = data.trigger.kind === "policy";
  // One that was loaded before may come to be forced, when the policy changes.
  const forced = before?.forced === true || (byPolicy && data.trigger.gate === undefined);
  const skill: ActiveSkill = {
    name: data.name,
    trigger: forced || before?.trigger === "policy" ? "policy" : data.trigger.kind,
    scope: before?.scope === "session" ? "session" : data.scope,
    ...(data.allowedTools === undefined ? {} : { allowedTools: data.allowedTools }),
    bounding: (before?.bounding ?? false) || data.bounding,
    boundingBetweenTurns: before?.boundingBetweenTurns ?? data.bounding,
    forced,
    ...(data.model === undefined ? {} : { model: data.model }),
    body: data.body === "" ? before?.body ?? "" : data.body,
  };
  const active = before === undefined
    ? [...state.active, skill]
    : state.active.map((s) => (s.name === data.name ? skill : s));
  const shown = data.body !== "" && !forced;
  const transcript = shown
    ? [...withoutForce(state.transcript, data.name), {
      kind: "skill" as const,
      seq,
      name: data.name,
      text: data.body,
      live: true,
    }]
    : state.transcript;
  return { ...state, active, transcript, recent: { ...state.recent, [data.name]: seq } };
}

// Of a refused call the result says so; the end of a turn has none.
function holdBack(state: SessionState, data: EventData["gate.blocked"], seq: number): SessionState {
  const shown: readonly Placed[] = data.call === undefined
    ? [{ kind: "environment", seq, text: renderHeldBack(data) }]
    : [];
  const turn = { ...state.turn, blocked: [...state.turn.blocked, data] };
  return { ...state, turn, transcript: [...state.transcript, ...shown] };
}

function completeSkill(state: SessionState, data: EventData["skill.completed"]): SessionState {
  return {
    ...state,
    active: data.fork === undefined && data.within === undefined
      ? state.active.map((s) => (s.name === data.name ? { ...s, outcome: data.outcome } : s))
      : state.active,
  };
}

function modelCompleted(
  state: SessionState,
  data: EventData["model.completed"],
  seq: number,
): SessionState {
  // A summary is asked for beside the conversation.
  if (data.purpose === "summary") return spend(state, { ...data, toolCalls: 0 });
  const awaiting = data.content.flatMap((b) =>
    b.type === "tool_use" ? [{ id: b.id, tool: b.name, started: false }] : []
  );
  const transcript = data.content.length === 0
    ? state.transcript
    : [...state.transcript, { kind: "assistant" as const, seq, content: data.content }];
  const { input, cacheRead, cacheWrite } = data.usage;
  const calibration = counted(state.calibration, input + cacheRead + cacheWrite);
  return spend({ ...state, transcript, calibration, turn: { ...state.turn, awaiting } }, {
    ...data,
    toolCalls: awaiting.length,
  });
}

/** Counts what a reply or a fork used against the turn and the session. */
function spend(
  state: SessionState,
  used: { readonly usage: Usage; readonly costUsd?: number; readonly toolCalls: number },
): SessionState {
  const { turn } = state;
  return {
    ...state,
    usage: addUsage(state.usage, used.usage),
    ...withCost(state.costUsd, used.costUsd),
    turn: {
      ...turn,
      usage: addUsage(turn.usage, used.usage),
      ...withCost(turn.costUsd, used.costUsd),
      toolCalls: turn.toolCalls + used.toolCalls,
    },
  };
}

function withCost(before: number | undefined, more: number | undefined): { readonly costUsd?: number } {
  return more === undefined ? {} : { costUsd: addCost(before, more) };
}

function startFork(state: SessionState, data: EventData["fork.started"], seq: number): SessionState {
  const { forks } = state;
  const { skill, session, call } = data;
  const open = [...forks.open, { skill, session, ...(call === undefined ? {} : { call }) }];
  return {
    ...state,
    recent: { ...state.recent, [data.skill]: seq },
    forks: { ...forks, count: forks.count + 1, open },
  };
}

function endFork(state: SessionState, data: EventData["fork.completed"], seq: number): SessionState {
  const { forks } = state;
  const shown: readonly Placed[] = data.text === undefined
    ? []
    : [{ kind: "environment", seq, text: data.text }];
  const next = spend(state, data);
  return {
    ...next,
    transcript: [...next.transcript, ...shown],
    forks: {
      ...forks,
      open: forks.open.filter((f) => f.session !== data.session),
      ended: { ...forks.ended, [data.skill]: seq },
    },
    turn: { ...next.turn, denied: [...next.turn.denied, ...data.denied] },
  };
}

function withDenial(denied: readonly Denial[], data: EventData["permission.resolved"]): readonly Denial[] {
  if (data.decision === "allow") return denied;
  const by = data.answer?.by;
  const unanswered = data.effect === "ask" && (by === "non_interactive" || by === "timeout");
  return [...denied, { call: data.call, tool: data.tool, reason: data.reason, unanswered }];
}

function withAsked(state: SessionState, call: string, asked: Risk | undefined): SessionState {
  const awaiting = state.turn.awaiting.map(({ asked: before, ...c }) => {
    const risk = c.id === call ? asked : before;
    return risk === undefined ? c : { ...c, asked: risk };
  });
  return { ...state, turn: { ...state.turn, awaiting } };
}

function toolStarted(state: SessionState, data: EventData["tool.started"], seq: number): SessionState {
  const awaiting = state.turn.awaiting.map((c) => (c.id === data.call ? { ...c, started: true } : c));
  const changedAt = data.risk === "read" ? state.turn.changedAt : seq;
  return { ...state, turn: { ...state.turn, awaiting, changedAt } };
}

function withResult(
  state: SessionState,
  result: { readonly seq: number } & Omit<ResultEntry, "kind">,
): SessionState {
  return {
    ...state,
    transcript: [...state.transcript, { kind: "result", ...result }],
    turn: { ...state.turn, awaiting: state.turn.awaiting.filter((c) => c.id !== result.call) },
  };
}

function endTurn(state: SessionState): SessionState {
  return {
    ...state,
    active: state.active.map((s) => ({ ...s, bounding: s.boundingBetweenTurns })),
    turn: { ...state.turn, open: false, awaiting: [] },
  };
}
