// A second, slow implementation of the decision, written from the design and not from the engine: every vote of every
// layer, unit and rule is written down by brute force, then the maximum is taken. Where the two differ, one is wrong.
import type { BoundingSkill } from "../../src/core/bound.ts";
import { matchesCommand, needsNaming } from "../../src/core/command.ts";
import { commandRisk } from "../../src/core/command_risk.ts";
import type { Cause, Effect, Risk } from "../../src/core/decision.ts";
import type { Facts, Part, Subject } from "../../src/core/facts.ts";
import type { GateState } from "../../src/core/gate_state.ts";
import type { Gate, Layer, SkillSettings } from "../../src/core/policy.ts";
import type { HostPattern, Matchers, PathPattern, Rule } from "../../src/core/rule.ts";

/** Everything that a decision depends on, as raw as the configuration and the session have it. */
export type Question = {
  readonly layers: readonly Layer[];
  readonly facts: Facts;
  readonly root: string;
  readonly active: readonly string[];
  /** Active skills that the user loaded explicitly or that machine or user policy forces. */
  readonly vouched: readonly string[];
  readonly bounding: readonly BoundingSkill[];
  readonly settings: Pick<SkillSettings, "undeclaredTools" | "combineBounds">;
  readonly gates: readonly Gate[];
  readonly gateState: GateState;
  /** The content of the workspace, where it is known. */
  readonly tree: string | undefined;
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

// Operands meet what restricts, and protection; the rest is judged in full.
function isJudged(s: Subject): boolean {
  return s.kind !== "path" || !s.operand;
}

function tops(q: Question): readonly Subject[] {
  return q.facts.subjects.filter((s) => s.kind === "part" && s.part.level === "top");
}

function isInside(s: Subject): boolean {
  return s.kind === "part" && s.part.level === "inner";
}

// A part has the risk of its command, a redirection is a full write_file decision, anything else is the call.
function riskOf(facts: Facts, s: Subject): Risk {
  if (s.kind === "part") return commandRisk(s.part);
  if (s.kind === "path" && facts.tool === "shell") return s.tool === "write_file" ? "write" : "read";
  return facts.risk;
}

function subjectVotes(q: Question, s: Subject): readonly Vote[] {
  const votes: Vote[] = [];
  for (const layer of q.layers) votes.push(...layerVotes(q, layer, s));
  votes.push(...privateVotes(q, s));
  if (isJudged(s) && votes.length === 0) votes.push(embeddedVote(riskOf(q.facts, s)));
  return [...votes, ...coverageVotes(q, s)];
}

function layerVotes(q: Question, layer: Layer, s: Subject): readonly Vote[] {
  const hits = [
    ...layer.rules.filter((r) => r.effect !== "allow" && restricts(q, r, s)),
    ...(isJudged(s) ? allowsOf(q, layer, s) : []),
  ];
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

// The riskier of two commands must not hide the other one from a rule about its risk.
function restricts(q: Question, m: Matchers, s: Subject): boolean {
  return [q.facts.risk, riskOf(q.facts, s)].some((risk) =>
    matches(m, { ...q.facts, risk }, s, "wide", q.root)
  );
}

// ---- allow rules --------------------------------------------------------------------------------------------------

function isUpper(layer: Layer): boolean {
  return layer.name === "machine" || layer.name === "user";
}

/** What of these patterns covers the subject; a command inside others is covered with all that stands outside. */
function covering<M extends Matchers>(q: Question, patterns: readonly M[], s: Subject): readonly M[] {
  const facts = { ...q.facts, sourcedBy: q.facts.sourcedBy.filter((by) => q.vouched.includes(by.slice(6))) };
  const direct = patterns.filter((m) => matches(m, facts, s, "narrow", q.root));
  if (direct.length > 0 || !isInside(s)) return direct;
  const outside = tops(q).map((top) =>
    patterns.filter((m) =>
      matches(m, facts, top, "narrow", q.root) &&
      (!hides(top) || (top.kind === "part" && saysAll(m, top.part)))
    )
  );
  return outside.every((hits) => hits.length > 0) ? outside.flat() : [];
}

function hides(s: Subject): boolean {
  return s.kind === "part" && needsNaming(s.part) !== undefined;
}

function saysAll(m: Matchers, part: Part): boolean {
  return (m.command ?? []).some((c) => !c.rest && matchesCommand(c, part, "allow"));
}

function delegates(q: Question, layer: Layer, s: Subject): boolean {
  return isUpper(layer) && covering(q, layer.delegates, s).length > 0;
}

function allowsOf(
  q: Question,
  layer: Layer,
  s: Subject,
  like: (rule: Rule) => boolean = () => true,
): readonly Rule[] {
  if (layer.name === "project" && !q.layers.some((upper) => delegates(q, upper, s))) return [];
  return covering(q, layer.rules.filter((r) => r.effect === "allow" && like(r)), s);
}

function replacedByProject(q: Question, layer: Layer, s: Subject): boolean {
  return delegates(q, layer, s) &&
    q.layers.some((l) => l.name === "project" && allowsOf(q, l, s).length > 0);
}

function allowedLike(q: Question, s: Subject, like: (rule: Rule) => boolean): boolean {
  return q.layers.some((layer) => allowsOf(q, layer, s, like).length > 0);
}

// ---- coverage, private hosts --------------------------------------------------------------------------------------

function coverageVotes(q: Question, s: Subject): readonly Vote[] {
  return needsCoverage(q, s) ? [{ effect: "ask", key: "coverage" }] : [];
}

function needsCoverage(q: Question, s: Subject): boolean {
  if (isJudged(s) && q.facts.box !== "default" && !allowedLike(q, s, (r) => r.box !== undefined)) return true;
  if (s.kind === "path") {
    const { resolved, protectedBy, inWorkspace } = s.path;
    if (resolved === undefined) return true;
    if (protectedBy !== undefined) return !allowedLike(q, s, (r) => namesPath(r, resolved, "literal"));
    if (inWorkspace) return false;
    // The design asks about file tools only; a command that reads outside is held to the same, unless it is named.
    return s.operand
      ? !tops(q).every((top) => allowedLike(q, top, (r) => r.command !== undefined))
      : !allowedLike(q, s, (r) => namesPath(r, resolved, "any"));
  }
  if (s.kind !== "part" || !hides(s)) return false;
  if (!isInside(s)) return !allowedLike(q, s, (r) => r.command !== undefined);
  return tops(q).length === 0 ||
    tops(q).some((top) => top.kind === "part" && !allowedLike(q, top, (r) => saysAll(r, top.part)));
}

function namesPath(rule: Matchers, resolved: string, how: "literal" | "any"): boolean {
  return (rule.path ?? []).some((p) => (how === "any" || p.literal) && p.pattern.test(resolved));
}

function privateVotes(q: Question, s: Subject): readonly Vote[] {
  if (s.kind !== "host" || !s.host.private) return [];
  const lifted = q.layers.filter(isUpper).flatMap((layer) => allowsOf(q, layer, s)).some((r) =>
    (r.host ?? []).some((h) => h.kind === "private" || (h.kind === "exact" && h.host === s.host.host))
  );
  return lifted ? [] : [{ effect: "deny", key: "rule builtin builtin.private" }];
}

// ---- errors, floor, bounds, gates ---------------------------------------------------------------------------------

function errorVotes(q: Question): readonly Vote[] {
  const unknown = q.facts.sourcedBy.filter((s) => !q.active.some((name) => s === `skill:${name}`));
  return [
    ...q.facts.errors.map((e): Vote => ({ effect: "deny", key: `error ${e.code}` })),
    ...unknown.map((): Vote => ({ effect: "deny", key: "error unknown_source" })),
  ];
}

function floorVotes(q: Question): readonly Vote[] {
  const dangerous = q.facts.subjects.filter((s) => isJudged(s) && riskOf(q.facts, s) === "destructive");
  const said = dangerous.every((s) => (isInside(s) ? tops(q) : [s]).every((outer) => saidExactly(q, outer)));
  return said ? [] : [{ effect: "ask", key: "risk_floor" }];
}

function saidExactly(q: Question, s: Subject): boolean {
  const rules = q.layers.filter(isUpper).flatMap((layer) => allowsOf(q, layer, s));
  return rules.some((rule) => rule.tools.includes(q.facts.tool) && saysWhole(rule, q.facts, s));
}

function saysWhole(rule: Rule, facts: Facts, s: Subject): boolean {
  switch (s.kind) {
    case "part":
      return saysAll(rule, s.part);
    case "path":
      return s.path.resolved !== undefined && namesPath(rule, s.path.resolved, "literal");
    case "host":
      return (rule.host ?? []).some((h) => h.kind === "exact" && h.host === s.host.host);
    case "call": {
      const said = rule.args ?? {};
      return Object.keys(said).length > 0 && Object.keys(facts.args).every((name) => name in said) &&
        Object.values(said).flat().every((glob) => !glob.includes("*"));
    }
  }
}

function boundVotes(q: Question): readonly Vote[] {
  if (["load_skill", "read_skill_file", "complete_skill", "find_skill"].includes(q.facts.tool)) return [];
  // A skill that declares nothing is bound to reading, or, where the operator says so, not at all.
  const bounding = q.bounding.filter((b) =>
    b.allowed !== undefined || q.settings.undeclaredTools !== "unbounded"
  );
  const byUser = (b: BoundingSkill) => b.trigger === "explicit" || b.trigger === "pattern";
  const groups = q.settings.combineBounds === "union"
    ? [bounding.filter(byUser), ...bounding.filter((b) => !byUser(b)).map((b) => [b])]
    : bounding.map((b) => [b]);
  const units = q.facts.subjects.filter(isJudged);
  return groups
    .filter((group) => group.length > 0 && !groupTakes(q, group, units))
    .map((group) => ({ effect: "deny", key: `bound ${group.map((b) => b.name).join(" + ")}` }));
}

// What is listed without a specifier is the whole tool, redirections included; any box may be asked for.
function groupTakes(q: Question, group: readonly BoundingSkill[], units: readonly Subject[]): boolean {
  if (q.facts.risk === "read" && group.some((b) => b.allowed === undefined)) return true;
  const lists = group.flatMap((b) => b.allowed ?? []).flatMap((a) =>
    a.matchers === undefined ? [] : [a.matchers]
  );
  const bare = lists.filter((m) => Object.keys(m).join() === "tools");
  if (bare.some((m) => m.tools.some((g) => globbed(g, q.facts.tool)))) return true;
  const anyBox = { ...q, facts: { ...q.facts, box: "default" } };
  return units.every((s) => covering(anyBox, lists, s).length > 0);
}

function gateVotes(q: Question): readonly Vote[] {
  return q.gates.filter((gate) => isGated(q, gate) && !gateIsOpen(q, gate))
    .map((gate) => ({ effect: "deny", key: `gate ${gate.id}` }));
}

function isGated(q: Question, gate: Gate): boolean {
  return q.facts.subjects.some((s) => gate.before.some((r) => restricts(q, r, s)));
}

function gateIsOpen(q: Question, gate: Gate): boolean {
  const { marks, verdicts, usedUpTo, voidUpTo, spared } = q.gateState;
  const own = Object.entries(spared).find(([id, s]) => id === gate.id && s.at === q.gateState.staleUpTo)?.[1];
  const staleUpTo = own === undefined ? q.gateState.staleUpTo : own.floor;
  const given = gate.verdict === undefined ? [] : verdicts[gate.skill ?? ""] ?? [];
  const refusals = given.filter((v) => !gate.verdict?.includes(v.outcome)).map((v) => v.seq);
  const isFresh = (item: { readonly seq: number; readonly tree?: string }) =>
    item.seq > voidUpTo && item.seq > (usedUpTo[gate.id] ?? 0) &&
    (item.tree === undefined || q.tree === undefined ? item.seq > staleUpTo : item.tree === q.tree);
  const isAlone = tops(q).length <= 1 && (!q.facts.subjects.some(isInside) ||
    tops(q).some((top) => !hides(top) && gate.before.some((r) => restricts(q, r, top))));
  if (!isAlone) return false;
  for (let i = 0; i < gate.evidence.length; i++) {
    const mark = marks[`${gate.id}#${i}`];
    if (mark === undefined || !isFresh(mark) || refusals.some((seq) => seq >= mark.seq)) return false;
  }
  if (gate.verdict === undefined) return true;
  const newest = [...given].sort((a, b) => b.seq - a.seq)[0];
  return newest !== undefined && isFresh(newest) && gate.verdict.includes(newest.outcome) &&
    newest.gates.includes(gate.id) && (gate.by !== "fork" || newest.fork);
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
