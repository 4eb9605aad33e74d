// Where the program that a command word starts really lies.
import { realpathSync } from "node:fs";
import { isWithin } from "../core/path.ts";
import type { Environment } from "../sandbox/environment.ts";
import { findProgram } from "../sandbox/program.ts";

/**
 * Whether the program lies in one of the folders that commands may write to (real paths), or is reached by a path through
 * one. A bare name that starts nothing on PATH is a builtin, or fails when it runs; a path that cannot be followed counts
 * as writable.
 */
export function isWritableProgram(
  word: string,
  at: { readonly cwd: string; readonly env: Environment; readonly writable: readonly string[] },
): boolean {
  const found = findProgram(word, at);
  if (typeof found !== "string") return word.includes("/") || found.code === "no_folder";
  return [found, realpathSync(found)].some((path) => at.writable.some((folder) => isWithin(path, folder)));
}
