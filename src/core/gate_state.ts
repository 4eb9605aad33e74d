// What the log of a session says about gates: evidence, verdicts, what made them stale, what used them up. A fold of its own.
import type { Event, EventData, ForkReport } from "./event.ts";

/** What a session's log says about gates; seq numbers order everything. */
export type GateState = {
  /** Newest completed call for each evidence pattern, by evidenceMark. */
  readonly marks: { readonly [mark: string]: { readonly call: string; readonly seq: number } };
  readonly verdicts: {
    readonly [skill: string]: readonly { readonly outcome: string; readonly seq: number }[];
  };
  /** Everything up to here is stale: a call of risk write or higher started, or the session was resumed. */
  readonly staleUpTo: number;
  /** A gated call makes stale what other gates hold, not what it stands on itself: until `at` moves on, `floor` holds. */
  readonly spared: { readonly [gate: string]: { readonly at: number; readonly floor: number } };
  /** Up to here the evidence of this gate was used by a gated call. */
  readonly usedUpTo: { readonly [gate: string]: number };
};
export const emptyGateState: GateState = { marks: {}, verdicts: {}, staleUpTo: 0, spared: {}, usedUpTo: {} };

/** The state after one more event; the same value when the event is not about gates. */
export function reduceGates(gates: GateState, event: Event): GateState {
  switch (event.type) {
    case "session.resumed":
      return { ...gates, staleUpTo: event.seq };
    case "skill.completed":
      return withVerdict(gates, event.data, event.seq);
    case "tool.started":
      return started(gates, event.data, event.seq);
    case "tool.completed":
      return completed(gates, event.data, event.seq);
    case "tool.interrupted":
      // A call whose outcome is unknown may have changed anything.
      return event.data.started ? { ...gates, staleUpTo: event.seq } : gates;
    case "fork.reported":
      return reported(gates, event.data, event.seq);
    default:
      return gates;
  }
}

// A fork has no gates of its own: its calls count here as if they had been made here.
function reported(gates: GateState, report: ForkReport, seq: number): GateState {
  switch (report.event) {
    case "tool.started":
      return started(gates, report.data, seq);
    case "tool.completed":
      return completed(gates, report.data, seq);
    case "tool.interrupted":
      return report.data.started ? { ...gates, staleUpTo: seq } : gates;
  }
}

function withVerdict(gates: GateState, data: EventData["skill.completed"], seq: number): GateState {
  const verdicts = [...(gates.verdicts[data.name] ?? []), { outcome: data.outcome, seq }];
  return { ...gates, verdicts: { ...gates.verdicts, [data.name]: verdicts } };
}

// What may change the world makes earlier evidence stale; evidence does not, and a gated call keeps its own.
function started(gates: GateState, data: EventData["tool.started"], seq: number): GateState {
  if (data.risk === "read" || data.evidence !== undefined) return gates;
  const spared = Object.fromEntries(
    (data.gates ?? []).map((gate) => [gate, { at: seq, floor: staleFloor(gate, gates) }]),
  );
  return { ...gates, staleUpTo: seq, spared };
}

function completed(
  gates: GateState,
  data: Omit<EventData["tool.completed"], "result" | "data">,
  seq: number,
): GateState {
  // A gated call that was cut off may have had its effect: it uses the gate up as one that ended well.
  if (!data.ok && data.code !== "timeout" && data.code !== "cancelled") return gates;
  const marks = { ...gates.marks };
  for (const mark of data.ok ? data.evidence ?? [] : []) marks[mark] = { call: data.call, seq };
  const usedUpTo = { ...gates.usedUpTo };
  for (const gate of data.gates ?? []) usedUpTo[gate] = seq;
  return { ...gates, marks, usedUpTo };
}

/** Up to here what this gate holds is stale. */
export function staleFloor(gate: string, state: GateState): number {
  const spared = state.spared[gate];
  return spared?.at === state.staleUpTo ? spared.floor : state.staleUpTo;
}
