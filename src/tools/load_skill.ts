// load_skill: the model asks for a skill; the loop loads it and knows what follows from that.
import type { Tool } from "../agent/ports.ts";
import { textArg } from "./arguments.ts";

export const loadSkill: Tool = {
  name: "load_skill",
  description: "Load a skill by name, then follow its instructions.",
  inputSchema: {
    type: "object",
    properties: { name: { type: "string" }, arguments: { type: "string" } },
    required: ["name"],
    additionalProperties: false,
  },
  barrier: true,
  engine: true,
  inspect: () => ({ risk: "read", subjects: [{ kind: "call" }] }),
  run: (args, at) => at.skills.load(textArg(args, "name") ?? "", textArg(args, "arguments") ?? ""),
};
