// Why a turn stops: limits, and what the faults of the outside world come to.
import { InternalFault, LogFailure, ModelFailure } from "./ports.ts";
import type { StopReason } from "../core/event.ts";
import type { Policy } from "../core/policy.ts";
import { messageOf } from "../core/thrown.ts";

export type Stop = {
  readonly stop: StopReason;
  readonly message?: string;
  readonly hint?: string;
  readonly error?: unknown;
  /** Gates on the end of the turn that it used up. */
  readonly gates?: readonly string[];
  /** Why a turn that ended well is a failure all the same. */
  readonly failed?: string;
  /** Recorded as `limit.reached` when the turn is closed. */
  readonly limit?: { readonly limit: string; readonly value: number; readonly cap: number };
};

export function limitStop(name: string, value: number, cap: number): Stop {
  return {
    stop: "limit",
    message: `limit \`${name}\` reached: ${value} of ${cap}`,
    hint: limitHints[name] ?? `raise limits.${name} in the policy`,
    limit: { limit: name, value, cap },
  };
}
const limitHints: { readonly [name: string]: string } = {
  context_tokens: "start a new session, or raise model.context_tokens",
  max_output_tokens: "the answer was cut: ask for less at once, or raise model.max_output_tokens",
  same_call: "the model repeats one call without effect; raise limits.same_call if this is wanted",
};

/** What an error thrown inside a turn comes to, given what was asked of it from outside. */
export function stopFor(error: unknown, turn: {
  readonly user: AbortSignal;
  readonly deadline: AbortSignal;
  readonly policy: Policy;
}): Stop {
  if (error instanceof LogFailure) return faultStop(error);
  if (turn.user.aborted) {
    return turn.user.reason === "SIGTERM"
      ? { stop: "interrupted", message: "terminated" }
      : { stop: "cancelled", message: "cancelled" };
  }
  const { wallTimeMs } = turn.policy.limits;
  if (turn.deadline.aborted) return limitStop("wall_time", wallTimeMs, wallTimeMs);
  if (error instanceof ModelFailure) {
    const { contextTokens } = turn.policy.model;
    if (error.code === "context_full") return limitStop("context_tokens", contextTokens, contextTokens);
    return {
      stop: "provider_error",
      message: `${error.code}: ${error.message}`,
      ...(error.hint === undefined ? {} : { hint: error.hint }),
    };
  }
  return faultStop(error);
}

/** The log, or a fault of our own. */
export function faultStop(error: unknown): Stop {
  if (error instanceof LogFailure) return { stop: "audit_error", message: error.message };
  const cause = error instanceof InternalFault ? error.cause : error;
  return { stop: "internal_error", message: messageOf(cause), error: cause };
}
