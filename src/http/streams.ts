// Streams of events: each is a place in a log that is read on from whenever its client wants more. Nothing is queued for a
// client beyond what its connection takes, and every end is told.
import type { Credential, Tokens } from "./tokens.ts";

/** One event as it is sent. `id` is a cursor behind it; what cannot be returned to has none. */
export type Frame = { readonly id?: string; readonly type: string; readonly json: string };

/** A place in a log. One reader each; `next` is not called again before it has resolved. */
export type Source = {
  /** Moves on; gives some 64 KiB of frames at most. None: there is nothing new. */
  next(): Promise<readonly Frame[]>;
  /** Calls back after there is more, or an end, until the returned function is called. */
  onMore(call: () => void): () => void;
  /** Events that were recorded and not read yet. */
  behind(): number;
  /** Set once nothing will come any more after what `next` still gives: the last frame, if there is one to send. */
  ended(): { readonly frame?: Frame } | undefined;
};

export type StreamFormat = "sse" | "ndjson";

export type StreamSpec = {
  readonly source: Source;
  readonly format: StreamFormat;
  readonly credential: Credential;
  /** Streams of one session are limited. */
  readonly session?: string;
  /** Sent before all else. */
  readonly first?: readonly Frame[];
  readonly headers?: { readonly [name: string]: string };
  /** Called once when the client has gone away before the end. */
  readonly onGone?: () => void;
};

export type Streams = {
  /** The response, or which limit is reached. */
  open(spec: StreamSpec): Response | { readonly limit: number; readonly inUse: number; readonly of: string };
  /** How many are open. */
  readonly count: () => number;
  /** Streams that ended because their client did not keep up, so far. */
  readonly lagged: () => number;
  /** Ends all of them with this reason; later ones end at once. */
  endAll(reason: EndReason): void;
  /** Stops the clock of pings; nothing is sent any more. */
  close(): void;
};

export type EndReason = "writ.draining" | "writ.lagged" | "writ.revoked";

export type StreamTimes = {
  readonly pingMs: number;
  /** How long a client may take no byte while events are waiting. */
  readonly lagMs: number;
  /** How many more events may be recorded in that time. */
  readonly lagEvents: number;
  /** How often pings, tokens and slow clients are looked at. */
  readonly lookMs: number;
};
export const streamTimes: StreamTimes = { pingMs: 15_000, lagMs: 60_000, lagEvents: 5000, lookMs: 2000 };

export const streamLimits = { all: 512, session: 32, token: 24 } as const;

/** Bytes that may wait for a client. */
const highWater = 64 * 1024;

type Stream = {
  readonly token: string;
  readonly session: string | undefined;
  look(now: number): void;
  end(reason: EndReason): void;
};

export type StreamParts = {
  readonly tokens: Tokens;
  /** Milliseconds, never backwards. */
  readonly now: () => number;
  readonly times?: StreamTimes;
  /** Told when a log could not be read on; the stream breaks off, and its client comes back. */
  readonly onFault: (error: unknown) => void;
};

export function createStreams({ tokens, now, times = streamTimes, onFault }: StreamParts): Streams {
  const open = new Set<Stream>();
  let lagged = 0;
  let ending: EndReason | undefined;
  const timer = setInterval(() => {
    for (const stream of [...open]) stream.look(now());
  }, times.lookMs);
  const countOf = (fits: (stream: Stream) => boolean) => [...open].filter(fits).length;
  return {
    open(spec) {
      const token = spec.credential.hash;
      const limits = [
        { limit: streamLimits.all, inUse: open.size, of: "this server" },
        { limit: streamLimits.token, inUse: countOf((s) => s.token === token), of: "one token" },
        ...(spec.session === undefined ? [] : [{
          limit: streamLimits.session,
          inUse: countOf((s) => s.session === spec.session),
          of: "one session",
        }]),
      ];
      const reached = limits.find((l) => l.inUse >= l.limit);
      if (reached !== undefined) return reached;
      const { stream, response } = openStream(spec, {
        now,
        times,
        holds: () => tokens.holds(spec.credential),
        onFault,
        onEnd: (ended, reason) => {
          open.delete(ended);
          if (reason === "writ.lagged") lagged++;
        },
      });
      open.add(stream);
      if (ending !== undefined) stream.end(ending);
      return response;
    },
    count: () => open.size,
    lagged: () => lagged,
    endAll(reason) {
      ending = reason;
      for (const stream of [...open]) stream.end(reason);
    },
    close: () => clearInterval(timer),
  };
}

