// A server made of the official package, for tests of the client. Run as a program it speaks over its pipes:
//   bun real_server.ts [--modern]       --modern: only the newer way of shaking hands
import { Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import process from "node:process";

type Schema = { readonly type: "object"; readonly [key: string]: unknown };
const none: Schema = { type: "object", properties: {} };

const tools: readonly {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: Schema;
}[] = [
  {
    name: "echo",
    description: "Say it again",
    inputSchema: {
      type: "object",
      properties: { text: { type: "string", description: "what to say" } },
      required: ["text"],
      additionalProperties: false,
    },
  },
  {
    name: "add",
    description: "Add two numbers",
    inputSchema: {
      type: "object",
      properties: { a: { type: "number" }, b: { type: "number" } },
      required: ["a", "b"],
    },
  },
  { name: "parts", description: "Every kind of content", inputSchema: none },
  { name: "fail", description: "Fails", inputSchema: none },
  { name: "refuse", description: "Is refused by the protocol", inputSchema: none },
  { name: "wait", description: "Waits until it is cancelled", inputSchema: none },
  { name: "ask", description: "Asks the client for what it may", inputSchema: none },
  { name: "env", description: "The names of the variables that it sees, and one of them", inputSchema: none },
  { name: "exit", description: "Ends the server", inputSchema: none },
];

/** What `wait` has seen: how often it was cancelled. */
export const seen = { cancelled: 0 };

export function makeServer(): Server {
  const server = new Server({ name: "real", version: "1.0.0" }, {
    capabilities: { tools: { listChanged: true } },
  });
  // In pages of four, so that a client has to ask more than once.
  server.setRequestHandler("tools/list", (request) => {
    const from = Number(request.params?.cursor ?? 0);
    const next = from + 4 < tools.length ? { nextCursor: String(from + 4) } : {};
    return { tools: tools.slice(from, from + 4).map((t) => ({ ...t })), ...next };
  });
  server.setRequestHandler("tools/call", async (request, context) => {
    const args = request.params.arguments ?? {};
    switch (request.params.name) {
      case "echo":
        return text(String(args["text"]));
      case "add": {
        const sum = Number(args["a"]) + Number(args["b"]);
        return { content: [], structuredContent: { sum } };
      }
      case "parts":
        return {
          content: [
            { type: "text", text: "words" },
            { type: "image", mimeType: "image/png", data: "AAAAAAAA" },
            { type: "audio", mimeType: "audio/wav", data: "AAA=" },
            { type: "resource_link", name: "page", uri: "https://h/page" },
            { type: "resource", resource: { uri: "file:///a.txt", text: "of a file" } },
            { type: "resource", resource: { uri: "file:///b", mimeType: "x/y", blob: "AAAA" } },
          ],
        };
      case "fail":
        return { ...text("it went wrong"), isError: true };
      case "refuse":
        throw new Error("not today");
      case "wait":
        await new Promise<void>((done) => context.mcpReq.signal.addEventListener("abort", () => done()));
        seen.cancelled++;
        return text("cancelled");
      case "ask": {
        const said: string[] = [];
        const asks = [
          () => server.createMessage({ messages: [], maxTokens: 1 }),
          () =>
            server.elicitInput({ message: "your key?", requestedSchema: { type: "object", properties: {} } }),
          () => server.listRoots(),
        ];
        for (const ask of asks) said.push(await ask().then(() => "answered", () => "refused"));
        await server.sendToolListChanged();
        return text(said.join(" "));
      }
      case "env":
        return text(
          `${Object.keys(process.env).sort().join(" ")}\n${process.env["SERVER_TOKEN"]}\n${process.cwd()}`,
        );
      case "exit":
        process.stderr.write("the server had enough\n");
        return process.exit(3);
      default:
        throw new Error("no such tool");
    }
  });
  return server;
}

function text(said: string) {
  return { content: [{ type: "text" as const, text: said }] };
}

if (import.meta.main) {
  serveStdio(makeServer, { legacy: process.argv.includes("--modern") ? "reject" : "serve" });
}
