import { assert, assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import fc from "fast-check";
import { toMessages } from "../../src/core/context.ts";
import type { Answer, Event, EventData, Trigger, TriggerKind } from "../../src/core/event.ts";
import { type CallBlock, type Message, noUsage } from "../../src/core/message.ts";
import { renderEnvironment } from "../../src/core/prompt.ts";
import { emptySession, reduce, type SessionState } from "../../src/core/session.ts";
import { type Entry, finalText } from "../../src/core/transcript.ts";
import { tries } from "./decide_generators.ts";
import { type EventList, eventList, noTokens, sessionFacts } from "./session_events.ts";

// ---- what a session may go through --------------------------------------------------------------------------------

type CallPlan = {
  readonly kind: "read" | "write" | "failing" | "denied" | "unknown" | "load" | "complete";
  readonly skill: string;
  /** The skill's file was edited before this call. */
  readonly edited: boolean;
};
type IterationPlan = {
  readonly failures: number;
  readonly text: string;
  readonly calls: readonly CallPlan[];
};
type TurnPlan = {
  readonly explicit: readonly string[];
  readonly pattern: readonly string[];
  readonly iterations: readonly IterationPlan[];
  /** After how many events of the turn it is cut off, and by what. */
  readonly cut?: { readonly after: number; readonly by: "crash" | "cancel" };
  readonly cleared: readonly string[];
  readonly moved: boolean;
};
type Plan = {
  readonly scope: "turn" | "session";
  readonly forced: readonly string[];
  readonly turns: readonly TurnPlan[];
};

const names = ["review", "helper", "deploy"];
const skill = fc.constantFrom(...names);
const call: fc.Arbitrary<CallPlan> = fc.record({
  kind: fc.constantFrom(
    "read",
    "read",
    "read",
    "write",
    "failing",
    "denied",
    "unknown",
    "load",
    "load",
    "complete",
  ),
  skill,
  edited: fc.constantFrom(false, false, true),
});
const iteration: fc.Arbitrary<IterationPlan> = fc.record({
  failures: fc.constantFrom(0, 0, 0, 1),
  text: fc.constantFrom("", "so", "then"),
  calls: fc.array(call, { minLength: 1, maxLength: 4 }),
});
const turn: fc.Arbitrary<TurnPlan> = fc.record({
  explicit: fc.subarray(names, { maxLength: 2 }),
  pattern: fc.subarray(names, { maxLength: 1 }),
  iterations: fc.array(iteration, { maxLength: 3 }),
  cut: fc.record({ after: fc.integer({ min: 1, max: 30 }), by: fc.constantFrom("crash", "cancel") }),
  cleared: fc.subarray(names, { maxLength: 1 }),
  moved: fc.boolean(),
}, { requiredKeys: ["explicit", "pattern", "iterations", "cleared", "moved"] }) as fc.Arbitrary<TurnPlan>;
const plan: fc.Arbitrary<Plan> = fc.record({
  scope: fc.constantFrom("turn", "session"),
  forced: fc.subarray(names, { maxLength: 1 }),
  turns: fc.array(turn, { minLength: 1, maxLength: 4 }),
});

// ---- a loop that only records -------------------------------------------------------------------------------------

class CutOff extends Error {}

type Open = { readonly id: string; readonly tool: string; readonly started: boolean };
type Active = { readonly scope: "turn" | "session"; readonly body: string; readonly reported: boolean };

/** Plays the plan as the real loop records it, keeping its own account of open calls and active skills. */
function play(plan: Plan) {
  const log = eventList();
  const active = new Map<string, Active>();
  let open: readonly Open[] = [];
  let left = Infinity;
  let edits = 0, ids = 0;
  const accounts: { readonly open: readonly Open[]; readonly active: readonly string[] }[] = [];
  const note = () => accounts.push({ open, active: [...active.keys()] });
  const emit: EventList["emit"] = (type, data) => {
    if (left-- <= 0) throw new CutOff();
    log.emit(type, data);
  };

  const load = (name: string, kind: TriggerKind, edited: boolean) => {
    if (edited) edits++;
    const before = active.get(name);
    const forced = kind === "policy" || (before !== undefined && plan.forced.includes(name));
    const body = `body of ${name}, edition ${edits}`;
    const scope = kind === "policy" ? "session" : plan.scope;
    const repeated = before !== undefined && (forced || before.body === body);
    emit("skill.loaded", {
      name,
      source: "user",
      sha256: "",
      trigger: { kind },
      scope,
      loadedBytes: body.length,
      contextTokensAdded: 1,
      tools: [],
      bounding: kind !== "policy",
      body: repeated ? "" : body,
    });
    active.set(name, {
      scope: before?.scope === "session" ? "session" : scope,
      body: repeated ? before.body : body,
      reported: before?.reported ?? false,
    });
    note();
  };
  const complete = (id: string, tool: string, ok: boolean, code?: string) => {
    emit("tool.completed", {
      call: id,
      tool,
      ok,
      ...(code === undefined ? {} : { code }),
      bytes: 1,
      durationMs: 0,
      result: `result of ${id}`,
    });
    open = open.filter((c) => c.id !== id);
    note();
  };
  const start = (id: string, tool: string, risk: "read" | "write") => {
    const asked = {
      call: id,
      tool,
      risk,
      effect: "allow",
      causes: [],
      decision: "allow",
      reason: "",
    } as const;
    emit("permission.requested", { call: id, tool, risk, sourcedBy: [] });
    emit("permission.resolved", asked);
    emit("tool.started", { call: id, tool, risk });
    open = open.map((c) => (c.id === id ? { ...c, started: true } : c));
    note();
  };

  // Consecutive reads run side by side: all are started, then their results are recorded in call order.
  let running: string[] = [];
  const settle = () => {
    const batch = running;
    running = [];
    for (const id of batch) complete(id, "read_file", true);
  };
  const runCall = (id: string, planned: CallPlan) => {
    if (planned.kind !== "read") settle();
    const tool = toolOf(planned);
    emit("model.tool_call_requested", { call: id, tool, args: {} });
    switch (planned.kind) {
      case "read":
        start(id, tool, "read");
        running.push(id);
        return;
      case "unknown":
        return complete(id, tool, false, "unknown_tool");
      case "denied":
        emit("permission.requested", { call: id, tool, risk: "write", sourcedBy: [] });
        emit("permission.resolved", {
          call: id,
          tool,
          risk: "write",
          effect: "deny",
          causes: [],
          decision: "deny",
          reason: "no",
        });
        return complete(id, tool, false, "denied");
      case "load":
        start(id, tool, "read");
        load(planned.skill, "model", planned.edited);
        return complete(id, tool, true);
      case "complete": {
        start(id, tool, "read");
        const one = active.get(planned.skill);
        if (one === undefined) return complete(id, tool, false, "not_active");
        emit("skill.completed", { name: planned.skill, outcome: "PASS", summary: "", evidence: [] });
        active.set(planned.skill, { ...one, reported: true });
        return complete(id, tool, true);
      }
      default:
        start(id, tool, "write");
        return complete(id, tool, planned.kind === "write", planned.kind === "write" ? undefined : "exit");
    }
  };

  const runTurn = (planned: TurnPlan, message: string) => {
    emit("user.message", { content: message, actor: "user" });
    for (const name of planned.explicit) load(name, "explicit", false);
    for (const name of planned.pattern) if (!planned.explicit.includes(name)) load(name, "pattern", false);
    const last: IterationPlan = { failures: 0, text: "done", calls: [] };
    [...planned.iterations, last].forEach((one, n) => {
      emit("context.built", {
        iteration: n + 1,
        sources: { skills: [...active.keys()], instructions: [] },
        tokens: noTokens,
        truncated: false,
      });
      for (let attempt = 1; attempt <= one.failures; attempt++) {
        emit("model.delta", { text: "half" });
        emit("model.failed", { attempt, code: "overloaded", message: "" });
      }
      if (one.text !== "") emit("model.delta", { text: one.text });
      const blocks = one.calls.map((planned): CallBlock => ({
        type: "tool_use",
        id: `call_${++ids}`,
        name: toolOf(planned),
        input: {},
      }));
      emit("model.completed", {
        stopReason: blocks.length > 0 ? "tool_use" : "end",
        usage: { ...noUsage, output: 2 },
        content: [...(one.text === "" ? [] : [{ type: "text" as const, text: one.text }]), ...blocks],
      });
      open = blocks.map((b) => ({ id: b.id, tool: b.name, started: false }));
      note();
      one.calls.forEach((planned, at) => runCall(blocks[at]?.id ?? "", planned));
      settle();
    });
  };

  const closeTurn = (stopReason: "final" | "interrupted" | "cancelled") => {
    for (const one of open) {
      emit("tool.interrupted", { call: one.id, tool: one.tool, started: one.started });
      open = open.filter((c) => c.id !== one.id);
      note();
    }
    for (const [name, one] of [...active].filter(([, a]) => a.scope === "turn")) {
      if (!one.reported) emit("skill.completed", { name, outcome: "unreported", summary: "", evidence: [] });
      emit("skill.unloaded", { name, reason: "turn_end" });
      active.delete(name);
      note();
    }
    emit("turn.completed", { stopReason, usage: noUsage, denied: [] });
  };

  emit("session.started", sessionFacts);
  for (const name of plan.forced) load(name, "policy", false);
  plan.turns.forEach((planned, n) => {
    left = planned.cut?.after ?? Infinity;
    let stop: "final" | "interrupted" | "cancelled" = "final";
    try {
      runTurn(planned, `message ${n}`);
    } catch (error) {
      if (!(error instanceof CutOff)) throw error;
      stop = planned.cut?.by === "crash" ? "interrupted" : "cancelled";
    }
    left = Infinity;
    // After a cancel, what was started is waited for; after a crash nobody waits.
    if (stop === "cancelled") settle();
    running = [];
    if (stop === "interrupted") emit("session.recovered", { bytes: 3, savedAs: "tail" });
    closeTurn(stop);
    if (stop === "interrupted") {
      emit("session.resumed", planned.moved ? { ...sessionFacts, workspace: "/moved" } : sessionFacts);
    }
    for (const name of planned.cleared.filter((c) => active.has(c) && !plan.forced.includes(c))) {
      emit("skill.unloaded", { name, reason: "cleared" });
      active.delete(name);
      note();
    }
  });
  return { ...log, accounts };
}

function toolOf(planned: CallPlan): string {
  const tools = {
    read: "read_file",
    load: "load_skill",
    complete: "complete_skill",
    unknown: "no_such_tool",
  } as const;
  return planned.kind in tools ? tools[planned.kind as keyof typeof tools] : "write_file";
}

/** Each event with the state before it and after it. */
function* passages(played: ReturnType<typeof play>): Generator<readonly [SessionState, Event, SessionState]> {
  for (const [i, event] of played.events.entries()) {
    yield [played.states[i - 1] ?? emptySession, event, played.states[i]!];
  }
}

function holds(name: string, check: (played: ReturnType<typeof play>, plan: Plan) => void): void {
  test(name, () => {
    fc.assert(fc.property(plan, (made) => check(play(made), made)), tries(400));
  }, 60_000);
}

function frozen<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(frozen);
  }
  return value;
}

