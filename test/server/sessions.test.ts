import { afterEach, beforeEach, describe, test } from "bun:test";
import { assertEquals, assertMatch } from "@std/assert";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Caller } from "../../src/server/host.ts";
import { says as reply, skillText } from "../support/skill_session.ts";
import {
  all,
  codeOf,
  got,
  type HostSite,
  makeHostSite,
  newSession,
  policyText,
  says,
  turnOf,
} from "./site.ts";

let site: HostSite;
beforeEach(() => {
  site = makeHostSite();
  site.put("home/.config/writ/skills/note/SKILL.md", skillText("note"));
});
afterEach(() => site.close());

const replies = [reply("one"), reply("two"), reply("three")];
const own: Caller = { ...all, name: "own", sessions: "own" };

describe("sessions", () => {
  test("are seen by who made them, and by those who may see all", async () => {
    const host = await site.open(replies);
    const [a, b] = [await newSession(host), await newSession(host, own)];
    const ids = async (caller: Caller) =>
      got(await host.listSessions(caller, { limit: 10 })).items.map((s) => s.id).sort();
    assertEquals([await ids(all), await ids(own)], [[a, b].sort(), [b]]);
    assertEquals(codeOf(await host.getSession(own, a)), "session-not-found");
    assertEquals(codeOf(await host.openLog(own, a)), "session-not-found");
    const page = got(await host.listSessions(all, { limit: 1 }));
    assertEquals(page.items.length, 1);
    const rest = got(await host.listSessions(all, { limit: 1, cursor: page.next! }));
    assertEquals([...page.items, ...rest.items].map((s) => s.id).sort(), [a, b].sort());
    assertEquals(rest.next, undefined);
  });

  test("are found by label and status", async () => {
    const host = await site.open(replies);
    const a = await newSession(host, all, { labels: { team: "x" } });
    await newSession(host, all, { labels: { team: "y" } });
    const labelled = async (label: string) =>
      got(await host.listSessions(all, { limit: 10, label })).items.map((s) => s.id);
    assertEquals(await labelled("team=x"), [a]);
    assertEquals((await labelled("team")).length, 2);
    assertEquals(got(await host.listSessions(all, { limit: 10, status: "running" })).items, []);
  });

  test("keep what they are changed to, also after a restart", async () => {
    const host = await site.open(replies);
    const id = await newSession(host, all, { title: "a", labels: { l: "1" } });
    const { lastSeq } = got(await host.getSession(all, id));
    assertEquals(
      codeOf(await host.updateSession(all, id, { title: "b" }, lastSeq - 1)),
      "precondition-failed",
    );
    assertEquals(got(await host.updateSession(all, id, { title: "b" }, lastSeq)).title, "b");
    await says(host, id, "hi");
    const before = got(await host.getSession(all, id));
    await host.drain({ graceMs: 0 });
    const next = await site.open(replies);
    assertEquals(got(await next.getSession(all, id)), before);
    assertEquals((await says(next, id, "more")).status, "completed");
    const { title, labels, owner } = got(await next.getSession(all, id));
    assertEquals({ title, labels, owner }, { title: "b", labels: { l: "1" }, owner: "app" });
  });

  test("that another process has gone on with are shown as they are now", async () => {
    const host = await site.open(replies);
    const id = await newSession(host);
    await says(host, id, "hi");
    await host.drain({ graceMs: 0 });
    const { lastSeq } = got(await host.getSession(all, id));
    const next = await site.open(replies);
    const turn = await says(next, id, "more");
    assertEquals(got(await host.getSession(all, id)), got(await next.getSession(all, id)));
    assertEquals(got(await host.getTurn(all, id, turn.id)).lastSeq! > lastSeq, true);
  });

  test("that are removed are closed; purged ones are gone with their folder", async () => {
    const host = await site.open(replies);
    const [a, b] = [await newSession(host), await newSession(host)];
    const { workspace } = got(await host.getSession(all, a));
    got(await host.removeSession(all, a, { purge: false }));
    assertEquals(got(await host.getSession(all, a)).status, "closed");
    assertEquals(codeOf(await host.submitTurn(all, a, turnOf("x"))), "session-closed");
    assertEquals(existsSync(workspace), false);
    assertEquals(site.events(a).at(-1)?.type, "session.closed");
    const reader = got(await host.openLog(all, b));
    got(await host.removeSession(all, b, { purge: true }));
    assertEquals(codeOf(await host.getSession(all, b)), "session-not-found");
    assertEquals(reader.closed(), true);
    assertEquals(existsSync(join(site.top, "home/.local/state/writ/sessions", b)), false);
    for (const id of [a, b]) assertEquals(codeOf(await host.removeSession(all, id, { purge: true })), "ok");
  });

  test("that are forked begin with the conversation as it was", async () => {
    const host = await site.open(replies);
    const id = await newSession(host);
    const first = await says(host, id, "hi");
    await says(host, id, "more");
    const made = got(await host.forkSession(all, id, { atSeq: first.lastSeq! })).value;
    assertEquals(
      got(await host.messages(all, made.id, { limit: 10 })).items.map((m) => [m.role, m.content]),
      [["user", "hi"], ["assistant", [{ type: "text", text: "one" }]]],
    );
    assertEquals((await says(host, made.id, "on")).status, "completed");
    assertEquals(codeOf(await host.forkSession(all, id, { atSeq: first.firstSeq! })), "bad-request");
  });

  test("have the profile that the caller may use", async () => {
    site.put("small.yaml", policyText("limits: {iterations: 1}"));
    site.put("policy.yaml", policyText(`server: {profiles: {small: ${join(site.top, "small.yaml")}}}`));
    const host = await site.open(replies);
    const one: Caller = { ...all, profiles: ["small"] };
    const profile = async (caller: Caller, wanted: object) => {
      const made = await host.createSession(caller, wanted);
      return made.ok ? made.value.value.profile : made.refusal.code;
    };
    assertEquals(
      [
        await profile(one, {}),
        await profile(all, {}),
        await profile(all, { profile: "small" }),
        await profile({ ...all, profiles: [] }, { profile: "small" }),
        await profile(all, { profile: "none" }),
      ],
      ["small", undefined, "small", "policy-forbids", "policy-forbids"],
    );
  });
});

