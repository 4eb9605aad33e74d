// What the small languages inside sed and awk arguments do: run commands or write files. What cannot be followed counts
// as running something.
import { remembered, uniqueBy } from "./collection.ts";
import type { RiskyUse } from "./risky_options.ts";

/** Uses of `w`, `W`, `e` commands and flags in the scripts of a sed command line. */
export function sedUses(argv: readonly string[]): readonly RiskyUse[] {
  return scriptWords(argv, sedOptions).flatMap(
    ({ at, text }) => keptSedEffects(text).map((use) => ({ at, ...use })),
  );
}

/** Uses of system(), pipes and print redirections in the program of an awk command line. */
export function awkUses(argv: readonly string[]): readonly RiskyUse[] {
  return scriptWords(argv, awkOptions).flatMap(
    ({ at, text }) => keptAwkEffects(text).map((use) => ({ at, ...use })),
  );
}

/** A file that a script names: read, or written. `sure`: it is opened; otherwise the text may be something else. */
export type ScriptFile = { readonly path: string; readonly access: "read" | "write"; readonly sure: boolean };

/** Files that the scripts of a sed or awk command line name literally. */
export function scriptFiles(program: string, argv: readonly string[]): readonly ScriptFile[] {
  if (/^g?sed$/.test(program)) {
    return scriptWords(argv, sedOptions).flatMap(({ text }) => sedFiles(text));
  }
  if (/^([gmn]|original-)?awk$/.test(program)) {
    return scriptWords(argv, awkOptions).flatMap(({ text }) => awkFiles(text));
  }
  return [];
}

// Files of `r`, `R`, `w` and `W`. GNU sed opens what other readings take for text: every reading counts.
function sedFiles(script: string): readonly ScriptFile[] {
  const read: string[] = [];
  const effects = [readSed(script, false, read), readSed(script, true, read)].flatMap((e) => e ?? []);
  const written = effects.flatMap((e) => e.kind === "writes" && e.value !== undefined ? [e.value] : []);
  const named = (access: "read" | "write") => (path: string): ScriptFile => ({ path, access, sure: true });
  const files = [...[...new Set(read)].map(named("read")), ...[...new Set(written)].map(named("write"))];
  return files.filter((f) => f.path !== "");
}

function awkFiles(program: string): readonly ScriptFile[] {
  const opens = !/getline|print/.test(program);
  return stringsOf(program).flatMap(({ value, at }): readonly ScriptFile[] => {
    const path = value.replace(/\\(.)/g, "$1");
    if (path === "" || /\n/.test(path)) return [];
    const end = blanksBefore(program, at);
    const operator = /(<|>>?)$/.exec(program.slice(Math.max(0, end - 2), end))?.[1];
    const compared = operator?.length === 1 && opens;
    const sure = operator !== undefined && !compared;
    return [{ path, access: operator?.startsWith(">") === true && sure ? "write" : "read", sure }];
  });
}

type AwkString = { readonly value: string; readonly at: number; readonly end: number };

// In one pass: a quote that nothing closes takes the rest with it.
function stringsOf(program: string): readonly AwkString[] {
  return [...program.matchAll(/"((?:[^"\\]|\\.)*)("|$)/gs)].filter((m) => m[2] === '"')
    .map((m) => ({ value: m[1] ?? "", at: m.index, end: m.index + m[0].length }));
}

function blanksBefore(text: string, at: number): number {
  let end = at;
  while (/\s/.test(text.charAt(end - 1))) end--;
  return end;
}

function blanksAfter(text: string, at: number): number {
  let end = at;
  while (/\s/.test(text.charAt(end))) end++;
  return end;
}

type ScriptOptions = {
  readonly letters: string;
  readonly long: string;
  readonly valued: string;
  /** Options that take the script from a file: then the first operand is none. */
  readonly files: RegExp;
};

const sedOptions: ScriptOptions = {
  letters: "e",
  long: "--expression",
  valued: "efl",
  files: /^(-[a-zA-Z]*f|--fi)/,
};
const awkOptions: ScriptOptions = {
  letters: "e",
  long: "--source",
  valued: "vFefilE",
  files: /^(-[fE]|--file|--exec)/,
};

