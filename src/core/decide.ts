// The decision on one tool call: every layer, bound, gate, floor and error votes; the strictest vote wins.
import { type Bound, boundVotes } from "./bound.ts";
import { needsNaming } from "./command.ts";
import {
  covering,
  isInner,
  isOperand,
  type PartSubject,
  restricts,
  riskOf,
  saysAll,
  topParts,
} from "./covering.ts";
import { type Cause, type Effect, type Risk, stricter, tally, type Verdict } from "./decision.ts";
import { type Facts, showSubject, type Subject } from "./facts.ts";
import { type GateBlock, gateVotes } from "./gate.ts";
import { type SplitLayer, splitLayer } from "./layer_split.ts";
import { embeddedDefaults, type Layer } from "./policy.ts";
import { matchesSubject, namesExactly, type Rule } from "./rule.ts";
import { wildcard } from "./text.ts";

/** What the session adds to the policy when a call is decided. */
export type Standing = {
  readonly root: string;
  /** Names of the skills that are active now. */
  readonly active: readonly string[];
  /**
   * Those of them that the user loaded explicitly or that machine or user policy forces: only they help an allow rule
   * with `sourced_by` to match. None when absent.
   */
  readonly vouched?: readonly string[];
  readonly bounds: readonly Bound[];
  readonly blocks: readonly GateBlock[];
};

type Question = {
  readonly layers: readonly SplitLayer[];
  readonly facts: Facts;
  /** The facts as allow rules may see them. */
  readonly allowing: Facts;
  readonly root: string;
  /** The call as a whole, where what it runs is fixed by a skill and not by its arguments. */
  readonly whole: Subject | undefined;
  /** What every command inside another one is answered by: that the call, or else each top-level command, is … */
  readonly tops: {
    readonly said: () => boolean;
    readonly allowed: () => boolean;
    readonly exact: () => boolean;
  };
};

/**
 * Layers come from the most to the least trusted. The result depends on nothing but its arguments and never on the
 * order of rules; it carries every vote.
 */
export function decide(layers: readonly Layer[], facts: Facts, standing: Standing): Verdict {
  const q = questionOf(layers, facts, standing);
  const votes: Cause[] = [
    ...errorVotes(facts, standing),
    ...gateVotes(standing.blocks),
    ...boundVotes(standing.bounds, facts, standing.root),
    ...facts.subjects.flatMap((subject) => subjectVotes(q, subject)),
    ...flooredSubjects(q).flatMap((subject) => floorVote(q, subject)),
  ];
  const [first, ...rest] = votes;
  return tally(first === undefined ? [embeddedDefault(facts.risk, undefined)] : [first, ...rest]);
}

/** For each subject of the facts the votes of the decision that are about it; none where nothing speaks of it. */
export function votesBySubject(
  layers: readonly Layer[],
  facts: Facts,
  standing: Standing,
): (subject: Subject) => readonly Cause[] {
  const q = questionOf(layers, facts, standing);
  const floored = once(() => new Map(flooredSubjects(q).map((s) => [s, floorVote(q, s)])));
  return (subject) => [...subjectVotes(q, subject), ...(floored().get(subject) ?? [])];
}

/** The facts as allow rules may see them: only vouched skills help one with `sourced_by`. */
export function allowingFacts(facts: Facts, vouched: readonly string[] = []): Facts {
  return { ...facts, sourcedBy: facts.sourcedBy.filter((s) => vouched.includes(s.replace(/^skill:/, ""))) };
}

function questionOf(layers: readonly Layer[], facts: Facts, standing: Standing): Question {
  const tools = [
    ...new Set([facts.tool, ...facts.subjects.flatMap((s) => "tool" in s ? s.tool ?? [] : [])]),
  ];
  const q: Question = {
    layers: layers.map((layer) => splitLayer(layer, tools)),
    facts,
    allowing: allowingFacts(facts, standing.vouched),
    root: standing.root,
    whole: ofSkill(facts) ? facts.subjects.find((s) => s.kind === "call") : undefined,
    tops: {
      said: once(() =>
        isWholeNamed(q) ??
          everyTop(q, (top) => isAllowed(q, top, (l) => l.allow.filter((r) => saysAll(r, top.part))))
      ),
      allowed: once(() => isWholeNamed(q) ?? everyTop(q, (top) => isAllowed(q, top, (l) => l.commanded))),
      exact: once(() =>
        q.whole === undefined ? everyTop(q, (top) => saidExactly(q, top)) : saidExactly(q, q.whole)
      ),
    },
  };
  return q;
}

function ofSkill(facts: Facts): boolean {
  return facts.subjects.some((s) => s.kind === "part" && s.tool !== undefined);
}

