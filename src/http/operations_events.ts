// Operations that read events: of one session, and of all that a token may see.
import * as v from "valibot";
import type { FeedReader, LogLine, LogReader } from "../server/host.ts";
import { sourceOfFeed, sourceOfLog, typeFilter } from "./log_source.ts";
import { type Answer, type Operation, operation, type Service } from "./operation.ts";
import type { Occurrence } from "./problem.ts";
import { eventSchema, numberText, sessionParams } from "./schemas.ts";
import type { StreamFormat, StreamSpec } from "./streams.ts";

const limit = numberText(1000, "most events of a page; default 100");
const types = v.pipe(
  v.string(),
  v.maxLength(500),
  v.regex(/^[a-z._*]+(,[a-z._*]+)*$/, "types such as `permission.*,turn.completed`"),
  v.description("only events of these types, such as `permission.*,turn.completed`"),
);
const wait = numberText(60, "seconds that a page waits for its first event; default 0");
const media = ["text/event-stream", "application/x-ndjson"];

/** Of one page, and of what is read of a log at once for it. */
const pageBytes = 4 * 1024 * 1024;
const readBytes = 64 * 1024;

export const eventOperations: readonly Operation[] = [
  operation({
    id: "readEvents",
    method: "GET",
    path: "/v1/sessions/:session/events",
    summary: "the events of a session: a stream, or a page, as `Accept` says",
    role: "read",
    params: sessionParams,
    headers: ["Last-Event-ID"],
    query: v.strictObject({
      after: v.exactOptional(
        numberText(
          Number.MAX_SAFE_INTEGER,
          "only events behind this seq; absent: a stream begins now, a page at the start; `Last-Event-ID` comes before it",
        ),
      ),
      types: v.exactOptional(types),
      limit: v.exactOptional(limit),
      wait: v.exactOptional(wait),
    }),
    answers: {
      200: {
        about: "events in their order",
        schema: v.object({
          items: v.array(eventSchema),
          lastSeq: v.pipe(v.number(), v.description("of the log at this moment")),
          next: v.exactOptional(
            v.pipe(v.number(), v.description("`after` of the next page, where there is more")),
          ),
        }),
        media,
      },
    },
    problems: ["session-not-found", "bad-cursor", "cursor-expired", "too-many-streams"],
    async run({ service, caller, credential, params: { session }, query, headers }) {
      const opened = await service.host.openLog(caller, session);
      if (!opened.ok) return { refused: opened.refusal };
      const log = opened.value;
      const cursor = seqCursor(headers.get("last-event-id"), query.after, log);
      if (typeof cursor === "object") return { refused: cursor };
      const wanted = typeFilter(query.types);
      const format = formatOf(headers.get("accept"));
      if (format === undefined) {
        return await pageOfLog(log, cursor ?? 0, { ...query, wanted });
      }
      const source = sourceOfLog(log, { after: cursor ?? log.lastSeq(), wanted });
      return stream(service, { source, format, credential, session });
    },
  }),
  operation({
    id: "readFeed",
    method: "GET",
    path: "/v1/events",
    summary: "the events of all sessions that the token may see, for those who wait for approvals",
    role: "read",
    headers: ["Last-Event-ID"],
    query: v.strictObject({
      after: v.exactOptional(
        v.pipe(v.string(), v.maxLength(20_000), v.description("a cursor of this feed; absent: from now on")),
      ),
      types: v.exactOptional(types),
      limit: v.exactOptional(limit),
      wait: v.exactOptional(wait),
    }),
    answers: {
      200: {
        about: "events, of each session in their order",
        schema: v.object({
          items: v.array(eventSchema),
          next: v.pipe(
            v.string(),
            v.description("`after` of the next page, also where there is nothing more yet"),
          ),
        }),
        media,
      },
    },
    problems: ["bad-cursor", "cursor-expired", "too-many-streams"],
    async run({ service, caller, credential, query, headers }) {
      const opened = await service.host.openFeed(caller, headers.get("last-event-id") ?? query.after);
      if (!opened.ok) return { refused: opened.refusal };
      const feed = opened.value;
      const wanted = typeFilter(query.types);
      const format = formatOf(headers.get("accept"));
      if (format === undefined) return await pageOfFeed(feed, { ...query, wanted });
      return stream(service, { source: sourceOfFeed(feed, format, wanted), format, credential });
    },
  }),
];

