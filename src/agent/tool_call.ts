// One tool call on its way: requested → checked → decided → approved → run → result. Each step records what it did.
import type { Agent } from "./agent.ts";
import { answerFor, type Resolved, type Waiting } from "./approval.ts";
import { mayReach, mayRead, siteOf, standingFor } from "./call_site.ts";
import type { ForkRequest, ForkRun } from "./fork.ts";
import { type EndMarks, isGated, openBlockedGates, treeFor, watchCall } from "./gate_watch.ts";
import { skillDesk } from "./skill_desk.ts";
import { inspectCall, inspectOffline } from "./inspect.ts";
import { identityOf } from "./offered.ts";
import { InternalFault, LogFailure, type Tool, type ToolContext, type ToolOutcome } from "./ports.ts";
import { refusal } from "./refusal.ts";
import { decide } from "../core/decide.ts";
import { showCause } from "../core/decision.ts";
import { explain } from "../core/explain.ts";
import type { Facts } from "../core/facts.ts";
import { gateVotes } from "../core/gate.ts";
import type { CallBlock, ToolCall } from "../core/message.ts";
import { byteLength, capText } from "../core/text.ts";
import { messageOf } from "../core/thrown.ts";

/** Characters of a result that the model sees, whatever the tool's own caps. */
const maxResult = 200_000;

/** A call that was let through and waits to be run, or one that already has its result. */
export type Prepared =
  | { readonly ready: true; readonly call: ToolCall; readonly tool: Tool; readonly facts: Facts }
  | { readonly ready: false; readonly denied: boolean; readonly finish: () => Promise<void> };

/** What there is to see of a call before its turn: its tool, what is wrong with it, or what it would touch. */
export type Looked =
  & { readonly call: ToolCall; readonly sideBySide: boolean }
  & (
    | { readonly fault: ToolOutcome }
    | { readonly fault?: undefined; readonly tool: Tool; readonly facts: Facts }
  );

/**
 * Looks without asking anything of the network and without recording. `sideBySide`: the call may run beside other reads.
 */
export function lookAt(agent: Agent, block: CallBlock, offered: readonly Tool[]): Looked {
  const tool = offered.find((t) => t.name === block.name);
  const call: ToolCall = {
    id: block.id,
    tool: tool === undefined ? block.name : identityOf(tool),
    args: block.input,
  };
  if (tool === undefined) {
    const names = offered.map((t) => t.name).join(", ");
    const content = `no tool \`${block.name}\`${comesWith(agent, block.name)}; available: ${names}`;
    return { call, sideBySide: true, fault: { ok: false, code: "unknown_tool", content } };
  }
  const fault = callFault(agent, block, tool);
  if (fault !== undefined) return { call, sideBySide: tool.barrier !== true, fault };
  const facts = inspectOffline(tool, call.args, { place: agent.place, ...siteOf(agent) });
  const sideBySide = tool.barrier !== true && facts.risk === "read" && !isGated(agent, facts);
  return { call, tool, facts, sideBySide };
}

function comesWith(agent: Agent, name: string): string {
  const owner = agent.catalog.items.find((s) => s.tools.some((t) => t.name === name));
  return owner === undefined
    ? ""
    : `: it comes with the skill \`${owner.name}\` and can be called once a reply has been given while that is active`;
}

/**
 * Decides and, if need be, asks. `looked` is as things are now. A call that will not run gets its result from `finish`, which the caller
 * runs when its turn in call order comes.
 */
export async function prepareCall(agent: Agent, looked: Looked, turn: TurnHooks): Promise<Prepared> {
  const { call } = looked;
  agent.recorder.emit("model.tool_call_requested", { call: call.id, tool: call.tool, args: call.args });
  if (looked.fault !== undefined) {
    const { fault } = looked;
    return { ready: false, denied: false, finish: async () => complete(agent, call, fault, 0) };
  }
  const { tool } = looked;
  const facts = tool.lookUp === undefined
    ? { ...looked.facts, ...siteOf(agent) }
    : await factsOf(agent, call, tool, turn.signal);
  const preview = tool.preview?.(call.args, contextFor(agent, turn, call.id));
  agent.recorder.emit("permission.requested", {
    call: call.id,
    tool: call.tool,
    risk: facts.risk,
    sourcedBy: facts.sourcedBy,
    ...(preview === undefined ? {} : { preview }),
  });
  const standing = standingFor(agent, facts, await treeFor(agent, facts, turn.signal));
  const verdict = decide(agent.policy.layers, facts, standing);
  const again = () => factsOf(agent, call, tool, turn.signal);
  const answered = await answerFor(agent, turn, { call, facts, standing, verdict, preview, again });
  const resolved = await stillOpen(agent, facts, answered, turn.signal);
  const explanation = explain(facts, verdict, resolved.reason);
  agent.recorder.emit("permission.resolved", {
    call: call.id,
    ...explanation,
    ...(resolved.answer === undefined ? {} : { answer: resolved.answer }),
    decision: resolved.allow ? "allow" : "deny",
  });
  if (resolved.allow) return { ready: true, call, tool, facts };
  const outcome = refusal(agent, facts, standing, explanation, resolved);
  const finish = async () => {
    if (verdict.effect === "deny") await openBlockedGates(agent, call.id, standing.blocks);
    complete(agent, call, outcome, 0);
  };
  return { ready: false, denied: true, finish };
}

