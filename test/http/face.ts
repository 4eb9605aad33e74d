// The HTTP face over the host without an agent, called without a socket.
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApp } from "../../src/http/app.ts";
import { openApiDocument } from "../../src/http/openapi.ts";
import { operations } from "../../src/http/operations.ts";
import type { Rates } from "../../src/http/rate.ts";
import { createStreams, type Streams, type StreamTimes } from "../../src/http/streams.ts";
import { openTokens } from "../../src/http/tokens.ts";
import type { SessionHost } from "../../src/server/host.ts";
import { type FakeHost, fakeHost } from "./fake_host.ts";

/** Secrets of the tokens that every face has, by what they may do. */
export const secrets = {
  all: "all-secret",
  read: "read-secret",
  run: "run-secret",
  approve: "approve-secret",
  only: "only-secret",
  other: "other-secret",
} as const;

const document = openApiDocument(operations, "0.0.0");

export type Sent = {
  readonly token?: string | null;
  readonly headers?: { readonly [name: string]: string };
  readonly body?: unknown;
  readonly raw?: string;
};

export type Face<H extends SessionHost = FakeHost> = {
  readonly host: H;
  readonly streams: Streams;
  readonly tokenFile: string;
  readonly faults: readonly unknown[];
  readonly document: ReturnType<typeof openApiDocument>;
  send(method: string, path: string, sent?: Sent): Promise<Response>;
  json(
    method: string,
    path: string,
    sent?: Sent,
  ): Promise<{ readonly status: number; readonly body: unknown }>;
  close(): void;
};

export function tokenLines(): string {
  const line = (name: string, roles: string, more = "") =>
    `${name} ${roles} sha256:${createHash("sha256").update(`${name}-secret`).digest("hex")}${more}`;
  return [
    "# name roles hash",
    line("all", "read,run,approve,admin", " sessions=all"),
    line("read", "read", " sessions=all"),
    line("run", "read,run"),
    line("approve", "read,approve", " sessions=all"),
    line("only", "approve"),
    line("other", "read,run"),
    "",
  ].join("\n");
}

export type How = {
  readonly rates?: Rates;
  readonly now?: () => number;
  readonly times?: StreamTimes;
  readonly document?: () => Promise<unknown>;
  readonly ownOrigin?: boolean;
  readonly origins?: readonly string[];
};

export function openFace(how: How = {}): Face {
  return faceOver(fakeHost(), how);
}

export function faceOver<H extends SessionHost>(host: H, how: How = {}): Face<H> {
  const folder = mkdtempSync(join(tmpdir(), "writ-http-"));
  const tokenFile = join(folder, "tokens");
  writeFileSync(tokenFile, tokenLines(), { mode: 0o600 });
  const tokens = openTokens(tokenFile, () => {});
  const now = how.now ?? (() => 0);
  const faults: unknown[] = [];
  const streams = createStreams({
    tokens,
    now,
    ...(how.times === undefined ? {} : { times: how.times }),
    onFault: (error) => void faults.push(error),
  });
  const app = createApp({
    operations,
    service: {
      host,
      streams,
      version: "0.0.0",
      runtime: "test",
      instance: "i",
      document: how.document ?? (async () => document),
      goDown: (graceMs = 1000) => void host.drain({ graceMs }),
    },
    keeper: {
      tokens,
      hosts: ["localhost"],
      origins: how.origins ?? [],
      ownOrigin: how.ownOrigin ?? false,
    },
    // Bursts of tests are no clients.
    rates: how.rates ?? { take: () => undefined },
    onFault: (error) => void faults.push(error),
  });
  const send = (method: string, path: string, { token = secrets.all, headers = {}, body, raw }: Sent = {}) =>
    app(
      new Request(`http://localhost${path}`, {
        method,
        headers: {
          host: "localhost",
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined && raw === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined && raw === undefined ? {} : { body: raw ?? JSON.stringify(body) }),
      }),
    );
  return {
    host,
    streams,
    tokenFile,
    faults,
    document,
    send,
    async json(method, path, sent) {
      const response = await send(method, path, sent);
      const text = await response.text();
      return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
    },
    close() {
      streams.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
