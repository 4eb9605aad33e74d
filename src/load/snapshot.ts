// Private copies of pinned skills: what is rendered, read and run is what was hashed, whatever becomes of the folder.
import { chmodSync, lstatSync, mkdirSync, readdirSync, renameSync, rmSync, utimesSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { dirname, join } from "node:path";
import process from "node:process";
import { isEmbedded } from "./assets.ts";
import { type HashedFile, hashFolder } from "./folder_hash.ts";
import { realOr } from "./locate.ts";
import { writeNew } from "../disk/whole_file.ts";
import { codeOf, messageOf } from "../core/thrown.ts";

/** A skill's real folder and the hash that its pin wants. */
export type Pinned = { readonly folder: string; readonly pin: string };
export type Snapshot =
  | { readonly ok: true; readonly folder: string }
  | {
    readonly ok: false;
    readonly code: "skill_changed" | "snapshot_failed";
    /** Names both hashes where the folder has another one now. */
    readonly message: string;
  };

/** Where the snapshot of a pin lies below the state folder; nothing may be there yet. */
export function snapshotFolder(state: string, pin: string): string {
  return join(realOr(state), "pinned", pin.replace(/^sha256:/, ""));
}

/**
 * The verified snapshot of a pinned skill, made if it is not there or not what it was. To `load` a skill, its own
 * folder must still have the hash; to `use` one that is loaded, that matters only when the snapshot has to be made anew.
 */
export function openSnapshot(state: string, skill: Pinned, purpose: "load" | "use"): Snapshot {
  try {
    // Nobody can change what is inside the executable.
    if (isEmbedded(skill.folder)) return { ok: true, folder: skill.folder };
    const folder = snapshotFolder(state, skill.pin);
    const live = purpose === "load" ? hashFolder(skill.folder) : undefined;
    if (live !== undefined && (!live.ok || live.hash !== skill.pin)) return changed(skill, live);
    if (isSound(folder, skill.pin)) {
      touch(folder);
      return { ok: true, folder };
    }
    const now = live ?? hashFolder(skill.folder);
    if (!now.ok || now.hash !== skill.pin) return changed(skill, now);
    makeSnapshot(folder, now.files);
    if (isSound(folder, skill.pin)) return { ok: true, folder };
    return failure(`\`${folder}\` does not hold what was written to it`);
  } catch (error) {
    return failure(messageOf(error));
  }
}

function changed(skill: Pinned, now: ReturnType<typeof hashFolder>): Snapshot {
  const found = now.ok ? `has the hash \`${now.hash}\`` : now.message;
  return {
    ok: false,
    code: "skill_changed",
    message: `the skill's folder \`${skill.folder}\` ${found}, the policy pins \`${skill.pin}\`: ` +
      "look at what changed, then pin it again",
  };
}

function failure(why: string): Snapshot {
  return { ok: false, code: "snapshot_failed", message: `no private copy of the pinned skill: ${why}` };
}

// Ours alone, and with the hash that its name says.
function isSound(folder: string, pin: string): boolean {
  const facts = lstatSync(folder, { throwIfNoEntry: false });
  if (facts === undefined || !facts.isDirectory() || !isPrivate(facts)) return false;
  const hashed = hashFolder(folder);
  return hashed.ok && hashed.hash === pin;
}

function isPrivate({ mode, uid }: { readonly mode: number; readonly uid: number }): boolean {
  const user = process.getuid?.();
  return user === undefined || (uid === user && (mode & 0o077) === 0);
}

// Written beside its place and moved there whole, so that nobody ever sees half of it.
function makeSnapshot(folder: string, files: readonly HashedFile[]): void {
  const base = dirname(folder);
  mkdirSync(base, { recursive: true, mode: 0o700 });
  chmodSync(base, 0o700);
  clean(base);
  const draft = join(base, `.${randomUUID()}.tmp`);
  try {
    mkdirSync(draft, { mode: 0o700 });
    for (const { path, executable, bytes } of files) {
      mkdirSync(join(draft, dirname(path)), { recursive: true, mode: 0o700 });
      writeNew(join(draft, path), bytes, executable ? 0o500 : 0o400);
    }
    moveInto(draft, folder);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

function moveInto(draft: string, folder: string): void {
  const old = join(dirname(folder), `.${randomUUID()}.tmp`);
  try {
    renameSync(folder, old);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
  }
  try {
    renameSync(draft, folder);
  } catch (error) {
    // Another process was first; what it made is verified like ours.
    if (!["EEXIST", "ENOTEMPTY", "EPERM"].includes(codeOf(error) ?? "")) throw error;
  } finally {
    rmSync(old, { recursive: true, force: true });
  }
}

const day = 24 * 60 * 60 * 1000;

// Copies that nothing has used for a month, and what a crash left of one.
function clean(base: string): void {
  for (const name of readdirSync(base)) {
    const path = join(base, name);
    const age = Date.now() - (lstatSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (age > (name.startsWith(".") ? day : 30 * day)) rmSync(path, { recursive: true, force: true });
  }
}

function touch(folder: string): void {
  try {
    const now = new Date();
    utimesSync(folder, now, now);
  } catch {
    // Only how long it is kept depends on it.
  }
}
