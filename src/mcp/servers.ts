// All servers of a policy: started side by side before the first request, their tools frozen, ended with the session.
import type { Tool } from "../agent/ports.ts";
import type { McpServer } from "../core/mcp.ts";
import type { InputSchema } from "../core/message.ts";
import { connect, type Connection, type Reach } from "./connection.ts";
import { type AbsentTool, freezeDefinitions } from "./definitions.ts";
import { serverTool } from "./server_tools.ts";

export type StartOptions = {
  /** How the server is reached, or why it may or can not be. */
  reach(server: McpServer): Promise<Reach | { readonly refused: string }>;
  /** Why a tool's schema cannot be used. */
  schemaFault(schema: InputSchema): string | undefined;
  /** Characters of a result that are kept. */
  readonly maxOutput: number;
  /** Of this binary. */
  readonly version: string;
};

/** A server that cannot be had as a whole has a `reason`; the tools that are absent have one each. */
export type Lack =
  | { readonly server: McpServer; readonly reason: string; readonly absent?: undefined }
  | { readonly server: McpServer; readonly absent: AbsentTool; readonly reason?: undefined };

export type Servers = {
  /** In the order of the servers and of their lists. */
  readonly tools: readonly Tool[];
  readonly lacks: readonly Lack[];
  /** Ends every server with all that it has started. Never rejects. */
  close(): Promise<void>;
};

type Started = {
  readonly tools: readonly Tool[];
  readonly lacks: readonly Lack[];
  readonly connection?: Connection;
};

/** Takes no longer than the slowest server may. A server without listed tools is not started. */
export async function startServers(servers: readonly McpServer[], options: StartOptions): Promise<Servers> {
  const started = await Promise.all(
    servers.filter((s) => s.tools.length > 0).map((server) => startServer(server, options)),
  );
  return {
    tools: started.flatMap((s) => s.tools),
    lacks: started.flatMap((s) => s.lacks),
    async close() {
      await Promise.all(started.map((s) => s.connection?.close()));
    },
  };
}

async function startServer(server: McpServer, options: StartOptions): Promise<Started> {
  const reach = await options.reach(server);
  if ("refused" in reach) return { tools: [], lacks: [{ server, reason: reach.refused }] };
  const connected = await connect(reach, server, options.version);
  if (!connected.ok) return { tools: [], lacks: [{ server, reason: connected.reason }] };
  const { connection } = connected;
  const { definitions, absent } = freezeDefinitions(server.tools, connected.tools, options.schemaFault);
  return {
    tools: definitions.map((definition) => serverTool(server, definition, connection, options.maxOutput)),
    lacks: absent.map((absent) => ({ server, absent })),
    connection,
  };
}
