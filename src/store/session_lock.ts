// The lock of a session: by the names of claims, which say who has it, and by a lock of the system on its log, which also
// holds between processes that do not see each other's numbers, such as those of two containers.
import { closeSync, constants, fstatSync, openSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { LogFailure } from "../agent/ports.ts";
import { takeLock } from "./lock.ts";
import { cannot } from "./session_files.ts";

/** The system's lock on an open file, which ends with it, so with the process: whether this process has it now. */
export type FileLock = (file: number, folder: string) => boolean;
/** Without one, the names of claims alone keep processes apart. */
export type LockOptions = { readonly lock?: FileLock };

/** Opens a log that is there, for this process alone; `release` closes it. Throws LogFailure `session_busy` and others. */
export function openLocked(
  options: LockOptions,
  id: string,
  path: string,
): { readonly file: number; readonly release: () => void } {
  const unlock = lockNames(dirname(path), id);
  let file: number | undefined;
  try {
    file = openSync(path, constants.O_RDWR | (constants.O_NOFOLLOW ?? 0));
    lockFile(options, id, file, path);
    const opened = { file, unlock };
    return { file, release: () => letGo(opened) };
  } catch (error) {
    if (file !== undefined) closeSync(file);
    unlock();
    throw error instanceof LogFailure ? error : cannot("open", path, error);
  }
}

export function letGo({ file, unlock }: { readonly file: number; readonly unlock: () => void }): void {
  closeSync(file);
  unlock();
}

/** Takes the names alone, in a folder that is there. */
export function lockNames(folder: string, id: string): () => void {
  let lock: ReturnType<typeof takeLock>;
  try {
    lock = takeLock(join(folder, "lock"));
  } catch (error) {
    throw cannot("lock", folder, error);
  }
  if ("release" in lock) return lock.release;
  throw new LogFailure("session_busy", `session \`${id}\` is open in ${lock.heldBy}; end that first`);
}

/** Takes the system's lock on an open log. */
export function lockFile({ lock }: LockOptions, id: string, file: number, path: string): void {
  // A log that was put in the place of this one, by a repair, is another file.
  const isSame = () => fstatSync(file).ino === statSync(path).ino;
  if (lock === undefined || (lock(file, dirname(path)) && isSame())) return;
  throw new LogFailure(
    "session_busy",
    `session \`${id}\` is open in a process that cannot be seen from here, such as one of another container; end that first`,
  );
}
