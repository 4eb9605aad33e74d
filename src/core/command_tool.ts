// A tool that a skill brings along: what its tools.json says, and the name by which rules, bounds and the log know it.
import type { Risk } from "./decision.ts";
import type { InputSchema } from "./message.ts";

export type CommandTool = {
  /** As the model calls it. */
  readonly name: string;
  readonly description: string;
  readonly inputSchema: InputSchema;
  /** Program first: a bare word, or a path relative to the skill's folder that starts with `./`. */
  readonly command: readonly [string, ...string[]];
  readonly timeoutMs?: number;
  /** As declared; a call has the risk execute at least. */
  readonly risk?: Risk;
};

/** `skill.<name>.<tool>`. Neither name holds a dot, so that one identity never reads as another. */
export function toolIdentity(skill: string, tool: string): string {
  return `skill.${skill}.${tool}`;
}

/** The two names in an identity; undefined when it is none. */
export function splitIdentity(
  identity: string,
): { readonly skill: string; readonly tool: string } | undefined {
  const [, skill, tool] = /^skill\.([^.]+)\.([^.]+)$/.exec(identity) ?? [];
  return skill === undefined || tool === undefined ? undefined : { skill, tool };
}

/** Whether rules can speak of a skill's tools: in other names a dot, a star or a blank would make them mean something else. */
export function canBringTools(skill: string): boolean {
  return !/[.*()\s]/.test(skill);
}
