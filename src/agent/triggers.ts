// Before the first iteration: the skills that the message names, and those whose patterns it meets.
import { activate } from "./activate.ts";
import type { Agent } from "./agent.ts";
import type { StopReason, Trigger } from "../core/event.ts";
import { selectByPattern } from "../core/trigger.ts";

/** A skill that was asked for by name; `run` and `/skill` make the same. */
export type Requested = { readonly name: string; readonly arguments: string };
type Refused = { readonly stop: StopReason; readonly message: string };

/** Explicit first, then pattern hits by rank. An explicit skill that cannot be had refuses the turn. */
export async function activateFor(
  agent: Agent,
  input: { readonly message: string; readonly skills: readonly Requested[] },
): Promise<Refused | undefined> {
  for (const requested of input.skills) {
    const skill = agent.catalog.get(requested.name);
    if (skill === undefined) return { stop: "limit", message: `no skill \`${requested.name}\`` };
    const result = await activate(agent, activation(agent, skill, { kind: "explicit" }, requested.arguments));
    if (result.ok) continue;
    if (result.skipped !== undefined) {
      agent.recorder.emit("limit.reached", {
        limit: "active_tokens",
        value: result.skipped.tokens,
        cap: result.skipped.cap,
      });
    }
    return { stop: "limit", message: `${result.code}: ${result.message}` };
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
  skill: Parameters<typeof activate>[1]["skill"],
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
