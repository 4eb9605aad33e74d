// Sessions as a whole: begun, listed, changed, gone on with elsewhere, ended.
import { randomBytes } from "node:crypto";
import { mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { replay } from "../agent/open.ts";
import type { Event, ServedFacts } from "../core/event.ts";
import { absoluteGlob, globSource } from "../core/glob.ts";
import { chooseModel } from "../core/model_choice.ts";
import { type Placed } from "../core/transcript.ts";
import { realOr, stateFolder } from "../load/locate.ts";
import { compilePattern } from "../load/pattern.ts";
import { loadCatalog } from "../session/catalog.ts";
import { withChosenModel } from "../session/model.ts";
import { openSession } from "../session/open.ts";
import { approverOf } from "./approver.ts";
import { type Entry, eventsOf, newEntry, stateOf, trackOf, wake } from "./entry.ts";
import type {
  Caller,
  Done,
  Idempotency,
  MessageView,
  NewSession,
  Outcome,
  Page,
  PageRequest,
  SessionStatus,
  SessionView,
} from "./host.ts";
import { find, guarded, hear, type Hub, isFresh, maySee, once } from "./hub.ts";
import { makeRoom, notOpened, unload, withLoaded } from "./loading.ts";
import { lacksRole, plain, policyInvalid, refuse, value } from "./outcome.ts";
import { followAll, requestId } from "./track.ts";
import { dropQueued } from "./turns.ts";
import { sessionView, statusOf } from "./view.ts";

export async function createSession(
  hub: Hub,
  caller: Caller,
  wanted: NewSession,
  request?: Idempotency,
): Promise<Outcome<Done<SessionView>>> {
  const lacking = lacksRole(caller, "run");
  if (lacking !== undefined) return lacking;
  return await once(hub, request, () => madeBefore(hub, caller, request), async () => {
    const profile = profileFor(hub, caller, wanted.profile);
    if (!profile.ok) return profile;
    const place = placeFor(hub, wanted.cwd);
    if (!place.ok) return place;
    const { title, labels, metadata, model } = wanted;
    const served: ServedFacts = {
      owner: caller.name,
      ...(title === undefined ? {} : { title }),
      ...(profile.value === undefined ? {} : { profile: profile.value }),
      ...(labels === undefined ? {} : { labels }),
      ...(metadata === undefined ? {} : { metadata }),
      ...(model === undefined ? {} : { choice: model }),
      ...(place.value.own ? { ownWorkspace: true as const } : {}),
      ...(request === undefined ? {} : { request }),
    };
    const made = await beginSession(hub, served, place.value.cwd);
    if (!made.ok && place.value.own) rmSync(place.value.cwd, { recursive: true, force: true });
    return made.ok ? value(sessionView(made.value)) : made;
  });
}

function madeBefore(
  hub: Hub,
  caller: Caller,
  request: Idempotency | undefined,
): Outcome<SessionView> | "other-body" | undefined {
  const made = request === undefined ? undefined : hub.made.get(requestId(request));
  if (made === undefined || !isFresh(made.atMs)) return undefined;
  if (made.bodyHash !== request?.bodyHash) return "other-body";
  const found = find(hub, caller, made.session);
  return found.ok ? value(sessionView(found.value)) : found;
}

function profileFor(hub: Hub, caller: Caller, wanted: string | undefined): Outcome<string | undefined> {
  const { profiles } = hub.policies.own().policy.server;
  const { profiles: allowed } = caller;
  const name = wanted ?? (allowed !== "all" && allowed.length === 1 ? allowed[0] : undefined);
  if (allowed !== "all" && (name === undefined || !allowed.includes(name))) {
    const members = { rule: "server.profiles", allowed };
    return refuse("policy-forbids", `\`${caller.name}\` may begin sessions of ${shown(allowed)} only`, {
      members,
    });
  }
  if (name === undefined || Object.hasOwn(profiles, name)) return value(name);
  return refuse(
    "policy-forbids",
    `\`server.profiles\` has no \`${name}\`; there is ${shown(Object.keys(profiles))}`,
    {
      members: { rule: "server.profiles" },
    },
  );
}

function shown(names: readonly string[]): string {
  return names.length === 0 ? "none" : names.map((n) => `\`${n}\``).join(", ");
}

/** A folder that the policy names, or a fresh one. */
function placeFor(
  hub: Hub,
  cwd: string | undefined,
): Outcome<{ readonly cwd: string; readonly own: boolean }> {
  const { policy, surroundings } = hub.policies.own();
  if (cwd === undefined) {
    // Beside the state folder: nothing in that may be written by a session.
    const fresh = join(`${stateFolder(surroundings)}-workspaces`, `w-${randomBytes(8).toString("hex")}`);
    // Its own root, whatever lies above it.
    mkdirSync(join(fresh, ".writ"), { recursive: true, mode: 0o700 });
    return value({ cwd: realOr(fresh), own: true });
  }
  const real = realOr(cwd);
  if (policy.server.workspaces.some((w) => isAmong(w, real))) return value({ cwd: real, own: false });
  return refuse("policy-forbids", `\`${cwd}\` is none of \`server.workspaces\``, {
    members: { rule: "server.workspaces" },
  });
}

function isAmong(workspace: string, real: string): boolean {
  if (realOr(workspace) === real) return true;
  const glob = absoluteGlob(workspace, { root: "/", home: "/" });
  return !("error" in glob) &&
    compilePattern(`^(?:${globSource(glob.glob)})$`, { ignoreCase: false }).test(real);
}

/** Throws LogFailure. */
export async function beginSession(
  hub: Hub,
  served: ServedFacts,
  cwd: string,
): Promise<Outcome<Entry>> {
  if (hub.draining) return refuse("draining", "the server is going down", { retryAfter: 5 });
  const room = await makeRoom(hub);
  if (room !== undefined) return room;
  const read = await hub.policies.read(served.profile, cwd);
  if (!read.ok) return policyInvalid(read.problems);
  if (served.choice !== undefined && chooseModel(read.value.policy.model, served.choice) === undefined) {
    return refuse("policy-forbids", `\`${served.choice}\` is none of \`model.choices\``, {
      members: { rule: "model.choices" },
    });
  }
  const settings = withChosenModel(read.value, served.choice);
  if (!settings.ok) return policyInvalid(settings.problems);
  const early: Event[] = [];
  const made: { entry?: Entry } = {};
  const opened = await openSession(hub.machine, settings.value, loadCatalog(settings.value), {
    mode: "unattended",
    approver: approverOf(() => {
      if (made.entry === undefined) throw new Error("nobody is asked before a session is open");
      return made.entry;
    }),
    listeners: [(event) => made.entry === undefined ? early.push(event) : hear(hub, made.entry, event)],
    served,
    ...hub.model(),
  });
  if (!opened.ok) return { ok: false, refusal: notOpened(opened.problems) };
  if (hub.draining) {
    await opened.value.close();
    return refuse("draining", "the server is going down", { retryAfter: 5 });
  }
  const { id, logPath: path } = opened.value;
  const entry = newEntry({ id, path, served, cwd });
  made.entry = entry;
  entry.live = opened.value;
  entry.track = followAll([]);
  hub.entries.set(id, entry);
  if (served.request !== undefined) {
    const { bodyHash } = served.request;
    hub.made.set(requestId(served.request), { bodyHash, session: id, atMs: Date.now() });
  }
  for (const event of early) hear(hub, entry, event);
  return value(entry);
}

export function listSessions(
  hub: Hub,
  caller: Caller,
  page: PageRequest & { readonly status?: SessionStatus; readonly label?: string },
): Outcome<Page<SessionView>> {
  const ids = [...hub.entries.keys()].sort().reverse();
  const start = page.cursor === undefined ? 0 : ids.findIndex((id) => id < (page.cursor ?? ""));
  const items: SessionView[] = [];
  for (const id of start < 0 ? [] : ids.slice(start)) {
    const entry = hub.entries.get(id);
    if (entry === undefined || !maySee(caller, entry) || !hasLabel(entry, page.label)) continue;
    if (page.status !== undefined && statusOf(entry) !== page.status) continue;
    const last = items.at(-1);
    if (last !== undefined && items.length === page.limit) return value({ items, next: last.id });
    items.push(sessionView(entry));
  }
  return value({ items });
}

/** `name` or `name=value`. */
function hasLabel({ served: { labels = {} } }: Entry, wanted: string | undefined): boolean {
  if (wanted === undefined) return true;
  const [name = "", ...rest] = wanted.split("=");
  const is = Object.hasOwn(labels, name) ? labels[name] : undefined;
  return is !== undefined && (rest.length === 0 || is === rest.join("="));
}

export async function updateSession(
  hub: Hub,
  caller: Caller,
  id: string,
  change: Pick<NewSession, "title" | "metadata">,
  ifSeq: number | undefined,
): Promise<Outcome<SessionView>> {
  const found = lacksRole(caller, "run") ?? find(hub, caller, id);
  if (!found.ok) return found;
  const entry = found.value;
  if (trackOf(entry).closed) return refuse("session-closed", `the session \`${id}\` is closed`);
  return await guarded(() =>
    withLoaded(hub, entry, async ({ agent: { recorder } }) => {
      const { lastSeq } = trackOf(entry);
      if (ifSeq !== undefined && ifSeq !== lastSeq) {
        return refuse("precondition-failed", `the session has come to ${lastSeq}, expected ${ifSeq}`, {
          members: { etag: `"${lastSeq}"` },
        });
      }
      recorder.emit("session.described", change);
      await recorder.sync();
      return value(sessionView(entry));
    })
  );
}

export async function removeSession(
  hub: Hub,
  caller: Caller,
  id: string,
  { purge }: { readonly purge: boolean },
): Promise<Outcome<undefined>> {
  const lacking = lacksRole(caller, "run");
  if (lacking !== undefined) return lacking;
  const entry = hub.entries.get(id);
  if (entry === undefined) return value(undefined);
  if (!maySee(caller, entry)) {
    return entry.removed ? value(undefined) : refuse("session-not-found", `there is no session \`${id}\``);
  }
  return await guarded(async () => {
    await endWork(entry, "cancelled");
    if (!trackOf(entry).closed) {
      const closed = await withLoaded(hub, entry, async ({ agent: { recorder } }) => {
        recorder.emit("session.closed", { actor: caller.name });
        await recorder.sync();
        return value(undefined);
      });
      if (!closed.ok && !purge) return closed;
    }
    if (purge) entry.removed = true;
    const last = { track: entry.track, state: stateOf(entry) };
    await unload(entry);
    if (entry.served.ownWorkspace === true) rmSync(entry.cwd, { recursive: true, force: true });
    if (purge) {
      rmSync(dirname(entry.path), { recursive: true, force: true });
      hub.entries.delete(id);
    } else Object.assign(entry, last);
    wake(entry);
    return value(undefined);
  });
}

/** Ends what runs and waits in a session; resolves when it has ended. Throws LogFailure. */
export async function endWork(entry: Entry, reason: "cancelled" | "shutdown"): Promise<void> {
  await dropQueued(entry, () => true, reason);
  entry.running?.control.abort(reason === "shutdown" ? "SIGTERM" : "cancelled");
  await entry.running?.ended;
}

export async function forkSession(
  hub: Hub,
  caller: Caller,
  id: string,
  { atSeq }: { readonly atSeq?: number },
  request?: Idempotency,
): Promise<Outcome<Done<SessionView>>> {
  const found = lacksRole(caller, "run") ?? find(hub, caller, id);
  if (!found.ok) return found;
  const entry = found.value;
  return await once(hub, request, () => madeBefore(hub, caller, request), async () => {
    const events = eventsOf(entry).filter((e) => atSeq === undefined || e.seq <= atSeq);
    const state = replay(events);
    if (state.turn.open || events.length === 0) {
      return refuse(
        "bad-request",
        `a turn is open at ${atSeq ?? state.seq}; name the end of a turn in \`atSeq\``,
      );
    }
    const { ownWorkspace: _own, request: _request, ...rest } = trackOf(entry).served ?? entry.served;
    const served = { ...rest, owner: caller.name, ...(request === undefined ? {} : { request }) };
    const made = await beginSession(hub, served, entry.cwd);
    if (!made.ok) return made;
    const recorder = made.value.live?.agent.recorder;
    recorder?.emit("fork.history", { history: "full", transcript: state.transcript.map(asHistory) });
    await recorder?.sync();
    return value(sessionView(made.value));
  });
}

// No skill is active in it yet.
function asHistory({ seq: _, ...entry }: Placed) {
  return entry.kind === "skill" ? { ...entry, live: false } : entry;
}

export function messages(
  hub: Hub,
  caller: Caller,
  id: string,
  { limit, cursor }: PageRequest,
): Outcome<Page<MessageView>> {
  const found = find(hub, caller, id);
  if (!found.ok) return found;
  const after = cursor === undefined ? 0 : /^\d{1,15}$/.test(cursor) ? Number(cursor) : undefined;
  if (after === undefined) return refuse("bad-cursor", "this is no cursor of this list");
  const all = stateOf(found.value).transcript.flatMap(messageOf).slice(after);
  const items = all.slice(0, limit);
  return value({ items, ...(all.length > limit ? { next: String(after + limit) } : {}) });
}

// What Writ itself says to the model is no message of the conversation, save a summary, which stands for some.
function messageOf(entry: Placed): readonly MessageView[] {
  const { seq } = entry;
  switch (entry.kind) {
    case "user":
      return [{ seq, role: "user", content: entry.text }];
    case "assistant":
      return [{ seq, role: "assistant", content: plain(entry.content) }];
    case "result": {
      const { call, ok, content } = entry;
      return [{ seq, role: "tool", content: { call, ok, content } }];
    }
    case "note":
      return entry.of === "summary" ? [{ seq, role: "user", content: entry.text }] : [];
    default:
      return [];
  }
}
