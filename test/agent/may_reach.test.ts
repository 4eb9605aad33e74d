// What a tool in the middle of its call is told of hosts that its arguments do not name.
import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import type { Agent } from "../../src/agent/agent.ts";
import { hostFacts } from "../../src/agent/inspect.ts";
import type { Tool } from "../../src/agent/ports.ts";
import { runPrepared } from "../../src/agent/tool_call.ts";
import type { HostFact } from "../../src/core/facts.ts";
import { emptyGateState } from "../../src/core/gate_state.ts";
import { type Grant, grantFor } from "../../src/core/grant.ts";
import { type Entries, layerOf, ruleOf } from "../support/rules.ts";

const host: HostFact = { written: "https://a.test/x", host: "a.test", private: false };
const inside: HostFact = { ...host, private: true, leadsTo: "10.0.0.1" };
const site = { mode: "interactive", sourcedBy: [] } as const;

type Setup = {
  readonly rules?: Entries;
  readonly grants?: readonly Grant[];
  readonly bound?: readonly string[];
};

async function reaches(asked: HostFact, { rules = {}, grants = [], bound }: Setup) {
  let heard: unknown;
  const tool: Tool = {
    name: "fetch_url",
    description: "",
    inputSchema: { type: "object" },
    inspect: () => ({ risk: "network", subjects: [{ kind: "call" }] }),
    async run(_, at) {
      heard = at.mayReach(asked);
      return { ok: true, content: "" };
    },
  };
  const active = bound === undefined
    ? []
    : [{ name: "s", trigger: "model", bounding: true, allowedTools: bound }];
  const agent = {
    policy: {
      root: "/ws",
      layers: [layerOf("user", rules)],
      gates: [],
      skills: { forced: [], undeclaredTools: "read_only", combineBounds: "intersection" },
    },
    recorder: { state: { active, gates: emptyGateState }, emit: () => {}, sync: async () => {} },
    clock: { elapsed: () => 0 },
    place: { root: "/ws" },
    mode: "interactive",
    grants,
    allowedTool: (declared: string) => ({ shown: declared, matchers: ruleOf(declared) }),
  } as unknown as Agent;
  const turn = {
    signal: new AbortController().signal,
    offered: [tool],
    waiting: <T>(work: () => Promise<T>) => work(),
    fork: () => Promise.reject(new Error("no fork here")),
  };
  const call = { id: "c", tool: "fetch_url", args: {} };
  const facts = hostFacts("fetch_url", host, site);
  await runPrepared(agent, turn, { ready: true, call, tool, facts });
  return heard;
}

describe("mayReach()", () => {
  const allow = ["fetch_url(a.test)"];
  const kept = grantFor(hostFacts("fetch_url", host, site));
  const grants = kept === undefined ? [] : [kept];
  const byDefault = "ask by the builtin default for risk network";
  const byPrivate =
    "deny by rule builtin.private (fetch_url(@private)), built in: the name leads to 10.0.0.1, a private or loopback address";
  const cases: readonly (readonly [string, HostFact, Setup, boolean, string])[] = [
    [
      "what a rule allows",
      host,
      { rules: { allow } },
      true,
      "allow by rule user.allow[21] (fetch_url(a.test)) at /user.yaml:21:3",
    ],
    ["not what would be asked", host, {}, false, byDefault],
    ["what a kept answer covers", host, { grants }, true, byDefault],
    [
      "not what is asked each time",
      host,
      {
        rules: { ask: [{ id: "each", tool: "fetch_url", always: true }] },
        grants,
      },
      false,
      "ask by rule each (fetch_url) at /user.yaml:11:3",
    ],
    [
      "not what a rule denies, whatever was kept",
      host,
      { rules: { deny: ["fetch_url(*.test)"], allow }, grants },
      false,
      "deny by rule user.deny[1] (fetch_url(*.test)) at /user.yaml:1:3",
    ],
    ["not where it is private", inside, { rules: { allow: ["fetch_url(*)"] }, grants }, false, byPrivate],
    [
      "private where it is named",
      inside,
      { rules: { allow } },
      true,
      "allow by rule user.allow[21] (fetch_url(a.test)) at /user.yaml:21:3",
    ],
    [
      "not what a skill does not list",
      host,
      { rules: { allow }, bound: ["read_file"] },
      false,
      "tool not in skill.allowed_tools",
    ],
    [
      "what a skill lists",
      host,
      { rules: { allow }, bound: ["fetch_url(*.test)"] },
      true,
      "allow by rule user.allow[21] (fetch_url(a.test)) at /user.yaml:21:3",
    ],
  ];
  for (const [name, asked, setup, allowed, reason] of cases) {
    test(name, async () => assertEquals(await reaches(asked, setup), { allowed, reason }));
  }
});
