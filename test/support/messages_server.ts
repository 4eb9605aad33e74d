// A server on 127.0.0.1 that speaks the Messages wire format and can do wrong whatever a provider can do wrong: it cuts,
// stalls, drips, resets, redirects. It writes HTTP by hand on plain sockets, so that every byte is in the test's hand.
import { Buffer } from "node:buffer";
import { createServer, type Socket } from "node:net";

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

export type PlannedBlock =
  | { readonly text: string; readonly pieces?: number }
  /** `input` is given as JSON text where it is a string, so that it may be malformed; sent in `pieces` fragments [3]. */
  | { readonly tool: string; readonly input?: Json; readonly id?: string; readonly pieces?: number }
  | { readonly thinking: string; readonly signature: string }
  /** A block as it begins, and its deltas: for kinds that this server does not know. */
  | { readonly start: Json; readonly deltas?: readonly Json[] };

/** What a stream holds. */
export type PlannedReply = {
  readonly blocks?: readonly PlannedBlock[];
  readonly stop?: string;
  readonly usage?: { readonly [name: string]: Json };
  /** Sent in place of what would follow block number `after`. */
  readonly error?: { readonly after: number; readonly type: string; readonly message: string };
  /** The server-sent events themselves, in place of all this. */
  readonly events?: readonly SentEvent[];
};
export type SentEvent = readonly [name: string, data: Json];

/** How an answer is sent. Offsets count bytes of the body. */
export type PlannedResponse = PlannedReply & {
  /** With a status, or with `body`, no stream is sent. */
  readonly status?: number;
  readonly headers?: { readonly [name: string]: string };
  readonly body?: Json;
  /** Bytes per write [all at once]. */
  readonly chunk?: number;
  /** Milliseconds between two writes. */
  readonly dripMs?: number;
  /** Ends the connection after so many bytes of the body; negative: before the head. */
  readonly cutAt?: number;
  /** How: by an orderly end, or by a reset [end]. */
  readonly cutBy?: "end" | "reset";
  /** The body's framing [chunked]; "close": until the connection ends, so that a cut looks like an end. */
  readonly framing?: "chunked" | "close";
  /** Goes silent after so many bytes of the body, and leaves the connection open; negative: before the head. */
  readonly stallAt?: number;
};

export type RecordedRequest = {
  readonly method: string;
  readonly path: string;
  /** Lower-case names, in the order sent. */
  readonly headers: readonly (readonly [string, string])[];
  /** The exact bytes, as text. */
  readonly body: string;
};

export type MessagesServer = {
  readonly url: string;
  readonly requests: readonly RecordedRequest[];
  /** Resolves when no connection is open. */
  idle(): Promise<void>;
  close(): Promise<void>;
};

/** Responses in order, or one made for each request (numbered from 0). Beyond the end: status 500, not to be retried. */
export type Plan =
  | readonly PlannedResponse[]
  | ((request: RecordedRequest, index: number) => PlannedResponse | undefined);

const exhausted: PlannedResponse = {
  status: 500,
  headers: { "x-should-retry": "false" },
  body: { type: "error", error: { type: "api_error", message: "the plan of the test server is at its end" } },
};