// ---- laws ---------------------------------------------------------------------------------------------------------

describe("reduce()", () => {
  holds("gives the same state from the stored lines as it gave while the session ran", (played) => {
    const stored = played.events.map((e) => JSON.parse(JSON.stringify(e)) as Event);
    assertEquals(stored.reduce(reduce, emptySession), played.states.at(-1)!);
  });

  holds("goes on from any point, and changes no state that it was given", (played) => {
    const half = Math.floor(played.events.length / 2);
    let state = frozen(played.states[half]!);
    for (const event of played.events.slice(half + 1)) state = frozen(reduce(state, frozen(event)));
    assertEquals(state, played.states.at(-1)!);
  });

  holds("awaits exactly the calls that have no result, in call order", (played) => {
    for (const [before, event, after] of passages(played)) {
      const { awaiting } = after.turn;
      const content = event.type === "model.completed" ? event.data.content : undefined;
      if (content !== undefined) {
        const asked = content.flatMap((b) =>
          b.type === "tool_use" ? [{ id: b.id, tool: b.name, started: false }] : []
        );
        assertEquals(awaiting, asked);
      } else if (event.type === "tool.completed" || event.type === "tool.interrupted") {
        assertEquals(awaiting, before.turn.awaiting.filter((c) => c.id !== event.data.call));
        assertEquals(awaiting.length, before.turn.awaiting.length - 1);
      } else if (event.type === "tool.started") {
        assertEquals(
          awaiting,
          before.turn.awaiting.map((c) => c.id === event.data.call ? { ...c, started: true } : c),
        );
      } else if (event.type === "permission.requested") {
        const { call, risk } = event.data;
        assertEquals(awaiting, before.turn.awaiting.map((c) => c.id === call ? { ...c, asked: risk } : c));
      } else if (event.type === "permission.resolved") {
        const { call } = event.data;
        assertEquals(
          awaiting,
          before.turn.awaiting.map(({ asked, ...c }) =>
            c.id === call || asked === undefined ? c : { ...c, asked }
          ),
        );
      } else {
        assertEquals(awaiting, before.turn.awaiting);
      }
    }
  });

  holds("agrees with the loop's own account of open calls and active skills", (played) => {
    const changes = new Set([
      "skill.loaded",
      "skill.unloaded",
      "model.completed",
      "tool.started",
      "tool.completed",
      "tool.interrupted",
    ]);
    const seen = [...passages(played)].filter(([, event]) => changes.has(event.type)).map(([, , after]) => ({
      open: after.turn.awaiting.map(({ asked: _, ...c }) => c),
      active: after.active.map((s) => s.name),
    }));
    assertEquals(seen, played.accounts);
  });

  holds("counts the tokens of every reply once", (played) => {
    const replies = played.events.filter((e) => e.type === "model.completed").length;
    assertEquals(played.states.at(-1)!.usage, { ...noUsage, output: 2 * replies });
  });
});

