// Bodies and attached files of skills, read when they are wanted; what changed since its workspace was trusted is refused.
import { join } from "node:path";
import type { SkillBodies } from "../agent/agent.ts";
import type { Skill } from "../core/skill.ts";
import { escapeLine } from "../core/text.ts";
import { stateFolder } from "../load/locate.ts";
import { readAttached, readSkillBody } from "../load/skill_body.ts";
import { isAsSeen } from "../load/trust.ts";
import { placedSkill } from "./skill_side.ts";
import type { Settings } from "./settings.ts";

const attachedCap = 256 * 1024;

export function skillBodies(
  { trustedContent, surroundings }: Pick<Settings, "trustedContent" | "surroundings">,
): SkillBodies {
  const state = stateFolder(surroundings);
  // Skills of the project's own tier are what the workspace brings.
  const bound = (skill: Skill) => skill.tier === "project" ? trustedContent : undefined;
  return {
    async read(skill) {
      const placed = placedSkill(skill, state, "load");
      if (!placed.ok) return placed;
      const read = readSkillBody(placed.skill);
      const content = bound(skill);
      if (!read.ok || content === undefined) return read;
      return content.hashes.get(skill.file) === read.body.sha256
        ? read
        : { ok: false, ...changed(skill.file) };
    },
    async readAttached(skill, path) {
      const placed = placedSkill(skill, state, "use");
      if (!placed.ok) return { ok: false, code: placed.code, content: placed.message };
      const read = readAttached(placed.skill, path, attachedCap);
      if (!read.ok) return { ok: false, code: read.code, content: read.message };
      const content = bound(skill);
      const file = join(skill.folder, path);
      if (content !== undefined && !isAsSeen(content, file)) {
        const { code, message } = changed(file);
        return { ok: false, code, content: message };
      }
      return { ok: true, content: read.text, ...(read.cut ? { partial: true } : {}) };
    },
  };
}

function changed(file: string): { readonly code: "skill_changed"; readonly message: string } {
  return {
    code: "skill_changed",
    message:
      `\`${
        escapeLine(file)
      }\` has changed since its workspace was trusted; at the next turn or start it is ` +
      "asked about again",
  };
}
