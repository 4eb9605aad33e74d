// Which file a program's name stands for.
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import process from "node:process";
import type { Environment } from "./environment.ts";

export type NoProgram = {
  readonly code: "not_found" | "not_executable" | "no_folder";
  readonly message: string;
};

/** Looked up here, so that what runs is found on the child's PATH and not on Writ's own, in every runtime. */
export function findProgram(
  name: string,
  { cwd, env }: { readonly cwd: string; readonly env: Environment },
): string | NoProgram {
  if (!isFolder(cwd)) return { code: "no_folder", message: `no folder \`${cwd}\` to run in` };
  const spelling = process.platform === "win32" && !name.endsWith(".exe") ? `${name}.exe` : name;
  const places = name.includes("/")
    ? [resolve(cwd, name)]
    : searchPath(env["PATH"]).map((folder) => join(folder, spelling));
  const files = name === "" ? [] : places.filter(isFile);
  const found = files.find(isExecutable);
  if (found !== undefined) return found;
  if (files[0] !== undefined) {
    return { code: "not_executable", message: `\`${files[0]}\` may not be executed` };
  }
  const where = name.includes("/") ? "there is no such file" : "it is on no folder of PATH";
  return { code: "not_found", message: `no program \`${name}\`: ${where}` };
}

function searchPath(path: string | undefined): readonly string[] {
  return (path ?? "").split(delimiter).filter(isAbsolute);
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