describe("the transcript", () => {
  holds("only grows, except for markers at the next user message", (played) => {
    for (const [before, event, after] of passages(played)) {
      const kept = after.transcript.slice(0, before.transcript.length);
      if (event.type !== "user.message") {
        assertEquals(kept.map(shown), before.transcript.map(shown));
        continue;
      }
      assertEquals(kept, before.transcript.map((e, n) => hasEnded(e) ? kept[n]! : e));
      for (const [n, entry] of before.transcript.entries()) {
        if (!hasEnded(entry) || entry.kind !== "skill") continue;
        const marker = kept[n]!;
        assert(marker.kind === "note" && marker.of === "ended" && marker.text.includes(entry.name));
        assert(!marker.text.includes(entry.text));
      }
      assert(!after.transcript.some(hasEnded));
    }
  });

  holds("shows a live body exactly for the active skills that are not in the stable text", (played) => {
    for (const state of played.states) {
      const live = state.transcript.flatMap((e) =>
        e.kind === "skill" && e.live ? [`${e.name}: ${e.text}`] : []
      );
      const wanted = state.active.filter((s) => !s.forced).map((s) => `${s.name}: ${s.body}`);
      assertEquals([...live].sort(), [...wanted].sort());
    }
  });
});

function hasEnded(entry: Entry): boolean {
  return entry.kind === "skill" && !entry.live;
}

