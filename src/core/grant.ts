// Answers kept for the session. A grant covers exactly what was shown and approved, never more.
import { needsNaming } from "./command.ts";
import type { Facts, Subject } from "./facts.ts";
import { canonicalJson } from "./text.ts";

export type Grant = {
  /** The rule that the grant would be. */
  readonly rule: string;
  readonly tool: string;
  readonly box: string;
  /** One exact key for each subject that was approved. */
  readonly keys: readonly string[];
};

/** The grant that a kept answer to this call would be; undefined where only a single yes is safe. */
export function grantFor(facts: Facts): Grant | undefined {
  if (facts.risk === "destructive") return undefined;
  const judged = facts.subjects.filter((s) => s.kind !== "path" || !s.operand);
  const keys = judged.map((s) => keyOf(s, facts));
  if (keys.some((k) => k === undefined)) return undefined;
  const shown = judged.map((s) => shownRule(s, facts));
  return {
    rule: [...new Set(shown)].join(", "),
    tool: facts.tool,
    box: facts.box,
    keys: keys.filter((k) => k !== undefined),
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

function keyOf(subject: Subject, facts: Facts): string | undefined {
  switch (subject.kind) {
    case "call":
      return canonicalJson(facts.args);
    case "part":
      return needsNaming(subject.part) === undefined ? JSON.stringify(subject.part.argv) : undefined;
    case "path":
      return subject.path.resolved === undefined || subject.path.protectedBy !== undefined
        ? undefined
        : `${subject.tool} ${subject.path.resolved}`;
    case "host":
      return subject.host.host;
  }
}

function shownRule(subject: Subject, facts: Facts): string {
  switch (subject.kind) {
    case "call":
      return `${facts.tool} with exactly these arguments`;
    case "part":
      return `${facts.tool}(${subject.part.text})`;
    case "path":
      return `${subject.tool}(${subject.path.resolved})`;
    case "host":
      return `${facts.tool}(${subject.host.host})`;
  }
}
