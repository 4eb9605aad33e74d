// Every status and every code that the API document promises is reached, and every answer fits the document that is served.
import { describe, test } from "bun:test";
import { assertEquals } from "@std/assert";
import { problemCodes } from "../../src/http/openapi.ts";
import type { Operation } from "../../src/http/operation.ts";
import { operations } from "../../src/http/operations.ts";
import { type ProblemCode, problems } from "../../src/http/problem.ts";
import { streamLimits } from "../../src/http/streams.ts";
import type { RefusalCode, SessionHost } from "../../src/server/host.ts";
import { faultOf, type Node } from "./document.ts";
import { type Face, openFace, secrets, type Sent } from "./face.ts";
import { pendingPermission } from "./fake_host.ts";

type Request = { readonly path: string; readonly sent?: Sent };

/** A request of each operation that is carried out, and the function of the host that it ends in. */
const good: { readonly [id: string]: Request & { readonly calls?: keyof SessionHost } } = {
  health: { path: "/healthz" },
  ready: { path: "/readyz", calls: "ready" },
  metrics: { path: "/metrics", calls: "figures" },
  version: { path: "/v1/version", calls: "policyStatus" },
  openapi: { path: "/v1/openapi.json" },
  getDrain: { path: "/v1/drain", calls: "runningTurns" },
  drain: { path: "/v1/drain", sent: { body: { graceSeconds: 1 } }, calls: "runningTurns" },
  createSession: {
    path: "/v1/sessions",
    sent: { body: { title: "t", labels: { a: "b" }, metadata: { any: [1] } } },
    calls: "createSession",
  },
  listSessions: { path: "/v1/sessions?limit=1&status=idle&label=a%3Db", calls: "listSessions" },
  getSession: { path: "/v1/sessions/s_1", calls: "getSession" },
  updateSession: { path: "/v1/sessions/s_1", sent: { body: { title: "new" } }, calls: "updateSession" },
  removeSession: { path: "/v1/sessions/s_1?purge=1", calls: "removeSession" },
  forkSession: { path: "/v1/sessions/s_1/fork", sent: { body: {} }, calls: "forkSession" },
  listMessages: { path: "/v1/sessions/s_1/messages", calls: "messages" },
  exportSession: { path: "/v1/sessions/s_1/export", calls: "openLog" },
  submitTurn: { path: "/v1/sessions/s_1/turns", sent: { body: { input: "hi" } }, calls: "submitTurn" },
  getTurn: { path: "/v1/sessions/s_1/turns/t_1", calls: "getTurn" },
  cancelTurn: { path: "/v1/sessions/s_1/turns/t_1/cancel", sent: { body: {} }, calls: "cancelTurn" },
  steerTurn: {
    path: "/v1/sessions/s_1/turns/t_1/input",
    sent: { body: { content: "more" } },
    calls: "steerTurn",
  },
  readEvents: { path: "/v1/sessions/s_1/events?after=0&limit=2", calls: "openLog" },
  readFeed: { path: "/v1/events?after=c0&types=session.*", calls: "openFeed" },
  listPermissions: { path: "/v1/permissions", calls: "listPermissions" },
  getPermission: { path: "/v1/sessions/s_1/permissions/p_1", calls: "getPermission" },
  answerPermission: {
    path: "/v1/sessions/s_1/permissions/p_1",
    sent: { body: { decision: "allow" } },
    calls: "answerPermission",
  },
  listSkills: { path: "/v1/skills", calls: "listSkills" },
  getSkill: { path: "/v1/skills/review?body=1", calls: "getSkill" },
  loadSkill: { path: "/v1/sessions/s_1/skills/review", sent: { body: {} }, calls: "loadSkill" },
  unloadSkill: { path: "/v1/sessions/s_1/skills/review", calls: "unloadSkill" },
  getPolicy: { path: "/v1/policy", calls: "policy" },
  getPolicyStatus: { path: "/v1/policy/status", calls: "policyStatus" },
  reloadPolicy: { path: "/v1/policy/reload", sent: { body: {} }, calls: "reloadPolicy" },
  explain: { path: "/v1/explain", sent: { body: { message: "review" } }, calls: "explain" },
};

/** Further ways to succeed, where an operation has more than one status. */
const further: { readonly [key: string]: (face: Face) => Request } = {
  "submitTurn 200": () => ({
    path: "/v1/sessions/s_1/turns",
    sent: { body: { input: "end" }, headers: { prefer: "wait=9" } },
  }),
  "cancelTurn 200": (face) => {
    face.host.change("s_1", "t_1", { status: "completed", stopReason: "final", lastSeq: 2 });
    return good["cancelTurn"] as Request;
  },
  "getPolicy 304": () => ({ path: "/v1/policy", sent: { headers: { "if-none-match": '"r1"' } } }),
};

