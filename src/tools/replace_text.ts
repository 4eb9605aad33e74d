// Exact replacement in a text, blind only to the kind of line ends. Pure text work.
import { plural } from "../core/plural.ts";
import { lineAt } from "./file_text.ts";

export type Replacement = { readonly old: string; readonly new: string; readonly all: boolean };
export type Replaced =
  | { readonly ok: true; readonly text: string; readonly places: readonly number[] }
  | { readonly ok: false; readonly code: "no_match" | "not_unique" | "no_change"; readonly message: string };

/**
 * Replaces the one occurrence of `old`, or every one (from the left, not overlapping) with `all`. CRLF and LF count as
 * the same when looking; what is put in gets the line ends of what it replaces, or of the file where that has none.
 */
export function replaceText(text: string, wanted: Replacement): Replaced {
  const old = toLf(wanted.old), put = toLf(wanted.new);
  if (old === "") {
    return { ok: false, code: "no_match", message: "`old` is empty; expected the text to be replaced" };
  }
  if (old === put) return { ok: false, code: "no_change", message: "`old` and `new` are the same" };
  const plain = toLf(text);
  const places = occurrences(plain, old, wanted.all ? old.length : 1);
  if (places.length === 0) {
    return { ok: false, code: "no_match", message: `\`old\` does not occur; ${nearMiss(plain, old)}` };
  }
  if (places.length > 1 && !wanted.all) {
    const lines = places.slice(0, 10).map((p) => lineAt(plain, p)).join(", ");
    const message =
      `\`old\` occurs ${places.length} times (lines ${lines}); add lines around it until it is unique, or set \`all\``;
    return { ok: false, code: "not_unique", message };
  }
  return { ok: true, ...rebuild(text, plain, old.length, put, places) };
}

function toLf(text: string): string {
  return text.replaceAll("\r\n", "\n");
}

function occurrences(text: string, wanted: string, step: number): readonly number[] {
  const places: number[] = [];
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + step)) places.push(at);
  return places;
}

// Offsets of the text without carriage returns are carried over to the text that has them, from place to place.
function rebuild(text: string, plain: string, oldLength: number, put: string, places: readonly number[]) {
  const fileEnd = /\r?\n/.exec(text)?.[0] ?? "\n";
  const originals: number[] = [];
  let out = "", from = 0, plainFrom = 0;
  const advance = (plainTo: number) => {
    for (; plainFrom < plainTo; plainFrom++) from += plain[plainFrom] === "\n" && text[from] === "\r" ? 2 : 1;
  };
  for (const place of places) {
    const copied = from;
    advance(place);
    out += text.slice(copied, from);
    originals.push(from);
    const start = from;
    advance(place + oldLength);
    const end = /\r?\n/.exec(text.slice(start, from))?.[0] ?? fileEnd;
    out += end === "\r\n" ? put.replaceAll("\n", "\r\n") : put;
  }
  return { text: out + text.slice(from), places: originals };
}

const mostHints = 5;

function nearMiss(text: string, old: string): string {
  const tight = (line: string) => line.replace(/\s+/g, " ").trim();
  const lines = text.split("\n").map(tight);
  const wanted = old.split("\n").map(tight);
  const core = wanted.slice(wanted.findIndex((l) => l !== ""), wanted.findLastIndex((l) => l !== "") + 1);
  const first = core[0];
  if (first === undefined || first === "") return "it holds only blanks";
  const starts = lines.flatMap((_, i) => core.every((w, k) => lines[i + k] === w) ? [i + 1] : []);
  if (starts.length > 0) {
    return `with other blanks it is at line ${
      starts.slice(0, mostHints).join(", ")
    }: copy the blanks exactly`;
  }
  const hits = lines.flatMap((line, i) => line.includes(first) ? [i + 1] : []);
  if (hits.length === 0) return "read the file again and copy the text exactly";
  const more = hits.length > mostHints ? ` and ${plural(hits.length - mostHints, "more line")}` : "";
  return `its first line is at line ${
    hits.slice(0, mostHints).join(", ")
  }${more}, but what follows differs: read there again`;
}
