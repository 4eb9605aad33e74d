// The skills of gates: loaded, or run as forks, once their gate has refused something.
import { activate, activationOf, recordSkipped } from "./activate.ts";
import type { Agent } from "./agent.ts";
import type { ForkRequest, ForkRun } from "./fork.ts";
import type { Trigger } from "../core/event.ts";
import { isGateForkDue, requestedCall } from "../core/fork.ts";
import { type Gate, gateEntry } from "../core/policy.ts";
import type { Skill } from "../core/skill.ts";

/** The first call that a gate refuses loads the gate's skill, so that the model knows how to gather what is missing. */
export async function activateForGate(agent: Agent, gate: Gate): Promise<void> {
  const skill = skillOfGate(agent, gate.id);
  // One that runs as a fork does so before the next request.
  if (skill === undefined || skill.mode === "fork") return;
  if (agent.recorder.state.active.some((s) => s.name === skill.name)) return;
  const entry = gateEntry(agent.policy, gate.id);
  const asked = { skill, trigger: gateTrigger(gate.id), arguments: entry?.arguments ?? "" };
  const result = await activate(agent, activationOf(agent, asked, entry?.bounding ?? false));
  if (!result.ok) recordSkipped(agent, asked, result);
}

/**
 * Runs the skills of the gates that have refused something since the last request, where these run as forks: each once in a
 * turn, and again when something may have changed since. A fork runs none.
 */
export async function runGateForks(
  agent: Agent,
  run: (request: ForkRequest) => Promise<ForkRun>,
): Promise<void> {
  const { state } = agent.recorder;
  const done = new Set<string>();
  for (const block of state.turn.blocked) {
    const skill = skillOfGate(agent, block.gate);
    if (skill?.mode !== "fork" || done.has(skill.name) || !isGateForkDue(state, skill.name, block)) continue;
    done.add(skill.name);
    const call = requestedCall(state, block.call);
    const request: ForkRequest = {
      skill,
      trigger: gateTrigger(block.gate),
      arguments: gateEntry(agent.policy, block.gate)?.arguments ?? "",
      held: { missing: block.missing, ...(call === undefined ? {} : { call }) },
    };
    const result = await run(request);
    if (!result.ok) recordSkipped(agent, request, result);
  }
}

function skillOfGate(agent: Agent, id: string): Skill | undefined {
  const name = agent.policy.gates.find((g) => g.id === id)?.skill;
  return name === undefined ? undefined : agent.catalog.get(name);
}

function gateTrigger(gate: string): Trigger {
  return { kind: "policy", gate };
}
