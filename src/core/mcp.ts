// MCP servers as the policy describes them, and the names of their tools.
import type { LayerName, Risk } from "./decision.ts";
import type { Position } from "./problem.ts";

/** A text that goes to a server: written in the policy, or a secret that stands elsewhere, with a text before it. */
export type ServerValue =
  | { readonly text: string }
  | { readonly env: string; readonly prefix: string }
  | { readonly file: string; readonly prefix: string };
export type ServerValues = { readonly [name: string]: ServerValue };

/** A tool of a server that the policy lists; no other is ever offered. */
export type ListedTool = { readonly name: string; readonly risk: Risk; readonly at: Position };

export type McpServer = {
  readonly name: string;
  readonly layer: LayerName;
  readonly at: Position;
  readonly reach:
    | {
      readonly kind: "command";
      readonly argv: readonly [string, ...string[]];
      /** The folder of the policy file, absolute. */
      readonly cwd: string;
      readonly env: ServerValues;
    }
    | { readonly kind: "url"; readonly url: string; readonly headers: ServerValues };
  readonly tools: readonly ListedTool[];
  /** The box in which its program runs; absent: the default one. */
  readonly box?: string;
  /** Nothing starts without it. */
  readonly required: boolean;
  /** From its start to the list of its tools. */
  readonly startMs: number;
  /** For one call. */
  readonly callMs: number;
};

/** The name by which model, rules, bounds and log know a server's tool. */
export function serverToolName(server: string, tool: string): string {
  return `mcp.${server}.${tool}`;
}

/** The names of all tools that the servers are listed with. */
export function listedToolNames(servers: readonly McpServer[]): readonly string[] {
  return servers.flatMap((server) => server.tools.map((tool) => serverToolName(server.name, tool.name)));
}
