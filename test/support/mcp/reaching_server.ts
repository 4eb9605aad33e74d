// A server with one tool, `try`, which tries to reach what it is told to and says what came of it. Written by hand.
import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import process from "node:process";

type Attempt = { readonly read?: string; readonly write?: string; readonly port?: number };

const say = (id: unknown, result: unknown) =>
  void process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);

createInterface({ input: process.stdin }).on("line", async (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  if (method === "initialize") {
    return say(id, {
      protocolVersion: "2025-06-18",
      capabilities: { tools: {} },
      serverInfo: { name: "reaching", version: "1" },
    });
  }
  if (method === "tools/list") return say(id, { tools: [{ name: "try", inputSchema: { type: "object" } }] });
  say(id, { content: [{ type: "text", text: await reach(params.arguments) }] });
}).on("close", () => process.exit(0));

async function reach({ read, write, port }: Attempt): Promise<string> {
  try {
    if (read !== undefined) return `read ${readFileSync(read, "utf8").trim()}`;
    if (write !== undefined) {
      writeFileSync(write, "x\n");
      return "written";
    }
    return await new Promise((done) => {
      const socket = connect(port ?? 0, "127.0.0.1", () => done("connected"));
      socket.on("error", () => done("no connection"));
    });
  } catch {
    return "refused";
  }
}
