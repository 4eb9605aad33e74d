// One turn: from a user's message until the agent stops. The loop of iterations, its limits and its ends.
import type { Agent } from "./agent.ts";
import { activateFor, type Requested } from "./triggers.ts";
import { type Deadline, startDeadline } from "./deadline.ts";
import { modelStep } from "./model_step.ts";
import { LogFailure, ModelFailure, type Tool } from "./ports.ts";
import { isSideBySide, prepareCall, runPrepared, type TurnHooks } from "./tool_call.ts";
import { buildContext } from "../core/context.ts";
import type { Denial, StopReason } from "../core/event.ts";
import { type CallBlock, noUsage, type ToolDefinition, type Usage } from "../core/message.ts";
import { finalText, type SessionState } from "../core/session.ts";
import { canonicalJson } from "../core/text.ts";

export type TurnEnd = {
  readonly stop: StopReason;
  readonly text: string;
  readonly usage: Usage;
  readonly denied: readonly Denial[];
  /** What went wrong, for people; undefined after a good end. */
  readonly message?: string;
  readonly hint?: string;
  /** Set for internal_error. */
  readonly error?: unknown;
};
type Stop = {
  readonly stop: StopReason;
  readonly message?: string;
  readonly hint?: string;
  readonly error?: unknown;
};

export type TurnInput = {
  readonly message: string;
  readonly actor: string;
  /** Skills asked for beside the message (`--skill`), and those that the message itself names. */
  readonly skills: readonly Requested[];
  readonly signal: AbortSignal;
};

/** Never throws: every fault of the outside world is a stop reason. The log holds a whole turn when it returns. */
export async function runTurn(agent: Agent, input: TurnInput): Promise<TurnEnd> {
  const deadline = startDeadline(agent.clock, agent.policy.limits.wallTimeMs);
  const before = agent.recorder.state.turn.number;
  let stop: Stop;
  try {
    agent.recorder.emit("user.message", { content: input.message, actor: input.actor });
    agent.recorder.sync();
    stop = await activateFor(agent, input) ?? await iterate(agent, input.signal, deadline);
  } catch (error) {
    stop = stopFor(agent, error, input.signal, deadline.signal);
  } finally {
    deadline.stop();
  }
  const end = endTurn(agent, stop);
  // A turn whose message could not be recorded never began: what the state holds is the turn before.
  const { turn } = agent.recorder.state;
  return turn.number > before ? end : { ...end, text: "", usage: noUsage, denied: [] };
}

async function iterate(agent: Agent, signal: AbortSignal, deadline: Deadline): Promise<Stop> {
  const hooks: TurnHooks = {
    signal: AbortSignal.any([signal, deadline.signal]),
    offered: offeredTools(agent),
    waiting: (work) => deadline.waiting(work),
  };
  const repeats = repeatWatch();
  const definitions = hooks.offered.map(toDefinition);
  for (let iteration = 1;; iteration++) {
    hooks.signal.throwIfAborted();
    const { limits, model } = agent.policy;
    if (iteration > limits.iterations) return limit(agent, "iterations", iteration, limits.iterations);
    const context = buildContext({
      state: agent.recorder.state,
      stable: agent.stable,
      tools: definitions,
      model: model.name,
      maxOutputTokens: model.maxOutputTokens,
    });
    const { skills, instructions, tokens, total } = context.report;
    agent.recorder.emit("context.built", {
      iteration,
      sources: { skills, instructions },
      tokens,
      truncated: false,
    });
    const room = model.contextTokens - model.maxOutputTokens;
    if (total > room) return limit(agent, "context_tokens", total, room);
    const reply = await modelStep(agent, context.request, hooks.signal);
    const calls = reply.content.filter((b) => b.type === "tool_use");
    const over = overTokens(agent.recorder.state.usage, limits.tokens);
    if (over !== undefined) return limit(agent, "tokens", over, limits.tokens ?? 0);
    if (reply.stop === "refusal") return { stop: "refusal", message: "the model refused to answer" };
    if (reply.stop === "context_full") return limit(agent, "context_tokens", total, room);
    if (calls.length === 0) {
      return reply.stop === "max_tokens"
        ? limit(agent, "max_output_tokens", model.maxOutputTokens, model.maxOutputTokens)
        : { stop: "final" };
    }
    const stop = await runCalls(agent, hooks, calls, repeats);
    if (stop !== undefined) return stop;
  }
}

