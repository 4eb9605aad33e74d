// Operations on sessions as a whole.
import * as v from "valibot";
import { answer, answerDone, sessionPath } from "./answer.ts";
import { bytesOf, sourceOfLog } from "./log_source.ts";
import { type Operation, operation, postRate } from "./operation.ts";
import { labels, pageOf, pageQuery, sessionParams, sessionSchema, sessionStatus } from "./schemas.ts";

const title = v.pipe(v.string(), v.maxLength(200, "at most 200 characters"), v.description("shown in lists"));
const metadata = v.pipe(
  v.record(v.string(), v.unknown()),
  v.description("of the caller's own, given back as it is; at most 16 KiB as JSON"),
  v.check((value) => JSON.stringify(value).length <= 16_384, "at most 16 KiB as JSON"),
);
const name = v.pipe(v.string(), v.minLength(1), v.maxLength(128));

/** The seq of an `If-Match` that a session's ETag was; undefined for any other text. */
function seqOf(header: string | null): number | undefined {
  const found = /^"(\d{1,15})"$/.exec(header ?? "")?.[1];
  return found === undefined ? undefined : Number(found);
}

export const sessionOperations: readonly Operation[] = [
  operation({
    id: "createSession",
    method: "POST",
    path: "/v1/sessions",
    summary: "begin a session",
    role: "run",
    headers: ["Idempotency-Key"],
    body: v.strictObject({
      title: v.exactOptional(title),
      cwd: v.exactOptional(
        v.pipe(
          v.string(),
          v.maxLength(4096),
          v.description("a folder among `server.workspaces`; absent: a fresh one that goes with the session"),
        ),
      ),
      model: v.exactOptional(v.pipe(name, v.description("one of `model.choices`"))),
      profile: v.exactOptional(
        v.pipe(name, v.description("one of `server.profiles` that the token may use")),
      ),
      labels: v.exactOptional(labels),
      metadata: v.exactOptional(metadata),
    }),
    answers: { 201: { about: "it is there", schema: sessionSchema, headers: { Location: "its path" } } },
    problems: ["policy-forbids", "policy-invalid", "too-many-sessions", "idempotency-mismatch", "not-ready"],
    startsWork: true,
    rate: postRate,
    async run({ service: { host }, caller, body, idempotency }) {
      const wanted = body as Parameters<typeof host.createSession>[1];
      return answerDone(await host.createSession(caller, wanted, idempotency), (session) => ({
        status: 201,
        value: session,
        headers: { location: sessionPath(session.id), etag: `"${session.lastSeq}"` },
      }));
    },
  }),
  operation({
    id: "listSessions",
    method: "GET",
    path: "/v1/sessions",
    summary: "the sessions that the token may see, newest first",
    role: "read",
    query: v.strictObject({
      ...pageQuery,
      status: v.exactOptional(v.pipe(sessionStatus, v.description("only these"))),
      label: v.exactOptional(v.pipe(v.string(), v.description("only with this label, as `NAME=VALUE`"))),
    }),
    answers: { 200: { about: "a page of them", schema: pageOf(sessionSchema) } },
    problems: ["bad-cursor"],
    async run({ service: { host }, caller, query: { limit = 100, ...rest } }) {
      return answer(await host.listSessions(caller, { limit, ...rest }), (value) => ({ status: 200, value }));
    },
  }),
  operation({
    id: "getSession",
    method: "GET",
    path: "/v1/sessions/:session",
    summary: "one session",
    role: "read",
    params: sessionParams,
    answers: { 200: { about: "it", schema: sessionSchema, headers: { ETag: "its last seq" } } },
    problems: ["session-not-found"],
    async run({ service: { host }, caller, params: { session } }) {
      return answer(await host.getSession(caller, session), (value) => ({
        status: 200,
        value,
        headers: { etag: `"${value.lastSeq}"` },
      }));
    },
  }),
  operation({
    id: "updateSession",
    method: "PATCH",
    path: "/v1/sessions/:session",
    summary: "change what a session is called and carries",
    role: "run",
    params: sessionParams,
    headers: ["If-Match"],
    body: v.strictObject({ title: v.exactOptional(title), metadata: v.exactOptional(metadata) }),
    answers: { 200: { about: "as it is now", schema: sessionSchema, headers: { ETag: "its last seq" } } },
    problems: ["session-not-found", "session-closed", "precondition-failed", "not-owner"],
    rate: postRate,
    async run({ service: { host }, caller, params: { session }, body, headers }) {
      const ifMatch = headers.get("if-match");
      const ifSeq = seqOf(ifMatch);
      if (ifMatch !== null && ifSeq === undefined) {
        return {
          refused: {
            code: "bad-request",
            detail: '`If-Match` must be the `ETag` of the session, such as `"42"`',
          },
        };
      }
      const change = body as Parameters<typeof host.updateSession>[2];
      return answer(await host.updateSession(caller, session, change, ifSeq), (value) => ({
        status: 200,
        value,
        headers: { etag: `"${value.lastSeq}"` },
      }));
    },
  }),
  operation({
    id: "removeSession",
    method: "DELETE",
    path: "/v1/sessions/:session",
    summary: "end a session; a turn that runs is cancelled first",
    role: "run",
    params: sessionParams,
    query: v.strictObject({
      purge: v.exactOptional(v.pipe(v.picklist(["1"]), v.description("`1`: its log goes too"))),
    }),
    answers: { 204: { about: "it is gone" } },
    problems: ["session-not-found", "not-owner"],
    async run({ service: { host }, caller, params: { session }, query: { purge } }) {
      return answer(await host.removeSession(caller, session, { purge: purge !== undefined }), () => ({
        status: 204,
        value: undefined,
      }));
    },
  }),
  operation({
    id: "forkSession",
    method: "POST",
    path: "/v1/sessions/:session/fork",
    summary: "begin a session with the conversation of another one",
    role: "run",
    params: sessionParams,
    headers: ["Idempotency-Key"],
    body: v.strictObject({
      atSeq: v.exactOptional(
        v.pipe(v.number(), v.integer(), v.minValue(1), v.description("up to this event; absent: all of it")),
      ),
    }),
    answers: { 201: { about: "it is there", schema: sessionSchema, headers: { Location: "its path" } } },
    problems: [
      "session-not-found",
      "bad-cursor",
      "policy-forbids",
      "too-many-sessions",
      "idempotency-mismatch",
      "not-ready",
    ],
    startsWork: true,
    rate: postRate,
    async run({ service: { host }, caller, params: { session }, body, idempotency }) {
      return answerDone(await host.forkSession(caller, session, body, idempotency), (made) => ({
        status: 201,
        value: made,
        headers: { location: sessionPath(made.id), etag: `"${made.lastSeq}"` },
      }));
    },
  }),
  operation({
    id: "listMessages",
    method: "GET",
    path: "/v1/sessions/:session/messages",
    summary: "the conversation as the model sees it",
    role: "read",
    params: sessionParams,
    query: v.strictObject(pageQuery),
    answers: {
      200: {
        about: "a page of it, oldest first",
        schema: pageOf(v.object({
          seq: v.number(),
          role: v.picklist(["user", "assistant", "tool"]),
          content: v.unknown(),
        })),
      },
    },
    problems: ["session-not-found", "bad-cursor"],
    async run({ service: { host }, caller, params: { session }, query: { limit = 100, ...rest } }) {
      const page = { limit, ...rest };
      return answer(await host.messages(caller, session, page), (value) => ({ status: 200, value }));
    },
  }),
  operation({
    id: "exportSession",
    method: "GET",
    path: "/v1/sessions/:session/export",
    summary: "the log as it is kept, byte for byte",
    role: "read",
    params: sessionParams,
    answers: {
      200: { about: "one event a line, up to the last one at this moment", media: ["application/jsonl"] },
    },
    problems: ["session-not-found"],
    async run({ service: { host }, caller, params: { session } }) {
      const opened = await host.openLog(caller, session);
      return answer(opened, (log) => {
        const last = log.lastSeq();
        const source = sourceOfLog(log, { after: 0, upTo: () => last });
        return new Response(bytesOf(source), {
          headers: { "content-type": "application/jsonl", "cache-control": "no-store" },
        });
      });
    },
  }),
];
