// What a session has used, together with the session that it is a fork of: limits are shared.
import type { Agent } from "./agent.ts";
import { limitStop, type Stop } from "./stop.ts";
import { addUsage, type Usage } from "../core/message.ts";
import { addCost } from "../core/price.ts";

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
