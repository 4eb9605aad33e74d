// Whether a record holds: the chain of its log, its head, the links to other logs, and what was said of it elsewhere.
import { dirname } from "node:path";
import { LogFailure } from "../agent/ports.ts";
import type { Event } from "../core/event.ts";
import { checkChain, damagesOf } from "./chain.ts";
import { linkFaults } from "./fork_links.ts";
import { type Head, isSigned, readHead, type Sign } from "./head_file.ts";
import type { AnchorLine } from "./heads_file.ts";
import { readLog } from "./session_files.ts";

/** What may speak for a log from outside of it. */
export type Witness = {
  /** Lines of `audit.heads`, or of a copy of it, by session. */
  readonly heads?: ReadonlyMap<string, readonly AnchorLine[]>;
  /** Of `audit.key`. */
  readonly sign?: Sign;
};
export type Fault = { readonly line?: number; readonly message: string };
export type Verdict = {
  readonly id: string;
  readonly path: string;
  /** `anchored`: what it held at the end of its last turn is what was said elsewhere, or what the key signed. */
  readonly result: "consistent" | "anchored" | "damaged";
  readonly events: number;
  readonly head: string | null;
  readonly anchoredBy: readonly ("heads" | "key")[];
  readonly faults: readonly Fault[];
};

/** Reads the log, its head and the logs that it has links to. Never throws for what is wrong with them. */
export function verifySession(
  dir: string,
  { id, path }: { id: string; path: string },
  witness: Witness,
): Verdict {
  // The head first: a session that runs goes on in between.
  const head = readHead(dirname(path));
  let bytes: Uint8Array;
  try {
    bytes = readLog(path);
  } catch (error) {
    if (!(error instanceof LogFailure)) throw error;
    const faults = [{ message: error.message }];
    return { id, path, result: "damaged", events: 0, head: null, anchoredBy: [], faults };
  }
  const { events, damage, tornBytes } = checkChain(bytes);
  const said = damage === undefined ? witnessed(id, events, head, witness) : { faults: [], anchoredBy: [] };
  const faults: readonly Fault[] = [
    ...(damage === undefined ? [] : damagesOf(bytes)),
    ...(tornBytes === 0
      ? []
      : [{ line: events.length + 1, message: `torn: ${tornBytes} bytes after the last event` }]),
    ...said.faults.map((message) => ({ message })),
    ...(damage === undefined ? linkFaults(dir, events).map((message) => ({ message })) : []),
  ];
  const anchored = said.anchoredBy.length > 0;
  return {
    id,
    path,
    result: faults.length > 0 ? "damaged" : anchored ? "anchored" : "consistent",
    events: events.length,
    head: events.at(-1)?.hash ?? null,
    anchoredBy: faults.length > 0 ? [] : said.anchoredBy,
    faults,
  };
}

function witnessed(
  id: string,
  events: readonly Event[],
  head: Head | undefined,
  { heads, sign }: Witness,
): { readonly faults: readonly string[]; readonly anchoredBy: Verdict["anchoredBy"] } {
  const lines = heads?.get(id) ?? [];
  const faults = [
    ...(head === undefined ? [] : headFaults("its head", head, events, sign)),
    ...lines.flatMap((line) => headFaults("the file of heads", line, events, sign)),
  ];
  const end = events.findLast((e) => e.type === "turn.completed")?.seq;
  const speaks = (said: AnchorLine | Head) =>
    end !== undefined && said.seq >= end && (sign === undefined || said.mac !== undefined);
  return {
    faults,
    anchoredBy: [
      ...(lines.some(speaks) ? ["heads" as const] : []),
      ...(sign !== undefined && head !== undefined && speaks(head) ? ["key" as const] : []),
    ],
  };
}

// What was never signed says nothing, but is no fault: the key may be younger than it.
function headFaults(
  who: string,
  said: { readonly session: string; readonly seq: number; readonly hash: string; readonly mac?: string },
  events: readonly Event[],
  sign: Sign | undefined,
): readonly string[] {
  if (sign !== undefined && said.mac !== undefined && !isSigned(sign, said)) {
    return [`${who} names event ${said.seq}, but is not signed with this key`];
  }
  if (said.seq === 0) return [];
  const event = events[said.seq - 1];
  if (event === undefined) {
    return [`${who} names event ${said.seq}, but the log ends at event ${events.length}`];
  }
  return event.hash === said.hash ? [] : [`${who} names another event ${said.seq} than the log holds`];
}