// Consecutive reads run side by side; their results are recorded in call order. Everything else runs alone.
async function runCalls(
  agent: Agent,
  hooks: TurnHooks,
  calls: readonly CallBlock[],
  repeats: RepeatWatch,
): Promise<Stop | undefined> {
  const queue = callQueue();
  try {
    const stop = await runInOrder(agent, hooks, calls, queue);
    await queue.settle();
    if (stop !== undefined) return stop;
  } catch (error) {
    // What was started is waited for: after a cancel its tools end by themselves, and their results are recorded.
    await queue.settle();
    throw error;
  }
  const count = repeats.note(calls, agent.recorder.state);
  const same = agent.policy.limits.sameCall;
  return count >= same ? limit(agent, "same_call", count, same) : undefined;
}

type CallQueue = { push(finish: Promise<() => void | Promise<void>>): void; settle(): Promise<void> };

function callQueue(): CallQueue {
  let running: Promise<() => void | Promise<void>>[] = [];
  return {
    push: (finish) => void running.push(finish),
    async settle() {
      const batch = running;
      running = [];
      for (const finish of await Promise.all(batch)) await finish();
    },
  };
}

async function runInOrder(
  agent: Agent,
  hooks: TurnHooks,
  calls: readonly CallBlock[],
  queue: CallQueue,
): Promise<Stop | undefined> {
  const cap = agent.policy.limits.toolCalls;
  let done = agent.recorder.state.turn.toolCalls - calls.length;
  for (const block of calls) {
    if (++done > cap) {
      await queue.settle();
      return limit(agent, "tool_calls", done, cap);
    }
    const sideBySide = isSideBySide(agent, block, hooks.offered);
    if (!sideBySide) await queue.settle();
    hooks.signal.throwIfAborted();
    const prepared = await prepareCall(agent, block, hooks);
    queue.push(prepared.ready ? runPrepared(agent, hooks, prepared) : Promise.resolve(prepared.finish));
    if (!sideBySide) await queue.settle();
    if (!prepared.ready && prepared.denied && agent.strict) {
      await queue.settle();
      return {
        stop: "denied",
        message: agent.recorder.state.turn.denied.at(-1)?.reason ?? "a call was denied",
      };
    }
  }
  return undefined;
}

type RepeatWatch = { note(calls: readonly CallBlock[], state: SessionState): number };

// The same call with the same result again and again, with nothing written or executed between, leads nowhere.
function repeatWatch(): RepeatWatch {
  const counts = new Map<string, number>();
  let changedAt = 0;
  return {
    note(calls, state) {
      if (state.turn.changedAt !== changedAt) counts.clear();
      changedAt = state.turn.changedAt;
      let highest = 0;
      for (const call of calls) {
        const result = state.transcript.findLast((e) => e.kind === "result" && e.call === call.id);
        const text = result?.kind === "result" ? result.content : "";
        const key = `${call.name} ${canonicalJson(call.input)} ${text}`;
        const count = (counts.get(key) ?? 0) + 1;
        counts.set(key, count);
        highest = Math.max(highest, count);
      }
      return highest;
    },
  };
}

function offeredTools(agent: Agent): readonly Tool[] {
  const { enabled } = agent.policy.tools;
  return agent.tools.filter((tool) => {
    if (tool.engine !== true) return enabled.includes(tool.name);
    if (tool.name === "load_skill") {
      return agent.policy.skills.modelChoice && agent.catalog.items.some((s) => s.modelInvocable);
    }
    return agent.catalog.items.length > 0;
  });
}