/** Does not keep the process alive; `close` ends every connection. */
export async function startMessagesServer(plan: Plan): Promise<MessagesServer> {
  const requests: RecordedRequest[] = [];
  const sockets = new Set<Socket>();
  const waiting: (() => void)[] = [];
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => {
      sockets.delete(socket);
      if (sockets.size === 0) { for (const tell of waiting.splice(0)) tell(); }
    });
    socket.on("error", () => {});
    readRequests(socket, async (request) => {
      const index = requests.push(request) - 1;
      const planned = typeof plan === "function" ? plan(request, index) : plan[index];
      await respond(socket, planned ?? exhausted);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref();
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    requests,
    async idle() {
      if (sockets.size > 0) await new Promise<void>((resolve) => waiting.push(resolve));
    },
    close() {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Runs `use` with a server that is closed afterwards in every case. */
export async function withMessagesServer<T>(
  plan: Plan,
  use: (server: MessagesServer) => Promise<T>,
): Promise<T> {
  const server = await startMessagesServer(plan);
  try {
    return await use(server);
  } finally {
    await server.close();
  }
}

/** The bytes of a stream's body, as text. */
export function streamText(reply: PlannedReply): string {
  return (reply.events ?? streamEvents(reply))
    .map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)
    .join("");
}

/** The events of a stream, for tests that change one of them. */
export function streamEvents(reply: PlannedReply): SentEvent[] {
  const blocks = reply.blocks ?? [];
  const usage = { input_tokens: 10, output_tokens: 1, ...reply.usage };
  const message = { id: "msg_1", type: "message", role: "assistant", model: "test", content: [], usage };
  const events: SentEvent[] = [
    ["message_start", { type: "message_start", message }],
    ["ping", { type: "ping" }],
  ];
  for (const [index, block] of blocks.entries()) {
    if (reply.error?.after === index) break;
    const { start, deltas } = blockParts(block, index);
    events.push(["content_block_start", { type: "content_block_start", index, content_block: start }]);
    for (const delta of deltas) {
      events.push(["content_block_delta", { type: "content_block_delta", index, delta }]);
    }
    events.push(["content_block_stop", { type: "content_block_stop", index }]);
  }
  if (reply.error !== undefined) {
    const { type, message } = reply.error;
    return [...events, ["error", { type: "error", error: { type, message } }]];
  }
  const stop = reply.stop ?? (blocks.some((block) => "tool" in block) ? "tool_use" : "end_turn");
  return [
    ...events,
    ["message_delta", {
      type: "message_delta",
      delta: { stop_reason: stop, stop_sequence: null },
      usage: { output_tokens: 20 },
    }],
    ["message_stop", { type: "message_stop" }],
  ];
}

function blockParts(block: PlannedBlock, index: number): { start: Json; deltas: readonly Json[] } {
  if ("text" in block) {
    const pieces = split(block.text, block.pieces ?? 2);
    return {
      start: { type: "text", text: "" },
      deltas: pieces.map((text) => ({ type: "text_delta", text })),
    };
  }
  if ("tool" in block) {
    const text = typeof block.input === "string" ? block.input : JSON.stringify(block.input ?? {});
    return {
      start: { type: "tool_use", id: block.id ?? `toolu_${index}`, name: block.tool, input: {} },
      deltas: ["", ...split(text, block.pieces ?? 3)].map((partial_json) => ({
        type: "input_json_delta",
        partial_json,
      })),
    };
  }
  if ("thinking" in block) {
    return {
      start: { type: "thinking", thinking: "", signature: "" },
      deltas: [
        ...split(block.thinking, 2).map((thinking) => ({ type: "thinking_delta", thinking })),
        { type: "signature_delta", signature: block.signature },
      ],
    };
  }
  return { start: block.start, deltas: block.deltas ?? [] };
}

function split(text: string, pieces: number): string[] {
  const size = Math.max(1, Math.ceil(text.length / pieces));
  return Array.from(
    { length: Math.ceil(text.length / size) },
    (_, i) => text.slice(i * size, (i + 1) * size),
  );
}

function readRequests(socket: Socket, onRequest: (request: RecordedRequest) => Promise<void>): void {
  let pending = Buffer.alloc(0);
  let queue = Promise.resolve();
  socket.on("data", (piece: Uint8Array) => {
    pending = Buffer.concat([pending, piece]);
    for (;;) {
      const headEnd = pending.indexOf("\r\n\r\n");
      if (headEnd < 0) return;
      const [first = "", ...lines] = pending.subarray(0, headEnd).toString("latin1").split("\r\n");
      const headers = lines.map((line) => {
        const colon = line.indexOf(":");
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
      });
      const length = Number(headers.find(([name]) => name === "content-length")?.[1] ?? 0);
      const end = headEnd + 4 + length;
      if (pending.length < end) return;
      const body = pending.subarray(headEnd + 4, end).toString("utf8");
      pending = Buffer.from(pending.subarray(end));
      const [method = "", path = ""] = first.split(" ");
      queue = queue.then(() => onRequest({ method, path, headers, body }));
    }
  });
}

async function respond(socket: Socket, response: PlannedResponse): Promise<void> {
  const plain = response.status !== undefined || response.body !== undefined;
  const text = !plain
    ? streamText(response)
    : response.body === undefined
    ? ""
    : typeof response.body === "string"
    ? response.body
    : JSON.stringify(response.body);
  const body = Buffer.from(text);
  const close = response.framing === "close";
  const headers = {
    "content-type": plain ? "application/json" : "text/event-stream; charset=utf-8",
    "request-id": "req_test",
    ...(close ? { connection: "close" } : { "transfer-encoding": "chunked" }),
    ...response.headers,
  };
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join("");
  if (response.stallAt !== undefined && response.stallAt < 0) return;
  if (response.cutAt !== undefined && response.cutAt < 0) return cut(socket, response);
  socket.write(`HTTP/1.1 ${response.status ?? 200} Planned\r\n${head}\r\n`);
  const stopAt = Math.min(response.cutAt ?? body.length, response.stallAt ?? body.length);
  const size = response.chunk ?? body.length;
  for (let at = 0; at < stopAt && !socket.destroyed; at += size) {
    const piece = body.subarray(at, Math.min(at + size, stopAt));
    await write(socket, close ? piece : chunked(piece));
    if (response.dripMs !== undefined) await new Promise((resolve) => setTimeout(resolve, response.dripMs));
  }
  if (response.cutAt !== undefined) return cut(socket, response);
  if (response.stallAt !== undefined) return;
  if (close) socket.end();
  else socket.write("0\r\n\r\n");
}

function chunked(piece: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from(`${piece.byteLength.toString(16)}\r\n`), piece, Buffer.from("\r\n")]);
}

function write(socket: Socket, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed) resolve();
    else socket.write(bytes, () => resolve());
  });
}

function cut(socket: Socket, response: PlannedResponse): void {
  if (response.cutBy === "reset") socket.resetAndDestroy();
  else socket.end();
}
