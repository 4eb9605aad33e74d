// Running a skill as a fork: a session of its own with its own log, under the policy, the bounds, the gates and the limits of
// the session around it. What its calls do to gates is recorded there as it happens.
import { type LoadSite, prepareSkill, recordSkill, type Skipped } from "./activate.ts";
import type { Agent } from "./agent.ts";
import type { Waiting } from "./approval.ts";
import { forceSkills } from "./force.ts";
import { LogFailure } from "./ports.ts";
import type { Recorder } from "./recorder.ts";
import type { Stop } from "./stop.ts";
import type { Event, Trigger } from "../core/event.ts";
import { type ForkEnd, forkHistory, forkTask, type HeldBack, renderFork } from "../core/fork.ts";
import { unreported } from "../core/gate_state.ts";
import { chooseModel, skillModel } from "../core/model_choice.ts";
import { emptySession, type SessionState } from "../core/session.ts";
import type { Skill } from "../core/skill.ts";

export type ForkRequest = {
  readonly skill: Skill;
  readonly trigger: Trigger;
  readonly arguments: string;
  /** The load_skill call that asked for it: its text is that call's result; without one it enters the environment. */
  readonly call?: string;
  readonly held?: HeldBack;
};
export type ForkRun =
  | { readonly ok: true; readonly end: ForkEnd }
  | { readonly ok: false; readonly code: string; readonly message: string; readonly skipped?: Skipped };

/** What a turn shares with its forks: its signal, its clock that stands still, and what its faults come to. */
export type TurnFrame = Waiting & { stopOf(error: unknown): Stop };
/** The loop, handed in: a fork is run by a turn and runs one. */
export type Loop = {
  iterate(agent: Agent, frame: TurnFrame): Promise<Stop>;
  endTurn(
    agent: Agent,
    stop: Stop,
  ): Promise<{ readonly stop: Stop["stop"]; readonly text: string; readonly message?: string }>;
};

/**
 * Runs it to its end, which is recorded as `fork.completed` whatever comes of it. Not `ok`: it was not started. Throws
 * LogFailure, and what is a fault of our own.
 */
export async function runFork(
  agent: Agent,
  frame: TurnFrame,
  request: ForkRequest,
  loop: Loop,
): Promise<ForkRun> {
  const { recorder } = agent;
  const { skill, trigger } = request;
  if (agent.parent !== undefined) {
    const message =
      `skill \`${skill.name}\` runs as a fork, and a fork starts none: this one already is a fork`;
    return { ok: false, code: "fork_depth", message };
  }
  const prepared = await prepareFork(agent, request);
  if (!prepared.ok) return prepared;
  const session = `${recorder.state.id}-f${recorder.state.forks.count + 1}`;
  const started = recorder.emit("fork.started", {
    skill: skill.name,
    session,
    trigger,
    ...(request.call === undefined ? {} : { call: request.call }),
  });
  // A log that nobody knows of must not be left by a crash.
  await recorder.sync();
  const log = await agent.forks.create(session, reporter(recorder, skill.name, session));
  try {
    const fork = forkAgent(agent, syncedAfter(recorder, log.recorder), prepared.meta.model);
    openFork(agent, fork, request, started.hash);
    const stop = await forkTurn(fork, frame, () => recordSkill(fork, prepared), loop);
    const outcome = outcomeOf(skill.name, fork.recorder.state, stop);
    const ended = await loop.endTurn(fork, stop);
    if (ended.stop === "audit_error") {
      throw new LogFailure("log_unwritable", ended.message ?? "the log of the fork");
    }
    const end: ForkEnd = {
      skill: skill.name,
      session,
      stop: ended.stop,
      outcome: ended.stop === stop.stop ? outcome : ended.stop,
      text: ended.text,
      ...(ended.message === undefined ? {} : { message: ended.message }),
    };
    complete(recorder, end, fork.recorder.state, request.call === undefined ? renderFork(end) : undefined);
    if (stop.stop === "internal_error") throw stop.error ?? new Error(stop.message);
    return { ok: true, end };
  } finally {
    await log.close();
  }
}

/** The skill of a fork as the fork would have it now: beside those that are forced, and no others. Records nothing. */
export function prepareFork(agent: LoadSite, request: ForkRequest): ReturnType<typeof prepareSkill> {
  const { skill, trigger } = request;
  return prepareSkill(agent, {
    skill,
    trigger,
    arguments: request.arguments,
    bounding: true,
    scope: "turn",
  }, agent.recorder.state.active.filter((s) => s.forced));
}

// The task, then what forces itself on every session, then the skill: the order in which a turn of its own would have it.
async function forkTurn(
  fork: Agent,
  frame: TurnFrame,
  loadSkill: () => void,
  loop: Loop,
): Promise<Stop> {
  try {
    const [problem] = await forceSkills(fork);
    if (problem !== undefined) return { stop: "interrupted", message: problem.message };
    loadSkill();
    await fork.recorder.sync();
    return await loop.iterate(fork, frame);
  } catch (error) {
    return frame.stopOf(error);
  }
}