function shown(entry: Entry): Entry {
  return entry.kind === "skill" ? { ...entry, live: true } : entry;
}

/** Messages of every request of one turn, turn after turn. */
function requests(played: ReturnType<typeof play>): readonly (readonly (readonly Message[])[])[] {
  const turns: (readonly Message[])[][] = [];
  for (const [, event, after] of passages(played)) {
    if (event.type === "user.message") turns.push([]);
    if (event.type === "context.built") turns.at(-1)?.push(toMessages(after.transcript));
  }
  return turns;
}

describe("requests", () => {
  holds("of one turn each begin with all of the one before", (played) => {
    for (const turn of requests(played)) {
      turn.forEach((messages, n) => {
        const before = turn[n - 1] ?? [];
        assertEquals(messages.slice(0, before.length), before);
        assert(messages.length > before.length);
      });
    }
  });

  holds(
    "have exactly one result for every tool call, first and in call order, before anything else",
    (played) => {
      const whole = played.states.filter((s) => s.turn.awaiting.length === 0).map((s) =>
        toMessages(s.transcript)
      );
      for (const messages of [...requests(played).flat(), ...whole]) checkPairs(messages);
    },
  );

  holds("alternate between user and assistant, beginning with the user", (played) => {
    for (const messages of requests(played).flat()) {
      messages.forEach((m, n) => assert(n === 0 ? m.role === "user" : m.role !== messages[n - 1]?.role));
      assertEquals(messages.at(-1)?.role, "user");
    }
  });
});