// A rule that names the tool without wildcard names the command that stands behind it; undefined where there is none.
function isWholeNamed(q: Question): boolean | undefined {
  if (q.whole === undefined) return undefined;
  return isAllowed(q, q.whole, (l) => l.allow.filter((r) => r.tools.includes(q.facts.tool)));
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}

// False where there is none: then nothing answers for what is inside.
function everyTop(q: Question, holds: (top: PartSubject) => boolean): boolean {
  const tops = topParts(q.facts);
  return tops.length > 0 && tops.every(holds);
}

function errorVotes(facts: Facts, standing: Standing): Cause[] {
  const errors: Cause[] = facts.errors.map((e) => ({
    by: "error",
    effect: "deny",
    code: e.code,
    message: e.message,
  }));
  for (const source of facts.sourcedBy) {
    const name = source.replace(/^skill:/, "");
    if (standing.active.includes(name)) continue;
    errors.push({
      by: "error",
      effect: "deny",
      code: "unknown_source",
      message: `no active skill \`${name}\``,
    });
  }
  return errors;
}

function subjectVotes(q: Question, subject: Subject): Cause[] {
  const votes: Cause[] = q.layers.flatMap((layer, index) => layerVotes(q, layer, index, subject));
  votes.push(...privateHostVotes(q, subject));
  const gap = coverageGap(q, subject);
  if (gap !== undefined) votes.push({ by: "coverage", effect: "ask", why: gap, ...named(subject) });
  const decidedByRule = votes.some((v) => v.by !== "coverage");
  if (!decidedByRule && !isOperand(subject)) votes.push(embeddedDefault(riskOf(q.facts, subject), subject));
  return votes;
}

// The layer's vote is the strictest of its matching rules, else its default for the risk, else nothing.
function layerVotes(q: Question, layer: SplitLayer, index: number, subject: Subject): Cause[] {
  const restricting = layer.about(subject).restrict.filter((r) => restricts(r, q.facts, subject, q.root));
  const strictest = restricting.map((r) => r.effect).reduce<Effect>(stricter, "allow");
  if (strictest !== "allow") {
    return restricting.filter((r) => r.effect === strictest).map((r) => ruleCause(r, subject));
  }
  if (isOperand(subject)) return [];
  const allowing = allowRules(q, layer, index, subject);
  if (allowing.length > 0) return allowing.map((r) => ruleCause(r, subject));
  const risk = riskOf(q.facts, subject);
  const fallback = layer.defaults[risk];
  if (fallback === undefined || replacedByDelegate(q, layer, index, subject)) return [];
  return [{
    by: "default",
    effect: fallback.effect,
    layer: layer.name,
    risk,
    at: fallback.at,
    ...named(subject),
  }];
}

// The allow rules of one layer that cover the subject; a project's count only for what an upper layer delegates.
function allowRules(
  q: Question,
  layer: SplitLayer,
  index: number,
  subject: Subject,
  // What is inside another command is covered by rules for that one.
  candidates = isInner(subject) ? layer.allow : layer.about(subject).allow,
): readonly Rule[] {
  const rules = covering(candidates, q.allowing, subject, q.root);
  if (layer.name !== "project" || rules.length === 0) return rules;
  return q.layers.slice(0, index).some((upper) => delegates(q, upper, subject)) ? rules : [];
}

function delegates(q: Question, layer: SplitLayer, subject: Subject): boolean {
  return covering(layer.delegates, q.allowing, subject, q.root).length > 0;
}

// Where a project's allow is delegated it replaces the default of the layer that delegates it, never one of its rules.
function replacedByDelegate(q: Question, layer: SplitLayer, index: number, subject: Subject): boolean {
  return delegates(q, layer, subject) &&
    q.layers.some((lower, at) =>
      at > index && lower.name === "project" && allowRules(q, lower, at, subject).length > 0
    );
}

function isAllowed(
  q: Question,
  subject: Subject,
  candidates: (layer: SplitLayer) => readonly Rule[],
): boolean {
  return q.layers.some((layer, index) => allowRules(q, layer, index, subject, candidates(layer)).length > 0);
}

/** Why no allow rule that is there covers the subject although it must be named; undefined when nothing is amiss. */
function coverageGap(q: Question, subject: Subject): string | undefined {
  const { box } = q.facts;
  if (box !== "default" && !isOperand(subject) && !isAllowed(q, subject, (l) => l.boxed)) {
    return `it would run in box \`${box}\``;
  }
  switch (subject.kind) {
    case "call":
    case "host":
      return undefined;
    case "part": {
      const why = needsNaming(subject.part);
      return why === undefined || isNamed(q, subject) ? undefined : why;
    }
    case "path":
      return pathGap(q, subject);
  }
}

function answeredByTops(q: Question, subject: Subject): boolean {
  return subject.kind === "part" && (q.whole !== undefined || isInner(subject));
}

