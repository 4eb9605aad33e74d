// What is below a folder that a command reads as a whole, as far as it is looked at.
import type { Below } from "../core/facts.ts";

export type FolderPort = {
  /** Names in a folder; may throw where there is none. */
  readonly list: (folder: string) => readonly string[];
  /** Whether it is a folder, links not followed. Absent: what can be listed is one. */
  readonly isFolder?: (path: string) => boolean;
};

const mostEntries = 5_000;
const deepest = 40;
// Folders of many files that nobody writes rules about; they are looked at last.
const heavy = /^(node_modules|\.git|target|dist|build|vendor|\.venv|venv|__pycache__|\.cache)$/;

/**
 * Paths below the folder, those near to it first; undefined when it is none. `visible`: without names that start with a dot
 * and without folders of packages, as searching programs leave them out.
 */
export function belowFolder(folder: string, deep: "all" | "visible", at: FolderPort): Below | undefined {
  const first = namesIn(folder, at);
  if (first === undefined) return undefined;
  const paths: string[] = [];
  const light = [{ folder, names: first, depth: 0 }];
  const late: string[] = [];
  for (let next = light.shift(); next !== undefined; next = light.shift() ?? taken(late, at)) {
    for (const name of next.names) {
      if (deep === "visible" && (name.startsWith(".") || name === "node_modules")) continue;
      if (paths.length >= mostEntries) return { paths, cut: true };
      const path = `${next.folder === "/" ? "" : next.folder}/${name}`;
      paths.push(path);
      if (at.isFolder !== undefined && !at.isFolder(path)) continue;
      if (next.depth >= deepest) return { paths, cut: true };
      if (heavy.test(name)) late.push(path);
      else {
        const names = namesIn(path, at);
        if (names !== undefined) light.push({ folder: path, names, depth: next.depth + 1 });
      }
    }
  }
  return { paths, cut: false };
}

function taken(late: string[], at: FolderPort) {
  const folder = late.shift();
  return folder === undefined ? undefined : { folder, names: namesIn(folder, at) ?? [], depth: 1 };
}

function namesIn(folder: string, at: FolderPort): readonly string[] | undefined {
  try {
    return at.list(folder);
  } catch {
    return undefined;
  }
}
