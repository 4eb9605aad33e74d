// Where the program that a command word starts really lies.
import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import { isWithin } from "../core/path.ts";

/**
 * Whether the program lies, or is reached by a path that lies, in one of the folders (real paths) that commands may write to. A bare name is looked up
 * as a shell would on `path`; a word that starts nothing there is a builtin, or fails when it runs. A word that cannot be
 * followed counts as writable.
 */
export function isWritableProgram(
  word: string,
  at: { readonly cwd: string; readonly path: string; readonly writable: readonly string[] },
): boolean {
  const inside = (place: string) => at.writable.some((folder) => isWithin(place, folder));
  const file = word.includes("/") ? resolve(at.cwd, word) : onPath(word, at.path);
  if (file === undefined) return false;
  if (inside(file)) return true;
  try {
    return inside(realpathSync(file));
  } catch {
    return true;
  }
}

function onPath(word: string, path: string): string | undefined {
  if (word === "") return undefined;
  return path.split(delimiter).filter(isAbsolute).map((folder) => join(folder, word)).find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
