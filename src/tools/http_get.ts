// One GET over a connection that goes to an address and to nothing else: no second look-up of the name, no proxy, no cookie.
import { Agent, type IncomingMessage, request as startRequest } from "node:http";
import { connect as connectPlain, isIP, type Socket } from "node:net";
import { connect as connectSecure } from "node:tls";
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from "node:zlib";
import { codeOf, messageOf } from "../core/thrown.ts";

export type Target = {
  readonly url: URL;
  /** In canonical form; the name that a certificate must have. */
  readonly host: string;
  /** What was judged; tried in this order, at most four of them. */
  readonly addresses: readonly string[];
};

export type GetLimits = {
  /** For connecting and for the handshake, all addresses together. */
  readonly connectMs: number;
  /** Of the body, as sent and as unpacked; what is beyond is not read. */
  readonly maxBytes: number;
  /** Certificates to trust in the place of the system's. */
  readonly ca?: string;
};

export type Reply = {
  readonly ok: true;
  readonly status: number;
  /** The first value of a header, by lower-case name. */
  header(name: string): string;
  /** Unpacked; empty for a redirect. */
  readonly body: Uint8Array<ArrayBuffer>;
  /** There was more than `maxBytes`. */
  readonly cut: boolean;
};
export type GetFault = {
  readonly ok: false;
  readonly code: string;
  readonly message: string;
  /** The request may have reached the server. */
  readonly sent?: true;
};

const maxHeaderBytes = 16 * 1024;
const mostAddresses = 4;

/** Never rejects, save with the reason of `signal` once that is aborted. The connection is closed when this returns. */
export async function httpGet(
  target: Target,
  limits: GetLimits,
  signal: AbortSignal,
): Promise<Reply | GetFault> {
  signal.throwIfAborted();
  const dialled = await dial(target, limits, signal);
  if (!dialled.ok) return dialled;
  const { socket } = dialled;
  const stop = () => socket.destroy();
  signal.addEventListener("abort", stop, { once: true });
  try {
    const reply = await Promise.race([exchange(socket, target, limits), aborted(signal)]);
    return reply.ok ? reply : { ...reply, sent: true };
  } catch (error) {
    signal.throwIfAborted();
    const message = `the answer is no proper HTTP: ${reasonOf(error)}`;
    return { ok: false, code: "bad_response", message, sent: true };
  } finally {
    signal.removeEventListener("abort", stop);
    socket.destroy();
  }
}

type Dialled = { readonly ok: true; readonly socket: Socket } | GetFault;

async function dial(target: Target, limits: GetLimits, signal: AbortSignal): Promise<Dialled> {
  const addresses = target.addresses.slice(0, mostAddresses);
  const share = Math.ceil(limits.connectMs / Math.max(1, addresses.length));
  let fault: GetFault = { ok: false, code: "connect_failed", message: "there is no address to connect to" };
  for (const address of addresses) {
    try {
      return { ok: true, socket: await connect(address, target, share, limits.ca, signal) };
    } catch (error) {
      signal.throwIfAborted();
      fault = connectFault(error, address, target);
    }
  }
  return fault;
}

function connect(
  address: string,
  target: Target,
  ms: number,
  ca: string | undefined,
  signal: AbortSignal,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const at = { host: address, port: portOf(target.url) };
    const secure = target.url.protocol === "https:";
    const socket = secure
      ? connectSecure({
        ...at,
        rejectUnauthorized: true,
        minVersion: "TLSv1.2",
        ...(isIP(target.host) === 0 ? { servername: target.host } : {}),
        ...(ca === undefined ? {} : { ca }),
      })
      : connectPlain(at);
    const end = (error: Error) => {
      settle();
      socket.destroy();
      reject(error);
    };
    const stop = () => end(new Error("aborted"));
    const timer = setTimeout(() => end(new Error("no answer in time")), ms);
    const settle = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
    };
    signal.addEventListener("abort", stop, { once: true });
    // Stays on for the life of the socket: an error that comes late must not end the process.
    socket.on("error", end);
    socket.once(secure ? "secureConnect" : "connect", () => {
      settle();
      resolve(socket);
    });
  });
}

function connectFault(error: unknown, address: string, target: Target): GetFault {
  const code = codeOf(error) ?? "";
  const trust = /^(ERR_TLS|ERR_SSL|CERT_|UNABLE_TO|DEPTH_ZERO|SELF_SIGNED|HOSTNAME|EPROTO)/.test(code) ||
    /certificate|handshake|alert|ssl/i.test(reasonOf(error));
  const where = address === target.host ? `\`${address}\`` : `\`${target.host}\` at ${address}`;
  return trust
    ? { ok: false, code: "tls_failed", message: `no secure connection to ${where}: ${reasonOf(error)}` }
    : {
      ok: false,
      code: "connect_failed",
      message: `no connection to ${where}, port ${portOf(target.url)}: ${reasonOf(error)}`,
    };
}

