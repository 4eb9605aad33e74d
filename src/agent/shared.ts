// What a fork shares with the session around it: the state of gates, bounds, limits.
import type { Agent } from "./agent.ts";
import { limitStop, type Stop } from "./stop.ts";
import { addUsage, type Usage } from "../core/message.ts";
import type { GateState, Mark } from "../core/gate_state.ts";
import { addCost } from "../core/price.ts";
import type { ActiveSkill } from "../core/session.ts";

/** The state of the gates, which a session keeps for its forks too. */
export function gatesNow(agent: Agent): GateState {
  return (agent.parent ?? agent).recorder.state.gates;
}

/**
 * The same with that evidence alone whose results were, whole, in the request that is being answered. Of what was taken out to make
 * room `nearly` says so.
 */
export function seenGates(agent: Agent): GateState {
  const gates = gatesNow(agent);
  const { requestSeq, transcript, gates: own } = agent.recorder.state;
  const marks: Record<string, Mark> = {};
  const nearly = { ...gates.nearly };
  for (const [name, mark] of Object.entries(gates.marks)) {
    // Here: recorded in this session, by its own calls or those of its forks. What a session around it gathered counts where the
    // fork was shown the result.
    const here = agent.parent === undefined ? mark : own.marks[name];
    const { seq } = here?.call === mark.call ? here : { seq: undefined };
    const shown = transcript.find((e) =>
      e.kind === "result" && (seq === undefined ? e.call === mark.call : e.seq === seq)
    );
    if (shown?.kind === "result" && shown.cut === undefined && shown.seq < requestSeq) marks[name] = mark;
    else if (seq !== undefined && seq < requestSeq) nearly[name] = { call: mark.call, why: noLongerShown };
  }
  return { ...gates, marks, nearly };
}
const noLongerShown =
  "its result is not in the request any more, or not whole: make the call again, for less at once";

/** The active skills of the sessions around a fork, the outermost first; they bound it as they bound them. */
export function outerSkills({ parent }: Agent): readonly (readonly ActiveSkill[])[] {
  return parent === undefined ? [] : [...outerSkills(parent), parent.recorder.state.active];
}

/** The limit per session that is used up, if one is. */
export function spentStop(agent: Agent): Stop | undefined {
  const { tokens, costUsd } = agent.policy.limits;
  const spent = countedTokens(usageOf(agent));
  if (tokens !== undefined && spent >= tokens) return limitStop("tokens", spent, tokens);
  const cost = costOf(agent);
  return costUsd !== undefined && cost >= costUsd ? limitStop("cost_usd", cost, costUsd) : undefined;
}

/** Calls of this turn, those of the turn that a fork is part of included. */
export function callsSpent(agent: Agent): number {
  return agent.recorder.state.turn.toolCalls + (agent.parent === undefined ? 0 : callsSpent(agent.parent));
}

function usageOf({ recorder, parent }: Agent): Usage {
  return parent === undefined ? recorder.state.usage : addUsage(recorder.state.usage, usageOf(parent));
}

function costOf({ recorder, parent }: Agent): number {
  const own = recorder.state.costUsd ?? 0;
  return parent === undefined ? own : addCost(own, costOf(parent));
}

// What is read from a cache counts a tenth.
function countedTokens(usage: Usage): number {
  return usage.input + usage.output + usage.cacheWrite + Math.ceil(usage.cacheRead / 10);
}
