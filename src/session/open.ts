// The composition root: settings and options → a session that can take turns. Everything is put together here, by hand.
import { join } from "node:path";
import { openSession as recordOpening, replay } from "../agent/open.ts";
import { LogFailure } from "../agent/ports.ts";
import { createRecorder } from "../agent/recorder.ts";
import { requestedFault } from "../agent/triggers.ts";
import { unavailable } from "../core/catalog.ts";
import { omissions } from "../core/listing.ts";
import type { Loaded } from "../core/problem.ts";
import type { SessionState } from "../core/session.ts";
import { systemClock } from "../runtime/clock.ts";
import { beforeImages } from "../store/before_images.ts";
import { makeAgent } from "./agent_parts.ts";
import { type LoadedCatalog, unlisted } from "./catalog.ts";
import { factsOf, userOf } from "./facts.ts";
import { forkLogs } from "./fork_logs.ts";
import { type Ground, layGround, leaveGround } from "./ground.ts";
import type { Host } from "./host.ts";
import { type OpenedLog, openLog, resumedElsewhere } from "./open_log.ts";
import { collectSecrets, type Secrets } from "./secrets.ts";
import { type Frame, liveSession, type Session, type SessionOptions } from "./session.ts";
import { openStore, sessionFolder } from "./session_store.ts";
import type { Settings } from "./settings.ts";

/** `found` is the catalog of these settings. Problems mean that nothing ran and, save for a log that was there before, nothing was written. */
export async function openSession(
  host: Host,
  settings: Settings,
  found: LoadedCatalog,
  options: SessionOptions,
): Promise<Loaded<Session>> {
  const missing = unavailable(found.catalog, settings.policy, unlisted(found));
  if (missing.length > 0) return { ok: false, problems: missing };
  const at = options.store === undefined
    ? await openStore(settings)
    : { ok: true as const, value: options.store };
  if (!at.ok) return at;
  let log: OpenedLog | undefined;
  let session: Loaded<Session> | undefined;
  try {
    log = await openLog(at.value, settings, options);
    session = await start(host, settings, options, { found, log });
    return session;
  } catch (error) {
    if (!(error instanceof LogFailure)) throw error;
    return { ok: false, problems: [{ code: error.code, severity: "error", message: error.message }] };
  } finally {
    if (log !== undefined && session?.ok !== true) await giveBack(log);
  }
}

// A session in which nothing ran leaves nothing behind; one that was there before stays.
async function giveBack({ log, events }: OpenedLog): Promise<void> {
  if (events.length === 0) await log.discard();
  else await log.close();
}

async function start(
  host: Host,
  settings: Settings,
  options: SessionOptions,
  { found, log }: { readonly found: LoadedCatalog; readonly log: OpenedLog },
): Promise<Loaded<Session>> {
  const initial = replay(log.events);
  const secrets = collectSecrets(host.env, options.fixed?.aliases ?? []);
  secrets.use(settings.policy);
  if (log.at.key !== undefined) secrets.add(log.at.key);
  const root = secrets.redact(settings.policy.root);
  const elsewhere = resumedElsewhere(settings, root, userOf(host, options), initial.facts);
  if (elsewhere !== undefined) return { ok: false, problems: [elsewhere] };
  const ground = await layGround({ host, secrets }, settings, { found });
  if (!ground.ok) return ground;
  let session: Loaded<Session> | undefined;
  try {
    session = await begin(frameOf(host, options, { secrets, initial, log }), ground.value, log);
    return session;
  } finally {
    if (session?.ok !== true) await leaveGround(ground.value);
  }
}

type Parts = { readonly secrets: Secrets; readonly initial: SessionState; readonly log: OpenedLog };

function frameOf(host: Host, options: SessionOptions, { secrets, initial, log }: Parts): Frame {
  const parts = {
    clock: options.fixed?.clock ?? systemClock,
    redact: secrets.redactValue,
    settled: secrets.settled,
    listeners: options.listeners,
  };
  return {
    host,
    options,
    secrets,
    recorder: createRecorder({ ...parts, log: log.log, session: log.id, initial }),
    forks: forkLogs(log.at, parts),
    keepBefore: beforeImages(join(sessionFolder(log.at, log.id), "before")),
  };
}

async function begin(frame: Frame, ground: Ground, log: OpenedLog): Promise<Loaded<Session>> {
  const { host, options } = frame;
  const { settings, boxes, servers, catalog } = ground;
  const made = await makeAgent(frame, ground);
  if (!made.ok) return made;
  const agent = made.value;
  const fault = await requestedFault(agent, options.skills ?? []);
  if (fault !== undefined) {
    return { ok: false, problems: [{ code: "usage", severity: "error", message: fault }] };
  }
  const problems = await recordOpening(agent, {
    facts: factsOf(host, settings, options, boxes),
    resumed: log.events.length > 0,
    ...(log.recovered === undefined ? {} : { recovered: log.recovered }),
    skillFaults: [...servers.faults, ...catalog.errors],
    omitted: omissions(agent.preface.now.shown, settings.policy),
  });
  if (problems.length > 0) return { ok: false, problems };
  return { ok: true, value: liveSession(frame, log, { ...ground, agent }), problems: [] };
}
