// Before the first iteration: the skills that the message names, and those whose patterns it meets.
import { activate, activationOf, type LoadSite, readBody, recordSkipped, type Skipped } from "./activate.ts";
import type { ForkRequest, ForkRun } from "./fork.ts";
import { limitStop, type Stop } from "./stop.ts";
import type { Trigger } from "../core/event.ts";
import { selectByPattern } from "../core/trigger.ts";

/** A skill that was asked for by name; `run` and `/skill` make the same. */
export type Requested = { readonly name: string; readonly arguments: string };

/** Why one of these skills cannot be had; to be asked before a turn begins, so that nothing is recorded of a slip. */
export async function requestedFault(
  agent: Pick<LoadSite, "catalog" | "bodies" | "lastBodies">,
  skills: readonly Requested[],
): Promise<string | undefined> {
  for (const { name } of skills) {
    const skill = agent.catalog.get(name);
    if (skill === undefined) return `no skill \`${name}\``;
    const body = await readBody(agent, skill);
    if (!body.ok) return body.message;
  }
  return undefined;
}

/**
 * Explicit first, then pattern hits by rank; then those that run as forks, in the same order: what is loaded for this message
 * bounds them. An explicit skill that does not fit, or that cannot be had any more, ends the turn.
 */
export async function activateFor(
  agent: LoadSite,
  input: { readonly message: string; readonly skills: readonly Requested[] },
  fork: (request: ForkRequest) => Promise<ForkRun>,
): Promise<Stop | undefined> {
  const forks: ForkRequest[] = [];
  for (const requested of input.skills) {
    const skill = agent.catalog.get(requested.name);
    if (skill === undefined) return { stop: "skill_refused", message: `no skill \`${requested.name}\`` };
    const asked = { skill, trigger: { kind: "explicit" }, arguments: requested.arguments } as const;
    if (skill.mode === "fork") {
      forks.push(asked);
      continue;
    }
    const result = await activate(agent, activationOf(agent, asked));
    if (!result.ok) return refusedSkill(result);
  }
  forks.push(...await activateByPattern(agent, input.message, new Set(input.skills.map((s) => s.name))));
  for (const request of forks) {
    const run = await fork(request);
    if (run.ok) continue;
    if (request.trigger.kind === "explicit") return refusedSkill(run);
    recordSkipped(agent, request, run);
  }
  return undefined;
}

type Refused = { readonly code: string; readonly message: string; readonly skipped?: Skipped };

function refusedSkill({ code, message, skipped }: Refused): Stop {
  if (skipped?.tokens === undefined) return { stop: "skill_refused", message: `${code}: ${message}` };
  return { ...limitStop("active_tokens", skipped.tokens, skipped.cap), message: `${code}: ${message}` };
}

// Those that run as forks are given back, for when all others are loaded.
async function activateByPattern(
  agent: LoadSite,
  message: string,
  named: ReadonlySet<string>,
): Promise<readonly ForkRequest[]> {
  const forks: ForkRequest[] = [];
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
    const asked = { skill: hit.skill, trigger, arguments: "" };
    if (hit.skill.mode === "fork") {
      forks.push(asked);
      continue;
    }
    const result = await activate(agent, activationOf(agent, asked));
    if (!result.ok) recordSkipped(agent, asked, result);
  }
  return forks;
}
