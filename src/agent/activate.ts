// Making a skill active: read its body now, render it, check the budget, record `skill.loaded`. All four triggers.
// Also what is recorded when that cannot be done, and the end of skills that a user has had enough of.
import type { Agent, SkillBodyResult } from "./agent.ts";
import { identityOf } from "./offered.ts";
import { estimateTokens } from "../core/budget.ts";
import type { Trigger } from "../core/event.ts";
import { skillModel } from "../core/model_choice.ts";
import { narrowerTools, renderSkill, type Skill, type SkillMeta } from "../core/skill.ts";
import type { ActiveSkill } from "../core/session.ts";

/** What of an agent loading a skill needs. */
export type LoadSite = Pick<
  Agent,
  "policy" | "catalog" | "recorder" | "bodies" | "commandTools" | "installed" | "lastBodies"
>;

export type Activation = {
  readonly skill: Skill;
  readonly trigger: Trigger;
  readonly arguments: string;
  /** Whether its bound is in force from now on. */
  readonly bounding: boolean;
  readonly scope: "turn" | "session";
};
export type ActivationResult =
  /** `note`: what is to be told of it besides. */
  | { readonly ok: true; readonly registeredTools: number; readonly note?: string }
  | { readonly ok: false; readonly code: string; readonly message: string; readonly skipped?: Skipped };
/** The cap is one of tokens where there are any, else one of bytes: of a file that was not read. */
export type Skipped = { readonly bytes: number; readonly tokens?: number; readonly cap: number };

/** What asks for a skill. */
export type Asked = Pick<Activation, "skill" | "trigger" | "arguments">;

/** For as long as the policy says. */
export function activationOf(
  agent: Pick<LoadSite, "policy">,
  { skill, trigger, arguments: given }: Asked,
  bounding = true,
): Activation {
  return { skill, trigger, arguments: given, bounding, scope: agent.policy.skills.scope };
}

export type PreparedSkill = Extract<SkillBodyResult, { readonly ok: true }> & {
  readonly activation: Activation;
  /** As the model will see it; empty when it sees it already. */
  readonly text: string;
  readonly tokens: number;
};

export async function activate(agent: LoadSite, activation: Activation): Promise<ActivationResult> {
  const prepared = await prepareSkill(agent, activation, agent.recorder.state.active);
  return prepared.ok ? recordSkill(agent, prepared) : prepared;
}

/** A skill that is active, or is about to be. */
type Beside =
  & Pick<ActiveSkill, "name" | "forced" | "body">
  & Partial<Pick<ActiveSkill, "bounding" | "allowedTools">>;

/** Reads and renders it, and checks that it fits beside the skills of `active`. Records nothing. */
export async function prepareSkill(
  agent: LoadSite,
  activation: Activation,
  active: readonly Beside[],
): Promise<PreparedSkill | Extract<ActivationResult, { readonly ok: false }>> {
  const { skill } = activation;
  const read = await readBody(agent, skill);
  if (!read.ok) return read;
  const tools = agent.commandTools(skill);
  const before = active.find((s) => s.name === skill.name);
  const meta = heldBound(read.meta, before, activation.trigger);
  const text = renderSkill(meta, read.body, activation.arguments, tools.map((t) => t.name));
  const repeated = before !== undefined && (before.forced || before.body === text);
  const tokens = repeated ? 0 : estimateTokens(text);
  const cap = agent.policy.skills.activeTokens;
  const used = usedTokens(active.filter((s) => s.name !== skill.name));
  if (used + tokens > cap) {
    return {
      ok: false,
      code: "skill_too_large",
      message: `skill \`${skill.name}\` has ${read.body.bytes} bytes, about ${tokens} tokens; ` +
        `${used} of the ${cap} tokens for active skills are in use (skills.active_tokens)`,
      skipped: { bytes: read.body.bytes, tokens, cap },
    };
  }
  return { ...read, meta, activation, text: repeated ? "" : text, tokens };
}

// A bound in force gets wider by the user's own word alone; anybody else's load may only narrow it.
function heldBound(meta: SkillMeta, before: Beside | undefined, { kind }: Trigger): SkillMeta {
  if (before?.bounding !== true || kind === "explicit") return meta;
  const allowedTools = narrowerTools(before.allowedTools, meta.allowedTools);
  const { allowedTools: _now, ...rest } = meta;
  return { ...rest, ...(allowedTools === undefined ? {} : { allowedTools }) };
}

export function recordSkill(agent: LoadSite, prepared: PreparedSkill): ActivationResult {
  const { meta, body, activation, text, tokens } = prepared;
  const { skill } = activation;
  const model = skillModel(agent.policy.model, meta.model).name;
  const tools = agent.commandTools(skill);
  for (const found of text === "" ? [] : prepared.credentials) {
    agent.recorder.emit("skill.registry_error", {
      path: skill.file,
      code: "credential",
      message: `${found}: skills carry no secrets, what a command of theirs needs is for \`skills.secrets\``,
    });
  }
  const note = prepared.unread === undefined
    ? undefined
    : `${prepared.unread}; the body that was read last stands`;
  if (note !== undefined) {
    agent.recorder.emit("skill.registry_error", {
      path: skill.file,
      code: "skill_unreadable",
      message: note,
    });
  }
  agent.installed.set(skill.name, skill);
  agent.recorder.emit("skill.loaded", {
    name: skill.name,
    ...(meta.version === undefined ? {} : { version: meta.version }),
    source: skill.tier,
    sha256: body.sha256,
    ...(skill.pin === undefined ? {} : { pin: skill.pin }),
    trigger: activation.trigger,
    scope: activation.scope,
    loadedBytes: body.bytes,
    contextTokensAdded: tokens,
    ...(meta.allowedTools === undefined ? {} : { allowedTools: meta.allowedTools }),
    tools: tools.map(identityOf),
    bounding: activation.bounding,
    ...(model === undefined ? {} : { model }),
    body: text,
  });
  return { ok: true, registeredTools: tools.length, ...(note === undefined ? {} : { note }) };
}

/** For a skill that goes without saying: the turn goes on without it. */
export function recordSkipped(
  agent: Pick<LoadSite, "recorder">,
  { skill, trigger }: Pick<Asked, "skill" | "trigger">,
  { message, skipped }: { readonly message: string; readonly skipped?: Skipped },
): void {
  agent.recorder.emit("skill.skipped", { name: skill.name, trigger, reason: message, ...skipped });
}

/** Ends skills that were loaded for the session, all or one; those that policy forces stay. Returns their names. */
export function clearSkills(agent: Pick<Agent, "recorder">, name: string | undefined): readonly string[] {
  const ended = agent.recorder.state.active.filter((s) =>
    !s.forced && (name === undefined || s.name === name)
  );
  for (const skill of ended) {
    agent.recorder.emit("skill.unloaded", { name: skill.name, reason: "cleared by the user" });
  }
  return ended.map((s) => s.name);
}

/** An edited body is picked up; when the file cannot be read any more, the body that was read last stands. */
export async function readBody(
  agent: Pick<LoadSite, "bodies" | "lastBodies">,
  skill: Skill,
): Promise<SkillBodyResult> {
  const read = await agent.bodies.read(skill);
  if (read.ok) {
    agent.lastBodies.set(skill.file, read);
    return read;
  }
  const last = agent.lastBodies.get(skill.file);
  return last === undefined || read.code !== "skill_unreadable" ? read : { ...last, unread: read.message };
}

function usedTokens(active: readonly Pick<ActiveSkill, "body">[]): number {
  return active.reduce((total, s) => total + estimateTokens(s.body), 0);
}
