// Command patterns: words of one simple command, and when they cover it. Allow rules look narrowly, rules that restrict
// look widely: what they cannot tell apart from what they name, they match.
import type { Blur, Part } from "./facts.ts";
import {
  globalOption,
  hasGlobalOptions,
  isGitCommand,
  programName,
  sameSubcommand,
  subcommandIndex,
} from "./program_options.ts";
import { type RiskyOption, riskyUses } from "./risky_options.ts";

/** `git diff *`: literal words, and whether a last `*` stands for any further words. */
export type CommandPattern = {
  readonly source: string;
  readonly assignments: readonly string[];
  readonly words: readonly string[];
  readonly rest: boolean;
  /** Risky options that the policy adds to the shipped table. */
  readonly risky?: readonly RiskyOption[];
  /** The shipped set whose entry it is: nobody who uses it can change it. */
  readonly set?: string;
  /** Words with an unquoted `*` that is not the last word: taken literally, which is seldom what was meant. */
  readonly stars?: readonly string[];
};

/**
 * Words are split at blanks; `'…'`, `"…"` and `\` quote as in a shell; leading `NAME=value` words are assignments. Never
 * throws: a text that is no single simple command gives `error`.
 */
export function parseCommandPattern(
  text: string,
  risky: readonly RiskyOption[] = [],
): CommandPattern | { readonly error: string } {
  const split = splitWords(text);
  if ("error" in split) return split;
  const words = [...split.words];
  const assignments: string[] = [];
  for (let next = words[0]; next !== undefined && isAssignment(next); next = words[0]) {
    assignments.push(next.text);
    words.shift();
  }
  const rest = words.at(-1)?.raw === "*";
  if (rest) words.pop();
  if (words.length === 0 && assignments.length === 0 && !rest) {
    return { error: "the command pattern is empty" };
  }
  const stars = words.filter((w) => w.star).map((w) => w.raw);
  return {
    source: text,
    assignments,
    words: words.map((w) => w.text),
    rest,
    ...(risky.length === 0 ? {} : { risky }),
    ...(stars.length === 0 ? {} : { stars }),
  };
}

type PatternWord = { readonly text: string; readonly raw: string; readonly star: boolean };

function isAssignment(word: PatternWord): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*\+?=/.test(word.raw);
}

function splitWords(text: string): { readonly words: readonly PatternWord[] } | { readonly error: string } {
  const words: PatternWord[] = [];
  let value = "", start = -1, star = false, quote = "";
  const finish = (end: number) => {
    if (start >= 0) words.push({ text: value, raw: text.slice(start, end), star });
    [value, start, star] = ["", -1, false];
  };
  for (let i = 0; i < text.length; i++) {
    const c = text.charAt(i);
    if (quote === "" && /\s/.test(c)) {
      finish(i);
      continue;
    }
    if (start < 0) start = i;
    if (quote === "" && /[;&|<>()`$]/.test(c)) {
      return {
        error:
          `\`${c}\` does not belong in a command pattern; it names the words of one simple command, quote it to mean the character`,
      };
    }
    if (c === quote) quote = "";
    else if (quote === "" && (c === "'" || c === '"')) quote = c;
    else if (c === "\\" && quote !== "'" && i + 1 < text.length) value += text[++i];
    else {
      if (quote === "" && c === "*") star = true;
      value += c;
    }
  }
  if (quote !== "") return { error: `the quote ${quote} is not closed` };
  finish(text.length);
  return { words };
}

/** Why an allow rule must say the words of this part before it covers it; undefined when a wide rule is enough. */
export function needsNaming(part: Part): string | undefined {
  if (part.notUnderstood !== undefined) return part.notUnderstood;
  const [assignment] = part.assignments;
  return assignment === undefined ? undefined : `\`${assignment}\` is set for it`;
}

