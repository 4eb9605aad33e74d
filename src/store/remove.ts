// Removing a session that nobody has open.
import { rmSync } from "node:fs";
import { dirname } from "node:path";
import { cannot, logPath } from "./session_files.ts";
import { type LockOptions, openLocked } from "./session_lock.ts";

/** Throws LogFailure: `session_busy` for one that is open, and then nothing was removed. */
export function removeSession(options: LockOptions, dir: string, id: string): void {
  const path = logPath(dir, id);
  const { release } = openLocked(options, id, path);
  try {
    rmSync(dirname(path), { recursive: true, force: true });
  } catch (error) {
    throw cannot("remove", dirname(path), error);
  } finally {
    release();
  }
}