// Every word that may be a script: values of the script option, and the first operand when no script option was seen.
function scriptWords(
  argv: readonly string[],
  o: ScriptOptions,
): readonly { readonly at: number; readonly text: string }[] {
  const scripts: { readonly at: number; readonly text: string }[] = [];
  let operand: number | undefined, given = false;
  for (let i = 1; i < argv.length; i++) {
    const word = argv[i] ?? "";
    if (o.files.test(word)) given = true;
    if (word.startsWith("--")) {
      const [name = "", ...value] = word.split("=");
      if (name.length < 3 || !o.long.startsWith(name)) continue;
      given = true;
      if (value.length > 0) scripts.push({ at: i, text: value.join("=") });
      else scripts.push({ at: ++i, text: argv[i] ?? "" });
    } else if (word.startsWith("-") && word.length > 1) {
      const letter = [...word.slice(1)].findIndex((c) => o.valued.includes(c));
      const attached = word.slice(letter + 2);
      const at = attached === "" ? ++i : i;
      if (!o.letters.includes(word.charAt(letter + 1))) continue;
      given = true;
      scripts.push({ at, text: attached === "" ? argv[i] ?? "" : attached });
    } else operand ??= i;
  }
  if (operand !== undefined && !given) scripts.push({ at: operand, text: argv[operand] ?? "" });
  return scripts;
}

type Effect = Omit<RiskyUse, "at">;

// One call is asked for the same scripts several times: for its risk, its options, its files and what it runs.
const keptSedEffects = remembered(sedEffects);
const keptAwkEffects = remembered(awkEffects);

// GNU sed ends a regular expression at its delimiter also inside brackets, others do not: a reading that is an error for
// one is not run by it, so the effects of all readings that are none count.
function sedEffects(script: string): readonly Effect[] {
  const readings = [readSed(script, false), readSed(script, true)].filter((r) => r !== undefined);
  if (readings.length === 0) return [{ option: "a script that is not understood", kind: "runs" }];
  return uniqueBy(readings.flat(), (effect) => JSON.stringify(effect));
}

/** Reads a sed script command by command; undefined when it is none. `files` gets the names that `r` and `R` read. */
function readSed(script: string, brackets: boolean, files: string[] = []): readonly Effect[] | undefined {
  const effects: Effect[] = [];
  const at: Cursor = { text: script, i: 0 };
  while (at.i < script.length) {
    const c = script.charAt(at.i++);
    if (/[\s;{}!,0-9$+~]/.test(c)) continue;
    if (c === "/" || c === "\\") {
      if (!skipTo(at, c === "/" ? "/" : script.charAt(at.i++), brackets)) return undefined;
      while (/[IM]/.test(script.charAt(at.i))) at.i++;
    } else if (c === "s" || c === "y") {
      const delimiter = script.charAt(at.i++);
      if (!skipTo(at, delimiter, brackets) || !skipTo(at, delimiter, false)) return undefined;
      if (c === "s") effects.push(...substitutionFlags(at));
    } else if (c === "a" || c === "i" || c === "c") {
      while (/\\$/.test(takeLine(at))) at.i++;
    } else if (c === "w" || c === "W") {
      effects.push({ option: c, kind: "writes", value: takeLine(at).trim() });
    } else if (c === "e") effects.push({ option: "e", kind: "runs", value: takeLine(at).trim() });
    else if (c === "r" || c === "R") files.push(takeLine(at).trim());
    else if (c === "#") takeLine(at);
    else if (c === ":" || c === "b" || c === "t" || c === "T") {
      // A `;` ends a label for some and not for others: what follows is read as commands as well.
      while (/[^;\n}]/.test(script.charAt(at.i))) at.i++;
    } else if (!/[=dDgGhHlLnNpPqQvxFz]/.test(c)) return undefined;
  }
  return effects;
}

type Cursor = { readonly text: string; i: number };

function takeLine(at: Cursor): string {
  const end = at.text.indexOf("\n", at.i);
  const line = at.text.slice(at.i, end < 0 ? at.text.length : end);
  at.i += line.length;
  return line;
}

