import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import fc from "fast-check";
import type { Facts, Part, Subject } from "../../src/core/facts.ts";
import {
  evidenceCalls,
  failedFinish,
  finishBlocks,
  gateBlocks,
  gatesOf,
  gateVotes,
  missingEvidence,
  showMissing,
  usesUp,
} from "../../src/core/gate.ts";
import { emptyGateState, type GateState } from "../../src/core/gate_state.ts";
import type { Gate } from "../../src/core/policy.ts";
import type { Matchers } from "../../src/core/rule.ts";
import { callOf } from "../support/calls.ts";
import { command, part, pathGlob, root, rule, tries } from "./decide_generators.ts";
import { eventList, sessionFacts } from "./session_events.ts";

const inner = { level: "inner" } as const;
const wrapped = { notUnderstood: "runs another command", nameable: true } as const;
const shell = (text: string): Matchers => ({ tools: ["shell"], command: [command(text)] });

function makeGate(
  before: readonly Matchers[],
  evidence: readonly Matchers[],
  more: Partial<Pick<Gate, "skill" | "verdict" | "id">> = {},
): Gate {
  return {
    id: "merge",
    layer: "user",
    at: { file: "policy.yaml", line: 7, col: 5 },
    before: before.map((m, n) => rule("user", `before[${n}]`, "deny", m)),
    evidence: evidence.map((m, n) => rule("user", `evidence[${n}]`, "allow", m)),
    ...more,
  };
}

/** The blocks, as people are told of them. */
function told(...of: Parameters<typeof gateBlocks>) {
  return gateBlocks(...of).map(({ gate, missing }) => ({ gate, missing: missing.map(showMissing) }));
}

function facts(tool: string, more: Partial<Facts> = {}): Facts {
  return callOf(tool, [{ kind: "call" }], more);
}

function shellFacts(parts: readonly Part[], ...more: readonly Subject[]): Facts {
  return facts("shell", {
    subjects: [...parts.map((p): Subject => ({ kind: "part", part: p })), ...more] as never,
  });
}

const out: Subject = {
  kind: "path",
  tool: "write_file",
  operand: false,
  path: { written: "out", absolute: "/ws/out", resolved: "/ws/out", inWorkspace: true },
};
const merge = shellFacts([part("gh pr merge 1")]);
const compound = "gate_compound: the gated command must be the only one in its text";

describe("gatesOf() looks as deep as a deny rule", () => {
  const rows: readonly (readonly [name: string, before: Matchers, asked: Facts, gated: boolean])[] = [
    ["the command", shell("gh pr merge *"), merge, true],
    ["another command", shell("gh pr view *"), merge, false],
    ["one of several", shell("gh pr merge *"), shellFacts([part("ls"), part("gh pr merge 1")]), true],
    [
      "inside another one",
      shell("gh pr merge *"),
      shellFacts([part("sh -c x", wrapped), part("gh pr merge 1", inner)]),
      true,
    ],
    ["by another spelling", shell("git push *"), shellFacts([part("/usr/bin/git -C sub push")]), true],
    ["in any box", shell("gh pr merge *"), { ...merge, box: "push" }, true],
    ["a tool by name", { tools: ["mcp.gh.*"] }, facts("mcp.gh.merge"), true],
    [
      "a redirection",
      { tools: ["write_file"], path: [pathGlob("out")] },
      shellFacts([part("ls")], out),
      true,
    ],
    [
      "by risk, beside something riskier",
      { tools: ["shell"], risk: ["network"] },
      { ...shellFacts([part("curl https://example.com"), part("rm -rf x")]), risk: "destructive" },
      true,
    ],
  ];
  for (const [name, before, asked, gated] of rows) {
    test(name, () => {
      const gate = makeGate([before], []);
      assertEquals(gatesOf([gate], asked, root), gated ? [gate] : []);
    });
  }
});

