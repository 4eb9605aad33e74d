// How a program that a tool ran came to its end, as the tool's outcome.
import type { ToolOutcome } from "../agent/ports.ts";
import type { Json } from "../core/message.ts";
import { plural } from "../core/plural.ts";
import type { RunResult } from "../sandbox/subprocess.ts";
import { failed, failedMidway } from "./tool_outcome.ts";

export type BadEnd = { readonly fail: typeof failed; readonly code: string; readonly note: string };

/** Undefined after exit 0. `advice` is added where whoever made the call can do something about its end. */
export function badEnd(
  result: RunResult,
  timeoutMs: number,
  advice: { readonly timeout: string; readonly output: string } = { timeout: "", output: "" },
): BadEnd | undefined {
  if (result.cancelled) {
    return { fail: failedMidway, code: "cancelled", note: "cancelled; everything that it started was ended" };
  }
  if (result.timedOut) {
    const after = plural(Math.max(1, Math.round(timeoutMs / 1000)), "second");
    return { fail: failedMidway, code: "timeout", note: `stopped after ${after}${advice.timeout}` };
  }
  if (result.flooded) {
    const note = `stopped because it would not stop writing${advice.output}`;
    return { fail: failedMidway, code: "output_limit", note };
  }
  if (result.signal !== null) return { fail: failedMidway, code: "exit", note: `ended by ${result.signal}` };
  return result.exit === 0 ? undefined : { fail: failed, code: "exit", note: `exit ${result.exit}` };
}

/** What it said, and then how it ended. */
export function endedBadly({ fail, code, note }: BadEnd, said: string, result: RunResult): ToolOutcome {
  return fail(code, `${said}${said === "" || said.endsWith("\n") ? "" : "\n"}[${note}]`, exitData(result));
}

export function exitData({ exit, signal }: RunResult): Json {
  return { exit, ...(signal === null ? {} : { signal }) };
}
