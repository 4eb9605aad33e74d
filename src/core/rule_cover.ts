// Whether one rule says everything that another one says. Where that cannot be told from their patterns, it does not.
import type { CommandPattern } from "./command.ts";
import { absoluteGlob, type GlobBase } from "./glob.ts";
import { programName } from "./program_options.ts";
import { riskyUses } from "./risky_options.ts";
import type { HostPattern, Matchers, PathPattern, Reach } from "./rule.ts";
import { wildcard } from "./text.ts";

/** How deep each of the two looks. A rule that allows never covers one that restricts. */
export type Reaches = { readonly wide: Reach; readonly narrow: Reach };

/** Whether every call that `narrow` matches is matched by `wide`; between rules that allow, also named by it. */
export function coversRule(wide: Matchers, narrow: Matchers, reaches: Reaches, base: GlobBase): boolean {
  return globsCover(wide.tools, narrow.tools) &&
    coversSubject(wide, narrow, reaches, base) &&
    globsCover(wide.skill, narrow.skill) &&
    argsCover(wide, narrow) &&
    boxCovers(wide, narrow, reaches) &&
    within(wide.risk, narrow.risk) &&
    (wide.mode === undefined || wide.mode === narrow.mode) &&
    (wide.workspace === undefined || wide.workspace === narrow.workspace) &&
    globsCover(wide.sourcedBy, narrow.sourcedBy);
}

/** Whether the commands, paths or hosts of one rule are all among those of the other, whatever else the two say. */
export function coversSubject(wide: Matchers, narrow: Matchers, reaches: Reaches, base: GlobBase): boolean {
  const kinds = ["command", "path", "host"] as const;
  if (!exceptCovers(wide, narrow)) return false;
  if (kinds.every((kind) => wide[kind] === undefined)) {
    // A bare tool matches, but names nothing: what needs to be named is still up to the other rule.
    return reaches.wide === "restrict" || kinds.every((kind) => narrow[kind] === undefined);
  }
  return kinds.every((kind) => {
    switch (kind) {
      case "command":
        return every(wide.command, narrow.command, (w, n) => commandCovers(w, n, reaches));
      case "path":
        return every(wide.path, narrow.path, (w, n) => pathCovers(w, n, base));
      case "host":
        return every(wide.host, narrow.host, hostCovers);
    }
  });
}

function every<T>(
  wide: readonly T[] | undefined,
  narrow: readonly T[] | undefined,
  covers: (wide: T, narrow: T) => boolean,
): boolean {
  if (wide === undefined) return true;
  return narrow?.every((n) => wide.some((w) => covers(w, n))) ?? false;
}

// What the wide one leaves out must be left out by the other in the same words.
function exceptCovers(wide: Matchers, narrow: Matchers): boolean {
  const sources = (m: Matchers) => [
    ...(m.exceptCommand ?? []).map((c) => `c ${c.source}`),
    ...(m.exceptPath ?? []).map((p) => `p ${p.source}`),
    ...(m.exceptHost ?? []).map((h) => `h ${JSON.stringify(h)}`),
  ];
  const left = sources(narrow);
  return sources(wide).every((source) => left.includes(source));
}

/** Whether the words of one pattern, and all that its `*` stands for, are covered by the other. */
export function commandCovers(wide: CommandPattern, narrow: CommandPattern, reaches: Reaches): boolean {
  if (narrow.rest && !wide.rest) return false;
  if (!wide.rest && wide.words.length < narrow.words.length) return false;
  const restricts = reaches.wide === "restrict";
  const same = (w: string, at: number) =>
    restricts && at === 0 ? programName(w) === programName(narrow.words[0] ?? "") : w === narrow.words[at];
  if (!wide.words.every(same)) return false;
  if (restricts) return wide.assignments.every((a) => narrow.assignments.includes(a));
  // `*` alone says no command whose program runs another one; which these are is not known here.
  if (wide.words.length === 0 && narrow.words.length > 0) return false;
  return wide.assignments.length === narrow.assignments.length &&
    wide.assignments.every((a) => narrow.assignments.includes(a)) &&
    (wide.words.length === narrow.words.length ||
      riskyUses(narrow.words, wide.risky).every((use) => use.at < wide.words.length));
}

function pathCovers(wide: PathPattern, narrow: PathPattern, base: GlobBase): boolean {
  const [w, n] = [absoluteOf(wide, base), absoluteOf(narrow, base)];
  if ("error" in w || "error" in n) return false;
  if (n.literal) return wide.pattern.test(n.prefix);
  if (w.glob === n.glob) return true;
  const folder = w.prefix === "/" ? "" : w.prefix;
  // `folder/**`, and everything that the other one matches starts in that folder.
  return w.glob.endsWith("/**") && w.glob.split("/").filter((level) => /[*?[{]/.test(level)).length === 1 &&
    (n.prefix === w.prefix || n.prefix.startsWith(`${folder}/`));
}

// A pattern is compiled for one base, and met in as many comparisons as there are rules.
const known = new WeakMap<PathPattern, ReturnType<typeof absoluteGlob>>();

function absoluteOf(pattern: PathPattern, base: GlobBase): ReturnType<typeof absoluteGlob> {
  const made = known.get(pattern) ?? absoluteGlob(pattern.source, base);
  known.set(pattern, made);
  return made;
}

function hostCovers(wide: HostPattern, narrow: HostPattern): boolean {
  switch (wide.kind) {
    case "any":
      return true;
    case "private":
      return narrow.kind === "private";
    case "exact":
      return narrow.kind === "exact" && narrow.host === wide.host;
    case "under":
      return narrow.kind === "exact"
        ? narrow.host.endsWith(`.${wide.domain}`)
        : narrow.kind === "under" && `.${narrow.domain}`.endsWith(`.${wide.domain}`);
  }
}

// A glob that matches the text of another one matches all that it stands for.
function globsCover(wide: readonly string[] | undefined, narrow: readonly string[] | undefined): boolean {
  return every(wide, narrow, wildcard);
}

function argsCover(wide: Matchers, narrow: Matchers): boolean {
  return Object.entries(wide.args ?? {}).every(([name, globs]) => globsCover(globs, narrow.args?.[name]));
}

// An allow rule without a box is about the default one, a rule that restricts about all.
function boxCovers(wide: Matchers, narrow: Matchers, reaches: Reaches): boolean {
  if (wide.box === undefined && reaches.wide === "restrict") return true;
  const narrowBox = narrow.box ?? (reaches.narrow === "allow" ? ["default"] : undefined);
  return within(wide.box ?? ["default"], narrowBox);
}

function within<T>(wide: readonly T[] | undefined, narrow: readonly T[] | undefined): boolean {
  return wide === undefined || (narrow?.every((n) => wide.includes(n)) ?? false);
}
