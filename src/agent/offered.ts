// Which tools the model is offered in the next request: built-in ones, those of servers, those of active skills.
import type { Agent } from "./agent.ts";
import type { Tool } from "./ports.ts";
import { uniqueBy } from "../core/collection.ts";
import type { ToolDefinition } from "../core/message.ts";

/** In a fixed order, so that tools that come with a skill are appended: nothing before them moves. */
export function offeredTools(agent: Agent): readonly Tool[] {
  const { active } = agent.recorder.state;
  const tools = [
    ...agent.tools.filter((tool) => isOffered(agent, tool)),
    ...agent.serverTools,
    ...active.flatMap((skill) => toolsOf(agent, skill.name)),
  ];
  // Two skills that were loaded from different states of the catalog may have one name.
  return uniqueBy(tools, (tool) => tool.name);
}

// After a resume a skill is as the catalog has it now.
function toolsOf(agent: Agent, name: string): readonly Tool[] {
  const skill = agent.installed.get(name) ?? agent.catalog.get(name);
  return skill === undefined ? [] : agent.commandTools(skill);
}

function isOffered(agent: Agent, tool: Tool): boolean {
  if (tool.engine !== true) return agent.policy.tools.enabled.includes(tool.name);
  if (tool.name === "load_skill") {
    return agent.policy.skills.modelChoice && agent.catalog.items.some((s) => s.modelInvocable);
  }
  if (tool.name === "find_skill") {
    return agent.policy.skills.modelChoice && agent.preface.now.shown.omitted.size > 0;
  }
  return agent.catalog.items.length > 0;
}

export function toDefinition(tool: Tool): ToolDefinition {
  return { name: tool.name, description: tool.description, inputSchema: tool.inputSchema };
}

/** The name by which rules, bounds, evidence and the log know a tool. */
export function identityOf(tool: Tool): string {
  return tool.identity ?? tool.name;
}
