// Whether what a workspace brings counts: what that is, a hash over it, and the answers that were given before.
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { sha256 } from "../disk/sha256.ts";
import { writeWhole } from "../disk/whole_file.ts";
import { compareText } from "../core/collection.ts";
import { isWithin, relativeTo } from "../core/path.ts";
import type { Problem } from "../core/problem.ts";
import { isObject } from "../core/text.ts";
import { readWhole } from "./file_head.ts";
import { isMissing, realOr } from "./locate.ts";

export type TrustSetting = "trusted" | "ask" | "untrusted";
export type TrustAnswer = "trusted" | "untrusted";

/**
 * `ask`: somebody is there to be asked. `unanswered`: nobody is, so nothing that the workspace brings counts, and a project
 * policy must stop the run. A flag answers the question; it does not overrule a policy that leaves none open.
 */
export function decideTrust(given: {
  readonly setting: TrustSetting;
  readonly flag?: TrustAnswer;
  readonly stored?: TrustAnswer;
  readonly interactive: "yes" | "no";
}): TrustAnswer | "ask" | "unanswered" {
  if (given.setting === "untrusted" || given.flag === "untrusted") return "untrusted";
  if (given.setting === "trusted" || given.flag === "trusted") return "trusted";
  if (given.stored !== undefined) return given.stored;
  return given.interactive === "yes" ? "ask" : "unanswered";
}

export type BroughtKind = "policy" | "skills" | "instructions" | "file";
export type WorkspaceContent = {
  /** What is there, for the question: paths relative to the root, in order. */
  readonly items: readonly { readonly path: string; readonly kind: BroughtKind; readonly files: number }[];
  /** SHA-256 over names and bytes of all of it. */
  readonly hash: string;
  /** SHA-256 of each regular file, by its real path. */
  readonly hashes: ReadonlyMap<string, string>;
  /** False when there is more than is hashed: an answer then counts for one run only. */
  readonly complete: boolean;
};
export type ContentInput = {
  /** Real path. */
  readonly root: string;
  readonly cwd: string;
  /** Policy files in the workspace, as they were read. */
  readonly policies: readonly { readonly path: string; readonly bytes: Uint8Array }[];
  readonly skillFolders: readonly string[];
  /** Names of instruction files, looked for in every folder from the root to `cwd`. */
  readonly instructions: readonly string[];
  /** Other files of the workspace that settings name. */
  readonly files: readonly string[];
  readonly limits?: { readonly files: number; readonly bytes: number };
};

type Walk = {
  readonly root: string;
  readonly limits: { readonly files: number; readonly bytes: number };
  readonly lines: string[];
  readonly hashes: Map<string, string>;
  readonly seen: Set<string>;
  bytes: number;
  complete: boolean;
};

/** Reads what the workspace brings and interprets none of it. Only what exists is listed; links that lead out are not followed. */
export function workspaceContent(input: ContentInput): WorkspaceContent {
  const limits = input.limits ?? { files: 10_000, bytes: largestSeen };
  const walk: Walk = {
    root: input.root,
    limits,
    lines: [],
    hashes: new Map(),
    seen: new Set(),
    bytes: 0,
    complete: true,
  };
  const items: { readonly path: string; readonly kind: BroughtKind; readonly files: number }[] = [];
  const add = (path: string, kind: BroughtKind, read: () => void) => {
    const before = walk.lines.length;
    read();
    const files = walk.lines.length - before;
    if (files > 0) items.push({ path: shownPath(path, input.root), kind, files });
  };
  for (const { path, bytes } of input.policies) {
    add(path, "policy", () => walk.lines.push(line(walk, path, "file", sha256(bytes))));
  }
  for (const folder of input.skillFolders) add(folder, "skills", () => hashTree(walk, folder, 0));
  for (const folder of foldersBetween(input.root, input.cwd)) {
    for (const name of input.instructions) {
      const path = join(folder, name);
      add(path, "instructions", () => hashTree(walk, path, 0));
    }
  }
  for (const path of input.files) add(path, "file", () => hashTree(walk, path, 0));
  items.sort((a, b) => compareText(a.path, b.path));
  const hash = sha256(walk.lines.sort().join("\n"));
  return { items, hash, hashes: walk.hashes, complete: walk.complete };
}

function foldersBetween(root: string, cwd: string): readonly string[] {
  const folders = [root];
  for (const name of (relativeTo(cwd, root) ?? "").split("/").filter((s) => s !== "")) {
    folders.push(join(folders.at(-1) ?? root, name));
  }
  return folders;
}

const deepest = 16;

