// What callers do to turns: ask for one, look at it, say more to it, end it.
import type { Agent } from "../agent/agent.ts";
import { requestedFault } from "../agent/triggers.ts";
import type { EventData } from "../core/event.ts";
import { chooseModel } from "../core/model_choice.ts";
import type { Session } from "../session/session.ts";
import { decideBusy } from "./busy.ts";
import { type Entry, settled, stillRuns, trackOf, type Waiting, wake } from "./entry.ts";
import type { Caller, Done, Idempotency, NewTurn, Outcome, TurnView } from "./host.ts";
import { find, guarded, type Hub, once, recorded, waitFor } from "./hub.ts";
import { withLoaded } from "./loading.ts";
import { lacksRole, refuse, value } from "./outcome.ts";
import { begin, loadOf, turnOf } from "./run_turn.ts";
import { hasEnded, sessionView, turnView } from "./view.ts";

/** How long a turn may take to begin before it is told of as one that waits. */
const beginMs = 30_000;

/** As `SessionHost` says. */
export async function submitTurn(
  hub: Hub,
  caller: Caller,
  id: string,
  wanted: NewTurn,
  request?: Idempotency,
): Promise<Outcome<Done<TurnView>>> {
  const lacking = lacksRole(caller, "run");
  if (lacking !== undefined) return lacking;
  const found = find(hub, caller, id);
  if (!found.ok) return found;
  const entry = found.value;
  const before = () => {
    const was = recorded(entry, request);
    return was === undefined || was === "other-body" ? was : viewOf(entry, `t_${was.of}`);
  };
  return await once(hub, request, before, async () => {
    if (hub.draining) return refuse("draining", "the server is going down", { retryAfter: 5 });
    if (trackOf(entry).closed) return refuse("session-closed", `the session \`${id}\` is closed`);
    return await withLoaded(hub, entry, (session) => take(hub, entry, session, { caller, wanted, request }));
  });
}

type Asked = {
  readonly caller: Caller;
  readonly wanted: NewTurn;
  readonly request: Idempotency | undefined;
};

async function take(hub: Hub, entry: Entry, session: Session, asked: Asked): Promise<Outcome<TurnView>> {
  const { caller, wanted, request } = asked;
  const fault = await faultOf(session.agent, wanted);
  if (fault !== undefined) return fault;
  await settled(entry);
  if (hub.draining) return refuse("draining", "the server is going down", { retryAfter: 5 });
  if (entry.removed || trackOf(entry).closed) {
    return refuse("session-closed", `the session \`${entry.id}\` is closed`);
  }
  // Nothing waits between the decision and the event that takes the place.
  const decision = decideBusy(wanted.onBusy, loadOf(hub, entry, session));
  if (decision.kind === "refuse") return busyRefusal(hub, entry, decision.code);
  const { recorder } = session.agent;
  const { seq } = recorder.emit("turn.submitted", {
    actor: caller.name,
    ...(request === undefined ? {} : { request }),
  });
  const waiting: Waiting = { id: `t_${seq}`, submitted: seq, caller, wanted };
  if (decision.kind === "start") begin(hub, entry, session, waiting);
  else if (decision.kind === "interrupt") {
    entry.queue.unshift(waiting);
    entry.running?.control.abort("interrupted by another turn");
  } else entry.queue.push(waiting);
  wake(entry);
  await recorder.sync();
  if (decision.kind === "start") {
    await waitFor(entry, () => turnOf(entry, waiting.id)?.stage !== "queued", { ms: beginMs });
  }
  return viewOf(entry, waiting.id);
}

async function faultOf(agent: Agent, { skill, model }: NewTurn): Promise<Outcome<never> | undefined> {
  if (skill !== undefined) {
    const available = agent.catalog.items.filter((s) => s.userInvocable).map((s) => s.name);
    const members = { available };
    if (!available.includes(skill.name)) {
      return refuse("skill-not-found", `there is no skill \`${skill.name}\` to be asked for`, { members });
    }
    const fault = await requestedFault(agent, [{ name: skill.name, arguments: skill.arguments ?? "" }]);
    if (fault !== undefined) return refuse("skill-not-found", fault, { members });
  }
  if (model !== undefined && chooseModel(agent.policy.model, model) === undefined) {
    return refuse("policy-forbids", `\`${model}\` is none of \`model.choices\``, {
      members: { rule: "model.choices" },
    });
  }
  return undefined;
}

