// The content of a git workspace as one text: what evidence for a gate was gathered on, and whether it still stands.
import { createHash, randomUUID } from "node:crypto";
import {
  type BigIntStats,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setImmediate as breathe } from "node:timers/promises";
import type { Entered, ToolContext } from "../agent/ports.ts";
import { isWithin } from "../core/path.ts";
import { codeOf } from "../core/thrown.ts";
import { type Git, plainGit } from "./git.ts";

/** Beyond these a workspace has no fingerprint. */
export type FingerprintCaps = { readonly files: number; readonly bytes: number; readonly ms: number };
const defaultCaps: FingerprintCaps = { files: 50_000, bytes: 512 * 1024 * 1024, ms: 20_000 };
/** Characters of a list that git gives. */
const longestList = 16 * 1024 * 1024;
/** How old a file's last change must be before the file is taken to be as it was when it was read. */
const settledMs = 2000n;

type Site = Pick<ToolContext, "root"> & {
  readonly env: ToolContext["shell"]["env"];
  /** How git is started; absent: as Writ itself runs. */
  look?(): Entered;
};
/** Absolute path → what was read of it, and the state of the file then. */
type Known = Map<string, { readonly state: string; readonly hash: string }>;

/**
 * The commit of HEAD, where branches and tags point and what was fetched last, every file that HEAD holds, and every other file below
 * the root that git does not ignore, by content; what git ignores counts only where it says beside such files what else is ignored. The
 * index does not count, nor does anything that a setting, an attribute or a filter makes of a file: the bytes on disk are read.
 * Gives undefined, and never rejects, where the root is in no working tree, where there is too much, or too slowly.
 */
export function contentFingerprint(
  site: Site,
  caps: FingerprintCaps = defaultCaps,
): (signal: AbortSignal) => Promise<string | undefined> {
  const known: Known = new Map();
  return async (signal) => {
    const within = AbortSignal.any([signal, AbortSignal.timeout(caps.ms)]);
    try {
      return await fingerprint(site, caps, known, within);
    } catch {
      return undefined;
    }
  };
}

async function fingerprint(site: Site, caps: FingerprintCaps, known: Known, signal: AbortSignal) {
  const entered = site.look?.() ?? { ok: true, env: site.env };
  if (!entered.ok) return undefined;
  const { ok: _, ...how } = entered;
  const at = { root: site.root, ...how, maxOutput: longestList, signal };
  const head = await headOf(plainGit(at), site.root);
  const refs = await refsOf(plainGit(at));
  if (head === undefined || refs === undefined) return undefined;
  const lists = await Promise.all([
    head.id === "" ? [] : listed(plainGit(at), ["ls-tree", "-r", "-z", "--name-only", "HEAD"]),
    // Against an index that is empty everything is an other file: what was staged, or marked as unchanged, makes no difference.
    listed(plainGit({ ...at, env: { ...at.env, GIT_INDEX_FILE: join(tmpdir(), randomUUID()) } }), [
      // Commands may write to the home, where there may be one.
      "-c",
      "core.excludesFile=/dev/null",
      "ls-files",
      "-z",
      "--others",
      "--exclude-standard",
    ]),
  ]);
  const names = new Set<string>();
  for (const list of lists) {
    if (list === undefined) return undefined;
    for (const name of list) names.add(name);
  }
  for (const name of hiddenIgnores(site.root, names)) names.add(name);
  const rest = { files: caps.files, bytes: caps.bytes };
  const whole = createHash("sha256").update(`head ${head.id}\0${refs}\0`);
  if (existsSync(head.fetched)) whole.update(`${fileState(head.fetched, known, { bytes: longestList })}\0`);
  for (const name of [...names].sort()) {
    for (const path of name.endsWith("/") ? below(site.root, name, rest) : [name]) {
      if (--rest.files < 0) return undefined;
      if (rest.files % 200 === 0) await breathe();
      signal.throwIfAborted();
      whole.update(`${path}\0${fileState(join(site.root, path), known, rest)}\0`);
    }
  }
  return `git:${whole.digest("hex")}`;
}

