// The composition root: settings and options → a session that can take turns. Everything is put together here, by hand.
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Agent } from "../agent/agent.ts";
import { prepareForced, recordForced } from "../agent/force.ts";
import { openSession as recordOpening, replay } from "../agent/open.ts";
import { type AnswerKeeper, type Approver, type Clock, LogFailure, type Network } from "../agent/ports.ts";
import { createRecorder } from "../agent/recorder.ts";
import { type Requested, requestedFault } from "../agent/triggers.ts";
import { unavailable } from "../core/catalog.ts";
import type { Event, SessionFacts } from "../core/event.ts";
import type { Mode } from "../core/facts.ts";
import { sameReach } from "../core/model_choice.ts";
import type { ModelSettings } from "../core/policy.ts";
import type { Loaded, Problem } from "../core/problem.ts";
import type { SessionState } from "../core/session.ts";
import { systemClock } from "../runtime/clock.ts";
import { beforeImages } from "../store/before_images.ts";
import { listSessions, startOf } from "../store/session_files.ts";
import { createLog, type Opened, resumeLog } from "../store/session_log.ts";
import { makeAgent } from "./agent_parts.ts";
import { isSameGround, openBoxes, type SessionBoxes } from "./boxes.ts";
import { catalogNews, differs, omissions, recordNews } from "./catalog_news.ts";
import { loadCatalog, type LoadedCatalog, unlisted } from "./catalog.ts";
import type { Host } from "./host.ts";
import { forkLogs } from "./fork_logs.ts";
import type { ScriptReply } from "../provider/script.ts";
import { openServers, type SessionServers } from "./mcp_servers.ts";
import { collectSecrets, type Secrets } from "./secrets.ts";
import { openStore, sessionFolder, type SessionStore } from "./session_store.ts";
import type { Settings } from "./settings.ts";
import { version } from "./version.ts";

export type SessionOptions = {
  readonly mode: Mode;
  readonly approver: Approver;
  /** For somebody whose yes may be kept for good. */
  readonly keeper?: (settings: Settings) => AnswerKeeper;
  readonly listeners: readonly ((event: Event) => void)[];
  readonly strict?: boolean;
  /** Asked for by name for the first turn: without them the session does not start. */
  readonly skills?: readonly Requested[];
  readonly script?: string;
  /** Replies that are read already, in the place of a model. */
  readonly replies?: readonly ScriptReply[];
  readonly resume?: string;
  readonly continue?: boolean;
  /** For runs whose log must be the same everywhere. */
  readonly fixed?: {
    readonly clock: Clock;
    readonly network: Network;
    readonly session: string;
    readonly platform: string;
    readonly actor: string;
    readonly aliases: readonly { readonly value: string; readonly as: string }[];
    /** In the place of the one that the policy names. */
    readonly store?: SessionStore;
  };
};

/** How a session is named in what is told of it. */
export type SessionRef = {
  readonly id: string;
  readonly log: string;
  readonly seq: number;
  readonly hash: string;
  /** Names of those that were used in it, newest last. */
  readonly skills: readonly string[];
};

export type Session = {
  readonly id: string;
  readonly logPath: string;
  /** The agent for the next turn; another one after `adopt`. */
  readonly agent: Agent;
  /**
   * To be called before every turn but the first: takes the settings as they are now and looks for skills anew. What is
   * different is recorded, and told to the model in the turn that follows. Problems mean that the old ones stay whole, that
   * nothing was recorded, and that the next call tries again.
   */
  adopt(settings: Settings): Promise<readonly Problem[]>;
  /** Another model for the turns to come, reached as the one before. */
  useModel(model: ModelSettings): void;
  ref(): SessionRef;
  /** Ends the servers as well. */
  close(): Promise<void>;
};

