// The calls of one reply: which run side by side, in which order they are recorded, and when they lead nowhere.
import type { Agent } from "./agent.ts";
import { callsSpent } from "./shared.ts";
import { limitStop, type Stop } from "./stop.ts";
import { lookAt, prepareCall, runPrepared, type TurnHooks } from "./tool_call.ts";
import type { CallBlock } from "../core/message.ts";
import type { SessionState } from "../core/session.ts";
import { canonicalJson } from "../core/text.ts";

// Consecutive reads run side by side; their results are recorded in call order. Everything else runs alone.
export async function runCalls(
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
  return count >= same ? limitStop("same_call", count, same) : undefined;
}

type CallQueue = {
  push(finish: Promise<() => void | Promise<void>>): void;
  /** Whether there was anything to wait for. */
  settle(): Promise<boolean>;
};

function callQueue(): CallQueue {
  let running: Promise<() => void | Promise<void>>[] = [];
  return {
    push: (finish) => void running.push(finish),
    async settle() {
      const batch = running;
      running = [];
      for (const finish of await Promise.all(batch)) await finish();
      return batch.length > 0;
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
  for (const [index, block] of calls.entries()) {
    // A fork that one of them started has made calls of its own since.
    const done = callsSpent(agent) - calls.length + index + 1;
    if (done > cap) {
      await queue.settle();
      return limitStop("tool_calls", done, cap);
    }
    let looked = lookAt(agent, block, hooks.offered);
    const { sideBySide } = looked;
    // What was seen while others ran may have changed since.
    if (!sideBySide && await queue.settle()) looked = lookAt(agent, block, hooks.offered);
    hooks.signal.throwIfAborted();
    const prepared = await prepareCall(agent, looked, hooks);
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

export type RepeatWatch = { note(calls: readonly CallBlock[], state: SessionState): number };

// The same call with the same result again and again, with nothing written or executed between, leads nowhere.
export function repeatWatch(): RepeatWatch {
  const counts = new Map<string, number>();
  let changedAt = 0;
  return {
    note(calls, state) {
      if (state.turn.changedAt !== changedAt) counts.clear();
      changedAt = state.turn.changedAt;
      let highest = 0;
      // What a gate asks for may be asked for again with nothing changed between.
      const evidence = new Set(Object.values(state.gates.marks).map((mark) => mark.call));
      for (const call of calls.filter((c) => !evidence.has(c.id))) {
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
