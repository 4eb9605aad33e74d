// Instruction files of a trusted workspace (AGENTS.md and the like), from the root down to the current folder.
import { realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { estimateTokens } from "../core/budget.ts";
import { isWithin, relativeTo } from "../core/path.ts";
import { plural } from "../core/plural.ts";
import { beforeCut } from "../core/text.ts";
import { readStart } from "./file_head.ts";

/** Bytes that are read of one file, and of all together. */
const fileCap = 32 * 1024;
const totalCap = 128 * 1024;

export type Instruction = {
  readonly path: string;
  readonly text: string;
  /** Bytes of the file that are not in the text. */
  readonly leftOut: number;
};

/**
 * Texts in reading order, paths relative to the root; what is missing or leads out of the root is left out. Of a long file the
 * first 32 KiB are read, of all files together 128 KiB, and no more bytes than the model's context has tokens; a text that was
 * cut says so.
 */
export function readInstructions(
  root: string,
  cwd: string,
  names: readonly string[],
  contextTokens: number,
): readonly Instruction[] {
  const steps = (relativeTo(cwd, root) ?? "").split("/").filter((s) => s !== "");
  const folders = [root, ...steps.map((_, i) => join(root, ...steps.slice(0, i + 1)))];
  const found: Instruction[] = [];
  const seen = new Set<string>();
  let left = Math.min(totalCap, contextTokens);
  for (const path of folders.flatMap((folder) => names.map((name) => join(folder, name)))) {
    const read = readFile(path, root, seen, Math.min(fileCap, left));
    if (read === undefined || read.text.trim() === "") continue;
    left -= read.bytes;
    found.push({ path: relativeTo(path, root) ?? path, text: read.text.trimEnd(), leftOut: read.leftOut });
  }
  return found;
}

/** Estimated tokens of what was left out of them. */
export function leftOutTokens(instructions: readonly Instruction[]): number {
  return instructions.reduce(
    (sum, { text, leftOut }) => sum + Math.ceil((estimateTokens(text) / Math.max(1, text.length)) * leftOut),
    0,
  );
}

type ReadFile = { readonly text: string; readonly bytes: number; readonly leftOut: number };

function readFile(path: string, root: string, seen: Set<string>, cap: number): ReadFile | undefined {
  try {
    const real = realpathSync(path);
    if (!isWithin(real, root) || seen.has(real)) return undefined;
    seen.add(real);
    const { bytes, more } = readStart(real, cap);
    const text = new TextDecoder().decode(bytes);
    if (!more) return { text, bytes: bytes.length, leftOut: 0 };
    const leftOut = statSync(real).size - bytes.length;
    const note = `[… ${plural(leftOut, "byte")} more of this file were not read …]`;
    // Secrets are looked for afterwards: a half of one would no longer be known as one.
    return { text: `${beforeCut(text)}\n${note}`, bytes: bytes.length, leftOut };
  } catch {
    return undefined;
  }
}
