// What is said about a decision. One function makes what `permission.resolved` records, what `writ explain --json` prints and
// what the model is told, so that the three never differ.
import { covering, isGuess, isInner, isOperand, restricts, riskOf } from "./covering.ts";
import { allowingFacts, type Standing, votesBySubject } from "./decide.ts";
import {
  type Cause,
  causeShower,
  type Effect,
  type LayerName,
  reasonOf,
  type Risk,
  tally,
  type Verdict,
} from "./decision.ts";
import { type Facts, showSubject, type Subject } from "./facts.ts";
import { type NearMiss, showNearMiss } from "./near_miss.ts";
import type { Layer } from "./policy.ts";
import type { Position } from "./problem.ts";
import type { Rule } from "./rule.ts";

export type Explanation = {
  readonly tool: string;
  readonly risk: Risk;
  readonly effect: Effect;
  /** Every vote, strictest first. */
  readonly causes: Verdict["causes"];
  /** One line: the strictest cause, or what allowed the call; and what was added by whoever answered. */
  readonly reason: string;
};

/** `reason` stands in place of the strictest cause where the answer to an ask says more. */
export function explain(facts: Facts, verdict: Verdict, reason = reasonOf(verdict)): Explanation {
  return { tool: facts.tool, risk: facts.risk, effect: verdict.effect, causes: verdict.causes, reason };
}

/** What the model is told of a call that was refused: every cause, and what would be allowed. */
export function refusalText(
  explanation: Explanation,
  more: {
    /** Nobody could be asked. */
    readonly unattended: boolean;
    /** Texts of rules that allow calls of this tool. */
    readonly allowed: readonly string[];
    readonly nearMisses: readonly NearMiss[];
  },
): string {
  const { effect, causes, reason } = explanation;
  const lines = [`denied: ${reason}`];
  const strictest = causes.filter((c) => c.effect === effect);
  const listed = strictest.map(causeShower(explanation));
  if (listed.length > 1 || !reason.startsWith(listed[0] ?? "")) lines.push(...listed.map((l) => `- ${l}`));
  if (more.unattended) lines.push("nobody can be asked: this run is unattended");
  if (strictest.some((c) => c.by === "gate")) {
    lines.push(
      "Gather what is missing, in this order, then make the call again, alone. Change nothing between: commit before you " +
        "gather, not after. Evidence is a plain command with exit status 0, or a result that is neither empty nor cut; a " +
        "verdict counts only in a reply after the one that asked for its evidence.",
    );
  }
  if (more.allowed.length > 0) lines.push(`allowed without asking: ${more.allowed.join(", ")}`);
  lines.push(...more.nearMisses.map(showNearMiss));
  return lines.join("\n");
}

/** A rule that matches a subject; `counts` is false where a stricter one of its layer, or an upper layer, silences it. */
export type Match = {
  readonly rule: string;
  readonly effect: Effect;
  readonly layer: LayerName;
  readonly at: Position;
  readonly text: string;
  readonly counts: boolean;
};

/** One part, path or host of a call, and everything that was said about it. */
export type PartExplanation = {
  readonly kind: Subject["kind"];
  /** As the call has it; absent for the call as a whole. */
  readonly shown?: string;
  readonly argv?: readonly string[];
  /** It runs inside another command. */
  readonly inner?: true;
  /** A program of which nothing is known may run it, as `shown` says. */
  readonly guessed?: true;
  /** Only rules that restrict, and protection, speak of it. */
  readonly operand?: true;
  readonly notUnderstood?: string;
  /** As which tool a path is judged. */
  readonly tool?: string;
  readonly written?: string;
  readonly resolved?: string;
  readonly private?: boolean;
  readonly risk: Risk;
  /** Absent where nothing speaks of it: it does not change the decision. */
  readonly effect?: Effect;
  readonly matches: readonly Match[];
  /** Strictest first: the first one decides. */
  readonly causes: readonly Cause[];
};

/** In the order of the facts; words that are no more than guessed to run only where something reaches them. */
export function explainParts(
  layers: readonly Layer[],
  facts: Facts,
  standing: Standing,
): readonly PartExplanation[] {
  const allowing = allowingFacts(facts, standing.vouched);
  const votesOn = votesBySubject(layers, facts, standing);
  const judged = facts.subjects.filter((s) => !isGuess(s) || isReached(s, layers, facts, standing));
  return judged.map((subject) => {
    const causes = sorted(votesOn(subject));
    const matches = layers.flatMap((layer) => layer.rules).filter((rule) =>
      rule.effect === "allow"
        ? !isOperand(subject) && covering([rule], allowing, subject, standing.root).length > 0
        : restricts(rule, facts, subject, standing.root)
    ).map((rule) => matchOf(rule, causes));
    const effect = causes[0]?.effect;
    return {
      ...described(subject),
      risk: riskOf(facts, subject),
      ...(effect === undefined ? {} : { effect }),
      matches,
      causes,
    };
  });
}

function isReached(subject: Subject, layers: readonly Layer[], facts: Facts, standing: Standing): boolean {
  const rules = layers.flatMap((l) => l.rules.filter((r) => r.effect !== "allow"));
  const gated = standing.blocks.flatMap((block) => block.gate.before);
  return [...rules, ...gated].some((rule) => restricts(rule, facts, subject, standing.root));
}

function sorted(votes: readonly Cause[]): readonly Cause[] {
  const [first, ...rest] = votes;
  return first === undefined ? [] : tally([first, ...rest]).causes;
}

function matchOf(rule: Rule, causes: readonly Cause[]): Match {
  const { id, effect, layer, at, text } = rule;
  const counts = causes.some((c) => c.by === "rule" && c.rule === id);
  return { rule: id, effect, layer, at, text, counts };
}

function described(subject: Subject): Omit<PartExplanation, "risk" | "matches" | "causes"> {
  const shown = showSubject(subject);
  const base = { kind: subject.kind, ...(shown === undefined ? {} : { shown }) };
  switch (subject.kind) {
    case "call":
      return base;
    case "part": {
      const { argv, notUnderstood } = subject.part;
      return {
        ...base,
        argv,
        ...(isInner(subject) ? { inner: true } : {}),
        ...(isGuess(subject) ? { guessed: true } : {}),
        ...(notUnderstood === undefined ? {} : { notUnderstood }),
      };
    }
    case "path": {
      const { tool, operand, path } = subject;
      const { written, resolved } = path;
      return {
        ...base,
        tool,
        written,
        ...(resolved === undefined ? {} : { resolved }),
        ...(operand ? { operand } : {}),
      };
    }
    case "host":
      return { ...base, written: subject.host.written, private: subject.host.private };
  }
}
