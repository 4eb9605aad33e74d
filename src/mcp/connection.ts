// One server, connected: the list of its tools, calls, and the end. Every wait has a deadline; what goes wrong is a value.
import type { Client, StandardSchemaV1, Transport } from "@modelcontextprotocol/client";
import type { Box } from "../core/box_plan.ts";
import type { Args } from "../core/message.ts";
import { escapeLine, isObject } from "../core/text.ts";
import { messageOf } from "../core/thrown.ts";
import type { Environment } from "../sandbox/environment.ts";
import { childTransport } from "./child_transport.ts";
import { cappedFetch } from "./http_fetch.ts";

type Library = typeof import("./library.ts");

/** How a server is reached, secrets included. */
export type Reach =
  | {
    readonly kind: "command";
    readonly argv: readonly [string, ...string[]];
    readonly cwd: string;
    readonly env: Environment;
    /** Absent: the program runs as Writ itself does. */
    readonly box?: Box;
  }
  | {
    readonly kind: "url";
    readonly url: string;
    readonly headers: { readonly [name: string]: string };
  };

/** `code` is `server_error` when the server turned the call down; after `server_down`, `timeout` and `cancelled` it may have been done. */
export type Answer =
  | { readonly ok: true; readonly result: unknown }
  | {
    readonly ok: false;
    readonly code: string;
    readonly message: string;
    /** The server may have done what it was asked. */
    readonly unknown?: true;
  };

export type Connection = {
  call(tool: string, args: Args, signal: AbortSignal): Promise<Answer>;
  /** Ends the server with all that it has started. Never rejects, and ends in bounded time. */
  close(): Promise<void>;
};
export type Connected =
  | { readonly ok: true; readonly connection: Connection; readonly tools: readonly unknown[] }
  | { readonly ok: false; readonly reason: string };

export type Timing = { readonly startMs: number; readonly callMs: number };

/** Of a list that goes on: so many pages and tools are read. */
const mostPages = 50;
const mostTools = 2000;

type Link = {
  readonly library: Library;
  readonly client: Client;
  readonly transport: Transport;
  /** Why nothing can be asked any more. */
  gone(): string | undefined;
  /** Before the transport closes. */
  leave(): Promise<void>;
};

/**
 * Starts the server, shakes hands and reads the list of its tools, all within `startMs`. A server that cannot be had is
 * ended before this returns.
 */
export async function connect(reach: Reach, timing: Timing, version: string): Promise<Connected> {
  const library = await import("./library.ts");
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), timing.startMs);
  const attempt = (mode: Mode) =>
    tryOnce(makeLink(library, reach, timing, { version, mode }), timing, late.signal);
  try {
    // What every server speaks comes first: a server that does not know the newer way may stumble over it.
    const first = await attempt("legacy");
    const last = first.ok || first.refused !== true ? first : await attempt("auto");
    return last.ok ? last : { ok: false, reason: last.reason };
  } finally {
    clearTimeout(timer);
  }
}

type Mode = "legacy" | "auto";

async function tryOnce(
  link: Link,
  timing: Timing,
  signal: AbortSignal,
): Promise<Connected & { readonly refused?: boolean }> {
  const { library } = link;
  try {
    const options = { timeout: timing.startMs, signal };
    await link.client.connect(link.transport, options);
    const tools = await listTools(link.client, options);
    return { ok: true, tools, connection: connectionOf(link, timing) };
  } catch (error) {
    const reason = signal.aborted || isTimeout(library, error)
      ? `it was not ready after ${timing.startMs} ms (\`timeout\`)`
      : link.gone() ?? explain(library, error);
    await close(link);
    return { ok: false, reason, refused: isRefusal(library, error) };
  }
}

// The handshake itself was understood and turned down; over HTTP that is a status of its own.
function isRefusal(library: Library, error: unknown): boolean {
  return error instanceof library.ProtocolError ||
    error instanceof library.SdkHttpError && error.status === 400;
}

function makeLink(
  library: Library,
  reach: Reach,
  timing: Timing,
  { version, mode }: { readonly version: string; readonly mode: Mode },
): Link {
  // Nothing is offered to a server: what it asks for (samples, questions, roots) is refused by the package.
  const client = new library.Client({ name: "writ", version }, {
    capabilities: {},
    versionNegotiation: { mode },
    inputRequired: { autoFulfill: false },
    jsonSchemaValidator: noValidator,
  });
  if (reach.kind === "command") {
    const transport = childTransport({ ...reach, parse: library.deserializeMessage });
    return { library, client, transport, gone: () => say(transport.gone()), leave: async () => {} };
  }
  const transport = new library.StreamableHTTPClientTransport(new URL(reach.url), {
    fetch: cappedFetch(Math.max(timing.startMs, timing.callMs)),
    requestInit: { headers: { ...reach.headers } },
  });
  // The class says its session id may be absent, the interface that it is there or is not: the same to a reader.
  return {
    library,
    client,
    transport: transport as Transport,
    gone: () => undefined,
    leave: () => transport.terminateSession(),
  };
}

