// `audit.heads`: a file that gets one line for every turn that ended, for something that ships logs to where nobody here can
// rewrite them. Several processes may append.
import { closeSync, constants, fdatasyncSync, fstatSync, openSync, readFileSync, readSync } from "node:fs";
import { codeOf } from "../core/thrown.ts";
import { writeAll } from "../disk/whole_file.ts";
import { cannot } from "./session_files.ts";

export type AnchorLine = {
  readonly ts: string;
  readonly session: string;
  readonly seq: number;
  readonly hash: string;
  readonly mac?: string;
};

/** Appends one line, on disk when it returns. Throws LogFailure. */
export function appendHead(path: string, line: AnchorLine): void {
  try {
    // A link would lead the lines, and with them who may read them, elsewhere.
    const flags = constants.O_RDWR | constants.O_CREAT | constants.O_APPEND | (constants.O_NOFOLLOW ?? 0);
    const file = openSync(path, flags, 0o600);
    try {
      writeAll(file, new TextEncoder().encode(`${startOfLine(file)}${JSON.stringify(line)}\n`));
      fdatasyncSync(file);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw cannot("write", path, error);
  }
}

// Half a line that a full disk left must not take the next one with it.
function startOfLine(file: number): string {
  const stat = fstatSync(file);
  if (!stat.isFile() || stat.size === 0) return "";
  const last = new Uint8Array(1);
  readSync(file, last, 0, 1, stat.size - 1);
  return last[0] === 0x0a ? "" : "\n";
}

/** The lines by session, in order; what is no such line is left out. None where there is no file. Throws LogFailure. */
export function readHeads(path: string): ReadonlyMap<string, readonly AnchorLine[]> {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return new Map();
    throw cannot("read", path, error);
  }
  const lines = text.split("\n").flatMap(anchorLine);
  return Map.groupBy(lines, (line) => line.session);
}

function anchorLine(text: string): readonly AnchorLine[] {
  try {
    const line = JSON.parse(text);
    const { session, seq, hash } = line;
    return typeof session === "string" && Number.isSafeInteger(seq) && typeof hash === "string" ? [line] : [];
  } catch {
    return [];
  }
}
