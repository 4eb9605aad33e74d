// Effects, risks, votes and the one way in which votes become a decision: the strictest wins, order never matters.
import { uniqueBy } from "./collection.ts";
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

/**
 * The strictest vote wins. Of causes that allow, rules come before defaults, and defaults for higher risks before those for
 * lower ones; else causes of equal strictness keep the order in which they were found.
 */
export function tally(votes: readonly [Cause, ...Cause[]]): Verdict {
  const [first, ...rest] = [...votes].sort((a, b) =>
    strictness[b.effect] - strictness[a.effect] || notability(b) - notability(a)
  );
  const head = first ?? votes[0];
  return { effect: head.effect, causes: [head, ...rest] };
}

// What lets a call through is of the more interest the less it goes without saying.
function notability(cause: Cause): number {
  if (cause.effect !== "allow") return 0;
  return cause.by === "default" ? risks.indexOf(cause.risk) : risks.length;
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

function subjectOf(cause: Cause): string | undefined {
  return "subject" in cause ? cause.subject : undefined;
}

/** A cause with the part, path or host that it is about. */
function showVote(cause: Cause): string {
  const subject = subjectOf(cause);
  return showCause(cause) + (subject === undefined ? "" : ` [${subject}]`);
}

/** Shows of several subjects which cause is about which. */
export function causeShower({ causes }: Pick<Verdict, "causes">): (cause: Cause) => string {
  const subjects = new Set(causes.map(subjectOf));
  return subjects.size > 1 ? showVote : showCause;
}

const mostGrounds = 3;

/**
 * Why, in one line: the strictest cause of a call that is refused or asked about; of one that is allowed, all that had to
 * allow a part of it, the first three in full.
 */
export function reasonOf(verdict: Verdict): string {
  const [first, ...others] = verdict.causes;
  if (first.by === "bound") return "tool not in skill.allowed_tools";
  if (first.effect !== "allow" || goesWithoutSaying(first)) return showCause(first);
  const grounds = uniqueBy([first, ...others], (c) => subjectOf(c) ?? "").filter((c) =>
    !goesWithoutSaying(c)
  );
  const lines = uniqueBy(grounds, showCause).map(causeShower(verdict));
  const more = lines.length - mostGrounds;
  return [...lines.slice(0, mostGrounds), ...(more > 0 ? [`and ${more} more`] : [])].join("; ");
}

function goesWithoutSaying(cause: Cause): boolean {
  return cause.by === "default" && cause.layer === "builtin";
}
