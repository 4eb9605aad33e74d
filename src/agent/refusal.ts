// What the model is told of a call that was refused.
import type { Agent } from "./agent.ts";
import type { Resolved } from "./approval.ts";
import type { ToolOutcome } from "./ports.ts";
import { outerSkills } from "./shared.ts";
import type { Standing } from "../core/decide.ts";
import { type Explanation, refusalText } from "../core/explain.ts";
import { evidenceClaims, evidenceMark } from "../core/evidence.ts";
import type { Facts } from "../core/facts.ts";
import { boundedText, type Bounding } from "../core/gate_bound.ts";
import { nearMisses } from "../core/near_miss.ts";
import type { ActiveSkill } from "../core/session.ts";
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
  return {
    ok: false,
    code: "denied",
    content: [content, ...boundedEvidenceText(agent, facts, explanation)].join("\n"),
  };
}

// Evidence that nothing but bounds refuses is no fault of the call: the model would go on trying.
function boundedEvidenceText(agent: Agent, facts: Facts, { causes }: Explanation): readonly string[] {
  const denials = causes.filter((c) => c.effect === "deny");
  const names = new Set(denials.flatMap((c) => c.by === "bound" ? c.skill.split(" + ") : []));
  if (names.size === 0 || denials.some((c) => c.by !== "bound")) return [];
  const { gates } = agent.policy;
  const { marks } = evidenceClaims(gates, facts, { root: agent.place.root, writableProgram: false });
  const wanting = gates.filter((gate) =>
    gate.evidence.some((_, index) => marks.includes(evidenceMark(gate, index)))
  );
  if (wanting.length === 0) return [];
  const outer = outerSkills(agent).flat();
  return [
    boundedText(
      wanting.map((g) => g.id),
      [...names].map((skill) => ({ skill, lasts: lastsFor(agent, outer, skill) })),
    ),
  ];
}

function lastsFor(
  { recorder, parent }: Agent,
  outer: readonly ActiveSkill[],
  name: string,
): Bounding["lasts"] {
  const skill = [...recorder.state.active, ...outer].find((s) => s.name === name);
  // A forced skill that something loads besides bounds until the turn ends.
  if (skill?.forced === true && skill.boundingBetweenTurns) return "policy";
  return parent !== undefined ? "fork" : skill?.forced === true ? "turn" : skill?.scope ?? "turn";
}

function allowedRules(agent: Agent, facts: Facts): readonly string[] {
  const trusted = agent.policy.layers.filter((l) => l.name !== "project").flatMap((l) => l.rules);
  return trusted
    .filter((r) => r.effect === "allow" && r.tools.some((glob) => wildcard(glob, facts.tool)))
    .map((r) => r.text).slice(0, 10);
}
