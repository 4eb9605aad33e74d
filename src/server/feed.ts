// Readers over logs: of one session, and of all that a caller may see. They hold a place, never lines.
import { type Entry, trackOf } from "./entry.ts";
import type { Caller, FeedReader, LogLine, LogReader, Outcome } from "./host.ts";
import { type Hub, maySee } from "./hub.ts";
import { refuse, value } from "./outcome.ts";

export function logReader(entry: Entry): LogReader {
  // Also of one that is put away: nothing follows the end of a session.
  const wasClosed = trackOf(entry).closed;
  return {
    lastSeq: () => entry.lastSeq,
    oldestSeq: () => 1,
    read: async (after, most) => entry.removed ? [] : entry.lines.read(after, most),
    onMore(call) {
      entry.watchers.add(call);
      return () => void entry.watchers.delete(call);
    },
    closed: () => wasClosed || entry.removed || entry.track?.closed === true,
  };
}

/** A cursor names the process and a place in it: what was told before it began is in the logs alone. */
export function openFeed(hub: Hub, caller: Caller, after: string | undefined): Outcome<FeedReader> {
  const { feed } = hub;
  let at = feed.first + feed.told.length;
  if (after !== undefined) {
    const [, instance, place] = /^([0-9a-f]{1,32})\.(\d{1,15})$/.exec(after) ?? [];
    if (instance === undefined) return refuse("bad-cursor", "this is no cursor of the feed");
    if (instance !== feed.instance || Number(place) < feed.first) {
      return refuse(
        "cursor-expired",
        "what is behind this cursor is not kept; read the sessions themselves",
        {
          members: { oldest: `${feed.instance}.${feed.first}` },
        },
      );
    }
    if (Number(place) > at) return refuse("bad-cursor", "this place has not been reached yet");
    at = Number(place);
  }
  const told = (place: number) => feed.told[place - feed.first];
  /** How many events from there on follow each other in one log. */
  const runFrom = (place: number, most: number) => {
    const first = told(place);
    let count = 1;
    for (; count < most; count++) {
      const next = told(place + count);
      if (next === undefined || next.entry !== first?.entry || next.seq !== first.seq + count) break;
    }
    return count;
  };
  const cursorAt = (place: number) => `${feed.instance}.${place}`;
  return value({
    async read(most) {
      // What is too far behind is stepped over: it would be refused to a new reader as well.
      at = Math.max(at, feed.first);
      const lines: (LogLine & { readonly cursor: string })[] = [];
      let bytes = 0;
      for (let next = told(at); next !== undefined; next = told(at)) {
        if (lines.length >= most.events || bytes >= most.bytes) break;
        const { entry, seq } = next;
        const count = runFrom(at, most.events - lines.length);
        if (!maySee(caller, entry)) {
          at += count;
          continue;
        }
        const read = entry.lines.read(seq - 1, { events: count, bytes: most.bytes - bytes });
        for (const line of read) {
          at++;
          bytes += line.line.length;
          lines.push({ ...line, cursor: cursorAt(at) });
        }
        // It is gone.
        if (read.length === 0) at += count;
      }
      return lines;
    },
    onMore(call) {
      feed.watchers.add(call);
      return () => void feed.watchers.delete(call);
    },
    behind: () => feed.first + feed.told.length - at,
    cursor: () => cursorAt(at),
  });
}
