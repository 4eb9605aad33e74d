// A glob level by level: how far a path follows it. For explaining, where "it does not match" is not enough.
import { absoluteGlob, classEnd, classRanges, expandBraces, type GlobBase, unescapeGlob } from "./glob.ts";

export type GlobWalk = {
  /** Levels of the glob that the path follows from the start, `**` apart; those that are the root's do not count. */
  readonly followed: number;
  /** All levels that count. */
  readonly levels: number;
  /** Why the path leaves the glob; undefined: it follows it to the end. */
  readonly why: string | undefined;
};

/** How far an absolute normalised path follows a glob as written in a rule. A glob that cannot be read is not followed. */
export function walkGlob(glob: string, path: string, base: GlobBase): GlobWalk {
  let best: GlobWalk = { followed: 0, levels: 1, why: "the glob cannot be read" };
  const names = splitPath(path);
  const root = splitPath(base.root);
  for (const levels of levelsOf(glob, base)) {
    const walk = walkOne(levels, names, root);
    if (walk.why === undefined) return walk;
    if (walk.followed / walk.levels >= best.followed / best.levels) best = walk;
  }
  return best;
}

// The globs of rules meet every path of a call.
const read = new WeakMap<GlobBase, Map<string, readonly (readonly string[])[]>>();

// One for each choice of its braces; none for a glob that cannot be read.
function levelsOf(glob: string, base: GlobBase): readonly (readonly string[])[] {
  const known = read.get(base) ?? new Map<string, readonly (readonly string[])[]>();
  read.set(base, known);
  const found = known.get(glob);
  if (found !== undefined) return found;
  const made = absoluteGlob(glob, base);
  const expanded = "error" in made ? made : expandBraces(made.glob);
  const levels = "error" in expanded ? [] : expanded.globs.map(splitPath);
  known.set(glob, levels);
  return levels;
}

function splitPath(path: string): readonly string[] {
  return path.split("/").filter((level) => level !== "" && level !== ".");
}

function walkOne(levels: readonly string[], names: readonly string[], root: readonly string[]): GlobWalk {
  const rooted = root.every((name, i) => unescapeGlob(levels[i] ?? "") === name && names[i] === name);
  const lead = rooted ? root.length : 0;
  const { at, met, ended } = furthest(levels, names);
  const counts = (upTo: number) => levels.slice(lead, upTo).filter((level) => level !== "**").length;
  const total = Math.max(1, counts(levels.length));
  if (ended) return { followed: total, levels: total, why: undefined };
  return { followed: Math.max(0, counts(at)), levels: total, why: parting(levels, names, at, met, lead) };
}

// All levels that may be due are followed at once; kept is the furthest one, and the name at which it was due.
function furthest(levels: readonly string[], names: readonly string[]) {
  let due = new Set(skipStars(levels, [0]));
  let at = 0, met = 0;
  const note = (count: number) => {
    for (const level of due) if (level > at) [at, met] = [level, count];
  };
  note(0);
  names.forEach((name, index) => {
    const next = new Set<number>();
    for (const level of due) {
      const here = levels[level];
      if (here === "**") next.add(level);
      else if (here !== undefined && levelMatches(here, name)) next.add(level + 1);
    }
    due = new Set(skipStars(levels, [...next]));
    note(index + 1);
  });
  return { at, met, ended: due.has(levels.length) };
}

// `**` stands for no level as well, so what follows it is due with it.
function skipStars(levels: readonly string[], due: readonly number[]): readonly number[] {
  return due.flatMap((level) => {
    let end = level;
    while (levels[end] === "**") end++;
    return Array.from({ length: end - level + 1 }, (_, i) => level + i);
  });
}

function parting(
  levels: readonly string[],
  names: readonly string[],
  at: number,
  met: number,
  lead: number,
): string {
  const level = levels[at];
  if (level === undefined) {
    return `the rule ends after ${levels.length - lead} segments, the path goes on with \`${
      names[met] ?? ""
    }\``;
  }
  const number = at - lead + 1;
  if (levels[at - 1] === "**") {
    return `segment ${number} is \`${level}\`, the path ends in \`${names.at(-1) ?? "/"}\``;
  }
  const name = names[met];
  const has = name === undefined ? "the path ends before it" : `the path has \`${name}\``;
  return `segment ${number} is \`${level}\`, ${has}`;
}

type Step = { readonly many: boolean; fits(point: number): boolean };

/** Whether one level of a glob without braces stands for the name; in time that grows with both, not faster. */
export function levelMatches(level: string, name: string): boolean {
  const steps = stepsOf(level);
  const points = [...name].map((c) => c.codePointAt(0) ?? 0);
  // A level of `*` alone is a name, never nothing.
  if (level === "*" && points.length === 0) return false;
  let due = afterMany(steps, new Set([0]));
  for (const point of points) {
    const next = new Set<number>();
    for (const at of due) {
      const step = steps[at];
      if (step === undefined || !step.fits(point)) continue;
      next.add(step.many ? at : at + 1);
    }
    due = afterMany(steps, next);
  }
  return due.has(steps.length);
}

function afterMany(steps: readonly Step[], due: Set<number>): Set<number> {
  for (const at of due) if (steps[at]?.many === true) due.add(at + 1);
  return due;
}

function stepsOf(level: string): readonly Step[] {
  const steps: Step[] = [];
  const any = () => true;
  const points = [...level];
  for (let i = 0; i < points.length; i++) {
    const c = points[i] ?? "";
    if (c === "*") steps.push({ many: true, fits: any });
    else if (c === "?") steps.push({ many: false, fits: any });
    else if (c === "[") {
      const rest = points.slice(i).join("");
      const body = rest.slice(1, classEnd(rest, 0));
      steps.push({ many: false, fits: classOf(body) });
      i += [...body].length + 1;
    } else {
      const point = (c === "\\" ? points[++i] ?? c : c).codePointAt(0) ?? 0;
      steps.push({ many: false, fits: (p) => p === point });
    }
  }
  return steps;
}

function classOf(body: string): (point: number) => boolean {
  const { negated, ranges } = classRanges(body);
  return (point) => ranges.some(([low, high]) => low <= point && point <= high) !== negated;
}
