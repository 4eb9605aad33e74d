// A host put together: its policy read, its sessions taken in, its functions bound to what they share.
import { randomBytes } from "node:crypto";
import { accessSync, constants, mkdirSync } from "node:fs";
import type { Loaded } from "../core/problem.ts";
import { messageOf } from "../core/thrown.ts";
import { sessionsFolder } from "../load/locate.ts";
import { sandboxFault } from "../session/boxes.ts";
import type { Host } from "../session/host.ts";
import type { SessionOptions } from "../session/session.ts";
import type { PolicyChoice, Settings } from "../session/settings.ts";
import { drainOf } from "./drain.ts";
import { explain, shownPolicy } from "./explain.ts";
import { logReader, openFeed } from "./feed.ts";
import { figures } from "./figures.ts";
import type { Readiness, SessionHost } from "./host.ts";
import { find, type Hub } from "./hub.ts";
import { unloadIdle } from "./loading.ts";
import { policyInvalid, value } from "./outcome.ts";
import { answerPermission, getPermission, listPermissions } from "./permissions.ts";
import { openPolicies } from "./policies.ts";
import { recover } from "./recovery.ts";
import { createSession } from "./new_session.ts";
import { forkSession, listSessions, messages, removeSession, updateSession } from "./sessions.ts";
import { beginWaiting } from "./run_turn.ts";
import { getSkill, listSkills, loadSkill, unloadSkill } from "./skills.ts";
import { cancelTurn, getTurn, steerTurn, submitTurn } from "./turns.ts";
import { sessionView } from "./view.ts";

export type HostOptions = {
  readonly machine: Host;
  readonly choice: PolicyChoice;
  /** For replies that do not come from a model; called for every session that is opened. */
  readonly model?: () => Pick<SessionOptions, "script" | "replies">;
  /** Told a line of what whoever runs the server should know. */
  readonly note: (line: string) => void;
  /** How often is looked for sessions to put away; 10 s. */
  readonly lookMs?: number;
};

/** Turns of one session that may wait. */
const mostQueued = 8;

/** Problems mean that the policy cannot be loaded, and that nothing was done. Sessions that a crash left open are closed when it resolves. */
export async function openHost(options: HostOptions): Promise<Loaded<SessionHost>> {
  const { machine, choice, model = () => ({}), note, lookMs = 10_000 } = options;
  const policies = await openPolicies(machine, choice);
  if (!policies.ok) return policies;
  const hub: Hub = {
    machine,
    policies: policies.value,
    mostQueued,
    model,
    note,
    entries: new Map(),
    busy: new Set(),
    made: new Map(),
    doing: new Map(),
    feed: { instance: randomBytes(8).toString("hex"), first: 0, told: [], watchers: new Set() },
    counters: { turns: new Map(), permissions: new Map(), tokens: new Map() },
    draining: false,
  };
  await recover(hub);
  const look = setInterval(() => void unloadIdle(hub, Date.now()), lookMs);
  return { ok: true, value: bind(hub, () => clearInterval(look)), problems: policies.problems };
}

function bind(hub: Hub, stop: () => void): SessionHost {
  const { drain } = drainOf(hub, stop);
  return {
    createSession: (caller, wanted, once) => createSession(hub, caller, wanted, once),
    listSessions: async (caller, page) => listSessions(hub, caller, page),
    async getSession(caller, session) {
      const found = find(hub, caller, session);
      return found.ok ? value(sessionView(found.value)) : found;
    },
    updateSession: (caller, session, change, ifSeq) => updateSession(hub, caller, session, change, ifSeq),
    removeSession: (caller, session, how) => removeSession(hub, caller, session, how),
    forkSession: (caller, session, at, once) => forkSession(hub, caller, session, at, once),
    messages: async (caller, session, page) => messages(hub, caller, session, page),
    submitTurn: (caller, session, wanted, once) => submitTurn(hub, caller, session, wanted, once),
    getTurn: (caller, session, turn, wait) => getTurn(hub, caller, session, turn, wait),
    cancelTurn: (caller, session, turn) => cancelTurn(hub, caller, session, turn),
    steerTurn: (caller, session, turn, { content }) => steerTurn(hub, caller, session, turn, content),
    async openLog(caller, session) {
      const found = find(hub, caller, session);
      return found.ok ? value(logReader(found.value)) : found;
    },
    openFeed: async (caller, after) => openFeed(hub, caller, after),
    listPermissions: async (caller, page) => listPermissions(hub, caller, page),
    getPermission: async (caller, session, id) => getPermission(hub, caller, session, id),
    answerPermission: (caller, session, id, answer, once) =>
      answerPermission(hub, caller, session, id, answer, once),
    listSkills: () => listSkills(hub),
    getSkill: (_caller, name, how) => getSkill(hub, name, how),
    loadSkill: (caller, session, name, how, once) =>
      loadSkill(hub, caller, session, name, how.arguments, once),
    unloadSkill: (caller, session, name) => unloadSkill(hub, caller, session, name),
    policy: () => shownPolicy(hub),
    policyStatus: () => hub.policies.status(),
    async reloadPolicy() {
      const reloaded = await hub.policies.reload();
      if (!reloaded.ok) return policyInvalid(reloaded.problems);
      // There may be more room now.
      if (!hub.draining) beginWaiting(hub);
      return value({ revision: hub.policies.own().policy.revision, ...reloaded.value });
    },
    explain: (caller, what) => explain(hub, caller, what),
    draining: () => hub.draining,
    runningTurns: () => hub.busy.size,
    drain: ({ graceMs }) => drain(graceMs),
    ready: readinessOf(hub),
    figures: () => figures(hub),
  };
}

// Boxes are tried once for each policy: that starts programs, and probes come often.
function readinessOf(hub: Hub): () => Promise<Readiness> {
  let tried: { readonly settings: Settings; readonly fault: Promise<string | undefined> } | undefined;
  return async () => {
    const settings = hub.policies.own();
    if (tried?.settings !== settings) tried = { settings, fault: sandboxFault(settings) };
    return readiness(hub, settings, await tried.fault);
  };
}

function readiness(hub: Hub, settings: Settings, sandbox: string | undefined): Readiness {
  const { lastError } = hub.policies.status();
  const failed = {
    policy: lastError?.errors[0]?.message,
    store: storeFault(sessionsFolder(settings.surroundings, settings.policy.auditDir)),
    sandbox,
  };
  const components = Object.fromEntries(
    Object.entries(failed).map(([name, error]) => [name, error === undefined ? "ok" : { error }] as const),
  );
  // A policy that failed to load leaves the last good one in force.
  const ready = !hub.draining && failed.store === undefined;
  return { ready, components };
}

function storeFault(dir: string): string | undefined {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    accessSync(dir, constants.W_OK);
    return undefined;
  } catch (error) {
    return `\`${dir}\` cannot be written: ${messageOf(error)}`;
  }
}
