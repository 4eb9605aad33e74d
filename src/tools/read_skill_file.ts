// read_skill_file: a file that came with an active skill.
import type { Tool } from "../agent/ports.ts";
import { textArg } from "./arguments.ts";

export const readSkillFile: Tool = {
  name: "read_skill_file",
  description: "Read a file attached to an active skill.",
  inputSchema: {
    type: "object",
    properties: { skill: { type: "string" }, path: { type: "string" } },
    required: ["skill", "path"],
    additionalProperties: false,
  },
  engine: true,
  inspect: () => ({ risk: "read", subjects: [{ kind: "call" }] }),
  run: (args, at) => at.skills.readFile(textArg(args, "skill") ?? "", textArg(args, "path") ?? ""),
};
