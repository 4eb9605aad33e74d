// The face on real sockets, in the runtime that the tests run in.
import { afterEach, beforeEach, describe, test } from "bun:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { chmodSync, existsSync, lstatSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Address, ownHosts, prepareSocket, readAddress } from "../../src/http/address.ts";
import { type Server, startServer } from "../../src/http/server.ts";
import { openTokens } from "../../src/http/tokens.ts";
import { secrets, tokenLines } from "./face.ts";
import { type FakeHost, fakeHost } from "./fake_host.ts";

let folder: string;
let host: FakeHost;
const servers: Server[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "writ-serve-"));
  host = fakeHost();
});
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.goDown(0);
    await server.down;
  }
  rmSync(folder, { recursive: true, force: true });
});

async function start(address: Address): Promise<Server | string> {
  const tokenFile = join(folder, "tokens");
  writeFileSync(tokenFile, tokenLines(), { mode: 0o600 });
  const server = await startServer({
    host,
    settings: { hosts: [], origins: [], inspector: false, drainGraceMs: 1000 },
    address,
    tokens: openTokens(tokenFile, () => {}),
    version: "0.0.0",
    onFault: () => {},
  });
  if ("fault" in server) return server.fault;
  servers.push(server);
  return server;
}

async function started(address: Address): Promise<Server> {
  const server = await start(address);
  if (typeof server === "string") throw new Error(server);
  return server;
}

type Reply = {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly stream: IncomingMessage;
};

function ask(
  server: Server,
  path: string,
  { method = "GET", headers = {}, body }: {
    method?: string;
    headers?: { [name: string]: string };
    body?: string;
  } = {},
): Promise<Reply> {
  const where = server.shown.startsWith("unix:")
    ? { socketPath: server.shown.slice(5) }
    : { host: "127.0.0.1", port: server.port };
  return new Promise((resolve, reject) => {
    const asked = request({
      ...where,
      path,
      method,
      agent: false,
      headers: { host: server.port === 0 ? "localhost" : `127.0.0.1:${server.port}`, ...headers },
    }, (stream) => resolve({ status: stream.statusCode ?? 0, headers: stream.headers, stream }));
    asked.on("error", reject);
    asked.end(body);
  });
}

async function textOf({ stream }: Reply): Promise<string> {
  let text = "";
  for await (const part of stream) text += String(part);
  return text;
}

const bearer = { authorization: `Bearer ${secrets.all}` };
const loopback: Address = { kind: "tcp", address: "127.0.0.1", port: 0 };
const socket = (): Address => ({ kind: "unix", path: join(folder, "run", "writ.sock") });

const kinds: readonly { readonly name: string; readonly at: () => Address }[] = [
  { name: "a port of the loopback address", at: () => loopback },
  { name: "a unix socket", at: socket },
];

