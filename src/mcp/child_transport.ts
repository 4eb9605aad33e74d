// A server that is a program of ours: one JSON message a line over its pipes, with bounds on everything that it says.
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import type { Box } from "../core/box_plan.ts";
import { escapeLine, isObject } from "../core/text.ts";
import type { Environment } from "../sandbox/environment.ts";
import { open, type OpenChild, type RunFailure } from "../sandbox/subprocess.ts";

export type ChildTransport = Transport & {
  /** Why the server is gone; undefined while it is there, and when it was we who closed. */
  gone(): string | undefined;
};

export type ChildOptions = {
  readonly argv: readonly [string, ...string[]];
  readonly cwd: string;
  readonly env: Environment;
  readonly box?: Box;
  /** One line → a message; throws for what is none. */
  parse(line: string): JSONRPCMessage;
};

/** Bytes of one message. */
const longestLine = 8 * 1024 * 1024;
/** Bytes that a server may write from one request to the next. */
const mostUnasked = 32 * 1024 * 1024;
/** Lines from one request to the next. */
const mostLines = 20_000;
/** Lines that are no message: some programs greet, but one that only talks is none of ours. */
const mostNonsense = 1000;

/** Starts the program when the client connects, and ends it with all that it has started when it closes. */
export function childTransport(options: ChildOptions): ChildTransport {
  let child: OpenChild | undefined;
  let reason: string | undefined;
  let over = false;
  let nonsense = 0;
  let unasked = 0;
  let lines = 0;
  const finish = () => {
    if (over) return;
    over = true;
    transport.onclose?.();
    void child?.end();
  };
  const fail = (why: string) => {
    if (!over) reason = why;
    finish();
  };
  const take = splitLines({
    line(text) {
      if (over) return;
      if (++lines > mostLines) return fail("does not stop writing");
      const message = parsed(options, text);
      if (message !== undefined) transport.onmessage?.(message);
      else if (++nonsense > mostNonsense) {
        fail(`writes what is no message, such as \`${escapeLine(text.slice(0, 80))}\``);
      }
    },
    tooLong: () => fail(`writes a line of more than ${longestLine} bytes`),
  });
  const transport: ChildTransport = {
    gone: () => reason,
    async start() {
      const opened = open(options.argv, {
        cwd: options.cwd,
        env: options.env,
        ...(options.box === undefined ? {} : { box: options.box }),
        onOutput(chunk) {
          if (over) return;
          unasked += chunk.length;
          if (unasked > mostUnasked) fail("does not stop writing");
          else take(chunk);
        },
      });
      if ("code" in opened) {
        over = true;
        throw new Error(opened.message);
      }
      child = opened;
      void opened.ended.then((end) => fail(ending(end, opened.errors())));
    },
    async send(message) {
      if (over || child === undefined) throw new Error(reason ?? "not connected");
      if ("method" in message && "id" in message) [unasked, lines] = [0, 0];
      child.write(`${JSON.stringify(message)}\n`);
    },
    async close() {
      finish();
      await child?.end();
    },
  };
  return transport;
}

function parsed({ parse }: ChildOptions, line: string): JSONRPCMessage | undefined {
  if (line.trim() === "") return undefined;
  try {
    return parse(line);
  } catch {
    return badAnswer(line);
  }
}

// An answer of a wrong shape is a failed request, not one that is waited for.
function badAnswer(line: string): JSONRPCMessage | undefined {
  try {
    const value: unknown = JSON.parse(line);
    if (!isObject(value) || typeof value["id"] !== "number" || value["method"] !== undefined) {
      return undefined;
    }
    return {
      jsonrpc: "2.0",
      id: value["id"],
      error: { code: -32603, message: "its answer has a wrong shape" },
    };
  } catch {
    return undefined;
  }
}

function ending(
  end: { readonly exit: number | null; readonly signal: string | null } | RunFailure,
  errors: string,
) {
  if ("code" in end) return end.message;
  const how = end.signal === null ? `ended with exit ${end.exit}` : `was ended by ${end.signal}`;
  const last = errors.trim().split("\n").slice(-3).join("\n").slice(-500);
  return last === "" ? how : `${how}: ${escapeLine(last)}`;
}

// Pieces are joined when their line is whole, so that one long line is not copied with each of them.
function splitLines(on: { line(text: string): void; tooLong(): void }): (chunk: Uint8Array) => void {
  let pieces: Uint8Array[] = [];
  let size = 0;
  return (chunk) => {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      const line = joined([...pieces, chunk.subarray(from, end)]);
      [pieces, size, from] = [[], 0, end + 1];
      on.line(line);
    }
    if (from === chunk.length) return;
    pieces.push(chunk.slice(from));
    size += chunk.length - from;
    if (size > longestLine) {
      [pieces, size] = [[], 0];
      on.tooLong();
    }
  };
}

function joined(pieces: readonly Uint8Array[]): string {
  const decoder = new TextDecoder();
  return pieces.map((piece) => decoder.decode(piece, { stream: true })).join("") + decoder.decode();
}
