// Skills: which there are by the host's own policy, and which a session has.
import { activate, activationOf, clearSkills } from "../agent/activate.ts";
import { sessionForced } from "../core/policy.ts";
import type { Problem } from "../core/problem.ts";
import type { Skill } from "../core/skill.ts";
import { loadCatalog, type LoadedCatalog } from "../session/catalog.ts";
import type { Settings } from "../session/settings.ts";
import { skillBodies } from "../session/skill_bodies.ts";
import { freshView, skillFacts } from "../session/skill_list.ts";
import { type Entry, settled, trackOf } from "./entry.ts";
import type { Caller, Done, Idempotency, Outcome, SkillView } from "./host.ts";
import { find, guarded, type Hub, once, recorded } from "./hub.ts";
import { withLoaded } from "./loading.ts";
import { lacksRole, refuse, value } from "./outcome.ts";

/** As `SessionHost` says. */
export async function listSkills(
  hub: Hub,
): Promise<Outcome<{ readonly items: readonly SkillView[]; readonly errors: readonly Problem[] }>> {
  const settings = hub.policies.own();
  const loaded = loadCatalog(settings);
  const items = await Promise.all(
    loaded.catalog.items.map((skill) => skillView(settings, loaded, skill, false)),
  );
  const errors = loaded.errors.map(({ path, code, message }): Problem => ({
    code,
    severity: "error",
    message: `${path}: ${message}`,
  }));
  return value({ items, errors });
}

/** As `SessionHost` says. */
export async function getSkill(
  hub: Hub,
  name: string,
  { body }: { readonly body: boolean },
): Promise<Outcome<SkillView>> {
  const settings = hub.policies.own();
  const loaded = loadCatalog(settings);
  const skill = loaded.catalog.get(name);
  return skill === undefined
    ? noSkill(name, loaded.catalog.items)
    : value(await skillView(settings, loaded, skill, body));
}

function noSkill(name: string, items: readonly Skill[]): ReturnType<typeof refuse> {
  const members = { available: items.map((s) => s.name) };
  return refuse("skill-not-found", `there is no skill \`${name}\``, { members });
}

async function skillView(
  settings: Settings,
  loaded: LoadedCatalog,
  skill: Skill,
  body: boolean,
): Promise<SkillView> {
  const { name, description, version, tier, allowedTools } = skill;
  const view = freshView(settings.policy, loaded);
  const read = await skillBodies(settings).read(skill);
  return {
    name,
    description,
    ...(version === undefined ? {} : { version }),
    source: tier,
    triggers: skillFacts(skill, view, view.shown()).triggers.map((t) => t.pattern),
    ...(allowedTools === undefined ? {} : { allowedTools }),
    forced: sessionForced(settings.policy.skills).some((f) => f.skill === name),
    sha256: read.ok ? read.body.sha256 : "",
    warnings: [
      ...loaded.warnings.filter((w) => w.path === skill.file).map((w) => w.message),
      ...(read.ok ? read.credentials : [read.message]),
    ],
    ...(body && read.ok ? { body: read.body.body } : {}),
  };
}

type LoadedSkill = {
  readonly seq: number;
  readonly loadedBytes: number;
  readonly contextTokensAdded: number;
};

/** Between two turns, as if the next message named it. */
export async function loadSkill(
  hub: Hub,
  caller: Caller,
  session: string,
  name: string,
  given: string | undefined,
  request?: Idempotency,
): Promise<Outcome<Done<LoadedSkill>>> {
  const found = lacksRole(caller, "run") ?? find(hub, caller, session);
  if (!found.ok) return found;
  const entry = found.value;
  const before = () => {
    const was = recorded(entry, request);
    return was === undefined || was === "other-body" ? was : loadedAt(entry, was.of);
  };
  return await once(hub, request, before, async () => {
    if (trackOf(entry).closed) return refuse("session-closed", `the session \`${session}\` is closed`);
    return await withLoaded(hub, entry, async ({ agent }) => {
      const skill = agent.catalog.get(name);
      if (skill === undefined) return noSkill(name, agent.catalog.items);
      await settled(entry);
      const refused = notBetweenTurns(entry, skill);
      if (refused !== undefined) return refused;
      const asked = { skill, trigger: { kind: "explicit" }, arguments: given ?? "" } as const;
      const done = await activate(agent, { ...activationOf(agent, asked), scope: "session" });
      if (!done.ok) {
        return refuse("policy-forbids", done.message, { members: { rule: "skills.active_tokens" } });
      }
      const of = agent.recorder.state.recent[name] ?? 0;
      if (request !== undefined) agent.recorder.emit("request.done", { request, of });
      await agent.recorder.sync();
      return loadedAt(entry, of);
    });
  });
}

function notBetweenTurns(entry: Entry, skill: Skill): ReturnType<typeof refuse> | undefined {
  if (!skill.userInvocable) {
    return refuse("policy-forbids", `\`${skill.name}\` cannot be asked for by name`, {
      members: { rule: "user-invocable" },
    });
  }
  if (skill.mode === "fork") {
    return refuse("policy-forbids", `\`${skill.name}\` runs as a session of its own; name it in a turn`, {
      members: { rule: "mode" },
    });
  }
  return busy(entry);
}

function busy(entry: Entry): ReturnType<typeof refuse> | undefined {
  if (entry.running === undefined) return undefined;
  return refuse(
    "session-busy",
    "a turn of this session runs; wait for its end, or name the skill in a turn",
    {
      members: { turn: entry.running.id, status: "running", queueDepth: entry.queue.length },
    },
  );
}

function loadedAt(entry: Entry, seq: number): Outcome<LoadedSkill> {
  const [line] = entry.lines.read(seq - 1, { events: 1, bytes: 1 });
  const { data } = JSON.parse(line?.line ?? "{}") as { readonly data?: LoadedSkill };
  const { loadedBytes = 0, contextTokensAdded = 0 } = data ?? {};
  return value({ seq, loadedBytes, contextTokensAdded });
}

/** As `SessionHost` says. */
export async function unloadSkill(
  hub: Hub,
  caller: Caller,
  session: string,
  name: string,
): Promise<Outcome<undefined>> {
  const found = lacksRole(caller, "run") ?? find(hub, caller, session);
  if (!found.ok) return found;
  const entry = found.value;
  if (trackOf(entry).closed) return refuse("session-closed", `the session \`${session}\` is closed`);
  return await guarded(() =>
    withLoaded(hub, entry, async ({ agent }) => {
      const active = agent.recorder.state.active.find((s) => s.name === name);
      if (active === undefined) {
        const available = agent.recorder.state.active.map((s) => s.name);
        return refuse("skill-not-found", `\`${name}\` is not loaded`, { members: { available } });
      }
      if (active.forced) {
        return refuse("policy-forbids", `\`${name}\` is forced by policy`, {
          members: { rule: "skills.forced" },
        });
      }
      await settled(entry);
      const refused = busy(entry);
      if (refused !== undefined) return refused;
      clearSkills(agent, name);
      await agent.recorder.sync();
      return value(undefined);
    })
  );
}
