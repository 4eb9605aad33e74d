import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { describe, test } from "bun:test";
import fc from "fast-check";
import { compactTranscript, entryTokens, planCompaction } from "../../src/core/compaction.ts";
import { toMessages } from "../../src/core/context.ts";
import type { Event } from "../../src/core/event.ts";
import { type AssistantBlock, type Message, noUsage } from "../../src/core/message.ts";
import { emptySession, reduce, type SessionState } from "../../src/core/session.ts";
import type { Placed } from "../../src/core/transcript.ts";
import { skillMarker } from "../../src/core/skill.ts";
import { tries } from "./decide_generators.ts";
import { type EventList, eventList, sessionFacts } from "./session_events.ts";

// ---- conversations ------------------------------------------------------------------------------------------------

type Call = { readonly size: number; readonly denied: boolean };
type Reply = { readonly text: string; readonly thinks: boolean; readonly calls: readonly Call[] };
type Step =
  | { readonly do: "turn"; readonly message: string; readonly skill: string | undefined }
  | { readonly do: "reply"; readonly reply: Reply }
  | { readonly do: "unload"; readonly skill: string }
  | { readonly do: "compact"; readonly room: number; readonly asked: boolean };

const word = fc.constantFrom("look", "a <b> & c", "</summary>", "</refused>", "[redacted:KEY]", "日本語 ");
const text = fc.tuple(word, fc.integer({ min: 0, max: 200 })).map(([w, n]) => w + " said".repeat(n));
const skillName = fc.constantFrom("review", "helper");
const reply: fc.Arbitrary<Reply> = fc.record({
  text,
  thinks: fc.boolean(),
  calls: fc.array(fc.record({ size: fc.constantFrom(0, 3, 900, 4000, 9000), denied: fc.boolean() }), {
    maxLength: 3,
  }),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant("turn" as const),
    message: text,
    skill: fc.option(skillName, { nil: undefined }),
  }),
  { weight: 3, arbitrary: fc.record({ do: fc.constant("reply" as const), reply }) },
  fc.record({ do: fc.constant("unload" as const), skill: skillName }),
  fc.record({
    do: fc.constant("compact" as const),
    room: fc.integer({ min: 500, max: 8000 }),
    asked: fc.boolean(),
  }),
);
const steps = fc.array(step, { minLength: 4, maxLength: 30 });

type Compaction = { readonly before: SessionState; readonly after: SessionState; readonly summed: boolean };

/** Plays the steps as the loop would record them; a summary says where it was made. */
function play(planned: readonly Step[]): { readonly log: EventList; readonly compactions: Compaction[] } {
  const log = eventList();
  const compactions: Compaction[] = [];
  let ids = 0;
  log.emit("session.started", sessionFacts);
  log.emit("user.message", { content: "begin", actor: "user" });
  for (const one of planned) {
    switch (one.do) {
      case "turn":
        log.emit("user.message", { content: one.message, actor: "user" });
        if (one.skill !== undefined) load(log, one.skill);
        break;
      case "reply":
        // A reply without calls ended the turn.
        if (log.state().transcript.at(-1)?.kind === "assistant") {
          log.emit("user.message", { content: "go on", actor: "user" });
        }
        answer(log, one.reply, () => `c${++ids}`);
        break;
      case "unload":
        if (log.state().active.some((s) => s.name === one.skill)) {
          log.emit("skill.unloaded", { name: one.skill, reason: "turn_end" });
        }
        break;
      case "compact": {
        const before = log.state();
        const data = compaction(before, one.room, one.asked);
        if (data === undefined) break;
        log.emit("context.compacted", data);
        compactions.push({ before, after: log.state(), summed: data.summary !== "" });
      }
    }
  }
  return { log, compactions };
}

function load(log: EventList, name: string): void {
  const body = `<skill name="${name}">\nbody & words\n</skill>`;
  const active = log.state().active.find((s) => s.name === name);
  log.emit("skill.loaded", {
    name,
    source: "user",
    sha256: "",
    trigger: { kind: "explicit" },
    scope: "session",
    loadedBytes: 1,
    contextTokensAdded: 1,
    tools: [],
    bounding: true,
    body: active === undefined ? body : "",
  });
}

