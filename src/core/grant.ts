// Answers kept for the session. A grant covers exactly what was shown and approved, never more.
import { needsNaming } from "./command.ts";
import { isGuess, isInner, isOperand } from "./covering.ts";
import type { Facts, Subject } from "./facts.ts";
import { grantRules, showGrantRule } from "./grant_rule.ts";
import { canonicalJson } from "./text.ts";

export type Grant = {
  /** The rules that the grant would be. */
  readonly rule: string;
  readonly tool: string;
  readonly box: string;
  /** One exact key for each subject that was approved. */
  readonly keys: readonly string[];
};

/** The grant that a kept answer to this call would be; undefined where only a single yes is safe. */
export function grantFor(facts: Facts): Grant | undefined {
  if (facts.risk === "destructive") return undefined;
  const judged = facts.subjects.filter((s) => !isOperand(s));
  const whole = judged.every((s) => s.kind === "call" || isOfSkill(s));
  const rules = whole ? undefined : grantRules(facts);
  if (!whole && rules === undefined) return undefined;
  // Operands too: a link that was put in the place of a file since makes another call of the same words.
  const keys = facts.subjects.flatMap((s) => keyOf(s, facts) ?? []);
  if (keys.length < facts.subjects.length) return undefined;
  return {
    rule: rules?.map(showGrantRule).join(", ") ?? `${facts.tool} with exactly these arguments`,
    tool: facts.tool,
    box: facts.box,
    keys,
  };
}

/** Whether one of the grants covers every subject of the call. */
export function coveringGrant(grants: readonly Grant[], facts: Facts): Grant | undefined {
  const wanted = grantFor(facts);
  if (wanted === undefined) return undefined;
  return grants.find((g) =>
    g.tool === wanted.tool && g.box === wanted.box && wanted.keys.every((k) => g.keys.includes(k))
  );
}

function isOfSkill(subject: Subject): boolean {
  return subject.kind === "part" && subject.tool !== undefined;
}

function keyOf(subject: Subject, facts: Facts): string | undefined {
  switch (subject.kind) {
    case "call":
      return canonicalJson(facts.args);
    case "part": {
      // The command of a skill's tool stands behind the call; its words are exact whatever they run.
      if (!isOfSkill(subject) && needsNaming(subject.part) !== undefined) return undefined;
      const words = JSON.stringify(subject.part.argv);
      // Seen inside another command, it was not approved by itself.
      return isGuess(subject) ? `guessed ${words}` : isInner(subject) ? `inside ${words}` : words;
    }
    case "path": {
      const { resolved, protectedBy } = subject.path;
      if (resolved === undefined || protectedBy !== undefined) return undefined;
      return `${isOperand(subject) ? "operand " : ""}${subject.tool} ${resolved}`;
    }
    case "host":
      return subject.host.host;
  }
}