/** Problems mean that nothing ran and, save for a log that was there before, nothing was written. */
export async function openSession(
  host: Host,
  settings: Settings,
  catalog: LoadedCatalog,
  options: SessionOptions,
): Promise<Loaded<Session>> {
  const missing = unavailable(catalog.catalog, settings.policy, unlisted(catalog));
  if (missing.length > 0) return { ok: false, problems: missing };
  const at = options.fixed?.store === undefined
    ? await openStore(settings)
    : { ok: true as const, value: options.fixed.store };
  if (!at.ok) return at;
  let opened: OpenedSession;
  try {
    opened = await openLog(at.value, settings, options);
  } catch (error) {
    return refusedLog(error);
  }
  try {
    return await start(host, settings, options, catalog, opened);
  } catch (error) {
    await giveBack(opened);
    return refusedLog(error);
  }
}

type OpenedSession = Opened & { readonly id: string; readonly at: SessionStore };

// A session in which nothing ran leaves nothing behind; one that was there before stays.
async function giveBack({ log, events }: Opened): Promise<void> {
  if (events.length === 0) await log.discard();
  else await log.close();
}

function refusedLog(error: unknown): Loaded<never> {
  if (!(error instanceof LogFailure)) throw error;
  return { ok: false, problems: [{ code: error.code, severity: "error", message: error.message }] };
}

async function start(
  host: Host,
  settings: Settings,
  options: SessionOptions,
  found: LoadedCatalog,
  opened: OpenedSession,
): Promise<Loaded<Session>> {
  const refuse: Refuse = async (problems) => {
    await giveBack(opened);
    return { ok: false, problems };
  };
  const initial = replay(opened.events);
  const secrets = collectSecrets(host.env, options.fixed?.aliases ?? []);
  secrets.use(settings.policy);
  if (opened.at.key !== undefined) secrets.add(opened.at.key);
  const elsewhere = resumedElsewhere(
    settings,
    secrets.redact(settings.policy.root),
    userOf(host, options),
    initial.facts,
  );
  if (elsewhere !== undefined) return await refuse([elsewhere]);
  const boxes = await openBoxes(settings);
  const servers = await openServers(host, settings, { onKey: secrets.add, redact: secrets.redact, boxes });
  if (!servers.ok) {
    boxes.close();
    return refuse(servers.problems);
  }
  let started: Loaded<Session> | undefined;
  try {
    const catalog = servers.value.lacking.size === 0 ? found : loadCatalog(settings, servers.value.lacking);
    const missing = unavailable(catalog.catalog, settings.policy, unlisted(catalog));
    started = missing.length > 0 ? await refuse(missing) : await begin(host, settings, options, {
      catalog,
      opened,
      initial,
      secrets,
      servers: servers.value,
      boxes,
      refuse,
    });
    return started;
  } finally {
    if (started?.ok !== true) {
      await servers.value.close();
      boxes.close();
    }
  }
}

type Refuse = (problems: readonly Problem[]) => Promise<Loaded<Session>>;

/** What a session stands on when its servers are there. */
type Ground = {
  readonly catalog: LoadedCatalog;
  readonly opened: OpenedSession;
  readonly initial: SessionState;
  readonly secrets: Secrets;
  readonly servers: SessionServers;
  readonly boxes: SessionBoxes;
  readonly refuse: Refuse;
};

