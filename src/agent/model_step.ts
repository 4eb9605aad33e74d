// One model reply: streamed, recorded as coalesced deltas, asked for again whole when the outside world fails.
import type { Agent } from "./agent.ts";
import { ModelFailure } from "./ports.ts";
import type { ModelReply, ModelRequest, Usage } from "../core/message.ts";
import { costOf } from "../core/price.ts";

const deltaBytes = 4096;
const deltaMs = 250;
/** No secret is longer; a text that never settles must not grow without bound. */
const longestHeldBack = 64 * 1024;
const longestWaitMs = 5 * 60_000;

/**
 * Throws ModelFailure after the last attempt, and what an aborted signal throws. Records `model.completed`. A reply with a purpose
 * stands beside the conversation: its text is not told as it comes, and it can call nothing.
 */
export async function modelStep(
  agent: Agent,
  request: ModelRequest,
  signal: AbortSignal,
  purpose?: "summary",
): Promise<ModelReply> {
  const tell = (text: string) => {
    if (purpose === undefined) agent.recorder.emit("model.delta", { text });
  };
  for (let attempt = 1;; attempt++) {
    const deltas = deltaBuffer(agent, tell);
    try {
      const reply = await agent.model.reply(request, { text: deltas.add, blockEnd: deltas.flush }, signal);
      deltas.flush();
      agent.recorder.emit("model.completed", {
        stopReason: reply.stop,
        usage: reply.usage,
        ...costAndModel(agent, reply.usage),
        content: purpose === undefined
          ? reply.content
          : reply.content.filter((block) => block.type !== "tool_use"),
        ...(purpose === undefined ? {} : { purpose }),
      });
      return reply;
    } catch (error) {
      deltas.stop();
      if (!(error instanceof ModelFailure) || signal.aborted) throw error;
      const wait = retryWait(agent, error, attempt);
      agent.recorder.emit("model.failed", {
        attempt,
        code: error.code,
        message: error.message,
        ...(error.status === undefined ? {} : { status: error.status }),
        ...(wait === undefined ? {} : { retryInMs: wait }),
      });
      if (wait === undefined) throw error;
      await agent.clock.sleep(wait, signal);
    }
  }
}

function costAndModel(agent: Agent, usage: Usage): { readonly costUsd?: number; readonly model?: string } {
  const { name, prices } = agent.policy.model;
  const other = name !== "" && name !== agent.recorder.state.facts?.model;
  return {
    ...(prices === undefined ? {} : { costUsd: costOf(usage, prices) }),
    ...(other ? { model: name } : {}),
  };
}

function retryWait(agent: Agent, failure: ModelFailure, attempt: number): number | undefined {
  if (!failure.retryable || attempt > agent.policy.model.retries) return undefined;
  if (failure.retryAfterMs !== undefined) {
    return failure.retryAfterMs <= longestWaitMs ? failure.retryAfterMs : undefined;
  }
  const backoff = Math.min(30_000, 500 * 2 ** (attempt - 1));
  return Math.round(backoff * (0.5 + agent.random() / 2));
}

type DeltaBuffer = { add(text: string): void; flush(): void; stop(): void };

// A delta event ends at a block's end, at 4 KiB or after 250 ms, whichever comes first. Within a block it ends before what
// may be the beginning of a secret: each event is redacted by itself. A log that fails inside the timer must fail the
// turn, not the process: the failure is thrown at the next call.
function deltaBuffer({ clock, recorder }: Agent, emit: (text: string) => void): DeltaBuffer {
  let pending = "";
  let cancelTimer: (() => void) | undefined;
  let failure: { readonly error: unknown } | undefined;
  const take = (length: number) => {
    cancelTimer?.();
    cancelTimer = undefined;
    const text = pending.slice(0, length);
    pending = pending.slice(length);
    return text;
  };
  const emitUpTo = (length: number) => {
    if (failure !== undefined) throw failure.error;
    const text = take(length);
    if (text !== "") emit(text);
  };
  const flush = () => emitUpTo(pending.length);
  const onTimer = () => {
    try {
      emitUpTo(recorder.settled(pending));
      if (pending !== "") cancelTimer = clock.after(deltaMs, onTimer);
    } catch (error) {
      failure = { error };
    }
  };
  return {
    add(text) {
      pending += text;
      if (pending.length >= longestHeldBack) flush();
      else if (pending.length >= deltaBytes) emitUpTo(recorder.settled(pending));
      else if (pending !== "") cancelTimer ??= clock.after(deltaMs, onTimer);
    },
    flush,
    stop: () => void take(pending.length),
  };
}
