// Walks a syntax tree and collects what is judged: simple commands at any depth, redirections, path operands.
import type { Blur, Part } from "../core/facts.ts";
import { programName } from "../core/program_options.ts";
import { commandShapes, commentTouches, gluedElsewhere, printed } from "./command_words.ts";
import { harm, joinsCommands, missesCommands } from "./effects.ts";
import { type Effort, isSpent, newEffort, spend, textCost } from "./effort.ts";
import { below, foldersOf } from "./folders.ts";
import { type Collected, type Level, unclear } from "./found.ts";
import { guessedWords } from "./guessed_words.ts";
import { assignedCommands } from "./hidden_commands.ts";
import { type Operand, operandsOf } from "./operands.ts";
import { ranAgain, readRedirect } from "./redirects.ts";
import {
  type Assignment,
  type Command,
  type CommandNode,
  endsOpen,
  everyNode,
  forEachChild,
  type ParsedScript,
  parseScript,
  type Redirection,
  type Statement,
  type SyntaxNode,
  type Word,
} from "./syntax.ts";
import { hasSubscriptCommand, setsEnvironment, unwrap, type Wrapped } from "./unwrap.ts";
import { anyWords, assignmentShape, mixesBraces, quoted, type Shape, shapeOf } from "./words.ts";
import { command, type Inner } from "./wrapper_options.ts";

type Context = {
  readonly out: Collected;
  /** What positions of the nodes at hand refer to. */
  readonly source: string;
  readonly level: Level;
  readonly statusHidden: boolean;
  /** Wrappers and shell texts around this node. */
  readonly depth: number;
  /** Words with braces may be other words. */
  readonly mixed?: true;
  /** What the command reads from the pipe before it, when that is known. */
  readonly input?: string;
};

// Wrappers and shell texts in one another; nodes of one tree in one another.
const deepest = 48;
const deepestTree = 1000;

/** Collects everything from a parsed source, in the order of the text. */
export function collect(script: ParsedScript, source: string, leads?: Collected["leads"]): Collected {
  const out = newCollected(newEffort(), newEffort(), leads);
  walkScript(script, { out, source, level: "top", statusHidden: false, depth: 0 });
  return out;
}

function newCollected(effort: Effort, guessing: Effort, leads: Collected["leads"]): Collected {
  return {
    parts: [],
    guesses: [],
    redirections: [],
    operands: [],
    faults: [],
    moved: false,
    readsCommands: false,
    readers: [],
    folders: [],
    ...(leads === undefined ? {} : { leads }),
    effort,
    guessing,
  };
}

function walkScript(script: ParsedScript, at: Context): void {
  if (!isBounded(script, at)) return;
  for (const error of script.errors ?? []) {
    at.out.faults.push({ code: "syntax_error", message: `the command is not valid bash: ${error.message}` });
  }
  walkList(script.commands, { ...at, source: script.source ?? at.source });
}

// The parser reads what stands in these once more for every level of them.
const readAgain = ["ParameterExpansion", "ArithmeticExpansion", "ExtendedGlob", "BraceExpansion"];

function isBounded(script: ParsedScript, at: Context): boolean {
  const { effort } = at.out;
  return everyNode(script, (node, depth) => {
    if (depth > deepestTree) tooDeep(at);
    return depth <= deepestTree && spend(effort, "nodes", 1) &&
      (!readAgain.includes(node.type) || spend(effort, "characters", node.end - node.pos));
  });
}

function walkList(statements: readonly Statement[], at: Context): void {
  const several = statements.length > 1;
  for (const { command, background } of statements) {
    walkNode(command, several || background === true ? hide(at) : at);
  }
}

function hide(at: Context): Context {
  return at.statusHidden ? at : { ...at, statusHidden: true };
}

function inside(at: Context): Context {
  const { input: _, ...rest } = at;
  return { ...rest, level: "inner" };
}

type Node = Statement["command"] | CommandNode;

