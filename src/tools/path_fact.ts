// Where a written path leads, resolved as the system would. Looks at links and names, opens nothing, changes nothing.
import { lstatSync, readdirSync, readlinkSync } from "node:fs";
import process from "node:process";
import type { Place } from "../agent/ports.ts";
import type { PathFact } from "../core/facts.ts";
import { isWithin } from "../core/path.ts";
import { codeOf } from "../core/thrown.ts";

export type FileKind = "file" | "dir" | "link";

/** What resolving needs to know of a file system. Paths are absolute; what throws is taken as "cannot be known". */
export type FilePort = {
  /** Undefined when nothing is there. */
  lstat(path: string): FileKind | undefined;
  /** The text of a link. */
  readlink(path: string): string;
  /** Names in a folder as stored; asked only where spelling does not decide. */
  list?(folder: string): readonly string[];
  /** `.ENV` and `.env` are one file. */
  readonly caseInsensitive?: boolean;
  /** Composed and decomposed letters are one name. */
  readonly unicodeNormalizing?: boolean;
};

/** The file system of this machine. */
export const realFiles: FilePort = {
  lstat(path) {
    try {
      const stat = lstatSync(path, { throwIfNoEntry: false });
      if (stat === undefined) return undefined;
      return stat.isSymbolicLink() ? "link" : stat.isDirectory() ? "dir" : "file";
    } catch (error) {
      if (codeOf(error) === "ENOTDIR") return undefined;
      throw error;
    }
  },
  readlink(path) {
    const target = readlinkSync(path);
    // Bytes that are no UTF-8 would be looked up under another name than the one on disk.
    if (target.includes("\ufffd")) throw new Error("the link's text is not UTF-8");
    return target;
  },
  list: (folder) => readdirSync(folder),
  caseInsensitive: process.platform === "darwin" || process.platform === "win32",
  unicodeNormalizing: process.platform === "darwin",
};

/** The same files, each looked at once: for one call that is judged, in which a thousand paths go through one folder. */
export function lookedAtOnce(fs: FilePort): FilePort {
  const kinds = new Map<string, FileKind | undefined>();
  return {
    ...fs,
    lstat(path) {
      if (!kinds.has(path)) kinds.set(path, fs.lstat(path));
      return kinds.get(path);
    },
  };
}

const mostLinks = 40;
const longestPath = 4096;

/**
 * The facts of one path. Relative paths start at `cwd` (default: the root), a leading `~` or `~/` is home. Links are
 * followed before `..`, a dangling link to its target; a tail that does not exist is kept. `resolved` is absent for a
 * link loop, an empty path, a NUL, text that is no Unicode, and what cannot be looked at. Never throws.
 */
export function pathFact(
  written: string,
  place: Place,
  cwd: string = place.root,
  fs: FilePort = realFiles,
): PathFact {
  const anchors = [place.root, place.home, cwd];
  const start = anchored(written.toWellFormed(), place.home, cwd);
  const absolute = spelledLexically(start, anchors, fs);
  const resolved = resolvable(written) ? resolve(start, cwd, anchors, fs) : undefined;
  const protectedBy = (resolved === undefined ? undefined : place.protectedBy(resolved)) ??
    place.protectedBy(absolute);
  return {
    written,
    absolute,
    ...(resolved === undefined ? {} : { resolved }),
    inWorkspace: resolved !== undefined && isWithin(resolved, place.root),
    ...(protectedBy === undefined ? {} : { protectedBy }),
  };
}

function resolvable(written: string): boolean {
  return written !== "" && written.length < longestPath && !written.includes("\0") && written.isWellFormed();
}

function anchored(written: string, home: string, cwd: string): string {
  if (written === "~" || written.startsWith("~/")) return home + written.slice(1);
  return written.startsWith("/") ? written : `${cwd}/${written}`;
}

