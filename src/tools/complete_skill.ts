// complete_skill: the model reports the end of a skill, and the verdict if the skill is there to give one.
import type { Tool } from "../agent/ports.ts";
import { textArg } from "./arguments.ts";

export const completeSkill: Tool = {
  name: "complete_skill",
  description: "Report that an active skill is done.",
  inputSchema: {
    type: "object",
    properties: {
      name: { type: "string" },
      outcome: { type: "string", description: "one word, such as PASS or FAIL" },
      summary: { type: "string" },
    },
    required: ["name", "outcome", "summary"],
    additionalProperties: false,
  },
  barrier: true,
  engine: true,
  inspect: () => ({ risk: "read", subjects: [{ kind: "call" }] }),
  run: async (args, at) =>
    at.skills.complete(
      textArg(args, "name") ?? "",
      textArg(args, "outcome") ?? "",
      textArg(args, "summary") ?? "",
    ),
};