function walkNode(node: Node, at: Context): void {
  if (isSpent(at.out.effort)) return;
  switch (node.type) {
    case "Command":
      return simple(node, at);
    case "AndOr":
      return node.commands.forEach((c) => walkNode(c, hide(at)));
    case "Pipeline":
      return pipeline(node, at);
    case "Redirected":
      walkNode(node.command, at);
      return looseRedirects(node.redirects, at);
    case "Function":
      shadow(node, at, `${quoted(node.name.text)} is defined as a function`);
      return looping(at, () => walkCompound(node.body, inside(at)));
    case "Coproc":
      shadow(node, at, "`coproc` runs a command in the background");
      return walkCompound(node.body, inside(at));
    default:
      return walkCompound(node, at);
  }
}

type Compound =
  | Extract<CommandNode, { type: "Function" }>["body"]
  | Extract<CommandNode, { type: "Coproc" }>["body"];

function walkCompound(node: Compound, at: Context): void {
  const inner = hide(at);
  switch (node.type) {
    case "Command":
    case "Redirected":
      return walkNode(node, at);
    case "CompoundList":
      return walkList(node.commands, at);
    case "Subshell":
    case "BraceGroup":
      return walkList(node.body.commands, at);
    case "If":
      for (const branch of [node, ...node.elif]) {
        walkList(branch.clause.commands, inner);
        walkList(branch.then.commands, inner);
      }
      return walkList(node.else?.commands ?? [], inner);
    case "While":
      return looping(at, () => {
        walkList(node.clause.commands, inner);
        walkList(node.body.commands, inner);
      });
    case "For":
    case "Select":
      if (setsEnvironment(node.name.text)) {
        shadow(node, at, `${quoted(node.name.text)} is set for what follows`);
      }
      looseWords(node.wordlist ?? [], at);
      return looping(at, () => walkList(node.body.commands, inner));
    case "ArithmeticFor":
      for (const expression of [node.initialize, node.test, node.update]) {
        if (expression !== undefined) arithmetic(expression, at);
      }
      return looping(at, () => walkList(node.body.commands, inner));
    case "Case":
      looseWords([node.word, ...node.items.flatMap((item) => item.pattern)], at);
      return node.items.forEach((item) => walkList(item.body.commands, inner));
    case "ArithmeticCommand":
      return node.expression === undefined ? undefined : arithmetic(node.expression, at);
    case "TestCommand":
      return test(node.expression, at);
  }
}

// What a loop's body does late happens before what it does early, one turn later.
function looping(at: Context, walk: () => void): void {
  const { out } = at;
  const [redirections, operands, moved] = [out.redirections.length, out.operands.length, out.moved];
  const folders = out.folders.length;
  walk();
  const entered = out.folders.slice(folders);
  if (entered.length > 0) { for (const o of out.operands.slice(operands)) enterWith(at, o, entered); }
  if (moved || !out.moved) return;
  for (let i = redirections; i < out.redirections.length; i++) {
    out.redirections[i] = late(out.redirections[i]);
  }
  for (let i = operands; i < out.operands.length; i++) out.operands[i] = late(out.operands[i]);
}

function late<T extends { readonly afterCd: boolean }>(found: T | undefined): T {
  return { ...found as T, afterCd: true };
}

function pipeline(node: Extract<Node, { type: "Pipeline" }>, at: Context): void {
  const timed = node.prefixes.some((p) => p.type === "Time");
  const negated = node.prefixes.some((p) => p.type === "Negation");
  const [first] = node.commands;
  let inner = node.commands.length > 1 || negated ? hide(at) : at;
  if (timed) {
    const words = node.commands.length === 1 && first?.type === "Command" ? commandShapes(first, at) : [];
    const why = "`time` runs another command";
    const time: Shape = { text: "time", path: "time" };
    if (words.length > 0) {
      addPart(at, { words: [time, ...words], assignments: [], text: textOf(node, at), why, keyword: true });
    } else shadow(node, at, why);
    inner = inside(inner);
  }
  let input: string | undefined;
  for (const command of node.commands) {
    if (isSpent(at.out.effort)) return;
    walkNode(command, input === undefined ? inner : { ...inner, input });
    input = command.type === "Command" ? printed(command, inner, at.out.effort) : undefined;
  }
}

