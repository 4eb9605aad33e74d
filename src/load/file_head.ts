// Reading regular files and nothing else: no pipe is waited for, no device opened, no more read than is asked for.
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readFileSync,
  readSync,
  type Stats,
  statSync,
} from "node:fs";
import { isEmbedded } from "./assets.ts";

export class NotRegular extends Error {}

// Most front matter is shorter.
const chunk = 1024;

/**
 * Reads from the start until `enough(text so far)` or the end of the file, at most `maxBytes`. Bytes that are not UTF-8
 * become U+FFFD. `facts` are those of the path, when they are known already. Throws NotRegular for anything but a
 * regular file, and the error of node:fs otherwise.
 */
export function readHead(
  path: string,
  maxBytes: number,
  enough: (text: string) => boolean,
  facts: Stats = statSync(path),
): string {
  if (!facts.isFile()) throw new NotRegular("not a regular file");
  // What an earlier file has left over, when reading it ended within a character.
  decoder.decode();
  if (isEmbedded(path)) return decoder.decode(readFileSync(path).subarray(0, maxBytes), { stream: true });
  const file = openRegular(path);
  try {
    return readUntil(file, maxBytes, enough);
  } finally {
    closeSync(file);
  }
}

function readUntil(file: number, maxBytes: number, enough: (text: string) => boolean): string {
  let text = "";
  for (let total = 0; total < maxBytes;) {
    const count = readSync(file, buffer, 0, Math.min(chunk, maxBytes - total), null);
    if (count === 0) return text + decoder.decode();
    total += count;
    text += decoder.decode(buffer.subarray(0, count), { stream: true });
    if (enough(text)) return text;
  }
  return text;
}

const decoder = new TextDecoder();
const buffer = new Uint8Array(chunk);

export type WholeFile =
  | { readonly ok: true; readonly bytes: Uint8Array }
  | { readonly ok: false; readonly size: number };

/** The whole file, or its true size when that is more than `maxBytes`. Throws as `readHead` does. */
export function readWhole(path: string, maxBytes: number): WholeFile {
  const facts = statSync(path);
  if (!facts.isFile()) throw new NotRegular("not a regular file");
  if (facts.size > maxBytes) return { ok: false, size: facts.size };
  if (isEmbedded(path)) return { ok: true, bytes: readFileSync(path) };
  const file = openRegular(path);
  try {
    const opened = fstatSync(file);
    if (opened.size > maxBytes) return { ok: false, size: opened.size };
    const bytes = readUpTo(file, maxBytes + 1, opened.size);
    return bytes.length > maxBytes ? { ok: false, size: fstatSync(file).size } : { ok: true, bytes };
  } finally {
    closeSync(file);
  }
}

/** The first `maxBytes` of a file and whether there are more. Throws as `readHead` does. */
export function readStart(
  path: string,
  maxBytes: number,
): { readonly bytes: Uint8Array; readonly more: boolean } {
  if (!statSync(path).isFile()) throw new NotRegular("not a regular file");
  const file = openRegular(path);
  try {
    const bytes = readUpTo(file, maxBytes + 1, maxBytes);
    return { bytes: bytes.subarray(0, maxBytes), more: bytes.length > maxBytes };
  } finally {
    closeSync(file);
  }
}

// The file may have been exchanged for a pipe since it was looked at.
function openRegular(path: string): number {
  const file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    if (fstatSync(file).isFile()) return file;
  } catch (error) {
    closeSync(file);
    throw error;
  }
  closeSync(file);
  throw new NotRegular("not a regular file");
}

// A file that grows while it is read ends at the cap, not at the end of the disk.
function readUpTo(file: number, maxBytes: number, expected: number): Uint8Array {
  let bytes = new Uint8Array(Math.min(maxBytes, expected + 1));
  let length = 0;
  while (length < maxBytes) {
    const count = readSync(file, bytes, length, bytes.length - length, null);
    if (count === 0) break;
    length += count;
    if (length === bytes.length && length < maxBytes) {
      const larger = new Uint8Array(Math.min(maxBytes, bytes.length * 2));
      larger.set(bytes);
      bytes = larger;
    }
  }
  return bytes.subarray(0, length);
}
