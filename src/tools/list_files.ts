// list_files: what is in a folder, ignored files left out, cut by depth when it is too much.
import { lstatSync } from "node:fs";
import { plural } from "../core/plural.ts";
import type { Tool, ToolContext, ToolOutcome } from "../agent/ports.ts";
import { numberArg, textArg } from "./arguments.ts";
import { fileGlob } from "./file_glob.ts";
import { inspectPath, judgedPath } from "./judged_path.ts";
import { done, failed, failedMidway, readRefused, showName, showPath } from "./tool_outcome.ts";
import { type Found, walk, type WalkEnd, walkNotes } from "./walk.ts";

const mostLines = 500;

export const listFiles: Tool = {
  name: "list_files",
  description: "List files below a folder, ignored ones left out.",
  inputSchema: {
    type: "object",
    properties: {
      path: { type: "string", description: "default: the workspace" },
      depth: { type: "integer", minimum: 1 },
      pattern: { type: "string", description: "glob, such as *.ts or src/**/test_*" },
    },
    additionalProperties: false,
  },
  inspect: (args, place) =>
    inspectPath("list_files", "read", args, textArg(args, "path") ?? place.root, place),
  async run(args, at) {
    const leads = judgedPath(args, textArg(args, "path") ?? at.root, at);
    if (!leads.ok) return leads;
    if (!at.mayRead(leads.path)) return readRefused(leads.path, at);
    const fault = folderFault(leads.path, at);
    if (fault !== undefined) return fault;
    const glob = textArg(args, "pattern");
    const wanted = glob === undefined ? undefined : fileGlob(glob, leads.path, at.home);
    if (wanted !== undefined && !wanted.ok) return wanted;
    const end: WalkEnd = { refused: 0, unreadable: 0 };
    const found: Found[] = [];
    const depth = numberArg(args, "depth") ?? Infinity;
    for await (const entry of walk(leads.path, at, end)) {
      if (wanted === undefined || (entry.kind !== "folder" && wanted.test(entry.path))) found.push(entry);
    }
    if (end.stopped === "cancelled") return failedMidway("cancelled", "cancelled");
    return listing(found, depth, end, at);
  },
};

function folderFault(path: string, at: ToolContext): ToolOutcome | undefined {
  try {
    if (lstatSync(path).isDirectory()) return undefined;
    return failed("not_a_folder", `\`${showPath(path, at)}\` is a file, expected a folder: use read_file`);
  } catch {
    return failed("not_found", `\`${showPath(path, at)}\` does not exist`);
  }
}

function listing(found: readonly Found[], asked: number, end: WalkEnd, at: ToolContext): ToolOutcome {
  const depth = Math.min(asked, fittingDepth(found, asked));
  const near = found.filter((f) => f.depth <= depth);
  const shown = near.slice(0, mostLines);
  const inside = countInside(found, depth);
  const lines = shown.map((f) => line(f, inside.get(f.path) ?? 0, at));
  const left = found.length - shown.length;
  const notes = walkNotes(end);
  if (depth < asked && depth < Infinity && near.length < found.length) {
    notes.unshift(`only ${plural(depth, "level")} shown`);
  }
  if (near.length > shown.length) {
    notes.unshift(`${plural(near.length - shown.length, "more entry", "more entries")} here`);
  }
  if (left > 0) notes.push(`${plural(left, "entry", "entries")} not shown: give path, depth or pattern`);
  if (found.length === 0) notes.unshift("nothing found");
  return done([...lines, ...(notes.length === 0 ? [] : [`[${notes.join("; ")}]`])].join("\n"), {
    data: { shown: shown.length, leftOut: left },
    ...(left > 0 || found.length === 0 || end.stopped !== undefined ? { partial: true } : {}),
  });
}

// The overview is worth more than the depth of its first folder, so what is too much is cut level by level.
function fittingDepth(found: readonly Found[], asked: number): number {
  const perLevel: number[] = [];
  for (const { depth } of found) perLevel[depth] = (perLevel[depth] ?? 0) + 1;
  let sum = 0;
  for (let level = 1; level < perLevel.length; level++) {
    sum += perLevel[level] ?? 0;
    if (sum > mostLines) return Math.max(1, level - 1);
  }
  return asked;
}

// How many entries each folder of the last level shown hides.
function countInside(found: readonly Found[], depth: number): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  let folder = "";
  for (const entry of found) {
    if (entry.depth === depth && entry.kind === "folder") folder = entry.path;
    else if (entry.depth > depth && entry.path.startsWith(`${folder}/`)) {
      counts.set(folder, (counts.get(folder) ?? 0) + 1);
    }
  }
  return counts;
}

function line(entry: Found, inside: number, at: ToolContext): string {
  const name = showPath(entry.path, at);
  if (entry.kind === "folder") return `${name}/${inside > 0 ? ` (${inside} inside)` : ""}`;
  if (entry.kind === "link") return `${name} -> ${showName(entry.target ?? "?")}`;
  return entry.kind === "other" ? `${name} (no regular file)` : name;
}
