// .gitignore files: which paths they leave out. Deeper files win over those above, as in git.
import { closeSync } from "node:fs";
import { dirname } from "node:path";
import ignore, { type Ignore } from "ignore";
import { relativeTo } from "../core/path.ts";
import { openFile, readAll } from "./open_file.ts";

/** One file's rules and the folder that they speak of. */
export type IgnoreRules = { readonly folder: string; readonly rules: Ignore };

const largest = 256 * 1024;
const mostLines = 5000;

/**
 * The rules in force at `folder`, from the root down to it; its own file is not among them. None when the folder is
 * ignored itself: whoever names it wants to see it.
 */
export function rulesAbove(folder: string, root: string): readonly IgnoreRules[] {
  const inner = relativeTo(folder, root);
  if (inner === undefined || inner === "") return [];
  const found: IgnoreRules[] = [];
  const names = inner.split("/");
  let at = root;
  for (const name of names) {
    found.push(...rulesOf(at, root));
    at = at === "/" ? `/${name}` : `${at}/${name}`;
    if (isIgnored(at, true, found)) return [];
  }
  return found;
}

/** The rules that a folder brings itself, empty or one or two entries. */
export function rulesOf(folder: string, root: string): readonly IgnoreRules[] {
  const files = folder === root ? [".git/info/exclude", ".gitignore"] : [".gitignore"];
  return files.flatMap((file) => {
    const lines = readLines(`${folder}/${file}`);
    return lines.length === 0 ? [] : [{ folder, rules: ignore().add(lines) }];
  });
}

/** Whether the path is left out; `above` must be ordered from the root down. */
export function isIgnored(path: string, folder: boolean, above: readonly IgnoreRules[]): boolean {
  for (const { folder: base, rules } of above.toReversed()) {
    const relative = relativeTo(path, base) ?? path;
    const result = rules.test(folder ? `${relative}/` : relative);
    if (result.ignored) return true;
    if (result.unignored) return false;
  }
  return false;
}

function readLines(path: string): readonly string[] {
  const file = openFile(path, { root: dirname(path) });
  if (!file.ok) return [];
  try {
    const bytes = readAll(file.fd, largest);
    if (bytes === undefined) return [];
    return new TextDecoder().decode(bytes).split(/\r?\n/).filter(isAffordable).slice(0, mostLines);
  } finally {
    closeSync(file.fd);
  }
}

// The library matches with backtracking: a line with many stars, from a hostile checkout, could hold us for ever. A line
// that is passed over leaves more files visible, never fewer.
function isAffordable(line: string): boolean {
  if (line === "" || line.startsWith("#") || line.length > 1000) return false;
  const levels = line.split("/");
  return levels.filter((level) => level === "**").length <= 3 &&
    levels.every((level) => level === "**" || level.split("*").length <= 4);
}