/** A stream is only given where it is asked for by name: a browser or curl that takes anything gets a page. */
export function formatOf(accept: string | null): StreamFormat | undefined {
  if (accept?.includes("text/event-stream") === true) return "sse";
  return accept?.includes("application/x-ndjson") === true ? "ndjson" : undefined;
}

/** The stream, or the refusal that says which limit is reached. */
export function stream(service: Service, spec: StreamSpec): Answer {
  const opened = service.streams.open(spec);
  if (opened instanceof Response) return opened;
  const { limit, inUse, of } = opened;
  return {
    refused: {
      code: "too-many-streams",
      detail: `${of} has ${inUse} streams open, which is as many as it may have; close some`,
      members: { limit, inUse },
    },
  };
}

function seqCursor(
  header: string | null,
  after: number | undefined,
  log: LogReader,
): number | undefined | Occurrence {
  const bad = (found: string): Occurrence => ({
    code: "bad-cursor",
    detail: `${found} is no seq of this session; expected a whole number up to ${log.lastSeq()}`,
    members: { lastSeq: log.lastSeq() },
  });
  if (header !== null && !/^\d{1,15}$/.test(header)) return bad("`Last-Event-ID`");
  const seq = header === null ? after : Number(header);
  if (seq === undefined) return undefined;
  if (seq > log.lastSeq()) return bad(`\`${seq}\``);
  if (seq + 1 >= log.oldestSeq()) return seq;
  return {
    code: "cursor-expired",
    detail: `events before ${log.oldestSeq()} are not kept any more; begin there`,
    members: { oldestSeq: log.oldestSeq() },
  };
}

type PageWish = {
  readonly limit?: number;
  readonly wait?: number;
  readonly wanted: (type: string) => boolean;
};

async function pageOfLog(log: LogReader, after: number, wish: PageWish): Promise<Response> {
  let at = after;
  const lines = await collect(wish, (call) => log.onMore(call), async (events) => {
    const read = await log.read(at, { events, bytes: readBytes });
    at = read.at(-1)?.seq ?? at;
    return read;
  });
  const lastSeq = log.lastSeq();
  const next = at < lastSeq ? `,"next":${at}` : "";
  return jsonText(`{"items":[${lines.map((l) => l.line).join(",")}],"lastSeq":${lastSeq}${next}}`);
}

async function pageOfFeed(feed: FeedReader, wish: PageWish): Promise<Response> {
  const lines = await collect(
    wish,
    (call) => feed.onMore(call),
    (events) => feed.read({ events, bytes: readBytes }),
  );
  const next = JSON.stringify(feed.cursor());
  return jsonText(`{"items":[${lines.map((l) => l.line).join(",")}],"next":${next}}`);
}

/**
 * Lines that are wanted, until there are enough, or no more, or none came in time. `read` is never asked for more than are
 * still missing, so that its place is right behind what the page holds.
 */
async function collect<L extends LogLine>(
  { limit: most = 100, wait: seconds = 0, wanted }: PageWish,
  onMore: (call: () => void) => () => void,
  read: (events: number) => Promise<readonly L[]>,
): Promise<readonly L[]> {
  const until = performance.now() + seconds * 1000;
  const lines: L[] = [];
  let bytes = 0;
  let wake = () => {};
  let came = new Promise<void>((resolve) => wake = resolve);
  const stop = onMore(() => wake());
  try {
    while (lines.length < most && bytes < pageBytes) {
      const some = await read(most - lines.length);
      const fitting = some.filter((l) => wanted(l.type));
      lines.push(...fitting);
      bytes += fitting.reduce((sum, l) => sum + l.line.length, 0);
      if (some.length > 0) continue;
      const left = until - performance.now();
      if (lines.length > 0 || left <= 0) break;
      await within(came, left);
      came = new Promise<void>((resolve) => wake = resolve);
    }
    return lines;
  } finally {
    stop();
  }
}

async function within(event: Promise<void>, ms: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const over = new Promise<void>((resolve) => timer = setTimeout(resolve, ms));
  await Promise.race([event, over]);
  clearTimeout(timer);
}

// Lines go out as they are kept.
function jsonText(text: string): Response {
  return new Response(`${text}\n`, {
    headers: {
      "content-type": "application/json",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
    },
  });
}
