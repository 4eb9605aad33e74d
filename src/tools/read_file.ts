// read_file: text of one file, whole or by lines, exactly as it stands on disk.
import { closeSync, readSync } from "node:fs";
import { setImmediate as breathe } from "node:timers/promises";
import { plural } from "../core/plural.ts";
import { openKey } from "../core/text.ts";
import { sha256 } from "../disk/sha256.ts";
import type { Tool, ToolContext, ToolOutcome } from "../agent/ports.ts";
import { numberArg, textArg } from "./arguments.ts";
import { binaryKind, fileText, type Page, pageOf } from "./file_text.ts";
import { inspectPath, judgedPath } from "./judged_path.ts";
import { type OpenFile, openFile, readAll } from "./open_file.ts";
import { done, failed, failedMidway, showPath } from "./tool_outcome.ts";

const defaultLimit = 2000;
/** Larger files are read piece by piece, and only as far as needed. */
const wholeUpTo = 8 * 1024 * 1024;

export const readFile: Tool = {
  name: "read_file",
  description:
    "Read a text file. The result is its exact text; a note in [brackets] follows when there is more.",
  inputSchema: {
    type: "object",
    properties: {
      path: { type: "string" },
      offset: { type: "integer", minimum: 1, description: "first line" },
      limit: { type: "integer", minimum: 1, description: "lines, default 2000" },
    },
    required: ["path"],
    additionalProperties: false,
  },
  inspect: (args, place) => inspectPath("read_file", "read", args, textArg(args, "path") ?? "", place),
  async run(args, at) {
    const leads = judgedPath(args, textArg(args, "path") ?? "", at);
    if (!leads.ok) return leads;
    const file = openFile(leads.path, at);
    if (!file.ok) return file;
    try {
      const wanted = {
        first: numberArg(args, "offset") ?? 1,
        limit: numberArg(args, "limit") ?? defaultLimit,
      };
      return file.size > wholeUpTo
        ? await readPart(file, leads.path, wanted, at)
        : readWhole(file, leads.path, wanted, at);
    } finally {
      closeSync(file.fd);
    }
  },
};

type Wanted = { readonly first: number; readonly limit: number };

function readWhole(file: OpenFile, path: string, wanted: Wanted, at: ToolContext): ToolOutcome {
  const bytes = readAll(file.fd, 2 * wholeUpTo);
  if (bytes === undefined) {
    return failed("changed_while_read", `\`${showPath(path, at)}\` grows while it is read; try again`);
  }
  at.seen.set(path, sha256(bytes));
  const read = fileText(bytes);
  if (read.kind === "binary") return binary(path, read.what, bytes.length, at);
  const page = pageOf(read.text, wanted.first, wanted.limit, at.shell.maxOutput);
  if (page.last < page.first && page.total > 0) return pastEnd(path, wanted.first, page.total, at);
  const notes = pageNotes(page, String(page.total));
  if (!read.exact) {
    notes.push("some bytes are not UTF-8 and stand as \ufffd; edit_file cannot change this file");
  }
  if (read.text === "") notes.push("the file is empty");
  return done(withNotes(page.text, notes), {
    data: { path: showPath(path, at), bytes: bytes.length, lines: page.total },
    ...(isWhole(page) ? {} : { partial: true }),
  });
}

function isWhole(page: Page): boolean {
  return page.total > 0 && page.first === 1 && page.last === page.total && page.cutFromLine === 0;
}

function pageNotes(page: Page, total: string): string[] {
  const notes: string[] = [];
  if (page.cutFromLine > 0) {
    notes.push(`line ${page.last} goes on for ${plural(page.cutFromLine, "character")}: use search_text`);
  }
  if (page.first > 1 || String(page.last) !== total) {
    const more = String(page.last) === total ? "" : `; go on with offset ${page.last + 1}`;
    notes.push(`lines ${page.first}-${page.last} of ${total}${more}`);
  }
  return notes;
}

function withNotes(text: string, notes: readonly string[]): string {
  if (notes.length === 0) return text;
  return `${text}${text === "" || text.endsWith("\n") ? "" : "\n"}[${notes.join("; ")}]`;
}

function binary(path: string, what: string, size: number, at: ToolContext): ToolOutcome {
  return failed("binary", `\`${showPath(path, at)}\` is no text: ${what}, ${plural(size, "byte")}`);
}

function pastEnd(path: string, first: number, total: number, at: ToolContext): ToolOutcome {
  return failed(
    "out_of_range",
    `\`${showPath(path, at)}\` has ${plural(total, "line")}; there is no line ${first}`,
  );
}

const pieceSize = 64 * 1024;

// The end of the file is never reached for the first pages, so neither its number of lines nor its hash is known: what
// was read this way does not count as seen, and write_file will not overwrite it.
async function readPart(file: OpenFile, path: string, wanted: Wanted, at: ToolContext): Promise<ToolOutcome> {
  const piece = new Uint8Array(pieceSize);
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let text = "", line = 1, before = "";
  for (let position = 0, pieces = 0; position < file.size; pieces++) {
    const got = readSync(file.fd, piece, 0, pieceSize, position);
    if (got === 0) break;
    const what = position === 0 ? binaryKind(piece.subarray(0, got)) : undefined;
    if (what !== undefined) return binary(path, what, file.size, at);
    position += got;
    text += decoder.decode(piece.subarray(0, got), { stream: true });
    let skipped = 0;
    for (let end = text.indexOf("\n"); line < wanted.first && end >= 0; end = text.indexOf("\n", skipped)) {
      skipped = end + 1;
      line++;
    }
    if (line < wanted.first) skipped = text.length;
    before = keyContext(before + text.slice(0, skipped));
    text = text.slice(skipped);
    if (line >= wanted.first && text.length > at.shell.maxOutput) break;
    if (pieces % 32 === 31) await breathe();
    if (at.signal.aborted) return failedMidway("cancelled", "cancelled");
  }
  if (line < wanted.first || text === "") return pastEnd(path, wanted.first, line, at);
  const page = pageOf(text, 1, wanted.limit, at.shell.maxOutput, openKey(before) !== undefined);
  const shown = { ...page, first: wanted.first, last: wanted.first + page.last - 1 };
  const notes = [
    ...pageNotes(shown, "an unknown number"),
    `the file has ${plural(file.size, "byte")}, too many to be read or written as a whole`,
  ];
  return done(withNotes(page.text, notes), {
    data: { path: showPath(path, at), bytes: file.size },
    partial: true,
  });
}

// What was skipped, shortened to what tells whether a private key goes on after it; a border may come in two pieces.
function keyContext(skipped: string): string {
  const open = openKey(skipped) === undefined ? "" : "-----BEGIN PRIVATE KEY-----\n";
  return open + skipped.slice(-128);
}
