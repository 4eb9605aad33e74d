import { test } from "bun:test";
import { assertEquals } from "@std/assert";
import { createRecorder } from "../../src/agent/recorder.ts";
import type { Draft, Event, SessionFacts } from "../../src/core/event.ts";
import { emptySession, reduce } from "../../src/core/session.ts";

const facts: SessionFacts = {
  version: "1",
  policy: { revision: "r" },
  layers: [],
  provider: "script",
  model: "m",
  workspace: "/w",
  cwd: "/w",
  platform: "linux-x64",
  sandbox: "off",
  trust: "trusted",
  actor: "u",
};

function record() {
  const events: Event[] = [];
  const recorder = createRecorder({
    log: {
      append: (draft: Draft) => ({ ...draft, seq: events.length + 1, prev: "", hash: "" }) as Event,
      sync: async () => {},
    },
    clock: { now: () => 0, elapsed: () => 0, sleep: async () => {}, after: () => () => {} },
    session: "s",
    initial: emptySession,
    redact: (data) => data,
    listeners: [(event) => events.push(event)],
  });
  return { recorder, events };
}

test("what a server says of a session stays when it is resumed, with what was changed since", () => {
  const { recorder, events } = record();
  recorder.emit("session.started", { ...facts, served: { owner: "app", title: "a", labels: { l: "1" } } });
  recorder.emit("session.described", { title: "b" });
  recorder.emit("session.resumed", { ...facts, model: "other" });
  const served = { owner: "app", title: "b", labels: { l: "1" } };
  assertEquals(recorder.state.facts, { ...facts, model: "other", served });
  assertEquals(events.reduce(reduce, emptySession), recorder.state);
});

test("what is recorded beside a turn that runs belongs to none", () => {
  const { recorder, events } = record();
  recorder.emit("session.started", facts);
  recorder.emit("user.message", { content: "a", actor: "u", submitted: 1 });
  recorder.emit("turn.submitted", { actor: "u" });
  recorder.emit("turn.dropped", { submitted: 3, reason: "cancelled" });
  recorder.emit("request.done", { request: { scope: "s", key: "k", bodyHash: "h" }, of: 1 });
  recorder.emit("user.steered", { content: "b", actor: "v" });
  assertEquals(events.map((e) => e.turn), [undefined, 1, undefined, undefined, undefined, 1]);
  assertEquals(
    recorder.state.transcript.flatMap((e) => e.kind === "user" ? [e.text] : []),
    ["a", "b"],
  );
});

test("a call is asked about until it is decided", () => {
  const { recorder } = record();
  recorder.emit("session.started", facts);
  recorder.emit("user.message", { content: "a", actor: "u" });
  const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const block = { type: "tool_use", id: "c1", name: "shell", input: {} } as const;
  recorder.emit("model.completed", { stopReason: "tool_use", usage, content: [block] });
  const open = { id: "c1", tool: "shell", started: false };
  recorder.emit("permission.requested", { call: "c1", tool: "shell", risk: "execute", sourcedBy: [] });
  assertEquals(recorder.state.turn.awaiting, [{ ...open, asked: "execute" }]);
  recorder.emit("permission.resolved", {
    call: "c1",
    tool: "shell",
    risk: "execute",
    effect: "deny",
    causes: [],
    answer: { by: "restart" },
    decision: "deny",
    reason: "r",
  });
  assertEquals(recorder.state.turn.awaiting, [open]);
});
