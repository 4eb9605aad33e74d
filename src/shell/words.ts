// Words of a syntax tree → what is known of them: their value, or the pieces of it, and why the rest is unknown.
import { escapeLine } from "../core/text.ts";
import { expandBraces } from "./braces.ts";
import { type Assignment, parseScript, type Word, type WordPart } from "./syntax.ts";

export type Shape = {
  /** Value after unquoting; unknown pieces as written. */
  readonly text: string;
  /** The text when it is taken as a path: a `~` that is not expanded does not lead. */
  readonly path: string;
  readonly blur?: { readonly pieces: readonly string[]; readonly many: boolean; readonly glob?: true };
  /** Why no allow rule can say this word. */
  readonly why?: string;
  /** The parser left something as text that bash does not. */
  readonly unclear?: true;
};

/** Any number of words of which nothing is known. */
export const anyWords: Shape = { text: "…", path: "…", blur: { pieces: ["", ""], many: true } };

/** Two shapes without a blank between them. */
export function gluedShape(a: Shape, b: Shape): Shape {
  const left = a.blur?.pieces ?? [a.text];
  const right = b.blur?.pieces ?? [b.text];
  const pieces = [...left.slice(0, -1), (left.at(-1) ?? "") + (right[0] ?? ""), ...right.slice(1)];
  const why = a.why ?? b.why;
  const many = a.blur?.many === true || b.blur?.many === true;
  return {
    text: a.text + b.text,
    path: a.path + b.text,
    ...(pieces.length === 1 ? {} : { blur: { pieces, many } }),
    ...(why === undefined ? {} : { why }),
    ...(a.unclear === true || b.unclear === true ? { unclear: true as const } : {}),
  };
}

/** Stands for unknown text in a script that is made of words. */
export const unknownMark = "\ue000";

/** What the word becomes; several shapes when braces make it several words. */
export function shapesOf(word: Word): readonly Shape[] {
  if (word.parts?.some((p) => p.type === "BraceExpansion") !== true) return [shapeOf(word)];
  const why = `${quoted(word.text)} is a brace expansion`;
  const raw = expandBraces(word.text);
  const words = raw === undefined || raw.length < 2 ? undefined : reparse(raw);
  if (words === undefined) {
    return [{ text: word.text, path: word.text, blur: { pieces: ["", ""], many: true }, why }];
  }
  return words.map((w) => ({ ...shapeOf(w), why }));
}

function reparse(raw: readonly string[]): readonly Word[] | undefined {
  const words: Word[] = [];
  for (const text of raw) {
    if (text === "") continue;
    // Not a comment: it is in the middle of its command.
    const script = parseScript(`: ${text.startsWith("#") ? "\\" : ""}${text}`);
    const [statement, more] = script.commands;
    if (statement?.command.type !== "Command" || more !== undefined || script.errors !== undefined) {
      return undefined;
    }
    for (const arg of statement.command.suffix) {
      if (arg.type !== "Word") return undefined;
      words.push(arg);
    }
  }
  return words;
}

/** An assignment as one word, `NAME=value`. */
export function assignmentShape(assignment: Assignment): Shape {
  const { value } = assignment;
  const index = assignment.index === undefined ? "" : `[${assignment.index.text}]`;
  const name = `${assignment.name}${index}${assignment.append === true ? "+=" : "="}`;
  if (value.type !== "Word" || index !== "") {
    return unknown(assignment.text, `${quoted(assignment.text)} sets an array`);
  }
  const shape = shapeOf(value);
  const text = name + shape.text;
  const { why } = shape;
  return {
    text,
    path: text,
    ...(shape.blur === undefined ? {} : {
      blur: { ...shape.blur, pieces: [name + (shape.blur.pieces[0] ?? ""), ...shape.blur.pieces.slice(1)] },
    }),
    ...(why === undefined ? {} : { why }),
  };
}

function unknown(text: string, why: string): Shape {
  return { text, path: text, blur: { pieces: ["", ""], many: true }, why };
}

type Draft = {
  text: string;
  pieces: string[];
  many: boolean;
  glob: boolean;
  why: string | undefined;
  unclear: boolean;
};

/** The word by itself, braces not expanded. */
export function shapeOf(word: Word): Shape {
  const draft: Draft = { text: "", pieces: [""], many: false, glob: true, why: undefined, unclear: false };
  const { parts } = word;
  if (parts === undefined) known(draft, word.value, word.text);
  else for (const part of parts) add(draft, part, false);
  // Braces that the parser takes literally, such as `a{},b}`, are expanded by bash all the same.
  if (hidesBraces(word)) {
    draft.many = true;
    draft.pieces = ["", ""];
    draft.glob = false;
    draft.why ??= `${quoted(word.text)} is a brace expansion`;
  }
  return finish(draft, tildeOf(word));
}

function hidesBraces(word: Word): boolean {
  if (!word.text.includes("{")) return false;
  const bare = word.parts === undefined
    ? word.text
    : word.parts.map((p) => p.type === "Literal" || p.type === "Glob" ? p.text : "_").join("");
  const plain = bare.replace(/\\./gs, "_");
  return /,|\.\./.test(plain.slice(plain.indexOf("{") + 1, Math.max(0, plain.lastIndexOf("}"))));
}

