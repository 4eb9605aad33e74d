// Files are written whole: whoever looks sees the old bytes or the new ones, also after the machine has lost power.
import { randomUUID } from "node:crypto";
import { closeSync, constants, fsyncSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";

/** A name beside `path` that nobody else writes to. */
export function draftBeside(path: string): string {
  return join(dirname(path), `.${randomUUID()}.tmp`);
}

/** Writes every byte, however few the system takes at a time: from `position` on, or where the file stands. Throws the error of node:fs. */
export function writeAll(fd: number, bytes: Uint8Array, position?: number): void {
  for (let done = 0; done < bytes.length;) {
    const at = position === undefined ? undefined : position + done;
    done += writeSync(fd, bytes, done, bytes.length - done, at);
  }
}

/**
 * Makes a file that was not there, follows no link, and has its bytes on disk when it returns. `opened` is called before
 * the first byte; when it says false the file stays empty and so does the answer. Throws the error of node:fs.
 */
export function writeNew(
  path: string,
  bytes: Uint8Array,
  mode: number,
  opened: (fd: number) => boolean = () => true,
): boolean {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0);
  const fd = openSync(path, flags, mode);
  try {
    if (!opened(fd)) return false;
    writeAll(fd, bytes);
    fsyncSync(fd);
    return true;
  } finally {
    closeSync(fd);
  }
}

/** Gives a draft in the same folder its name, for good where the file system can promise that. */
export function renameDraft(draft: string, path: string): void {
  renameSync(draft, path);
  try {
    syncFolder(dirname(path));
  } catch {
    // Not every file system can, and the write itself is done.
  }
}

/** Puts these bytes at `path`, for this user alone; its folder must be there. Throws the error of node:fs; then nothing is changed. */
export function writeWhole(
  path: string,
  bytes: string | Uint8Array,
  draft: string = draftBeside(path),
): void {
  try {
    writeNew(draft, typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytes, 0o600);
    renameDraft(draft, path);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Makes names that were given in a folder durable. Throws the error of node:fs. */
export function syncFolder(folder: string): void {
  const fd = openSync(folder, constants.O_RDONLY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
