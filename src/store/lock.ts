// One process per session: a file whose name says who holds it. A holder that no longer lives holds nothing.
// The name is the whole claim. It is there at once, it is nobody else's, and that of a dead process can be removed by
// anybody; a file that is created first and signed then, or taken over, has a moment in which two may hold it.
import { closeSync, openSync, readdirSync, readFileSync, unlinkSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import process from "node:process";
import { codeOf } from "../core/thrown.ts";

/** How often others are looked for before they are taken for holders, and how long a pause may be. */
const rounds = 25;
const pauseMs = 4;

/**
 * Takes the lock or says who has it, within about a tenth of a second. The claims lie beside each other as
 * `<path>.<process>-<start>`. `release` may be called more than once.
 */
export function takeLock(path: string): { readonly release: () => void } | { readonly heldBy: string } {
  const own = `${path}.${nameOf(process.pid)}`;
  if (!claim(own)) return { heldBy: `process ${process.pid}` };
  let other: string | undefined;
  for (let round = 0; round < rounds; round++) {
    const others = otherClaims(path, own);
    if (others.length === 0) return { release: () => remove(own) };
    // Of two that come at the same time one must step back, and the same one on both sides.
    other = others.find((name) => name < own) ?? others[0];
    if (others.some((name) => name < own)) {
      remove(own);
      pause();
      claim(own);
    } else pause();
  }
  remove(own);
  return { heldBy: `process ${processOf(other ?? own)}` };
}

function claim(file: string): boolean {
  try {
    closeSync(openSync(file, "wx", 0o600));
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

/** Claims of other processes that live; those of dead ones are removed. */
function otherClaims(path: string, own: string): readonly string[] {
  const folder = dirname(path);
  const files = readdirSync(folder).filter((name) => name.startsWith(`${basename(path)}.`)).map((name) =>
    join(folder, name)
  );
  return files.filter((file) => {
    if (file === own) return false;
    if (isAlive(file, path)) return true;
    remove(file);
    return false;
  });
}

function isAlive(file: string, path: string): boolean {
  const pid = processOf(file);
  return Number.isInteger(pid) && pid > 0 && `${path}.${nameOf(pid)}` === file && runs(pid);
}

function processOf(file: string): number {
  return Number(/\.(\d+)-\d*$/.exec(file)?.[1]);
}

// A process id alone may be reused; with its start time it may not. One that is dead but not collected does not count.
function nameOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state, ...rest] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return state === "Z" || state === "X" ? "dead" : `${pid}-${rest[18]}`;
  } catch {
    return `${pid}-`;
  }
}

function runs(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === "EPERM";
  }
}

function remove(file: string): void {
  try {
    unlinkSync(file);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
  }
}

const still = new Int32Array(new SharedArrayBuffer(4));

function pause(): void {
  Atomics.wait(still, 0, 0, 1 + Math.random() * pauseMs);
}
