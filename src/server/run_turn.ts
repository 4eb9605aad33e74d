// A turn from the moment that it has a place until it has ended, and which one comes next.
import type { Agent } from "../agent/agent.ts";
import { runTurn } from "../agent/turn.ts";
import { chooseModel } from "../core/model_choice.ts";
import { isWithin } from "../core/path.ts";
import { messageOf } from "../core/thrown.ts";
import { withChosenModel } from "../session/model.ts";
import type { Session } from "../session/session.ts";
import { nobody } from "./approver.ts";
import { hasNoRoom, type Load } from "./busy.ts";
import { type Entry, trackOf, type Waiting, wake } from "./entry.ts";
import type { NewTurn } from "./host.ts";
import type { Hub } from "./hub.ts";
import { problemLine } from "./policies.ts";
import { drop } from "./track.ts";

/** What runs beside a turn of this session. */
export function loadOf(hub: Hub, entry: Entry, { agent }: Session): Load {
  const { root } = agent.policy;
  return {
    running: entry.running !== undefined,
    queued: entry.queue.length,
    mostQueued: hub.mostQueued,
    turns: hub.busy.size,
    mostTurns: hub.policies.own().policy.server.maxConcurrentTurns,
    workspaceBusy: [...hub.busy].some((other) => other !== entry && isShared(root, other.running?.root)),
  };
}

// A folder and one inside it are written by both.
function isShared(root: string, other: string | undefined): boolean {
  return other !== undefined && (isWithin(root, other) || isWithin(other, root));
}

/** Begins a turn where there is room; its place is taken when this returns. It goes on whatever becomes of who asked for it. */
export function begin(hub: Hub, entry: Entry, session: Session, waiting: Waiting): void {
  const control = new AbortController();
  let tell = () => {};
  const ended = new Promise<void>((resolve) => tell = resolve);
  entry.running = {
    id: waiting.id,
    root: session.agent.policy.root,
    control,
    startedMs: Date.now(),
    steered: [],
    ended,
  };
  hub.busy.add(entry);
  runOne(hub, entry, session, waiting).catch((error) => {
    // The log, or a fault of ours: what is known is told, and the next turn may do better.
    hub.note(`error: the turn \`${waiting.id}\` of \`${entry.id}\`: ${messageOf(error)}`);
    const data = { submitted: waiting.submitted, reason: "failed", message: messageOf(error) } as const;
    if (entry.track !== undefined && turnOf(entry, waiting.id)?.stage === "queued") {
      entry.track = drop(entry.track, data);
    }
  }).finally(() => {
    entry.running = undefined;
    hub.busy.delete(entry);
    entry.usedMs = Date.now();
    tell();
    wake(entry);
    beginWaiting(hub);
  });
}

/** Begins what waits, as far as there is room. */
export function beginWaiting(hub: Hub): void {
  for (const entry of hub.entries.values()) {
    const { live: session, queue } = entry;
    if (entry.running !== undefined || session === undefined || hasNoRoom(loadOf(hub, entry, session))) {
      continue;
    }
    const next = queue.shift();
    if (next !== undefined) begin(hub, entry, session, next);
  }
}

async function runOne(hub: Hub, entry: Entry, session: Session, waiting: Waiting): Promise<void> {
  const { wanted, caller, submitted } = waiting;
  const { running } = entry;
  if (running === undefined) return;
  await adopt(hub, entry, session);
  const { recorder } = session.agent;
  const { signal } = running.control;
  if (signal.aborted) {
    recorder.emit("turn.dropped", {
      submitted,
      reason: signal.reason === "SIGTERM" ? "shutdown" : "cancelled",
    });
    return await recorder.sync();
  }
  const choice = wanted.model ?? entry.served.choice ?? "default";
  const model = chooseModel(session.agent.policy.model, choice);
  if (model !== undefined && model.name !== session.agent.policy.model.name) session.useModel(model);
  const end = await runTurn(turnAgent(session.agent, wanted), {
    message: wanted.input,
    actor: caller.name,
    skills: wanted.skill === undefined
      ? []
      : [{ name: wanted.skill.name, arguments: wanted.skill.arguments ?? "" }],
    signal,
    submitted,
    steered: () => running.steered.splice(0),
  });
  if (turnOf(entry, waiting.id)?.stage === "queued") {
    recorder.emit("turn.dropped", {
      submitted,
      reason: "failed",
      ...(end.message === undefined ? {} : { message: end.message }),
    });
  }
}

// What cannot be loaded leaves the old policy in force.
async function adopt(hub: Hub, entry: Entry, session: Session): Promise<void> {
  if (entry.fresh) {
    entry.fresh = false;
    return;
  }
  const read = await hub.policies.read(entry.served.profile, entry.cwd);
  const chosen = read.ok ? withChosenModel(read.value, entry.served.choice) : read;
  const problems = chosen.ok ? await session.adopt(chosen.value) : chosen.problems;
  if (problems.length > 0) {
    hub.note(`warning: \`${entry.id}\` goes on with its policy as it was: ${problemLine(problems)}`);
  }
}

/** The agent for one turn: asked differently, and held to limits that are never wider than the policy's. */
function turnAgent(agent: Agent, { onAsk, limits = {} }: NewTurn): Agent {
  const { policy } = agent;
  const least = (cap: number, wanted: number | undefined) => Math.min(cap, wanted ?? cap);
  return {
    ...agent,
    mode: onAsk === "wait" ? "interactive" : "unattended",
    strict: agent.strict || onAsk === "fail",
    approver: onAsk === "wait" ? agent.approver : nobody,
    policy: {
      ...policy,
      limits: {
        ...policy.limits,
        iterations: least(policy.limits.iterations, limits.iterations),
        toolCalls: least(policy.limits.toolCalls, limits.toolCalls),
        wallTimeMs: least(
          policy.limits.wallTimeMs,
          limits.seconds === undefined ? undefined : limits.seconds * 1000,
        ),
      },
      model: {
        ...policy.model,
        maxOutputTokens: least(policy.model.maxOutputTokens, limits.outputTokens),
      },
    },
  };
}

/** What the log says of a turn. */
export function turnOf(entry: Entry, id: string) {
  return trackOf(entry).turns.find((t) => t.id === id);
}
