// A log without a disk, for tests: the same chain, the same lines.
import type { Draft, Event } from "../core/event.ts";
import { firstHash } from "../core/session.ts";
import { sealEvent } from "./chain.ts";

export function memoryLog(): { append(draft: Draft): Event; sync(): void; readonly text: string } {
  let seq = 0;
  let prev = firstHash;
  const lines: string[] = [];
  return {
    append(draft) {
      const { line, event } = sealEvent(draft, ++seq, prev);
      prev = event.hash;
      lines.push(Buffer.from(line).toString("utf8"));
      return event;
    },
    sync() {},
    get text() {
      return lines.join("");
    },
  };
}
