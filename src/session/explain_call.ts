// One call as the policy sees it at the start of a session, and the tool that a name stands for there. Nothing runs.
import { inspectCall } from "../agent/inspect.ts";
import { identityOf } from "../agent/offered.ts";
import type { Network, Tool } from "../agent/ports.ts";
import { standingOf, type StandingSkill } from "../agent/standing.ts";
import { decide } from "../core/decide.ts";
import { explain, explainParts, type Explanation, type PartExplanation } from "../core/explain.ts";
import type { Facts, Mode } from "../core/facts.ts";
import { emptyGateState } from "../core/gate_state.ts";
import { listedToolNames, type McpServer } from "../core/mcp.ts";
import { type Policy, sessionForced } from "../core/policy.ts";
import type { Args } from "../core/message.ts";
import type { TriggerKind } from "../core/event.ts";
import type { Skill } from "../core/skill.ts";
import { type NearMiss, nearMisses } from "../core/near_miss.ts";
import { compileAllowedTool } from "../load/allowed_tool.ts";
import { stateFolder } from "../load/locate.ts";
import { listedTools } from "../mcp/server_tools.ts";
import { builtinTools, toolNames } from "../tools/registry.ts";
import { placeOf } from "./agent_parts.ts";
import { sandboxFault } from "./boxes.ts";
import { loadCatalog } from "./catalog.ts";
import type { Settings } from "./settings.ts";
import { commandTools } from "./skill_side.ts";

/** What `permission.resolved` would carry, and what led to it. */
export type ExplainedCall = Explanation & {
  readonly args: Args;
  /** The effect, or the answer to an ask that nobody can be asked. */
  readonly decision: Explanation["effect"];
  /** The skills that are active from the start. */
  readonly sourcedBy: readonly string[];
  readonly parts: readonly PartExplanation[];
  readonly nearMisses: readonly NearMiss[];
  /** What keeps a model from making the call at all. */
  readonly notes: readonly string[];
};

/**
 * As the first call of a session: forced skills are active, no gate has seen evidence, no answer was kept. A name is looked
 * up as it would be for the call, through `network`. `owner`: the skill whose tool it is; it is as if the model had loaded it.
 */
export async function explainCall(
  settings: Settings,
  tool: Tool,
  args: Args,
  mode: Mode,
  network: Network,
  owner?: Skill,
): Promise<ExplainedCall> {
  const { policy } = settings;
  const refused = await sandboxFault(settings);
  const place = {
    ...placeOf(settings),
    network,
    ...(refused === undefined ? {} : { shellRefused: refused }),
  };
  const forced = forcedSkills(settings);
  const active = owner === undefined || forced.some((s) => s.name === owner.name)
    ? forced
    : [...forced, standingSkill(owner, "model", true)];
  const sourcedBy = active.map((s) => `skill:${s.name}`);
  const allowedTool = (declared: string) => compileAllowedTool(declared, place);
  const standingFor = (facts: Facts) =>
    standingOf({ policy, active, gates: emptyGateState, allowedTool }, facts);
  const facts = await inspectCall(tool, args, {
    place,
    mode,
    sourcedBy,
    signal: new AbortController().signal,
    effectOf: (facts) => decide(policy.layers, facts, standingFor(facts)).effect,
  });
  const standing = standingFor(facts);
  const explanation = explain(facts, decide(policy.layers, facts, standing));
  const server = policy.mcpServers.find((s) => listedToolNames([s]).includes(tool.name));
  return {
    ...explanation,
    args,
    decision: explanation.effect === "ask" && mode === "unattended" ? "deny" : explanation.effect,
    sourcedBy,
    parts: explainParts(policy.layers, facts, standing),
    nearMisses: nearMisses({ layers: policy.layers, facts, standing, home: place.home }),
    notes: notesOn(policy, tool, owner, server),
  };
}

function notesOn(policy: Policy, tool: Tool, owner: Skill | undefined, server: McpServer | undefined) {
  if (owner !== undefined) {
    return [`\`${tool.name}\` is offered only while the skill \`${owner.name}\` is active`];
  }
  if (server !== undefined) {
    return [`the server \`${server.name}\` was not started: whether it takes these arguments is not known`];
  }
  if (tool.engine === true || policy.tools.enabled.includes(tool.name)) return [];
  return [`\`${tool.name}\` is not in \`tools.enabled\` of this policy: no model is offered it`];
}

function forcedSkills(settings: Settings): readonly StandingSkill[] {
  const forced = sessionForced(settings.policy.skills);
  if (forced.length === 0) return [];
  const { catalog } = loadCatalog(settings);
  return forced.flatMap((entry): StandingSkill[] => {
    const skill = catalog.get(entry.skill);
    if (skill === undefined) return [];
    return [standingSkill(skill, "policy", entry.bounding)];
  });
}

function standingSkill(skill: Skill, trigger: TriggerKind, bounding: boolean): StandingSkill {
  const { name, allowedTools } = skill;
  return { name, trigger, bounding, ...(allowedTools === undefined ? {} : { allowedTools }) };
}

/** `owner`: the skill that brings it. */
export type ExplainedTool = { readonly tool: Tool; readonly owner?: Skill };

/** A built-in tool or one that the policy lists of a server by its name, a skill's tool by its identity; or why there is none. */
export function toolToExplain(settings: Settings, name: string): ExplainedTool | string {
  const builtin = builtinTools.find((t) => t.name === name);
  if (builtin !== undefined) return { tool: builtin };
  const servers = listedTools(settings.policy.mcpServers);
  const listed = servers.find((t) => t.name === name);
  if (listed !== undefined) return { tool: listed };
  const skills = /^skill\./.test(name) ? loadCatalog(settings).catalog.items : [];
  const { policy, surroundings } = settings;
  const { env } = surroundings;
  // Nothing runs, so nothing secret is read.
  const site = { state: stateFolder(surroundings), secrets: policy.skills.secrets, env, onSecret: () => {} };
  const all = skills.flatMap((owner) => commandTools(owner, site).map((tool) => ({ tool, owner })));
  const found = all.find((t) => identityOf(t.tool) === name);
  if (found !== undefined) return found;
  const known = all.length === 0
    ? `${
      [...toolNames, ...servers.map((t) => t.name)].join(", ")
    }, and those of skills as \`skill.NAME.TOOL\``
    : all.map((t) => identityOf(t.tool)).join(", ");
  return `no tool \`${name}\`; tools: ${known}`;
}