type Surrounding = {
  readonly now: () => number;
  readonly times: StreamTimes;
  holds(): boolean;
  onFault(error: unknown): void;
  onEnd(stream: Stream, reason: EndReason | undefined): void;
};

function openStream(
  spec: StreamSpec,
  at: Surrounding,
): { readonly stream: Stream; readonly response: Response } {
  const { source, format, first = [] } = spec;
  const encoder = new TextEncoder();
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  let over = false;
  let pumping = false;
  let again = false;
  let wroteAt = at.now();
  let stuck: { readonly since: number; readonly behind: number } | undefined;

  const write = (text: string) => {
    wroteAt = at.now();
    controller?.enqueue(encoder.encode(text));
  };
  const wants = () => (controller?.desiredSize ?? 0) > 0;
  const leave = (reason?: EndReason) => {
    over = true;
    stopListening();
    at.onEnd(stream, reason);
  };
  const finish = (frame: Frame | undefined, reason?: EndReason) => {
    if (over) return;
    leave(reason);
    if (frame !== undefined) write(encodeFrame(frame, format));
    controller?.close();
  };
  const pump = async () => {
    again = true;
    if (pumping) return;
    pumping = true;
    try {
      while (again && !over) {
        again = false;
        while (!over && wants()) {
          // Asked before reading: an end that comes meanwhile has frames before it.
          const end = source.ended();
          const frames = await source.next();
          if (over) break;
          if (frames.length > 0) write(frames.map((frame) => encodeFrame(frame, format)).join(""));
          else if (end !== undefined) finish(end.frame);
          else break;
        }
      }
    } catch (error) {
      at.onFault(error);
      if (!over) {
        leave();
        controller?.error(error);
      }
    } finally {
      pumping = false;
    }
  };
  const stopListening = source.onMore(() => void pump());

  const stream: Stream = {
    token: spec.credential.hash,
    session: spec.session,
    end: (reason) => finish(endFrame(reason), reason),
    look(now) {
      if (!at.holds()) return stream.end("writ.revoked");
      if (wants()) {
        stuck = undefined;
        if (now - wroteAt >= at.times.pingMs) write(format === "sse" ? ": ping\n\n" : "\n");
        return;
      }
      const behind = source.behind();
      stuck = behind === 0 ? undefined : stuck ?? { since: now, behind };
      if (stuck === undefined) return;
      const tooLong = now - stuck.since >= at.times.lagMs || behind - stuck.behind > at.times.lagEvents;
      if (tooLong) stream.end("writ.lagged");
    },
  };

  const body = new ReadableStream<Uint8Array>({
    start(own) {
      controller = own;
      if (format === "sse") write(": open\nretry: 2000\n\n");
      for (const frame of first) write(encodeFrame(frame, format));
    },
    pull: pump,
    cancel() {
      if (over) return;
      leave();
      spec.onGone?.();
    },
  }, new ByteLengthQueuingStrategy({ highWaterMark: highWater }));
  return { stream, response: new Response(body, { headers: { ...streamHeaders(format), ...spec.headers } }) };
}

function streamHeaders(format: StreamFormat): { readonly [name: string]: string } {
  return {
    "content-type": format === "sse" ? "text/event-stream" : "application/x-ndjson",
    "cache-control": "no-store",
    // Proxies must hand on what they get when they get it.
    "x-accel-buffering": "no",
    "x-content-type-options": "nosniff",
  };
}

/** An event as the stream of that format has it. In NDJSON the id is in the event itself. */
function encodeFrame({ id, type, json }: Frame, format: StreamFormat): string {
  if (format === "ndjson") return `${json}\n`;
  return `${id === undefined ? "" : `id: ${id}\n`}event: ${type}\ndata: ${json}\n\n`;
}

const endings: { readonly [R in EndReason]: string } = {
  "writ.draining": "the server is going down; come back with the last id",
  "writ.lagged": "events came faster than they were read; come back with the last id",
  "writ.revoked": "the token is not valid any more",
};

function endFrame(reason: EndReason): Frame {
  return { type: reason, json: JSON.stringify({ type: reason, detail: endings[reason] }) };
}
