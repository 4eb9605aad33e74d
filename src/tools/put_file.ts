// What every tool that changes a file does: how the call is judged, and how the bytes get there.
import type { Inspection, Place, ToolContext } from "../agent/ports.ts";
import type { Args } from "../core/message.ts";
import { sha256 } from "../disk/sha256.ts";
import { textArg } from "./arguments.ts";
import { inspectPath } from "./judged_path.ts";
import { type KnownFile, redactionError } from "./known_file.ts";
import type { NotOpened } from "./open_file.ts";
import { replaceFile } from "./replace_file.ts";

/** A call that writes the argument named `content` to the argument `path`. */
export function inspectWrite(tool: string, args: Args, place: Place, content: string): Inspection {
  const inspection = inspectPath(tool, "write", args, textArg(args, "path") ?? "", place);
  const error = redactionError(textArg(args, content) ?? "");
  return error === undefined ? inspection : { ...inspection, errors: [...inspection.errors ?? [], error] };
}

/**
 * Keeps the bytes before, puts the new ones in their place and counts them as seen. `before` is undefined for a new file.
 * Undefined when it is written.
 */
export async function putFile(
  path: string,
  bytes: Uint8Array,
  before: KnownFile | undefined,
  at: ToolContext,
): Promise<NotOpened | undefined> {
  await at.keepBefore(path, before?.bytes);
  const fault = replaceFile(path, bytes, before?.stat, at);
  if (fault === undefined) at.seen.set(path, sha256(bytes));
  return fault;
}
