// Operations on questions that wait for an answer.
import * as v from "valibot";
import { answer, answerDone } from "./answer.ts";
import { type Operation, operation, postRate } from "./operation.ts";
import { pageOf, pageQuery, permissionParams, permissionSchema, permissionStatus } from "./schemas.ts";

export const permissionOperations: readonly Operation[] = [
  operation({
    id: "listPermissions",
    method: "GET",
    path: "/v1/permissions",
    summary: "questions of all sessions that the token may see, oldest first",
    role: "approve",
    query: v.strictObject({
      ...pageQuery,
      status: v.exactOptional(v.pipe(permissionStatus, v.description("only these; default `pending`"))),
      session: v.exactOptional(v.pipe(v.string(), v.description("only of this session"))),
    }),
    answers: { 200: { about: "a page of them", schema: pageOf(permissionSchema) } },
    problems: ["bad-cursor", "session-not-found"],
    async run({ service: { host }, caller, query: { limit = 100, status = "pending", ...rest } }) {
      return answer(
        await host.listPermissions(caller, { limit, status, ...rest }),
        (value) => ({ status: 200, value }),
      );
    },
  }),
  operation({
    id: "getPermission",
    method: "GET",
    path: "/v1/sessions/:session/permissions/:permission",
    summary: "one question",
    role: "approve",
    params: permissionParams,
    answers: { 200: { about: "it", schema: permissionSchema } },
    problems: ["session-not-found", "permission-not-found"],
    async run({ service: { host }, caller, params: { session, permission } }) {
      return answer(
        await host.getPermission(caller, session, permission),
        (value) => ({ status: 200, value }),
      );
    },
  }),
  operation({
    id: "answerPermission",
    method: "POST",
    path: "/v1/sessions/:session/permissions/:permission",
    summary: "answer a question; of two answers the first counts",
    role: "approve",
    params: permissionParams,
    headers: ["Idempotency-Key"],
    body: v.strictObject({
      decision: v.pipe(v.picklist(["allow", "deny"]), v.description("the answer")),
      scope: v.exactOptional(
        v.pipe(v.picklist(["once", "session"]), v.description("how long it counts; default `once`")),
      ),
      reason: v.exactOptional(
        v.pipe(v.string(), v.maxLength(1000), v.description("shown to the model, and kept in the log")),
      ),
      ifInputSha256: v.exactOptional(
        v.pipe(
          v.string(),
          v.regex(/^[0-9a-f]{64}$/, "64 hexadecimal digits"),
          v.description("only while this is what is asked about"),
        ),
      ),
    }),
    answers: { 200: { about: "it has this answer", schema: permissionSchema } },
    problems: [
      "session-not-found",
      "permission-not-found",
      "permission-resolved",
      "permission-expired",
      "precondition-failed",
      "policy-forbids",
      "idempotency-mismatch",
      "not-owner",
    ],
    rate: postRate,
    async run({ service: { host }, caller, params: { session, permission }, body, idempotency }) {
      const given = { scope: "once" as const, ...body };
      return answerDone(
        await host.answerPermission(caller, session, permission, given, idempotency),
        (value) => ({ status: 200, value }),
      );
    },
  }),
];
