// Before the first iteration: the skills that the message names, and those whose patterns it meets.
import { activate } from "./activate.ts";
import type { Agent, SkillBodies } from "./agent.ts";
import { faultStop, limitStop, type Stop } from "./stop.ts";
import type { Catalog } from "../core/catalog.ts";
import type { Trigger } from "../core/event.ts";
import type { Skill } from "../core/skill.ts";
import { selectByPattern } from "../core/trigger.ts";

/** A skill that was asked for by name; `run` and `/skill` make the same. */
export type Requested = { readonly name: string; readonly arguments: string };

/** Why one of these skills cannot be had; to be asked before a turn begins, so that nothing is recorded of a slip. */
export async function requestedFault(
  catalog: Catalog,
  read: SkillBodies["read"],
  skills: readonly Requested[],
): Promise<string | undefined> {
  for (const { name } of skills) {
    const skill = catalog.get(name);
    if (skill === undefined) return `no skill \`${name}\``;
    const body = await read(skill);
    if (!body.ok) return body.message;
  }
  return undefined;
}

/** Explicit first, then pattern hits by rank. An explicit skill that does not fit ends the turn. */
export async function activateFor(
  agent: Agent,
  input: { readonly message: string; readonly skills: readonly Requested[] },
): Promise<Stop | undefined> {
  for (const requested of input.skills) {
    const skill = agent.catalog.get(requested.name);
    // It was there when `requestedFault` looked.
    if (skill === undefined) return faultStop(new Error(`no skill \`${requested.name}\``));
    const result = await activate(agent, activation(agent, skill, { kind: "explicit" }, requested.arguments));
    if (result.ok) continue;
    if (result.skipped === undefined) return faultStop(new Error(result.message));
    return {
      ...limitStop("active_tokens", result.skipped.tokens, result.skipped.cap),
      message: `${result.code}: ${result.message}`,
    };
  }
  await activateByPattern(agent, input.message, new Set(input.skills.map((s) => s.name)));
  return undefined;
}

async function activateByPattern(agent: Agent, message: string, named: ReadonlySet<string>): Promise<void> {
  const { state } = agent.recorder;
  // The message as recorded: redacted.
  const entry = state.transcript.findLast((e) => e.kind === "user");
  const text = entry?.kind === "user" ? entry.text : message;
  const hits = selectByPattern(
    text,
    agent.policy.skills.triggers,
    agent.catalog,
    new Map(Object.entries(state.recent)),
  );
  for (const hit of hits) {
    if (named.has(hit.skill.name)) continue;
    const trigger: Trigger = { kind: "pattern", pattern: hit.pattern, span: hit.span };
    const result = await activate(agent, activation(agent, hit.skill, trigger, ""));
    if (!result.ok) {
      agent.recorder.emit("skill.skipped", {
        name: hit.skill.name,
        trigger,
        reason: result.message,
        ...result.skipped,
      });
    }
  }
}

function activation(
  agent: Agent,
  skill: Skill,
  trigger: Trigger,
  argumentsText: string,
) {
  return {
    skill,
    trigger,
    arguments: argumentsText,
    bounding: true,
    scope: agent.policy.skills.scope,
  } as const;
}