test("skills are listed, loaded into a session once, and taken out again", async () => {
  const host = await site.open(replies);
  const { items } = got(await host.listSkills(all));
  const note = items.find((s) => s.name === "note");
  assertEquals([note?.description, note?.source, note?.forced, note?.body], [
    "Text of note",
    "user",
    false,
    undefined,
  ]);
  assertEquals(got(await host.getSkill(all, "note", { body: true })).body?.trim(), "Body.");
  const id = await newSession(host);
  const key = { key: "key-0001", bodyHash: "h", scope: "app /skills" };
  const loaded = got(await host.loadSkill(all, id, "note", {}, key));
  assertEquals(got(await host.loadSkill(all, id, "note", {}, key)), { value: loaded.value, replayed: true });
  assertEquals(site.events(id).find((e) => e.seq === loaded.value.seq)?.type, "skill.loaded");
  assertEquals(got(await host.getSession(all, id)).activeSkills, [{ name: "note", by: "explicit" }]);
  assertEquals(codeOf(await host.loadSkill(all, id, "none", {})), "skill-not-found");
  got(await host.unloadSkill(all, id, "note"));
  assertEquals(codeOf(await host.unloadSkill(all, id, "note")), "skill-not-found");
  assertEquals(got(await host.getSession(all, id)).activeSkills, []);
});

test("what a call and a message come to is explained as by the command", async () => {
  const host = await site.open(replies);
  const tool = { name: "shell", input: { command: "sleep 1" } };
  const explained = got(await host.explain(all, { message: "hi", tool }));
  assertEquals((explained["tool"] as { effect: string }).effect, "allow");
  assertEquals((explained["skills"] as { message: string }).message, "hi");
  assertEquals(explained.policyRevision, host.policyStatus().revision);
  assertEquals(codeOf(await host.explain(all, { tool: { name: "none", input: {} } })), "bad-request");
});

describe("the feed", () => {
  test("holds the events of all sessions that the caller may see, in order, and goes on behind a cursor", async () => {
    const host = await site.open(replies);
    const feed = got(await host.openFeed(own));
    const start = feed.cursor();
    let woken = 0;
    const stop = feed.onMore(() => woken++);
    const [a, b] = [await newSession(host), await newSession(host, own)];
    await says(host, a, "x");
    const most = { events: 1000, bytes: 1e6 };
    const lines = await feed.read(most);
    assertEquals(lines.map((l) => `${l.line}\n`).join(""), site.log(b));
    assertEquals([woken > 0, feed.behind(), (await feed.read(most)).length], [true, 0, 0]);
    stop();
    const again = got(await host.openFeed(all, start));
    assertEquals((await again.read(most)).length, site.events(a).length + site.events(b).length);
    const behind = got(await host.openFeed(own, lines[0]!.cursor));
    assertEquals((await behind.read(most)).map((l) => l.seq), lines.slice(1).map((l) => l.seq));
    assertEquals(codeOf(await host.openFeed(all, "nonsense")), "bad-cursor");
    assertEquals(codeOf(await host.openFeed(all, "ab.0")), "cursor-expired");
  });
});

test("the host says how it is", async () => {
  const host = await site.open(replies);
  await says(host, await newSession(host), "x");
  assertEquals((await host.ready()).ready, true);
  const samples = (name: string) => host.figures().find((f) => f.name === name)?.samples;
  assertEquals(samples("writ_turns_total"), [{ labels: { stop_reason: "final" }, value: 1 }]);
  assertMatch(JSON.stringify(host.policy(all).policy), /"key":"permissions/);
  await host.drain({ graceMs: 0 });
  assertEquals([(await host.ready()).ready, host.draining()], [false, true]);
  assertEquals(codeOf(await host.createSession(all, {})), "draining");
});
