// One line of a policy and whether it matches a subject. Allow looks narrowly, deny and ask look widely.
import { type CommandPattern, matchesCommand } from "./command.ts";
import type { Effect, LayerName, Risk } from "./decision.ts";
import type { Facts, HostFact, Mode, Part, PathFact, Subject } from "./facts.ts";
import type { Args } from "./message.ts";
import type { Position } from "./problem.ts";
import { canonicalJson, type Pattern, wildcard } from "./text.ts";

/** Over absolute normalised paths. `literal`: written without wildcards. */
export type PathPattern = { readonly source: string; readonly literal: boolean; readonly pattern: Pattern };
export type HostPattern =
  | { readonly kind: "exact"; readonly host: string }
  | { readonly kind: "under"; readonly domain: string }
  | { readonly kind: "any" }
  | { readonly kind: "private" };

/** Matchers are AND-ed; inside one list any entry is enough; an absent matcher matches everything. */
export type Matchers = {
  /** Globs over tool names. */
  readonly tools: readonly string[];
  readonly command?: readonly CommandPattern[];
  readonly path?: readonly PathPattern[];
  readonly host?: readonly HostPattern[];
  readonly skill?: readonly string[];
  readonly args?: { readonly [name: string]: readonly string[] };
  /** Carves from the one matcher beside it. */
  readonly exceptCommand?: readonly CommandPattern[];
  readonly exceptPath?: readonly PathPattern[];
  readonly exceptHost?: readonly HostPattern[];
  readonly box?: readonly string[];
  readonly risk?: readonly Risk[];
  readonly sourcedBy?: readonly string[];
  readonly mode?: Mode;
  readonly workspace?: string;
};

export type Rule = Matchers & {
  readonly id: string;
  readonly effect: Effect;
  readonly layer: LayerName;
  readonly at: Position;
  /** The rule as one line, for people. */
  readonly text: string;
  readonly reason?: string;
  /** No grant answers this ask. */
  readonly always?: boolean;
};

/** How deep a pattern looks: `allow` at the resolved path and fully understood top-level commands, `restrict` at everything. */
export type Reach = "allow" | "restrict";

export function matchesSubject(
  m: Matchers,
  facts: Facts,
  subject: Subject,
  reach: Reach,
  root: string,
): boolean {
  return toolMatches(m, facts, subject, reach) &&
    subjectMatches(m, subject, reach) &&
    argsMatch(m, facts) &&
    boxMatches(m, facts, reach) &&
    (m.risk === undefined || m.risk.includes(facts.risk)) &&
    (m.mode === undefined || m.mode === facts.mode) &&
    (m.workspace === undefined || m.workspace === root) &&
    (m.sourcedBy === undefined || anyFits(m.sourcedBy, facts.sourcedBy));
}

function anyFits(globs: readonly string[], names: readonly string[]): boolean {
  return names.some((name) => globs.some((glob) => wildcard(glob, name)));
}

/** Whether the rule says exactly this call: at least one matcher, and no wildcard in what matched. */
export function namesExactly(m: Matchers, subject: Subject): boolean {
  if (m.tools.some((t) => t.includes("*"))) return false;
  switch (subject.kind) {
    case "part":
      return m.command?.some((c) => !c.rest && matchesCommand(c, subject.part, "allow")) === true;
    case "path":
      return m.path?.some((p) => p.literal && pathMatches(p, subject.path, "allow")) === true;
    case "host":
      return m.host?.some((h) => h.kind === "exact" && hostMatches(h, subject.host)) === true;
    case "call":
      // A matcher of another kind does not match the call as a whole.
      return m.args !== undefined &&
        Object.values(m.args).flat().every((glob) => !glob.includes("*"));
  }
}

/**
 * Whether the rule speaks of the subject's tool. A redirection inside a shell command is judged as write_file: rules that
 * restrict may name either tool; a rule that allows must name the one that says what happens. What a tool of a skill
 * runs is met by rules that restrict shell; only rules for the tool itself allow it.
 */
export function toolMatches(m: Matchers, facts: Facts, subject: Subject, reach: Reach): boolean {
  if (subject.kind !== "path") {
    return namesTool(m, facts.tool) ||
      (reach === "restrict" && subject.kind === "part" && subject.tool !== undefined &&
        namesTool(m, subject.tool));
  }
  return namesTool(m, subject.tool) || (reach === "restrict" && namesTool(m, facts.tool));
}

