// How Writ starts itself again: the executable, or a runtime with its first file.
import process from "node:process";
import { fileURLToPath } from "node:url";

/** Program and first arguments, up to the command. */
export function selfCommand(): readonly [string, ...string[]] {
  const main = new URL("../main.ts", import.meta.url);
  if (/^file:\/\/\/(?:\$bunfs|%24bunfs|[A-Z]:\/~BUN)\//.test(main.href)) return [process.execPath];
  const file = fileURLToPath(main);
  if (process.versions["bun"] !== undefined) return [process.execPath, file];
  return [process.execPath, "run", "-A", "--no-check", "--quiet", file];
}