// While somebody thought about it, what the gate stood on may have gone stale.
async function stillOpen(
  agent: Agent,
  facts: Facts,
  resolved: Resolved,
  signal: AbortSignal,
): Promise<Resolved> {
  if (!resolved.allow || resolved.answer === undefined || !isGated(agent, facts)) return resolved;
  const { blocks } = standingFor(agent, facts, await treeFor(agent, facts, signal));
  const [cause] = gateVotes(blocks);
  if (cause === undefined) return resolved;
  return { allow: false, reason: showCause(cause), answer: { by: "changed" } };
}

export type TurnHooks = Waiting & {
  readonly offered: readonly Tool[];
  fork(request: ForkRequest): Promise<ForkRun>;
};

/** Records the start (on disk first, where there is a side effect), runs, records the end. Never throws for the tool. */
export async function runPrepared(
  agent: Agent,
  turn: TurnHooks,
  prepared: Extract<Prepared, { ready: true }>,
): Promise<() => void> {
  const { call, tool, facts } = prepared;
  const watch = watchCall(agent, facts, turn.signal);
  agent.recorder.emit("tool.started", {
    call: call.id,
    tool: call.tool,
    risk: facts.risk,
    ...(facts.box === "default" ? {} : { box: facts.box }),
    ...watch.start,
  });
  if (facts.risk !== "read") await agent.recorder.sync();
  let durationMs = 0;
  const outcome = await watch.run(async () => {
    const started = agent.clock.elapsed();
    const done = await runTool(agent, turn, call, tool);
    durationMs = Math.round(agent.clock.elapsed() - started);
    return done;
  });
  // Results of calls that run side by side are recorded in call order, so recording is left to the caller.
  return () => complete(agent, call, outcome, durationMs, watch.end);
}

async function runTool(agent: Agent, turn: TurnHooks, call: ToolCall, tool: Tool): Promise<ToolOutcome> {
  try {
    return await tool.run(call.args, contextFor(agent, turn, call.id));
  } catch (error) {
    // A skill that is loaded, or runs as a fork, is recorded within the call.
    if (error instanceof LogFailure || error instanceof InternalFault) throw error;
    const message = messageOf(error);
    return { ok: false, code: "tool_failed", content: `${call.tool} failed: ${message}`, unknown: true };
  }
}

// Arguments that do not fit never reach the decision: a rule over them could not match.
function callFault(agent: Agent, block: CallBlock, tool: Tool): ToolOutcome | undefined {
  if (block.cut === true) {
    return {
      ok: false,
      code: "cut_call",
      content: "the reply ended inside this call (max_tokens): it was not run; make it again, shorter",
    };
  }
  if (block.malformed !== undefined) {
    return {
      ok: false,
      code: "invalid_arguments",
      content: `the arguments of ${tool.name} are not a JSON object: ${capText(block.malformed, 200).text}`,
    };
  }
  const problems = agent.checkArguments(tool.inputSchema, block.input);
  if (problems.length === 0) return undefined;
  return {
    ok: false,
    code: "invalid_arguments",
    content: `arguments of ${tool.name} do not fit: ${problems.join("; ")}`,
  };
}

async function factsOf(agent: Agent, call: ToolCall, tool: Tool, signal: AbortSignal): Promise<Facts> {
  const effectOf = (facts: Facts) => decide(agent.policy.layers, facts, standingFor(agent, facts)).effect;
  return await inspectCall(tool, call.args, { ...siteOf(agent), place: agent.place, signal, effectOf });
}

function contextFor(agent: Agent, turn: TurnHooks, call: string): ToolContext {
  return {
    ...agent.place,
    signal: turn.signal,
    mayRead: (path) => mayRead(agent, path),
    mayReach: (host) => mayReach(agent, host),
    seen: agent.seen,
    keepBefore: agent.keepBefore,
    shell: agent.shell,
    skills: skillDesk(agent, turn, call),
  };
}

function complete(
  agent: Agent,
  call: ToolCall,
  outcome: ToolOutcome,
  durationMs: number,
  end: (outcome: ToolOutcome, partial: boolean) => EndMarks = () => ({}),
): void {
  const { text, cut } = capText(outcome.content, maxResult);
  const partial = cut || outcome.partial === true || outcome.content.trim() === "";
  agent.recorder.emit("tool.completed", {
    call: call.id,
    tool: call.tool,
    ok: outcome.ok,
    ...(outcome.code === undefined ? {} : { code: outcome.code }),
    ...(outcome.unknown === true ? { unknown: true } : {}),
    bytes: byteLength(outcome.content),
    durationMs,
    result: text,
    ...(outcome.data === undefined ? {} : { data: outcome.data }),
    ...(partial ? { partial } : {}),
    ...end(outcome, partial),
  });
}
