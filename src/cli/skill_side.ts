// The command tools of a skill, with what they have of it: the folder to run in and the secrets that it may see.
import type { Tool } from "../agent/ports.ts";
import type { Skill } from "../core/skill.ts";
import { commandTool, type SkillSide } from "../tools/command_tool.ts";

export function commandTools(skill: Skill): readonly Tool[] {
  const side: SkillSide = {
    name: skill.name,
    folder: skill.folder,
    runFolder: async () => ({ ok: true, folder: skill.folder }),
    secrets: async () => ({ ok: true, env: {} }),
  };
  return skill.tools.map((spec) => commandTool(spec, side));
}