for (const { name, at } of kinds) {
  describe(`on ${name}`, () => {
    test("health needs no token, everything else does", async () => {
      const server = await started(at());
      assertEquals(await textOf(await ask(server, "/healthz")), '{"status":"ok"}\n');
      const refused = await ask(server, "/v1/version");
      await textOf(refused);
      assertEquals([refused.status, refused.headers["www-authenticate"]], [401, "Bearer"]);
      assertEquals(JSON.parse(await textOf(await ask(server, "/v1/version", { headers: bearer }))).api, "v1");
    });

    test("a request by another name is not answered, with a token or without", async () => {
      const server = await started(at());
      const replies = [];
      for (const path of ["/healthz", "/v1/version", "/nowhere"]) {
        const reply = await ask(server, path, { headers: { ...bearer, host: "evil.example" } });
        await textOf(reply);
        replies.push(reply.status);
      }
      assertEquals(replies, [421, 421, 421]);
    });

    test("a stream gives what comes, and its client's leaving is seen", async () => {
      const server = await started(at());
      const json = { ...bearer, "content-type": "application/json" };
      await textOf(await ask(server, "/v1/sessions", { method: "POST", headers: json, body: "{}" }));
      const reply = await ask(server, "/v1/sessions/s_1/events?after=0", {
        headers: { ...bearer, accept: "text/event-stream" },
      });
      let text = "";
      for await (const part of reply.stream) {
        text += String(part);
        if (text.includes("session.started") && !text.includes("user.message")) {
          host.record("s_1", "user.message");
        }
        if (text.includes("user.message")) break;
      }
      reply.stream.destroy();
      assertStringIncludes(text, "id: 2\nevent: user.message\ndata: ");
      // The stream is not counted any more once the server has seen it go.
      for (;;) {
        const metrics = await textOf(await ask(server, "/metrics", { headers: bearer }));
        if (/^writ_sse_streams 0$/m.test(metrics)) break;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    });

    test("going down ends streams with a word, refuses work meanwhile, and frees the place", async () => {
      const server = await started(at());
      const json = { ...bearer, "content-type": "application/json" };
      await textOf(await ask(server, "/v1/sessions", { method: "POST", headers: json, body: "{}" }));
      const stream = await ask(server, "/v1/sessions/s_1/events?after=0", {
        headers: { ...bearer, accept: "application/x-ndjson" },
      });
      let release = () => {};
      const drained = new Promise<void>((resolve) => release = resolve);
      const drain = host.drain;
      Object.assign(host, {
        drain: async (how: { graceMs: number }) => {
          await drain(how);
          await drained;
        },
      });
      const down = await ask(server, "/v1/drain", {
        method: "POST",
        headers: json,
        body: '{"graceSeconds":9}',
      });
      assertEquals([down.status, JSON.parse(await textOf(down))], [202, { draining: true, runningTurns: 0 }]);
      const late = await ask(server, "/v1/sessions", { method: "POST", headers: json, body: "{}" });
      await textOf(late);
      const ready = await ask(server, "/readyz");
      await textOf(ready);
      const read = await ask(server, "/v1/sessions", { headers: bearer });
      await textOf(read);
      assertEquals([late.status, ready.status, read.status], [503, 503, 200]);
      release();
      const lines = (await textOf(stream)).trim().split("\n").map((line) => JSON.parse(line).type);
      assertEquals(lines, ["session.started", "writ.draining"]);
      await server.down;
      const again = at();
      if (again.kind === "unix") assertEquals(existsSync(again.path), false);
    });
  });
}

describe("a unix socket", () => {
  const own = () => join(folder, "run", "writ.sock");

  test("is this user's alone, in a folder of its own", async () => {
    const before = process.umask();
    await started(socket());
    assertEquals((lstatSync(own()).mode & 0o777).toString(8), "600");
    assertEquals((lstatSync(join(folder, "run")).mode & 0o777).toString(8), "700");
    assertEquals(process.umask(), before);
  });

  const refused: readonly {
    readonly name: string;
    readonly prepare: () => unknown;
    readonly says: RegExp;
  }[] = [
    {
      name: "in a folder that others may write to",
      prepare: () => {
        mkdirSync(join(folder, "run"));
        chmodSync(join(folder, "run"), 0o777);
      },
      says: /^others may write to `.*run`/,
    },
    {
      name: "where something else lies",
      prepare: () => {
        mkdirSync(join(folder, "run"), { mode: 0o700 });
        writeFileSync(own(), "x");
      },
      says: /^`.*writ\.sock` is no socket/,
    },
    {
      name: "that somebody answers at",
      prepare: () => started(socket()),
      says: /^another server answers at/,
    },
  ];
  for (const { name, prepare, says } of refused) {
    test(`is refused ${name}`, async () => {
      await prepare();
      const fault = await start(socket());
      assert(typeof fault === "string" && says.test(fault), String(fault));
    });
  }

  test("that nobody answers at is replaced", async () => {
    mkdirSync(join(folder, "run"), { mode: 0o700 });
    await leaveSocket(own());
    assertEquals(lstatSync(own()).isSocket(), true);
    const server = await started(socket());
    assertEquals((await ask(server, "/healthz")).status, 200);
  });

  test("whose path is too long is refused with its reason", async () => {
    assertStringIncludes((await prepareSocket(`/${"x".repeat(103)}`)) ?? "", "longer than 103 bytes");
  });
});

// A socket as a killed server leaves it: bound, and nobody behind it.
async function leaveSocket(path: string): Promise<void> {
  const { linkSync } = await import("node:fs");
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(`${path}.1`, resolve));
  linkSync(`${path}.1`, path);
  await new Promise((resolve) => server.close(resolve));
}

describe("readAddress()", () => {
  const closed = { tokenFile: false, allowRemote: false };
  const rows: readonly {
    readonly written: string;
    readonly allowed?: Parameters<typeof readAddress>[1];
    readonly expected: Address | RegExp;
  }[] = [
    { written: "unix:/run/w.sock", expected: { kind: "unix", path: "/run/w.sock" } },
    { written: "127.0.0.1:80", expected: { kind: "tcp", address: "127.0.0.1", port: 80 } },
    { written: "localhost:0", expected: { kind: "tcp", address: "127.0.0.1", port: 0 } },
    { written: "[::1]:80", expected: { kind: "tcp", address: "::1", port: 80 } },
    { written: "127.9.9.9:80", expected: { kind: "tcp", address: "127.9.9.9", port: 80 } },
    { written: "0.0.0.0:80", expected: /can be reached from other machines/ },
    { written: "[::]:80", expected: /can be reached from other machines/ },
    { written: "10.0.0.1:80", allowed: { tokenFile: true, allowRemote: false }, expected: /can be reached/ },
    { written: "10.0.0.1:80", allowed: { tokenFile: false, allowRemote: true }, expected: /can be reached/ },
    {
      written: "10.0.0.1:80",
      allowed: { tokenFile: true, allowRemote: true },
      expected: { kind: "tcp", address: "10.0.0.1", port: 80 },
    },
    { written: "127.0.0.1", expected: /expected `unix:PATH`/ },
    { written: "127.0.0.1:65536", expected: /expected `unix:PATH`/ },
    { written: "127.0.0:80", expected: /is no IP address/ },
    { written: "127.0.0.1.evil.example:80", expected: /expected `unix:PATH`/ },
    { written: "unix:w.sock", expected: /expected `unix:PATH`/ },
  ];
  for (const { written, allowed = closed, expected } of rows) {
    test(`${written} with ${JSON.stringify(allowed)}`, () => {
      const read = readAddress(written, allowed);
      if (expected instanceof RegExp) {
        assert(typeof read === "string" && expected.test(read), JSON.stringify(read));
      } else assertEquals(read, expected);
    });
  }
});

test("ownHosts() of an address that is no loopback has its own name only", () => {
  assertEquals(
    [ownHosts({ kind: "tcp", address: "10.0.0.1", port: 0 }, 80), ownHosts({ kind: "unix", path: "/x" }, 0)],
    [["10.0.0.1:80"], ["localhost"]],
  );
});
