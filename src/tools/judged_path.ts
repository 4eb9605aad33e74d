// The path that a call was judged by, and that the same call must still lead to when it runs.
import type { Inspection, Place, ToolOutcome } from "../agent/ports.ts";
import type { Risk } from "../core/decision.ts";
import type { Subject } from "../core/facts.ts";
import type { Args } from "../core/message.ts";
import { pathFact } from "./path_fact.ts";
import { failed, showName } from "./tool_outcome.ts";

// Keyed by the call's own arguments object, which the loop hands to `inspect` and to `run` alike.
const judged = new WeakMap<Args, string>();

export type PathInspection = Inspection & {
  readonly subjects: readonly [Extract<Subject, { readonly kind: "path" }>];
};

/** The inspection of a file tool's call: its one path, and an error where that leads nowhere. */
export function inspectPath(
  tool: string,
  risk: Risk,
  args: Args,
  written: string,
  place: Place,
): PathInspection {
  const path = pathFact(written, place);
  if (path.resolved === undefined) judged.delete(args);
  else judged.set(args, path.resolved);
  const subjects: PathInspection["subjects"] = [{ kind: "path", tool, path, operand: false }];
  return path.resolved === undefined ? { risk, subjects, errors: [unresolved(written)] } : { risk, subjects };
}

export type Leads = { readonly ok: true; readonly path: string } | (ToolOutcome & { readonly ok: false });

/** Where the path leads now; an outcome when that is not where it led when the call was judged. */
export function judgedPath(args: Args, written: string, place: Place): Leads {
  const { resolved } = pathFact(written, place);
  if (resolved === undefined) {
    const { code, message } = unresolved(written);
    return failed(code, message);
  }
  const before = judged.get(args);
  return before === undefined || before === resolved ? { ok: true, path: resolved } : pathChanged(written);
}

export function pathChanged(written: string): ToolOutcome & { readonly ok: false } {
  return failed(
    "path_changed",
    `\`${
      showName(written)
    }\` does not lead any more to where it led when the call was judged; nothing was done: make the call again`,
  );
}

function unresolved(written: string) {
  return {
    code: "unresolved_path",
    message: `the path \`${
      showName(written)
    }\` cannot be resolved: expected one that is not empty, leads through no link loop and can be looked at`,
  };
}
