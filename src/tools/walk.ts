// Walking a folder: sorted, links not followed, .git and ignored files left out, and always at an end.
import { type Dirent, readlinkSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { performance } from "node:perf_hooks";
import { setImmediate as breathe } from "node:timers/promises";
import { compareText } from "../core/collection.ts";
import type { ToolContext } from "../agent/ports.ts";
import { type IgnoreRules, isIgnored, rulesAbove, rulesOf } from "./ignore_rules.ts";

export type Found = {
  /** Absolute. */
  readonly path: string;
  readonly kind: "file" | "folder" | "link" | "other";
  /** Where a link points, as written. */
  readonly target?: string;
  /** 1: directly in the folder. */
  readonly depth: number;
};

export type WalkEnd = {
  /** Entries that deny or ask rules keep from being read. */
  refused: number;
  /** Folders that could not be read. */
  unreadable: number;
  /** Why not everything was visited. */
  stopped?: "too many" | "time" | "cancelled";
};

const mostEntries = 50_000;
const deepest = 64;
const longestMs = 20_000;

/** Every entry below `folder`, a folder before what is in it, names in code unit order; `end` tells what is missing. */
export async function* walk(folder: string, at: ToolContext, end: WalkEnd): AsyncGenerator<Found> {
  const limits = { left: mostEntries, until: performance.now() + longestMs };
  yield* walkFolder({ folder, depth: 1, above: rulesAbove(folder, at.root) }, at, end, limits);
}

type Step = { readonly folder: string; readonly depth: number; readonly above: readonly IgnoreRules[] };
type Limits = { left: number; readonly until: number };

async function* walkFolder(step: Step, at: ToolContext, end: WalkEnd, limits: Limits): AsyncGenerator<Found> {
  const rules = [...step.above, ...rulesOf(step.folder, at.root)];
  for (const entry of await namesIn(step.folder, end)) {
    const why = at.signal.aborted ? "cancelled" : performance.now() > limits.until ? "time" : undefined;
    if (why !== undefined) end.stopped ??= why;
    if (limits.left-- <= 0) end.stopped ??= "too many";
    if (end.stopped !== undefined) return;
    if (limits.left % 500 === 0) await breathe();
    const path = step.folder === "/" ? `/${entry.name}` : `${step.folder}/${entry.name}`;
    if (entry.name === ".git" || isIgnored(path, entry.isDirectory(), rules)) continue;
    if (!at.mayRead(path)) {
      end.refused++;
      continue;
    }
    yield found(path, entry, step.depth);
    if (!entry.isDirectory() || step.depth >= deepest) continue;
    yield* walkFolder({ folder: path, depth: step.depth + 1, above: rules }, at, end, limits);
  }
}

async function namesIn(folder: string, end: WalkEnd): Promise<readonly Dirent[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    return entries.sort((a, b) => compareText(a.name, b.name));
  } catch {
    end.unreadable++;
    return [];
  }
}

function found(path: string, entry: Dirent, depth: number): Found {
  if (!entry.isSymbolicLink()) {
    return { path, depth, kind: entry.isDirectory() ? "folder" : entry.isFile() ? "file" : "other" };
  }
  try {
    return { path, depth, kind: "link", target: readlinkSync(path) };
  } catch {
    return { path, depth, kind: "link" };
  }
}

/** What a result must say of a walk that left something out; one note each. */
export function walkNotes(end: WalkEnd): string[] {
  const notes: string[] = [];
  if (end.refused > 0) notes.push(`${end.refused} left out because rules refuse reading them`);
  if (end.unreadable > 0) notes.push(`${end.unreadable} folders could not be read`);
  if (end.stopped !== undefined) notes.push(`not everything was looked at (${end.stopped}): narrow the path`);
  return notes;
}
