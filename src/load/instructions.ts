// Instruction files of a trusted workspace (AGENTS.md and the like), from the root down to the current folder.
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { isWithin, relativeTo } from "../core/path.ts";
import { readStart } from "./file_head.ts";

/** Bytes that are read of one file, and of all together. */
const fileCap = 32 * 1024;
const totalCap = 128 * 1024;

export type Instruction = { readonly path: string; readonly text: string };

/** Texts in reading order, paths relative to the root; what is missing or leads out of the root is left out. */
export function readInstructions(
  root: string,
  cwd: string,
  names: readonly string[],
): readonly Instruction[] {
  const steps = (relativeTo(cwd, root) ?? "").split("/").filter((s) => s !== "");
  const folders = [root, ...steps.map((_, i) => join(root, ...steps.slice(0, i + 1)))];
  const found: Instruction[] = [];
  const seen = new Set<string>();
  let left = totalCap;
  for (const path of folders.flatMap((folder) => names.map((name) => join(folder, name)))) {
    const text = readFile(path, root, seen, Math.min(fileCap, left));
    if (text === undefined || text.trim() === "") continue;
    left -= text.length;
    found.push({ path: relativeTo(path, root) ?? path, text: text.trimEnd() });
  }
  return found;
}

function readFile(path: string, root: string, seen: Set<string>, cap: number): string | undefined {
  try {
    const real = realpathSync(path);
    if (!isWithin(real, root) || seen.has(real) || cap <= 0) return undefined;
    seen.add(real);
    const { bytes, more } = readStart(real, cap);
    const text = new TextDecoder().decode(bytes);
    return more ? `${text}\n[… the rest of this file was not read …]` : text;
  } catch {
    return undefined;
  }
}
