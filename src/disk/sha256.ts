// The one hash that Writ takes: of files, log lines and texts.
import { createHash } from "node:crypto";

/** SHA-256 in lower-case hex; of a text, over its UTF-8. */
export function sha256(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}