function say(reason: string | undefined): string | undefined {
  return reason === undefined ? undefined : `it ${reason}`;
}

// Answers are checked by what reads them; the package's own checks would refuse a whole list for one odd tool in it.
const asIs: StandardSchemaV1<unknown, unknown> = {
  "~standard": { version: 1, vendor: "writ", validate: (value) => ({ value }) },
};
const noValidator = {
  getValidator: () => () => ({ valid: false as const, data: undefined, errorMessage: "not used" }),
};

async function listTools(
  client: Client,
  options: { readonly timeout: number; readonly signal: AbortSignal },
): Promise<readonly unknown[]> {
  const tools: unknown[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < mostPages && tools.length < mostTools; page++) {
    const params = cursor === undefined ? {} : { cursor };
    const answer = await client.request({ method: "tools/list", params }, asIs, options);
    if (!isObject(answer) || !Array.isArray(answer["tools"])) {
      throw new Error("its list of tools is no list");
    }
    tools.push(...answer["tools"].slice(0, mostTools));
    const next = answer["nextCursor"];
    if (typeof next !== "string" || next === cursor) break;
    cursor = next;
  }
  return tools;
}

function connectionOf(link: Link, timing: Timing): Connection {
  const { library, client } = link;
  return {
    async call(tool, args, signal) {
      const gone = link.gone();
      if (gone !== undefined) return down(gone);
      try {
        const params = { name: tool, arguments: args };
        const options = { timeout: timing.callMs, signal };
        return { ok: true, result: await client.request({ method: "tools/call", params }, asIs, options) };
      } catch (error) {
        return failure(link, error, signal, timing.callMs);
      }
    },
    close: () => close(link),
  };

  function failure({ gone }: Link, error: unknown, signal: AbortSignal, callMs: number): Answer {
    if (signal.aborted) return { ok: false, code: "cancelled", message: "cancelled", unknown: true };
    if (isTimeout(library, error)) {
      const message = `no answer within ${callMs} ms (\`call_timeout\`)`;
      return { ok: false, code: "timeout", message, unknown: true };
    }
    const why = gone();
    if (why !== undefined) return { ...down(why), unknown: true };
    const message = explain(library, error);
    if (!isTurnedDown(library, error)) return { ok: false, code: "server_down", message, unknown: true };
    return {
      ok: false,
      code: "server_error",
      message,
      ...(brokeWithin(library, error) ? { unknown: true } : {}),
    };
  }
}

// A program that is gone is not started again: another one could be another server.
function down(why: string): Extract<Answer, { readonly ok: false }> {
  return { ok: false, code: "server_down", message: `${why}; its tools are out of use in this session` };
}

function isTimeout(library: Library, error: unknown): boolean {
  return error instanceof library.SdkError && error.code === library.SdkErrorCode.RequestTimeout ||
    error instanceof Error && error.name === "TimeoutError";
}

// Turned down, and so not done. Status 404 says that the session is over; what failed within the server may have been done.
function isTurnedDown(library: Library, error: unknown): boolean {
  if (error instanceof library.SdkHttpError) return error.status < 500 && error.status !== 404;
  return error instanceof library.ProtocolError;
}

// It was taken, and then something failed: also what we say ourselves of an answer that is none.
function brokeWithin(library: Library, error: unknown): boolean {
  return error instanceof library.ProtocolError && error.code === library.ProtocolErrorCode.InternalError;
}

function explain(library: Library, error: unknown): string {
  const text = escapeLine(messageOf(error)).slice(0, 500);
  if (!(error instanceof library.SdkHttpError)) return text;
  return error.status === 404
    ? `HTTP status 404: the session is over, or the address is wrong`
    : `HTTP status ${error.status}: ${text}`;
}

const leaveMs = 1000;

async function close(link: Link): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const enough = new Promise<void>((done) => timer = setTimeout(done, leaveMs));
  await Promise.race([link.leave().catch(() => {}), enough]);
  clearTimeout(timer);
  await link.client.close().catch(() => {});
  // The client closes only what it was connected to.
  await link.transport.close().catch(() => {});
}