describe("a gated call stands alone in its text", () => {
  const open = { ...emptyGateState, marks: { "merge#0": { call: "c1", seq: 1 } } };
  const rows: readonly (readonly [name: string, before: Matchers, asked: Facts, alone: boolean])[] = [
    ["alone", shell("gh pr merge *"), merge, true],
    [
      "beside another command",
      shell("gh pr merge *"),
      shellFacts([part("touch a"), part("gh pr merge 1")]),
      false,
    ],
    ["with a redirection", shell("gh pr merge *"), shellFacts([part("gh pr merge 1")], out), true],
    [
      "hidden in another command",
      shell("gh pr merge *"),
      shellFacts([part("sh -c x", wrapped), part("gh pr merge 1", inner)]),
      false,
    ],
    [
      "with a substitution that runs first",
      shell("gh pr merge *"),
      shellFacts([
        part("gh pr merge $(touch a)", { notUnderstood: "holds a substitution" }),
        part("touch a", inner),
      ]),
      false,
    ],
    [
      "a gated command that runs another",
      shell("npx release *"),
      shellFacts([part("npx release now"), part("release now", inner)]),
      true,
    ],
    [
      "nothing but what runs inside",
      shell("gh pr merge *"),
      shellFacts([part("gh pr merge 1", inner)]),
      false,
    ],
    [
      "a skill's tool that runs another command, by its own name",
      { tools: ["skill.a.ship"] },
      facts("skill.a.ship", {
        subjects: [
          { kind: "part", part: part("sh -c x", wrapped) },
          { kind: "part", part: part("gh x", inner) },
          { kind: "call" },
        ],
      }),
      true,
    ],
    [
      "a skill's tool that runs another command, by that command",
      shell("gh pr merge *"),
      facts("skill.a.ship", {
        subjects: [
          { kind: "part", part: part("sh -c x", wrapped), tool: "shell" },
          { kind: "part", part: part("gh pr merge 1", inner), tool: "shell" },
          { kind: "call" },
        ],
      }),
      false,
    ],
    [
      "only what a command runs is gated",
      shell("release *"),
      shellFacts([part("npx release now"), part("release now", inner)]),
      false,
    ],
  ];
  for (const [name, before, asked, alone] of rows) {
    test(name, () => {
      // A second pattern that reaches none of them makes no difference.
      const gate = makeGate([before, { tools: ["write_file"], path: [pathGlob("nowhere")] }], [
        { tools: ["git_diff"] },
      ]);
      assertEquals(told([gate], open, asked, root), alone ? [] : [{ gate, missing: [compound] }]);
    });
  }
});

test("gateBlocks() says what is missing, gateVotes() makes it a deny", () => {
  const gate = makeGate([shell("gh pr merge *")], [{ tools: ["git_diff"] }, shell("bun test")], {
    skill: "guardian",
    verdict: ["PASS"],
  });
  const state = { ...emptyGateState, marks: { "merge#0": { call: "c1", seq: 4 } } };
  const missing = [
    "evidence missing: evidence[1]",
    "verdict missing: complete_skill guardian with outcome PASS, in a reply after the one that asked for the evidence",
  ];
  const blocks = gateBlocks([gate], state, merge, root);
  assertEquals(blocks.map((b) => b.missing.map((m) => m.kind)), [["evidence", "verdict"]]);
  assertEquals(missingEvidence(gate, state), [{ kind: "evidence", rule: gate.evidence[1]! }]);
  assertEquals(gateVotes(blocks), [
    { by: "gate", effect: "deny", gate: "merge", layer: "user", at: gate.at, missing },
  ]);
});

