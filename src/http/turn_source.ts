// The events of one turn as a source: from its first to its last, also of one that still waits in the queue.
import type { Caller, LogReader, SessionHost, TurnView } from "../server/host.ts";
import { sourceOfLog } from "./log_source.ts";
import type { Source } from "./streams.ts";

/** Statuses of a turn that will not change any more. */
export function hasEnded({ status }: Pick<TurnView, "status">): boolean {
  return !["queued", "running", "waiting_permission", "cancelling"].includes(status);
}

/** Watches the turn until it ends, or until `signal` aborts. */
export function sourceOfTurn(
  at: {
    readonly host: SessionHost;
    readonly caller: Caller;
    readonly session: string;
    readonly log: LogReader;
  },
  turn: TurnView,
  signal: AbortSignal,
): Source {
  let view = turn;
  let inner: Source | undefined;
  let gone = false;
  let told = false;
  const listeners = new Set<() => void>();
  const begin = () => {
    if (inner !== undefined || view.firstSeq === undefined) return;
    inner = sourceOfLog(at.log, {
      after: view.firstSeq - 1,
      upTo: () => hasEnded(view) ? view.lastSeq : undefined,
    });
    for (const call of listeners) stops.set(call, inner.onMore(call));
  };
  const stops = new Map<() => void, () => void>();
  const watch = async () => {
    while (!hasEnded(view) && !signal.aborted) {
      const wait = { ms: 60_000, until: "change" as const, signal };
      const next = await at.host.getTurn(at.caller, at.session, view.id, wait);
      if (!next.ok) {
        gone = true;
        break;
      }
      view = next.value;
      begin();
      for (const call of [...listeners]) call();
    }
    for (const call of [...listeners]) call();
  };
  begin();
  watch().catch(() => gone = true);
  return {
    async next() {
      if (told || inner === undefined) return [];
      const frames = await inner.next();
      // What is recorded behind its end may be read before its view says that it has ended.
      const end = frames.findIndex((frame) => frame.type === "turn.completed");
      told = end >= 0;
      return told ? frames.slice(0, end + 1) : frames;
    },
    onMore(call) {
      listeners.add(call);
      if (inner !== undefined) stops.set(call, inner.onMore(call));
      return () => {
        listeners.delete(call);
        stops.get(call)?.();
      };
    },
    behind: () => inner?.behind() ?? 0,
    ended() {
      if (gone || told) return {};
      return inner === undefined ? (hasEnded(view) ? {} : undefined) : inner.ended();
    },
  };
}
