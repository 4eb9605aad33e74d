// Bytes as text for a model: what is text, what is not and which kind it is, and pages of lines.
import { placeholder } from "../core/redact.ts";
import { beforeCut, keyRest, openKey } from "../core/text.ts";

export type FileText =
  | {
    readonly kind: "text";
    /** Without a byte order mark; line ends as they are. */
    readonly text: string;
    readonly mark: boolean;
    /** False: some bytes are no UTF-8 and stand as U+FFFD, so writing the text back would damage the file. */
    readonly exact: boolean;
  }
  | { readonly kind: "binary"; readonly what: string };

const looksAt = 8192;

export function fileText(bytes: Uint8Array<ArrayBuffer>): FileText {
  const what = binaryKind(bytes);
  if (what !== undefined) return { kind: "binary", what };
  const mark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  const body = mark ? bytes.subarray(3) : bytes;
  try {
    return {
      kind: "text",
      text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body),
      mark,
      exact: true,
    };
  } catch {
    return {
      kind: "text",
      text: new TextDecoder("utf-8", { ignoreBOM: true }).decode(body),
      mark,
      exact: false,
    };
  }
}

const signatures: readonly (readonly [string, readonly number[]])[] = [
  ["UTF-16 text", [0xff, 0xfe]],
  ["UTF-16 text", [0xfe, 0xff]],
  ["PNG image", [0x89, 0x50, 0x4e, 0x47]],
  ["JPEG image", [0xff, 0xd8, 0xff]],
  ["GIF image", [0x47, 0x49, 0x46, 0x38]],
  ["PDF document", [0x25, 0x50, 0x44, 0x46, 0x2d]],
  ["ZIP archive", [0x50, 0x4b, 0x03, 0x04]],
  ["gzip archive", [0x1f, 0x8b]],
  ["ELF program", [0x7f, 0x45, 0x4c, 0x46]],
  ["WebAssembly module", [0x00, 0x61, 0x73, 0x6d]],
  ["SQLite database", [0x53, 0x51, 0x4c, 0x69, 0x74, 0x65, 0x20]],
];

/** What kind of binary the first bytes of a file show; undefined for text. */
export function binaryKind(bytes: Uint8Array): string | undefined {
  const known = signatures.find(([, start]) => start.every((byte, i) => bytes[i] === byte));
  if (known !== undefined) return known[0];
  return bytes.subarray(0, looksAt).includes(0) ? "binary data" : undefined;
}

export type Page = {
  readonly text: string;
  /** Line numbers from 1; `last` is before `first` when the page is empty. */
  readonly first: number;
  readonly last: number;
  readonly total: number;
  /** Characters of the last line that did not fit. */
  readonly cutFromLine: number;
};

/**
 * Lines from `first` on: at most `limit` of them and about `maxChars` characters; a longer single line is cut. Of a private
 * key that goes on over a border of the page, a placeholder is shown; `inKey` says that the text itself begins in one.
 */
export function pageOf(text: string, first: number, limit: number, maxChars: number, inKey = false): Page {
  const total = lineCount(text);
  let start = 0;
  for (let line = 1; line < first; line++) {
    const end = text.indexOf("\n", start);
    if (end < 0) return { text: "", first, last: first - 1, total, cutFromLine: 0 };
    start = end + 1;
  }
  let end = start, line = first;
  for (; line < first + limit && end < text.length; line++) {
    const next = text.indexOf("\n", end);
    const stop = next < 0 ? text.length : next + 1;
    if (stop - start > maxChars) break;
    end = stop;
  }
  if (end === start && start < text.length) {
    const next = text.indexOf("\n", start);
    const stop = next < 0 ? text.length : next;
    const fits = stop - start <= maxChars;
    const cut = fits ? text.slice(start, stop) : beforeCut(text.slice(start, start + maxChars));
    return { text: cut, first, last: first, total, cutFromLine: stop - start - cut.length };
  }
  return { text: withoutPartOfKey(text, start, end, inKey), first, last: line - 1, total, cutFromLine: 0 };
}

// A key that is shown in two pages would be known as one in neither. One that never ends goes on to the end of the text.
function withoutPartOfKey(text: string, start: number, end: number, inKey: boolean): string {
  const piece = text.slice(start, end);
  const hidden = `${placeholder("private-key")}\n`;
  const begunBefore = start === 0 ? inKey : openKey(text.slice(0, start)) !== undefined;
  const rest = begunBefore ? keyRest(piece) || piece.length : 0;
  const body = piece.slice(rest);
  const open = end < text.length ? openKey(body) : undefined;
  return (rest === 0 ? "" : hidden.trimEnd() + (body === "" ? "\n" : "")) +
    (open === undefined ? body : body.slice(0, open) + hidden);
}

/** A last line without a line end counts, an empty text has none. */
export function lineCount(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count++;
  return text === "" || text.endsWith("\n") ? count : count + 1;
}

/** The line, from 1, that holds this position. */
export function lineAt(text: string, position: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < position; at = text.indexOf("\n", at + 1)) line++;
  return line;
}
