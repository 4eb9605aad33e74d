// The hash of a skill's whole folder: what a pin in a policy holds.
import { lstatSync, readdirSync } from "node:fs";
import { Buffer } from "node:buffer";
import { join } from "node:path";
import { isEmbedded } from "./assets.ts";
import { readWhole } from "./file_head.ts";
import { sha256 } from "../disk/sha256.ts";
import { escapeLine } from "../core/text.ts";
import { codeOf, messageOf } from "../core/thrown.ts";

export type HashedFile = {
  /** From the folder, with `/`. */
  readonly path: string;
  /** Its owner may execute it. */
  readonly executable: boolean;
  readonly bytes: Uint8Array;
  /** Of the bytes, hex. */
  readonly sha256: string;
};
export type FolderHash =
  | {
    readonly ok: true;
    /** `sha256:` and 64 hex digits. */
    readonly hash: string;
    /** The bytes that were hashed, in the order of the paths' bytes. */
    readonly files: readonly HashedFile[];
  }
  | { readonly ok: false; readonly message: string };

const mostFiles = 5000;
const mostBytes = 64 * 1024 * 1024;
const mostLevels = 32;

class Unhashable extends Error {}

/**
 * SHA-256 over one line a file: the hex SHA-256 of its bytes, `x` or `-` for whether its owner may execute it, and its
 * path, with blanks between; sorted by the bytes of the path. Every file counts, hidden ones too; empty folders do not.
 * A folder with links or anything else that is no regular file, with a line end in a name, or with too much in it has
 * no hash.
 */
export function hashFolder(folder: string): FolderHash {
  try {
    const files = [...filesBelow(folder, "", 0, { files: 0, bytes: 0 })]
      .sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)));
    const lines = files.map((f) => `${f.sha256} ${f.executable ? "x" : "-"} ${f.path}\n`);
    return { ok: true, hash: `sha256:${sha256(lines.join(""))}`, files };
  } catch (error) {
    const why = error instanceof Unhashable ? error.message : codeOf(error) ?? messageOf(error);
    return { ok: false, message: `\`${folder}\` cannot be hashed: ${why}` };
  }
}

function* filesBelow(
  folder: string,
  inner: string,
  level: number,
  seen: { files: number; bytes: number },
): Generator<HashedFile> {
  if (level > mostLevels) throw new Unhashable(`it is deeper than ${mostLevels} folders`);
  for (const name of readdirSync(join(folder, inner))) {
    const path = inner === "" ? name : `${inner}/${name}`;
    // deno-lint-ignore no-control-regex
    if (/[\u0000-\u001f\ufffd]/.test(name)) {
      throw new Unhashable(`the name \`${escapeLine(path)}\` holds a control character or is not UTF-8`);
    }
    const facts = lstatSync(join(folder, path));
    if (facts.isDirectory()) {
      yield* filesBelow(folder, path, level + 1, seen);
      continue;
    }
    if (!facts.isFile()) {
      const what = facts.isSymbolicLink() ? "a link" : "no regular file";
      throw new Unhashable(`\`${escapeLine(path)}\` is ${what}; a pinned folder holds files only`);
    }
    const whole = readWhole(join(folder, path), mostBytes - seen.bytes);
    seen.files++;
    if (!whole.ok || seen.files > mostFiles) {
      throw new Unhashable(`it holds more than ${mostFiles} files or ${mostBytes} bytes`);
    }
    seen.bytes += whole.bytes.length;
    // Inside the executable no file has modes.
    const executable = !isEmbedded(folder) && (facts.mode & 0o100) !== 0;
    yield { path, executable, bytes: whole.bytes, sha256: sha256(whole.bytes) };
  }
}
