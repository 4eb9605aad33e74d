// Who answers an ask: the person at the terminal, or nobody.
import type { Approval, Approver } from "../agent/ports.ts";
import { showCause } from "../core/decision.ts";
import type { Facts } from "../core/facts.ts";
import { escapeLine, escapeTerminal } from "../core/text.ts";
import type { Output } from "./output.ts";
import type { Terminal } from "./terminal.ts";

export const nobody: Approver = {
  ask: async () => ({ allow: false, answer: { by: "non_interactive" } }),
};

/** The default answer is no, and a no can carry a reason that the model sees: `n use the staging branch`. */
export function terminalApprover(terminal: Terminal, output: Output): Approver {
  return {
    async ask(approval, signal) {
      await terminal.discardTyped();
      for (const line of describeApproval(approval, output.paint)) output.note(line);
      const answer = (await terminal.ask("  allow? [y/s/N] ", signal) ?? "").trim();
      const word = answer.toLowerCase();
      if (word === "y" || word === "yes") return { allow: true, answer: { by: "user", scope: "once" } };
      if ((word === "s" || word === "session") && approval.grant !== undefined) {
        return { allow: true, answer: { by: "user", scope: "session", rule: approval.grant } };
      }
      const reason = answer.replace(/^(?:no?)(?:\s+|$)/i, "").trim();
      return { allow: false, answer: { by: "user", ...(reason === "" ? {} : { reason }) } };
    },
  };
}

/** What a person needs to see before a yes: what would happen, why it is asked, and what a kept answer would cover. */
export function describeApproval(approval: Approval, paint: Output["paint"]): readonly string[] {
  const { call, facts, verdict, preview, grant } = approval;
  const lines = [
    `${paint.yellow("?")} ${paint.bold(escapeLine(call.tool))} ${paint.dim(`risk ${facts.risk}`)}`,
  ];
  lines.push(...subjectLines(facts).map((l) => `    ${l}`));
  if (facts.box !== "default") lines.push(`    in box ${escapeLine(facts.box)}`);
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
  lines.push(paint.dim("  n  no; words after it are told to the model"));
  return lines;
}

function subjectLines(facts: Facts): readonly string[] {
  return facts.subjects.map((subject) => {
    switch (subject.kind) {
      case "call":
        return escapeLine(JSON.stringify(facts.args));
      case "part":
        return escapeLine(subject.part.text) +
          (subject.part.notUnderstood === undefined
            ? ""
            : ` (not understood: ${escapeLine(subject.part.notUnderstood)})`);
      case "path":
        return `${subject.tool} ${escapeLine(subject.path.resolved ?? subject.path.written)}`;
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