/**
 * `allow`: top level, understood, the words exactly as in the pattern, assignments and risky options named.
 * `restrict`: any level, any spelling of the program, options before the subcommand stepped over, unknown words match
 * what they could be.
 */
export function matchesCommand(pattern: CommandPattern, part: Part, reach: "allow" | "restrict"): boolean {
  return reach === "allow" ? coversExactly(pattern, part) : couldBe(pattern, part);
}

function coversExactly(pattern: CommandPattern, part: Part): boolean {
  const { words, rest } = pattern;
  const { argv } = part;
  if (!rest && argv.length > words.length) return false;
  for (let i = 0; i < words.length; i++) if (words[i] !== argv[i]) return false;
  if (part.level !== "top" || (argv.length === 0 && part.assignments.length === 0)) return false;
  if (part.notUnderstood !== undefined && (part.nameable !== true || (words.length === 0 && rest))) {
    return false;
  }
  if (part.blurs?.some((b) => b.glob !== true || b.at === 0 || b.at < words.length)) return false;
  if (part.assignments.length !== pattern.assignments.length) return false;
  if (!part.assignments.every((a) => pattern.assignments.includes(a))) return false;
  return argv.length === words.length || riskyUses(argv, pattern.risky).every((use) => use.at < words.length);
}

function couldBe(pattern: CommandPattern, part: Part): boolean {
  const [program, ...others] = patternNames(pattern);
  if (part.level === "guessed") {
    return program !== undefined && couldBeGuessed(pattern, [program, ...others], part);
  }
  const line = lineOf(part);
  // Most patterns are about another program.
  if (program !== undefined && line.program !== undefined && line.program !== program) return false;
  if (!pattern.assignments.every((a) => couldAssign(a, part))) return false;
  if (program === undefined) return pattern.rest || part.argv.length === 0;
  return reachesLine([program, ...others], pattern.rest, line);
}

function couldBeGuessed(pattern: CommandPattern, names: readonly string[], part: Part): boolean {
  if (pattern.assignments.length > 0) return false;
  const found = startsOf(part).get(names[0] ?? "") ?? [];
  // Nobody names one program so often: which of the places runs is not looked at any more.
  return found.length >= mostStarts || found.some((at) => reachesLine(names, pattern.rest, tailOf(part, at)));
}

function reachesLine(names: readonly string[], rest: boolean, line: Line): boolean {
  return line.foreignGit || (!lacks(names, line) && reaches(names, rest, line));
}

// Whether one of the words is nowhere in the line: most patterns are about other subcommands.
function lacks([program = "", ...others]: readonly string[], { tokens, known, clear }: Line): boolean {
  return clear &&
    others.some((word, i) =>
      !known.has(word) && (i > 0 || !tokens.some((t) => sameSubcommand(program, t.text, word)))
    );
}

/** The program that the pattern names, as programName() gives it; undefined when it names none. */
export function patternProgram(pattern: CommandPattern): string | undefined {
  return patternNames(pattern)[0];
}

/**
 * The program of a part as patterns that restrict see it: `git` for `git-push`. Undefined when it is only known when it
 * runs. A pattern that names another program does not match the part.
 */
export function programOf(part: Part): string | undefined {
  return part.anyStart === true ? undefined : lineOf(part).program;
}

// Patterns and parts never change, and every pattern meets every part: what is looked up in them is kept.
const kept = new WeakMap<CommandPattern, readonly string[]>();
const lines = new WeakMap<Part, Line>();
const starts = new WeakMap<Part, ReadonlyMap<string, readonly number[]>>();
const programs = new WeakMap<Blur, ProgramPieces>();

// The words of a pattern, the program by its name.
function patternNames(pattern: CommandPattern): readonly string[] {
  const known = kept.get(pattern);
  if (known !== undefined) return known;
  const words = pattern.words.map((word, i) => i === 0 ? programName(word) : word);
  kept.set(pattern, words);
  return words;
}