function skipTo(at: Cursor, delimiter: string, brackets: boolean): boolean {
  for (; at.i < at.text.length; at.i++) {
    const c = at.text[at.i];
    if (c === "\\") at.i++;
    else if (c === delimiter) {
      at.i++;
      return true;
    }
    if (c === "[" && brackets) at.i = bracketEnd(at.text, at.i);
  }
  return false;
}

function bracketEnd(text: string, open: number): number {
  const first = text[open + 1] === "^" ? open + 2 : open + 1;
  const close = text.indexOf("]", text[first] === "]" ? first + 1 : first);
  return close < 0 ? open : close;
}

function substitutionFlags(at: Cursor): readonly Effect[] {
  const effects: Effect[] = [];
  for (; at.i < at.text.length; at.i++) {
    const flag = at.text.charAt(at.i);
    if (flag === "e") effects.push({ option: "s///e", kind: "runs" });
    else if (flag === "w") {
      at.i++;
      return [...effects, { option: "s///w", kind: "writes", value: takeLine(at).trim() }];
    } else if (!/[gpiImM0-9]/.test(flag)) break;
  }
  return effects;
}

/** What an awk program does besides reading and printing. */
function awkEffects(program: string): readonly Effect[] {
  const effects: Effect[] = [];
  const code = awkCode(program);
  const piped = pipes(code);
  const strings = stringsOf(program);
  for (const { value, at } of strings) {
    const before = blanksBefore(program, at);
    const name = program[before - 1] === "(" ? blanksBefore(program, before - 1) : 0;
    if (!program.startsWith("system", name - 6) || name < 6) continue;
    effects.push({ option: "system()", kind: "runs", value });
  }
  for (const { value, at, end } of piped ? strings : []) {
    const before = blanksBefore(program, at);
    const into = /\|&?$/.test(program.slice(Math.max(0, before - 2), before));
    if (!into && program[blanksAfter(program, end)] !== "|") continue;
    effects.push({ option: "a pipe", kind: "runs", value });
  }
  if (effects.length === 0 && /\bsystem\b/.test(code)) effects.push({ option: "system()", kind: "runs" });
  if (effects.length === 0 && piped) effects.push({ option: "a pipe", kind: "runs" });
  if (/@/.test(code)) effects.push({ option: "@", kind: "runs" });
  const prints = (statement: string) => /\b(print|printf)\b(.*)/.exec(statement)?.[2]?.includes(">") === true;
  if (withoutGroups(code).split(/[;}\n]/).some(prints)) {
    effects.push({ option: "print >", kind: "writes" });
  }
  return effects;
}

function pipes(code: string): boolean {
  return /\|/.test(code.replace(/\|\|/g, " "));
}

// `print (a > b)` compares.
function withoutGroups(code: string): string {
  let text = "", depth = 0;
  for (const c of code) {
    if (c === "(") depth++;
    else if (c === ")") depth = Math.max(0, depth - 1);
    else if (depth === 0) text += c;
  }
  return text;
}

// The program without comments and without what strings and regular expressions hold. A slash starts an expression where
// no value can stand before it.
function awkCode(program: string): string {
  const code: string[] = [];
  // The end of the code, blanks at its end left out, and whether a line ends there.
  let tail = "", blank = false, line = false;
  const add = (text: string) => {
    code.push(text);
    if (/\s/.test(text)) {
      blank = true;
      line ||= text === "\n";
      return;
    }
    tail = `${tail}${blank ? " " : ""}${text}`.slice(-8);
    blank = line = false;
  };
  const expects = () => line || /(^|[(,{};!~&|?:=]|\b(return|print|in|case))$/.test(tail);
  // A continued line is one line: a slash at its start divides.
  program = program.replace(/\\\r?\n/g, " ");
  for (let i = 0; i < program.length; i++) {
    const c = program.charAt(i);
    if (c === "#") {
      while (i + 1 < program.length && program[i + 1] !== "\n") i++;
    } else if (c === '"' || (c === "/" && expects())) {
      const close = skipLiteral(program, i, c);
      add('""');
      i = close;
    } else add(c);
  }
  return code.join("");
}

function skipLiteral(program: string, open: number, delimiter: string): number {
  for (let i = open + 1; i < program.length; i++) {
    if (program[i] === "\\") i++;
    else if (program[i] === delimiter) return i;
    else if (program[i] === "\n") return i;
  }
  return program.length;
}
