// A new session: who may begin it with what, where it works, and that a request for it is carried out once.
import { randomBytes } from "node:crypto";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Event, ServedFacts } from "../core/event.ts";
import { absoluteGlob, globSource } from "../core/glob.ts";
import { chooseModel } from "../core/model_choice.ts";
import { realOr, stateFolder } from "../load/locate.ts";
import { compilePattern } from "../load/pattern.ts";
import { loadCatalog } from "../session/catalog.ts";
import { withChosenModel } from "../session/model.ts";
import { openSession } from "../session/open.ts";
import { approverOf } from "./approver.ts";
import { type Entry, newEntry } from "./entry.ts";
import type { Caller, Done, Idempotency, NewSession, Outcome, SessionView } from "./host.ts";
import { find, hear, type Hub, isFresh, once } from "./hub.ts";
import { makeRoom, notOpened } from "./loading.ts";
import { lacksRole, policyInvalid, refuse, value } from "./outcome.ts";
import { noTrack, requestId } from "./track.ts";
import { sessionView } from "./view.ts";

/** As `SessionHost` says. */
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

/** The session that a request has made within a day. */
export function madeBefore(
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

/** A session in this folder, loaded. Throws LogFailure. */
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
  entry.track = noTrack;
  hub.entries.set(id, entry);
  if (served.request !== undefined) {
    const { bodyHash } = served.request;
    hub.made.set(requestId(served.request), { bodyHash, session: id, atMs: Date.now() });
  }
  for (const event of early) hear(hub, entry, event);
  return value(entry);
}
