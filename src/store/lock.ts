// One process per session: a lock file that names its holder. A holder that no longer lives holds nothing.
import { closeSync, openSync, readFileSync, unlinkSync, writeSync } from "node:fs";
import process from "node:process";
import { codeOf } from "../core/thrown.ts";

/** Takes the lock at once or says who has it. `release` may be called more than once. */
export function takeLock(path: string): { readonly release: () => void } | { readonly heldBy: string } {
  for (let attempt = 0; attempt < 3; attempt++) {
    const file = createNew(path);
    if (file !== undefined) {
      sign(file, path);
      return { release: () => releaseLock(path) };
    }
    const holder = readHolder(path);
    if (holder === undefined) continue;
    const pid = Number(holder.split(" ")[0]);
    if (Number.isInteger(pid) && holderId(pid) === holder && isAlive(pid)) {
      return { heldBy: `process ${pid}` };
    }
    removeIfStill(path, holder);
  }
  return { heldBy: "another process" };
}

function createNew(path: string): number | undefined {
  try {
    return openSync(path, "wx", 0o600);
  } catch (error) {
    if (codeOf(error) === "EEXIST") return undefined;
    throw error;
  }
}

function sign(file: number, path: string): void {
  try {
    writeSync(file, holderId(process.pid));
  } catch (error) {
    releaseLock(path);
    throw error;
  } finally {
    closeSync(file);
  }
}

// A process id alone may be reused; with its start time it may not.
function holderId(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const started = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
    return `${pid} ${started}`;
  } catch {
    return `${pid} -`;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === "EPERM";
  }
}

function readHolder(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function removeIfStill(path: string, holder: string): void {
  if (readHolder(path) === holder) releaseLock(path);
}

function releaseLock(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
  }
}
