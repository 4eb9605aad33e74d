// One call as the policy sees it at the start of a session, and the same in words. Nothing runs.
import { inspectCall } from "../agent/inspect.ts";
import type { Network, Tool } from "../agent/ports.ts";
import { standingOf, type StandingSkill } from "../agent/standing.ts";
import { decide } from "../core/decide.ts";
import { type Cause, showCause } from "../core/decision.ts";
import { explain, explainParts, type Explanation, type PartExplanation } from "../core/explain.ts";
import type { Facts, Mode } from "../core/facts.ts";
import { emptyGateState } from "../core/gate_state.ts";
import { listedToolNames, type McpServer } from "../core/mcp.ts";
import { type Policy, sessionForced } from "../core/policy.ts";
import type { Args } from "../core/message.ts";
import type { TriggerKind } from "../core/event.ts";
import type { Skill } from "../core/skill.ts";
import { type NearMiss, nearMisses, showNearMiss } from "../core/near_miss.ts";
import { showPosition } from "../core/problem.ts";
import { escapeLine } from "../core/text.ts";
import { compileAllowedTool } from "../load/allowed_tool.ts";
import { placeOf } from "../session/agent_parts.ts";
import { sandboxFault } from "../session/boxes.ts";
import { loadCatalog } from "../session/catalog.ts";
import type { Settings } from "../session/settings.ts";

/** What `permission.resolved` would carry, and what led to it. */
export type ExplainedCall = Explanation & {
  readonly args: Args;
  /** The effect, or the answer to an ask that nobody can be asked. */
  readonly decision: Explanation["effect"];
  /** The skills that are active from the start. */
  readonly sourcedBy: readonly string[];
  readonly parts: readonly PartExplanation[];
  readonly nearMisses: readonly NearMiss[];
  /** What keeps a model from making the call at all. */
  readonly notes: readonly string[];
};

/**
 * As the first call of a session: forced skills are active, no gate has seen evidence, no answer was kept. A name is looked
 * up as it would be for the call, through `network`. `owner`: the skill whose tool it is; it is as if the model had loaded it.
 */
export async function explainCall(
  settings: Settings,
  tool: Tool,
  args: Args,
  mode: Mode,
  network: Network,
  owner?: Skill,
): Promise<ExplainedCall> {
  const { policy } = settings;
  const refused = await sandboxFault(settings);
  const place = {
    ...placeOf(settings),
    network,
    ...(refused === undefined ? {} : { shellRefused: refused }),
  };
  const forced = forcedSkills(settings);
  const active = owner === undefined || forced.some((s) => s.name === owner.name)
    ? forced
    : [...forced, standingSkill(owner, "model", true)];
  const sourcedBy = active.map((s) => `skill:${s.name}`);
  const allowedTool = (declared: string) => compileAllowedTool(declared, place);
  const standingFor = (facts: Facts) =>
    standingOf({ policy, active, gates: emptyGateState, allowedTool }, facts);
  const facts = await inspectCall(tool, args, {
    place,
    mode,
    sourcedBy,
    signal: new AbortController().signal,
    effectOf: (facts) => decide(policy.layers, facts, standingFor(facts)).effect,
  });
  const standing = standingFor(facts);
  const explanation = explain(facts, decide(policy.layers, facts, standing));
  const server = policy.mcpServers.find((s) => listedToolNames([s]).includes(tool.name));
  return {
    ...explanation,
    args,
    decision: explanation.effect === "ask" && mode === "unattended" ? "deny" : explanation.effect,
    sourcedBy,
    parts: explainParts(policy.layers, facts, standing),
    nearMisses: nearMisses({ layers: policy.layers, facts, standing, home: place.home }),
    notes: notesOn(policy, tool, owner, server),
  };
}

function notesOn(policy: Policy, tool: Tool, owner: Skill | undefined, server: McpServer | undefined) {
  if (owner !== undefined) {
    return [`\`${tool.name}\` is offered only while the skill \`${owner.name}\` is active`];
  }
  if (server !== undefined) {
    return [`the server \`${server.name}\` was not started: whether it takes these arguments is not known`];
  }
  if (tool.engine === true || policy.tools.enabled.includes(tool.name)) return [];
  return [`\`${tool.name}\` is not in \`tools.enabled\` of this policy: no model is offered it`];
}

function forcedSkills(settings: Settings): readonly StandingSkill[] {
  const forced = sessionForced(settings.policy.skills);
  if (forced.length === 0) return [];
  const { catalog } = loadCatalog(settings);
  return forced.flatMap((entry): StandingSkill[] => {
    const skill = catalog.get(entry.skill);
    if (skill === undefined) return [];
    return [standingSkill(skill, "policy", entry.bounding)];
  });
}

function standingSkill(skill: Skill, trigger: TriggerKind, bounding: boolean): StandingSkill {
  const { name, allowedTools } = skill;
  return { name, trigger, bounding, ...(allowedTools === undefined ? {} : { allowedTools }) };
}

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