describe("gateBlocks() says why what was gathered does not count", () => {
  const gate = makeGate([shell("gh pr merge *")], [{ tools: ["git_diff"] }], {
    skill: "guardian",
    verdict: ["PASS"],
  });
  const mark = { call: "c1", seq: 5, tree: "t1" };
  const pass = { outcome: "PASS", seq: 8, tree: "t1", fork: false, gates: ["merge"] };
  const whole: GateState = {
    ...emptyGateState,
    marks: { "merge#0": mark },
    verdicts: { guardian: [pass] },
  };
  const evidence = (why: string) => `evidence missing: evidence[0]${why === "" ? "" : ` (call c1 ${why})`}`;
  const verdict =
    "verdict missing: complete_skill guardian with outcome PASS, in a reply after the one that asked for the evidence";
  const changed =
    "is stale: files, HEAD, branches or tags are not as they were; fetch and commit first, then gather";
  const order = "is stale: something that may write or execute was started after it";
  const voided = "was voided by the verdict after it";
  const used = "was used up";
  const resumed = "was before the session was resumed";
  const without = <T extends { tree?: string }>({ tree: _, ...rest }: T) => rest;

  type Row = readonly [
    name: string,
    state: Partial<GateState>,
    missing: readonly string[],
    tree?: string | undefined,
  ];
  const rows: readonly Row[] = [
    ["all there", {}, [], "t1"],
    ["all there, where content is not compared", {}, [], undefined],
    ["nothing there", { marks: {}, verdicts: {} }, [evidence(""), verdict], "t1"],
    ["other content", {}, [evidence(changed), verdict], "t2"],
    ["later calls, and the same content", { staleUpTo: 9 }, [], "t1"],
    ["later calls, and no content known now", { staleUpTo: 9 }, [evidence(order), verdict], undefined],
    [
      "later calls, and no content known then",
      { staleUpTo: 9, marks: { "merge#0": without(mark) }, verdicts: { guardian: [without(pass)] } },
      [evidence(order), verdict],
      "t1",
    ],
    ["a later call as old as the evidence", { staleUpTo: 5 }, [evidence(order)], undefined],
    ["a call before it", { staleUpTo: 4 }, [], undefined],
    ["a call as old as the verdict", { staleUpTo: 8, marks: { "merge#0": { ...mark, seq: 9 } } }, [
      verdict,
    ], undefined],
    ["used up", { usedUpTo: { merge: 9 } }, [evidence(used), verdict], "t1"],
    ["used up just then", { usedUpTo: { merge: 5 } }, [evidence(used)], "t1"],
    ["used up before", { usedUpTo: { merge: 4 } }, [], "t1"],
    ["used up by another gate", { usedUpTo: { push: 9 } }, [], "t1"],
    ["resumed", { voidUpTo: 9 }, [evidence(resumed), verdict], "t1"],
    ["resumed between", { voidUpTo: 5 }, [evidence(resumed)], "t1"],
    ["resumed before", { voidUpTo: 4 }, [], "t1"],
    ["spared", { staleUpTo: 9, spared: { merge: { at: 9, floor: 4 } } }, [], undefined],
    ["spared from where it was stale", { staleUpTo: 9, spared: { merge: { at: 9, floor: 5 } } }, [
      evidence(order),
    ], undefined],
    ["spared of an earlier call", { staleUpTo: 9, spared: { merge: { at: 7, floor: 4 } } }, [
      evidence(order),
      verdict,
    ], undefined],
    ["another gate spared", { staleUpTo: 9, spared: { push: { at: 9, floor: 4 } } }, [
      evidence(order),
      verdict,
    ], undefined],
    [
      "a refusal after the evidence",
      { verdicts: { guardian: [{ ...pass, outcome: "FAIL", seq: 6 }, pass] } },
      [evidence(voided)],
      "t1",
    ],
    [
      "a refusal before the evidence",
      { verdicts: { guardian: [{ ...pass, outcome: "FAIL", seq: 4 }, pass] } },
      [],
      "t1",
    ],
    [
      "a refusal at last",
      { verdicts: { guardian: [pass, { ...pass, outcome: "FAIL", seq: 9 }] } },
      [evidence(voided), verdict],
      "t1",
    ],
    [
      "a verdict for another gate",
      { verdicts: { guardian: [{ ...pass, gates: ["push"] }] } },
      [verdict],
      "t1",
    ],
    ["a verdict on other content", { verdicts: { guardian: [{ ...pass, tree: "t2" }] } }, [verdict], "t1"],
    ["a verdict of another skill", { verdicts: { other: [pass] } }, [verdict], "t1"],
    [
      "a near call after it",
      { marks: {}, nearly: { "merge#0": { call: "c1", why: "it failed (exit)" } } },
      [evidence("is none: it failed (exit)")],
      "t1",
    ],
    ["a near call beside one that counts", { nearly: { "merge#0": { call: "c9", why: "x" } } }, [], "t1"],
  ];
  for (const [name, state, missing, tree] of rows) {
    test(name, () => {
      assertEquals(
        told([gate], { ...whole, ...state }, merge, root, tree),
        missing.length === 0 ? [] : [{ gate, missing }],
      );
    });
  }

  test("a verdict that a fork must give", () => {
    const forked: Gate = { ...gate, by: "fork" };
    const wanted = verdict.replace("PASS,", "PASS, by a fork of the skill,");
    assertEquals(told([forked], whole, merge, root, "t1"), [{ gate: forked, missing: [wanted] }]);
    const given = { ...whole, verdicts: { guardian: [{ ...pass, fork: true }] } };
    assertEquals(told([forked], given, merge, root, "t1"), []);
    assertEquals(told([gate], given, merge, root, "t1"), []);
  });

  test("a verdict alone, of several", () => {
    const alone: Gate = { ...gate, evidence: [], verdict: ["PASS", "OK"] };
    assertEquals(told([alone], emptyGateState, merge, root), [{
      gate: alone,
      missing: ["verdict missing: complete_skill guardian with outcome PASS or OK"],
    }]);
  });

  test("a verdict without a skill, or a skill without a verdict, is not waited for", () => {
    const { skill: _skill, verdict: _verdict, ...plain } = gate;
    for (const waits of [{ ...plain, skill: "guardian" }, { ...plain, verdict: ["PASS"] }]) {
      const refused = { guardian: [{ ...pass, outcome: "FAIL", seq: 9 }] };
      assertEquals(told([waits], { ...whole, verdicts: refused }, merge, root, "t1"), []);
    }
  });

  test("a skill that is called like a property of every object", () => {
    const odd: Gate = { ...gate, skill: "constructor" };
    const missing = [verdict.replace("guardian", "constructor")];
    assertEquals(told([odd], whole, merge, root, "t1"), [{ gate: odd, missing }]);
  });

  test("evidenceCalls() names the calls in the order of the patterns", () => {
    const two: Gate = { ...gate, evidence: [...gate.evidence, ...gate.evidence, ...gate.evidence] };
    const marks = { "merge#2": { call: "c3", seq: 1 }, "merge#0": mark };
    assertEquals(evidenceCalls(two, { ...whole, marks }), ["c1", "c3"]);
  });
});

