// Who answers an ask: the person at the terminal, or nobody.
import type { Approval, Approver } from "../agent/ports.ts";
import { showCause } from "../core/decision.ts";
import { isGuess } from "../core/covering.ts";
import type { Facts } from "../core/facts.ts";
import { escapeLine, escapeTerminal } from "../core/text.ts";
import type { Output } from "./output.ts";
import type { Terminal } from "./terminal.ts";

export const nobody: Approver = {
  ask: async () => ({ allow: false, answer: { by: "non_interactive" } }),
};

/**
 * The default answer is no, and a no can carry a reason that the model sees: `n use the staging branch`. The terminal is
 * opened at the first question: until then it stays as it is, also for a run in the background or one that is killed.
 */
export function terminalApprover(open: () => Terminal, output: Output): Approver {
  return {
    async ask(approval, signal) {
      const terminal = open();
      await terminal.discardTyped();
      for (const line of describeApproval(approval, output.paint)) output.note(line);
      const letters = approval.always === undefined ? "y/s/N" : "y/s/a/N";
      return readAnswer(await terminal.ask(`  allow? [${letters}] `, signal) ?? "", approval);
    },
  };
}

const notOffered: Answered = { allow: false, answer: { by: "user" } };

type Answered = Awaited<ReturnType<Approver["ask"]>>;

/** What a line means: only whole words of the list are a yes, everything else is a no and its reason. */
export function readAnswer(text: string, approval: Pick<Approval, "grant" | "always">): Answered {
  const answer = text.trim();
  switch (answer.toLowerCase()) {
    case "y":
    case "yes":
      return { allow: true, answer: { by: "user", scope: "once" } };
    case "s":
    case "session":
      if (approval.grant === undefined) return notOffered;
      return { allow: true, answer: { by: "user", scope: "session", rule: approval.grant } };
    case "a":
    case "always":
      if (approval.always === undefined) return notOffered;
      return { allow: true, answer: { by: "user", scope: "always", rule: approval.always } };
  }
  const reason = answer.replace(/^(?:no?)(?:\s+|$)/i, "").trim();
  return { allow: false, answer: { by: "user", ...(reason === "" ? {} : { reason }) } };
}

/** What a person needs to see before a yes: what would happen, why it is asked, and what a kept answer would cover. */
export function describeApproval(approval: Approval, paint: Output["paint"]): readonly string[] {
  const { call, facts, verdict, preview, box, grant, always, notAlways } = approval;
  const lines = [
    `${paint.yellow("?")} ${paint.bold(escapeLine(call.tool))} ${paint.dim(`risk ${facts.risk}`)}`,
  ];
  lines.push(...subjectLines(facts).map((l) => `    ${l}`));
  if (facts.box !== "default") lines.push(`    in box ${escapeLine(box ?? facts.box)}`);
  if (facts.sourcedBy.length > 0) {
    lines.push(paint.dim(`    active: ${escapeLine(facts.sourcedBy.join(", "))}`));
  }
  if (preview !== undefined) {
    lines.push(...escapeTerminal(preview).split("\n").map((l) => `    ${paintDiff(l, paint)}`));
  }
  for (const cause of verdict.causes.filter((c) => c.effect === "ask")) {
    lines.push(paint.dim(`  ${escapeLine(showCause(cause))}`));
  }
  lines.push(paint.dim("  y  once"));
  if (grant !== undefined) lines.push(paint.dim(`  s  for this session, as the rule: ${escapeLine(grant)}`));
  if (always !== undefined) {
    lines.push(paint.dim(`  a  always in this workspace, as the rule: ${escapeLine(always)}`));
  }
  if (notAlways !== undefined) lines.push(paint.dim(`     not for good: ${escapeLine(notAlways)}`));
  lines.push(paint.dim("  n  no; words after it are told to the model"));
  return lines;
}

function subjectLines(facts: Facts): readonly string[] {
  // A guess that matters is the reason, and is said there.
  return facts.subjects.filter((s) => !isGuess(s)).map((subject) => {
    switch (subject.kind) {
      case "call":
        return escapeLine(JSON.stringify(facts.args));
      case "part":
        return escapeLine(subject.part.text) +
          (subject.part.notUnderstood === undefined
            ? ""
            : ` (not understood: ${escapeLine(subject.part.notUnderstood)})`);
      case "path":
        return `${escapeLine(subject.tool)} ${escapeLine(subject.path.resolved ?? subject.path.written)}`;
      case "host":
        return `host ${escapeLine(subject.host.host)}`;
    }
  });
}

function paintDiff(line: string, paint: Output["paint"]): string {
  if (line.startsWith("+")) return paint.green(line);
  if (line.startsWith("-")) return paint.red(line);
  return line;
}