async function begin(
  host: Host,
  settings: Settings,
  options: SessionOptions,
  { catalog, opened, initial, secrets, servers: first, boxes: firstBoxes, refuse }: Ground,
): Promise<Loaded<Session>> {
  let servers = first;
  let boxes = firstBoxes;
  const recorder = createRecorder({
    log: opened.log,
    clock: options.fixed?.clock ?? systemClock,
    session: opened.id,
    initial,
    redact: secrets.redactValue,
    settled: secrets.settled,
    listeners: options.listeners,
  });
  const site = {
    forks: forkLogs(opened.at, {
      clock: options.fixed?.clock ?? systemClock,
      redact: secrets.redactValue,
      settled: secrets.settled,
      listeners: options.listeners,
    }),
    onKey: secrets.add,
    redact: secrets.redact,
    keepBefore: beforeImages(join(sessionFolder(opened.at, opened.id), "before")),
    boxes,
  };
  const made = await makeAgent(host, settings, options, catalog, recorder, {
    ...site,
    serverTools: servers.tools,
  });
  if (!made.ok) return await refuse(made.problems);
  let agent = made.value;
  const fault = await requestedFault(agent, options.skills ?? []);
  if (fault !== undefined) return await refuse([{ code: "usage", severity: "error", message: fault }]);
  let current = { settings, catalog };
  const problems = await recordOpening(agent, {
    facts: factsOf(host, settings, options, boxes),
    resumed: opened.events.length > 0,
    ...(opened.recovered === undefined ? {} : { recovered: opened.recovered }),
    skillFaults: [...servers.faults, ...catalog.errors],
    omitted: omissions(agent.shown, settings.policy),
  });
  if (problems.length > 0) return await refuse(problems);
  const path = join(sessionFolder(opened.at, opened.id), "log.jsonl");
  const session: Session = {
    id: opened.id,
    logPath: path,
    get agent() {
      return agent;
    },
    async adopt(next) {
      const changed = next.policy.revision !== agent.policy.revision;
      const sameWalls = isSameGround(next, current.settings);
      const nextBoxes = sameWalls ? boxes : await openBoxes(next);
      nextBoxes.renew();
      const leaveBoxes = () => sameWalls ? undefined : nextBoxes.close();
      const sameText = !changed && next.trusted === current.settings.trusted;
      const kept = servers.fits(next);
      const nextSite = { ...site, boxes: nextBoxes };
      const reached = kept ? undefined : await openServers(host, next, nextSite);
      if (reached?.ok === false) {
        leaveBoxes();
        return reached.problems;
      }
      const nextServers = reached?.value ?? servers;
      const leave = async (problems: readonly Problem[]) => {
        await reached?.value.close();
        leaveBoxes();
        return problems;
      };
      const nextCatalog = loadCatalog(next, nextServers.lacking);
      if (sameText && !differs(current.catalog, nextCatalog)) return await leave([]);
      const missing = unavailable(nextCatalog.catalog, next.policy, unlisted(nextCatalog));
      if (missing.length > 0) return await leave(missing);
      const remade = await makeAgent(host, next, options, nextCatalog, recorder, {
        ...nextSite,
        serverTools: nextServers.tools,
      });
      if (!remade.ok) return await leave(remade.problems);
      const sameModel = sameReach(next.policy.model, agent.policy.model);
      const news = catalogNews(agent, remade.value, sameText ? "kept" : "new");
      const successor: Agent = {
        ...remade.value,
        // What the model was told first is not told again in other words: the requests before stay its beginning.
        ...(sameText ? { stable: agent.stable } : {}),
        shown: news.shown,
        ...(sameModel ? { model: agent.model } : {}),
        // Kept answers end when the policy changes.
        grants: changed ? [] : agent.grants,
        seen: agent.seen,
        lastBodies: agent.lastBodies,
        installed: agent.installed,
      };
      const forced = await prepareForced(successor);
      if (!forced.ok) return await leave(forced.problems);
      if (changed) {
        secrets.use(next.policy);
        recorder.emit("policy.changed", { from: agent.policy.revision, to: next.policy.revision });
      }
      if (!kept) {
        for (const fault of nextServers.faults) recorder.emit("skill.registry_error", fault);
        await servers.close();
        servers = nextServers;
      }
      if (!sameWalls) boxes.close();
      boxes = nextBoxes;
      recordNews(recorder, news, current.catalog, nextCatalog);
      current = { settings: next, catalog: nextCatalog };
      agent = successor;
      recordForced(agent, forced.value);
      return [];
    },
    useModel(model) {
      const [from, to] = [agent.policy.model, model].map((m) => modelName(m, options));
      agent = { ...agent, policy: { ...agent.policy, model } };
      if (from !== undefined && to !== undefined && from !== to) recorder.emit("model.changed", { from, to });
    },
    ref: () => ({
      id: opened.id,
      log: path,
      seq: recorder.state.seq,
      hash: recorder.state.hash,
      skills: Object.keys(recorder.state.recent),
    }),
    async close() {
      await opened.log.close();
      await servers.close();
      boxes.close();
    },
  };
  return { ok: true, value: session, problems: [] };
}