describe("a gate on the end of a turn", () => {
  const gate: Gate = {
    ...makeGate([], [{ tools: ["git_diff"] }], { skill: "guardian", verdict: ["PASS", "FAIL"] }),
    finish: { retries: 3 },
  };
  const given = (outcome: string): GateState => ({
    ...emptyGateState,
    marks: { "merge#0": { call: "c1", seq: 1, tree: "t1" } },
    verdicts: { guardian: [{ outcome, seq: 2, tree: "t1", fork: false, gates: ["merge"] }] },
  });
  const call: Gate = { ...makeGate([shell("gh pr merge *")], [{ tools: ["git_diff"] }]), id: "call" };

  test("finishBlocks() are those that are not met", () => {
    assertEquals(
      finishBlocks([gate, call], emptyGateState, undefined).map((b) => [b.gate.id, b.missing.length]),
      [
        ["merge", 2],
      ],
    );
    assertEquals(finishBlocks([gate, call], given("FAIL"), "t1"), []);
    assertEquals(finishBlocks([gate], given("FAIL"), "t2").map((b) => b.missing.length), [2]);
  });

  test("guards no call", () => assertEquals(told([gate], emptyGateState, merge, root), []));

  test("failedFinish() is the first whose newest verdict is FAIL", () => {
    assertEquals(failedFinish([call, gate], given("FAIL")), gate);
    assertEquals(failedFinish([gate, { ...gate, id: "later" }], given("FAIL")), gate);
    assertEquals(failedFinish([call, gate], given("PASS")), undefined);
    assertEquals(failedFinish([{ ...call, skill: "guardian", verdict: ["FAIL"] }], given("FAIL")), undefined);
    assertEquals(failedFinish([gate], emptyGateState), undefined);
  });
});

