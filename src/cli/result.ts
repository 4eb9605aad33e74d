// How a turn's end becomes an exit code, lines for people and the JSON result.
import type { TurnEnd } from "../agent/turn.ts";
import { exitCodes, type ExitName, exitNameOf } from "../core/outcome.ts";
import { type Problem, showProblems } from "../core/problem.ts";
import type { SessionRef } from "../session/session.ts";
import type { Output } from "./output.ts";
import { toJsonLine } from "./json_line.ts";

export const resultVersion = 1;

export function exitOf(end: TurnEnd): ExitName {
  return exitNameOf(end.stop, {
    unansweredAsk: end.denied.some((d) => d.unanswered),
    failed: end.failed !== undefined,
  });
}

/** One line of JSON: what a script wants to know of a run. */
export function resultJson(end: TurnEnd, session: SessionRef): string {
  const exit = exitOf(end);
  return toJsonLine({
    resultVersion,
    ok: exit === "done",
    exit: exitCodes[exit],
    reason: exit === "fail" ? exit : end.stop,
    ...(end.message ?? end.failed) === undefined ? {} : { message: end.message ?? end.failed },
    result: end.text,
    usage: end.usage,
    ...(end.costUsd === undefined ? {} : { costUsd: end.costUsd }),
    denied: end.denied,
    skills: session.skills,
    session: session.id,
    log: session.log,
    head: { seq: session.seq, hash: session.hash },
  });
}

/** The same for an answer that took no turn, such as a list. */
export function answerJson(text: string): string {
  return toJsonLine({ resultVersion, ok: true, exit: exitCodes.done, reason: "final", result: text });
}

/** What is wrong before anything ran: to stderr as lines, or to stdout as JSON. */
export function reportProblems(output: Output, problems: readonly Problem[], json: boolean): number {
  const exit = reportFaults(output, problems, json);
  if (!json) output.note("refused to start; nothing ran");
  return exit;
}

/** A slip in one line, where nothing was going to run. */
export function reportSlip(output: Output, message: string, json: boolean): number {
  return reportFaults(output, [{ code: "usage", severity: "error", message }], json);
}

function reportFaults(output: Output, problems: readonly Problem[], json: boolean): number {
  // A log that cannot be written or does not hold is not a slip of the operator's.
  const exit = problems.some((p) => p.code.startsWith("log_")) ? exitCodes.audit : exitCodes.usage;
  if (json) {
    output.result(toJsonLine({ resultVersion, ok: false, exit, reason: "invalid", problems }));
  } else {
    for (const line of showProblems(problems)) output.note(output.safe(line));
  }
  return exit;
}

/** A usage fault in one line. */
export function reportUsage(output: Output, message: string, json: boolean): number {
  return reportProblems(output, [{ code: "usage", severity: "error", message }], json);
}

/** Why a turn did not end well; nothing after a good end. */
export function reportEnd(output: Output, end: TurnEnd): void {
  const { paint, safe } = output;
  if (end.stop !== "final" && end.message !== undefined) {
    output.note(paint.red(safe(`${end.stop}: ${end.message}`)));
  }
  if (end.failed !== undefined) output.note(paint.red(safe(end.failed)));
  if (end.hint !== undefined) output.note(safe(`hint: ${end.hint}`));
  const unanswered = end.denied.filter((d) => d.unanswered);
  for (const denial of unanswered) {
    output.note(paint.yellow(safe(`not approved: ${denial.tool}: ${denial.reason}`)));
  }
  if (end.stop === "internal_error") {
    output.note(safe(end.error instanceof Error ? end.error.stack ?? "" : String(end.error)));
    output.note("this is an error in writ itself; please report it with the lines above");
  }
}
