// What the log of a session says about gates: evidence, verdicts, what made them stale, what used them up. A fold of its own.
import type { Event, EventData, ForkReport } from "./event.ts";

/** Recorded as the outcome of a skill that ended without reporting one. */
export const unreported = "unreported";

/** A call that met an evidence pattern. `tree`: the content of the workspace that it is about, where that is known. */
export type Mark = { readonly call: string; readonly seq: number; readonly tree?: string };
export type Given = {
  readonly outcome: string;
  readonly seq: number;
  readonly tree?: string;
  /** A fork of the skill reported it. */
  readonly fork: boolean;
  /** Gates whose evidence its maker had seen. */
  readonly gates: readonly string[];
};

/** What a session's log says about gates; seq numbers order everything. */
export type GateState = {
  /** Newest completed call for each evidence pattern, by evidenceMark. */
  readonly marks: { readonly [mark: string]: Mark };
  /** The newest call that came near a pattern and is no evidence, if none came after it that is. */
  readonly nearly: { readonly [mark: string]: { readonly call: string; readonly why: string } };
  readonly verdicts: { readonly [skill: string]: readonly Given[] };
  /** Everything up to here is void: the session was resumed. */
  readonly voidUpTo: number;
  /** Where content is not compared, everything up to here is stale: a call of risk write or higher started. */
  readonly staleUpTo: number;
  /** A gated call makes stale what other gates hold, not what it stands on itself: until `at` moves on, `floor` holds. */
  readonly spared: { readonly [gate: string]: { readonly at: number; readonly floor: number } };
  /** Up to here the evidence of this gate was used by a gated call. */
  readonly usedUpTo: { readonly [gate: string]: number };
  /** Gates that calls which are running have passed, by call. */
  readonly passing: { readonly [call: string]: readonly string[] };
};
export const emptyGateState: GateState = {
  marks: {},
  nearly: {},
  verdicts: {},
  voidUpTo: 0,
  staleUpTo: 0,
  spared: {},
  usedUpTo: {},
  passing: {},
};

/** The state after one more event; the same value when the event is not about gates. */
export function reduceGates(gates: GateState, event: Event): GateState {
  switch (event.type) {
    case "session.resumed":
      return { ...gates, voidUpTo: event.seq };
    case "skill.completed":
      return withVerdict(gates, event.data, event.seq);
    case "tool.started":
      return started(gates, event.data, event.seq);
    case "tool.completed":
      return completed(gates, event.data, event.seq);
    case "tool.interrupted":
      return interrupted(gates, event.data, event.seq);
    case "fork.reported":
      return reported(gates, event.data, event.seq);
    case "turn.completed":
      return usedUp(gates, event.data.gates ?? [], event.seq);
    default:
      return gates;
  }
}

/**
 * Whether what this gate has gathered still counts: nothing voided it or used it up, and the workspace is as it was. Where
 * one of the two contents is not known, by order: nothing that could change it was started since.
 */
export function isFresh(
  gate: string,
  state: GateState,
  item: { readonly seq: number; readonly tree?: string },
  tree: string | undefined,
): boolean {
  if (item.seq <= Math.max(state.voidUpTo, state.usedUpTo[gate] ?? 0)) return false;
  if (tree !== undefined && item.tree !== undefined) return item.tree === tree;
  return item.seq > staleFloor(gate, state);
}

// A fork has no gates of its own: its calls count here as if they had been made here.
function reported(gates: GateState, report: ForkReport, seq: number): GateState {
  switch (report.event) {
    case "tool.started":
      return started(gates, report.data, seq);
    case "tool.completed":
      return completed(gates, report.data, seq);
    case "tool.interrupted":
      return interrupted(gates, report.data, seq);
  }
}

// What is recorded for a skill that reported nothing is no verdict.
function withVerdict(gates: GateState, data: EventData["skill.completed"], seq: number): GateState {
  if (data.outcome === unreported) return gates;
  const given: Given = {
    outcome: data.outcome,
    seq,
    ...(data.tree === undefined ? {} : { tree: data.tree }),
    fork: data.fork !== undefined,
    gates: data.gates ?? [],
  };
  const verdicts = [...(gates.verdicts[data.name] ?? []), given];
  return { ...gates, verdicts: { ...gates.verdicts, [data.name]: verdicts } };
}

// What may change the world makes earlier evidence stale; evidence does not, and a gated call keeps its own.
function started(gates: GateState, data: EventData["tool.started"], seq: number): GateState {
  const passed = data.gates ?? [];
  const passing = passed.length === 0 ? gates.passing : { ...gates.passing, [data.call]: passed };
  if (data.risk === "read" || data.evidence !== undefined) return { ...gates, passing };
  const spared = Object.fromEntries(
    passed.map((gate) => [gate, { at: seq, floor: staleFloor(gate, gates) }]),
  );
  return { ...gates, staleUpTo: seq, spared, passing };
}

function completed(
  gates: GateState,
  data: Omit<EventData["tool.completed"], "result" | "data">,
  seq: number,
): GateState {
  const marks = { ...gates.marks };
  const nearly = { ...gates.nearly };
  for (const mark of data.ok ? data.evidence ?? [] : []) {
    marks[mark] = { call: data.call, seq, ...(data.tree === undefined ? {} : { tree: data.tree }) };
    delete nearly[mark];
  }
  for (const [mark, why] of Object.entries(data.notEvidence ?? {})) nearly[mark] = { call: data.call, why };
  return usedUp(
    { ...gates, marks, nearly, passing: without(gates.passing, data.call) },
    data.gates ?? [],
    seq,
  );
}

// A call whose outcome is unknown may have changed anything, and may have done what the gate guards.
function interrupted(gates: GateState, data: EventData["tool.interrupted"], seq: number): GateState {
  if (!data.started) return gates;
  const passed = gates.passing[data.call] ?? [];
  return usedUp({ ...gates, staleUpTo: seq, passing: without(gates.passing, data.call) }, passed, seq);
}

function usedUp(gates: GateState, used: readonly string[], seq: number): GateState {
  if (used.length === 0) return gates;
  return {
    ...gates,
    usedUpTo: { ...gates.usedUpTo, ...Object.fromEntries(used.map((gate) => [gate, seq])) },
  };
}

function without<T>(all: { readonly [key: string]: T }, key: string): { readonly [key: string]: T } {
  if (!Object.hasOwn(all, key)) return all;
  const { [key]: _, ...rest } = all;
  return rest;
}

// Up to here what this gate holds is stale by order.
function staleFloor(gate: string, state: GateState): number {
  const spared = state.spared[gate];
  return spared?.at === state.staleUpTo ? spared.floor : state.staleUpTo;
}