describe("usesUp() is true of what may have had its effect", () => {
  const rows: readonly (readonly [name: string, outcome: Parameters<typeof usesUp>[0], used: boolean])[] = [
    ["a good end", { ok: true }, true],
    ["a failure of which it is not known", { ok: false, unknown: true }, true],
    ["a failure", { ok: false }, false],
  ];
  for (const [name, outcome, used] of rows) test(name, () => assertEquals(usesUp(outcome), used));
});

// ---- histories ----------------------------------------------------------------------------------------------------

type Step =
  | { readonly do: "evidence"; readonly index: 0 | 1; readonly ends: "ok" | "failed" | "partial" }
  | { readonly do: "read" }
  | { readonly do: "write"; readonly ends: "ok" | "failed" | "interrupted" }
  | { readonly do: "verdict"; readonly outcome: string }
  | { readonly do: "resume" }
  | {
    readonly do: "gated";
    readonly ends: "ok" | "failed" | "timeout" | "cancelled" | "interrupted";
  };

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant("evidence" as const),
        index: fc.constantFrom(0 as const, 1 as const),
        ends: fc.constantFrom(
          "ok" as const,
          "ok" as const,
          "ok" as const,
          "failed" as const,
          "partial" as const,
        ),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant("verdict" as const),
        outcome: fc.constantFrom("PASS", "PASS", "PASS", "FAIL"),
      }),
    },
    { weight: 1, arbitrary: fc.constant({ do: "read" as const }) },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant("write" as const),
        ends: fc.constantFrom("ok" as const, "failed" as const, "interrupted" as const),
      }),
    },
    { weight: 1, arbitrary: fc.constant({ do: "resume" as const }) },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant("gated" as const),
        ends: fc.constantFrom(
          "ok" as const,
          "failed" as const,
          "timeout" as const,
          "cancelled" as const,
          "interrupted" as const,
        ),
      }),
    },
  ),
  { maxLength: 10 },
);

/** The events that the loop records for these steps, folded. */
function stateAfter(history: readonly Step[]) {
  const log = eventList();
  log.emit("session.started", sessionFacts);
  const run = (tool: string, risk: "read" | "execute", ends: string, marks: object) => {
    const call = `c${log.events.length}`;
    log.emit("tool.started", { call, tool, risk, ...marks });
    if (ends === "interrupted") return log.emit("tool.interrupted", { call, tool, started: true });
    const { evidence, gates } = marks as { evidence?: readonly string[]; gates?: readonly string[] };
    const counted = evidence !== undefined && ends === "ok" ? { evidence } : {};
    const ok = ends === "ok" || ends === "partial";
    const code = ok ? {} : ends === "failed" ? { code: "exit" } : { code: ends, unknown: true as const };
    const used = gates !== undefined && ends !== "failed" ? { gates } : {};
    log.emit("tool.completed", {
      call,
      tool,
      ok,
      ...code,
      bytes: 0,
      durationMs: 0,
      result: "",
      ...counted,
      ...used,
    });
  };
  for (const step of history) {
    switch (step.do) {
      case "evidence":
        run("shell", "execute", step.ends, { evidence: [`merge#${step.index}`] });
        break;
      case "read":
        run("read_file", "read", "ok", {});
        break;
      case "write":
        run("write_file", "execute", step.ends, {});
        break;
      case "gated":
        run("shell", "execute", step.ends, { gates: ["merge"] });
        break;
      case "verdict":
        log.emit("skill.completed", {
          name: "guardian",
          outcome: step.outcome,
          summary: "",
          evidence: [],
          gates: ["merge"],
        });
        break;
      case "resume":
        log.emit("session.resumed", sessionFacts);
    }
  }
  return log.state().gates;
}

