// What gates need to know of calls: the content of the workspace they are made on, the evidence that they are, what they use up.
import type { Agent } from "./agent.ts";
import type { ToolOutcome } from "./ports.ts";
import { activateForGate } from "./gate_skills.ts";
import { countsByStatus, type EvidenceClaims, evidenceClaims, evidenceMark } from "../core/evidence.ts";
import type { EventData } from "../core/event.ts";
import { topParts } from "../core/covering.ts";
import type { Facts } from "../core/facts.ts";
import { type GateBlock, gatesOf, showMissing, usesUp } from "../core/gate.ts";
import type { Gate } from "../core/policy.ts";

/** The content of the workspace, for a call that a gate guards; any other call does not depend on it. */
export async function treeFor(agent: Agent, facts: Facts, signal: AbortSignal): Promise<string | undefined> {
  return isGated(agent, facts) ? await agent.evidence.content(signal) : undefined;
}

/** A gated call waits for those before it, so that it is judged when its own turn comes. */
export function isGated(agent: Agent, facts: Facts): boolean {
  return gatesOf(agent.policy.gates, facts, agent.place.root).length > 0;
}

type StartMarks = Pick<EventData["tool.started"], "evidence" | "gates">;
export type EndMarks = Pick<EventData["tool.completed"], "evidence" | "notEvidence" | "tree" | "gates">;

/** One call that is about to start: what to record of its start and of its end. */
export type Watch = {
  readonly start: StartMarks;
  /** Runs the tool. The content of the workspace is looked at before, and after what may have changed it. */
  run<T>(work: () => Promise<T>): Promise<T>;
  /** `partial`: the result was cut or empty. */
  end(outcome: ToolOutcome, partial: boolean): EndMarks;
};

export function watchCall(agent: Agent, facts: Facts, signal: AbortSignal): Watch {
  const gates = gatesOf(agent.policy.gates, facts, agent.place.root);
  const claims = evidenceClaims(agent.policy.gates, facts, {
    root: agent.place.root,
    writableProgram: startsWritable(agent, facts),
  });
  const isEvidence = claims.marks.length > 0;
  const rules = agent.policy.gates.flatMap((gate) =>
    gate.evidence.filter((_, index) => claims.marks.includes(evidenceMark(gate, index)))
  );
  const byStatus = countsByStatus(facts, rules);
  let before: string | undefined, after: string | undefined;
  return {
    start: {
      ...(isEvidence ? { evidence: claims.marks } : {}),
      ...(gates.length === 0 ? {} : { gates: gates.map((g) => g.id) }),
    },
    async run(work) {
      if (!isEvidence) return await work();
      after = before = await agent.evidence.content(signal);
      const done = await work();
      if (before !== undefined && facts.risk !== "read") after = await agent.evidence.content(signal);
      return done;
    },
    end: (outcome, partial) => ({
      ...evidenceEnd(claims, outcome, flawOf(partial && !byStatus, before !== after), before),
      ...usedGates(gates, outcome),
    }),
  };
}

function startsWritable(agent: Agent, facts: Facts): boolean {
  if (agent.policy.gates.every((g) => g.evidence.length === 0)) return false;
  const program = topParts(facts)[0]?.part.argv[0];
  const { cwd } = facts.args;
  return program !== undefined &&
    agent.evidence.isWritable(program, typeof cwd === "string" ? cwd : agent.place.root);
}

function flawOf(partial: boolean, changed: boolean): string | undefined {
  if (partial) {
    return "its result was empty or cut: ask for something that is there, and for less at once";
  }
  return changed
    ? "files that git does not ignore changed while it ran: run it again, or have git ignore what it writes"
    : undefined;
}

function evidenceEnd(
  claims: EvidenceClaims,
  outcome: ToolOutcome,
  flaw: string | undefined,
  tree: string | undefined,
): Omit<EndMarks, "gates"> {
  const why = outcome.ok ? flaw : `it failed${outcome.code === undefined ? "" : ` (${outcome.code})`}`;
  const counts = claims.marks.length > 0 && why === undefined;
  const nearly = { ...claims.nearly };
  if (why !== undefined) { for (const mark of claims.marks) nearly[mark] = why; }
  return {
    ...(counts ? { evidence: claims.marks, ...(tree === undefined ? {} : { tree }) } : {}),
    ...(Object.keys(nearly).length === 0 ? {} : { notEvidence: nearly }),
  };
}

function usedGates(gates: readonly Gate[], outcome: ToolOutcome): Pick<EndMarks, "gates"> {
  const used = usesUp(outcome) ? gates.filter((g) => g.reuse !== true || !outcome.ok).map((g) => g.id) : [];
  return used.length === 0 ? {} : { gates: used };
}

/** Records each gate that refuses a call, or the end of the turn when there is none, and loads its skill. */
export async function openBlockedGates(
  agent: Agent,
  call: string | undefined,
  blocks: readonly GateBlock[],
): Promise<void> {
  for (const { gate, missing } of blocks) {
    agent.recorder.emit("gate.blocked", {
      gate: gate.id,
      ...(call === undefined ? {} : { call }),
      missing: missing.map(showMissing),
      ...(missing.every((m) => m.kind === "compound") ? { compoundOnly: true } : {}),
    });
    await activateForGate(agent, gate);
  }
}
