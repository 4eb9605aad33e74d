// Why a turn stops: limits, and what the faults of the outside world come to.
import type { Agent } from "./agent.ts";
import { LogFailure, ModelFailure } from "./ports.ts";
import type { StopReason } from "../core/event.ts";

export type Stop = {
  readonly stop: StopReason;
  readonly message?: string;
  readonly hint?: string;
  readonly error?: unknown;
};

/** Records the limit and stops for it. */
export function limit(agent: Agent, name: string, value: number, cap: number): Stop {
  agent.recorder.emit("limit.reached", { limit: name, value, cap });
  return {
    stop: "limit",
    message: `limit \`${name}\` reached: ${value} of ${cap}`,
    hint: limitHints[name] ?? `raise limits.${name} in the policy`,
  };
}
const limitHints: { readonly [name: string]: string } = {
  context_tokens: "start a new session, or raise model.context_tokens",
  max_output_tokens: "the answer was cut: ask for less at once, or raise model.max_output_tokens",
  same_call: "the model repeats one call without effect; raise limits.same_call if this is wanted",
};

/** Never throws but for a log that cannot be written. */
export function stopFor(agent: Agent, error: unknown, user: AbortSignal, deadline: AbortSignal): Stop {
  if (error instanceof LogFailure) return { stop: "audit_error", message: error.message };
  if (user.aborted) {
    return user.reason === "SIGTERM"
      ? { stop: "interrupted", message: "terminated" }
      : { stop: "cancelled", message: "cancelled" };
  }
  if (deadline.aborted) {
    const cap = agent.policy.limits.wallTimeMs;
    return limit(agent, "wall_time", cap, cap);
  }
  if (error instanceof ModelFailure) {
    const { contextTokens } = agent.policy.model;
    if (error.code === "context_full") return limit(agent, "context_tokens", contextTokens, contextTokens);
    return {
      stop: "provider_error",
      message: `${error.code}: ${error.message}`,
      ...(error.hint === undefined ? {} : { hint: error.hint }),
    };
  }
  return { stop: "internal_error", message: error instanceof Error ? error.message : String(error), error };
}
