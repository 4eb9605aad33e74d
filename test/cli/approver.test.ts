import { assertEquals, assertStringIncludes } from "@std/assert";
import { describe, test } from "bun:test";
import colors from "picocolors";
import type { Approval } from "../../src/agent/ports.ts";
import { describeApproval, readAnswer, terminalApprover } from "../../src/cli/approver.ts";
import type { Output } from "../../src/cli/output.ts";
import type { Terminal } from "../../src/cli/terminal.ts";
import { part } from "../core/decide_generators.ts";

const approval: Approval = {
  call: { id: "c", tool: "shell", args: { command: "git push" } },
  facts: {
    tool: "shell",
    args: {},
    risk: "network",
    subjects: [{ kind: "part", part: part("git push") }],
    box: "default",
    sourcedBy: [],
    mode: "interactive",
    errors: [],
  },
  verdict: { effect: "ask", causes: [{ by: "default", effect: "ask", layer: "builtin", risk: "network" }] },
};
const everything: Approval = { ...approval, grant: "shell(git push)", always: "shell(git push)" };

describe("readAnswer()", () => {
  const no = (reason?: string) => ({
    allow: false,
    answer: { by: "user", ...(reason === undefined ? {} : { reason }) },
  });
  const yes = (scope: string, rule?: string) => ({
    allow: true,
    answer: { by: "user", scope, ...(rule === undefined ? {} : { rule }) },
  });
  const rows: readonly (readonly [text: string, all: unknown, least: unknown])[] = [
    ["y", yes("once"), yes("once")],
    [" YES ", yes("once"), yes("once")],
    ["s", yes("session", "shell(git push)"), no()],
    ["session", yes("session", "shell(git push)"), no()],
    ["a", yes("always", "shell(git push)"), no()],
    ["Always", yes("always", "shell(git push)"), no()],
    ["", no(), no()],
    ["n", no(), no()],
    ["no", no(), no()],
    ["n use the staging branch", no("use the staging branch"), no("use the staging branch")],
    ["not now", no("not now"), no("not now")],
    ["yes please", no("yes please"), no("yes please")],
    ["y\ny", no("y\ny"), no("y\ny")],
    ["a lot", no("a lot"), no("a lot")],
  ];
  for (const [text, all, least] of rows) {
    test(JSON.stringify(text), () => {
      assertEquals<unknown>(readAnswer(text, everything), all);
      assertEquals<unknown>(readAnswer(text, approval), least);
    });
  }
});

describe("describeApproval()", () => {
  const lines = (more: Partial<Approval>) =>
    describeApproval({ ...approval, ...more }, colors.createColors(false));

  test("shows what would be kept as the rule that it would be", () => {
    assertEquals(lines(everything).slice(-4), [
      "  y  once",
      "  s  for this session, as the rule: shell(git push)",
      "  a  always in this workspace, as the rule: shell(git push)",
      "  n  no; words after it are told to the model",
    ]);
  });

  test("says why nothing is kept for good", () => {
    const shown = lines({
      grant: "shell(x)",
      notAlways: "your own policy is replaced by --policy in this run",
    });
    assertStringIncludes(
      shown.join("\n"),
      "\n     not for good: your own policy is replaced by --policy in this run\n",
    );
  });

  test("shows nothing that a terminal would act on", () => {
    const shown = lines({ grant: "shell(a\u001b[2Jb)", always: "shell(a\u202eb)" }).join("\n");
    assertStringIncludes(shown, "shell(a\\x1b[2Jb)");
    assertStringIncludes(shown, "shell(a\\u202eb)");
  });
});

describe("terminalApprover()", () => {
  test("offers the letters that are offered", async () => {
    const prompts: string[] = [];
    const terminal = {
      ask: async (prompt: string) => {
        prompts.push(prompt);
        return "a";
      },
      discardTyped: async () => {},
    } as unknown as Terminal;
    const output = { note: () => {}, paint: colors.createColors(false) } as unknown as Output;
    const signal = new AbortController().signal;
    const approver = terminalApprover(() => terminal, output);
    assertEquals((await approver.ask(approval, signal)).allow, false);
    assertEquals((await approver.ask(everything, signal)).answer.scope, "always");
    assertEquals(prompts, ["  allow? [y/s/N] ", "  allow? [y/s/a/N] "]);
  });

  test("takes the end of the input for a no", async () => {
    const terminal = { ask: async () => undefined, discardTyped: async () => {} } as unknown as Terminal;
    const output = { note: () => {}, paint: colors.createColors(false) } as unknown as Output;
    const answer = await terminalApprover(() => terminal, output).ask(
      everything,
      new AbortController().signal,
    );
    assertEquals(answer, { allow: false, answer: { by: "user" } });
  });
});
