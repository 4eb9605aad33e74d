import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import type { Agent } from "../../src/agent/agent.ts";
import { answerFor, type Asked } from "../../src/agent/approval.ts";
import type { AnswerKeeper, Approval } from "../../src/agent/ports.ts";
import { decide, type Standing } from "../../src/core/decide.ts";
import type { Answer } from "../../src/core/event.ts";
import type { Facts } from "../../src/core/facts.ts";
import type { Grant } from "../../src/core/grant.ts";
import { type GrantRule, showGrantRule } from "../../src/core/grant_rule.ts";
import type { Layer } from "../../src/core/policy.ts";
import { part } from "../core/decide_generators.ts";
import { layerOf } from "../support/rules.ts";

const standing: Standing = { root: "/ws", active: [], bounds: [], blocks: [] };
const push: Facts = {
  tool: "shell",
  args: {},
  risk: "network",
  subjects: [{ kind: "part", part: part("git push") }],
  box: "default",
  sourcedBy: [],
  mode: "interactive",
  errors: [],
};
const call = { id: "c", tool: "shell", args: {} };
const byDefault = "ask by the builtin default for risk network";

type Setup = {
  readonly layers?: readonly Layer[];
  readonly facts?: Facts;
  readonly now?: Facts;
  readonly grants?: Grant[];
  readonly keeper?: AnswerKeeper;
  /** Who is asked; undefined fails the test by saying no. */
  readonly says?: { readonly allow: boolean; readonly answer: Answer };
};

async function answered(setup: Setup) {
  const { layers = [], facts = push, now = facts, grants = [], keeper, says } = setup;
  const asked: Approval[] = [];
  const agent = {
    policy: { layers, askTimeoutMs: 1000 },
    grants,
    clock: { after: () => () => {} },
    approver: {
      async ask(approval: Approval) {
        asked.push(approval);
        return says ?? { allow: false, answer: { by: "user" } };
      },
    },
    ...(keeper === undefined ? {} : { keeper }),
  } as unknown as Agent;
  const one: Asked = {
    call,
    facts,
    standing,
    verdict: decide(layers, facts, standing),
    preview: undefined,
    again: async () => now,
  };
  const turn = { signal: new AbortController().signal, waiting: <T>(work: () => Promise<T>) => work() };
  const resolved = await answerFor(agent, turn, one);
  const offered = asked.map(({ grant, always, notAlways }) => ({ grant, always, notAlways }));
  return { resolved, offered, grants: grants.map((g) => g.rule) };
}

function keeping(result: Awaited<ReturnType<AnswerKeeper["keep"]>> = { ok: true }) {
  const kept: string[] = [];
  const stored: GrantRule[] = [];
  const keeper: AnswerKeeper = {
    kept: stored,
    async keep(rules: readonly GrantRule[]) {
      kept.push(...rules.map(showGrantRule));
      if (result.ok) stored.push(...rules);
      return result;
    },
  };
  return { keeper, kept };
}

const yes = (scope: Answer["scope"]) => ({ allow: true, answer: { by: "user", scope } as Answer });
const rule = "shell(git push)";
const nothing = { grant: undefined, always: undefined, notAlways: undefined };

describe("answerFor()", () => {
  test("asks nobody where the policy has decided", async () => {
    const layers = [layerOf("user", { deny: ["shell(git push *)"] })];
    assertEquals(await answered({ layers }), {
      resolved: { allow: false, reason: "deny by rule user.deny[1] (shell(git push *)) at /user.yaml:1:3" },
      offered: [],
      grants: [],
    });
    const allowing = [layerOf("user", { allow: ["shell(git push *)"] })];
    assertEquals((await answered({ layers: allowing })).resolved.allow, true);
  });

  test("once keeps nothing", async () => {
    assertEquals(await answered({ says: yes("once") }), {
      resolved: { allow: true, reason: byDefault, answer: { by: "user", scope: "once" } },
      offered: [{ ...nothing, grant: rule }],
      grants: [],
    });
  });

  test("session keeps a grant, which answers the next call", async () => {
    const grants: Grant[] = [];
    assertEquals((await answered({ grants, says: yes("session") })).grants, [rule]);
    assertEquals(await answered({ grants }), {
      resolved: { allow: true, reason: byDefault, answer: { by: "grant", rule } },
      offered: [],
      grants: [rule],
    });
  });

  test("always keeps the rule that was shown, which answers until the policy is read again", async () => {
    const { keeper, kept } = keeping();
    assertEquals(await answered({ keeper, says: yes("always") }), {
      resolved: { allow: true, reason: byDefault, answer: { by: "user", scope: "always" } },
      offered: [{ ...nothing, grant: rule, always: rule }],
      grants: [],
    });
    assertEquals(kept, [rule]);
    const operand: Facts["subjects"][number] = {
      kind: "path",
      tool: "read_file",
      operand: true,
      path: { written: "a", absolute: "/ws/a", resolved: "/ws/a", inWorkspace: true },
    };
    const again = await answered({ keeper, facts: { ...push, subjects: [...push.subjects, operand] } });
    assertEquals(again.resolved.answer, { by: "grant", rule });
    const layers = [layerOf("user", { ask: [{ tool: "shell", command: "git *", always: true }] })];
    assertEquals((await answered({ keeper, layers })).resolved.allow, false);
  });

  test("always that cannot be kept holds for the session, and says so", async () => {
    const { keeper } = keeping({ ok: false, message: "the disk is full" });
    const { resolved, grants } = await answered({ keeper, says: yes("always") });
    assertEquals(resolved.answer, {
      by: "user",
      scope: "session",
      reason: "not kept for good: the disk is full",
    });
    assertEquals(grants, [rule]);
  });

  test("nothing is kept of what changed while it was being approved", async () => {
    const { keeper, kept } = keeping();
    const now: Facts = { ...push, subjects: [{ kind: "part", part: part("git push x") }] };
    const { resolved, grants } = await answered({ keeper, now, says: yes("always") });
    assertEquals(resolved.answer, { by: "changed" });
    assertEquals([kept, grants], [[], []]);
  });

  const offers: readonly (readonly [name: string, setup: Setup, offered: object])[] = [
    ["no keeper: not offered", {}, { ...nothing, grant: rule }],
    [
      "a keeper that cannot keep says why",
      { keeper: { ...keeping().keeper, refused: "it is replaced" } },
      { ...nothing, grant: rule, notAlways: "it is replaced" },
    ],
    [
      "a rule that would change nothing is not offered",
      { keeper: keeping().keeper, layers: [layerOf("user", { ask: ["shell(git push *)"] })] },
      { ...nothing, grant: rule },
    ],
    [
      "an ask that no kept answer answers",
      {
        keeper: keeping().keeper,
        layers: [layerOf("user", { ask: [{ tool: "shell", command: "git push *", always: true }] })],
      },
      nothing,
    ],
    ["what is destructive", { keeper: keeping().keeper, facts: { ...push, risk: "destructive" } }, nothing],
    ["arguments as a whole", {
      keeper: keeping().keeper,
      facts: { ...push, tool: "mcp.gh.merge", subjects: [{ kind: "call" }], risk: "execute" },
    }, { ...nothing, grant: "mcp.gh.merge with exactly these arguments" }],
  ];
  for (const [name, setup, offered] of offers) {
    test(`offers: ${name}`, async () => assertEquals((await answered(setup)).offered, [offered as never]));
  }
});
