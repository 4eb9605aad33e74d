// Small pure text functions: wildcards for names, caps, escapes for terminals and fences, canonical JSON.
import type { Json } from "./message.ts";

/** A compiled regular expression from a file; linear time is the maker's duty. */
export type Pattern = {
  readonly source: string;
  test(text: string): boolean;
  /** Span in UTF-16 units of the first match. */
  find(text: string): readonly [start: number, end: number] | undefined;
};

/** Whether `*` (any run of characters, empty included) in `glob` can be filled to give `name`; for tool, skill and argument names. */
export function wildcard(glob: string, name: string): boolean {
  let g = 0, n = 0, star = -1, mark = 0;
  while (n < name.length) {
    if (glob[g] === "*") {
      star = g++;
      mark = n;
    } else if (g < glob.length && glob[g] === name[n]) {
      g++;
      n++;
    } else if (star >= 0) {
      g = star + 1;
      n = ++mark;
    } else {
      return false;
    }
  }
  while (glob[g] === "*") g++;
  return g === glob.length;
}

const encoder = new TextEncoder();
export function byteLength(text: string): number {
  return encoder.encode(text).length;
}

/**
 * Keeps head and tail of a text that is longer than `cap` UTF-16 units and says what was cut, by the rules of joinCut.
 */
export function capText(text: string, cap: number): { readonly text: string; readonly cut: boolean } {
  if (text.length <= cap) return { text, cut: false };
  const half = Math.max(1, Math.floor(cap / 2));
  return { text: joinCut(text.slice(0, half), text.slice(text.length - half), text.length), cut: true };
}

/**
 * Head and tail of a text of `total` UTF-16 units, with a mark between them that tells what is missing. Of a secret that
 * the cut goes through, neither side shows a part: see beforeCut and afterCut.
 */
export function joinCut(head: string, tail: string, total: number): string {
  const [start, end] = [beforeCut(head), afterCut(tail)];
  const mark = cutMark(total - start.length - end.length);
  // The mark brings the line ends on both of its sides.
  return start.replace(/\n$/, "") + mark + end.replace(/^\n/, "");
}

// Secrets are looked for when a text is recorded, after it was cut: a half of one would no longer be known as one.
const longestToken = 1024;
const blank = /\s/;
const keyBegins = /-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----/g;
const keyEnds = /-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----/g;

/**
 * What may be shown of a text that ends at a cut: without the unbroken run of non-blank characters at its end, of which up
 * to 1,024 are dropped, and without a private key that goes on after it.
 */
export function beforeCut(text: string): string {
  const key = openKey(text);
  let end = key ?? text.length;
  const least = Math.max(0, end - longestToken);
  if (key === undefined) { while (end > least && !blank.test(text.charAt(end - 1))) end--; }
  return trimSurrogate(text.slice(0, end), "end");
}

/** The same for a text that begins at a cut. */
export function afterCut(text: string): string {
  let start = keyRest(text);
  const most = Math.min(text.length, start + longestToken);
  if (start === 0) { while (start < most && !blank.test(text.charAt(start))) start++; }
  return trimSurrogate(text.slice(start), "start");
}

/** Where a private key begins that has no end in this text. */
export function openKey(text: string): number | undefined {
  const begins = [...text.matchAll(keyBegins)].at(-1);
  if (begins === undefined) return undefined;
  const ended = text.slice(begins.index).search(keyEnds) >= 0;
  return ended ? undefined : begins.index;
}

/** How many characters at the start belong to a private key that began before this text; 0 when none does. */
export function keyRest(text: string): number {
  const [end] = text.matchAll(keyEnds);
  if (end === undefined) return 0;
  const begins = text.search(keyBegins);
  return begins >= 0 && begins < end.index ? 0 : end.index + end[0].length;
}

/** What stands in the place of so many characters. */
export function cutMark(count: number): string {
  return `\n[… ${count} characters cut …]\n`;
}

/** Splits a text at its marks, which stay in between. */
export const cutMarks = /(\n\[… \d+ characters cut …\]\n)/;

/** No cutMark is longer. */
export const longestCutMark = cutMark(Number.MAX_SAFE_INTEGER).length;

function trimSurrogate(text: string, side: "start" | "end"): string {
  const code = side === "end" ? text.charCodeAt(text.length - 1) : text.charCodeAt(0);
  if (side === "end" && code >= 0xd800 && code <= 0xdbff) return text.slice(0, -1);
  if (side === "start" && code >= 0xdc00 && code <= 0xdfff) return text.slice(1);
  return text;
}

// C0 except tab and newline, DEL, C1, zero-width, direction, separator and tag characters: nothing a reader can see.
const hidden =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu;
const hiddenOnce = new RegExp(hidden.source, "u");

export function hasHiddenCharacters(text: string): boolean {
  return hiddenOnce.test(text);
}

/** The text without control characters and without characters that cannot be seen; tab and newline stay. */
export function dropHidden(text: string): string {
  return text.replace(hidden, "");
}

// What steers a terminal or turns text around, or hides letters in tags; a carriage return is a line end's only before a newline.
// Joiners and marks without width stay: whole scripts are written with them.
const steering =
  /\r(?!\n)|[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u206f\u{e0000}-\u{e007f}]/gu;

/** What others wrote, for a model: it shows what it is, also where it would steer a terminal or be read in another order. */
export function neutralText(text: string): string {
  return text.replace(steering, visible);
}

/** Text that is safe to print: control and direction characters become visible escapes; tab and newline stay. */
export function escapeTerminal(text: string): string {
  return text.replace(hidden, visible);
}

function visible(c: string): string {
  const code = c.codePointAt(0) ?? 0;
  if (code > 0xffff) return `\\u{${code.toString(16)}}`;
  return code < 0x100
    ? `\\x${code.toString(16).padStart(2, "0")}`
    : `\\u${code.toString(16).padStart(4, "0")}`;
}

/** Like escapeTerminal, on one line. */
export function escapeLine(text: string): string {
  return escapeTerminal(text).replace(/\n/g, "\\n").replace(/\t/g, "\\t");
}

/** The same JSON with these characters as escapes: in JSON that has no blanks around its values, they stand in texts only. */
export function escapeJson(json: string): string {
  const unit = (c: string) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return json.replace(hidden, (c) => c.split("").map(unit).join(""));
}

/** Text for inside an XML-like fence of a prompt: it can neither close nor open one. */
export function escapeFence(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

/**
 * Text inside fences of these names (letters) of which none can be ended by it, however the mark is spaced or cased. All else
 * stays as it is.
 */
export function keepOpen(text: string, names: readonly string[]): string {
  return text.replace(new RegExp(`<(\\s*/\\s*(?:${names.join("|")}))`, "gi"), "&lt;$1");
}

/** JSON with sorted members: equal values give equal text. */
export function canonicalJson(value: Json): string {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const members = Object.entries(value as { [key: string]: Json });
  members.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `{${members.map(([k, v]) => `${JSON.stringify(k)}:${canonicalJson(v)}`).join(",")}}`;
}

/** Whether a JSON value is a plain object. */
export function isObject(value: unknown): value is { readonly [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
