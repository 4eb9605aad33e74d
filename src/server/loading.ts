// Sessions are opened when they are needed and put away when nobody has for a while.
import type { Problem } from "../core/problem.ts";
import { loadCatalog } from "../session/catalog.ts";
import { withChosenModel } from "../session/model.ts";
import { openSession } from "../session/open.ts";
import type { Session } from "../session/session.ts";
import { approverOf } from "./approver.ts";
import { type Entry, settled, trackOf } from "./entry.ts";
import type { Outcome, Refusal } from "./host.ts";
import { hear, type Hub, isFresh } from "./hub.ts";
import { policyInvalid, refuse, value } from "./outcome.ts";

/** The session, loaded; callers at the same time wait for the same one. Throws LogFailure. */
export function load(hub: Hub, entry: Entry): Promise<Outcome<Session>> {
  entry.usedMs = Date.now();
  if (entry.live !== undefined) return Promise.resolve(value(entry.live));
  entry.opening ??= open(hub, entry).finally(() => entry.opening = undefined);
  return entry.opening;
}

async function open(hub: Hub, entry: Entry): Promise<Outcome<Session>> {
  await entry.closing;
  const room = await makeRoom(hub);
  if (room !== undefined) return room;
  const settings = await hub.policies.read(entry.served.profile, entry.cwd);
  if (!settings.ok) return policyInvalid(settings.problems);
  const chosen = withChosenModel(settings.value, entry.served.choice);
  if (!chosen.ok) return policyInvalid(chosen.problems);
  // From here on its events are followed.
  trackOf(entry);
  const opened = await openSession(hub.machine, chosen.value, loadCatalog(chosen.value), {
    mode: "unattended",
    approver: approverOf(() => entry),
    listeners: [(event) => hear(hub, entry, event)],
    resume: entry.id,
    ...hub.model(),
  });
  if (!opened.ok) return { ok: false, refusal: notOpened(opened.problems) };
  entry.live = opened.value;
  entry.state = undefined;
  entry.fresh = true;
  entry.usedMs = Date.now();
  return value(opened.value);
}

/** Why a session was not opened, as callers are told. */
export function notOpened(problems: readonly Problem[]): Refusal {
  const [first] = problems;
  if (first?.code === "session_busy" || first?.code === "log_taken") {
    return refuse("not-owner", first.message).refusal;
  }
  if (first?.code === "log_unwritable" || first?.code === "log_damaged") {
    return refuse("not-ready", first.message, { retryAfter: 5 }).refusal;
  }
  return policyInvalid(problems).refusal;
}

/** Refused when as many sessions are loaded as may be, and none of them is idle. */
export async function makeRoom(hub: Hub): Promise<ReturnType<typeof refuse> | undefined> {
  const most = hub.policies.own().policy.server.maxSessions;
  const loaded = [...hub.entries.values()].filter((e) => e.live !== undefined || e.opening !== undefined);
  if (loaded.length < most) return undefined;
  await Promise.all(loaded.map(settled));
  const idle = loaded.filter(isIdle).sort((a, b) => a.usedMs - b.usedMs)[0];
  if (idle !== undefined) {
    await unload(idle);
    return undefined;
  }
  return refuse("too-many-sessions", `${most} sessions are loaded and busy; try again when one has ended`, {
    members: { limit: most, inUse: loaded.length },
    retryAfter: 2,
  });
}

/** Loaded, and nothing goes on in it. */
export function isIdle(entry: Entry): boolean {
  return entry.live !== undefined && entry.running === undefined && entry.queue.length === 0 &&
    entry.held === 0;
}

/** Closes its log, its servers and what holds its commands. */
export async function unload(entry: Entry): Promise<void> {
  const { live } = entry;
  if (live === undefined) return;
  entry.live = undefined;
  entry.track = undefined;
  entry.forks.clear();
  // Whoever needs it now waits until its log is free again.
  const closing = live.close().finally(() => entry.closing = undefined);
  entry.closing = closing.catch(() => {});
  await closing;
}

/** Puts away what nobody has used for as long as the policy says. */
export async function unloadIdle(hub: Hub, nowMs: number): Promise<void> {
  for (const [id, { atMs }] of hub.made) if (!isFresh(atMs)) hub.made.delete(id);
  const { idleUnloadMs } = hub.policies.own().policy.server;
  const idle = [...hub.entries.values()].filter((e) => isIdle(e) && nowMs - e.usedMs >= idleUnloadMs);
  await Promise.allSettled(idle.map(unload));
}

/** Holds it loaded while `work` goes on. Throws LogFailure. */
export async function withLoaded<T>(
  hub: Hub,
  entry: Entry,
  work: (session: Session) => Promise<Outcome<T>>,
): Promise<Outcome<T>> {
  entry.held++;
  try {
    const session = await load(hub, entry);
    return session.ok ? await work(session.value) : session;
  } finally {
    entry.held--;
    entry.usedMs = Date.now();
  }
}