type Draft = {
  readonly words: readonly Shape[];
  readonly assignments: readonly string[];
  readonly text: string;
  /** Why allow rules do not cover it, whatever its words are. */
  readonly why?: string;
  /** The first word is a keyword: `why` may be named, and what follows is walked by itself. */
  readonly keyword?: true;
  readonly input?: string;
};

function simple(node: Command, at: Context): void {
  if (!spend(at.out.effort, "words", node.prefix.length + node.suffix.length)) return;
  if (gluedElsewhere(node, at)) at.out.faults.push(unclear(textOf(node, at)));
  let why: string | undefined, input = at.input;
  for (const redirect of node.redirects) {
    const read = openRedirect(redirect, at);
    why ??= read.why;
    input = read.input ?? input;
  }
  const prefix = node.prefix.filter((p): p is Assignment => p.type === "Assignment");
  const shapes = prefix.map(assignmentShape);
  why ??= shapes.find((s) => s.why !== undefined)?.why;
  const words = commandShapes(node, at);
  if (words.length > 0 || prefix.length > 0 || why !== undefined) {
    addPart(at, {
      words,
      assignments: shapes.map((s) => s.text),
      text: textOf(node, at),
      ...(why === undefined ? {} : { why }),
      ...(input === undefined ? {} : { input }),
    });
  }
  for (const child of [...node.prefix, ...(node.name === undefined ? [] : [node.name]), ...node.suffix]) {
    descend(child, at);
  }
}

// Adds the part, its operands, and the parts of whatever it runs.
function addPart(at: Context, draft: Draft): void {
  const { out, level } = at;
  const { words, assignments } = draft;
  const counted = level === "top" ? "commands" : "inner";
  if (!spend(out.effort, counted, 1) || !spend(out.effort, "words", unknownCost(words))) return;
  const mistaken = words.find((w) => w.unclear === true);
  if (mistaken !== undefined) out.faults.push(unclear(mistaken.text));
  const wrapped: Wrapped = draft.keyword === true ? { inner: [] } : unwrap(words);
  const unknown = draft.keyword === true ? undefined : draft.why;
  const hard = unknown ?? words.find((w) => w.why !== undefined)?.why ?? programGlob(words) ??
    (wrapped.hidden ? wrapped.why : undefined);
  const soft = draft.why ?? wrapped.why ??
    (assignments.length > 0 ? `${quoted(assignments[0] ?? "")} is set for it` : undefined);
  const blurs = blursOf(words);
  out.parts.push({
    argv: words.map((w) => w.text),
    ...(blurs.length === 0 ? {} : { blurs }),
    text: draft.text,
    assignments,
    level,
    ...(hard ?? soft) === undefined ? {} : { notUnderstood: hard ?? soft ?? "" },
    ...(hard === undefined && soft !== undefined ? { nameable: true as const } : {}),
    ...(at.statusHidden ? { statusHidden: true as const } : {}),
  });
  const operands = draft.keyword === true ? [] : operandsOf(words);
  if (!spend(out.effort, "operands", operands.length)) return;
  const goes = wrapped.moves === true;
  if (!goes) enter(at, words);
  for (const operand of operands) {
    out.operands.push({ ...operand, afterCd: out.moved, level });
    enterWith(at, operand, out.folders);
  }
  if (goes) enter(at, words);
  for (const name of leadsTo(at, words[0])) {
    addInner(at, { kind: "command", words: [{ text: name, path: name }, ...words.slice(1)], assignments });
  }
  const fed = draft.input === undefined ? at : { ...at, input: draft.input };
  for (const inner of wrapped.inner) addInner(fed, inner);
  if (wrapped.readsCommands === true) {
    out.readsCommands = true;
    if (draft.input !== undefined) addInner(at, { kind: "script", text: draft.input });
  }
  if (wrapped.reads !== undefined) {
    out.readers.push(wrapped.reads);
    if (draft.input !== undefined) { for (const inner of wrapped.reads(draft.input)) addInner(at, inner); }
  }
  if (draft.keyword !== true) guess(at, words, wrapped);
  for (const text of assignments) for (const inner of assignedCommands(text)) addInner(at, inner);
  if (/^(export|declare|typeset|readonly|local)$/.test(words[0]?.text ?? "")) {
    for (const word of words.slice(1)) for (const inner of assignedCommands(word.text)) addInner(at, inner);
  }
  if (wrapped.moves === true) out.moved = true;
}

