// A second, slow implementation of the decision, written from the design and not from the engine: every vote of every
// layer, unit and rule is written down by brute force, then the maximum is taken. Where the two differ, one is wrong.
import type { BoundingSkill } from "../../src/core/bound.ts";
import { matchesCommand, needsNaming } from "../../src/core/command.ts";
import type { Cause, Effect, Risk } from "../../src/core/decision.ts";
import type { Facts, Subject } from "../../src/core/facts.ts";
import type { GateState } from "../../src/core/gate.ts";
import type { Gate, Layer, SkillSettings } from "../../src/core/policy.ts";
import type { HostPattern, Matchers, PathPattern, Rule } from "../../src/core/rule.ts";

/** Everything that a decision depends on, as raw as the configuration and the session have it. */
export type Question = {
  readonly layers: readonly Layer[];
  readonly facts: Facts;
  readonly root: string;
  readonly active: readonly string[];
  readonly bounding: readonly BoundingSkill[];
  readonly settings: Pick<SkillSettings, "undeclaredTools" | "combineBounds">;
  readonly gates: readonly Gate[];
  readonly gateState: GateState;
};
/** The effect and the keys (kind and name, sorted, each once) of the votes that are as strict as it. */
export type OracleVerdict = { readonly effect: Effect; readonly strictest: readonly string[] };

type Vote = { readonly effect: Effect; readonly key: string };
type Look = "narrow" | "wide";

/** What a cause is called when two verdicts are compared. */
export function causeKey(cause: Cause): string {
  switch (cause.by) {
    case "rule":
      return `rule ${cause.layer} ${cause.rule}`;
    case "default":
      return `default ${cause.layer} ${cause.risk}`;
    case "bound":
      return `bound ${cause.skill}`;
    case "gate":
      return `gate ${cause.gate}`;
    case "error":
      return `error ${cause.code}`;
    case "coverage":
    case "risk_floor":
      return cause.by;
  }
}

export function oracle(q: Question): OracleVerdict {
  const votes = [
    ...errorVotes(q),
    ...boundVotes(q),
    ...gateVotes(q),
    ...floorVotes(q),
    ...q.facts.subjects.flatMap((s) => subjectVotes(q, s)),
  ];
  if (votes.length === 0) votes.push(embeddedVote(q.facts.risk));
  const effect: Effect = votes.some((v) => v.effect === "deny")
    ? "deny"
    : votes.some((v) => v.effect === "ask")
    ? "ask"
    : "allow";
  return { effect, strictest: keysOf(votes.filter((v) => v.effect === effect)) };
}

function keysOf(votes: readonly Vote[]): readonly string[] {
  return [...new Set(votes.map((v) => v.key))].sort();
}

// ---- one unit after the other -------------------------------------------------------------------------------------

// Operands and commands that only run inside others meet what restricts; the rest is judged in full.
function isJudged(s: Subject): boolean {
  if (s.kind === "path") return !s.operand;
  return s.kind !== "part" || s.part.level === "top";
}

// A redirection is a full write_file decision.
function riskOf(facts: Facts, s: Subject): Risk {
  return s.kind === "path" && s.tool === "write_file" && facts.tool === "shell" ? "write" : facts.risk;
}

function subjectVotes(q: Question, s: Subject): readonly Vote[] {
  const votes: Vote[] = [];
  for (const layer of q.layers) votes.push(...layerVotes(q, layer, s));
  if (isJudged(s) && votes.length === 0) votes.push(embeddedVote(riskOf(q.facts, s)));
  return [...votes, ...privateVotes(q, s), ...coverageVotes(q, s)];
}