function checkPairs(messages: readonly Message[]): void {
  let results = 0, calls = 0;
  messages.forEach((message, n) => {
    if (message.role === "user") {
      results += message.content.filter((b) => b.type === "tool_result").length;
      return;
    }
    const asked = message.content.flatMap((b) => (b.type === "tool_use" ? [b.id] : []));
    const given = messages[n + 1]?.content.slice(0, asked.length) ?? [];
    assertEquals(given.map((b) => (b.type === "tool_result" ? b.call : b.type)), asked);
    calls += asked.length;
  });
  assertEquals(results, calls);
}

// ---- single cases -------------------------------------------------------------------------------------------------

function loaded(name: string, trigger: Trigger, more: Partial<EventData["skill.loaded"]> = {}) {
  return {
    name,
    source: "user",
    sha256: `sha of ${name}`,
    trigger,
    scope: "turn" as const,
    loadedBytes: 1,
    contextTokensAdded: 1,
    tools: [],
    bounding: true,
    body: `body of ${name}`,
    ...more,
  };
}

describe("active skills", () => {
  const policy = { kind: "policy" } as const;
  const explicit = { kind: "explicit" } as const;
  const forced = loaded("review", policy, { scope: "session", bounding: false, allowedTools: ["read_file"] });

  test("a skill that policy forces stands in the stable text, not in the transcript", () => {
    const log = eventList();
    log.emit("skill.loaded", forced);
    assertEquals(log.state().transcript, []);
    assertEquals(log.state().active, [{
      name: "review",
      trigger: "policy",
      scope: "session",
      allowedTools: ["read_file"],
      bounding: false,
      boundingBetweenTurns: false,
      forced: true,
      body: "body of review",
    }]);
  });

  test("a trigger on it makes it a bound until the turn ends", () => {
    const log = eventList();
    log.emit("skill.loaded", forced);
    log.emit("user.message", { content: "go", actor: "user" });
    log.emit("skill.loaded", loaded("review", explicit, { body: "" }));
    const [inTurn] = log.state().active;
    assertEquals([inTurn?.bounding, inTurn?.trigger, inTurn?.scope, inTurn?.body, inTurn?.forced], [
      true,
      "policy",
      "session",
      "body of review",
      true,
    ]);
    log.emit("turn.completed", { stopReason: "final", usage: noUsage, denied: [] });
    assertEquals(log.state().active[0]?.bounding, false);
    assertEquals(log.state().transcript, [{ kind: "user", seq: 2, text: "go" }]);
  });

  test("a skill that was loaded before is forced from then on when policy comes to force it", () => {
    const log = eventList();
    log.emit("skill.loaded", loaded("review", explicit, { scope: "session" }));
    log.emit("skill.loaded", { ...forced, body: "" });
    const [skill] = log.state().active;
    assertEquals([skill?.forced, skill?.trigger, skill?.body], [true, "policy", "body of review"]);
  });

  test("a skill that a gate loads is shown where it became active", () => {
    const log = eventList();
    log.emit("skill.loaded", loaded("review", { kind: "policy", gate: "g" }));
    assertEquals(log.state().active[0]?.forced, false);
    assertEquals(log.state().transcript, [
      { kind: "skill", seq: 1, name: "review", text: "body of review", live: true },
    ]);
  });

  test("an edited body takes the place of the one before", () => {
    const log = eventList();
    log.emit("skill.loaded", loaded("review", explicit));
    log.emit("skill.loaded", loaded("helper", explicit));
    log.emit("skill.loaded", loaded("review", { kind: "model" }, { body: "new body", bounding: false }));
    assertEquals(log.state().transcript, [
      { kind: "skill", seq: 1, name: "review", text: "body of review", live: false },
      { kind: "skill", seq: 2, name: "helper", text: "body of helper", live: true },
      { kind: "skill", seq: 3, name: "review", text: "new body", live: true },
    ]);
    const [review] = log.state().active;
    // A bound never ends before the skill does.
    assertEquals([review?.body, review?.bounding], ["new body", true]);
    assertEquals(log.state().recent, { review: 3, helper: 2 });
  });

  test("a marker says of a body whether its skill has ended or has a newer one", () => {
    const log = eventList();
    log.emit("skill.loaded", loaded("review", explicit));
    log.emit("skill.loaded", loaded("helper", explicit));
    log.emit("skill.loaded", loaded("review", explicit, { body: "new body" }));
    log.emit("skill.unloaded", { name: "helper", reason: "turn_end" });
    log.emit("user.message", { content: "next", actor: "user" });
    assertEquals(
      log.state().transcript.slice(0, 3).map((e) => e.kind === "note" || e.kind === "skill" ? e.text : ""),
      [
        '[an earlier text of the skill "review" stood here; the newer one is in force]',
        '[skill "helper" has ended; its instructions are no longer in force]',
        "new body",
      ],
    );
  });

  test("an outcome is kept with the skill that reported it, and for its gates", () => {
    const log = eventList();
    log.emit("skill.loaded", loaded("review", explicit));
    log.emit("skill.loaded", loaded("helper", explicit));
    log.emit("skill.completed", {
      name: "review",
      outcome: "PASS",
      summary: "",
      evidence: [],
      gates: ["merge"],
      tree: "t1",
    });
    assertEquals(log.state().active.map((s) => s.outcome), ["PASS", undefined]);
    assertEquals(log.state().gates.verdicts, {
      review: [{ outcome: "PASS", seq: 3, tree: "t1", fork: false, gates: ["merge"] }],
    });
  });
});

