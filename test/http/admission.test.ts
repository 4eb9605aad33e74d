// Who is let in, and in which order that is looked at.
import { describe, test } from "bun:test";
import { assertEquals } from "@std/assert";
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRates } from "../../src/http/rate.ts";
import { makeToken, openTokens, readTokens, roles } from "../../src/http/tokens.ts";
import { type Face, openFace, secrets, type Sent } from "./face.ts";

async function withFace<T>(
  run: (face: Face) => Promise<T>,
  how: Parameters<typeof openFace>[0] = {},
): Promise<T> {
  const face = openFace(how);
  try {
    return await run(face);
  } finally {
    face.close();
  }
}

function inFolder<T>(run: (folder: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), "writ-tokens-"));
  try {
    return run(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

describe("checks come in their order, and each hides those after it", () => {
  // Every row is right in one thing more than the row before it.
  const evil = { host: "evil.example", origin: "https://evil.example", "content-type": "text/plain" };
  const rows: readonly {
    readonly says: string;
    readonly sent: Sent;
    readonly drain?: true;
    readonly status: number;
  }[] = [
    { says: "host-denied", sent: { token: null, headers: evil, raw: "x" }, status: 421 },
    {
      says: "origin-denied",
      sent: { token: null, headers: { ...evil, host: "localhost" }, raw: "x" },
      status: 403,
    },
    {
      says: "unauthorized",
      sent: { token: null, headers: { "content-type": "text/plain" }, raw: "x" },
      status: 401,
    },
    {
      says: "forbidden",
      sent: { token: secrets.approve, headers: { "content-type": "text/plain" }, raw: "x" },
      status: 403,
    },
    {
      says: "draining",
      sent: { headers: { "content-type": "text/plain" }, raw: "x" },
      drain: true,
      status: 503,
    },
    {
      says: "unsupported-media-type",
      sent: { headers: { "content-type": "text/plain" }, raw: "x".repeat(2 << 20) },
      status: 415,
    },
    { says: "body-too-large", sent: { raw: "x".repeat(2 << 20) }, status: 413 },
    { says: "rate-limited", sent: { raw: '{"unknown":1}' }, status: 429 },
  ];
  for (const { says, sent, drain, status } of rows) {
    test(says, () =>
      withFace(async (face) => {
        if (drain === true) await face.host.drain({ graceMs: 0 });
        const { status: found, body } = await face.json("POST", "/v1/sessions", sent);
        assertEquals([found, (body as { type: string }).type], [status, `urn:writ:problem:${says}`]);
        assertEquals(face.host.calls.filter((c) => c !== "drain" && c !== "draining"), []);
      }, { rates: { take: () => 1 } }));
  }
});

describe("paths", () => {
  const rows: readonly {
    readonly method: string;
    readonly path: string;
    readonly token?: null;
    readonly status: number;
  }[] = [
    { method: "GET", path: "/", status: 404 },
    { method: "GET", path: "/v1/nothing", status: 404 },
    { method: "GET", path: "/v1/nothing", token: null, status: 401 },
    { method: "PUT", path: "/v1/policy", status: 405 },
    { method: "PATCH", path: "/v1/policy", status: 405 },
    { method: "HEAD", path: "/v1/sessions/s_1/events", status: 405 },
    { method: "OPTIONS", path: "/v1/sessions", status: 405 },
    { method: "OPTIONS", path: "/v1/sessions", token: null, status: 401 },
    { method: "HEAD", path: "/healthz", token: null, status: 200 },
    { method: "GET", path: "/healthz/", token: null, status: 401 },
    { method: "GET", path: "/healthz/../v1/version", token: null, status: 401 },
    { method: "GET", path: "//healthz", token: null, status: 401 },
    { method: "GET", path: "/v1/sessions/..%2f..%2fetc", status: 404 },
    { method: "GET", path: "/v1/sessions/%00", status: 404 },
    { method: "GET", path: "/v1/sessions/%ff", status: 404 },
    { method: "GET", path: "/v1/sessions?limit=1&limit=2", status: 400 },
    { method: "GET", path: "/v1/sessions?limit=1001", status: 400 },
    { method: "GET", path: "/v1/sessions?limit=-1", status: 400 },
    { method: "GET", path: "/v1/sessions?limit=1e3", status: 400 },
    { method: "GET", path: "/v1/sessions?__proto__=1", status: 400 },
  ];
  for (const { method, path, token, status } of rows) {
    test(`${method} ${path}${token === null ? " without a token" : ""}: ${status}`, () =>
      withFace(async (face) => {
        const response = await face.send(method, path, token === null ? { token } : {});
        await response.text();
        assertEquals([response.status, face.faults.length, face.streams.count()], [status, 0, 0]);
      }));
  }
});

describe("origins", () => {
  const rows: readonly {
    readonly origin: string;
    readonly listed?: readonly string[];
    readonly own?: boolean;
    readonly status: number;
  }[] = [
    { origin: "http://localhost", status: 403 },
    { origin: "null", listed: ["https://t.example"], status: 403 },
    { origin: "https://t.example", listed: ["https://t.example"], status: 200 },
    { origin: "https://t.example:8443", listed: ["https://t.example"], status: 403 },
    { origin: "http://localhost", own: true, status: 200 },
    { origin: "https://localhost", own: true, status: 403 },
    { origin: "http://localhost:1", own: true, status: 403 },
  ];
  for (const { origin, listed = [], own = false, status } of rows) {
    test(`${origin} with ${listed.join() || "none listed"}${own ? " and pages of its own" : ""}: ${status}`, () =>
      withFace(async (face) => {
        const response = await face.send("GET", "/v1/version", { headers: { origin } });
        const shared = response.headers.get("access-control-allow-origin");
        assertEquals([response.status, shared], [status, listed.includes(origin) ? origin : null]);
      }, { origins: listed, ownOrigin: own }));
  }

  const ask = { "access-control-request-method": "POST", "access-control-request-headers": "authorization" };
  const asked: readonly { readonly origin: string; readonly status: number }[] = [
    { origin: "https://t.example", status: 204 },
    { origin: "https://evil.example", status: 403 },
  ];
  for (const { origin, status } of asked) {
    test(`a browser that asks first for ${origin}: ${status}`, () =>
      withFace(async (face) => {
        const response = await face.send("OPTIONS", "/v1/sessions", {
          token: null,
          headers: { origin, ...ask },
        });
        const allowed = response.headers.get("access-control-allow-headers")?.split(", ") ?? [];
        assertEquals([response.status, allowed.includes("authorization")], [status, status === 204]);
        assertEquals(face.host.calls, []);
      }, { origins: ["https://t.example"] }));
  }
});

describe("bodies", () => {
  const rows: readonly {
    readonly name: string;
    readonly raw: string;
    readonly errors: readonly string[] | undefined;
  }[] = [
    { name: "no JSON", raw: "{", errors: undefined },
    { name: "not UTF-8 after all", raw: '{"title":"\\ud800"}', errors: [] },
    { name: "a list", raw: "[]", errors: undefined },
    {
      name: "a member that is not known",
      raw: '{"titel":"x"}',
      errors: ["body.titel: this member is not known"],
    },
    {
      name: "a member of the prototype",
      raw: '{"__proto__":{"title":"x"}}',
      errors: ["body.__proto__: this member is not known"],
    },
    { name: "a wrong type", raw: '{"title":1}', errors: ["body.title: expected string"] },
    {
      name: "a text that is too long",
      raw: `{"title":"${"x".repeat(201)}"}`,
      errors: ["body.title: expected at most 200 characters"],
    },
    {
      name: "two faults at once",
      raw: '{"title":1,"model":""}',
      errors: ["body.title: expected string", "body.model: expected >=1"],
    },
  ];
  for (const { name, raw, errors } of rows) {
    test(name, () =>
      withFace(async (face) => {
        const { status, body } = await face.json("POST", "/v1/sessions", { raw });
        const found = (body as { errors?: readonly { path: string; message: string }[] }).errors;
        if (errors?.length === 0) return assertEquals(status, 201);
        assertEquals([status, found?.map((e) => `${e.path}: ${e.message}`)], [400, errors]);
      }));
  }

  test("what is refused is not repeated: it may be a secret", () =>
    withFace(async (face) => {
      const response = await face.send("POST", "/v1/sessions", { raw: '{"title":{"k":"sk-very-secret"}}' });
      assertEquals((await response.text()).includes("sk-very-secret"), false);
    }));
});

describe("idempotency keys", () => {
  const post = (face: Face, key: string, body: unknown, path = "/v1/sessions") =>
    face.send("POST", path, { body, headers: { "idempotency-key": key } });

  test("a second request with the key of the first gets its answer", () =>
    withFace(async (face) => {
      const all = await Promise.all(Array.from({ length: 20 }, () => post(face, "key-0001", { title: "a" })));
      const bodies = await Promise.all(all.map((r) => r.text()));
      assertEquals(new Set(bodies).size, 1);
      assertEquals(all.filter((r) => r.headers.get("idempotency-replayed") === "true").length, 19);
      assertEquals(face.host.sessions.size, 1);
      assertEquals((await post(face, "key-0001", { title: "b" })).status, 422);
      assertEquals((await post(face, "key-0001", {}, "/v1/sessions/s_1/fork")).status, 201);
      const own = await face.send("POST", "/v1/sessions", {
        token: secrets.other,
        body: { title: "b" },
        headers: { "idempotency-key": "key-0001" },
      });
      assertEquals([own.status, own.headers.get("idempotency-replayed")], [201, null]);
    }));

  for (const key of ["short", "x".repeat(129), "with space 1", "ümlaut-key"]) {
    test(`\`${key.slice(0, 20)}\` is no key`, () =>
      withFace(async (face) => assertEquals((await post(face, key, {})).status, 400)));
  }
});

describe("readiness", () => {
  const rows: readonly { readonly query: string; readonly status: number; readonly components: unknown }[] = [
    { query: "", status: 503, components: { policy: "ok", store: "failed" } },
    { query: "?policy", status: 200, components: { policy: "ok", store: "failed" } },
    { query: "?store&policy", status: 503, components: { policy: "ok", store: "failed" } },
  ];
  for (const { query, status, components } of rows) {
    test(`of ${query || "all parts"} tells no details`, () =>
      withFace(async (face) => {
        face.host.isReady = false;
        const { status: found, body } = await face.json("GET", `/readyz${query}`, { token: null });
        assertEquals([found, (body as { components: unknown }).components], [status, components]);
      }));
  }
});

test("a request id is given back where it is one, else made", () =>
  withFace(async (face) => {
    const ids: (string | null)[] = [];
    for (const id of ["abc-1", "x".repeat(200)]) {
      const response = await face.send("GET", "/nowhere", { headers: { "x-request-id": id } });
      const { instance } = await response.json() as { instance: string };
      assertEquals(response.headers.get("x-request-id"), instance);
      ids.push(instance);
    }
    assertEquals([ids[0], /^[0-9a-f-]{36}$/.test(ids[1] ?? "")], ["abc-1", true]);
  }));

describe("createRates()", () => {
  test("gives what a second allows at once, then as time goes, to each owner and kind its own", () => {
    let now = 0;
    const rates = createRates(() => now);
    const take = (owner: string, kind = "20") => rates.take(owner, kind, 20);
    const first = Array.from({ length: 21 }, () => take("a"));
    assertEquals(first.map((wait) => wait === undefined), [...Array.from({ length: 20 }, () => true), false]);
    assertEquals([take("b"), take("a", "other")], [undefined, undefined]);
    now = 50;
    assertEquals([take("a"), take("a") === undefined], [undefined, false]);
  });
});

describe("a file of tokens", () => {
  const hash = "0".repeat(64);
  const rows: readonly { readonly line: string; readonly expected: unknown }[] = [
    {
      line: `ci read,run sha256:${hash}`,
      expected: [{ caller: { name: "ci", roles: ["read", "run"], profiles: "all", sessions: "own" }, hash }],
    },
    {
      line: `ops admin,read sha256:${hash} profiles=a,b sessions=all`,
      expected: [{
        caller: { name: "ops", roles: ["read", "admin"], profiles: ["a", "b"], sessions: "all" },
        hash,
      }],
    },
    { line: "", expected: [] },
    { line: "# ci read", expected: [] },
    { line: `ci red sha256:${hash}`, expected: ["no role `red`; roles are read, run, approve, admin"] },
    { line: "ci read sha256:00", expected: [/^no hash of the token/] },
    { line: `ci read sha256:${hash} session=all`, expected: [/^`session=all` is not known/] },
    { line: `ci read sha256:${hash} sessions=some`, expected: [/^`sessions=some` is not known/] },
    { line: `/x read sha256:${hash}`, expected: [/^no name was found/] },
  ];
  for (const { line, expected } of rows) {
    test(`line \`${line.replace(hash, "HASH")}\``, () =>
      inFolder((folder) => {
        const file = join(folder, "tokens");
        writeFileSync(file, `${line}\n`, { mode: 0o600 });
        const { credentials, problems } = readTokens(file);
        const found = [...credentials, ...problems.map((p) => p.message)];
        const wanted = expected as readonly unknown[];
        assertEquals(found.length, wanted.length);
        found.forEach((f, i) => {
          const w = wanted[i];
          if (w instanceof RegExp) assertEquals(w.test(String(f)), true);
          else assertEquals(f, w);
        });
      }));
  }

  test("made at the first start is one token for everything, for this user's eyes", () =>
    inFolder((folder) => {
      const file = join(folder, "state", "token");
      assertEquals([makeToken(file), makeToken(file)], [true, false]);
      assertEquals([statSync(file).mode & 0o777, statSync(join(folder, "state")).mode & 0o777], [
        0o600,
        0o700,
      ]);
      const secret = readFileSync(file, "utf8").trim();
      assertEquals(openTokens(file, () => {}).find(secret)?.caller, {
        name: "local",
        roles,
        profiles: "all",
        sessions: "all",
      });
      assertEquals(openTokens(file, () => {}).find(`${secret}x`), undefined);
    }));

  const closed: readonly { readonly name: string; readonly spoil: (file: string) => void }[] = [
    { name: "that others may read", spoil: (file) => chmodSync(file, 0o644) },
    { name: "that others may write", spoil: (file) => chmodSync(file, 0o620) },
    { name: "that is gone", spoil: (file) => rmSync(file) },
    { name: "that was emptied", spoil: (file) => writeFileSync(file, "") },
  ];
  for (const { name, spoil } of closed) {
    test(`${name} has no tokens any more`, () =>
      inFolder((folder) => {
        const file = join(folder, "token");
        makeToken(file);
        const secret = readFileSync(file, "utf8").trim();
        const tokens = openTokens(file, () => {});
        const found = tokens.find(secret);
        spoil(file);
        assertEquals([found?.hash.length, found && tokens.holds(found), tokens.find(secret)], [
          64,
          false,
          undefined,
        ]);
      }));
  }

  test("is read again when it changes, and a token that got other roles is another one", () =>
    inFolder((folder) => {
      const file = join(folder, "tokens");
      const digest = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
      writeFileSync(file, `a read,run sha256:${digest}\n`);
      const tokens = openTokens(file, () => {});
      const before = tokens.find("secret");
      writeFileSync(file, `a read sha256:${digest}\n`);
      assertEquals(before?.caller.roles, ["read", "run"]);
      assertEquals([before && tokens.holds(before), tokens.find("secret")?.caller.roles], [false, ["read"]]);
    }));
});