function layerVotes(q: Question, layer: Layer, s: Subject): readonly Vote[] {
  const hits = layer.rules.filter((rule) =>
    rule.effect === "allow"
      ? isJudged(s) && allowCounts(q, layer, rule, s)
      : matches(rule, q.facts, s, "wide", q.root)
  );
  for (const effect of ["deny", "ask", "allow"]) {
    const strictest = hits.filter((rule) => rule.effect === effect);
    if (strictest.length > 0) {
      return strictest.map((r) => ({ effect: r.effect, key: `rule ${r.layer} ${r.id}` }));
    }
  }
  const risk = riskOf(q.facts, s);
  const fallback = layer.defaults[risk];
  if (!isJudged(s) || fallback === undefined || replacedByProject(q, layer, s)) return [];
  return [{ effect: fallback.effect, key: `default ${layer.name} ${risk}` }];
}

function embeddedVote(risk: Risk): Vote {
  return { effect: risk === "read" ? "allow" : "ask", key: `default builtin ${risk}` };
}

function isUpper(layer: Layer): boolean {
  return layer.name === "machine" || layer.name === "user";
}

function delegates(q: Question, layer: Layer, s: Subject): boolean {
  return isUpper(layer) && layer.delegates.some((d) => matches(d, q.facts, s, "narrow", q.root));
}

function allowCounts(q: Question, layer: Layer, rule: Rule, s: Subject): boolean {
  if (rule.effect !== "allow" || !matches(rule, q.facts, s, "narrow", q.root)) return false;
  if (rule.sourcedBy !== undefined && q.facts.risk !== "read") return false;
  return layer.name !== "project" || q.layers.some((upper) => delegates(q, upper, s));
}

function replacedByProject(q: Question, layer: Layer, s: Subject): boolean {
  return delegates(q, layer, s) &&
    q.layers.some((l) => l.name === "project" && l.rules.some((r) => allowCounts(q, l, r, s)));
}

function allAllows(q: Question, s: Subject, which: (layer: Layer) => boolean): readonly Rule[] {
  return q.layers.filter(which).flatMap((layer) => layer.rules.filter((r) => allowCounts(q, layer, r, s)));
}

// ---- coverage, private hosts --------------------------------------------------------------------------------------

function coverageVotes(q: Question, s: Subject): readonly Vote[] {
  const allows = allAllows(q, s, () => true);
  const ask: Vote = { effect: "ask", key: "coverage" };
  const votes: Vote[] = [];
  if (s.kind === "path" && s.path.protectedBy !== undefined) {
    if (!allows.some((r) => namesPath(r, s.path.resolved, "literal"))) votes.push(ask);
  }
  if (!isJudged(s)) return votes;
  if (s.kind === "path" && (s.path.resolved === undefined || !s.path.inWorkspace)) {
    if (!allows.some((r) => namesPath(r, s.path.resolved, "any"))) votes.push(ask);
  }
  if (s.kind === "part" && needsNaming(s.part) !== undefined) {
    if (!allows.some((r) => r.command !== undefined)) votes.push(ask);
  }
  if (q.facts.box !== "default" && !allows.some((r) => r.box !== undefined)) votes.push(ask);
  return votes;
}

function namesPath(rule: Rule, resolved: string | undefined, how: "literal" | "any"): boolean {
  return resolved !== undefined &&
    (rule.path ?? []).some((p) => (how === "any" || p.literal) && p.pattern.test(resolved));
}

function privateVotes(q: Question, s: Subject): readonly Vote[] {
  if (s.kind !== "host" || !s.host.private) return [];
  const lifted = allAllows(q, s, isUpper).some((r) =>
    (r.host ?? []).some((h) => h.kind === "private" || (h.kind === "exact" && h.host === s.host.host))
  );
  return lifted ? [] : [{ effect: "deny", key: `default builtin ${q.facts.risk}` }];
}

// ---- errors, floor, bounds, gates ---------------------------------------------------------------------------------

function errorVotes(q: Question): readonly Vote[] {
  const unknown = q.facts.sourcedBy.filter((s) => !q.active.some((name) => s === `skill:${name}`));
  return [
    ...q.facts.errors.map((e): Vote => ({ effect: "deny", key: `error ${e.code}` })),
    ...unknown.map((): Vote => ({ effect: "deny", key: "error unknown_skill" })),
  ];
}