async function openLog(
  at: SessionStore,
  settings: Settings,
  options: SessionOptions,
): Promise<OpenedSession> {
  const id = options.resume ??
    (options.continue === true ? newestOf(at.dir, settings.policy.root) : undefined);
  if (id !== undefined) return { ...await resumeLog(at.store, id, at.anchor), id, at };
  const fresh = options.fixed?.session ?? newSessionId();
  return { ...await createLog(at.store, fresh, at.anchor), id: fresh, at };
}

function newestOf(dir: string, root: string): string {
  const found = listSessions(dir).find((s) => workspaceOf(s.path) === root);
  if (found === undefined) throw new LogFailure("no_session", `no session of ${root} to continue in ${dir}`);
  return found.id;
}

function workspaceOf(path: string): string | undefined {
  const start = startOf(path);
  // A fork goes on with the session that it belongs to, not by itself.
  return start?.parent === undefined ? start?.workspace : undefined;
}

// Sorts by time; the random part keeps two that start together apart.
function newSessionId(): string {
  const stamp = new Date().toISOString().replace(/[-:T]/g, "").slice(0, 14);
  return `${stamp.slice(0, 8)}-${stamp.slice(8)}-${randomBytes(4).toString("hex")}`;
}

function resumedElsewhere(
  settings: Settings,
  root: string,
  user: string,
  facts: SessionFacts | undefined,
): Problem | undefined {
  if (facts === undefined) return undefined;
  if (facts.parent !== undefined) {
    return {
      code: "fork",
      severity: "error",
      message: `the session is a fork of \`${facts.parent.session}\``,
      hint: "resume that one: a fork does not go on by itself",
    };
  }
  if (facts.workspace !== root) {
    return {
      code: "other-workspace",
      severity: "error",
      message:
        `the session belongs to the workspace \`${facts.workspace}\`, this is \`${settings.policy.root}\``,
      hint: "resume it from there",
    };
  }
  if (facts.actor === user) return undefined;
  return {
    code: "other-user",
    severity: "error",
    message: `the session belongs to the user \`${facts.actor}\`, this is \`${user}\``,
    hint: "a session is resumed by who started it",
  };
}

function userOf(host: Host, options: SessionOptions): string {
  return options.fixed?.actor ?? host.user;
}

function isScripted(model: ModelSettings, options: SessionOptions): boolean {
  return options.script !== undefined || options.replies !== undefined || model.provider === "script";
}

function modelName(model: ModelSettings, options: SessionOptions): string {
  return model.name === "" && isScripted(model, options) ? "script" : model.name;
}

function factsOf(
  host: Host,
  settings: Settings,
  options: SessionOptions,
  boxes: SessionBoxes,
): SessionFacts {
  const { policy } = settings;
  return {
    version,
    policy: {
      ...(policy.name === undefined ? {} : { name: policy.name }),
      revision: options.fixed === undefined ? policy.revision : "fixed",
    },
    layers: policy.files,
    provider: isScripted(policy.model, options) ? "script" : policy.model.provider,
    model: modelName(policy.model, options),
    workspace: policy.root,
    cwd: settings.cwd,
    platform: options.fixed?.platform ?? host.platform,
    sandbox: options.fixed === undefined ? boxes.facts : policy.sandbox.mode,
    trust: settings.trusted ? "trusted" : "untrusted",
    actor: userOf(host, options),
  };
}
