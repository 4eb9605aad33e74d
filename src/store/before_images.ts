// What a file held before it was changed, for a later undo: numbered, with the path beside it.
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Goes on counting where an earlier process of the same session stopped. `undefined` bytes: there was no file. */
export function beforeImages(folder: string): (path: string, bytes: Uint8Array | undefined) => Promise<void> {
  let count: number | undefined;
  return async (path, bytes) => {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    count ??= existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".json")).length : 0;
    const name = String(++count).padStart(6, "0");
    if (bytes !== undefined) writeFileSync(join(folder, `${name}.bin`), bytes, { mode: 0o600 });
    writeFileSync(
      join(folder, `${name}.json`),
      `${JSON.stringify({ path, existed: bytes !== undefined })}\n`,
      { mode: 0o600 },
    );
  };
}
