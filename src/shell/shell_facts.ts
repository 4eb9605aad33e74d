// What one shell command would do, as subjects for the decision: its parts, the files that it redirects to and from, and
// the paths among its arguments.
import { commandRisk, strongest } from "../core/command_risk.ts";
import type { Risk } from "../core/decision.ts";
import type { Below, PathFact, Subject } from "../core/facts.ts";
import { belowFolder } from "./below_folder.ts";
import { wildcard } from "../core/text.ts";
import { riskyUses } from "../core/risky_options.ts";
import type { FoundOperand, OpenedFile } from "./found.ts";
import { parseShell, type ShellText } from "./parse.ts";

export type ShellPlace = {
  readonly root: string;
  readonly home: string;
  /** Absolute; the root when absent. */
  readonly cwd?: string;
  /** Facts of a path that is written relative to `cwd`. */
  readonly pathFact: (written: string, cwd: string) => PathFact;
  /** Names in a folder, for wildcards. May throw where there is none. */
  readonly list: (folder: string) => readonly string[];
  /** Whether something is there. May throw where that cannot be known. */
  readonly exists: (path: string) => boolean;
  /** Whether it is a folder, links not followed. Absent: what can be listed is one. */
  readonly isFolder?: (path: string) => boolean;
};

export type ShellFacts = {
  readonly subjects: readonly [Subject, ...Subject[]];
  /** The highest of all parts; a redirection to a file makes it write at least. */
  readonly risk: Risk;
  readonly errors: readonly { readonly code: string; readonly message: string }[];
};

/** Never throws. Subjects keep the order of the text: parts, redirections, operands. */
export function shellFacts(command: string, place: ShellPlace): ShellFacts {
  const at = { ...place, list: listingOnce(place) };
  const cwd = at.cwd ?? at.root;
  const known = new Map<string, PathFact>();
  let levels = mostLevels;
  const fact = (written: string): PathFact => {
    const seen = known.get(written);
    if (seen !== undefined) return seen;
    levels -= costOf(written) + costOf(cwd);
    // The text is refused: nobody looks at this one.
    if (levels < 0) return { written, absolute: written, inWorkspace: false };
    const found = at.pathFact(written, cwd);
    known.set(written, found);
    return found;
  };
  const text = parseShell(command, (program) => fact(program).resolved);
  if (text.errors.length > 0) return refused(text.errors);
  const subjects: Subject[] = text.parts.map((part) => ({ kind: "part", part: guarded(part, cwd, at) }));
  for (const file of text.redirections) subjects.push(...redirectionSubjects(file, fact));
  const operands = operandSubjects(text.operands, fact, cwd, at);
  if (operands === undefined || levels < 0) return refused([tooManyPaths]);
  for (const operand of operands) subjects.push(operand);
  for (const part of text.guesses) subjects.push({ kind: "part", part });
  const [first, ...others] = subjects;
  return {
    subjects: first === undefined ? [{ kind: "call" }] : [first, ...others],
    risk: riskOf(text),
    errors: [],
  };
}

function refused(errors: ShellFacts["errors"]): ShellFacts {
  return { subjects: [{ kind: "call" }], risk: "execute", errors };
}

const mostPaths = 4000;
// Each level of a path is looked at by itself, from the first level on.
const mostLevels = 20_000;
// Names that wildcards are compared with.
const mostNames = 60_000;
// A folder that is looked into takes as long as so many names.
const lookCost = 20;
const tooManyPaths = {
  code: "too_complex",
  message: "the command holds more paths than are looked at; name fewer at once",
};

function costOf(path: string): number {
  return path.split("/").length * (1 + path.length / 1000);
}

// The same folder for every `*` of the text.
function listingOnce(at: ShellPlace): ShellPlace["list"] {
  const known = new Map<string, readonly string[]>();
  return (folder) => {
    const names = known.get(folder) ?? namesIn(folder, at);
    known.set(folder, names);
    return names;
  };
}

function riskOf(text: ShellText): Risk {
  let risk: Risk = "read";
  for (const part of text.parts) risk = strongest(risk, commandRisk(part));
  return text.redirections.some((r) => r.access === "write") ? strongest(risk, "write") : risk;
}

type Part = ShellText["parts"][number];

// `sort *` with a file named `-o` there is a command that nobody wrote.
function guarded(part: Part, cwd: string, at: ShellPlace): Part {
  const open = part.blurs?.filter((b) => b.glob === true && /^$|^-/.test(b.pieces[0] ?? "")) ?? [];
  if (open.length === 0 || part.notUnderstood !== undefined) return part;
  const options = namesIn(cwd, at).filter((name) => name.startsWith("-"));
  if (options.length === 0) return part;
  const argv = [...part.argv, ...options];
  if (riskyUses(argv).every((use) => use.at < part.argv.length)) return part;
  return {
    ...part,
    notUnderstood: `\`${part.argv[open[0]?.at ?? 0]}\` would take the file \`${options[0]}\` for an option`,
  };
}

