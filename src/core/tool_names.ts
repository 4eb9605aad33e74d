// The built-in tools by name: which exist, which a policy may switch off, and what a rule's specifier means for each.
import { engineTools } from "./bound.ts";
import { wildcard } from "./text.ts";

/** What `tools.enabled` may list, in the order in which the model is offered them. */
export const enableableTools: readonly string[] = [
  "read_file",
  "list_files",
  "search_text",
  "git_diff",
  "write_file",
  "edit_file",
  "shell",
  "fetch_url",
];
export const builtinTools: readonly string[] = [...enableableTools, ...engineTools];

/** What a rule can look at in a call; `shell` commands also have path operands and redirections. */
export type Matcher = "command" | "path" | "host" | "skill";

/** The matcher that the specifier of `tool(specifier)` stands for; undefined: the tool takes none. */
export function specifierOf(tool: string): Matcher | undefined {
  switch (tool) {
    case "shell":
      return "command";
    case "read_file":
    case "list_files":
    case "search_text":
    case "git_diff":
    case "write_file":
    case "edit_file":
      return "path";
    case "fetch_url":
      return "host";
    case "load_skill":
    case "read_skill_file":
    case "complete_skill":
      return "skill";
    default:
      return undefined;
  }
}

/** Whether the glob may stand for a command tool of a skill or a tool of an MCP server. */
export function mayNameOutsideTool(glob: string): boolean {
  const star = glob.indexOf("*");
  const start = star < 0 ? glob : glob.slice(0, star);
  return ["skill.", "mcp."].some((
    p,
  ) => (star < 0
    ? start.startsWith(p) && start.length > p.length
    : start.startsWith(p) || p.startsWith(start))
  );
}

/** The built-in tools that a name or glob stands for. */
export function builtinsOf(glob: string): readonly string[] {
  return builtinTools.filter((name) => wildcard(glob, name));
}