type Head = {
  /** The commit, empty where there is none yet. */
  readonly id: string;
  /** The file of what was fetched last, which can be merged without being a ref; absolute. It need not be there. */
  readonly fetched: string;
};

// Undefined where the root is in no working tree of its own.
async function headOf(git: Git, root: string): Promise<Head | undefined> {
  const asked = await git(["rev-parse", "--show-toplevel", "--git-path", "FETCH_HEAD"]);
  const [top, path] = asked.stdout.split(/\r?\n/);
  // A setting in the repository can name any folder as its working tree; only one around the root is meant.
  if (asked.exit !== 0 || top === undefined || path === undefined || !isWithin(root, top)) return undefined;
  const fetched = resolve(root, path);
  const head = await git(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]);
  const id = head.stdout.trim();
  if (head.exit === 0 && /^[0-9a-f]{40,64}$/.test(id)) return { id, fetched };
  return head.exit === 1 ? { id: "", fetched } : undefined;
}

// A list of ignored names can name itself, and then hides what is new beside files that count.
function hiddenIgnores(root: string, names: ReadonlySet<string>): readonly string[] {
  const folders = new Set([""]);
  for (const name of names) {
    for (let at = name.lastIndexOf("/"); at >= 0; at = name.lastIndexOf("/", at - 1)) {
      const folder = name.slice(0, at + 1);
      if (folders.has(folder)) break;
      folders.add(folder);
    }
  }
  return [...folders].map((folder) => `${folder}.gitignore`).filter((name) =>
    !names.has(name) && existsSync(join(root, name))
  );
}

// What can be merged or pushed by its name: another commit behind the name is another content.
async function refsOf(git: Git): Promise<string | undefined> {
  const found = await git([
    "for-each-ref",
    "--sort=refname",
    "--format=%(objectname) %(refname)",
    "refs/heads",
    "refs/remotes",
    "refs/tags",
  ]);
  return found.exit !== 0 || found.cut ? undefined : found.stdout;
}

async function listed(git: Git, args: readonly string[]): Promise<readonly string[] | undefined> {
  const found = await git(args);
  // A name whose bytes were lost in reading it cannot be looked at.
  if (found.exit !== 0 || found.cut || found.stdout.includes("\ufffd")) return undefined;
  return found.stdout.split("\0").filter((name) => name !== "");
}

// A repository within this one: git lists its folder alone.
function below(root: string, folder: string, rest: { files: number }): readonly string[] {
  const found: string[] = [];
  const visit = (path: string) => {
    for (const entry of readdirSync(join(root, path), { withFileTypes: true })) {
      if (entry.name === ".git") continue;
      if (found.length > rest.files) return;
      const name = `${path}${entry.name}`;
      if (entry.isDirectory()) visit(`${name}/`);
      else found.push(name);
    }
  };
  visit(folder);
  return found.sort();
}

function fileState(path: string, known: Known, rest: { bytes: number }): string {
  let stats: BigIntStats;
  try {
    stats = lstatSync(path, { bigint: true });
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return "gone";
    throw error;
  }
  if (stats.isSymbolicLink()) return `link ${readlinkSync(path)}`;
  if (!stats.isFile()) return `other ${stats.mode}`;
  rest.bytes -= Number(stats.size);
  if (rest.bytes < 0) throw new Error("too much to read");
  const state = [stats.dev, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join(" ");
  const executable = (stats.mode & 0o111n) === 0n ? "file" : "program";
  const before = known.get(path);
  if (before?.state === state) return `${executable} ${before.hash}`;
  const hash = hashOf(path);
  // A change within the same tick of the clock as the reading would not show.
  if (BigInt(Date.now()) - stats.ctimeMs > settledMs) known.set(path, { state, hash });
  return `${executable} ${hash}`;
}

const block = Buffer.allocUnsafe(256 * 1024);

function hashOf(path: string): string {
  const file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  try {
    const hash = createHash("sha256");
    for (let read = readSync(file, block); read > 0; read = readSync(file, block)) {
      hash.update(block.subarray(0, read));
    }
    return hash.digest("hex");
  } finally {
    closeSync(file);
  }
}