/** Whether one of the globs over tool names covers this name. */
export function namesTool({ tools }: Pick<Matchers, "tools">, name: string): boolean {
  for (const glob of tools) if (glob === name || (glob.includes("*") && wildcard(glob, name))) return true;
  return false;
}

function subjectMatches(m: Matchers, subject: Subject, reach: Reach): boolean {
  // What is said of the call without naming a command is said of the part that holds these words.
  if (m.command === undefined && subject.kind === "part" && subject.part.level === "guessed") return false;
  if (m.command !== undefined) {
    if (subject.kind !== "part" || !matchesOne(m.command, subject.part, reach)) return false;
    if (m.exceptCommand !== undefined && matchesOne(m.exceptCommand, subject.part, opposite(reach))) {
      return false;
    }
  }
  if (m.path !== undefined) {
    if (subject.kind !== "path") return false;
    const { below } = subject;
    return pathReached(m, subject.path, reach) ||
      (reach === "restrict" &&
        below?.paths.some((path) => pathReached(m, { absolute: path, resolved: path }, reach)) === true);
  }
  if (m.host !== undefined) {
    if (subject.kind !== "host" || !m.host.some((h) => hostMatches(h, subject.host))) return false;
    if (m.exceptHost?.some((h) => hostMatches(h, subject.host))) return false;
  }
  return true;
}

// Every command rule comes by here for every part: a loop, since it is measurably faster than a function for each.
function matchesOne(patterns: readonly CommandPattern[], part: Part, reach: Reach): boolean {
  for (const pattern of patterns) if (matchesCommand(pattern, part, reach)) return true;
  return false;
}

// What is carved from a deny loosens it, so the carving must be as narrow as an allow; and the other way round.
function opposite(reach: Reach): Reach {
  return reach === "allow" ? "restrict" : "allow";
}

/** Where a path leads, and where it stands. */
type Place = Pick<PathFact, "resolved" | "absolute">;

function pathReached(m: Matchers, path: Place, reach: Reach): boolean {
  return m.path?.some((p) => pathMatches(p, path, reach)) === true &&
    m.exceptPath?.some((p) => pathMatches(p, path, opposite(reach))) !== true;
}

function pathMatches(p: PathPattern, path: Place, reach: Reach): boolean {
  if (path.resolved !== undefined && p.pattern.test(path.resolved)) return true;
  return reach === "restrict" && p.pattern.test(path.absolute);
}

export function hostMatches(p: HostPattern, host: HostFact): boolean {
  switch (p.kind) {
    case "exact":
      return host.host === p.host;
    case "under":
      return host.host.endsWith(`.${p.domain}`);
    case "any":
      return true;
    case "private":
      return host.private;
  }
}

// load_skill(review-*): a specifier over a skill's name, or over what is asked of find_skill.
function argsMatch(m: Matchers, facts: Facts): boolean {
  return skillMatches(m, facts) &&
    Object.entries(m.args ?? {}).every(([name, globs]) => argMatches(globs, facts.args[name]));
}

export function skillMatches(m: Matchers, facts: Facts): boolean {
  if (m.skill === undefined) return true;
  const name = skillAsked(facts);
  return name !== undefined && anyFits(m.skill, [name]);
}

/** What a call says of a skill: its name, or what is searched for. */
export function skillAsked({ args }: Facts): string | undefined {
  const name = args["name"] ?? args["skill"] ?? args["query"];
  return typeof name === "string" ? name : undefined;
}

/** Whether one of the globs covers an argument's text; none covers an absent one. */
export function argMatches(globs: readonly string[], value: Args[string] | undefined): boolean {
  const text = argText(value);
  return text !== undefined && anyFits(globs, [text]);
}

/** An argument as the globs of rules see it. */
export function argText(value: Args[string] | undefined): string | undefined {
  return value === undefined ? undefined : typeof value === "string" ? value : canonicalJson(value);
}

export function boxMatches(m: Matchers, facts: Facts, reach: Reach): boolean {
  if (m.box !== undefined) return m.box.includes(facts.box);
  return reach === "restrict" || facts.box === "default";
}
