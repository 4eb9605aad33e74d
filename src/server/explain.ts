// What the policy says, without anything being done: the policy itself, a message, a call.
import type { Json } from "../core/message.ts";
import { systemNetwork } from "../runtime/network.ts";
import { loadCatalog } from "../session/catalog.ts";
import { explainCall, toolToExplain } from "../session/explain_call.ts";
import { collectSecrets } from "../session/secrets.ts";
import type { Settings } from "../session/settings.ts";
import { freshView } from "../session/skill_list.ts";
import { askSkills } from "../session/skill_words.ts";
import { triggerReport } from "../session/trigger_report.ts";
import type { Caller, ExplainRequest, Outcome } from "./host.ts";
import { find, type Hub } from "./hub.ts";
import { plain, policyInvalid, refuse, value } from "./outcome.ts";

/** As `writ policy show --json` prints it. */
export function shownPolicy(hub: Hub): { readonly revision: string; readonly policy: Json } {
  const settings = hub.policies.own();
  const { origin, policy } = settings;
  const shown = { revision: policy.revision, files: policy.files, root: policy.root, values: origin };
  return { revision: policy.revision, policy: redacted(hub, settings, plain(shown)) };
}

function redacted<T>(hub: Hub, { policy }: Settings, value: T): T {
  const secrets = collectSecrets(hub.machine.env, []);
  secrets.use(policy);
  return secrets.redactValue(value);
}

type Explained = { readonly policyRevision: string; readonly [member: string]: Json };

/** As at the start of a session with that policy in that place. */
export async function explain(
  hub: Hub,
  caller: Caller,
  what: ExplainRequest,
): Promise<Outcome<Explained>> {
  const settings = await settingsFor(hub, caller, what);
  if (!settings.ok) return settings;
  const { policy } = settings.value;
  const tool = what.tool === undefined ? undefined : await explainedTool(hub, settings.value, what.tool);
  if (tool?.ok === false) return tool;
  const skills = await explainedMessage(hub, settings.value, what);
  return value({
    policyRevision: policy.revision,
    ...(skills === undefined ? {} : { skills }),
    ...(tool === undefined ? {} : { tool: tool.value }),
  });
}

async function settingsFor(
  hub: Hub,
  caller: Caller,
  { session, profile }: ExplainRequest,
): Promise<Outcome<Settings>> {
  if (session !== undefined) {
    const found = find(hub, caller, session);
    if (!found.ok) return found;
    const { served, cwd } = found.value;
    const read = await hub.policies.read(served.profile, cwd);
    return read.ok ? value(read.value) : policyInvalid(read.problems);
  }
  if (profile === undefined) return value(hub.policies.own());
  if (caller.profiles !== "all" && !caller.profiles.includes(profile)) {
    return refuse("policy-forbids", `\`${caller.name}\` may not use the profile \`${profile}\``, {
      members: { rule: "server.profiles" },
    });
  }
  const read = await hub.policies.read(profile, hub.machine.cwd);
  return read.ok ? value(read.value) : policyInvalid(read.problems);
}

async function explainedTool(
  hub: Hub,
  settings: Settings,
  { name, input }: NonNullable<ExplainRequest["tool"]>,
): Promise<Outcome<Json>> {
  const named = toolToExplain(settings, name);
  if (typeof named === "string") return refuse("bad-request", named);
  const network = systemNetwork(hub.machine.env);
  const call = await explainCall(settings, named.tool, input, "interactive", network, named.owner);
  return value(redacted(hub, settings, plain(call)));
}

async function explainedMessage(
  hub: Hub,
  settings: Settings,
  { message, skill }: ExplainRequest,
): Promise<Json | undefined> {
  if (message === undefined && skill === undefined) return undefined;
  const text = redacted(hub, settings, message ?? "");
  const loaded = loadCatalog(settings);
  const asked = askSkills(freshView(settings.policy, loaded), text, skill === undefined ? [] : [skill]);
  return plain({ message: text, ...await triggerReport(settings, loaded, text, asked) });
}
