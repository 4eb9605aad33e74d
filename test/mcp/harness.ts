// Servers of a policy, started for a test, and calls of their tools.
import { basename, dirname, join } from "node:path";
import process from "node:process";
import type { Tool, ToolContext, ToolOutcome } from "../../src/agent/ports.ts";
import type { McpServer } from "../../src/core/mcp.ts";
import type { Risk } from "../../src/core/decision.ts";
import type { Args } from "../../src/core/message.ts";
import type { Reach } from "../../src/mcp/connection.ts";
import { type Servers, startServers } from "../../src/mcp/servers.ts";
import { schemaFault } from "../../src/tools/arguments.ts";
import { root } from "../support/runtimes.ts";

export const bun = join(root, "node_modules/.bin/bun");
const support = join(root, "test/support/mcp");
export const realServer: readonly [string, ...string[]] = [bun, join(support, "real_server.ts")];
export const oddServer = (
  mode: string,
): readonly [string, ...string[]] => [bun, join(support, "odd_server.ts"), mode];

const at = { file: "/p.yaml", line: 1, col: 1 };

export type Wanted = {
  readonly name?: string;
  readonly argv?: readonly [string, ...string[]];
  readonly url?: string;
  readonly headers?: { readonly [name: string]: string };
  readonly env?: { readonly [name: string]: string };
  readonly tools: { readonly [name: string]: Risk };
  readonly startMs?: number;
  readonly callMs?: number;
};

/** Everything is ended afterwards. */
export async function withServers(
  wanted: readonly Wanted[],
  use: (servers: Servers) => Promise<void>,
): Promise<void> {
  const started = await startServers(wanted.map(describe), {
    reach: async (server) => reachOf(wanted.find((w) => (w.name ?? "s") === server.name)),
    schemaFault,
    maxOutput: 10_000,
    version: "0.0.0",
  });
  try {
    await use(started);
  } finally {
    await started.close();
  }
}

function describe(wanted: Wanted): McpServer {
  return {
    name: wanted.name ?? "s",
    layer: "user",
    at,
    reach: { kind: "url", url: "http://unused/", headers: {} },
    tools: Object.entries(wanted.tools).map(([name, risk]) => ({ name, risk, at })),
    required: false,
    startMs: wanted.startMs ?? 20_000,
    callMs: wanted.callMs ?? 20_000,
  };
}

function reachOf(wanted: Wanted | undefined): Reach {
  if (wanted?.url !== undefined) return { kind: "url", url: wanted.url, headers: wanted.headers ?? {} };
  const env = { PATH: process.env["PATH"] ?? "", ...wanted?.env };
  return { kind: "command", argv: wanted?.argv ?? realServer, cwd: dirname(support), env };
}

export async function call(
  servers: Servers,
  name: string,
  args: Args = {},
  signal = new AbortController().signal,
): Promise<ToolOutcome> {
  return await toolOf(servers, name).run(args, { signal } as ToolContext);
}

export function toolOf(servers: Servers, name: string): Tool {
  const tool = servers.tools.find((t) => t.name === `mcp.s.${name}`);
  if (tool === undefined) throw new Error(`no tool ${name}: ${JSON.stringify(lacksOf(servers))}`);
  return tool;
}

/** Of each lack the tool, if it is one's, and the reason. */
export function lacksOf({ lacks }: Servers): readonly (readonly [string, string])[] {
  return lacks.map((l) =>
    l.absent === undefined ? [basename(l.server.name), l.reason] : [l.absent.tool.name, l.absent.reason]
  );
}
