// search_text: lines of files that match a regular expression, in linear time, with a cap on everything.
import { closeSync, lstatSync } from "node:fs";
import { patternFault } from "../core/pattern_fault.ts";
import { plural } from "../core/plural.ts";
import { afterCut, beforeCut } from "../core/text.ts";
import type { Tool, ToolContext, ToolOutcome } from "../agent/ports.ts";
import { flagArg, textArg } from "./arguments.ts";
import { fileGlob } from "./file_glob.ts";
import { fileText } from "./file_text.ts";
import { inspectPath, judgedPath } from "./judged_path.ts";
import { type LineSearch, lineSearch } from "./line_search.ts";
import { openFile, readAll } from "./open_file.ts";
import { done, failed, failedMidway, readRefused, showPath } from "./tool_outcome.ts";
import { walk, type WalkEnd, walkNotes } from "./walk.ts";

const mostMatches = 200;
const lineWidth = 300;
const largestFile = 4 * 1024 * 1024;

export const searchText: Tool = {
  name: "search_text",
  description:
    "Find lines that match a regular expression (RE2). Gives path:line: text; ignored files are left out.",
  inputSchema: {
    type: "object",
    properties: {
      pattern: { type: "string", minLength: 1 },
      path: { type: "string", description: "file or folder; default: the workspace" },
      glob: { type: "string", description: "only files such as *.ts" },
      ignore_case: { type: "boolean" },
    },
    required: ["pattern"],
    additionalProperties: false,
  },
  inspect: (args, place) =>
    inspectPath("search_text", "read", args, textArg(args, "path") ?? place.root, place),
  async run(args, at) {
    const leads = judgedPath(args, textArg(args, "path") ?? at.root, at);
    if (!leads.ok) return leads;
    if (!at.mayRead(leads.path)) return readRefused(leads.path, at);
    const pattern = textArg(args, "pattern") ?? "";
    let search: LineSearch;
    try {
      search = lineSearch(pattern, { ignoreCase: flagArg(args, "ignore_case") });
    } catch (error) {
      const { says, hint } = patternFault(pattern, error);
      return failed("bad_pattern", `the pattern \`${pattern}\` ${says}; ${hint}`);
    }
    const glob = textArg(args, "glob");
    const wanted = glob === undefined ? undefined : fileGlob(glob, leads.path, at.home);
    if (wanted !== undefined && !wanted.ok) return wanted;
    return await searchIn(leads.path, search, (path) => wanted === undefined || wanted.test(path), at);
  },
};

type Tally = { matches: number; files: number; large: number; chars: number; lines: string[] };

async function searchIn(
  path: string,
  search: LineSearch,
  wanted: (path: string) => boolean,
  at: ToolContext,
): Promise<ToolOutcome> {
  const tally: Tally = { matches: 0, files: 0, large: 0, chars: 0, lines: [] };
  const end: WalkEnd = { refused: 0, unreadable: 0 };
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return failed("not_found", `\`${showPath(path, at)}\` does not exist`);
  if (stat.isDirectory()) {
    for await (const entry of walk(path, at, end)) {
      if (entry.kind === "file" && wanted(entry.path)) searchFile(entry.path, search, tally, at);
    }
  } else {
    const fault = searchFile(path, search, tally, at);
    if (fault !== undefined) return fault;
  }
  if (end.stopped === "cancelled") return failedMidway("cancelled", "cancelled");
  return report(tally, end);
}

// What cannot be opened while walking is passed over; a file that was asked for by name says why.
function searchFile(
  path: string,
  search: LineSearch,
  tally: Tally,
  at: ToolContext,
): ToolOutcome | undefined {
  const file = openFile(path, at);
  if (!file.ok) return file;
  try {
    const bytes = readAll(file.fd, largestFile);
    if (bytes === undefined) {
      tally.large++;
      return undefined;
    }
    const read = fileText(bytes);
    if (read.kind === "binary") {
      return failed(
        "binary",
        `\`${showPath(path, at)}\` is no text: ${read.what}, ${plural(bytes.length, "byte")}`,
      );
    }
    const shown = showPath(path, at);
    const before = tally.matches;
    search.each(read.text, (line, text, start) => {
      tally.matches++;
      if (tally.lines.length < mostMatches && tally.chars < at.shell.maxOutput) {
        const told = `${shown}:${line}: ${clip(text, start)}`;
        tally.chars += told.length + 1;
        tally.lines.push(told);
      }
      return true;
    });
    if (tally.matches > before) tally.files++;
    return undefined;
  } finally {
    closeSync(file.fd);
  }
}

// A long line is shown around its match.
function clip(line: string, start: number): string {
  if (line.length <= lineWidth) return line;
  const from = Math.max(0, Math.min(start - 60, line.length - lineWidth));
  const piece = line.slice(from, from + lineWidth).toWellFormed();
  const goesOn = from + lineWidth < line.length;
  const shown = goesOn ? beforeCut(piece) : piece;
  const text = from > 0 ? afterCut(shown) : shown;
  if (text === "") return `[a line of ${line.length} characters, without a blank near the match]`;
  return `${from > 0 ? "…" : ""}${text}${goesOn ? "…" : ""}`;
}

function report(tally: Tally, end: WalkEnd): ToolOutcome {
  const notes = walkNotes(end);
  if (tally.large > 0) notes.push(`${plural(tally.large, "file")} too large to be searched`);
  const left = tally.matches - tally.lines.length;
  if (left > 0) {
    notes.unshift(
      `${plural(left, "more match", "more matches")}, in ${
        plural(tally.files, "file")
      } altogether: narrow pattern, path or glob`,
    );
  }
  if (tally.matches === 0) notes.unshift("no match");
  return done([...tally.lines, ...(notes.length === 0 ? [] : [`[${notes.join("; ")}]`])].join("\n"), {
    data: { matches: tally.matches, files: tally.files },
    ...(left > 0 || tally.matches === 0 || end.stopped !== undefined ? { partial: true } : {}),
  });
}