function busyRefusal(
  hub: Hub,
  entry: Entry,
  code: Parameters<typeof refuse>[0],
): ReturnType<typeof refuse> {
  const { status, turn = "", queueDepth } = sessionView(entry);
  const members = { turn, status, queueDepth };
  switch (code) {
    case "workspace-busy":
      return refuse(code, "a turn of another session runs in this workspace; wait for it, or queue", {
        retryAfter: 2,
      });
    case "too-many-turns":
      return refuse(code, `${hub.busy.size} turns run, as many as may; try again, or queue`, {
        members: { limit: hub.policies.own().policy.server.maxConcurrentTurns, inUse: hub.busy.size },
        retryAfter: 2,
      });
    case "queue-full":
      return refuse(code, `${entry.queue.length} turns of this session wait, as many as may`, {
        members: { limit: hub.mostQueued, inUse: entry.queue.length },
        retryAfter: 2,
      });
    default:
      return refuse(code, `the turn \`${turn}\` of this session runs; wait, queue or interrupt`, { members });
  }
}

function viewOf(entry: Entry, id: string): Outcome<TurnView> {
  const turn = turnOf(entry, id);
  if (turn === undefined) {
    return refuse("turn-not-found", `the session \`${entry.id}\` has no turn \`${id}\``);
  }
  return value(turnView(entry, turn));
}

/** As `SessionHost` says. */
export async function getTurn(
  hub: Hub,
  caller: Caller,
  session: string,
  id: string,
  wait?: { readonly ms: number; readonly until: "change" | "end"; readonly signal: AbortSignal },
): Promise<Outcome<TurnView>> {
  const found = find(hub, caller, session);
  if (!found.ok) return found;
  const entry = found.value;
  const first = viewOf(entry, id);
  if (!first.ok || wait === undefined || hasEnded(first.value.status)) return first;
  const { status } = first.value;
  const isOver = () => {
    if (entry.removed) return true;
    const now = viewOf(entry, id);
    return !now.ok || hasEnded(now.value.status) || (wait.until === "change" && now.value.status !== status);
  };
  await waitFor(entry, isOver, wait);
  const again = find(hub, caller, session);
  return again.ok ? viewOf(entry, id) : again;
}

/** As `SessionHost` says. */
export async function cancelTurn(
  hub: Hub,
  caller: Caller,
  session: string,
  id: string,
): Promise<Outcome<TurnView>> {
  const found = lacksRole(caller, "run") ?? find(hub, caller, session);
  if (!found.ok) return found;
  const entry = found.value;
  const view = viewOf(entry, id);
  if (!view.ok || hasEnded(view.value.status)) return view;
  return await guarded(async () => {
    await dropQueued(entry, (w) => w.id === id, "cancelled");
    if (entry.running?.id === id) entry.running.control.abort("cancelled");
    wake(entry);
    return viewOf(entry, id);
  });
}

/** Takes turns out of the queue that will not begin. Throws LogFailure. */
export async function dropQueued(
  entry: Entry,
  is: (waiting: Waiting) => boolean,
  reason: EventData["turn.dropped"]["reason"],
): Promise<void> {
  const dropped = entry.queue.filter(is);
  if (dropped.length === 0) return;
  entry.queue.splice(0, entry.queue.length, ...entry.queue.filter((w) => !is(w)));
  const recorder = entry.live?.agent.recorder;
  for (const { submitted } of dropped) recorder?.emit("turn.dropped", { submitted, reason });
  await recorder?.sync();
}

/** As `SessionHost` says. */
export async function steerTurn(
  hub: Hub,
  caller: Caller,
  session: string,
  id: string,
  content: string,
): Promise<Outcome<TurnView>> {
  const found = lacksRole(caller, "run") ?? find(hub, caller, session);
  if (!found.ok) return found;
  const entry = found.value;
  const view = viewOf(entry, id);
  if (!view.ok) return view;
  const { running } = entry;
  if (running === undefined || !stillRuns(entry, id) || running.control.signal.aborted) {
    const { status } = view.value;
    return refuse(
      "turn-ended",
      `the turn \`${id}\` is \`${status}\`; only one that runs can be said more to`,
      {
        members: { status },
      },
    );
  }
  running.steered.push({ content, actor: caller.name });
  return view;
}