function couldAssign(wanted: string, part: Part): boolean {
  const name = wanted.slice(0, wanted.indexOf("="));
  return part.assignments.some((a) =>
    a === wanted || (part.nameable !== true && part.notUnderstood !== undefined && a.startsWith(`${name}=`))
  );
}

type Token = { readonly text: string; readonly blur: Blur | undefined };

/** A part as rules that restrict see it. */
type Line = {
  readonly tokens: readonly Token[];
  /** Undefined when it is not known. */
  readonly program: string | undefined;
  /** The words of which the value is known. */
  readonly known: ReadonlySet<string>;
  /** The value of every word is known. */
  readonly clear: boolean;
  readonly foreignGit: boolean;
};

function lineOf(part: Part): Line {
  const found = lines.get(part);
  if (found !== undefined) return found;
  const line = lineFrom(tokensOf(part), part.level === "guessed");
  lines.set(part, line);
  return line;
}

// Of a longer tail the rest is one unknown word.
const longestTail = 40;
const mostStarts = 200;

// Where each program is named among guessed words.
function startsOf(part: Part): ReadonlyMap<string, readonly number[]> {
  const found = starts.get(part);
  if (found !== undefined) return found;
  const made = new Map<string, number[]>();
  const last = part.anyStart === true ? part.argv.length : 1;
  const unknown = new Set(part.blurs?.map((b) => b.at));
  for (let at = 0; at < last; at++) {
    if (unknown.has(at)) continue;
    const name = programName(part.argv[at] ?? "").replace(/^git-.*/s, "git");
    const known = made.get(name);
    if (known === undefined) made.set(name, [at]);
    else if (known.length < mostStarts) known.push(at);
  }
  starts.set(part, made);
  return made;
}

function tailOf(part: Part, at: number): Line {
  const end = Math.min(part.argv.length, at + longestTail);
  const blurs = (part.blurs ?? []).filter((b) => b.at >= at && b.at < end).map((b) => ({
    ...b,
    at: b.at - at,
  }));
  const tokens = tokensOf({ ...part, argv: part.argv.slice(at, end), blurs });
  return lineFrom(end < part.argv.length ? [...tokens, unknownRest] : tokens, true);
}

const unknownRest: Token = { text: "…", blur: { at: longestTail, pieces: ["", ""], many: true } };

function lineFrom(tokens: readonly Token[], guessed: boolean): Line {
  const [first] = tokens;
  const program = first === undefined ? "" : first.blur === undefined ? first.text : undefined;
  return {
    tokens,
    program,
    known: new Set(tokens.filter((t) => t.blur === undefined).map((t) => t.text)),
    clear: tokens.every((t) => t.blur === undefined),
    foreignGit: program === "git" && isForeignGit(tokens, guessed),
  };
}

// `git-push` and `/usr/lib/git-core/git-push` are `git push`.
function tokensOf(part: Part): readonly Token[] {
  const blurs = new Map(part.blurs?.map((b) => [b.at, b]));
  const tokens = part.argv.map((text, at): Token => ({ text, blur: blurs.get(at) }));
  const [first, ...others] = tokens;
  if (first === undefined || first.blur !== undefined) return tokens;
  const program = programName(first.text);
  const names = program.startsWith("git-") ? ["git", program.slice(4)] : [program];
  return [...names.map((text) => ({ text, blur: undefined })), ...others];
}

// An alias stands for anything that git can do; so does a program that calls itself git-something. Guessed words may be
// about git, and no command of it.
function isForeignGit(tokens: readonly Token[], guessed: boolean): boolean {
  const at = subcommandIndex(tokens.map((t) => t.text));
  const before = tokens.slice(1, at);
  if (before.some((t) => /^(-c|--config-env=)?alias\./i.test(t.text) || t.blur !== undefined)) return true;
  const command = tokens[at];
  return !guessed && command !== undefined && command.blur === undefined && !command.text.startsWith("-") &&
    !isGitCommand(command.text);
}

