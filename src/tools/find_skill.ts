// find_skill: the model looks for a skill that its list of skills had no room for.
import type { Tool } from "../agent/ports.ts";
import { textArg } from "./arguments.ts";

export const findSkill: Tool = {
  name: "find_skill",
  description: "Search all skills by words, also those that are not listed.",
  inputSchema: {
    type: "object",
    properties: { query: { type: "string" } },
    required: ["query"],
    additionalProperties: false,
  },
  engine: true,
  inspect: () => ({ risk: "read", subjects: [{ kind: "call" }] }),
  run: async (args, at) => at.skills.find(textArg(args, "query") ?? ""),
};