// What a program of which nothing is known may run is walked apart: nothing of it counts but the words of its commands.
function guess(at: Context, words: readonly Shape[], wrapped: Wrapped): void {
  const { tail, texts } = guessedWords(words, wrapped);
  const { guesses, guessing, leads } = at.out;
  const mayRun = words[0]?.text ?? "";
  if (tail !== undefined) keepGuess(at.out, { ...guessed(tail, mayRun), anyStart: true });
  for (const text of texts) {
    if (at.depth >= deepest || !spend(guessing, "characters", textCost + text.length)) return;
    const script = parseScript(text);
    // A shell runs the lines before a fault, and nothing of its line.
    if (script.errors !== undefined && !text.includes("\n")) continue;
    const out = newCollected(guessing, guessing, leads);
    walkScript(script, { out, source: text, level: "inner", statusHidden: true, depth: at.depth + 1 });
    for (const { argv, blurs, text } of out.parts) {
      if (argv.length === 0) continue;
      keepGuess(at.out, {
        argv,
        ...(blurs === undefined ? {} : { blurs }),
        text,
        assignments: [],
        level: "guessed",
        mayRun,
      });
    }
    guesses.push(...out.guesses);
  }
}

// Every guess is compared with every rule: they cost what they hold.
function keepGuess({ guesses, guessing }: Collected, guess: Part): void {
  const { length } = guess.argv;
  if (
    spend(guessing, "commands", 1) && spend(guessing, "words", length) &&
    spend(guessing, "characters", guess.text.length)
  ) {
    guesses.push(guess);
  }
}

function guessed(words: readonly Shape[], mayRun: string): Part {
  const blurs = blursOf(words);
  return {
    argv: words.map((w) => w.text),
    ...(blurs.length === 0 ? {} : { blurs }),
    text: words.map((w) => w.text).join(" "),
    assignments: [],
    level: "guessed",
    mayRun,
  };
}

function blursOf(words: readonly Shape[]): readonly Blur[] {
  return words.flatMap((w, i) => w.blur === undefined ? [] : [{ at: i, ...w.blur }]);
}

const mostFolders = 32;

// What follows may stand in any of the folders that were gone into, or in one below another.
function enter(at: Context, words: readonly Shape[]): void {
  const { folders } = at.out;
  for (const target of foldersOf(words)) {
    const all = [target, ...folders.flatMap((f) => below(f, target) ?? [])].filter((f) =>
      !folders.includes(f)
    );
    if (folders.length + all.length > mostFolders) {
      at.out.faults.push({ code: "too_complex", message: "the command changes its folder too often" });
      return;
    }
    folders.push(...all);
  }
}

// The operand as it would be in these folders.
function enterWith(at: Context, operand: Operand, folders: readonly string[]): void {
  const { out, level } = at;
  for (const folder of folders) {
    const written = below(folder, operand.written);
    if (written === undefined || !spend(out.effort, "operands", 1)) continue;
    const unless = operand.unless?.map((u) => below(folder, u) ?? u);
    const there = { ...operand, written, ...(unless === undefined ? {} : { unless }) };
    out.operands.push({ ...there, afterCd: true, level });
  }
}

