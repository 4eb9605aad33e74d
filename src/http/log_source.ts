// Logs as sources of streams: where a reader stands, what it leaves out, and when there is nothing more to come.
import type { FeedReader, LogLine, LogReader } from "../server/host.ts";
import type { Frame, Source, StreamFormat } from "./streams.ts";

/** Lines that are read at once: enough to keep a connection busy, little enough to hold for many clients. */
const batch = { events: 500, bytes: 64 * 1024 } as const;

/** Whether events of this type are wanted. */
export type TypeFilter = (type: string) => boolean;

/** From a list such as `permission.*,turn.completed`; `*` stands for any letters. */
export function typeFilter(list: string | undefined): TypeFilter {
  if (list === undefined) return () => true;
  const patterns = list.split(",").map((glob) => {
    const words = glob.trim().split("*").map((word) => word.replace(/[^\w]/g, "\\$&"));
    return new RegExp(`^${words.join("[a-z._]*")}$`);
  });
  return (type) => patterns.some((pattern) => pattern.test(type));
}

export type LogRange = {
  /** Seq behind which it begins. */
  readonly after: number;
  /** The last seq; called again and again, since an end may become known late. Absent: it goes on. */
  readonly upTo?: () => number | undefined;
  readonly wanted?: TypeFilter;
};

/** Of the lines in the range, in order, each once. */
export function sourceOfLog(
  log: LogReader,
  { after, upTo = () => undefined, wanted = () => true }: LogRange,
): Source {
  let at = after;
  return {
    async next() {
      for (;;) {
        const last = upTo() ?? Infinity;
        if (at >= last) return [];
        const lines = await log.read(at, batch);
        const end = lines.at(-1);
        if (end === undefined) return [];
        at = end.seq;
        const frames = lines.filter((l) => l.seq <= last && wanted(l.type)).map(frameOf);
        if (frames.length > 0) return frames;
      }
    },
    onMore: (call) => log.onMore(call),
    behind: () => Math.max(0, log.lastSeq() - at),
    ended() {
      const last = upTo();
      if (last !== undefined && at >= last) return {};
      return log.closed() ? { frame: sessionClosed } : undefined;
    },
  };
}

function frameOf({ seq, type, line }: LogLine): Frame {
  return { id: String(seq), type, json: line };
}

const sessionClosed: Frame = {
  type: "session.closed",
  json: JSON.stringify({ type: "session.closed", detail: "the session has ended" }),
};

/** Of all sessions. A line of NDJSON has its cursor beside it, since the event itself does not hold it. */
export function sourceOfFeed(feed: FeedReader, format: StreamFormat, wanted: TypeFilter): Source {
  return {
    async next() {
      for (;;) {
        const lines = await feed.read(batch);
        if (lines.length === 0) return [];
        const frames = lines.filter((l) => wanted(l.type)).map(({ cursor, type, line }) => ({
          id: cursor,
          type,
          json: format === "sse" ? line : `{"cursor":${JSON.stringify(cursor)},"event":${line}}`,
        }));
        if (frames.length > 0) return frames;
      }
    },
    onMore: (call) => feed.onMore(call),
    behind: () => feed.behind(),
    ended: () => undefined,
  };
}

/** All of a source as bytes, read as they are taken. For what has an end. */
export function bytesOf(source: Source): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const frames = await source.next();
      if (frames.length === 0) return controller.close();
      controller.enqueue(encoder.encode(frames.map((frame) => `${frame.json}\n`).join("")));
    },
  });
}
