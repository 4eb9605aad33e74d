// Keeping requests within the model's context: the next request, and what is taken out of it when it has no room.
import type { Agent } from "./agent.ts";
import { modelStep } from "./model_step.ts";
import { offeredTools, toDefinition } from "./offered.ts";
import { spentStop } from "./shared.ts";
import { limitStop, type Stop } from "./stop.ts";
import { contextRoom, corrected } from "../core/budget.ts";
import { type CompactionPlan, compactTranscript, entryTokens, planCompaction } from "../core/compaction.ts";
import { buildContext, type ContextReport } from "../core/context.ts";
import type { EventData, Tokens } from "../core/event.ts";
import { omissions } from "../core/listing.ts";
import type { ModelRequest } from "../core/message.ts";
import { type SessionState, withoutNews } from "../core/session.ts";
import { summaryOf, summaryRequest } from "../core/summary.ts";

export type Built = { readonly request: ModelRequest; readonly report: ContextReport };

/** The request that this state comes to, whether or not it has room. */
export function contextOf(agent: Agent, state: SessionState = agent.recorder.state): Built {
  const { model } = agent.policy;
  return buildContext({
    state,
    stable: agent.preface.now.stable,
    // What skills and servers say of their tools was never an event.
    tools: agent.recorder.redact(offeredTools(agent).map(toDefinition)),
    model: model.name,
    maxOutputTokens: model.maxOutputTokens,
  });
}

/**
 * The next request, after a compaction when it has no room, or when the provider said so (`full`). At most one compaction: what has no
 * room after it ends the turn.
 */
export async function fittingContext(
  agent: Agent,
  signal: AbortSignal,
  full: boolean,
): Promise<{ readonly built: Built } | { readonly stop: Stop }> {
  const built = contextOf(agent);
  if (!full && built.report.total <= contextRoom(agent.policy.model)) return { built };
  const done = await compact(agent, signal, full);
  return done.ok ? { built: contextOf(agent) } : done;
}

export type Compaction =
  | { readonly ok: true; readonly data: EventData["context.compacted"] }
  | { readonly ok: false; readonly why: string; readonly stop: Stop };

/**
 * Takes out what it can and records `context.compacted`; not ok: nothing was taken out. `asked`: although there is room. Throws what
 * modelStep throws when the summary can not be had.
 */
export async function compact(agent: Agent, signal: AbortSignal, asked: boolean): Promise<Compaction> {
  const { report } = contextOf(agent);
  const state = withoutNews(agent.recorder.state);
  const room = contextRoom(agent.policy.model);
  const refuse = (why: string): Compaction => ({
    ok: false,
    why,
    stop: fullStop(report, room, why),
  });
  const { factor } = state.calibration;
  const shown = state.transcript.reduce((tokens, e) => tokens + entryTokens(e), 0);
  const plan = planCompaction({
    ...state,
    fixed: contextOf(agent, state).report.total - corrected(shown, state.calibration),
    factor,
    room,
    endsCut: state.turn.open && state.transcript.at(-1)?.kind === "assistant",
    asked,
  });
  if (plan === undefined) return refuse("nothing is left in it that could be cut or summed up");
  const summary = plan.range === undefined ? { text: "" } : await summarize(agent, signal, {
    ...plan,
    transcript: state.transcript,
    range: plan.range,
    room,
    factor,
  });
  if ("stop" in summary) return { ok: false, why: summary.stop.message ?? "", stop: summary.stop };
  if ("fault" in summary) return refuse(summary.fault);
  const data = compacted(plan, summary.text);
  const before = agent.preface.now;
  const preface = agent.makePreface({
    recent: state.recent,
    contextTokens: agent.policy.model.contextTokens,
    before,
  });
  const after = contextOf({ ...agent, preface: { now: preface } }, {
    ...state,
    transcript: compactTranscript(state, data),
  }).report.total;
  if (after > room) return refuse(`a compaction brings it down to ${after} only`);
  if (after >= report.total) return refuse("a compaction makes it no smaller");
  const recorded = agent.recorder.emit("context.compacted", {
    ...data,
    tokensBefore: report.total,
    tokensAfter: after,
  });
  for (const omission of omissions(preface.shown, agent.policy, before.shown)) {
    agent.recorder.emit("skill.omitted", omission);
  }
  agent.preface.now = preface;
  return { ok: true, data: recorded.data };
}

function compacted(plan: CompactionPlan, summary: string) {
  const { range, cut } = plan;
  return {
    from: range?.from ?? cut.results[0] ?? 0,
    to: range?.to ?? cut.results.at(-1) ?? 0,
    summary,
    ...(cut.results.length === 0 ? {} : { cut }),
  };
}

type SummaryPlan = {
  readonly transcript: SessionState["transcript"];
  readonly range: { readonly to: number };
  readonly summaryTokens: number;
  readonly room: number;
  readonly factor: number;
};

async function summarize(
  agent: Agent,
  signal: AbortSignal,
  plan: SummaryPlan,
): Promise<{ readonly text: string } | { readonly fault: string } | { readonly stop: Stop }> {
  const { model } = agent.policy;
  const request = summaryRequest({
    entries: plan.transcript.filter((e) => e.seq <= plan.range.to),
    model: model.name,
    maxOutputTokens: model.maxOutputTokens,
    room: plan.room,
    factor: plan.factor,
    summaryTokens: plan.summaryTokens,
  });
  if (request === undefined) return { fault: "there is no room to ask for a summary" };
  const reply = await modelStep(agent, request, signal, "summary");
  const stop = spentStop(agent);
  if (stop !== undefined) return { stop };
  if (reply.stop === "refusal") return { fault: "the model refused to write a summary" };
  const text = summaryOf(reply.content);
  if (text === "") return { fault: "the model wrote an empty summary" };
  const whole = reply.stop !== "max_tokens" && reply.stop !== "context_full";
  return { text: whole ? text : `${text}\n[the summary was cut off here]` };
}

function fullStop({ total, tokens }: ContextReport, room: number, why: string): Stop {
  const stop = limitStop("context_tokens", total, room);
  const told = total > room
    ? stop.message
    : `limit \`context_tokens\` reached: the provider finds the request too long, at an estimated ${total} of ${room} tokens`;
  return { ...stop, message: `${told} (${showTokens(tokens)}); ${why}` };
}

/** What each bucket costs, those that cost something. */
export function showTokens(tokens: Tokens): string {
  return Object.entries(tokens).filter(([, n]) => n > 0).map(([name, n]) => `${name} ${n}`).join(", ");
}
