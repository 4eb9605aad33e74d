// Effects, risks, votes and the one way in which votes become a decision: the strictest wins, order never matters.
import { type Position, showPosition } from "./problem.ts";

export type Effect = "allow" | "ask" | "deny";
export type Risk = "read" | "write" | "execute" | "network" | "destructive";
export type LayerName = "builtin" | "machine" | "user" | "project";

const strictness: Readonly<Record<Effect, number>> = { allow: 0, ask: 1, deny: 2 };
export const risks: readonly Risk[] = ["read", "write", "execute", "network", "destructive"];

/** Why a vote was cast. `subject` is the part, path or host that it speaks of, as the operator would write it. */
export type Cause =
  | {
    readonly by: "rule";
    readonly effect: Effect;
    readonly rule: string;
    readonly layer: LayerName;
    /** Absent for a rule that is built in. */
    readonly at?: Position;
    readonly text: string;
    readonly reason?: string;
    readonly subject?: string;
  }
  | {
    readonly by: "default";
    readonly effect: Effect;
    readonly layer: LayerName;
    readonly risk: Risk;
    readonly at?: Position;
    readonly subject?: string;
  }
  | { readonly by: "coverage"; readonly effect: "ask"; readonly why: string; readonly subject?: string }
  | {
    readonly by: "bound";
    readonly effect: "deny";
    readonly skill: string;
    readonly allowed: readonly string[];
  }
  | {
    readonly by: "gate";
    readonly effect: "deny";
    readonly gate: string;
    readonly layer: LayerName;
    readonly at: Position;
    readonly missing: readonly string[];
  }
  | { readonly by: "risk_floor"; readonly effect: "ask"; readonly risk: Risk; readonly subject?: string }
  | { readonly by: "error"; readonly effect: "deny"; readonly code: string; readonly message: string };

/** `causes` is never empty and lists every vote, strictest first. */
export type Verdict = { readonly effect: Effect; readonly causes: readonly [Cause, ...Cause[]] };

export function stricter(a: Effect, b: Effect): Effect {
  return strictness[a] >= strictness[b] ? a : b;
}

/** The strictest vote wins. Causes of equal strictness keep the order in which they were found. */
export function tally(votes: readonly [Cause, ...Cause[]]): Verdict {
  const [first, ...rest] = [...votes].sort((a, b) => strictness[b.effect] - strictness[a.effect]);
  const head = first ?? votes[0];
  return { effect: head.effect, causes: [head, ...rest] };
}

/** One line about a cause, the same for people, the log and the model. */
export function showCause(cause: Cause): string {
  switch (cause.by) {
    case "rule": {
      const why = cause.reason === undefined ? "" : `: ${cause.reason}`;
      const place = cause.at === undefined ? ", built in" : ` at ${showPosition(cause.at)}`;
      return `${cause.effect} by rule ${cause.rule} (${cause.text})${place}${why}`;
    }
    case "default": {
      const place = cause.at === undefined ? "" : ` at ${showPosition(cause.at)}`;
      return `${cause.effect} by the ${cause.layer} default for risk ${cause.risk}${place}`;
    }
    case "coverage":
      return `ask because no allow rule names it: ${cause.why}`;
    case "bound":
      return `tool not in skill.allowed_tools (skill ${cause.skill} allows ${
        cause.allowed.join(", ") || "nothing"
      })`;
    case "gate":
      return `gate: ${cause.gate} at ${showPosition(cause.at)}: ${cause.missing.join("; ")}`;
    case "risk_floor":
      return `ask because a ${cause.risk} action needs a rule that names exactly this call`;
    case "error":
      return `${cause.code}: ${cause.message}`;
  }
}

/** Why a call was refused or asked about, in one line: the strictest cause. */
export function reasonOf(verdict: Verdict): string {
  const [cause] = verdict.causes;
  return cause.by === "bound" ? "tool not in skill.allowed_tools" : showCause(cause);
}
