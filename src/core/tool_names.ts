// The built-in tools as core, policy and command line know them: one line each. What they do is for src/tools.
import { wildcard } from "./text.ts";

/** What a rule can look at in a call; `shell` commands also have path operands and redirections. */
export type Matcher = "command" | "path" | "host" | "skill";

export type BuiltinTool = {
  readonly name: string;
  /** What the specifier of `tool(specifier)` stands for. */
  readonly matcher: Matcher;
  /** The argument that stands for a call where there is room for one text. */
  readonly mainArgument: string;
  /** Outside of bounds and of `tools.enabled`, not outside policy. */
  readonly engine: boolean;
  /** Offered when no policy says anything of `tools.enabled`. */
  readonly enabledByDefault: boolean;
  /** No call of it can be more than a read. */
  readonly reads: boolean;
};

const offered = { engine: false, enabledByDefault: true };
const reading = { ...offered, matcher: "path", mainArgument: "path", reads: true } as const;
const writing = { ...reading, reads: false } as const;
const engine = { matcher: "skill", engine: true, enabledByDefault: true, reads: true } as const;

/** In the order in which a model is offered them; the order is part of what providers cache. */
export const builtins: readonly BuiltinTool[] = [
  { name: "read_file", ...reading },
  { name: "list_files", ...reading },
  { name: "search_text", ...reading },
  { name: "git_diff", ...reading },
  { name: "write_file", ...writing },
  { name: "edit_file", ...writing },
  { name: "shell", ...offered, matcher: "command", mainArgument: "command", reads: false },
  {
    name: "fetch_url",
    ...offered,
    enabledByDefault: false,
    matcher: "host",
    mainArgument: "url",
    reads: false,
  },
  { name: "load_skill", ...engine, mainArgument: "name" },
  { name: "read_skill_file", ...engine, mainArgument: "skill" },
  { name: "complete_skill", ...engine, mainArgument: "name" },
  { name: "find_skill", ...engine, mainArgument: "query" },
];

export const builtinTools: readonly string[] = builtins.map((t) => t.name);
/** Loading, reading and completing skills is outside every bound; policy still decides on it. */
export const engineTools: readonly string[] = builtins.filter((t) => t.engine).map((t) => t.name);
/** What `tools.enabled` may list, in the order in which the model is offered them. */
export const enableableTools: readonly string[] = builtins.filter((t) => !t.engine).map((t) => t.name);

/** The built-in tool of exactly that name. */
export function builtinTool(name: string): BuiltinTool | undefined {
  return builtins.find((t) => t.name === name);
}

/** The matcher that the specifier of `tool(specifier)` stands for; undefined: the tool is not built in. */
export function specifierOf(tool: string): Matcher | undefined {
  return builtinTool(tool)?.matcher;
}

/** The argument that stands for a call in rule examples and in `writ explain`. */
export function mainArgument(tool: string): string | undefined {
  return builtinTool(tool)?.mainArgument;
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