// What stands inside another command is named by a rule that says the whole of that command.
function isNamed(q: Question, subject: Extract<Subject, { kind: "part" }>): boolean {
  return answeredByTops(q, subject) ? q.tops.said() : isAllowed(q, subject, (l) => l.commanded);
}

// Too many files to look at matter only where a rule could forbid one of them.
function unseenGap(q: Question, subject: Extract<Subject, { kind: "path" }>): string | undefined {
  if (subject.below?.cut !== true) return undefined;
  const names = [subject.tool, q.facts.tool];
  const could = q.layers.some((layer) =>
    layer.restrict.some((r) =>
      r.path !== undefined && r.tools.some((glob) => names.some((name) => wildcard(glob, name)))
    )
  );
  return could ? `\`${subject.path.written}\` holds more files than are looked at` : undefined;
}

function pathGap(q: Question, subject: Extract<Subject, { kind: "path" }>): string | undefined {
  const { path } = subject;
  const { resolved } = path;
  const unseen = unseenGap(q, subject);
  if (unseen !== undefined) return unseen;
  if (resolved === undefined) return `the path \`${path.written}\` cannot be resolved`;
  if (path.protectedBy !== undefined) {
    const literal = isAllowed(
      q,
      subject,
      (l) => l.allow.filter((r) => r.path?.some((p) => p.literal && p.pattern.test(resolved)) === true),
    );
    return literal ? undefined : `\`${resolved}\` is protected (${path.protectedBy})`;
  }
  if (path.inWorkspace) return undefined;
  const covered = subject.operand
    ? topParts(q.facts).length === 0 || q.tops.allowed()
    : isAllowed(q, subject, (l) => l.allow.filter((r) => r.path !== undefined));
  return covered ? undefined : `\`${resolved}\` lies outside the workspace`;
}

// Loopback, link-local and private networks are denied unless a machine or user rule names them.
function privateHostVotes(q: Question, subject: Subject): Cause[] {
  if (subject.kind !== "host" || !subject.host.private) return [];
  const { host } = subject.host;
  const lifted = isAllowed(
    { ...q, layers: q.layers.filter((l) => l.name !== "project") },
    subject,
    (l) =>
      l.allow.filter((r) =>
        r.host?.some((h) => h.kind === "private" || (h.kind === "exact" && h.host === host)) === true
      ),
  );
  if (lifted) return [];
  return [{
    by: "rule",
    effect: "deny",
    rule: "builtin.private",
    layer: "builtin",
    text: "fetch_url(@private)",
    reason: subject.host.leadsTo === undefined
      ? "a private or loopback address"
      : `the name leads to ${subject.host.leadsTo}, a private or loopback address`,
    subject: host,
  }];
}

// Destructive is at least ask, unless a machine or user rule names exactly this call.
function flooredSubjects(q: Question): readonly Subject[] {
  if (q.facts.risk !== "destructive") return [];
  const judged = q.facts.subjects.filter((s) => !isOperand(s));
  const dangerous = judged.filter((s) => riskOf(q.facts, s) === "destructive");
  return (dangerous.length > 0 ? dangerous : judged)
    .filter((s) => answeredByTops(q, s) ? !q.tops.exact() : !saidExactly(q, s));
}

function floorVote(q: Question, subject: Subject): readonly Cause[] {
  return [{ by: "risk_floor", effect: "ask", risk: q.facts.risk, ...named(subject) }];
}

function saidExactly(q: Question, subject: Subject): boolean {
  return q.layers.some((layer) =>
    layer.name !== "project" &&
    layer.allow.some((r) =>
      namesExactly(r, subject) && (subject.kind !== "call" || saysArguments(r, q.facts)) &&
      matchesSubject(r, q.allowing, subject, "allow", q.root)
    )
  );
}

// An argument of which the rule says nothing could turn the call into another one.
function saysArguments(rule: Rule, facts: Facts): boolean {
  return Object.keys(facts.args).every((name) => rule.args?.[name] !== undefined);
}

function embeddedDefault(risk: Risk, subject: Subject | undefined): Cause {
  return {
    by: "default",
    effect: embeddedDefaults[risk],
    layer: "builtin",
    risk,
    ...(subject === undefined ? {} : named(subject)),
  };
}

function ruleCause(rule: Rule, subject: Subject): Cause {
  return {
    by: "rule",
    effect: rule.effect,
    rule: rule.id,
    layer: rule.layer,
    at: rule.at,
    text: rule.text,
    ...(rule.reason === undefined ? {} : { reason: rule.reason }),
    ...named(subject),
  };
}

function named(subject: Subject): { readonly subject?: string } {
  const shown = showSubject(subject);
  return shown === undefined ? {} : { subject: shown };
}
