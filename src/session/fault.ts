// A fault that a command finds by itself, in the form of those that files have.
import type { Loaded } from "../core/problem.ts";

export function fault(code: string, message: string, hint?: string): Loaded<never> {
  return {
    ok: false,
    problems: [{ code, severity: "error", message, ...(hint === undefined ? {} : { hint }) }],
  };
}
