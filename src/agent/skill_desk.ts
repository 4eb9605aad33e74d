// What the skill tools may do: load a skill, take its outcome, read its files.
import { activate, activationOf } from "./activate.ts";
import type { Agent } from "./agent.ts";
import { InternalFault, LogFailure, type SkillDesk, type ToolOutcome } from "./ports.ts";
import type { ForkRequest, ForkRun } from "./fork.ts";
import { seenGates } from "./shared.ts";
import type { TurnHooks } from "./tool_call.ts";
import { forkResult } from "../core/fork.ts";
import { evidenceCalls, missingEvidence, showEvidence } from "../core/gate.ts";
import { type GateState, unreported } from "../core/gate_state.ts";
import type { Gate } from "../core/policy.ts";
import { foundText, searchSkills } from "../core/skill_search.ts";
import { noSuchSkill } from "../core/trigger.ts";

/** For one call, by its id. */
export function skillDesk(agent: Agent, turn: TurnHooks, call: string): SkillDesk {
  return {
    load: (name, argumentsText) => loadByModel(agent, turn, { name, arguments: argumentsText, call }),
    find: (query) => find(agent, query),
    complete: (name, outcome, summary) => complete(agent, { name, outcome, summary }, turn.signal),
    readFile: (skill, path) => readFile(agent, skill, path),
  };
}

async function loadByModel(
  agent: Agent,
  turn: TurnHooks,
  asked: { readonly name: string; readonly arguments: string; readonly call: string },
): Promise<ToolOutcome> {
  const { name } = asked;
  const skill = agent.catalog.get(name);
  if (skill === undefined || !skill.modelInvocable) return unknownSkill(agent, name);
  if (skill.mode === "fork") {
    return forkOutcome(await forkOf(turn, { ...asked, skill, trigger: { kind: "model" } }));
  }
  const request = { skill, trigger: { kind: "model" }, arguments: asked.arguments } as const;
  const result = await activate(agent, activationOf(agent, request));
  if (!result.ok) return { ok: false, code: result.code, content: result.message };
  return {
    ok: true,
    content: `loaded skill "${name}" (${result.registeredTools} specialized tools registered)${
      result.note === undefined ? "" : `; ${result.note}`
    }`,
    data: { skill: name, registeredTools: result.registeredTools },
  };
}

// Whatever is thrown out of a fork is no failure of the tool that asked for it.
async function forkOf(turn: TurnHooks, request: ForkRequest): Promise<ForkRun> {
  try {
    return await turn.fork(request);
  } catch (error) {
    throw error instanceof LogFailure ? error : new InternalFault(error);
  }
}

function forkOutcome(run: ForkRun): ToolOutcome {
  if (!run.ok) return { ok: false, code: run.code, content: run.message };
  const { skill, session, outcome, stop } = run.end;
  const data = { skill, session, outcome };
  const content = forkResult(run.end);
  return stop === "final" ? { ok: true, content, data } : { ok: false, code: "fork_failed", content, data };
}

function unknownSkill(agent: Agent, name: string): ToolOutcome {
  return { ok: false, code: "unknown_skill", content: noSuchSkill(name, agent.catalog, "model") };
}

function find(agent: Agent, query: string): ToolOutcome {
  const result = searchSkills(agent.catalog.items.filter((s) => s.modelInvocable), query);
  return {
    ok: true,
    content: foundText(query, result),
    data: { skills: result.found.map((s) => s.name), total: result.total },
  };
}

type Report = { readonly name: string; readonly outcome: string; readonly summary: string };

// A verdict counts only when its maker can have seen the evidence: every result was in the request that it answers.
async function complete(agent: Agent, report: Report, signal: AbortSignal): Promise<ToolOutcome> {
  const { name, outcome } = report;
  const state = agent.recorder.state;
  if (!state.active.some((s) => s.name === name)) {
    const names = state.active.map((s) => s.name).join(", ") || "none";
    return { ok: false, code: "not_active", content: `skill \`${name}\` is not active; active: ${names}` };
  }
  if (outcome === unreported) {
    return {
      ok: false,
      code: "invalid_outcome",
      content: `\`${unreported}\` is no outcome; say what came of it`,
    };
  }
  const gates = agent.policy.gates.filter((g) => g.skill === name && g.verdict !== undefined);
  const tree = gates.length === 0 ? undefined : await agent.evidence.content(signal);
  const seen = seenGates(agent);
  const judged = gates.filter((gate) => missingEvidence(gate, seen, tree).length === 0);
  if (judged.length === 0 && gates.length > 0) return evidenceMissing(gates, seen, tree);
  agent.recorder.emit("skill.completed", {
    ...report,
    evidence: [...new Set(judged.flatMap((gate) => evidenceCalls(gate, seen)))],
    ...(gates.length === 0 ? {} : { gates: judged.map((g) => g.id) }),
    ...(tree === undefined ? {} : { tree }),
  });
  const others = gates.filter((gate) => !judged.includes(gate)).map((g) => g.id);
  const note = others.length === 0 ? "" : `; not for ${others.join(", ")}, whose evidence was not seen`;
  return {
    ok: true,
    content: `recorded outcome ${outcome} of skill "${name}"${note}`,
    data: { skill: name, outcome },
  };
}

function evidenceMissing(gates: readonly Gate[], seen: GateState, tree: string | undefined): ToolOutcome {
  const missing = gates.map((gate) => missingEvidence(gate, seen, tree).map(showEvidence).join(", "));
  return {
    ok: false,
    code: "evidence_missing",
    content:
      `no verdict is taken before its evidence has been seen; missing: ${
        [...new Set(missing)].join("; or ")
      }. ` +
      "Make these calls, read the results, and complete the skill in a later reply. " +
      "An empty or cut result is no evidence: narrow or widen the call.",
  };
}

async function readFile(agent: Agent, name: string, path: string): Promise<ToolOutcome> {
  const skill = agent.installed.get(name) ?? agent.catalog.get(name);
  if (skill === undefined || !agent.recorder.state.active.some((s) => s.name === name)) {
    return { ok: false, code: "not_active", content: `skill \`${name}\` is not active; load it first` };
  }
  return await agent.bodies.readAttached(skill, path);
}
