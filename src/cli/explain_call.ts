// An explained call in words, for people.
import { type Cause, showCause } from "../core/decision.ts";
import type { PartExplanation } from "../core/explain.ts";
import { type NearMiss, showNearMiss } from "../core/near_miss.ts";
import { showPosition } from "../core/problem.ts";
import { escapeLine } from "../core/text.ts";
import type { ExplainedCall } from "../session/explain_call.ts";

/** Lines for people: the decision, every part with its votes, and the rules that nearly matched. */
export function explanationLines(call: ExplainedCall): readonly string[] {
  const { risk, tool, parts, causes, sourcedBy } = call;
  const lines = [headline(call), `${tool}, risk ${risk}`];
  if (sourcedBy.length > 0) lines.push(`with ${sourcedBy.join(", ")} active`);
  lines.push(...call.notes.map((note) => `note: ${note}`));
  const whole = causes.filter((c) => c.by === "error" || c.by === "gate" || c.by === "bound");
  if (whole.length > 0) lines.push("", "the call as a whole", ...whole.flatMap(wholeLines));
  parts.slice(0, mostParts).forEach((part, index) => lines.push("", ...partLines(part, index + 1)));
  if (parts.length > mostParts) lines.push("", `${parts.length - mostParts} more parts; --json has them all`);
  if (call.nearMisses.length > 0) lines.push("", ...call.nearMisses.map(nearLine));
  return lines.map(escapeLine);
}

const mostParts = 40;

function headline({ effect, decision, reason, causes, parts }: ExplainedCall): string {
  const [first] = causes;
  // What allows a call says itself what it is about.
  const about = effect !== "allow" && parts.length > 1 && "subject" in first && first.subject !== undefined
    ? ` [${first.subject}]`
    : "";
  const said = reason.startsWith(`${effect} `) ? reason : `${effect}: ${reason}`;
  return decision === effect ? said + about : `${said}${about}; nobody can be asked, so it is denied`;
}

function wholeLines(cause: Cause): readonly string[] {
  if (cause.by !== "gate") return [line("says", showCause(cause))];
  return [
    line("says", `deny by gate ${cause.gate} at ${showPosition(cause.at)}, until there is:`),
    ...cause.missing.map((missing) => line("", missing)),
  ];
}

function partLines(part: PartExplanation, number: number): readonly string[] {
  const gated = part.guessed === true && part.matches.length === 0;
  const effect = part.effect ?? (gated ? "held by a gate" : "nothing forbids it");
  const lines = [`${number}. ${titleOf(part)}: ${effect} (risk ${part.risk})`];
  if (part.argv !== undefined && part.argv.length > 0) lines.push(line("words", JSON.stringify(part.argv)));
  if (part.notUnderstood !== undefined) lines.push(line("note", part.notUnderstood));
  if (part.kind === "path") lines.push(line("leads to", part.resolved ?? "nowhere that can be resolved"));
  const [first, ...others] = part.causes;
  if (first !== undefined) lines.push(line("decides", showCause(first)));
  lines.push(...others.map((cause) => line("also", showCause(cause))));
  const silent = part.matches.filter((m) => !m.counts);
  lines.push(
    ...silent.map((m) =>
      line(
        "silent",
        `${m.effect} rule ${m.rule} (${m.text}) at ${showPosition(m.at)} matches, but does not count`,
      )
    ),
  );
  if (part.matches.length === 0 && part.kind !== "call" && !gated) {
    lines.push(line("rules", "none of the policy matches"));
  }
  return lines;
}

function titleOf(part: PartExplanation): string {
  switch (part.kind) {
    case "call":
      return "the call";
    case "part":
      if (part.guessed === true) return part.shown ?? "";
      return `${part.inner === true ? "command inside" : "command"} \`${part.shown}\``;
    case "path":
      return `${part.operand === true ? "operand" : "path"} \`${part.written}\` as ${part.tool}`;
    case "host":
      return `host \`${part.shown}\`${part.written === part.shown ? "" : ` of \`${part.written}\``}${
        part.private === true ? ", private or loopback" : ""
      }`;
  }
}

function nearLine(near: NearMiss): string {
  return `${showNearMiss(near)}${near.subject === undefined ? "" : ` [${near.subject}]`}`;
}

function line(label: string, text: string): string {
  return `   ${label.padEnd(9)} ${text}`;
}
