// Between two turns: another policy and other skills in the place of those before, whole or not at all.
import type { Agent } from "../agent/agent.ts";
import { type ForcedSkills, prepareForced, recordForced } from "../agent/force.ts";
import { sameReach } from "../core/model_choice.ts";
import type { Loaded } from "../core/problem.ts";
import { makeAgent } from "./agent_parts.ts";
import { type CatalogNews, catalogNews, differs, recordNews } from "./catalog_news.ts";
import { type Ground, layGround, leaveGround } from "./ground.ts";
import type { Frame, Live } from "./session.ts";
import type { Settings } from "./settings.ts";

/**
 * What the session lives on under these settings; the same value when nothing changed. Problems mean that `before` is whole,
 * with its servers running, and that nothing was recorded.
 */
export async function adopt(frame: Frame, before: Live, next: Settings): Promise<Loaded<Live>> {
  const laid = await layGround(frame, next, { before });
  if (!laid.ok) return laid;
  let after: Loaded<Live> | undefined;
  try {
    after = await exchange(frame, before, laid.value);
    return after;
  } finally {
    if (after?.ok === true && after.value !== before) await leaveGround(before, after.value);
    else await leaveGround(laid.value, before);
  }
}

async function exchange(frame: Frame, before: Live, ground: Ground): Promise<Loaded<Live>> {
  const changed = ground.settings.policy.revision !== before.agent.policy.revision;
  const sameText = !changed && ground.settings.trusted === before.settings.trusted;
  if (sameText && !differs(before.catalog, ground.catalog)) return { ok: true, value: before, problems: [] };
  const made = await makeAgent(frame, ground);
  if (!made.ok) return made;
  const news = catalogNews(before.agent, made.value, sameText ? "kept" : "new");
  const after: Live = { ...ground, agent: successor(before.agent, made.value, { changed, sameText, news }) };
  const forced = await prepareForced(after.agent);
  if (!forced.ok) return forced;
  record(frame, before, after, { changed, news, forced: forced.value });
  return { ok: true, value: after, problems: [] };
}

type Change = { readonly changed: boolean; readonly sameText: boolean; readonly news: CatalogNews };

function successor(before: Agent, made: Agent, { changed, sameText, news }: Change): Agent {
  return {
    ...made,
    // What the model was told first is not told again in other words: the requests before stay its beginning.
    preface: {
      now: { stable: sameText ? before.preface.now.stable : made.preface.now.stable, shown: news.shown },
    },
    ...(sameReach(made.policy.model, before.policy.model) ? { model: before.model } : {}),
    // Kept answers end when the policy changes.
    grants: changed ? [] : before.grants,
    seen: before.seen,
    lastBodies: before.lastBodies,
    installed: before.installed,
  };
}

type Taken = { readonly changed: boolean; readonly news: CatalogNews; readonly forced: ForcedSkills };

// All of it is ready: from here on nothing but the log can fail.
function record(
  { secrets, recorder }: Frame,
  before: Live,
  after: Live,
  { changed, news, forced }: Taken,
): void {
  const { policy } = after.settings;
  if (changed) {
    secrets.use(policy);
    recorder.emit("policy.changed", { from: before.agent.policy.revision, to: policy.revision });
  }
  if (after.servers !== before.servers) {
    for (const fault of after.servers.faults) recorder.emit("skill.registry_error", fault);
  }
  recordNews(recorder, news, before.catalog, after.catalog);
  recordForced(after.agent, forced);
}