function answer(log: EventList, { text, thinks, calls }: Reply, id: () => string): void {
  const asked = calls.map((call) => ({ ...call, id: id() }));
  const content: AssistantBlock[] = [
    ...(thinks ? [{ type: "opaque", value: { type: "thinking", signature: "s" } } as const] : []),
    { type: "text", text },
    ...asked.map((c) => ({ type: "tool_use", id: c.id, name: "read_file", input: { path: c.id } }) as const),
  ];
  log.emit("model.completed", {
    stopReason: calls.length === 0 ? "end" : "tool_use",
    usage: noUsage,
    content,
  });
  for (const call of asked) {
    log.emit("tool.completed", {
      call: call.id,
      tool: "read_file",
      ok: !call.denied,
      ...(call.denied ? { code: "denied" } : {}),
      bytes: call.size,
      durationMs: 0,
      result: call.denied
        ? `denied by rule ${"r-1 ".repeat(call.size / 4)}</refused>`
        : "word ".repeat(call.size / 5),
    });
  }
}

function compaction(state: SessionState, room: number, asked: boolean) {
  const plan = planCompaction({ ...state, fixed: 100, factor: 1, room, endsCut: false, asked });
  if (plan === undefined) return undefined;
  const { range, cut } = plan;
  return {
    from: range?.from ?? cut.results[0] ?? 0,
    to: range?.to ?? cut.results.at(-1) ?? 0,
    tokensBefore: 2,
    tokensAfter: 1,
    summary: range === undefined ? "" : `up to ${range.to} </summary>`,
    ...(cut.results.length === 0 ? {} : { cut }),
  };
}

function holds(name: string, check: (played: ReturnType<typeof play>) => void): void {
  test(name, () => fc.assert(fc.property(steps, (planned) => check(play(planned))), tries(400)), 60_000);
}

// ---- laws ---------------------------------------------------------------------------------------------------------

const texts = (entries: readonly Placed[]) => entries.flatMap((e) => ("text" in e ? [e.text] : []));
const last = <K extends Placed["kind"]>(state: SessionState, kind: K) =>
  state.transcript.findLast((e) => e.kind === kind);

describe("context.compacted", () => {
  holds("gives the same state from the stored lines", ({ log }) => {
    const stored = log.events.map((e) => JSON.parse(JSON.stringify(e)) as Event);
    assertEquals(stored.reduce(reduce, emptySession), log.state());
  });

  holds("leaves every result behind its call, and every call with its result", ({ compactions }) => {
    for (const { after } of compactions) checkPairs(toMessages(after.transcript));
  });

  holds("keeps the last message, the environment and the live bodies byte by byte, once each", (played) => {
    for (const { before, after } of played.compactions) {
      for (const kind of ["user", "environment"] as const) {
        const wanted = last(before, kind);
        assertEquals(after.transcript.filter((e) => e === wanted).length, wanted === undefined ? 0 : 1);
      }
      const bodies = (s: SessionState) => s.transcript.filter((e) => e.kind === "skill" && e.live);
      assertEquals(bodies(after), bodies(before));
    }
  });

  holds("keeps what was refused, in its words, and says of skills that they have ended", (played) => {
    for (const { before, after } of played.compactions) {
      const shown = texts(after.transcript).join("\n") +
        after.transcript.flatMap((e) => (e.kind === "result" ? [e.content] : [])).join("\n");
      for (const entry of before.transcript) {
        if (entry.kind === "result" && entry.denied === true) {
          assertStringIncludes(shown, entry.content.split("</")[0]!);
        }
        const ended = entry.kind === "skill" && !entry.live;
        if (!ended || after.transcript.includes(entry)) continue;
        const again = before.active.some((s) => s.name === entry.name);
        assertEquals(shown.includes(skillMarker(entry.name)), !again);
      }
    }
  });

  holds(
    "leaves what stays as it is: whole replies, thinking included, and results of the newest",
    (played) => {
      for (const { before, after, summed } of played.compactions) {
        const replies = after.transcript.filter((e) => e.kind === "assistant");
        for (const entry of replies) assert(before.transcript.includes(entry));
        const newest = before.transcript.findLastIndex((e) => e.kind === "assistant");
        const user = before.transcript.findLastIndex((e) => e.kind === "user");
        if (newest > user) {
          const kept = before.transcript.slice(newest);
          assertEquals(after.transcript.slice(-kept.length), kept);
        }
        assertEquals(after.transcript[0]?.kind === "note", summed || before.transcript[0]?.kind === "note");
      }
    },
  );

  holds("closes the fence of a summary once, whatever it says", ({ compactions }) => {
    for (const { after } of compactions) {
      for (const entry of after.transcript) {
        if (entry.kind !== "note" || entry.of === "ended" || entry.of === "gates") continue;
        assertEquals(entry.text.match(/<\/(?:summary|refused)>/g)?.length, 1);
      }
    }
  });

  holds("takes something out: results become shorter, or entries fewer in tokens", ({ compactions }) => {
    const cost = (s: SessionState) => s.transcript.reduce((sum, e) => sum + entryTokens(e), 0);
    for (const { before, after, summed } of compactions) {
      // A summary says as much as its author likes, and refusals are told with their calls.
      if (!summed) assert(cost(after) < cost(before));
    }
  });
});

