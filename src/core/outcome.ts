// The one table of stop reasons and exit codes.
import type { StopReason } from "./event.ts";

export const exitCodes = {
  done: 0,
  bug: 1,
  differs: 1,
  usage: 2,
  provider: 3,
  limit: 4,
  denied: 5,
  gate: 6,
  schema: 7,
  audit: 8,
  fail: 10,
  interrupted: 130,
  terminated: 143,
} as const;
export type ExitName = keyof typeof exitCodes;

export const exitMeanings: Readonly<Record<ExitName, string>> = {
  done: "the run ended as it should",
  bug: "an error in Writ itself; please report it",
  differs: "`writ policy diff`: a decision differs",
  usage: "wrong use, or a policy or skill that is not valid; nothing ran",
  provider: "the model provider failed or refused",
  limit: "a limit was reached",
  denied: "an ask could not be answered (unattended), or a call was denied under --strict",
  gate: "a gate was not met",
  schema: "the output does not fit its schema",
  audit: "the session log could not be written or is damaged",
  fail: "the verdict of a skill that a gate on the end of the turn waits for is FAIL",
  interrupted: "cancelled from the keyboard (SIGINT)",
  terminated: "terminated (SIGTERM)",
};

const exitOfStop: Readonly<Record<StopReason, ExitName>> = {
  final: "done",
  limit: "limit",
  cancelled: "interrupted",
  interrupted: "terminated",
  denied: "denied",
  gate_unmet: "gate",
  skill_refused: "usage",
  schema: "schema",
  refusal: "provider",
  provider_error: "provider",
  audit_error: "audit",
  internal_error: "bug",
};

/** Which code stands when several apply: the log first, then the provider, skills that cannot be had, limits, gates, schema, denials, the verdict. */
const precedence: readonly ExitName[] = [
  "bug",
  "interrupted",
  "terminated",
  "audit",
  "provider",
  "usage",
  "limit",
  "gate",
  "schema",
  "denied",
  "fail",
];

export function exitNameOf(
  stop: StopReason,
  facts: { readonly unansweredAsk: boolean; readonly failed?: boolean },
): ExitName {
  const names = new Set<ExitName>([exitOfStop[stop]]);
  if (facts.unansweredAsk) names.add("denied");
  if (facts.failed === true) names.add("fail");
  return precedence.find((name) => names.has(name)) ?? "done";
}

/** Stop reasons with the exit code that each leads to; for the documents. */
export function stopTable(): readonly { readonly stop: StopReason; readonly code: number }[] {
  return (Object.keys(exitOfStop) as StopReason[]).map((stop) => ({
    stop,
    code: exitCodes[exitOfStop[stop]],
  }));
}
