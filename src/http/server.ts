// The HTTP face of a host: opened, watched, and taken down in order.
import { randomUUID } from "node:crypto";
import process from "node:process";
import type { ServerSettings } from "../core/policy.ts";
import type { SessionHost } from "../server/host.ts";
import { messageOf } from "../core/thrown.ts";
import { type Address, ownHosts, prepareSocket } from "./address.ts";
import { createApp } from "./app.ts";
import { listen, type Listening } from "./listen.ts";
import { operations } from "./operations.ts";
import { createRates } from "./rate.ts";
import { createStreams } from "./streams.ts";
import type { Tokens } from "./tokens.ts";

export type ServerParts = {
  readonly host: SessionHost;
  readonly settings: Pick<ServerSettings, "hosts" | "origins" | "inspector" | "drainGraceMs">;
  readonly address: Address;
  readonly tokens: Tokens;
  readonly version: string;
  readonly onFault: (error: unknown, requestId: string) => void;
  /** Files of pages, by path; they need no token. */
  readonly assets?: (path: string) => Response | undefined;
};

export type Server = {
  /** As a client names it: a URL, or the path of the socket behind `unix:`. */
  readonly shown: string;
  readonly port: number;
  /** Starts no more work, gives what runs its time, then closes all. Later calls only make it hurry, with a shorter grace. */
  goDown(graceMs?: number): void;
  /** Resolves when everything is closed. */
  readonly down: Promise<void>;
};

/** Listens when it resolves, or says why not. */
export async function startServer(parts: ServerParts): Promise<Server | { readonly fault: string }> {
  const { host, settings, address, tokens, version } = parts;
  if (address.kind === "unix") {
    const fault = await prepareSocket(address.path);
    if (fault !== undefined) return { fault };
  }
  const now = () => performance.now();
  const streams = createStreams({ tokens, now, onFault: (error) => parts.onFault(error, "of a stream") });
  // The app needs the port, which only listening gives.
  const ready: { app?: (request: Request) => Promise<Response> } = {};
  let listening: Listening;
  try {
    listening = listen(
      address,
      (request) => ready.app?.(request) ?? Promise.resolve(new Response(null, { status: 503 })),
    );
  } catch (error) {
    streams.close();
    return { fault: `cannot listen at \`${showAddress(address, undefined)}\`: ${messageOf(error)}` };
  }
  let down: (() => void) | undefined;
  const ended = new Promise<void>((resolve) => down = resolve);
  let going = false;
  const goDown = (graceMs = settings.drainGraceMs) => {
    const drained = host.drain({ graceMs });
    if (going) return;
    going = true;
    drained.catch((error: unknown) => parts.onFault(error, "drain")).then(async () => {
      await lastWords(streams);
      streams.close();
      await listening.stop().catch(() => {});
      down?.();
    });
  };
  let document: Promise<unknown> | undefined;
  ready.app = createApp({
    operations,
    service: {
      host,
      streams,
      version,
      runtime: runtimeName(),
      instance: randomUUID(),
      document: () => document ??= import("./openapi.ts").then((m) => m.openApiDocument(operations, version)),
      goDown,
    },
    keeper: {
      tokens,
      hosts: [...ownHosts(address, listening.port), ...settings.hosts.map((h) => h.toLowerCase())],
      origins: settings.origins,
      ownOrigin: settings.inspector,
    },
    rates: createRates(now),
    onFault: parts.onFault,
    ...(parts.assets === undefined ? {} : { assets: parts.assets }),
  });
  return { shown: showAddress(address, listening.port), port: listening.port, goDown, down: ended };
}

// What the end of the turns has recorded goes out first, then the end of each stream; then there is a moment for both to leave.
async function lastWords(streams: ReturnType<typeof createStreams>): Promise<void> {
  if (streams.count() === 0) return;
  await pause(100);
  streams.endAll("writ.draining");
  await pause(200);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function showAddress(address: Address, port: number | undefined): string {
  if (address.kind === "unix") return `unix:${address.path}`;
  const name = address.address.includes(":") ? `[${address.address}]` : address.address;
  return `http://${name}:${port ?? address.port}`;
}

function runtimeName(): string {
  const { bun, deno } = process.versions as { readonly [name: string]: string | undefined };
  return bun === undefined ? `deno ${deno}` : `bun ${bun}`;
}