describe("the environment", () => {
  test("is shown with the first message, and again only when it changed", () => {
    const log = eventList();
    const say = () => log.emit("user.message", { content: "hello", actor: "user" });
    log.emit("session.started", sessionFacts);
    say();
    say();
    log.emit("session.resumed", sessionFacts);
    say();
    const moved = { ...sessionFacts, workspace: "/moved" };
    log.emit("session.resumed", moved);
    say();
    const user = (seq: number) => ({ kind: "user", seq, text: "hello" }) as const;
    assertEquals(log.state().transcript, [
      user(2),
      { kind: "environment", seq: 2, text: renderEnvironment(sessionFacts) },
      user(3),
      user(5),
      user(7),
      { kind: "environment", seq: 7, text: renderEnvironment(moved) },
    ]);
  });
});

describe("denials", () => {
  type Resolved = EventData["permission.resolved"];
  const rows: readonly (readonly [
    name: string,
    effect: Resolved["effect"],
    by: Answer["by"] | undefined,
    decision: Resolved["decision"],
    unanswered: boolean | undefined,
  ])[] = [
    ["an allow is none", "allow", undefined, "allow", undefined],
    ["an answered ask is none", "ask", "user", "allow", undefined],
    ["a deny is one", "deny", undefined, "deny", false],
    ["a no is one", "ask", "user", "deny", false],
    ["nobody there leaves the ask unanswered", "ask", "non_interactive", "deny", true],
    ["so does a timeout", "ask", "timeout", "deny", true],
    ["a changed call was answered", "ask", "changed", "deny", false],
  ];
  for (const [name, effect, by, decision, unanswered] of rows) {
    test(name, () => {
      const log = eventList();
      log.emit("permission.resolved", {
        call: "c1",
        tool: "shell",
        risk: "write",
        effect,
        causes: [],
        ...(by === undefined ? {} : { answer: { by } }),
        decision,
        reason: "why",
      });
      const want = unanswered === undefined ? [] : [{ call: "c1", tool: "shell", reason: "why", unanswered }];
      assertEquals(log.state().turn.denied, want);
    });
  }
});

test("turn.changedAt is the newest start of a call that may change something", () => {
  const log = eventList();
  log.emit("tool.started", { call: "c1", tool: "read_file", risk: "read" });
  assertEquals(log.state().turn.changedAt, 0);
  log.emit("tool.started", { call: "c2", tool: "write_file", risk: "write" });
  log.emit("tool.started", { call: "c3", tool: "read_file", risk: "read" });
  assertEquals(log.state().turn.changedAt, 2);
});

test("finalText() is the text of the newest reply", () => {
  const log = eventList();
  assertEquals(finalText(log.state()), "");
  const reply = (content: EventData["model.completed"]["content"]) =>
    log.emit("model.completed", { stopReason: "end", usage: noUsage, content });
  reply([{ type: "text", text: "first" }, { type: "tool_use", id: "c1", name: "read_file", input: {} }]);
  log.emit("tool.completed", {
    call: "c1",
    tool: "read_file",
    ok: true,
    bytes: 1,
    durationMs: 0,
    result: "r",
  });
  reply([{ type: "text", text: "one " }, { type: "opaque", value: {} }, { type: "text", text: "two" }]);
  assertEquals(finalText(log.state()), "one two");
});