// Under which other names the program is known: those of the files that a path to it leads to.
function leadsTo(at: Context, program: Shape | undefined): readonly string[] {
  const { folders, leads } = at.out;
  if (program === undefined || program.blur !== undefined || !program.text.includes("/")) return [];
  const spelled = [program.path, ...folders.flatMap((f) => below(f, program.path) ?? [])];
  if (!spend(at.out.effort, "operands", spelled.length)) return [];
  const name = programName(program.text);
  return [...new Set(spelled.flatMap((s) => leads?.(s) ?? []))].filter((l) => programName(l) !== name);
}

// Unknown words are compared with what they could be, those of an unknown program with every rule there is.
function unknownCost(words: readonly Shape[]): number {
  const unknown = words.reduce((count, w) => w.blur === undefined ? count : count + 1, 0);
  return words[0]?.blur === undefined ? 3 * unknown : 3 * unknown + 8 * words.length;
}

function programGlob(words: readonly Shape[]): string | undefined {
  const [program] = words;
  return program?.blur === undefined
    ? undefined
    : `${quoted(program.text)} stands for a program that is only known when it runs`;
}

function addInner(at: Context, inner: Inner): void {
  const { out } = at;
  if (at.depth >= deepest) return tooDeep(at);
  const affordable = inner.kind === "command"
    ? spend(out.effort, "words", inner.words.length)
    : spend(out.effort, "characters", textCost + inner.text.length);
  if (!affordable) return;
  const deeper = { ...inside(at), depth: at.depth + 1 };
  if (inner.kind === "command") {
    if (inner.words.length === 0) return;
    const text = inner.words.map((w) => w.text).join(" ");
    const input = at.input === undefined ? {} : { input: at.input };
    return addPart(deeper, { words: inner.words, assignments: inner.assignments, text, ...input });
  }
  if (endsOpen(inner.text)) addInner(at, { kind: "script", text: inner.text.slice(0, -1) });
  const script = parseScript(inner.text);
  // A text that is no shell source runs nothing, or only what stands before the fault.
  const faults = out.faults.length;
  walkScript(script, { ...deeper, source: inner.text });
  out.faults.splice(
    faults,
    out.faults.length,
    ...out.faults.slice(faults).filter((f) => f.code !== "syntax_error"),
  );
}

function tooDeep(at: Context): void {
  at.out.faults.push({
    code: "too_complex",
    message: "the command nests too deep; write it to a script file",
  });
}

// A part that stands for something that is no simple command: nothing covers it.
function shadow(node: SyntaxNode, at: Context, why: string): void {
  addPart(at, { words: [], assignments: [], text: textOf(node, at), why });
}

function textOf(node: { readonly pos: number; readonly end: number }, at: Context): string {
  return at.source.slice(node.pos, node.end);
}

function openRedirect(node: Redirection, at: Context): ReturnType<typeof readRedirect> {
  const read = readRedirect(node, textOf(node, at));
  const { out, level } = at;
  const again = ranAgain(node);
  if (again === "hidden") {
    const message = `bash expands ${quoted(textOf(node, at))} twice; write \`&>FILE\` or \`>FILE 2>&1\``;
    out.faults.push({ code: "unclear_syntax", message });
  }
  if (again === "unknown") addInner(at, command([anyWords]));
  if (read.opened !== undefined && spend(out.effort, "redirections", 1)) {
    out.redirections.push({ ...read.opened, afterCd: out.moved, level });
  }
  return read;
}

// Redirections of compound commands belong to no part.
function looseRedirects(nodes: readonly Redirection[], at: Context): void {
  for (const node of nodes) {
    descend(node, at);
    const { why, input } = openRedirect(node, at);
    if (why !== undefined) shadow(node, at, why);
    // A group that reads a known text may hold a shell: `{ sh; } <<…`.
    if (input !== undefined && at.out.readsCommands) addInner(at, { kind: "script", text: input });
    if (input === undefined) continue;
    for (const inner of at.out.readers.flatMap((reads) => reads(input))) addInner(at, inner);
  }
}

// Words of loops and cases are not run; what is in them may be.
function looseWords(words: readonly Word[], at: Context): void {
  for (const word of words) {
    descend(word, at);
    const why = harm(word);
    if (why !== undefined) shadow(word, at, why);
  }
}

