// What the front matter of each SKILL.md below a folder said when it was last read, so that a start with a thousand skills
// reads only those that changed. A key proves that a file is the same; whatever proves nothing is read again.
import { lstatSync, mkdirSync, readdirSync, rmSync, type Stats } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { sha256 } from "../disk/sha256.ts";
import { writeWhole } from "../disk/whole_file.ts";
import { readWhole } from "./file_head.ts";
import { realOr } from "./locate.ts";
import { knownPattern } from "./pattern.ts";
import { compareText } from "../core/collection.ts";
import { isWithin } from "../core/path.ts";
import type { SkillMeta } from "../core/skill.ts";
import { isObject } from "../core/text.ts";

/** `text`: what stands in it. `file`: the file itself. `tools`: its tools.json. `folder`: where skills were looked for. */
export type ProblemSubject = "text" | "file" | "tools" | "folder";

/** What reading one SKILL.md gave, its tools.json apart. */
export type HeadRead = {
  /** Absent when it is refused. */
  readonly meta?: SkillMeta;
  readonly findings: readonly {
    readonly code: string;
    readonly message: string;
    readonly severity: "error" | "warning";
    readonly about: ProblemSubject;
  }[];
};

export type IndexSite = {
  /** Where indexes are kept: a folder of Writ's own, made when it is not there. */
  readonly folder: string;
  /** Names the reader that made an entry: another version may read the same file otherwise. */
  readonly reader: string;
  /** Nothing in it is trusted to hold an index: the workspace. */
  readonly outside: string;
  /** Milliseconds since 1970. */
  now(): number;
};

export type SkillIndex = {
  get(file: string, facts: Stats, folderName: string): HeadRead | undefined;
  put(file: string, facts: Stats, folderName: string, read: HeadRead): void;
  /** Writes it, when something in it is new or gone. Never throws: the index only saves time. */
  save(): void;
};

type Entry = readonly [key: string, read: StoredRead];
type StoredRead = Omit<HeadRead, "meta"> & {
  readonly meta?: Omit<SkillMeta, "patterns"> & { readonly patterns: readonly string[] };
};

// Below that, reading is as fast.
const fewest = 24;
const largest = 64 * 1024 * 1024;
const mostIndexes = 64;
/** A file that was written this short a time ago may be written again within the same tick of its clock. */
const settlesMs = 2000;

/** The index of the skills below a folder (a real path); undefined where none may be kept. */
export function openIndex(site: IndexSite, scanned: string): SkillIndex | undefined {
  if (isWithin(realOr(site.folder), site.outside)) return undefined;
  const path = join(site.folder, `${sha256(scanned).slice(0, 32)}.json`);
  const known = isPrivate(site.folder) ? readIndex(path, site.reader) : new Map<string, Entry>();
  const seen = new Map<string, Entry>();
  const started = site.now();
  let added = false;
  return {
    get(file, facts, folderName) {
      const entry = known.get(file);
      if (entry === undefined || entry[0] !== keyOf(facts, folderName)) return undefined;
      seen.set(file, entry);
      return restore(entry[1]);
    },
    put(file, facts, folderName, read) {
      if (started - Math.max(facts.mtimeMs, facts.ctimeMs) < settlesMs) return;
      seen.set(file, [keyOf(facts, folderName), store(read)]);
      added = true;
    },
    save() {
      if (!added && seen.size === known.size) return;
      try {
        if (seen.size < fewest) return rmSync(path, { force: true });
        mkdirSync(site.folder, { recursive: true, mode: 0o700 });
        if (isPrivate(site.folder)) writeIndex(path, site.reader, seen);
      } catch {
        // The next start reads the files.
      }
    },
  };
}

// The change time cannot be set by who writes a file; with it, no other content has the same key.
function keyOf(facts: Stats, folderName: string): string {
  return [facts.size, facts.mtimeMs, facts.ctimeMs, facts.ino, facts.dev, folderName].join(" ");
}

function store({ meta, findings }: HeadRead): StoredRead {
  if (meta === undefined) return { findings };
  return { meta: { ...meta, patterns: meta.patterns.map((p) => p.source) }, findings };
}

function restore({ meta, findings }: StoredRead): HeadRead {
  if (meta === undefined) return { findings };
  return {
    meta: { ...meta, patterns: meta.patterns.map((p) => knownPattern(p, { ignoreCase: true })) },
    findings,
  };
}

// A header line with a hash, then the entries: what was cut off, or is not ours, holds nothing.
function readIndex(path: string, reader: string): ReadonlyMap<string, Entry> {
  const none = new Map<string, Entry>();
  try {
    if (!isOwn(path, "file")) return none;
    const whole = readWhole(path, largest);
    if (!whole.ok) return none;
    const text = new TextDecoder("utf-8", { fatal: true }).decode(whole.bytes);
    const end = text.indexOf("\n");
    if (text.slice(0, end) !== headerOf(reader, text.slice(end + 1))) return none;
    const rows: unknown = JSON.parse(text.slice(end + 1));
    return Array.isArray(rows) && rows.every(isRow)
      ? new Map(rows.map(([file, ...entry]) => [file, entry]))
      : none;
  } catch {
    return none;
  }
}

function writeIndex(path: string, reader: string, entries: ReadonlyMap<string, Entry>): void {
  const rows = [...entries].map(([file, entry]) => [file, ...entry]);
  const body = JSON.stringify(rows);
  prune(dirname(path));
  writeWhole(path, `${headerOf(reader, body)}\n${body}`);
}

function headerOf(reader: string, body: string): string {
  return JSON.stringify({ format: 2, reader, sha256: sha256(body) });
}

type Row = readonly [file: string, key: string, read: StoredRead];
function isRow(row: unknown): row is Row {
  if (!Array.isArray(row) || typeof row[0] !== "string" || typeof row[1] !== "string") return false;
  const read: unknown = row[2];
  if (!isObject(read) || !Array.isArray(read["findings"])) return false;
  const meta = read["meta"];
  if (meta === undefined) return true;
  return isObject(meta) && typeof meta["name"] === "string" && typeof meta["description"] === "string" &&
    ["patterns", "match", "noMatch", "requires"].every((key) => isTexts(meta[key])) &&
    (meta["allowedTools"] === undefined || isTexts(meta["allowedTools"])) &&
    typeof meta["modelInvocable"] === "boolean" && typeof meta["userInvocable"] === "boolean";
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

// Folders of skills come and go; the newest indexes stay.
function prune(folder: string): void {
  const all = readdirSync(folder).filter((name) => name.endsWith(".json"));
  if (all.length < mostIndexes) return;
  const aged = all.map((name) => ({ name, age: lstatSync(join(folder, name)).mtimeMs }))
    .sort((a, b) => a.age - b.age || compareText(a.name, b.name));
  for (const { name } of aged.slice(0, all.length - mostIndexes + 1)) {
    rmSync(join(folder, name), { force: true });
  }
}

// Who can write here can write what Writ believes of a skill, so nobody but its user may, least of all the workspace.
function isPrivate(folder: string): boolean {
  try {
    return isOwn(folder, "folder") && isOwn(dirname(realOr(folder)), "folder");
  } catch {
    return false;
  }
}

function isOwn(path: string, kind: "file" | "folder"): boolean {
  const facts = lstatSync(path, { throwIfNoEntry: false });
  if (facts === undefined || !(kind === "file" ? facts.isFile() : facts.isDirectory())) return false;
  const user = process.getuid?.();
  return user === undefined || (facts.uid === user && (facts.mode & 0o022) === 0);
}
