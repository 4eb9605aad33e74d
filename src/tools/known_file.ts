// What write_file and edit_file must know of a file before they change it.
import { type BigIntStats, closeSync, lstatSync } from "node:fs";
import { sha256 } from "../disk/sha256.ts";
import { plural } from "../core/plural.ts";
import { placeholderMark } from "../core/redact.ts";
import { codeOf } from "../core/thrown.ts";
import type { ToolContext } from "../agent/ports.ts";
import { type NotOpened, openFile, readAll } from "./open_file.ts";
import { failed, showPath } from "./tool_outcome.ts";

export type KnownFile = {
  readonly ok: true;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly hash: string;
  readonly stat: BigIntStats;
};

/** Larger files are not changed: their old bytes have to be kept, and their new ones shown. */
const largest = 32 * 1024 * 1024;

/** The present bytes of a file; `not_found` and its kin when there is none that could be changed. */
export function knownFile(path: string, at: Pick<ToolContext, "root">): KnownFile | NotOpened {
  const file = openFile(path, at);
  if (!file.ok) return file;
  try {
    const bytes = readAll(file.fd, largest);
    if (bytes === undefined) {
      return failed(
        "too_large",
        `\`${showPath(path, at)}\` is larger than ${plural(largest, "byte")}, too large to be changed`,
      );
    }
    return { ok: true, bytes, hash: sha256(bytes), stat: file.stat };
  } finally {
    closeSync(file.fd);
  }
}

/** Whether nothing at all is at this path, not even a dangling link. A path that cannot be counts as free. */
export function isFree(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) === undefined;
  } catch (error) {
    return ["ENOTDIR", "ENAMETOOLONG"].includes(codeOf(error) ?? "");
  }
}

/** Refuses text that holds what stands in for a secret: writing it would destroy the secret. */
export function redactionError(
  text: string,
): { readonly code: string; readonly message: string } | undefined {
  if (!text.includes(placeholderMark)) return undefined;
  return {
    code: "redacted_content",
    message:
      "the text holds `[redacted:…]`, which stands in for a secret that was hidden: leave that part of the file untouched",
  };
}
