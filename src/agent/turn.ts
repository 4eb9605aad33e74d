// One turn: from a user's message until the agent stops. The loop of iterations, its limits and its ends.
import type { Agent } from "./agent.ts";
import { fittingContext } from "./compact.ts";
import { finishGuard } from "./finish.ts";
import { activateFor, type Requested } from "./triggers.ts";
import { startDeadline } from "./deadline.ts";
import { modelStep } from "./model_step.ts";
import { repeatWatch, runCalls } from "./calls.ts";
import { offeredTools } from "./offered.ts";
import { ModelFailure } from "./ports.ts";
import { runGateForks } from "./gate_skills.ts";
import { closeForks, type ForkRequest, type Loop, runFork, type TurnFrame } from "./fork.ts";
import { spentStop } from "./shared.ts";
import { faultStop, limitStop, type Stop, stopFor } from "./stop.ts";
import type { TurnHooks } from "./tool_call.ts";
import { contextRoom } from "../core/budget.ts";
import type { ContextReport } from "../core/context.ts";
import type { Denial, EventData, StopReason } from "../core/event.ts";
import { type ModelReply, type ModelRequest, noUsage, type Usage } from "../core/message.ts";
import { unreported } from "../core/gate_state.ts";
import { modelInForce } from "../core/model_choice.ts";
import type { SessionState } from "../core/session.ts";
import { finalText } from "../core/transcript.ts";

export type TurnEnd = {
  readonly stop: StopReason;
  readonly text: string;
  readonly usage: Usage;
  /** In USD; absent when no reply had a price. */
  readonly costUsd?: number;
  readonly denied: readonly Denial[];
  /** What went wrong, for people; undefined after a good end. */
  readonly message?: string;
  readonly hint?: string;
  /** Set for internal_error. */
  readonly error?: unknown;
  /** Why the turn, which ended well, is a failure all the same: a verdict. */
  readonly failed?: string;
};
export type TurnInput = {
  readonly message: string;
  readonly actor: string;
  /** Skills asked for beside the message (`--skill`), and those that the message itself names. */
  readonly skills: readonly Requested[];
  readonly signal: AbortSignal;
  /** Seq of its `turn.submitted`. */
  readonly submitted?: number;
  /** What was said to the turn since it was asked last, taken away from where it waits. */
  readonly steered?: () => readonly EventData["user.steered"][];
};

/** Never throws: every fault of the outside world is a stop reason. The log holds a whole turn when it returns. */
export async function runTurn(agent: Agent, input: TurnInput): Promise<TurnEnd> {
  const deadline = startDeadline(agent.clock, agent.policy.limits.wallTimeMs);
  const frame: TurnFrame = {
    signal: AbortSignal.any([input.signal, deadline.signal]),
    waiting: (work) => deadline.waiting(work),
    stopOf: (error) =>
      stopFor(error, { user: input.signal, deadline: deadline.signal, policy: agent.policy }),
  };
  const before = agent.recorder.state.turn.number;
  let stop: Stop;
  try {
    await closeLeftOpen(agent, {
      stop: "audit_error",
      message: "the log could not be written within this turn",
    });
    agent.recorder.emit("user.message", {
      content: input.message,
      actor: input.actor,
      ...(input.submitted === undefined ? {} : { submitted: input.submitted }),
    });
    await agent.recorder.sync();
    const fork = (request: ForkRequest) => runFork(agent, frame, request, loop);
    stop = await activateFor(agent, input, fork) ?? await iterate(agent, frame, input.steered);
  } catch (error) {
    stop = frame.stopOf(error);
  } finally {
    deadline.stop();
  }
  const end = await endTurn(agent, stop);
  // A turn whose message could not be recorded never began: what the state holds is the turn before.
  const { turn } = agent.recorder.state;
  if (turn.number > before) return end;
  const { costUsd: _cost, ...rest } = end;
  return { ...rest, text: "", usage: noUsage, denied: [] };
}

async function iterate(
  agent: Agent,
  frame: TurnFrame,
  steered: TurnInput["steered"] = () => [],
): Promise<Stop> {
  const takeSteered = () => {
    const said = steered();
    for (const data of said) agent.recorder.emit("user.steered", data);
    return said.length > 0;
  };
  const either = frame.signal;
  const repeats = repeatWatch();
  const finish = finishGuard(agent, either);
  const fork = (request: ForkRequest) => runFork(agent, frame, request, loop);
  // How often in a row the provider said that the context is full.
  let full = 0;
  for (let iteration = 1;; iteration++) {
    either.throwIfAborted();
    takeSteered();
    await runGateForks(agent, fork);
    const used = spentStop(agent) ?? deniedInFork(agent);
    if (used !== undefined) return used;
    const hooks: TurnHooks = { ...frame, offered: offeredTools(agent), fork };
    const now = withModelInForce(agent);
    const { limits, model } = now.policy;
    if (iteration > limits.iterations) return limitStop("iterations", iteration, limits.iterations);
    const next = await fittingContext(now, either, full > 0);
    if ("stop" in next) return next.stop;
    const { request, report } = next.built;
    agent.recorder.emit("context.built", builtData(iteration, report));
    const reply = await replyOrFull(now, request, either);
    if (reply === "full" || reply.stop === "context_full") {
      // The provider counts more than the estimate; a second compaction in a row that does not help is the last.
      if (++full > 2) return limitStop("context_tokens", report.total, contextRoom(model));
    } else full = 0;
    if (reply === "full") continue;
    const calls = reply.content.filter((b) => b.type === "tool_use");
    const over = spentStop(agent);
    if (over !== undefined) return over;
    if (reply.stop === "refusal") return { stop: "refusal", message: "the model refused to answer" };
    if (calls.length === 0) {
      if (reply.stop === "context_full" || takeSteered()) continue;
      if (reply.stop === "max_tokens") {
        return limitStop("max_output_tokens", model.maxOutputTokens, model.maxOutputTokens);
      }
      const end = await finish();
      if (end !== undefined) return end;
      continue;
    }
    const stop = await runCalls(agent, hooks, calls, repeats);
    if (stop !== undefined) return stop;
  }
}

