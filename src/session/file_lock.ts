// flock(2) on an open file, which no runtime offers: it ends with the process, and holds across containers of one machine.
import { randomUUID } from "node:crypto";
import { closeSync, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { openNative } from "../sandbox/native.ts";
import type { FileLock, LockOptions } from "../store/session_lock.ts";

const callNumbers: { readonly [arch: string]: number } = { x64: 73, arm64: 32 };
const exclusiveAtOnce = 2 | 4;

/** Empty where the system cannot be asked: then only processes that see each other are kept apart. */
export async function lockOptions(): Promise<LockOptions> {
  const lock = await openFileLock();
  return lock === undefined ? {} : { lock };
}

/** Undefined where the system cannot be asked. */
export async function openFileLock(): Promise<FileLock | undefined> {
  const call = process.platform === "linux" ? callNumbers[process.arch] : undefined;
  if (call === undefined) return undefined;
  let native: Awaited<ReturnType<typeof openNative>>;
  try {
    native = await openNative();
  } catch {
    return undefined;
  }
  const flock = (file: number) => native.syscall(call, file, exclusiveAtOnce) === 0;
  // A file system that knows no locks says no as if somebody had it: then it does so for a file of nobody's as well.
  return (file, folder) => flock(file) || !onFreshFile(folder, flock);
}

function onFreshFile(folder: string, use: (file: number) => boolean): boolean {
  const path = join(folder, `.${randomUUID()}.tmp`);
  const file = openSync(path, "wx", 0o600);
  try {
    return use(file);
  } finally {
    closeSync(file);
    rmSync(path, { force: true });
  }
}