function finish(draft: Draft, tilde: "none" | "home" | "other" | "quoted"): Shape {
  const { text, pieces } = draft;
  if (tilde === "other") {
    const rest = text.includes("/") ? text.slice(text.indexOf("/")) : "";
    const blur = { pieces: ["", rest], many: false };
    return {
      text,
      path: text,
      blur,
      why: draft.why ?? `${quoted(text)} is a folder that only the shell knows`,
    };
  }
  return {
    text,
    path: tilde === "quoted" ? `./${text}` : text,
    ...(pieces.length === 1
      ? {}
      : { blur: { pieces, many: draft.many, ...(draft.glob ? { glob: true as const } : {}) } }),
    ...(draft.why === undefined ? {} : { why: draft.why }),
    ...(draft.unclear ? { unclear: true as const } : {}),
  };
}

function tildeOf(word: Word): "none" | "home" | "other" | "quoted" {
  const prefix = /^~[^/]*/.exec(word.text)?.[0];
  if (prefix === undefined) return word.value.startsWith("~") ? "quoted" : "none";
  if (/['"\\$`]/.test(prefix)) return "quoted";
  return prefix === "~" ? "home" : "other";
}

function known(draft: Draft, value: string, raw: string | undefined): void {
  const [first = "", ...others] = value.split(unknownMark);
  draft.text += first;
  draft.pieces[draft.pieces.length - 1] += first;
  for (const piece of others) {
    hole(draft, "…", true, "a part of it is only known when it runs");
    draft.text += piece;
    draft.pieces[draft.pieces.length - 1] += piece;
  }
  if (raw === undefined) return;
  if (/[<>&|;()`]|\$[({]/.test(raw.replace(/\\./gs, ""))) draft.unclear = true;
  if (changesLook(raw)) {
    draft.why ??= `an invisible or control character stands in ${quoted(raw)}`;
  }
}

function hole(draft: Draft, text: string, many: boolean, why: string | undefined): void {
  draft.text += text;
  draft.pieces.push("");
  draft.many ||= many;
  draft.glob &&= why === undefined;
  draft.why ??= why;
}

function add(draft: Draft, part: WordPart, inQuotes: boolean): void {
  switch (part.type) {
    case "Literal":
      if (inQuotes && /`|\$[({]/.test(part.text.replace(/\\./gs, ""))) draft.unclear = true;
      return known(draft, part.value, inQuotes ? undefined : part.text);
    case "AnsiCQuoted":
      if (!isSureEscape(part)) {
        return hole(draft, part.text, false, `${quoted(part.text)} is not understood`);
      }
      return known(draft, part.value, undefined);
    case "SingleQuoted":
      return known(draft, part.value, undefined);
    case "LocaleString":
      draft.why ??= `${quoted(part.text)} may be translated`;
      return part.parts.forEach((p) => add(draft, p, true));
    case "DoubleQuoted":
      return part.parts.forEach((p) => add(draft, p, true));
    case "Glob":
      return hole(
        draft,
        part.text,
        true,
        part.kind === "bracket" && /[$`]/.test(part.text) ? computed(part.text) : undefined,
      );
    case "SimpleExpansion":
    case "ParameterExpansion":
      return hole(
        draft,
        part.text,
        !inQuotes || part.text.includes("@") || opensBraces(part.text),
        `${quoted(part.text)} is a variable`,
      );
    case "CommandExpansion":
      return hole(
        draft,
        part.text,
        !inQuotes || mixesBraces(part.text),
        `${quoted(part.text)} is the output of a command`,
      );
    case "ProcessSubstitution":
      // An empty one is no word at all.
      return hole(
        draft,
        part.text,
        part.script?.commands.length === 0,
        `${quoted(part.text)} runs a command`,
      );
    case "ArithmeticExpansion":
      return hole(draft, part.text, part.text.startsWith("$[") && hasBraces(part.text), computed(part.text));
    case "ExtendedGlob":
      return hole(draft, part.text, true, `${quoted(part.text)} is an extended pattern`);
    case "BraceExpansion":
      return hole(draft, part.text, true, `${quoted(part.text)} is a brace expansion`);
  }
}

// Not sure: joined lines; `\x{…}`, which bash takes for hexadecimal digits and the parser does not; characters beyond ASCII,
// which depend on the locale, and `\c` before one.
function isSureEscape({ text, value }: Extract<WordPart, { type: "AnsiCQuoted" }>): boolean {
  return !/\\(\n|x\{|c[^\0-\x7f])/.test(text) && !(/\\[uUx0-7]/.test(text) && /[^\0-\x7f]/.test(value));
}

/** Quotes inside an expansion inside quotes: to bash's brace expansion the inner ones end the outer ones. */
function opensBraces(expansion: string): boolean {
  return expansion.includes('"') && hasBraces(expansion);
}

function hasBraces(expansion: string): boolean {
  return /\{[^]*(,|\.\.)/.test(expansion.slice(2));
}

/** Quotes inside backquotes inside quotes: to bash's brace expansion the inner ones end the outer ones. */
export function mixesBraces(substitution: string): boolean {
  return substitution.startsWith("`") && substitution.includes("{") && substitution.includes('"');
}

function computed(text: string): string {
  return `${quoted(text)} is computed`;
}

/** A text in backticks, on one line, cut when it is long. */
export function quoted(text: string): string {
  const line = escapeLine(text.slice(0, 64)).replace(
    /[\u00a0\u2000-\u200a\u202f\u205f\u3000]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return `\`${line.length > 48 ? `${line.slice(0, 45)}…` : line}\``;
}

// Controls, blanks that bash takes for letters, and what is not seen at all. Tab, newline and space are bash's own.
const lookalikes =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff]|\ud834[\udd73-\udd7a]|[\udb40-\udb43][\udc00-\udfff]/;

/** Whether unquoted text holds characters that people cannot see or take for a blank. */
export function changesLook(raw: string): boolean {
  return lookalikes.test(raw);
}
