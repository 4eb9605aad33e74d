// What the skill tools may do: load a skill, take its outcome, read its files. Also the loading that a gate asks for.
import { activate } from "./activate.ts";
import type { Agent } from "./agent.ts";
import type { SkillDesk, ToolOutcome } from "./ports.ts";
import { missingEvidence } from "../core/gate.ts";
import type { Gate } from "../core/policy.ts";
import { foundText, searchSkills } from "../core/skill_search.ts";
import { modelNames, noSuchSkill } from "../core/trigger.ts";

export function skillDesk(agent: Agent): SkillDesk {
  return {
    load: (name, argumentsText) => loadByModel(agent, name, argumentsText),
    find: (query) => find(agent, query),
    complete: (name, outcome, summary) => complete(agent, name, outcome, summary),
    readFile: (skill, path) => readFile(agent, skill, path),
  };
}

async function loadByModel(agent: Agent, name: string, argumentsText: string): Promise<ToolOutcome> {
  const skill = agent.catalog.get(name);
  if (skill === undefined || !skill.modelInvocable) return unknownSkill(agent, name);
  const result = await activate(agent, {
    skill,
    trigger: { kind: "model" },
    arguments: argumentsText,
    bounding: true,
    scope: agent.policy.skills.scope,
  });
  if (!result.ok) return { ok: false, code: result.code, content: result.message };
  return {
    ok: true,
    content: `loaded skill "${name}" (${result.registeredTools} specialized tools registered)`,
    data: { skill: name, registeredTools: result.registeredTools },
  };
}

function unknownSkill(agent: Agent, name: string): ToolOutcome {
  return { ok: false, code: "unknown_skill", content: noSuchSkill(name, modelNames(agent.catalog)) };
}

function find(agent: Agent, query: string): ToolOutcome {
  const result = searchSkills(agent.catalog.items.filter((s) => s.modelInvocable), query);
  return {
    ok: true,
    content: foundText(query, result),
    data: { skills: result.found.map((s) => s.name), total: result.total },
  };
}

// A verdict counts only when its maker can have seen the evidence: every result was in the request that it answers.
function complete(agent: Agent, name: string, outcome: string, summary: string): ToolOutcome {
  const state = agent.recorder.state;
  if (!state.active.some((s) => s.name === name)) {
    const names = state.active.map((s) => s.name).join(", ") || "none";
    return { ok: false, code: "not_active", content: `skill \`${name}\` is not active; active: ${names}` };
  }
  const gates = agent.policy.gates.filter((g) => g.skill === name && g.verdict !== undefined);
  const seen = { ...state.gates, marks: marksBefore(state.gates.marks, state.requestSeq) };
  const missing = gates.flatMap((gate) => missingEvidence(gate, seen).map((rule) => rule.text));
  if (missing.length > 0) {
    return {
      ok: false,
      code: "evidence_missing",
      content:
        `no verdict is taken before its evidence has been seen; missing: ${
          [...new Set(missing)].join(", ")
        }. ` +
        "Make these calls, read the results, and complete the skill in a later reply. " +
        "An empty or cut result is no evidence: narrow or widen the call.",
    };
  }
  const evidence = [...new Set(Object.values(seen.marks).map((m) => m.call))];
  agent.recorder.emit("skill.completed", { name, outcome, summary, evidence });
  return {
    ok: true,
    content: `recorded outcome ${outcome} of skill "${name}"`,
    data: { skill: name, outcome },
  };
}

function marksBefore<T extends { readonly seq: number }>(marks: { readonly [mark: string]: T }, seq: number) {
  return Object.fromEntries(Object.entries(marks).filter(([, m]) => m.seq < seq));
}

async function readFile(agent: Agent, name: string, path: string): Promise<ToolOutcome> {
  const skill = agent.catalog.get(name);
  if (skill === undefined || !agent.recorder.state.active.some((s) => s.name === name)) {
    return { ok: false, code: "not_active", content: `skill \`${name}\` is not active; load it first` };
  }
  return await agent.bodies.readAttached(skill, path);
}

/** The first call that a gate refuses loads the gate's skill, so that the model knows how to gather what is missing. */
export async function activateForGate(agent: Agent, gate: Gate): Promise<void> {
  if (gate.skill === undefined || agent.recorder.state.active.some((s) => s.name === gate.skill)) return;
  const skill = agent.catalog.get(gate.skill);
  if (skill === undefined) return;
  const entry = agent.policy.skills.forced.find((f) => f.when.at === "gate" && f.when.gate === gate.id);
  const trigger = { kind: "policy", gate: gate.id } as const;
  const result = await activate(agent, {
    skill,
    trigger,
    arguments: entry?.arguments ?? "",
    bounding: entry?.bounding ?? false,
    scope: agent.policy.skills.scope,
  });
  if (!result.ok) {
    agent.recorder.emit("skill.skipped", {
      name: skill.name,
      trigger,
      reason: result.message,
      ...result.skipped,
    });
  }
}

/** Ends skills that were loaded for the session, all or one; those that policy forces stay. Returns their names. */
export function clearSkills(agent: Agent, name: string | undefined): readonly string[] {
  const ended = agent.recorder.state.active.filter((s) =>
    !s.forced && (name === undefined || s.name === name)
  );
  for (const skill of ended) {
    agent.recorder.emit("skill.unloaded", { name: skill.name, reason: "cleared by the user" });
  }
  return ended.map((s) => s.name);
}
