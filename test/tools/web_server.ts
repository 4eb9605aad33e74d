// Servers on 127.0.0.1 that answer byte by byte as a test says, and the context in which fetch_url meets them.
import { createServer, type Server, type Socket } from "node:net";
import { createServer as createSecureServer } from "node:tls";
import type { HostFact } from "../../src/core/facts.ts";
import type { Addresses, Network } from "../../src/agent/ports.ts";
import type { Certificate } from "../support/certificate.ts";

export type WebServer = {
  readonly port: number;
  /** The head of each request, in order. */
  readonly requests: readonly string[];
  close(): Promise<void>;
};
/** Called once for each request, with its path. */
export type Answer = (socket: Socket, path: string) => void;

export async function serve(answer: Answer, secure?: Certificate): Promise<WebServer> {
  const requests: string[] = [];
  const open = new Set<Socket>();
  const meet = (socket: Socket) => {
    let head = "";
    open.add(socket);
    socket.on("close", () => open.delete(socket));
    socket.on("error", () => {});
    socket.on("data", (data) => {
      head += data.toString();
      if (!head.includes("\r\n\r\n")) return;
      requests.push(head);
      const path = head.split(" ")[1] ?? "";
      head = "";
      answer(socket, path);
    });
  };
  const server: Server = secure === undefined ? createServer(meet) : createSecureServer(secure, meet);
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const at = server.address();
  return {
    port: typeof at === "object" && at !== null ? at.port : 0,
    requests,
    close() {
      for (const socket of open) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** A whole answer with a length; `head` lines come before it. */
export function reply(body: string | Uint8Array, ...head: readonly string[]): Answer {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const status = head[0]?.startsWith("HTTP/") === true ? [] : ["HTTP/1.1 200 OK"];
  return (socket) => {
    socket.write([...status, ...head, `Content-Length: ${bytes.length}`, "", ""].join("\r\n"));
    socket.end(bytes);
  };
}

/** Exactly these bytes, then the end. */
export function raw(text: string): Answer {
  return (socket) => socket.end(text);
}

export function redirect(location: string, status = 302): Answer {
  return reply("", `HTTP/1.1 ${status} Elsewhere`, `Location: ${location}`, "Set-Cookie: a=b");
}

export function byPath(answers: { readonly [path: string]: Answer }): Answer {
  return (socket, path) =>
    (answers[path] ?? reply("none", "HTTP/1.1 404 None", "Content-Type: text/plain"))(socket, path);
}

/** Answers each look-up of a name with the next of its lists, the last one for ever; unknown names have no address. */
export function scriptedNetwork(
  names: { readonly [name: string]: readonly (readonly string[])[] },
): { readonly network: Network; readonly asked: readonly string[] } {
  const asked: string[] = [];
  const addresses = async ({ host }: HostFact): Promise<Addresses> => {
    const lists = names[host] ?? [];
    const list = lists[Math.min(asked.filter((name) => name === host).length, lists.length - 1)];
    asked.push(host);
    return list === undefined
      ? { ok: false, code: "unresolved_host", message: `no \`${host}\`` }
      : { ok: true, addresses: list };
  };
  return { network: { addresses }, asked };
}
