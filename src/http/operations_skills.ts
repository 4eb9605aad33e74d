// Operations on skills: which there are, and which a session has loaded.
import * as v from "valibot";
import { answer, answerDone } from "./answer.ts";
import { type Operation, operation, postRate } from "./operation.ts";
import { pageOf, policyProblem, sessionId, skillSchema } from "./schemas.ts";

const skillName = v.pipe(v.string(), v.description("of the skill"));
const sessionSkill = v.strictObject({ session: sessionId, skill: skillName });

export const skillOperations: readonly Operation[] = [
  operation({
    id: "listSkills",
    method: "GET",
    path: "/v1/skills",
    summary: "the skills that sessions of the server's own policy can load",
    role: "read",
    answers: {
      200: {
        about: "all of them, and what could not be read",
        schema: v.object({ ...pageOf(skillSchema).entries, errors: v.array(policyProblem) }),
      },
    },
    problems: [],
    async run({ service: { host }, caller }) {
      return answer(await host.listSkills(caller), (value) => ({ status: 200, value }));
    },
  }),
  operation({
    id: "getSkill",
    method: "GET",
    path: "/v1/skills/:skill",
    summary: "one skill",
    role: "read",
    params: v.strictObject({ skill: skillName }),
    query: v.strictObject({
      body: v.exactOptional(v.pipe(v.picklist(["1"]), v.description("`1`: with its text"))),
    }),
    answers: { 200: { about: "it", schema: skillSchema } },
    problems: ["skill-not-found"],
    async run({ service: { host }, caller, params: { skill }, query }) {
      return answer(
        await host.getSkill(caller, skill, { body: query.body !== undefined }),
        (value) => ({ status: 200, value }),
      );
    },
  }),
  operation({
    id: "loadSkill",
    method: "POST",
    path: "/v1/sessions/:session/skills/:skill",
    summary: "load a skill into a session, as `/skill load NAME` does",
    role: "run",
    params: sessionSkill,
    headers: ["Idempotency-Key"],
    body: v.strictObject({
      arguments: v.exactOptional(v.pipe(v.string(), v.description("put into its text"))),
    }),
    answers: {
      200: {
        about: "it is loaded",
        schema: v.object({ seq: v.number(), loadedBytes: v.number(), contextTokensAdded: v.number() }),
      },
    },
    problems: [
      "session-not-found",
      "session-closed",
      "session-busy",
      "skill-not-found",
      "policy-forbids",
      "idempotency-mismatch",
      "not-owner",
      "too-many-sessions",
      "not-ready",
    ],
    startsWork: true,
    rate: postRate,
    async run({ service: { host }, caller, params: { session, skill }, body, idempotency }) {
      return answerDone(
        await host.loadSkill(caller, session, skill, body, idempotency),
        (value) => ({ status: 200, value }),
      );
    },
  }),
  operation({
    id: "unloadSkill",
    method: "DELETE",
    path: "/v1/sessions/:session/skills/:skill",
    summary: "take a skill out of a session",
    role: "run",
    params: sessionSkill,
    answers: { 204: { about: "it is not loaded any more" } },
    problems: [
      "session-not-found",
      "session-closed",
      "session-busy",
      "skill-not-found",
      "policy-forbids",
      "not-owner",
    ],
    async run({ service: { host }, caller, params: { session, skill } }) {
      return answer(
        await host.unloadSkill(caller, session, skill),
        () => ({ status: 204, value: undefined }),
      );
    },
  }),
];
