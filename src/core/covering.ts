// Which patterns reach a subject: those that restrict by any of its risks, those that allow with all that it runs.
import { type CommandPattern, matchesCommand, needsNaming } from "./command.ts";
import { commandRisk } from "./command_risk.ts";
import type { Risk } from "./decision.ts";
import type { Facts, Part, Subject } from "./facts.ts";
import { type Matchers, matchesSubject } from "./rule.ts";

/** The risk of one subject by itself; never higher than that of the whole call. */
export function riskOf(facts: Facts, subject: Subject): Risk {
  // A guess makes nothing riskier.
  if (isGuess(subject)) return facts.risk;
  if (subject.kind === "part") return commandRisk(subject.part);
  if (subject.kind === "path" && subject.tool !== facts.tool) {
    return subject.tool === "read_file" ? "read" : "write";
  }
  return facts.risk;
}

/**
 * Whether a pattern that restricts reaches the subject. Its `risk` is met by the risk of the call or by that of the
 * subject, so that a riskier neighbour does not hide a command from a rule.
 */
export function restricts(m: Matchers, facts: Facts, subject: Subject, root: string): boolean {
  if (matchesSubject(m, facts, subject, "restrict", root)) return true;
  if (m.risk === undefined) return false;
  return matchesSubject(m, { ...facts, risk: riskOf(facts, subject) }, subject, "restrict", root);
}

/**
 * Those of the patterns that cover the subject, matched narrowly. No pattern says what a command runs inside: that is
 * covered by the patterns that together cover every top-level command of the text, each of them written out in full
 * where the command hides what it runs.
 */
export function covering<M extends Matchers>(
  patterns: readonly M[],
  facts: Facts,
  subject: Subject,
  root: string,
): readonly M[] {
  const direct = patterns.filter((m) => matchesSubject(m, facts, subject, "allow", root));
  return direct.length > 0 || !isInner(subject) ? direct : coveringTops(patterns, facts, root);
}

// The answer for the last facts: every command inside others asks for it once more.
type Kept = { readonly facts: Facts; readonly root: string; readonly found: ReadonlySet<Matchers> };
const kept = new WeakMap<readonly Matchers[], Kept>();

// Those of the patterns that together cover every top-level command; none where one is left open.
function coveringTops<M extends Matchers>(patterns: readonly M[], facts: Facts, root: string): readonly M[] {
  let known = kept.get(patterns);
  if (known === undefined || known.facts !== facts || known.root !== root) {
    known = { facts, root, found: new Set(topHits(patterns, facts, root)) };
    kept.set(patterns, known);
  }
  const { found } = known;
  return patterns.filter((m) => found.has(m));
}

function topHits<M extends Matchers>(patterns: readonly M[], facts: Facts, root: string): readonly M[] {
  const found = new Set<M>();
  const tops = topParts(facts);
  for (const top of tops) {
    const hidden = needsNaming(top.part) !== undefined;
    const hits = patterns.filter((m) =>
      (!hidden || saysAll(m, top.part)) && matchesSubject(m, facts, top, "allow", root)
    );
    if (hits.length === 0) return [];
    for (const hit of hits) found.add(hit);
  }
  return [...found];
}

/** Whether the pattern holds a command that is, word for word, this part. */
export function saysAll(m: { readonly command?: readonly CommandPattern[] }, part: Part): boolean {
  return m.command?.some((c) => !c.rest && matchesCommand(c, part, "allow")) === true;
}

export type PartSubject = Extract<Subject, { readonly kind: "part" }>;

/** The commands that the text itself names, in order. */
export function topParts(facts: Facts): readonly PartSubject[] {
  return facts.subjects.filter((s): s is PartSubject => s.kind === "part" && s.part.level === "top");
}

/** A command that another one runs. */
export function isInner(subject: Subject): subject is PartSubject {
  return subject.kind === "part" && subject.part.level === "inner";
}

/** Words that a program of which nothing is known may run. */
export function isGuess(subject: Subject): boolean {
  return subject.kind === "part" && subject.part.level === "guessed";
}

/** Whether only rules that restrict speak of it: a path operand, or words that are no more than guessed to run. */
export function isOperand(subject: Subject): boolean {
  return isGuess(subject) || (subject.kind === "path" && subject.operand);
}