function portOf(url: URL): number {
  return url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
}

async function exchange(socket: Socket, target: Target, limits: GetLimits): Promise<Reply | GetFault> {
  const response = await ask(socket, target.url);
  const status = response.statusCode ?? 0;
  const header = (name: string) => {
    const value = response.headers[name];
    return (Array.isArray(value) ? value[0] : value) ?? "";
  };
  const empty = new Uint8Array(0);
  if (isRedirect(status) && header("location") !== "") {
    return { ok: true, status, header, body: empty, cut: false };
  }
  const packing = header("content-encoding").trim().toLowerCase();
  if (!Object.hasOwn(unpackers, packing)) {
    return {
      ok: false,
      code: "bad_response",
      message: `the body is packed as \`${packing.slice(0, 40)}\`; expected gzip, deflate, br or nothing`,
    };
  }
  const sent = await collect(response, limits.maxBytes);
  if (!sent.cut && !response.complete) {
    return {
      ok: false,
      code: "cut_off",
      message: `the connection ended after ${sent.bytes.length} bytes, before the answer was whole`,
    };
  }
  const unpacked = await unpack(sent, packing, limits.maxBytes);
  if (unpacked === undefined) {
    return {
      ok: false,
      code: "bad_response",
      message: `the body is damaged: it cannot be unpacked as \`${packing}\``,
    };
  }
  return { ok: true, status, header, body: unpacked.bytes, cut: unpacked.cut };
}

export function isRedirect(status: number): boolean {
  return status === 301 || status === 302 || status === 303 || status === 307 || status === 308;
}

// The one connection that there is stands in for dialling, whatever the environment says of proxies.
function ask(socket: Socket, url: URL): Promise<IncomingMessage> {
  const agent = new Agent({ keepAlive: false, proxyEnv: {} });
  agent.createConnection = () => socket;
  return new Promise((resolve, reject) => {
    const request = startRequest({
      agent,
      method: "GET",
      path: `${url.pathname}${url.search}`,
      maxHeaderSize: maxHeaderBytes,
      headers: {
        "Host": url.host,
        "User-Agent": "writ",
        "Accept": "text/html, text/plain;q=0.9, application/json;q=0.9, application/xml;q=0.8, text/*;q=0.7",
        "Accept-Encoding": "gzip, deflate, br",
        "Connection": "close",
      },
    });
    request.on("error", reject);
    request.once("upgrade", () => reject(new Error("it changes to another protocol")));
    request.once("response", resolve);
    socket.once("close", () => reject(new Error("the connection was closed without an answer")));
    request.end();
  });
}

type Collected = { readonly bytes: Uint8Array<ArrayBuffer>; readonly cut: boolean };

// Ends with what was there when the source fails: whether that was all is for the caller to say.
async function collect(source: AsyncIterable<Uint8Array>, cap: number): Promise<Collected> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of source) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > cap) break;
    }
  } catch {
    // The connection broke, or the data could not be unpacked.
  }
  const bytes = new Uint8Array(Math.min(size, cap));
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk.subarray(0, bytes.length - at), at);
    at += Math.min(chunk.length, bytes.length - at);
  }
  return { bytes, cut: size > cap };
}

const unpackers = {
  "": undefined,
  "identity": undefined,
  "gzip": () => createGunzip(),
  "x-gzip": () => createGunzip(),
  "br": () => createBrotliDecompress(),
  // Servers disagree whether this has the header of zlib; the first byte tells.
  "deflate": (first: number) => (first & 0x0f) === 8 ? createInflate() : createInflateRaw(),
} as const;

// Undefined when the data is damaged. Nothing is unpacked beyond the cap, however much a few bytes would become.
async function unpack(sent: Collected, packing: string, cap: number): Promise<Collected | undefined> {
  const make = unpackers[packing as keyof typeof unpackers];
  if (make === undefined || sent.bytes.length === 0) return sent;
  const stream = make(sent.bytes[0] ?? 0);
  let damaged = false;
  stream.on("error", () => damaged = true);
  stream.end(sent.bytes);
  const got = await collect(stream, cap);
  stream.destroy();
  if (sent.cut || got.cut) return { bytes: got.bytes, cut: true };
  return damaged ? undefined : got;
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) =>
    signal.addEventListener("abort", () => reject(signal.reason), { once: true })
  );
}

function reasonOf(error: unknown): string {
  const text = messageOf(error);
  return text.split("\n")[0]?.slice(0, 200) ?? "";
}
