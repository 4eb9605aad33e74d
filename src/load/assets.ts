// Where the folders are that ship with Writ: beside the sources, or inside the compiled binary.
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Whether this is the executable: inside it every module has the same address, and embedded folders stand next to it. */
export function isCompiled(): boolean {
  const runtime = (globalThis as { readonly Bun?: { readonly isStandaloneExecutable?: boolean } }).Bun;
  return runtime?.isStandaloneExecutable === true;
}

/**
 * Path of an embedded folder, such as `skills`, that node:fs can list, stat and read whole. Throws when it is missing or
 * empty: a folder that was not embedded reads as empty in some versions of the runtime.
 */
export function assetFolder(name: string): string {
  const folder = fileURLToPath(new URL(isCompiled() ? `./${name}` : `../../${name}`, import.meta.url));
  if (readdirSync(folder).length === 0) {
    throw new Error(`the folder \`${name}\` that ships with writ is empty: ${folder}`);
  }
  return folder;
}

/** Whether a path leads into the compiled binary, where files have no descriptor and no real path. */
export function isEmbedded(path: string): boolean {
  return /^(?:\/\$bunfs\/|[A-Z]:[\\/]~BUN[\\/])/.test(path);
}