function spelledLexically(path: string, anchors: readonly string[], fs: FilePort): string {
  let current = "";
  for (const name of path.split("/")) {
    if (name === "" || name === ".") continue;
    current = name === ".." ? parentOf(current) : `${current}/${spelled(current, name, fs)}`;
  }
  return anchorSpelling(current === "" ? "/" : current, anchors, fs);
}

// `current` is "" for the root of the file system, so that names can simply be appended.
function resolve(path: string, cwd: string, anchors: readonly string[], fs: FilePort): string | undefined {
  const pending = path.split("/").reverse();
  let current = "", links = 0;
  try {
    for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
      if (name === "" || name === ".") continue;
      if (name === "..") {
        current = parentOf(current);
        continue;
      }
      const next = `${current}/${spelled(current, name, fs)}`;
      const target = linkTarget(next, cwd, pending.length === 0, fs);
      if (target === undefined) {
        current = next;
        continue;
      }
      if (++links > mostLinks) return undefined;
      if (target.startsWith("/")) current = "";
      pending.push(...target.split("/").reverse());
    }
  } catch {
    return undefined;
  }
  return anchorSpelling(current === "" ? "/" : current, anchors, fs);
}

const ownProcess = /^\/proc\/(?:self|thread-self)$/;
const ownEntry = /^\/proc\/(?:self|thread-self)\/(?:task\/[0-9]+\/)?(root|cwd|fd\/[0-9]+)$/;
const otherEntry = /^\/proc\/[0-9]+\/(?:task\/[0-9]+\/)?(root|cwd|fd\/[0-9]+)$/;

// Links of /proc lead where the process that follows them stands, and that will be a command in `cwd`, not Writ.
function linkTarget(path: string, cwd: string, last: boolean, fs: FilePort): string | undefined {
  if (ownProcess.test(path)) return undefined;
  const own = ownEntry.exec(path)?.[1];
  if (own === "root") return "/";
  if (own === "cwd") return cwd;
  if (own !== undefined) return withoutName(last);
  const kind = fs.lstat(path);
  const other = otherEntry.exec(path)?.[1];
  if (other !== undefined && kind === undefined) {
    return other === "root" ? "/" : other === "cwd" ? cwd : undefined;
  }
  if (kind !== "link") return undefined;
  const target = fs.readlink(path);
  if (target === "" || target.includes("\0")) throw new Error("the link has no target");
  if (other !== undefined && !target.startsWith("/")) return withoutName(last);
  return target;
}

// An open file (`/proc/self/fd/0`) is its own name; what lies below one cannot be known.
function withoutName(last: boolean): undefined {
  if (!last) throw new Error("below an open file");
  return undefined;
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

// The name as stored, where the file system does not tell spellings apart; folded where nothing is stored.
function spelled(folder: string, name: string, fs: FilePort): string {
  if (!foldsNames(fs)) return name;
  const wanted = folded(name, fs);
  const stored = namesIn(folder === "" ? "/" : folder, fs);
  return stored.includes(name) ? name : stored.find((n) => folded(n, fs) === wanted) ?? wanted;
}

function namesIn(folder: string, fs: FilePort): readonly string[] {
  try {
    return fs.list?.(folder) ?? [];
  } catch {
    return [];
  }
}

function folded(name: string, fs: FilePort): string {
  const composed = fs.unicodeNormalizing === true ? name.normalize("NFC") : name;
  return fs.caseInsensitive === true ? composed.toLowerCase() : composed;
}

function foldsNames(fs: FilePort): boolean {
  return fs.caseInsensitive === true || fs.unicodeNormalizing === true;
}

// Root, home and the current folder are known by their spelling even where their parents cannot be listed.
function anchorSpelling(path: string, anchors: readonly string[], fs: FilePort): string {
  if (!foldsNames(fs)) return path;
  const names = path.split("/");
  for (const anchor of anchors) {
    const own = anchor.split("/");
    if (own.length <= names.length && own.every((n, i) => folded(n, fs) === folded(names[i] ?? "", fs))) {
      return [...own, ...names.slice(own.length)].join("/");
    }
  }
  return path;
}
