import { afterEach, beforeEach, describe, test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { join } from "node:path";
import process from "node:process";
import { calls, says as reply } from "../support/skill_session.ts";
import {
  all,
  codeOf,
  ended,
  got,
  type HostSite,
  makeHostSite,
  newSession,
  policyText,
  reaches,
  running,
  says,
  turnOf,
} from "./site.ts";

let site: HostSite;
beforeEach(() => site = makeHostSite());
afterEach(() => site.close());

const sleeps = [calls("shell", { command: "sleep 30" }), reply("late")];
const quick = [calls("shell", { command: "sleep 0.2" }), reply("done"), reply("again"), reply("third")];

describe("a turn", () => {
  test("is submitted, runs and can be read afterwards; its events are the log, byte for byte", async () => {
    const host = await site.open([reply("hello")]);
    const id = await newSession(host, all, { title: "t", labels: { team: "a" }, metadata: { n: 1 } });
    const view = await says(host, id, "hi");
    const { usage: _, ...rest } = view;
    assertEquals(rest, {
      id: view.id,
      status: "completed",
      stopReason: "final",
      output: { text: "hello" },
      denied: [],
      firstSeq: view.firstSeq!,
      lastSeq: view.lastSeq!,
    });
    const log = got(await host.openLog(all, id));
    const lines = await log.read(0, { events: 1000, bytes: 1e6 });
    assertEquals(lines.map((l) => `${l.line}\n`).join(""), site.log(id));
    assertEquals(lines.map((l) => l.seq), lines.map((_, n) => n + 1));
    assertEquals(lines.map((l) => [l.type, l.turn]), site.events(id).map((e) => [e.type, e.turn]));
    for (const { seq } of lines) {
      const tail = await log.read(seq, { events: 1000, bytes: 1 });
      assertEquals(tail, lines.slice(seq, seq + 1));
    }
    const session = got(await host.getSession(all, id));
    assertEquals([
      session.title,
      session.labels,
      session.metadata,
      session.owner,
      session.status,
      session.turn,
    ], [
      "t",
      { team: "a" },
      { n: 1 },
      "app",
      "idle",
      view.id,
    ]);
  });

  test("while one runs another one is refused, waits, or ends it", async () => {
    const host = await site.open(sleeps);
    const id = await newSession(host);
    const first = got(await host.submitTurn(all, id, turnOf("a"))).value;
    assertEquals(first.status, "running");
    const refused = await host.submitTurn(all, id, turnOf("b"));
    assertEquals(refused.ok ? undefined : [refused.refusal.code, refused.refusal.members], [
      "session-busy",
      { turn: first.id, status: "running", queueDepth: 0 },
    ]);
    const queued = got(await host.submitTurn(all, id, turnOf("c", { onBusy: "queue" }))).value;
    assertEquals(queued.status, "queued");
    const instead = got(await host.submitTurn(all, id, turnOf("d", { onBusy: "interrupt" }))).value;
    assertEquals((await ended(host, id, first.id)).status, "cancelled");
    assertEquals((await ended(host, id, instead.id)).output, { text: "late" });
    assertEquals((await ended(host, id, queued.id)).status, "failed");
    const begun = site.events(id).flatMap((e) => e.type === "user.message" ? [e.data.content] : []);
    assertEquals(begun, ["a", "d", "c"]);
  });

  test("is one of twenty that are asked for at once, where none waits", async () => {
    const host = await site.open(sleeps);
    const id = await newSession(host);
    const sent = await Promise.all(Array.from({ length: 20 }, () => host.submitTurn(all, id, turnOf("a"))));
    const codes = sent.map(codeOf);
    assertEquals([codes.filter((c) => c === "ok").length, codes.filter((c) => c === "session-busy").length], [
      1,
      19,
    ]);
  });

  test("of a session that another process holds is refused, and neither log is touched", async () => {
    const host = await site.open(quick);
    const other = await site.open(quick);
    const id = await newSession(host);
    await says(host, id, "a");
    // Made after the other one looked, so unknown to it.
    assertEquals(codeOf(await other.submitTurn(all, id, turnOf("b"))), "session-not-found");
    const third = await site.open(quick);
    const log = site.log(id);
    assertEquals(codeOf(await third.submitTurn(all, id, turnOf("b"))), "not-owner");
    assertEquals(site.log(id), log);
    assertEquals((await says(host, id, "c")).status, "completed");
  });

  test("at most eight wait, and one that waits can be taken back", async () => {
    const host = await site.open(sleeps);
    const id = await newSession(host);
    const first = got(await host.submitTurn(all, id, turnOf("a"))).value;
    const waiting = [];
    for (let n = 0; n < 8; n++) {
      waiting.push(got(await host.submitTurn(all, id, turnOf(`${n}`, { onBusy: "queue" }))).value.id);
    }
    assertEquals(codeOf(await host.submitTurn(all, id, turnOf("x", { onBusy: "queue" }))), "queue-full");
    for (const turn of waiting) {
      assertEquals(got(await host.cancelTurn(all, id, turn, {})).status, "cancelled");
    }
    assertEquals(got(await host.getSession(all, id)).queueDepth, 0);
    await host.cancelTurn(all, id, first.id, {});
    assertEquals((await ended(host, id, first.id)).status, "cancelled");
  });

  test("that is cancelled is cancelling until it has ended, and what it started is gone", async () => {
    const seconds = `5${process.pid}`;
    const host = await site.open([calls("shell", { command: `sleep ${seconds}` }), reply("never")]);
    const id = await newSession(host);
    const { id: turn } = got(await host.submitTurn(all, id, turnOf("a"))).value;
    while (!site.events(id).some((e) => e.type === "tool.started")) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assertEquals(got(await host.cancelTurn(all, id, turn, {})).status, "cancelling");
    assertEquals((await ended(host, id, turn)).status, "cancelled");
    assertEquals(running(seconds), 0);
    assertEquals(got(await host.cancelTurn(all, id, turn, {})).status, "cancelled");
    assertEquals(codeOf(await host.cancelTurn(all, id, "t_999", {})), "turn-not-found");
  });

  test("is said more to, which the model is shown with its next request", async () => {
    const host = await site.open(quick);
    const id = await newSession(host);
    const turn = got(await host.submitTurn(all, id, turnOf("a"))).value;
    got(await host.steerTurn(all, id, turn.id, { content: "and b" }));
    assertEquals((await ended(host, id, turn.id)).status, "completed");
    const types = site.events(id).map((e) => e.type);
    assert(types.indexOf("user.steered") > types.indexOf("tool.completed"));
    assert(types.lastIndexOf("context.built") > types.indexOf("user.steered"));
    assertEquals(
      got(await host.messages(all, id, { limit: 10 })).items.map((m) => m.role),
      ["user", "assistant", "tool", "user", "assistant"],
    );
    assertEquals(codeOf(await host.steerTurn(all, id, turn.id, { content: "c" })), "turn-ended");
  });

  test("is held to limits that are stricter than the policy, and to no others", async () => {
    const host = await site.open(quick);
    const id = await newSession(host);
    const turn = got(
      await host.submitTurn(all, id, turnOf("a", { limits: { iterations: 1, toolCalls: 9999 } })),
    );
    const { status, stopReason } = await ended(host, id, turn.value.id);
    assertEquals([status, stopReason], ["failed", "limit"]);
  });

  test("with a skill or a model that there is not is refused before it begins", async () => {
    const host = await site.open(quick);
    const id = await newSession(host);
    assertEquals(
      [
        codeOf(await host.submitTurn(all, id, turnOf("a", { skill: { name: "none" } }))),
        codeOf(await host.submitTurn(all, id, turnOf("a", { model: "none" }))),
        codeOf(await host.submitTurn(all, "no-such", turnOf("a"))),
      ],
      ["skill-not-found", "policy-forbids", "session-not-found"],
    );
    assertEquals(site.events(id).some((e) => e.type === "turn.submitted"), false);
  });
});

describe("a key", () => {
  const key = (bodyHash: string) => ({ key: "key-0001", bodyHash, scope: "app /turns" });

  test("makes one turn of twenty requests at once, also after a restart", async () => {
    const host = await site.open(quick);
    const id = await newSession(host);
    const sent = await Promise.all(
      Array.from({ length: 20 }, () => host.submitTurn(all, id, turnOf("a"), key("h1"))),
    );
    const views = sent.map(got);
    assertEquals(new Set(views.map((v) => v.value.id)).size, 1);
    assertEquals(views.filter((v) => !v.replayed).length, 1);
    assertEquals(codeOf(await host.submitTurn(all, id, turnOf("b"), key("h2"))), "idempotency-mismatch");
    await ended(host, id, views[0]!.value.id);
    await host.drain({ graceMs: 0 });
    const next = await site.open(quick);
    const again = got(await next.submitTurn(all, id, turnOf("a"), key("h1")));
    assertEquals([again.replayed, again.value.id, again.value.status], [
      true,
      views[0]!.value.id,
      "completed",
    ]);
    assertEquals(codeOf(await next.submitTurn(all, id, turnOf("b"), key("h2"))), "idempotency-mismatch");
    assertEquals(site.events(id).filter((e) => e.type === "user.message").length, 1);
  });

  test("makes one session of many requests, also after a restart", async () => {
    const host = await site.open(quick);
    const made = await Promise.all([1, 2, 3].map(() => host.createSession(all, {}, key("h1"))));
    const ids = new Set(made.map((m) => got(m).value.id));
    assertEquals(ids.size, 1);
    await host.drain({ graceMs: 0 });
    const next = await site.open(quick);
    const again = got(await next.createSession(all, {}, key("h1")));
    assertEquals([again.replayed, ids.has(again.value.id)], [true, true]);
    assertEquals(codeOf(await next.createSession(all, {}, key("h2"))), "idempotency-mismatch");
  });
});

describe("room", () => {
  test("two turns do not run in one workspace; one that waits begins when it is free", async () => {
    site.put("policy.yaml", policyText(`server: {workspaces: [${join(site.top, "ws")}]}`));
    const host = await site.open((n) => n === 0 ? quick : [reply("second")]);
    const cwd = join(site.top, "ws");
    const [a, b] = [await newSession(host, all, { cwd }), await newSession(host, all, { cwd })];
    const first = got(await host.submitTurn(all, a, turnOf("a"))).value;
    assertEquals(codeOf(await host.submitTurn(all, b, turnOf("b"))), "workspace-busy");
    const second = got(await host.submitTurn(all, b, turnOf("b", { onBusy: "queue" }))).value;
    assertEquals(second.status, "queued");
    assertEquals((await ended(host, b, second.id)).output, { text: "second" });
    assertEquals((await ended(host, a, first.id)).status, "completed");
    assertEquals(codeOf(await host.createSession(all, { cwd: site.top })), "policy-forbids");
  });

  test("no more turns run at once than the policy says", async () => {
    site.put("policy.yaml", policyText(`server: {max_concurrent_turns: 1}`));
    const host = await site.open(quick);
    const [a, b] = [await newSession(host), await newSession(host)];
    const first = got(await host.submitTurn(all, a, turnOf("a"))).value;
    assertEquals(codeOf(await host.submitTurn(all, b, turnOf("b"))), "too-many-turns");
    const second = got(await host.submitTurn(all, b, turnOf("b", { onBusy: "queue" }))).value;
    assertEquals((await ended(host, b, second.id)).status, "completed");
    assertEquals((await ended(host, a, first.id)).status, "completed");
  });

  test("no more sessions are loaded than the policy says: an idle one makes room and comes back", async () => {
    site.put("policy.yaml", policyText(`server: {max_sessions: 1}`));
    const host = await site.open(sleeps);
    const a = await newSession(host);
    const b = await newSession(host);
    const loaded = () => host.figures().find((f) => f.name === "writ_sessions_loaded")?.samples;
    assertEquals(loaded(), [{ value: 1 }]);
    const turn = got(await host.submitTurn(all, a, turnOf("a"))).value;
    assertEquals(codeOf(await host.submitTurn(all, b, turnOf("b"))), "too-many-sessions");
    assertEquals(got(await host.getSession(all, b)).status, "idle");
    await host.cancelTurn(all, a, turn.id, {});
    await ended(host, a, turn.id);
    assertEquals(got(await host.submitTurn(all, b, turnOf("b"))).value.status, "running");
  });

  test("what nobody has used for a while is put away and loaded again on access", async () => {
    site.put("policy.yaml", policyText(`server: {idle_unload: 1s}`));
    const host = await site.open([reply("one"), reply("two")], { lookMs: 50 });
    const id = await newSession(host);
    await says(host, id, "a");
    const log = got(await host.openLog(all, id));
    while (host.figures().some((f) => f.name === "writ_sessions_loaded" && f.samples[0]?.value === 1)) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    const before = log.lastSeq();
    assertEquals((await says(host, id, "b")).status, "completed");
    assertEquals((await log.read(before, { events: 1, bytes: 1 })).map((l) => l.type), ["session.resumed"]);
  });
});

test("a policy that breaks leaves the one before in force; what runs keeps its own", async () => {
  const host = await site.open(quick);
  const id = await newSession(host);
  await says(host, id, "a");
  const before = host.policyStatus().revision;
  site.put("policy.yaml", "version: 1\nnonsense: 1\n");
  assertEquals(codeOf(await host.reloadPolicy()), "policy-invalid");
  assertEquals(host.policyStatus().revision, before);
  assertEquals(host.policyStatus().lastError?.errors.length, 1);
  assertEquals((await says(host, id, "b")).status, "completed");
  site.put("policy.yaml", policyText("limits: {iterations: 7}"));
  assertEquals(got(await host.reloadPolicy()).changed, ["limits.iterations"]);
  assertEquals((await says(host, id, "c")).status, "completed");
  assertEquals(site.events(id).filter((e) => e.type === "policy.changed").length, 1);
});

test("reaches() sees a status on its way", async () => {
  const host = await site.open(quick);
  const id = await newSession(host);
  const turn = got(await host.submitTurn(all, id, turnOf("a"))).value;
  assertEquals((await reaches(host, id, turn.id, "completed")).status, "completed");
});

test("a turn that runs keeps the policy that it began with; the next one has the new", async () => {
  const host = await site.open(quick);
  const id = await newSession(host);
  const turn = got(await host.submitTurn(all, id, turnOf("a"))).value;
  site.put("policy.yaml", policyText("limits: {iterations: 1}"));
  got(await host.reloadPolicy());
  assertEquals((await ended(host, id, turn.id)).status, "completed");
  const next = await says(host, id, "b");
  const changed = site.events(id).filter((e) => e.type === "policy.changed").map((e) => e.seq);
  assertEquals(changed.map((seq) => seq > turn.firstSeq! && seq < next.firstSeq!), [true]);
  assertEquals(changed.map((seq) => seq > firstOf(id, "turn.completed")), [true]);
});

/** Seq of the first event of a type. */
function firstOf(id: string, type: string): number {
  return site.events(id).find((e) => e.type === type)?.seq ?? 0;
}

test("a model is chosen for a session or for one turn, and only among those that there are", async () => {
  const model = `model: {provider: script, name: big, choices: {small: {name: little}}}`;
  site.put("policy.yaml", policyText().replace("model: {provider: script}", model));
  const host = await site.open([reply("1"), reply("2"), reply("3")]);
  const id = await newSession(host);
  const modelOf = async () => got(await host.getSession(all, id)).model;
  const seen = [await modelOf()];
  const turn = got(await host.submitTurn(all, id, turnOf("a", { model: "small" }))).value;
  await ended(host, id, turn.id);
  seen.push(await modelOf());
  await says(host, id, "b");
  seen.push(await modelOf());
  assertEquals(seen, ["big", "little", "big"]);
  const small = await newSession(host, all, { model: "small" });
  await says(host, small, "c");
  assertEquals(got(await host.getSession(all, small)).model, "little");
  assertEquals(codeOf(await host.createSession(all, { model: "none" })), "policy-forbids");
});
