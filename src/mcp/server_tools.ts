// Servers as tools: what the loop offers, judges and runs like any other tool.
import type { Tool, ToolOutcome } from "../agent/ports.ts";
import type { Risk } from "../core/decision.ts";
import { type McpServer, serverToolName } from "../core/mcp.ts";
import type { InputSchema } from "../core/message.ts";
import type { Connection } from "./connection.ts";
import type { Definition } from "./definitions.ts";
import { outcomeOf } from "./result_text.ts";

/** A tool as its server described it at the start. At most `maxOutput` characters of a result are kept. */
export function serverTool(
  server: McpServer,
  { tool, description, inputSchema }: Definition,
  connection: Connection,
  maxOutput: number,
): Tool {
  return {
    ...judged(serverToolName(server.name, tool.name), tool.risk),
    description,
    inputSchema,
    async run(args, at): Promise<ToolOutcome> {
      const answer = await connection.call(tool.name, args, at.signal);
      if (answer.ok) return outcomeOf(answer.result, maxOutput);
      const { code, message, unknown } = answer;
      const content = failureText(server.name, code, message);
      return { ok: false, code, content, ...(unknown === true ? { unknown } : {}) };
    },
  };
}

/** The tools that a policy lists, to be judged and not to be run: nobody was asked what arguments they take. */
export function listedTools(servers: readonly McpServer[]): readonly Tool[] {
  const inputSchema: InputSchema = { type: "object" };
  return servers.flatMap((server) =>
    server.tools.map((tool): Tool => ({
      ...judged(serverToolName(server.name, tool.name), tool.risk),
      description: "",
      inputSchema,
      run: async () => ({
        ok: false,
        code: "server_down",
        content: `the server \`${server.name}\` was not started`,
      }),
    }))
  );
}

// The risk is the policy's word alone: a server's own hints do not count.
function judged(name: string, risk: Risk): Pick<Tool, "name" | "inspect"> {
  return { name, inspect: () => ({ risk, subjects: [{ kind: "call" }] }) };
}

function failureText(server: string, code: string, message: string): string {
  if (code === "server_down") {
    return `the server \`${server}\` cannot be reached: ${message}`;
  }
  return code === "server_error" ? `the server \`${server}\` refused the call: ${message}` : message;
}
