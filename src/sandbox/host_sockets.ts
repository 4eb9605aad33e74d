// Sockets by a path at which somebody on this machine listens now: a namespace of networks does not keep them apart.
import { lstatSync, readFileSync, realpathSync } from "node:fs";
import { isAbsolute, resolve } from "node:path";
import { isWithin } from "../core/path.ts";

/** Real paths of those that lie in these folders. One that was bound by a relative path is looked for in each of them. */
export function hostSockets(folders: readonly string[]): readonly string[] {
  const found = new Set<string>();
  for (const name of boundNames()) {
    for (const path of isAbsolute(name) ? [name] : folders.map((folder) => resolve(folder, name))) {
      const real = socketAt(path);
      if (real !== undefined && folders.some((folder) => isWithin(real, folder))) found.add(real);
    }
  }
  return [...found];
}

// Names that begin with `@` have no path.
function boundNames(): ReadonlySet<string> {
  try {
    const lines = readFileSync("/proc/net/unix", "utf8").split("\n").slice(1);
    const names = lines.map((line) => /^(?:\S+\s+){7}(.+)$/.exec(line)?.[1] ?? "");
    return new Set(names.filter((name) => name !== "" && !name.startsWith("@")));
  } catch {
    return new Set();
  }
}

function socketAt(path: string): string | undefined {
  try {
    const real = realpathSync(path);
    return lstatSync(real).isSocket() ? real : undefined;
  } catch {
    return undefined;
  }
}
