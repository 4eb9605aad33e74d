import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import type { EventData } from "../../src/core/event.ts";
import { emptyGateState, type GateState } from "../../src/core/gate_state.ts";
import { noUsage } from "../../src/core/message.ts";
import { type EventList, eventList, sessionFacts } from "./session_events.ts";

type Step = (log: EventList) => void;

const start = (call: string, more: Partial<EventData["tool.started"]> = {}): Step => (log) =>
  log.emit("tool.started", { call, tool: "shell", risk: "execute", ...more });
const end = (call: string, more: Partial<EventData["tool.completed"]> = {}): Step => (log) =>
  log.emit("tool.completed", { call, tool: "shell", ok: true, bytes: 0, durationMs: 0, result: "", ...more });
const cut = (call: string, started: boolean): Step => (log) =>
  log.emit("tool.interrupted", { call, tool: "shell", started });
const verdict = (outcome: string, more: Partial<EventData["skill.completed"]> = {}): Step => (log) =>
  log.emit("skill.completed", { name: "s", outcome, summary: "", evidence: [], ...more });
const turnEnd = (gates?: readonly string[]): Step => (log) =>
  log.emit("turn.completed", {
    stopReason: "final",
    usage: noUsage,
    denied: [],
    ...(gates === undefined ? {} : { gates }),
  });

describe("what a log says about gates", () => {
  /** The numbers are those of the steps, from 1. */
  const rows: readonly (readonly [name: string, steps: readonly Step[], state: Partial<GateState>])[] = [
    ["a read changes nothing", [start("c1", { risk: "read" }), end("c1")], {}],
    ["what may write makes stale at its start", [start("c1", { risk: "write" })], { staleUpTo: 1 }],
    ["evidence does not", [start("c1", { evidence: ["g#0"] })], {}],
    [
      "evidence counts from its end, with the content that it is about",
      [start("c1", { evidence: ["g#0", "h#1"] }), end("c1", { evidence: ["g#0", "h#1"], tree: "t" })],
      {
        marks: { "g#0": { call: "c1", seq: 2, tree: "t" }, "h#1": { call: "c1", seq: 2, tree: "t" } },
      },
    ],
    ["a call that failed is none", [end("c1", { ok: false, evidence: ["g#0"] })], {}],
    [
      "a near call is kept until one counts",
      [end("c1", { notEvidence: { "g#0": "why", "g#1": "why not" } }), end("c2", { evidence: ["g#0"] })],
      {
        marks: { "g#0": { call: "c2", seq: 2 } },
        nearly: { "g#1": { call: "c1", why: "why not" } },
      },
    ],
    [
      "a near call after one that counts",
      [end("c1", { evidence: ["g#0"] }), end("c2", { ok: false, notEvidence: { "g#0": "why" } })],
      { marks: { "g#0": { call: "c1", seq: 1 } }, nearly: { "g#0": { call: "c2", why: "why" } } },
    ],
    ["a gated call passes", [start("c1", { gates: ["g"] })], {
      staleUpTo: 1,
      spared: { g: { at: 1, floor: 0 } },
      passing: { c1: ["g"] },
    }],
    ["a gated read passes", [start("c1", { risk: "read", gates: ["g"] })], { passing: { c1: ["g"] } }],
    [
      "a gated call that is evidence of another gate passes",
      [start("c1", { evidence: ["h#0"], gates: ["g"] })],
      { passing: { c1: ["g"] } },
    ],
    [
      "what was stale before stays so",
      [start("c1"), start("c2", { gates: ["g"] }), start("c3", { gates: ["g"] })],
      { staleUpTo: 3, spared: { g: { at: 3, floor: 1 } }, passing: { c2: ["g"], c3: ["g"] } },
    ],
    [
      "a gated call that used it up",
      [start("c1", { risk: "read", gates: ["g", "h"] }), end("c1", { gates: ["g"] })],
      { usedUpTo: { g: 2 } },
    ],
    [
      "a gated call that failed uses up what it says",
      [start("c1", { risk: "read", gates: ["g"] }), end("c1", { ok: false, gates: ["g"] })],
      { usedUpTo: { g: 2 } },
    ],
    ["one that kept it", [start("c1", { risk: "read", gates: ["g"] }), end("c1", { ok: false })], {}],
    [
      "a call that was cut off used up all that it passed",
      [start("c1", { risk: "read", gates: ["g", "h"] }), cut("c1", true)],
      { staleUpTo: 2, usedUpTo: { g: 2, h: 2 } },
    ],
    ["a call that never started did nothing", [cut("c1", false)], {}],
    ["a call that was cut off, without a gate", [start("c1", { risk: "read" }), cut("c1", true)], {
      staleUpTo: 2,
    }],
    [
      "what a fork reports counts here",
      [
        (log) =>
          log.emit("fork.reported", {
            session: "f",
            event: "tool.started",
            data: { call: "c1", tool: "shell", risk: "execute", gates: ["g"] },
          }),
        (log) =>
          log.emit("fork.reported", {
            session: "f",
            event: "tool.completed",
            data: {
              call: "c1",
              tool: "shell",
              ok: true,
              bytes: 0,
              durationMs: 0,
              evidence: ["h#0"],
              gates: ["g"],
            },
          }),
        (log) =>
          log.emit("fork.reported", {
            session: "f",
            event: "tool.interrupted",
            data: { call: "c2", tool: "shell", started: true },
          }),
      ],
      {
        marks: { "h#0": { call: "c1", seq: 2 } },
        staleUpTo: 3,
        spared: { g: { at: 1, floor: 0 } },
        usedUpTo: { g: 2 },
      },
    ],
    ["a resume voids all", [(log) => log.emit("session.resumed", sessionFacts)], { voidUpTo: 1 }],
    ["verdicts, in order", [verdict("FAIL"), verdict("PASS", { gates: ["g"], tree: "t", fork: "f" })], {
      verdicts: {
        s: [{ outcome: "FAIL", seq: 1, fork: false, gates: [] }, {
          outcome: "PASS",
          seq: 2,
          tree: "t",
          fork: true,
          gates: ["g"],
        }],
      },
    }],
    ["what was never reported is no verdict", [verdict("unreported")], {}],
    ["the end of a turn uses up its gates", [turnEnd(), turnEnd([]), turnEnd(["g", "h"])], {
      usedUpTo: { g: 3, h: 3 },
    }],
  ];
  for (const [name, steps, state] of rows) {
    test(name, () => {
      const log = eventList();
      for (const step of steps) step(log);
      assertEquals(log.state().gates, { ...emptyGateState, ...state });
    });
  }
});