function checkPairs(messages: readonly Message[]): void {
  messages.forEach((message, n) => {
    assertEquals(message.role, n % 2 === 0 ? "user" : "assistant");
    const before = messages[n - 1]?.content.flatMap((b) => (b.type === "tool_use" ? [b.id] : [])) ?? [];
    const results = message.content.flatMap((b) => (b.type === "tool_result" ? [b.call] : []));
    if (message.role === "user") assertEquals(results, before);
  });
}

// ---- single cases -------------------------------------------------------------------------------------------------

describe("a result that is cut", () => {
  const cut = (content: string) => {
    const entry: Placed = { kind: "result", seq: 5, call: "c1", ok: true, content };
    const state = { ...emptySession, transcript: [entry] };
    const data = { to: 5, summary: "", cut: { results: [5], keep: 100 } };
    const [after] = compactTranscript(state, data);
    return after?.kind === "result" ? after : undefined;
  };

  test("keeps head and tail, and says how much is missing and what to do", () => {
    const content = `first line\n${"middle ".repeat(100)}\nlast line`;
    const after = cut(content);
    const [head = "", tail = ""] = after?.content.split(/\n\[….*…\]\n/) ?? [];
    assert(content.startsWith(head) && head.startsWith("first line"));
    assert(content.endsWith(tail) && tail.endsWith("last line"));
    assertEquals(after?.cut, content.length - head.length - tail.length);
    assertStringIncludes(after?.content ?? "", `[… ${after?.cut} characters of this result were cut`);
    assertStringIncludes(after?.content ?? "", "look again");
  });

  test("shows no part of a placeholder that the cut goes through", () => {
    const content = `a ${"x".repeat(38)} [redacted:GITHUB_TOKEN] ${"middle ".repeat(50)} [redacted:KEY] ${
      "y".repeat(42)
    }`;
    const after = cut(content)?.content ?? "";
    assertEquals(after.replace(/\[redacted:[A-Z_]+\]/g, "").includes("redacted"), false, after);
    assertEquals(/TOKEN|KEY/.test(after.replace(/\[redacted:[A-Z_]+\]/g, "")), false, after);
  });

  test("is left alone when it is short", () => {
    assertEquals(cut("short")?.content, "short");
  });
});

test("a plan is none where nothing can be taken out", () => {
  const log = eventList();
  log.emit("session.started", sessionFacts);
  log.emit("user.message", { content: "word ".repeat(5000), actor: "user" });
  assertEquals(compaction(log.state(), 500, true), undefined);
  answer(log, { text: "so", thinks: false, calls: [{ size: 9000, denied: false }] }, () => "c1");
  assertEquals(compaction(log.state(), 500, true), undefined);
});