// Walks the tokens once with the set of all pattern words that may be due next; `skipping` holds those for which the
// next token is the value of an option.
function reaches(words: readonly string[], rest: boolean, { tokens, known }: Line): boolean {
  const hinted = words.slice(1).some((w) => known.has(w));
  let due = new Set([0]);
  let skipping = new Set<number>();
  for (const token of tokens) {
    const next = new Set(skipping);
    const nextSkipping = new Set<number>();
    for (const i of due) {
      if (i === words.length) {
        if (rest) return true;
        if (token.blur?.many === true) next.add(i);
        continue;
      }
      for (const to of steps(words, i, token, hinted)) next.add(to);
      const step = i === 0 ? undefined : optionStep(words, i, token);
      if (step === "alone" || step === "unsure") next.add(i);
      if (step === "with_value" || step === "unsure") nextSkipping.add(i);
    }
    due = next;
    skipping = nextSkipping;
    if (due.size === 0 && skipping.size === 0) return false;
  }
  return due.has(words.length);
}

function optionStep(words: readonly string[], i: number, token: Token): ReturnType<typeof globalOption> {
  if (token.blur !== undefined) return token.text.startsWith("-") ? "unsure" : undefined;
  const program = words[0] ?? "";
  const nested = `${program} ${words[1]}`;
  if (i === 2 && hasGlobalOptions(nested)) return globalOption(nested, token.text, true);
  return globalOption(program, token.text, i === 1);
}

// The pattern words that may be due after this token, when `words[i]` is due before it.
function* steps(words: readonly string[], i: number, token: Token, hinted: boolean): Generator<number> {
  const word = words[i] ?? "";
  const { blur } = token;
  if (blur === undefined) {
    const same = i === 0
      ? programName(token.text) === word
      : i === 1
      ? sameSubcommand(words[0] ?? "", token.text, word)
      : token.text === word;
    if (same) yield i + 1;
    return;
  }
  if (blur.many && blur.glob !== true) yield i;
  const program = i === 0 ? programPieces(blur) : undefined;
  // A program of which nothing is known is not taken for every program that some rule names, unless the words after
  // it are those of the rule; it is asked about all the same.
  if (program?.open === true && !hinted) return;
  const pieces = program?.pieces ?? blur.pieces;
  if (fits(pieces, word)) yield i + 1;
  if (!blur.many) return;
  for (let to = i + 2; to <= words.length; to++) {
    if (word.startsWith(pieces[0] ?? "") && (words[to - 1] ?? "").endsWith(pieces.at(-1) ?? "")) yield to;
  }
}

/** What is known of a program's name; `open`: nothing. */
type ProgramPieces = { readonly pieces: readonly string[]; readonly open: boolean };

function programPieces(blur: Blur): ProgramPieces {
  const found = programs.get(blur);
  if (found !== undefined) return found;
  const last = blur.pieces.findLastIndex((p) => p.includes("/"));
  const pieces = blur.pieces.slice(Math.max(0, last)).map((p, at) =>
    (last >= 0 && at === 0 ? p.slice(p.lastIndexOf("/") + 1) : p).toLowerCase()
  );
  const made = { pieces, open: pieces.every((p) => p === "") };
  programs.set(blur, made);
  return made;
}

/** Whether the unknown between the pieces can be filled to give the text. */
function fits(pieces: readonly string[], text: string): boolean {
  const [first, ...others] = pieces;
  const last = others.pop();
  if (first === undefined || last === undefined) return text === (first ?? "");
  if (!text.startsWith(first) || text.length < first.length + last.length || !text.endsWith(last)) {
    return false;
  }
  let from = first.length;
  for (const piece of others) {
    const at = text.indexOf(piece, from);
    if (at < 0 || at + piece.length > text.length - last.length) return false;
    from = at + piece.length;
  }
  return true;
}
