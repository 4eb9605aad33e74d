// Operations on the policy in force: reading it, asking it, having it read again. None of them changes it.
import * as v from "valibot";
import { answer } from "./answer.ts";
import { type Operation, operation, postRate } from "./operation.ts";
import { policyProblem } from "./schemas.ts";

const policyState = v.object({
  revision: v.string(),
  activatedAt: v.string(),
  sources: v.array(v.object({ layer: v.string(), path: v.string() })),
  lastError: v.exactOptional(v.object({ at: v.string(), errors: v.array(policyProblem) })),
});

/** Explaining a message runs every pattern of every skill over it. */
const explainRate = 10;

export const policyOperations: readonly Operation[] = [
  operation({
    id: "getPolicy",
    method: "GET",
    path: "/v1/policy",
    summary: "the policy in force, as `writ policy show --json` prints it",
    role: "read",
    headers: ["If-None-Match"],
    answers: {
      200: {
        about: "all of it; where keys are kept, never the keys",
        schema: v.object({ revision: v.string(), policy: v.unknown() }),
        headers: { ETag: "its revision" },
      },
      304: { about: "it is what the client has" },
    },
    problems: [],
    run({ service: { host }, caller, headers }) {
      const value = host.policy(caller);
      const etag = `"${value.revision}"`;
      return headers.get("if-none-match") === etag
        ? { status: 304, value: undefined, headers: { etag } }
        : { status: 200, value, headers: { etag } };
    },
  }),
  operation({
    id: "getPolicyStatus",
    method: "GET",
    path: "/v1/policy/status",
    summary: "which policy is in force since when, and what kept a newer one from being loaded",
    role: "read",
    answers: { 200: { about: "the state", schema: policyState } },
    problems: [],
    run: ({ service: { host } }) => ({ status: 200, value: host.policyStatus() }),
  }),
  operation({
    id: "reloadPolicy",
    method: "POST",
    path: "/v1/policy/reload",
    summary: "read the policy files again; what cannot be loaded leaves the old policy in force",
    role: "admin",
    body: v.strictObject({}),
    answers: {
      200: {
        about: "it is in force for turns that begin from now on",
        schema: v.object({ revision: v.string(), previous: v.string(), changed: v.array(v.string()) }),
      },
    },
    problems: ["policy-invalid"],
    rate: postRate,
    async run({ service: { host } }) {
      return answer(await host.reloadPolicy(), (value) => ({ status: 200, value }));
    },
  }),
  operation({
    id: "explain",
    method: "POST",
    path: "/v1/explain",
    summary: "what the policy would decide on a call, or which skills a message would load; nothing runs",
    role: "read",
    body: v.strictObject({
      message: v.exactOptional(v.pipe(v.string(), v.description("what a user would say"))),
      skill: v.exactOptional(v.pipe(v.string(), v.description("loaded first"))),
      tool: v.exactOptional(v.strictObject({ name: v.string(), input: v.record(v.string(), v.unknown()) })),
      session: v.exactOptional(
        v.pipe(v.string(), v.description("as in this session; absent: as in a new one")),
      ),
      profile: v.exactOptional(v.string()),
    }),
    answers: {
      200: {
        about: "as `writ explain --json` prints it",
        schema: v.objectWithRest({ policyRevision: v.string() }, v.unknown()),
      },
    },
    problems: ["session-not-found", "skill-not-found", "policy-forbids", "policy-invalid"],
    rate: explainRate,
    async run({ service: { host }, caller, body }) {
      if (body.message === undefined && body.tool === undefined) {
        return {
          refused: {
            code: "bad-request",
            detail: "the body asks nothing; give `message`, or `tool` with its `name` and `input`",
          },
        };
      }
      const what = body as Parameters<typeof host.explain>[1];
      return answer(await host.explain(caller, what), (value) => ({ status: 200, value }));
    },
  }),
];