function redirectionSubjects(file: OpenedFile, fact: (written: string) => PathFact): readonly Subject[] {
  const tool = file.access === "write" ? "write_file" : "read_file";
  const read = file.access === "read";
  if (file.written === undefined) {
    return [unknownTarget(file, `where \`${file.text}\` leads is only known when it runs`)];
  }
  const subject: Subject = {
    kind: "path",
    tool,
    path: fact(file.written),
    operand: read || file.level === "inner",
  };
  if (!file.afterCd || isFixed(file.written)) {
    return [subject.operand && !read ? { ...subject, operand: false } : subject];
  }
  // Where it leads after a cd is not known; where it would lead without is judged for what forbids it.
  return [unknownTarget(file, `where \`${file.text}\` leads is not known after a cd`), {
    ...subject,
    operand: true,
  }];
}

function unknownTarget(file: OpenedFile, why: string): Subject {
  const part: Part = { argv: [], text: file.text, assignments: [], level: file.level, notUnderstood: why };
  return { kind: "part", part };
}

function isFixed(written: string): boolean {
  return written.startsWith("/") || written === "~" || written.startsWith("~/");
}

/** Undefined: there are more than are looked at. */
function operandSubjects(
  operands: readonly FoundOperand[],
  fact: (written: string) => PathFact,
  cwd: string,
  at: ShellPlace,
): readonly Subject[] | undefined {
  const seen = new Set<string>();
  const patterns = new Set<string>();
  const names = { left: mostNames };
  const subjects: Subject[] = [];
  const listed = new Map<string, Below | undefined>();
  const insides = (path: PathFact, deep: "all" | "visible") => {
    const folder = path.resolved ?? path.absolute;
    const key = `${deep} ${folder}`;
    if (!listed.has(key)) listed.set(key, belowFolder(folder, deep, at));
    return listed.get(key);
  };
  for (const operand of operands) {
    const pattern = operand.glob === true ? `${operand.access} ${operand.written}` : undefined;
    if (pattern !== undefined && patterns.has(pattern)) continue;
    if (pattern !== undefined) patterns.add(pattern);
    const paths = operand.glob === true ? matching(operand.written, cwd, at, names) : [operand.written];
    if (names.left < 0) return undefined;
    for (const path of paths) {
      const key = `${operand.deep ?? ""} ${operand.access} ${path}`;
      if (seen.has(key) || operand.unless?.some((u) => exists(fact(u).absolute, at)) === true) continue;
      if (seen.size >= mostPaths) return undefined;
      seen.add(key);
      const found = fact(path);
      if (!operand.sure && operand.glob !== true && !exists(found.absolute, at)) continue;
      const tool = operand.access === "write" ? "write_file" : "read_file";
      const inside = operand.deep === undefined ? undefined : insides(found, operand.deep);
      subjects.push({
        kind: "path",
        tool,
        path: found,
        operand: true,
        ...(inside === undefined ? {} : { below: inside }),
      });
    }
  }
  return subjects;
}

function exists(path: string, at: ShellPlace): boolean {
  try {
    return at.exists(path);
  } catch {
    return true;
  }
}

function namesIn(folder: string, at: ShellPlace): readonly string[] {
  try {
    return at.list(folder);
  } catch {
    return [];
  }
}

// The files that a word with wildcards stands for. Classes count as any character: more files are looked at, never fewer.
function matching(
  written: string,
  cwd: string,
  at: ShellPlace,
  names: { left: number },
): readonly string[] {
  const fixed = written.startsWith("~/") ? at.home + written.slice(1) : written;
  const levels = fixed.split("/");
  let found: readonly string[] = [""];
  for (const [i, level] of levels.entries()) {
    const lead = i === 0 ? "" : "/";
    if (!/[*?[]/.test(level)) {
      found = found.map((f) => f + lead + level);
      continue;
    }
    const glob = level.replace(/\[[^\]]*\]|\?/g, "*");
    const matches = found.flatMap((f) => {
      if (names.left < 0) return [];
      const folder = f.startsWith("/") || i === 0 ? f || cwd : f === "" ? "/" : `${cwd}/${f}`;
      const dots = level.startsWith(".");
      const there = namesIn(folder, at);
      names.left -= lookCost + there.length;
      return there.filter((n) => (dots || !n.startsWith(".")) && wildcard(glob, n)).map((n) => f + lead + n);
    });
    // The text is refused: a file that is not looked at may be one that a rule forbids.
    if (matches.length > mostPaths) names.left = -1;
    found = matches.slice(0, mostPaths);
  }
  return found;
}
