// The decision on one tool call: every layer, bound, gate, floor and error votes; the strictest vote wins.
import { type Bound, boundVotes } from "./bound.ts";
import { needsNaming } from "./command.ts";
import { commandRisk } from "./command_risk.ts";
import { type Cause, type Effect, type Risk, stricter, tally, type Verdict } from "./decision.ts";
import { type Facts, showSubject, type Subject } from "./facts.ts";
import { type GateBlock, gateVotes } from "./gate.ts";
import { embeddedDefaults, type Layer } from "./policy.ts";
import { matchesSubject, namesExactly, type Rule } from "./rule.ts";

/** What the session adds to the policy when a call is decided. */
export type Standing = {
  readonly root: string;
  /** Names of the skills that are active now. */
  readonly active: readonly string[];
  readonly bounds: readonly Bound[];
  readonly blocks: readonly GateBlock[];
};

/**
 * Layers come from the most to the least trusted. The result depends on nothing but its arguments and never on the
 * order of rules; it carries every vote.
 */
export function decide(layers: readonly Layer[], facts: Facts, standing: Standing): Verdict {
  const votes: Cause[] = [
    ...errorVotes(facts, standing),
    ...gateVotes(standing.blocks),
    ...boundVotes(standing.bounds, facts, standing.root),
    ...facts.subjects.flatMap((subject) => subjectVotes(layers, facts, subject, standing.root)),
    ...floorVotes(layers, facts, standing.root),
  ];
  const [first, ...rest] = votes;
  return tally(first === undefined ? [embeddedDefault(facts.risk, undefined)] : [first, ...rest]);
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

function subjectVotes(layers: readonly Layer[], facts: Facts, subject: Subject, root: string): Cause[] {
  const votes: Cause[] = [];
  layers.forEach((layer, index) => votes.push(...layerVotes(layers, index, layer, facts, subject, root)));
  votes.push(...privateHostVotes(layers, facts, subject, root));
  const gap = coverageGap(layers, facts, subject, root);
  if (gap !== undefined) votes.push({ by: "coverage", effect: "ask", why: gap, ...named(subject) });
  const decidedByRule = votes.some((v) => v.by !== "coverage");
  if (!decidedByRule && !isOperand(subject)) votes.push(embeddedDefault(riskOf(facts, subject), subject));
  return votes;
}

// The layer's vote is the strictest of its matching rules, else its default for the risk, else nothing.
function layerVotes(
  layers: readonly Layer[],
  index: number,
  layer: Layer,
  facts: Facts,
  subject: Subject,
  root: string,
): Cause[] {
  const matching = matchingRules(layers, index, layer, facts, subject, root);
  const strictest = matching.map((r) => r.effect).reduce<Effect | undefined>(
    (a, b) => a === undefined ? b : stricter(a, b),
    undefined,
  );
  if (strictest !== undefined) {
    return matching.filter((r) => r.effect === strictest).map((r) => ruleCause(r, subject));
  }
  const risk = riskOf(facts, subject);
  const fallback = layer.defaults[risk];
  if (
    fallback === undefined || isOperand(subject) || replacedByDelegate(layers, index, facts, subject, root)
  ) return [];
  return [{
    by: "default",
    effect: fallback.effect,
    layer: layer.name,
    risk,
    at: fallback.at,
    ...named(subject),
  }];
}

function matchingRules(
  layers: readonly Layer[],
  index: number,
  layer: Layer,
  facts: Facts,
  subject: Subject,
  root: string,
): readonly Rule[] {
  return layer.rules.filter((rule) => {
    if (rule.effect === "allow") {
      if (isOperand(subject) || !matchesSubject(rule, facts, subject, "allow", root)) return false;
      return layer.name !== "project" || delegated(layers.slice(0, index), facts, subject, root);
    }
    return matchesSubject(rule, facts, subject, "restrict", root);
  });
}

// A project's allow counts only for what an upper layer delegates, and there it replaces that layer's default.
function delegated(uppers: readonly Layer[], facts: Facts, subject: Subject, root: string): boolean {
  return uppers.some((upper) => delegates(upper, facts, subject, root));
}

function delegates(layer: Layer, facts: Facts, subject: Subject, root: string): boolean {
  return layer.delegates.some((m) => matchesSubject(m, facts, subject, "allow", root));
}

function replacedByDelegate(
  layers: readonly Layer[],
  index: number,
  facts: Facts,
  subject: Subject,
  root: string,
): boolean {
  const layer = layers[index];
  if (layer === undefined || !delegates(layer, facts, subject, root)) return false;
  return layers.slice(index + 1).some((lower) =>
    lower.name === "project" &&
    lower.rules.some((r) => r.effect === "allow" && matchesSubject(r, facts, subject, "allow", root))
  );
}

/** Why no allow rule that is there covers the subject although it must be named; undefined when nothing is amiss. */
function coverageGap(
  layers: readonly Layer[],
  facts: Facts,
  subject: Subject,
  root: string,
): string | undefined {
  if (
    facts.box !== "default" && !isOperand(subject) &&
    !allowedBy(layers, facts, subject, root, (r) => r.box !== undefined)
  ) {
    return `it would run in box \`${facts.box}\``;
  }
  switch (subject.kind) {
    case "call":
      return undefined;
    case "host":
      return undefined;
    case "part": {
      const why = needsNaming(subject.part);
      return why === undefined || allowedBy(layers, facts, subject, root, (r) => r.command !== undefined)
        ? undefined
        : why;
    }
    case "path":
      return pathGap(layers, facts, subject, root);
  }
}

function pathGap(
  layers: readonly Layer[],
  facts: Facts,
  subject: Extract<Subject, { kind: "path" }>,
  root: string,
): string | undefined {
  const { path } = subject;
  if (path.resolved === undefined) return `the path \`${path.written}\` cannot be resolved`;
  if (path.protectedBy !== undefined) {
    const literal = allowedBy(
      layers,
      facts,
      subject,
      root,
      (r) => r.path?.some((p) => p.literal && p.pattern.test(path.resolved ?? "")) ?? false,
    );
    return literal ? undefined : `\`${path.resolved}\` is protected (${path.protectedBy})`;
  }
  if (path.inWorkspace) return undefined;
  const covered = subject.operand
    ? everyPartAllowed(layers, facts, root)
    : allowedBy(layers, facts, subject, root, (r) => r.path !== undefined);
  return covered ? undefined : `\`${path.resolved}\` lies outside the workspace`;
}

function everyPartAllowed(layers: readonly Layer[], facts: Facts, root: string): boolean {
  return facts.subjects.every((s) =>
    s.kind !== "part" || s.part.level === "inner" ||
    allowedBy(layers, facts, s, root, (r) => r.command !== undefined)
  );
}

function allowedBy(
  layers: readonly Layer[],
  facts: Facts,
  subject: Subject,
  root: string,
  naming: (rule: Rule) => boolean,
): boolean {
  return layers.some((layer, index) =>
    layer.rules.some((rule) =>
      rule.effect === "allow" && naming(rule) && matchesSubject(rule, facts, subject, "allow", root) &&
      (layer.name !== "project" || delegated(layers.slice(0, index), facts, subject, root))
    )
  );
}

// Loopback, link-local and private networks are denied unless a machine or user rule names them.
function privateHostVotes(layers: readonly Layer[], facts: Facts, subject: Subject, root: string): Cause[] {
  if (subject.kind !== "host" || !subject.host.private) return [];
  const names = (rule: Rule) =>
    rule.host?.some((h) => h.kind === "private" || (h.kind === "exact" && h.host === subject.host.host)) ??
      false;
  if (allowedBy(layers.filter((l) => l.name !== "project"), facts, subject, root, names)) return [];
  return [{
    by: "rule",
    effect: "deny",
    rule: "builtin.private",
    layer: "builtin",
    at: { file: "(built in)", line: 1, col: 1 },
    text: "fetch_url(@private)",
    reason: "a private or loopback address",
    subject: subject.host.host,
  }];
}

// Destructive is at least ask, unless a machine or user rule names exactly this call.
function floorVotes(layers: readonly Layer[], facts: Facts, root: string): Cause[] {
  if (facts.risk !== "destructive") return [];
  const trusted = layers.filter((l) => l.name !== "project").flatMap((l) => l.rules);
  const judged = facts.subjects.filter((s) => !isOperand(s));
  const dangerous = judged.filter((s) => riskOf(facts, s) === "destructive");
  return (dangerous.length > 0 ? dangerous : judged)
    .filter((s) =>
      !trusted.some((r) =>
        r.effect === "allow" && namesExactly(r, s) && matchesSubject(r, facts, s, "allow", root)
      )
    )
    .map((s) => ({ by: "risk_floor", effect: "ask", risk: facts.risk, ...named(s) }));
}

function riskOf(facts: Facts, subject: Subject): Risk {
  if (subject.kind === "part") return commandRisk(subject.part);
  if (subject.kind === "path" && subject.tool !== facts.tool) {
    return subject.tool === "read_file" ? "read" : "write";
  }
  return facts.risk;
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

function isOperand(subject: Subject): boolean {
  return subject.kind === "path" && subject.operand;
}
