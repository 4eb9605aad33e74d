// Writing a file in one step: whoever looks sees the old bytes or the new ones, and a link swapped in does not lead away.
import {
  type BigIntStats,
  existsSync,
  fchmodSync,
  fchownSync,
  lstatSync,
  mkdirSync,
  realpathSync,
  unlinkSync,
} from "node:fs";
import { dirname } from "node:path";
import process from "node:process";
import { draftBeside, renameDraft, writeNew } from "../disk/whole_file.ts";
import { codeOf, messageOf } from "../core/thrown.ts";
import type { Place } from "../agent/ports.ts";
import { pathChanged } from "./judged_path.ts";
import { isWhereExpected, type NotOpened } from "./open_file.ts";
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
    const draft = temporary = draftBeside(path);
    const isExpected = (fd: number) => {
      if (!isWhereExpected(fd, draft)) return false;
      if (before !== undefined) keepOwnerAndMode(fd, before);
      return true;
    };
    if (!writeNew(draft, bytes, before === undefined ? 0o666 : 0o600, isExpected)) return pathChanged(shown);
    if (!isAsBefore(path, before)) return changed(shown);
    renameDraft(draft, path);
    temporary = undefined;
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
