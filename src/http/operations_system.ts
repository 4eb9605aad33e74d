// Operations on the process itself: is it there, what is it, is it going down.
import * as v from "valibot";
import { metricsText, metricsType } from "./metrics.ts";
import { type Operation, operation, postRate } from "./operation.ts";

/** What `ready` of the host looks at. */
const parts = ["policy", "store", "sandbox"] as const;
const drainState = v.object({ draining: v.boolean(), runningTurns: v.number() });

export const systemOperations: readonly Operation[] = [
  operation({
    id: "health",
    method: "GET",
    path: "/healthz",
    summary: "the process answers; nothing else is looked at",
    answers: { 200: { about: "it does", schema: v.object({ status: v.literal("ok") }) } },
    problems: [],
    run: () => ({ status: 200, value: { status: "ok" } }),
  }),
  operation({
    id: "ready",
    method: "GET",
    path: "/readyz",
    summary: "whether new work would be taken; parts that the query names are looked at alone",
    query: v.strictObject(v.entriesFromList(parts, v.exactOptional(v.string()))),
    answers: {
      200: {
        about: "it would",
        schema: v.object({
          status: v.literal("ready"),
          components: v.record(v.string(), v.picklist(["ok", "failed"])),
        }),
      },
    },
    problems: ["not-ready", "draining"],
    async run({ service: { host }, query }) {
      if (host.draining()) return { refused: { code: "draining", detail: "the server is going down" } };
      const { ready, components } = await host.ready();
      // What is wrong in detail is for those who have a token: a probe has none.
      const states = Object.fromEntries(
        Object.entries(components).map(([name, state]) => [name, state === "ok" ? "ok" : "failed"]),
      );
      const asked = Object.keys(query).filter((name) => name in states);
      if (asked.length === 0 ? ready : asked.every((name) => states[name] === "ok")) {
        return { status: 200, value: { status: "ready", components: states } };
      }
      return {
        refused: {
          code: "not-ready",
          detail: "a part of the server does not work; its log on standard error says why",
          members: { components: states },
        },
      };
    },
  }),
  operation({
    id: "metrics",
    method: "GET",
    path: "/metrics",
    summary: "figures for Prometheus",
    role: "read",
    answers: { 200: { about: "the text format of Prometheus", media: ["text/plain"] } },
    problems: [],
    run: ({ service }) =>
      new Response(metricsText(service), {
        headers: {
          "content-type": metricsType,
          "cache-control": "no-store",
          "x-content-type-options": "nosniff",
        },
      }),
  }),
  operation({
    id: "version",
    method: "GET",
    path: "/v1/version",
    summary: "what answers here",
    role: "read",
    answers: {
      200: {
        about: "the version",
        schema: v.object({
          version: v.string(),
          runtime: v.string(),
          api: v.literal("v1"),
          instance: v.pipe(v.string(), v.description("another one after every start")),
          policyRevision: v.string(),
        }),
      },
    },
    problems: [],
    run: ({ service: { host, version, runtime, instance } }) => ({
      status: 200,
      value: { version, runtime, api: "v1", instance, policyRevision: host.policyStatus().revision },
    }),
  }),
  operation({
    id: "openapi",
    method: "GET",
    path: "/v1/openapi.json",
    summary: "this document",
    role: "read",
    answers: { 200: { about: "OpenAPI 3.1", schema: v.record(v.string(), v.unknown()) } },
    problems: [],
    run: async ({ service }) => ({ status: 200, value: await service.document() }),
  }),
  operation({
    id: "getDrain",
    method: "GET",
    path: "/v1/drain",
    summary: "whether the server is going down, and what it waits for",
    role: "admin",
    answers: { 200: { about: "the state", schema: drainState } },
    problems: [],
    run: ({ service: { host } }) => ({
      status: 200,
      value: { draining: host.draining(), runningTurns: host.runningTurns() },
    }),
  }),
  operation({
    id: "drain",
    method: "POST",
    path: "/v1/drain",
    summary: "go down: start no more work, give running turns their time, end",
    role: "admin",
    body: v.strictObject({
      graceSeconds: v.exactOptional(
        v.pipe(
          v.number(),
          v.integer(),
          v.minValue(0),
          v.maxValue(3600),
          v.description("time for running turns; default `server.drain_grace`"),
        ),
      ),
    }),
    answers: { 202: { about: "it goes down", schema: drainState } },
    problems: [],
    rate: postRate,
    run({ service: { host, goDown }, body }) {
      goDown(body.graceSeconds === undefined ? undefined : body.graceSeconds * 1000);
      return { status: 202, value: { draining: true, runningTurns: host.runningTurns() } };
    },
  }),
];
