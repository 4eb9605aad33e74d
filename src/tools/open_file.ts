// Files are opened by the path that was judged: never through a link at its end, and looked at again once open.
import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readlinkSync,
  readSync,
  realpathSync,
} from "node:fs";
import { basename, dirname } from "node:path";
import { readdirSync } from "node:fs";
import type { Place, ToolOutcome } from "../agent/ports.ts";
import { nearest } from "../core/problem.ts";
import { codeOf, messageOf } from "../core/thrown.ts";
import { pathChanged } from "./judged_path.ts";
import { failed, showPath } from "./tool_outcome.ts";

export type OpenFile = {
  readonly ok: true;
  readonly fd: number;
  readonly size: number;
  readonly stat: BigIntStats;
};
export type NotOpened = ToolOutcome & { readonly ok: false };

/**
 * Opens a regular file for reading; the caller closes `fd`. Waits for nobody (a FIFO is refused) and notices when the
 * path led elsewhere at the moment of opening: `path_changed`.
 */
export function openFile(path: string, place: Pick<Place, "root">): OpenFile | NotOpened {
  const shown = showPath(path, place);
  try {
    const refused = kindRefusal(lstatSync(path, { bigint: true }), path, shown);
    if (refused !== undefined) return refused;
    const fd = openSync(path, constants.O_RDONLY | noFollow);
    const stat = fstatSync(fd, { bigint: true });
    if (stat.isFile() && isWhereExpected(fd, path)) return { ok: true, fd, size: Number(stat.size), stat };
    closeSync(fd);
    return pathChanged(shown);
  } catch (error) {
    return openFailure(error, path, shown);
  }
}

// Neither follows a link at the end of the path nor waits for the other end of a FIFO.
const noFollow = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/** Whether an open file is the one that `path` names, no link followed. */
export function isWhereExpected(fd: number, path: string): boolean {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`) === path;
  } catch {
    // No /proc here: the same file must be there twice, with the real path looked at in between.
    const opened = fstatSync(fd, { bigint: true });
    const same = () => {
      const now = lstatSync(path, { bigint: true });
      return now.dev === opened.dev && now.ino === opened.ino;
    };
    return same() && realpathSync.native(path) === path && same();
  }
}

/** All bytes of an open file, or undefined when there are more than `cap`. */
export function readAll(fd: number, cap: number): Uint8Array<ArrayBuffer> | undefined {
  const size = Number(fstatSync(fd).size);
  if (size > cap) return undefined;
  let buffer = new Uint8Array(size + 1);
  let length = 0;
  for (;;) {
    if (length === buffer.length) {
      if (length > cap) return undefined;
      const larger = new Uint8Array(2 * buffer.length);
      larger.set(buffer);
      buffer = larger;
    }
    const got = readSync(fd, buffer, length, buffer.length - length, length);
    if (got === 0) return buffer.subarray(0, length);
    length += got;
  }
}

function kindRefusal(stat: BigIntStats, path: string, shown: string): NotOpened | undefined {
  if (stat.isFile()) return undefined;
  if (stat.isSymbolicLink()) return pathChanged(path);
  if (stat.isDirectory()) {
    return failed("is_folder", `\`${shown}\` is a folder, expected a file: use list_files`);
  }
  const kind = stat.isFIFO() ? "a FIFO" : stat.isSocket() ? "a socket" : "a device";
  return failed("not_regular", `\`${shown}\` is ${kind}, expected a regular file`);
}

function openFailure(error: unknown, path: string, shown: string): NotOpened {
  const code = codeOf(error) ?? "";
  if (code === "ELOOP") return pathChanged(shown);
  if (code === "ENOENT" || code === "ENOTDIR") {
    const near = nameNear(path);
    const hint = near === undefined
      ? ""
      : `; did you mean \`${showPath(near, { root: dirname(path) })}\` in the same folder?`;
    return failed("not_found", `\`${shown}\` does not exist${hint}`);
  }
  if (code === "EACCES" || code === "EPERM") {
    return failed("not_readable", `\`${shown}\` may not be read by this user`);
  }
  const message = messageOf(error);
  return failed("read_failed", `\`${shown}\` cannot be read: ${message}`);
}

function nameNear(path: string): string | undefined {
  try {
    const near = nearest(basename(path), readdirSync(dirname(path)));
    return near === undefined ? undefined : `${dirname(path)}/${near}`;
  } catch {
    return undefined;
  }
}