/** How a code is provoked that does not come from the host. */
const provoked: {
  readonly [code: string]: (row: Request, operation: Operation, face: Face) => Request | Promise<Request>;
} = {
  "host-denied": (row) => withHeaders(row, { host: "evil.example" }),
  "origin-denied": (row) => withHeaders(row, { origin: "https://evil.example" }),
  unauthorized: (row) => ({ ...row, sent: { ...row.sent, token: "wrong" } }),
  forbidden: (row, { role }) => ({
    ...row,
    sent: { ...row.sent, token: role === "read" ? secrets.only : secrets.read },
  }),
  "unsupported-media-type": (row) => withHeaders(row, { "content-type": "text/plain" }),
  "body-too-large": (row) => ({ ...row, sent: { raw: `{"input":"${"x".repeat(1 << 20)}"}` } }),
  draining: async (row, _, face) => {
    await face.host.drain({ graceMs: 0 });
    return row;
  },
  "not-ready": (row, _, face) => {
    face.host.isReady = false;
    return row;
  },
};
const special: { readonly [key: string]: (row: Request, face: Face) => Request | Promise<Request> } = {
  "readEvents bad-cursor": () => ({ path: "/v1/sessions/s_1/events?after=99" }),
  "readEvents cursor-expired": (_, face) => {
    const session = face.host.sessions.get("s_1");
    if (session !== undefined) session.oldest = 3;
    return { path: "/v1/sessions/s_1/events?after=1" };
  },
  "readEvents too-many-streams": (_, face) => fill(face, "/v1/sessions/s_1/events"),
  "readFeed too-many-streams": (_, face) => fill(face, "/v1/events"),
  "submitTurn too-many-streams": async (_, face) => ({
    path: "/v1/sessions/s_1/turns",
    sent: { ...(await fill(face, "/v1/events")).sent, body: { input: "x" } },
  }),
  "explain bad-request": () => ({ path: "/v1/explain", sent: { body: {} } }),
  "exportSession bad-request": (row) => ({ path: `${row.path}?x=1` }),
};

async function fill(face: Face, path: string): Promise<Request> {
  const sent = { headers: { accept: "text/event-stream" } };
  for (let i = 0; i < streamLimits.token; i++) await face.send("GET", path, sent);
  return { path, sent };
}

function withHeaders(row: Request, headers: { readonly [name: string]: string }): Request {
  return { ...row, sent: { ...row.sent, headers: { ...row.sent?.headers, ...headers } } };
}

async function prepared(how: Parameters<typeof openFace>[0] = {}): Promise<Face> {
  const face = openFace(how);
  await face.send("POST", "/v1/sessions", { body: {} });
  await face.send("POST", "/v1/sessions/s_1/turns", { body: { input: "go on" } });
  face.host.sessions.get("s_1")?.permissions.set("p_1", pendingPermission("s_1", "p_1"));
  return face;
}

describe("answers fit the document that is served", () => {
  for (const operation of operations) {
    const row = good[operation.id];
    test(`${operation.id}: carried out`, async () => {
      const wanted = Object.keys(operation.answers).map(Number);
      const reached: number[] = [];
      for (const status of wanted) {
        const face = await prepared();
        const request = further[`${operation.id} ${status}`]?.(face) ?? row;
        if (request === undefined) throw new Error(`no request of \`${operation.id}\` in this test`);
        const response = await face.send(operation.method, request.path, request.sent);
        reached.push(response.status);
        assertEquals(await faultOf(face.document, operation, response), []);
        face.close();
      }
      assertEquals(reached, wanted);
    });

    for (const code of problemCodes(operation)) {
      test(`${operation.id}: ${code}`, async () => {
        const face = await prepared({
          ...(code === "rate-limited" ? { rates: { take: () => 1 } } : {}),
          ...(code === "internal-error" ? { document: () => Promise.reject(new Error("broken")) } : {}),
        });
        if (row === undefined) throw new Error(`no request of \`${operation.id}\` in this test`);
        const request = await provoke(face, operation, code, row);
        const response = await face.send(operation.method, request.path, request.sent);
        const fault = await faultOf(face.document, operation, response.clone());
        const body = await response.json() as Node;
        assertEquals([response.status, body["type"]], [problems[code].status, `urn:writ:problem:${code}`]);
        assertEquals(fault, []);
        const retries = response.status === 429 || response.status === 503;
        assertEquals(response.headers.has("retry-after"), retries);
        assertEquals(face.faults.length, code === "internal-error" ? 1 : 0);
        face.close();
      });
    }
  }
});

async function provoke(face: Face, operation: Operation, code: ProblemCode, row: Request): Promise<Request> {
  const own = special[`${operation.id} ${code}`];
  if (own !== undefined) return await own(row, face);
  if (code === "rate-limited") return row;
  if (code === "bad-request") return badRequest(operation, row);
  const calls = good[operation.id]?.calls;
  if (code === "internal-error") {
    const broken = () => {
      throw new Error("broken");
    };
    if (calls !== undefined) Object.assign(face.host, { [calls]: broken });
    return row;
  }
  if (provoked[code] !== undefined && !(code === "not-ready" && operation.id !== "ready")) {
    return await provoked[code](row, operation, face);
  }
  if (calls === undefined) throw new Error(`\`${operation.id}\` calls nothing that could refuse`);
  face.host.refuse(calls, { code: code as RefusalCode, detail: "refused" });
  return row;
}

function badRequest({ body, query }: Operation, row: Request): Request {
  if (body !== undefined) return { ...row, sent: { ...row.sent, raw: '{"unknown":1}' } };
  return query === undefined ? row : { path: `${row.path}${row.path.includes("?") ? "&" : "?"}unknown=1` };
}