function hashTree(walk: Walk, path: string, depth: number): void {
  try {
    const stat = lstatSync(path);
    if (walk.lines.length >= walk.limits.files || depth > deepest) walk.complete = false;
    else if (stat.isSymbolicLink()) hashLink(walk, path, depth);
    else if (stat.isDirectory()) hashFolder(walk, path, depth);
    else if (stat.isFile()) walk.lines.push(line(walk, path, "file", hashFile(walk, path)));
    else walk.lines.push(line(walk, path, "special", ""));
  } catch (error) {
    if (isMissing(error)) return;
    // Bytes that nobody has seen cannot be answered for.
    walk.complete = false;
    walk.lines.push(line(walk, path, "unreadable", ""));
  }
}

function hashLink(walk: Walk, path: string, depth: number): void {
  walk.lines.push(line(walk, path, "link", readlinkSync(path)));
  const real = realOr(path);
  if (real !== path && isWithin(real, walk.root)) hashTree(walk, real, depth + 1);
}

function hashFolder(walk: Walk, path: string, depth: number): void {
  const real = realpathSync(path);
  if (walk.seen.has(real)) return;
  walk.seen.add(real);
  for (const name of readdirSync(path).sort()) {
    if (name !== ".git") hashTree(walk, join(path, name), depth + 1);
  }
}

function hashFile(walk: Walk, path: string): string {
  const whole = readWhole(path, walk.limits.bytes - walk.bytes);
  if (whole.ok) {
    walk.bytes += whole.bytes.length;
    const hash = sha256(whole.bytes);
    walk.hashes.set(realOr(path), hash);
    return hash;
  }
  walk.complete = false;
  return `size ${whole.size}`;
}

function line(walk: Walk, path: string, kind: string, detail: string): string {
  return JSON.stringify([shownPath(path, walk.root), kind, detail]);
}

function shownPath(path: string, root: string): string {
  const inner = relativeTo(path, root);
  return inner === undefined ? path : inner || ".";
}

/** Whether a file still holds what it held when this content was looked at. False when it was not there or cannot be read. */
export function isAsSeen(content: Pick<WorkspaceContent, "hashes">, path: string): boolean {
  const hash = content.hashes.get(realOr(path));
  if (hash === undefined) return false;
  try {
    const whole = readWhole(path, largestSeen);
    return whole.ok && sha256(whole.bytes) === hash;
  } catch {
    return false;
  }
}
const largestSeen = 64 * 1024 * 1024;

/** Answers by root and hash, the newest last. */
export type TrustStore = { readonly answers: readonly StoredAnswer[]; readonly problems: readonly Problem[] };
export type StoredAnswer = { readonly root: string; readonly hash: string; readonly answer: TrustAnswer };

const mostAnswers = 500;

/** A store that is damaged holds no answers and says so; a missing one is empty. */
export function readTrust(stateFolder: string): TrustStore {
  const path = join(stateFolder, "trust.json");
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    return isMissing(error)
      ? { answers: [], problems: [] }
      : { answers: [], problems: [damaged(path, "cannot be read")] };
  }
  try {
    const value: unknown = JSON.parse(text);
    const answers = isObject(value) && value["version"] === 1 ? value["answers"] : undefined;
    if (Array.isArray(answers) && answers.every(isStoredAnswer)) return { answers, problems: [] };
  } catch {
    // Said below.
  }
  return { answers: [], problems: [damaged(path, "is damaged")] };
}

export function storedTrust(store: TrustStore, root: string, hash: string): TrustAnswer | undefined {
  return store.answers.findLast((a) => a.root === root && a.hash === hash)?.answer;
}

/** Keeps the answer; the file is exchanged as a whole. Throws the error of node:fs when it cannot be written. */
export function storeTrust(stateFolder: string, answer: StoredAnswer): void {
  const { answers } = readTrust(stateFolder);
  const others = answers.filter((a) => a.root !== answer.root || a.hash !== answer.hash);
  const path = join(stateFolder, "trust.json");
  const kept: { readonly version: 1; readonly answers: readonly StoredAnswer[] } = {
    version: 1,
    answers: [...others.slice(-(mostAnswers - 1)), answer],
  };
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeWhole(path, `${JSON.stringify(kept, null, 2)}\n`);
}

function isStoredAnswer(value: unknown): value is StoredAnswer {
  return isObject(value) && typeof value["root"] === "string" && typeof value["hash"] === "string" &&
    (value["answer"] === "trusted" || value["answer"] === "untrusted");
}

function damaged(path: string, how: string): Problem {
  return {
    code: "trust-store",
    severity: "warning",
    message: `\`${path}\` ${how}; no earlier answer about a workspace counts`,
    hint: "remove it; you are asked again",
  };
}