function floorVotes(q: Question): readonly Vote[] {
  if (q.facts.risk !== "destructive") return [];
  const dangerous = q.facts.subjects.filter((s) => isJudged(s) && riskOf(q.facts, s) === "destructive");
  const named = dangerous.every((s) =>
    q.layers.filter(isUpper).some((layer) =>
      layer.rules.some((r) =>
        (r.effect === "allow" ? allowCounts(q, layer, r, s) : matches(r, q.facts, s, "wide", q.root)) &&
        saysExactly(r, q.facts, s)
      )
    )
  );
  return named && dangerous.length > 0 ? [] : [{ effect: "ask", key: "risk_floor" }];
}

function saysExactly(rule: Rule, facts: Facts, s: Subject): boolean {
  if (!rule.tools.includes(facts.tool)) return false;
  switch (s.kind) {
    case "part":
      return (rule.command ?? []).some((c) => !c.rest && matchesCommand(c, s.part, "allow"));
    case "path":
      return namesPath(rule, s.path.resolved, "literal");
    case "host":
      return (rule.host ?? []).some((h) => h.kind === "exact" && h.host === s.host.host);
    case "call":
      return rule.args !== undefined &&
        Object.values(rule.args).every((globs) => globs.every((g) => !g.includes("*"))) &&
        Object.keys(facts.args).every((name) => rule.args?.[name] !== undefined);
  }
}

function boundVotes(q: Question): readonly Vote[] {
  if (["load_skill", "find_skill", "read_skill_file", "complete_skill"].includes(q.facts.tool)) return [];
  const groups: (readonly BoundingSkill[])[] = [];
  if (q.settings.combineBounds === "union") {
    const byUser = q.bounding.filter((b) => b.trigger === "explicit" || b.trigger === "pattern");
    if (byUser.length > 0) groups.push(byUser);
    groups.push(...q.bounding.filter((b) => !byUser.includes(b)).map((b) => [b]));
  } else {
    groups.push(...q.bounding.map((b) => [b]));
  }
  const units = q.facts.subjects.filter(isJudged);
  return groups
    .filter((group) => !units.every((s) => group.some((skill) => skillTakes(q, skill, s))))
    .map((group) => ({ effect: "deny", key: `bound ${group.map((b) => b.name).join(", ")}` }));
}

function skillTakes(q: Question, skill: BoundingSkill, s: Subject): boolean {
  if (skill.allowed === undefined) {
    if (q.settings.undeclaredTools === "unbounded") return true;
    return q.settings.undeclaredTools === "read_only" && q.facts.risk === "read";
  }
  const anyBox = { ...q.facts, box: "default" };
  return skill.allowed.some((a) =>
    a.matchers !== undefined && matches(a.matchers, anyBox, s, "narrow", q.root)
  );
}

function gateVotes(q: Question): readonly Vote[] {
  return q.gates.filter((gate) => isGated(q, gate) && !gateIsOpen(q, gate))
    .map((gate) => ({ effect: "deny", key: `gate ${gate.id}` }));
}

function isGated(q: Question, gate: Gate): boolean {
  return q.facts.subjects.some((s) => gate.before.some((r) => matches(r, q.facts, s, "wide", q.root)));
}

function gateIsOpen(q: Question, gate: Gate): boolean {
  const { marks, verdicts, staleUpTo, usedUpTo } = q.gateState;
  const isFresh = (seq: number) => seq > staleUpTo && seq > (usedUpTo[gate.id] ?? 0);
  const parts = q.facts.subjects.filter((s) => s.kind === "part");
  if (parts.length > 1) return false;
  for (let i = 0; i < gate.evidence.length; i++) {
    const mark = marks[`${gate.id}#${i}`];
    if (mark === undefined || !isFresh(mark.seq)) return false;
  }
  if (gate.verdict === undefined) return true;
  const given = [...(gate.skill === undefined ? [] : verdicts[gate.skill] ?? [])];
  const newest = given.sort((a, b) => b.seq - a.seq)[0];
  return newest !== undefined && isFresh(newest.seq) && gate.verdict.includes(newest.outcome);
}

