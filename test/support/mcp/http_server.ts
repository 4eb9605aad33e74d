// The same server over streamable HTTP on 127.0.0.1, in all the ways in which one can speak.
import { createMcpHandler, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { makeServer } from "./real_server.ts";

/** `sessions` keep a session each, with replies as streams; `json`: without streams; `stateless`; `modern`: only the newer way. */
export type Kind = "sessions" | "json" | "stateless" | "modern";
export type HttpServer = {
  readonly url: string;
  /** Method and lower-case headers of every request. */
  readonly requests: readonly {
    readonly method: string;
    readonly headers: { readonly [name: string]: string };
  }[];
  /** What is answered in the server's place from now on; undefined: the server itself. */
  instead: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined;
  /** Forgets every session. */
  forget(): void;
  close(): Promise<void>;
};

export async function startHttpServer(kind: Kind): Promise<HttpServer> {
  const requests: { method: string; headers: { [name: string]: string } }[] = [];
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  const handler = createMcpHandler(makeServer, { legacy: kind === "modern" ? "reject" : "stateless" });
  const answer = kind === "sessions" || kind === "json"
    ? (request: Request) => inSession(request, sessions, kind === "json")
    : (request: Request) => handler.fetch(request);
  const made: HttpServer = {
    url: "",
    requests,
    instead: undefined,
    forget: () => sessions.clear(),
    close: () =>
      new Promise((done) => {
        server.closeAllConnections();
        server.close(() => done());
      }),
  };
  const server = createServer((request, response) => {
    const headers = Object.fromEntries(Object.entries(request.headers).map(([k, v]) => [k, String(v)]));
    requests.push({ method: request.method ?? "", headers });
    if (made.instead?.(request, response) === true) return;
    void serve(request, response, headers, answer);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return Object.assign(made, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp` });
}

async function inSession(
  request: Request,
  sessions: Map<string, WebStandardStreamableHTTPServerTransport>,
  json: boolean,
): Promise<Response> {
  const id = request.headers.get("mcp-session-id");
  const known = id === null ? undefined : sessions.get(id);
  if (known !== undefined) return await known.handleRequest(request);
  if (id !== null) return new Response("no such session", { status: 404 });
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    enableJsonResponse: json,
    onsessioninitialized: (made) => void sessions.set(made, transport),
  });
  await makeServer().connect(transport);
  return await transport.handleRequest(request);
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  headers: { readonly [name: string]: string },
  answer: (request: Request) => Promise<Response>,
): Promise<void> {
  const pieces: Uint8Array[] = [];
  for await (const piece of request) pieces.push(piece as Uint8Array);
  const body = new Blob(pieces as BlobPart[]);
  const given = await answer(
    new Request(`http://${headers["host"]}${request.url}`, {
      method: request.method ?? "GET",
      headers,
      ...(body.size === 0 ? {} : { body: await body.text() }),
    }),
  );
  response.writeHead(given.status, Object.fromEntries(given.headers));
  const reader = given.body?.getReader();
  response.on("close", () => void reader?.cancel().catch(() => {}));
  for (let read = await reader?.read(); read !== undefined && !read.done; read = await reader?.read()) {
    response.write(read.value);
  }
  response.end();
}