function arithmetic(node: SyntaxNode, at: Context): void {
  descend(node, at);
  quotedArithmetic(textOf(node, at), at);
  if (!/^[\s0-9+\-*/%<>=!&|()]*$/.test(textOf(node, at))) {
    shadow(node, at, `${quoted(textOf(node, at))} is computed`);
  }
}

// Quotes do not quote where bash computes: what looks like a text in them runs.
function quotedArithmetic(text: string, at: Context): void {
  if (/['"]/.test(text) && /\$\(|`/.test(text)) {
    addInner(at, { kind: "script", text: `: "${text.replace(/['"]/g, "")}"` });
  }
}

const computing = /^-(eq|ne|lt|le|gt|ge|v|R)$/;

function test(node: SyntaxNode, at: Context): void {
  if (node.type !== "TestUnary" && node.type !== "TestBinary") {
    return forEachChild(node, (child) => test(child, at));
  }
  const words = node.type === "TestUnary" ? [node.operand] : [node.left, node.right];
  looseWords(words, at);
  if (!computing.test(node.operator)) return;
  for (const word of words) {
    const { text, blur } = shapeOf(word);
    if (
      blur === undefined &&
      (/^[-+]?[0-9]+$/.test(text) || (/^-[vR]$/.test(node.operator) && /^[A-Za-z0-9_]+$/.test(text)))
    ) continue;
    shadow(word, at, `${quoted(word.text)} is computed`);
    if (hasSubscriptCommand(text)) addInner(at, { kind: "script", text: `: "${text}"` });
  }
}

// Finds the scripts inside words, values, here-documents and expressions.
function descend(node: SyntaxNode, at: Context): void {
  if (isSpent(at.out.effort)) return;
  if (node.type === "Script") {
    return spend(at.out.effort, "characters", textCost + node.end - node.pos)
      ? walkScript(node, hide(inside(at)))
      : undefined;
  }
  if (node.type === "CommandExpansion" && mixesBraces(node.text)) at = { ...at, mixed: true };
  // Bash may take the second dollar sign for the start of an expansion.
  if (node.type === "SimpleExpansion" && node.text === "$$" && /^[({]/.test(at.source.slice(node.end))) {
    at.out.faults.push(unclear(at.source.slice(node.pos, node.end + 1)));
  }
  if (node.type === "Assignment" && node.value.type === "Word" && node.value.text.startsWith("(")) {
    at.out.faults.push(unclear(textOf(node, at)));
  }
  if (node.type === "HereDoc" && node.closing === undefined) {
    at.out.faults.push({
      code: "syntax_error",
      message: "the command is not valid bash: a here-document has no end",
    });
  }
  if (node.type === "Redirect" && /^[<>]&$/.test(node.operator) && /^-./s.test(node.target?.text ?? "")) {
    at.out.faults.push(unclear(textOf(node, at)));
  }
  if (commentTouches(node, at.source)) at.out.faults.push(unclear(textOf(node, at)));
  if (joinsCommands(node)) at.out.faults.push(unclear(textOf(node, at)));
  if (node.type === "Word" && missesCommands(node, node.text.replace(/\\.|'[^']*'/gs, ""))) {
    at.out.faults.push(unclear(node.text));
  }
  if (
    node.type === "HereDoc" && node.delimiter?.quoted === false &&
    missesCommands(node.body, node.body.text.replace(/\\./gs, ""))
  ) {
    at.out.faults.push(unclear(node.body.text));
  }
  if (node.type === "ArithmeticExpansion") quotedArithmetic(node.text, at);
  if (node.type === "BraceExpansion" || node.type === "ExtendedGlob") {
    // Their raw text may hold what the tree does not show.
    if (/[$`]|[<>]\(/.test(node.text) && (node.parts ?? []).length === 0) {
      const source = `: "${node.text}"`;
      if (spend(at.out.effort, "characters", source.length)) {
        walkScript(parseScript(source), { ...inside(at), source });
      }
    }
  }
  forEachChild(node, (child) => descend(child, at));
}
