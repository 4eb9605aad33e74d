// Rules that nearly matched a call, and the one thing that kept each of them from it. For people and for the model, never
// for deciding: what is said here follows from the matchers, it does not replace them.
import { commandMiss } from "./command_miss.ts";
import { covering, isGuess, isOperand, restricts } from "./covering.ts";
import { allowingFacts, type Standing, votesBySubject } from "./decide.ts";
import type { Effect, LayerName } from "./decision.ts";
import { type Facts, type HostFact, showSubject, type Subject } from "./facts.ts";
import type { GlobBase } from "./glob.ts";
import { walkGlob } from "./glob_walk.ts";
import type { Layer } from "./policy.ts";
import { type Position, showPosition } from "./problem.ts";
import {
  argMatches,
  argText,
  boxMatches,
  hostMatches,
  type HostPattern,
  type Reach,
  type Rule,
  skillAsked,
  skillMatches,
  toolMatches,
} from "./rule.ts";

/** What kept a rule from matching. */
export type Missed =
  | "word"
  | "option"
  | "assignment"
  | "unknown"
  | "inside"
  | "segment"
  | "label"
  | "except"
  | "skill"
  | "argument"
  | "box"
  | "risk"
  | "mode"
  | "workspace"
  | "sourced_by"
  | "delegate";

/** `progress` grows with what did match: below 1 the command, path or host itself did not. */
export type Miss = { readonly missed: Missed; readonly why: string; readonly progress: number };

export type NearMiss = {
  readonly rule: string;
  readonly effect: Effect;
  readonly layer: LayerName;
  readonly at: Position;
  readonly text: string;
  readonly missed: Missed;
  readonly why: string;
  /** The part, path or host that the rule came closest to; absent for the call as a whole. */
  readonly subject?: string;
};

export type NearMissInput = {
  /** From the most to the least trusted. */
  readonly layers: readonly Layer[];
  readonly facts: Facts;
  readonly standing: Standing;
  /** Where `~` in a path pattern leads. */
  readonly home: string;
  readonly effects?: readonly Effect[];
  /** How many at most [5]. */
  readonly most?: number;
};

/** Subjects that are looked at: nobody reads about more of them. */
const mostSubjects = 30;

/**
 * The rules of the call's tool that did not match one of its subjects although something of them did, the nearest first;
 * each rule once, with the subject that it came closest to. Rules of equal standing keep their order. An allow rule is
 * no near miss of what is allowed without it, or forbidden whatever it says.
 */
export function nearMisses(input: NearMissInput): readonly NearMiss[] {
  const { layers, facts, standing, effects } = input;
  const votesOn = votesBySubject(layers, facts, standing);
  const subjects = facts.subjects.slice(0, mostSubjects).map((subject) => {
    const votes = votesOn(subject);
    const forbidden = facts.errors.length > 0 || votes.some((v) => v.by === "rule" && v.effect === "deny");
    return { subject, open: !forbidden && votes.some((v) => v.effect !== "allow") };
  });
  const search: Search = {
    ...input,
    subjects,
    allowing: allowingFacts(facts, standing.vouched),
    base: { root: standing.root, home: input.home },
  };
  const found = layers.flatMap((layer, index) =>
    layer.rules.filter((rule) => effects?.includes(rule.effect) ?? true).flatMap((rule) => {
      const nearest = nearestSubject(search, index, rule);
      return nearest === undefined ? [] : [nearest];
    })
  );
  return found.sort((a, b) => b.progress - a.progress).slice(0, input.most ?? 5).map((f) => f.near);
}

type Search = NearMissInput & {
  readonly subjects: readonly { readonly subject: Subject; readonly open: boolean }[];
  readonly allowing: Facts;
  readonly base: GlobBase;
};

/** One line about a near miss, the same for people and for the model. */
export function showNearMiss(near: NearMiss): string {
  return `near miss: ${near.effect} rule ${near.rule} (${near.text}) at ${
    showPosition(near.at)
  }: ${near.why}`;
}

function nearestSubject(
  search: Search,
  layer: number,
  rule: Rule,
): { readonly near: NearMiss; readonly progress: number } | undefined {
  let best: { readonly miss: Miss; readonly subject: Subject } | undefined;
  for (const { subject, open } of search.subjects) {
    if (isGuess(subject) || (rule.effect === "allow" && (!open || isOperand(subject)))) continue;
    const miss = missOf(search, layer, rule, subject);
    if (miss === undefined || miss.progress <= (best?.miss.progress ?? 0)) continue;
    best = { miss, subject };
  }
  if (best === undefined) return undefined;
  const { missed, why, progress } = best.miss;
  const shown = showSubject(best.subject);
  const { id, effect, at, text } = rule;
  return {
    progress,
    near: {
      rule: id,
      effect,
      layer: rule.layer,
      at,
      text,
      missed,
      why,
      ...(shown === undefined ? {} : { subject: shown }),
    },
  };
}