// What the session around it was told of a call is on disk before that call runs.
function syncedAfter(parent: Recorder, own: Recorder): Recorder {
  return {
    get state() {
      return own.state;
    },
    emit: (type, data) => own.emit(type, data),
    redact: (data) => own.redact(data),
    settled: (text) => own.settled(text),
    async sync() {
      await parent.sync();
      await own.sync();
    },
  };
}

function forkAgent(agent: Agent, recorder: Recorder, declared: string | undefined): Agent {
  const { name } = skillModel(agent.policy.model, declared);
  const model = name === undefined ? undefined : chooseModel(agent.policy.model, name);
  return {
    ...agent,
    ...(model === undefined ? {} : { policy: { ...agent.policy, model } }),
    parent: agent,
    recorder,
    // It has read nothing yet, and what it writes the session around it has not seen.
    seen: new Map(),
    installed: new Map(),
    // What a compaction of the fork exchanges stays as it is for the session.
    preface: { now: agent.preface.now },
  };
}

function openFork(agent: Agent, fork: Agent, request: ForkRequest, hash: string): void {
  const { state } = agent.recorder;
  const { facts } = state;
  if (facts === undefined) throw new Error("a fork before its session was opened");
  const { skill, trigger, held } = request;
  const changed = fork.policy.model !== agent.policy.model;
  fork.recorder.emit("session.started", {
    ...facts,
    ...(changed ? { model: fork.policy.model.name } : {}),
    parent: { session: state.id, hash, skill: skill.name },
  });
  const history = skill.history ?? "none";
  const transcript = forkHistory(state, history, changed ? "drop" : "keep");
  if (history !== "none" && transcript.length > 0) {
    fork.recorder.emit("fork.history", { history, transcript });
  }
  const message = state.transcript.findLast((e) => e.kind === "user");
  fork.recorder.emit("user.message", {
    content: forkTask({
      skill: skill.name,
      arguments: request.arguments,
      trigger,
      message: message?.kind === "user" ? message.text : "",
      ...(held === undefined ? {} : { held }),
    }),
    actor: facts.actor,
  });
}

/**
 * Tells the session around a fork what its calls did to the gates, at once. Calls that have nothing to do with a gate and only read are left out.
 */
function reporter(parent: Recorder, skill: string, session: string): (event: Event) => void {
  const gated = new Set<string>();
  return (event) => {
    switch (event.type) {
      case "tool.started": {
        const { call, risk, evidence, gates } = event.data;
        if (gates !== undefined) gated.add(call);
        if (risk === "read" && evidence === undefined && gates === undefined) return;
        parent.emit("fork.reported", { session, event: "tool.started", data: event.data });
        return;
      }
      case "tool.completed": {
        const { result: _result, data: _data, ...data } = event.data;
        const concerned = data.evidence !== undefined || data.notEvidence !== undefined ||
          data.gates !== undefined;
        if (!concerned && !gated.has(data.call)) return;
        parent.emit("fork.reported", { session, event: "tool.completed", data });
        return;
      }
      case "tool.interrupted":
        if (!event.data.started) return;
        parent.emit("fork.reported", { session, event: "tool.interrupted", data: event.data });
        return;
      case "skill.completed":
        if (event.data.outcome === unreported) return;
        // Of another skill, which the fork has loaded, it is no word of a fork of that skill.
        parent.emit("skill.completed", {
          ...event.data,
          ...(event.data.name === skill ? { fork: session } : { within: session }),
        });
        return;
      default:
        return;
    }
  };
}

function outcomeOf(skill: string, state: SessionState, stop: Stop): string {
  if (stop.stop !== "final") return stop.stop;
  return state.active.find((s) => s.name === skill)?.outcome ?? unreported;
}

function complete(parent: Recorder, end: ForkEnd, fork: SessionState, text: string | undefined): void {
  parent.emit("fork.completed", {
    skill: end.skill,
    session: end.session,
    hash: fork.hash,
    outcome: end.outcome,
    usage: fork.usage,
    ...(fork.costUsd === undefined ? {} : { costUsd: fork.costUsd }),
    toolCalls: fork.turn.toolCalls,
    denied: fork.turn.denied,
    ...(text === undefined ? {} : { text }),
  });
}

/** Ends the forks that a crash left open, each in its own log and in this one. */
export async function closeForks(
  agent: Pick<Agent, "recorder" | "forks">,
  close: (fork: Pick<Agent, "recorder">, stop: Stop) => Promise<void>,
): Promise<void> {
  for (const { skill, session, call } of agent.recorder.state.forks.open) {
    const log = await agent.forks.reopen(session);
    try {
      if (log?.recorder.state.turn.open === true) {
        await close(log, { stop: "interrupted", message: "the process ended within this turn" });
      }
      // What the session says of its end must not outlive it: a sync of that end may have failed before.
      await log?.recorder.sync();
      const end: ForkEnd = {
        skill,
        session,
        stop: "interrupted",
        outcome: "interrupted",
        text: "",
        message: "the process ended within its turn",
      };
      complete(
        agent.recorder,
        end,
        log?.recorder.state ?? emptySession,
        call === undefined ? renderFork(end) : undefined,
      );
    } finally {
      await log?.close();
    }
  }
}
