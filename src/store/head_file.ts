// The head of a log: its last event at the end of a turn, kept beside it in `head.json`. Whoever cuts the log at the border of
// an event leaves a head that names more; whoever rewrites it needs the key, where there is one.
import { createHmac, timingSafeEqual } from "node:crypto";
import { closeSync, openSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { draftBeside, writeAll } from "../disk/whole_file.ts";

export type Head = {
  readonly session: string;
  /** Of the newest claim. */
  readonly epoch: number;
  readonly seq: number;
  readonly hash: string;
  /** Bytes of the log up to there. */
  readonly size: number;
  /** With a key: HMAC-SHA256 over session, seq and hash. */
  readonly mac?: string;
};

/** Signs what a log had come to. The hash stands for everything before it. */
export type Sign = (
  head: { readonly session: string; readonly seq: number; readonly hash: string },
) => string;

export function signer(key: string): Sign {
  return ({ session, seq, hash }) =>
    createHmac("sha256", key).update(`writ-head 1\n${session}\n${seq}\n${hash}\n`).digest("hex");
}

export function isSigned(sign: Sign, head: Parameters<Sign>[0] & { readonly mac?: string }): boolean {
  const expected = new TextEncoder().encode(sign(head));
  const found = new TextEncoder().encode(head.mac ?? "");
  return expected.length === found.length && timingSafeEqual(expected, found);
}

/** The head in a session's folder; undefined when there is none or it cannot be read as one. */
export function readHead(folder: string): Head | undefined {
  try {
    const head: unknown = JSON.parse(readFileSync(join(folder, "head.json"), "utf8"));
    return isHead(head) ? head : undefined;
  } catch {
    return undefined;
  }
}

function isHead(value: unknown): value is Head {
  if (typeof value !== "object" || value === null) return false;
  const head = value as { readonly [name: string]: unknown };
  return typeof head["session"] === "string" && typeof head["hash"] === "string" &&
    ["epoch", "seq", "size"].every((name) => Number.isSafeInteger(head[name])) &&
    (head["mac"] === undefined || typeof head["mac"] === "string");
}

/**
 * By rename, so that there is always a whole one. Not synced: a head that power loss takes is an older one, which holds as
 * well. Throws the error of node:fs.
 */
export function writeHead(folder: string, head: Head): void {
  const path = join(folder, "head.json");
  const draft = draftBeside(path);
  try {
    const file = openSync(draft, "wx", 0o600);
    try {
      writeAll(file, new TextEncoder().encode(`${JSON.stringify(head)}\n`));
    } finally {
      closeSync(file);
    }
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}