// Undefined when the rule matches, or is about something else altogether.
function missOf(search: Search, layer: number, rule: Rule, subject: Subject): Miss | undefined {
  const { root } = search.standing;
  const facts = rule.effect === "allow" ? search.allowing : search.facts;
  if (!toolMatches(rule, facts, subject, reachOf(rule))) return undefined;
  const matches = rule.effect === "allow"
    ? covering([rule], facts, subject, root).length > 0
    : restricts(rule, facts, subject, root);
  if (matches) return rule.layer === "project" ? delegateMiss(search, layer, rule, subject) : undefined;
  return subjectMiss(rule, subject, search.base) ?? conditionMiss(rule, facts, root);
}

function delegateMiss(search: Search, layer: number, rule: Rule, subject: Subject): Miss | undefined {
  if (rule.effect !== "allow") return undefined;
  const delegated = search.layers.slice(0, layer).some((l) =>
    covering(l.delegates, search.allowing, subject, search.standing.root).length > 0
  );
  return delegated ? undefined : {
    missed: "delegate",
    why: "it matches, but no upper layer delegates such calls to the project",
    progress: 2,
  };
}

function reachOf(rule: Rule): Reach {
  return rule.effect === "allow" ? "allow" : "restrict";
}

function subjectMiss(rule: Rule, subject: Subject, base: GlobBase): Miss | undefined {
  const reach = reachOf(rule);
  const kinds = [rule.command, rule.path, rule.host, rule.exceptCommand, rule.exceptPath, rule.exceptHost];
  if (kinds.every((k) => k === undefined)) return undefined;
  switch (subject.kind) {
    case "call":
      return elsewhere;
    case "part":
      if (rule.command === undefined) return elsewhere;
      return furthest(rule.command.map((c) => commandMiss(c, subject.part, reach))) ??
        carved(rule, "command");
    case "path": {
      if (rule.path === undefined) return elsewhere;
      const { resolved, absolute } = subject.path;
      const seen = reach === "allow" ? [resolved] : [resolved, absolute];
      const misses = rule.path.flatMap((p) =>
        seen.map((path) =>
          path === undefined || path.length > longestPath
            ? unresolved
            : pathMiss(p.source, path, absolute, base)
        )
      );
      return tried(furthest(misses), reach) ?? carved(rule, "path");
    }
    case "host":
      if (rule.host === undefined) return elsewhere;
      return tried(furthest(rule.host.map((h) => hostMiss(h, subject.host))), reach) ?? carved(rule, "host");
  }
}

const elsewhere: Miss = { missed: "word", why: "it is about something else", progress: 0 };
const unresolved: Miss = { missed: "segment", why: "where the path leads cannot be resolved", progress: 0.5 };
/** No system takes a longer path: what follows which level of it is of no use to anybody. */
const longestPath = 4096;

/** The miss that got furthest; undefined when one of the patterns matches. */
function furthest(misses: readonly (Miss | undefined)[]): Miss | undefined {
  let best: Miss | undefined;
  for (const miss of misses) {
    if (miss === undefined) return undefined;
    if (best === undefined || miss.progress > best.progress) best = miss;
  }
  return best ?? elsewhere;
}

// Which paths and hosts are allowed is worth knowing even where the call has nothing in common with them.
function tried(miss: Miss | undefined, reach: "allow" | "restrict"): Miss | undefined {
  return miss === undefined || miss.progress > 0 || reach === "restrict" ? miss : { ...miss, progress: 0.01 };
}

function carved(rule: Rule, kind: "command" | "path" | "host"): Miss | undefined {
  const except = kind === "command"
    ? rule.exceptCommand?.map((c) => c.source)
    : kind === "path"
    ? rule.exceptPath?.map((p) => p.source)
    : rule.exceptHost?.map(showHost);
  if (except === undefined) return undefined;
  return { missed: "except", why: `its \`except\` takes that out: ${except.join(", ")}`, progress: 1 };
}