// ---- matching -----------------------------------------------------------------------------------------------------

function matches(m: Matchers, facts: Facts, s: Subject, look: Look, root: string): boolean {
  const tools = s.kind === "path" && s.tool !== facts.tool
    ? (look === "narrow" ? [s.tool] : [s.tool, facts.tool])
    : [facts.tool];
  if (!m.tools.some((g) => tools.some((t) => globbed(g, t)))) return false;
  if (m.box === undefined ? look === "narrow" && facts.box !== "default" : !m.box.includes(facts.box)) {
    return false;
  }
  if (m.risk !== undefined && !m.risk.includes(facts.risk)) return false;
  if (m.mode !== undefined && m.mode !== facts.mode) return false;
  if (m.workspace !== undefined && m.workspace !== root) return false;
  if (m.sourcedBy !== undefined && !facts.sourcedBy.some((by) => m.sourcedBy?.some((g) => globbed(g, by)))) {
    return false;
  }
  if (m.skill !== undefined) {
    const wanted = facts.args["name"] ?? facts.args["skill"];
    if (typeof wanted !== "string" || !m.skill.some((g) => globbed(g, wanted))) return false;
  }
  for (const [name, globs] of Object.entries(m.args ?? {})) {
    const value = facts.args[name];
    if (value === undefined) return false;
    if (!globs.some((g) => globbed(g, typeof value === "string" ? value : JSON.stringify(value)))) {
      return false;
    }
  }
  return commandFits(m, s, look) && pathFits(m, s, look) && hostFits(m, s);
}

// An exception to a rule that restricts is itself a loosening, so it looks as narrowly as an allow; and conversely.
function otherLook(look: Look): Look {
  return look === "narrow" ? "wide" : "narrow";
}

function commandFits(m: Matchers, s: Subject, look: Look): boolean {
  if (m.command === undefined) return true;
  if (s.kind !== "part") return false;
  const { part } = s;
  const reach = (at: Look) => at === "narrow" ? "allow" as const : "restrict" as const;
  return m.command.some((c) => matchesCommand(c, part, reach(look))) &&
    !(m.exceptCommand ?? []).some((c) => matchesCommand(c, part, reach(otherLook(look))));
}

function pathFits(m: Matchers, s: Subject, look: Look): boolean {
  if (m.path === undefined) return true;
  if (s.kind !== "path") return false;
  const hit = (p: PathPattern, at: Look) =>
    (s.path.resolved !== undefined && p.pattern.test(s.path.resolved)) ||
    (at === "wide" && p.pattern.test(s.path.absolute));
  return m.path.some((p) => hit(p, look)) && !(m.exceptPath ?? []).some((p) => hit(p, otherLook(look)));
}

function hostFits(m: Matchers, s: Subject): boolean {
  if (m.host === undefined) return true;
  if (s.kind !== "host") return false;
  const hit = (p: HostPattern) => {
    if (p.kind === "any") return true;
    if (p.kind === "private") return s.host.private;
    if (p.kind === "exact") return p.host === s.host.host;
    return s.host.host.length > p.domain.length + 1 && s.host.host.endsWith("." + p.domain);
  };
  return m.host.some(hit) && !(m.exceptHost ?? []).some(hit);
}

function globbed(glob: string, text: string): boolean {
  const source = glob.split("*").map((piece) => piece.replace(/[.+?^${}()|[\]\\]/g, "\\$&")).join("[^]*");
  return new RegExp(`^${source}$`).test(text);
}
