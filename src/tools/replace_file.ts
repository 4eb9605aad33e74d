// Writing a file in one step: whoever looks sees the old bytes or the new ones, and a link swapped in does not lead away.
import { randomUUID } from "node:crypto";
import {
  type BigIntStats,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  realpathSync,
  renameSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { codeOf, messageOf } from "../core/thrown.ts";
import type { Place } from "../agent/ports.ts";
import { pathChanged } from "./judged_path.ts";
import { isWhereExpected, noFollow, type NotOpened } from "./open_file.ts";
import { failed, showPath } from "./tool_outcome.ts";

/**
 * Puts `bytes` at `path`, folders above it included, keeping the mode of what was there. `before` is what the caller
 * read, undefined for a new file: if something else is there now, nothing is changed. Undefined when it is written.
 */
export function replaceFile(
  path: string,
  bytes: Uint8Array,
  before: BigIntStats | undefined,
  place: Pick<Place, "root">,
): NotOpened | undefined {
  const shown = showPath(path, place);
  const folder = dirname(path);
  let temporary: string | undefined;
  try {
    if (realpathSync(nearestFolder(folder)) !== nearestFolder(folder)) return pathChanged(shown);
    mkdirSync(folder, { recursive: true });
    temporary = join(folder, `.${randomUUID()}.tmp`);
    if (!writeNew(temporary, bytes, before)) return pathChanged(shown);
    if (!isAsBefore(path, before)) return changed(shown);
    renameSync(temporary, path);
    temporary = undefined;
    syncFolder(folder);
    return undefined;
  } catch (error) {
    return writeFailure(error, shown);
  } finally {
    if (temporary !== undefined) remove(temporary);
  }
}

export function changed(shown: string): NotOpened {
  return failed(
    "changed_since_read",
    `\`${shown}\` was changed by something else since it was read; nothing was written: read it again`,
  );
}

function nearestFolder(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : nearestFolder(dirname(folder));
}

// Created, never reused; on disk before it takes the place of the old file.
function writeNew(path: string, bytes: Uint8Array, before: BigIntStats | undefined): boolean {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | noFollow;
  const fd = openSync(path, flags, before === undefined ? 0o666 : 0o600);
  try {
    if (!isWhereExpected(fd, path)) return false;
    for (let offset = 0; offset < bytes.length;) {
      offset += writeSync(fd, bytes, offset, bytes.length - offset);
    }
    if (before !== undefined) keepOwnerAndMode(fd, before);
    fsyncSync(fd);
    return true;
  } finally {
    closeSync(fd);
  }
}

function keepOwnerAndMode(fd: number, before: BigIntStats): void {
  if (process.platform === "win32") return;
  if (process.getuid?.() === 0) fchownSync(fd, Number(before.uid), Number(before.gid));
  fchmodSync(fd, Number(before.mode) & 0o777);
}

function isAsBefore(path: string, before: BigIntStats | undefined): boolean {
  const now = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  if (now === undefined || before === undefined) return now === undefined && before === undefined;
  return now.isFile() && now.dev === before.dev && now.ino === before.ino && now.size === before.size &&
    now.mtimeNs === before.mtimeNs;
}

// Makes the new name durable; not every file system can, and the write itself is done.
function syncFolder(folder: string): void {
  try {
    const fd = openSync(folder, constants.O_RDONLY);
    try {
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  } catch {
    return;
  }
}

function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    return;
  }
}

const reasons: { readonly [code: string]: string } = {
  EACCES: "this user may not write there",
  EPERM: "this user may not write there",
  EROFS: "the file system is read-only",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  ENOTDIR: "a part of the path is a file, expected a folder",
  EEXIST: "a part of the path is a file, expected a folder",
  ENAMETOOLONG: "a name in it is too long",
};

function writeFailure(error: unknown, shown: string): NotOpened {
  const code = codeOf(error) ?? "";
  const reason = reasons[code] ?? messageOf(error);
  return failed("write_failed", `\`${shown}\` cannot be written: ${reason}; nothing was changed`);
}