function pathMiss(glob: string, path: string, written: string, base: GlobBase): Miss | undefined {
  const walk = walkGlob(glob, path, base);
  if (walk.why === undefined) return undefined;
  const link = path !== written && walkGlob(glob, written, base).why === undefined
    ? `, since \`${written}\` leads to \`${path}\``
    : "";
  const progress = link === "" ? walk.followed / (walk.levels + 1) : 0.95;
  return { missed: "segment", why: walk.why + link, progress };
}

function hostMiss(pattern: HostPattern, host: HostFact): Miss | undefined {
  if (hostMatches(pattern, host)) return undefined;
  if (pattern.kind === "private" || pattern.kind === "any") {
    return { missed: "label", why: `\`${host.host}\` is no private address`, progress: 0 };
  }
  if (/^[0-9.]+$|:/.test(host.host)) {
    return {
      missed: "label",
      why: `it names \`${showHost(pattern)}\`, the host is \`${host.host}\``,
      progress: 0,
    };
  }
  const wanted = (pattern.kind === "exact" ? pattern.host : pattern.domain).split(".").reverse();
  const has = host.host.split(".").reverse();
  let same = 0;
  while (same < wanted.length && wanted[same] === has[same]) same++;
  const progress = same / (wanted.length + 1);
  if (same < wanted.length) {
    const why = has[same] === undefined
      ? `label \`${wanted[same]}\` is missing in \`${host.host}\``
      : `label ${same + 1} from the right is \`${wanted[same]}\`, the host has \`${has[same]}\``;
    return { missed: "label", why, progress };
  }
  const why = pattern.kind === "under"
    ? `it is about hosts under \`${pattern.domain}\`, not \`${pattern.domain}\` itself`
    : `the rule names \`${pattern.host}\`, the host goes on with \`${has[same]}\``;
  return { missed: "label", why, progress };
}

function showHost(pattern: HostPattern): string {
  switch (pattern.kind) {
    case "exact":
      return pattern.host;
    case "under":
      return `*.${pattern.domain}`;
    case "any":
      return "*";
    case "private":
      return "@private";
  }
}

// What the call must be beside its command, path or host; the first that does not hold.
function conditionMiss(rule: Rule, facts: Facts, root: string): Miss | undefined {
  const { args, box, risk, mode, workspace, sourcedBy } = rule;
  if (!skillMatches(rule, facts)) {
    const name = skillAsked(facts);
    return {
      missed: "skill",
      why: `it names the skill \`${rule.skill?.join(", ")}\`, the call ${
        name === undefined ? "none" : `\`${name}\``
      }`,
      progress: 0.5,
    };
  }
  const argument = argumentMiss(args ?? {}, facts);
  if (argument !== undefined) return { missed: "argument", why: argument, progress: 1.1 };
  if (!boxMatches(rule, facts, reachOf(rule))) {
    return { missed: "box", why: boxMiss(box, facts), progress: 1.2 };
  }
  if (risk !== undefined && !risk.includes(facts.risk)) {
    return {
      missed: "risk",
      why: `it is about risk ${risk.join(", ")}, the call is ${facts.risk}`,
      progress: 1.3,
    };
  }
  if (mode !== undefined && mode !== facts.mode) {
    return { missed: "mode", why: `it is for ${mode} runs, this one is ${facts.mode}`, progress: 1.4 };
  }
  if (workspace !== undefined && workspace !== root) {
    return {
      missed: "workspace",
      why: `it is for the workspace \`${workspace}\`, this is \`${root}\``,
      progress: 1.5,
    };
  }
  return sourcedBy === undefined
    ? undefined
    : { missed: "sourced_by", why: sourceMiss(sourcedBy, facts), progress: 1.6 };
}

function boxMiss(box: readonly string[] | undefined, facts: Facts): string {
  return box === undefined
    ? `the call would run in box \`${facts.box}\`, which the rule does not name`
    : `it is for box ${box.join(", ")}, the call is for \`${facts.box}\``;
}

function sourceMiss(sourcedBy: readonly string[], facts: Facts): string {
  const has = facts.sourcedBy.length === 0 ? "none" : facts.sourcedBy.join(", ");
  return `it is for calls sourced by ${sourcedBy.join(", ")}; of the active skills ${has} counts for it`;
}

function argumentMiss(args: NonNullable<Rule["args"]>, facts: Facts): string | undefined {
  for (const [name, globs] of Object.entries(args)) {
    const text = argText(facts.args[name]);
    if (argMatches(globs, facts.args[name])) continue;
    const has = text === undefined ? "the call has none" : `the call has \`${text}\``;
    return `argument \`${name}\` is \`${globs.join(", ")}\`, ${has}`;
  }
  return undefined;
}