/** What takes everything away that was gathered before it. */
function voids(step: Step): boolean {
  if (step.do === "resume" || step.do === "write") return true;
  return step.do === "gated" && step.ends !== "failed";
}

function isOpen(history: readonly Step[], evidence: number, verdict: boolean): boolean {
  const since = history.slice(history.findLastIndex(voids) + 1);
  const refusal = verdict ? history.findLastIndex((s) => s.do === "verdict" && s.outcome !== "PASS") : -1;
  const seen = history.slice(refusal + 1).filter((s) => since.includes(s));
  for (let index = 0; index < evidence; index++) {
    if (!seen.some((s) => s.do === "evidence" && s.index === index && s.ends === "ok")) return false;
  }
  if (!verdict) return true;
  const newest = since.findLast((s) => s.do === "verdict");
  return newest?.do === "verdict" && newest.outcome === "PASS";
}

describe("a gate opens exactly when the history says so", () => {
  const rows: readonly (readonly [name: string, evidence: number, verdict: boolean])[] = [
    ["one piece of evidence", 1, false],
    ["two pieces of evidence", 2, false],
    ["a verdict alone", 0, true],
    ["evidence and a verdict", 2, true],
  ];
  for (const [name, evidence, verdict] of rows) {
    test(name, () => {
      const gate = makeGate(
        [shell("gh pr merge *")],
        [{ tools: ["git_diff"] }, shell("bun test")].slice(0, evidence),
        verdict ? { skill: "guardian", verdict: ["PASS"] } : {},
      );
      const seen = new Set<boolean>();
      fc.assert(
        fc.property(steps, (made) => {
          // Every step is a thing of its own, so that steps can be told apart.
          const history = made.map((s) => ({ ...s }));
          const open = gateBlocks([gate], stateAfter(history), merge, root).length === 0;
          seen.add(open);
          assertEquals(open, isOpen(history, evidence, verdict));
        }),
        tries(1_000),
      );
      assertEquals([...seen].sort(), [false, true]);
    }, 60_000);
  }

  test("a write, a resume or a used gate never opens one", () => {
    const gate = makeGate([shell("gh pr merge *")], [{ tools: ["git_diff"] }], {
      skill: "guardian",
      verdict: ["PASS"],
    });
    const voiding = steps.map((all) => all.filter(voids));
    fc.assert(
      fc.property(steps, voiding, (history, more) => {
        if (more.length === 0) return;
        const blocks = gateBlocks([gate], stateAfter([...history, ...more]), merge, root);
        assertEquals(blocks.length, 1);
      }),
      tries(500),
    );
  }, 60_000);
});

test("a gated call makes stale what other gates hold, and keeps its own until it went through", () => {
  const log = eventList();
  log.emit("session.started", sessionFacts);
  const call = (name: string, risk: "read" | "execute", marks: object, ok = true) => {
    log.emit("tool.started", { call: name, tool: "shell", risk, ...marks });
    const code = ok ? {} : { code: "exit" };
    const used = ok ? marks : {};
    log.emit("tool.completed", {
      call: name,
      tool: "shell",
      ok,
      ...code,
      bytes: 0,
      durationMs: 0,
      result: "",
      ...used,
    });
  };
  const missing = (gate: Gate) => missingEvidence(gate, log.state().gates).length;
  const merge = makeGate([shell("git merge *")], [shell("bun test")]);
  const push = makeGate([shell("git push *")], [shell("bun lint")], { id: "push" });
  call("c1", "execute", { evidence: ["merge#0"] });
  call("c2", "execute", { evidence: ["push#0"] });
  assertEquals([missing(merge), missing(push)], [0, 0]);
  call("c3", "execute", { gates: ["merge"] }, false);
  assertEquals([missing(merge), missing(push)], [0, 1]);
  call("c4", "execute", {});
  assertEquals([missing(merge), missing(push)], [1, 1]);
});