function toDefinition(tool: Tool): ToolDefinition {
  return { name: tool.name, description: tool.description, inputSchema: tool.inputSchema };
}

/** Tokens spent when they reach the cap; what is read from a cache counts a tenth. */
function overTokens(usage: Usage, cap: number | undefined): number | undefined {
  const spent = usage.input + usage.output + usage.cacheWrite + Math.ceil(usage.cacheRead / 10);
  return cap !== undefined && spent >= cap ? spent : undefined;
}

function limit(agent: Agent, name: string, value: number, cap: number): Stop {
  agent.recorder.emit("limit.reached", { limit: name, value, cap });
  return {
    stop: "limit",
    message: `limit \`${name}\` reached: ${value} of ${cap}`,
    hint: limitHints[name] ?? `raise limits.${name} in the policy`,
  };
}
const limitHints: { readonly [name: string]: string } = {
  context_tokens: "start a new session, or raise model.context_tokens",
  max_output_tokens: "the answer was cut: ask for less at once, or raise model.max_output_tokens",
  same_call: "the model repeats one call without effect; raise limits.same_call if this is wanted",
};

function stopFor(agent: Agent, error: unknown, user: AbortSignal, deadline: AbortSignal): Stop {
  if (error instanceof LogFailure) return { stop: "audit_error", message: error.message };
  if (user.aborted) {
    return user.reason === "SIGTERM"
      ? { stop: "interrupted", message: "terminated" }
      : { stop: "cancelled", message: "cancelled" };
  }
  if (deadline.aborted) {
    const cap = agent.policy.limits.wallTimeMs;
    return limit(agent, "wall_time", cap, cap);
  }
  if (error instanceof ModelFailure) {
    const { contextTokens } = agent.policy.model;
    if (error.code === "context_full") return limit(agent, "context_tokens", contextTokens, contextTokens);
    return {
      stop: "provider_error",
      message: `${error.code}: ${error.message}`,
      ...(error.hint === undefined ? {} : { hint: error.hint }),
    };
  }
  return { stop: "internal_error", message: error instanceof Error ? error.message : String(error), error };
}

function endTurn(agent: Agent, stop: Stop): TurnEnd {
  const { recorder } = agent;
  let end = stop;
  if (stop.stop !== "audit_error") {
    try {
      closeTurn(agent, stop);
    } catch (error) {
      end = stopFor(agent, error, AbortSignal.abort(), AbortSignal.abort());
    }
  }
  const { usage, denied } = recorder.state.turn;
  return { ...end, text: answerOf(recorder.state), usage, denied };
}

// Of this turn alone: one that failed at its start has no answer, least of all that of the turn before.
function answerOf(state: SessionState): string {
  const start = state.transcript.findLastIndex((e) => e.kind === "user");
  return finalText({ ...state, transcript: state.transcript.slice(start + 1) });
}

/** Gives every open call a result, every open skill an end, and the turn its last event. */
export function closeTurn(agent: Pick<Agent, "recorder">, stop: Stop): void {
  const { recorder } = agent;
  for (const call of recorder.state.turn.awaiting) {
    recorder.emit("tool.interrupted", { call: call.id, tool: call.tool, started: call.started });
  }
  for (const skill of recorder.state.active.filter((s) => s.scope === "turn")) {
    if (skill.outcome === undefined) {
      recorder.emit("skill.completed", {
        name: skill.name,
        outcome: "unreported",
        summary: "",
        evidence: [],
      });
    }
    recorder.emit("skill.unloaded", { name: skill.name, reason: "turn_end" });
  }
  recorder.emit("turn.completed", {
    stopReason: stop.stop,
    usage: recorder.state.turn.usage,
    denied: recorder.state.turn.denied,
    ...(stop.message === undefined ? {} : { message: stop.message }),
  });
  recorder.sync();
}
