// A skill: what its front matter says, where it comes from, and how its body is rendered for the model.
import type { SkillTier } from "./policy.ts";
import type { Pattern } from "./text.ts";

export type SkillMeta = {
  readonly name: string;
  readonly description: string;
  readonly version?: string;
  /** As declared, in the words of the file; undefined: none declared; empty: nothing is allowed. */
  readonly allowedTools?: readonly string[];
  readonly patterns: readonly Pattern[];
  /** Example messages that must, or must not, match one of the patterns. */
  readonly match: readonly string[];
  readonly noMatch: readonly string[];
  /** Tools that must exist for the skill to be of use. */
  readonly requires: readonly string[];
  readonly mode: "inline" | "fork";
  readonly modelInvocable: boolean;
  readonly userInvocable: boolean;
};

export type Skill = SkillMeta & {
  readonly tier: SkillTier;
  /** Real path of the folder; for embedded skills inside the binary a path that only Writ can read. */
  readonly folder: string;
  readonly file: string;
  /** Files of the same name in lower tiers that this one stands before. */
  readonly shadows: readonly { readonly tier: SkillTier; readonly file: string }[];
};

export type SkillBody = {
  readonly body: string;
  /** Bytes of the body, front matter not counted. */
  readonly bytes: number;
  /** SHA-256 of the whole SKILL.md, hex. */
  readonly sha256: string;
  /** Paths inside the folder, relative, sorted, SKILL.md not among them. */
  readonly files: readonly string[];
};