const loop: Loop = { iterate: (agent, frame) => iterate(agent, frame), endTurn };

// A call that was denied in a fork ends the turn around it as one of its own would.
function deniedInFork(agent: Agent): Stop | undefined {
  const denied = agent.strict ? agent.recorder.state.turn.denied.at(-1) : undefined;
  return denied === undefined ? undefined : { stop: "denied", message: denied.reason };
}

function withModelInForce(agent: Agent): Agent {
  const { policy, recorder } = agent;
  const model = modelInForce(policy.model, recorder.state.active);
  return model === policy.model ? agent : { ...agent, policy: { ...policy, model } };
}

// A request that the provider finds too long is made again, shorter.
async function replyOrFull(
  agent: Agent,
  request: ModelRequest,
  signal: AbortSignal,
): Promise<ModelReply | "full"> {
  try {
    return await modelStep(agent, request, signal);
  } catch (error) {
    if (error instanceof ModelFailure && error.code === "context_full" && !signal.aborted) return "full";
    throw error;
  }
}

function builtData(iteration: number, report: ContextReport): EventData["context.built"] {
  const { skills, instructions, tokens, cut } = report;
  const truncated = Object.keys(cut).length > 0;
  return {
    iteration,
    sources: { skills, instructions },
    tokens,
    truncated,
    ...(truncated ? { cut } : {}),
  };
}

async function endTurn(agent: Agent, stop: Stop): Promise<TurnEnd> {
  const { recorder } = agent;
  let end = stop;
  if (stop.stop !== "audit_error") {
    try {
      await closeTurn(agent, stop);
    } catch (error) {
      end = faultStop(error);
    }
  }
  const { usage, denied, costUsd } = recorder.state.turn;
  const { limit: _limit, gates: _gates, ...rest } = end;
  return {
    ...rest,
    text: answerOf(recorder.state),
    usage,
    denied,
    ...(costUsd === undefined ? {} : { costUsd }),
  };
}

// Of this turn alone: one that failed at its start has no answer, least of all that of the turn before.
function answerOf(state: SessionState): string {
  const start = state.transcript.findLastIndex((e) => e.kind === "user");
  return finalText({ ...state, transcript: state.transcript.slice(start + 1) });
}

/**
 * Ends what is still open of an earlier turn, its forks first: a crash left it, or a log that could not be written. Calls that
 * were running get no result but `tool.interrupted`; nothing is run again.
 */
export async function closeLeftOpen(agent: Pick<Agent, "recorder" | "forks">, stop: Stop): Promise<void> {
  await closeForks(agent, closeTurn);
  const { recorder } = agent;
  if (!recorder.state.turn.open) return;
  for (const { id, tool, asked } of recorder.state.turn.awaiting) {
    if (asked === undefined) continue;
    recorder.emit("permission.resolved", {
      call: id,
      tool,
      risk: asked,
      effect: "deny",
      causes: [],
      answer: { by: "restart" },
      decision: "deny",
      reason: "the process ended before it was decided",
    });
  }
  await closeTurn(agent, stop);
}

/** Records the limit if one was reached; gives every open call a result, every open skill an end, and the turn its last event. */
export async function closeTurn(agent: Pick<Agent, "recorder">, stop: Stop): Promise<void> {
  const { recorder } = agent;
  if (stop.limit !== undefined) recorder.emit("limit.reached", stop.limit);
  for (const call of recorder.state.turn.awaiting) {
    recorder.emit("tool.interrupted", { call: call.id, tool: call.tool, started: call.started });
  }
  for (const skill of recorder.state.active.filter((s) => s.scope === "turn")) {
    if (skill.outcome === undefined) {
      recorder.emit("skill.completed", {
        name: skill.name,
        outcome: unreported,
        summary: "",
        evidence: [],
      });
    }
    recorder.emit("skill.unloaded", { name: skill.name, reason: "turn_end" });
  }
  recorder.emit("turn.completed", {
    stopReason: stop.stop,
    usage: recorder.state.turn.usage,
    ...(recorder.state.turn.costUsd === undefined ? {} : { costUsd: recorder.state.turn.costUsd }),
    denied: recorder.state.turn.denied,
    ...(stop.message === undefined ? {} : { message: stop.message }),
    ...(stop.gates === undefined || stop.gates.length === 0 ? {} : { gates: stop.gates }),
  });
  await recorder.sync();
}
