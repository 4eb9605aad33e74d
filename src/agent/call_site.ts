// Where a call is made: what the session says of it now, and what its tool may touch that no argument names.
import type { Agent } from "./agent.ts";
import { asksAlways } from "./approval.ts";
import { fileFacts, hostFacts } from "./inspect.ts";
import { gatesNow, outerSkills } from "./shared.ts";
import { standingOf } from "./standing.ts";
import { decide, type Standing } from "../core/decide.ts";
import { reasonOf } from "../core/decision.ts";
import type { Facts, HostFact } from "../core/facts.ts";
import { coveringGrant } from "../core/grant.ts";

/** By whose doing it is made. */
export function siteOf(
  agent: Agent,
): { readonly mode: Facts["mode"]; readonly sourcedBy: Facts["sourcedBy"] } {
  return { mode: agent.mode, sourcedBy: sourcesOf(agent) };
}

function sourcesOf(agent: Agent): Facts["sourcedBy"] {
  const active = [...outerSkills(agent).flat(), ...agent.recorder.state.active];
  return [...new Set(active.map((s) => `skill:${s.name}`))];
}

/** `tree`: the content of the workspace, for a call that a gate guards. */
export function standingFor(agent: Agent, facts: Facts, tree?: string): Standing {
  const { policy, allowedTool } = agent;
  const { active } = agent.recorder.state;
  const [outer, gates] = [outerSkills(agent), gatesNow(agent)];
  const content = tree === undefined ? {} : { tree };
  return standingOf({ policy, active, outer, gates, allowedTool, ...content }, facts);
}

/** Tools that walk a tree touch files that no argument names: deny and ask rules of read_file hold for each of them. */
export function mayRead(agent: Agent, path: string): boolean {
  const facts = fileFacts(path, { mode: agent.mode, sourcedBy: [] });
  const none = { root: agent.place.root, active: [], bounds: [], blocks: [] };
  const verdict = decide(agent.policy.layers, facts, none);
  return verdict.causes.every((c) => c.by !== "rule" || c.effect === "allow");
}

/** Within a call nobody is asked: what would be asked counts as refused, save where a kept answer covers the host. */
export function mayReach(
  agent: Agent,
  host: HostFact,
): { readonly allowed: boolean; readonly reason: string } {
  const facts = hostFacts("fetch_url", host, siteOf(agent));
  const verdict = decide(agent.policy.layers, facts, standingFor(agent, facts));
  const kept = verdict.effect === "ask" && !asksAlways(agent, verdict) &&
    coveringGrant(agent.grants, facts) !== undefined;
  return { allowed: verdict.effect === "allow" || kept, reason: reasonOf(verdict) };
}
