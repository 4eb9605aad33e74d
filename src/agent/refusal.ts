// What the model is told of a call that was refused.
import type { Agent } from "./agent.ts";
import type { Resolved } from "./approval.ts";
import type { ToolOutcome } from "./ports.ts";
import type { Standing } from "../core/decide.ts";
import { type Explanation, refusalText } from "../core/explain.ts";
import type { Facts } from "../core/facts.ts";
import { nearMisses } from "../core/near_miss.ts";
import { wildcard } from "../core/text.ts";

/** Lets it succeed at the next try: every cause, and what would be allowed. */
export function refusal(
  agent: Agent,
  facts: Facts,
  standing: Standing,
  explanation: Explanation,
  resolved: Resolved,
): ToolOutcome {
  const allowed = allowedRules(agent, facts);
  // Where something or somebody forbids the call, a rule that nearly allows it is no help.
  const near = explanation.effect === "ask" && resolved.answer?.by !== "user" && allowed.length > 0
    ? nearMisses({
      layers: agent.policy.layers,
      facts,
      standing,
      home: agent.place.home,
      effects: ["allow"],
      most: 3,
    })
    : [];
  const unattended = resolved.answer?.by === "non_interactive";
  const content = refusalText(explanation, { unattended, allowed, nearMisses: near });
  return { ok: false, code: "denied", content };
}

function allowedRules(agent: Agent, facts: Facts): readonly string[] {
  const trusted = agent.policy.layers.filter((l) => l.name !== "project").flatMap((l) => l.rules);
  return trusted
    .filter((r) => r.effect === "allow" && r.tools.some((glob) => wildcard(glob, facts.tool)))
    .map((r) => r.text).slice(0, 10);
}
