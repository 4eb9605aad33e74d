// A server that does one thing wrong, written by hand. Its first argument says which.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import process from "node:process";

const mode = process.argv[2] ?? "";
const say = (message: unknown) => void process.stdout.write(`${JSON.stringify(message)}\n`);
const reply = (id: unknown, result: unknown) => say({ jsonrpc: "2.0", id, result });
const object = { type: "object" };
const info = {
  protocolVersion: "2025-06-18",
  capabilities: { tools: {} },
  serverInfo: { name: "odd", version: "1" },
};

const lists: { readonly [mode: string]: unknown } = {
  "no-list": { tools: "none" },
  twice: { tools: [{ name: "do", inputSchema: object }, { name: "do", inputSchema: object }] },
  "odd-neighbours": {
    tools: [5, null, { name: 7 }, { name: "do", inputSchema: object }, { name: "x", inputSchema: 5 }],
  },
  endless: { tools: [{ name: "a", inputSchema: object }], nextCursor: "more" },
};

if (mode === "stubborn") {
  process.on("SIGTERM", () => {});
  setInterval(() => {}, 1000);
  const child = spawn("sleep", ["300"], { detached: true, stdio: "ignore" });
  process.stderr.write(`${child.pid}\n`);
}

let page = 0;
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (id === undefined || method === undefined) return;
  if (mode === "nonsense") return void process.stdout.write("hello\n".repeat(5000));
  if (mode === "long-line") return flood("x".repeat(65_536));
  if (mode === "wrong-ids") return reply(id + 1000, info);
  if (mode === "silent") return;
  if (method === "initialize") {
    if (mode === "greets") process.stdout.write("welcome to this server\n\n{not json}\n");
    return reply(id, info);
  }
  if (method === "tools/list") {
    if (mode === "endless") {
      return reply(id, { tools: [{ name: `a${page++}`, inputSchema: object }], nextCursor: `${page}` });
    }
    if (mode === "pid") {
      return reply(id, { tools: [{ name: "do", description: `${process.pid}`, inputSchema: object }] });
    }
    return reply(id, lists[mode] ?? { tools: [{ name: "do", inputSchema: object }] });
  }
  if (method !== "tools/call") return;
  if (mode === "dies") return process.exit(9);
  if (mode === "floods") {
    return flood(
      `${JSON.stringify({ jsonrpc: "2.0", method: "notifications/x", params: { x: "y".repeat(9000) } })}\n`,
    );
  }
  if (mode === "no-result") return reply(id, "just words");
  if (mode === "odd-parts") {
    return reply(id, { content: [5, {}, { type: 7 }, { type: "text" }, { type: "dance" }] });
  }
  if (mode === "hangs") return;
  if (mode === "big") {
    return reply(id, { content: [{ type: "text", text: `head${"x".repeat(300_000)}tail` }] });
  }
  reply(id, { content: [] });
});
if (mode !== "stubborn") lines.on("close", () => process.exit(0));

function flood(piece: string): void {
  const more = () => {
    while (process.stdout.write(piece));
    process.stdout.once("drain", more);
  };
  more();
}
