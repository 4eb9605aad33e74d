// Bytes that no provider should send, and answers that lead elsewhere: no half tool call runs, the turn ends, and the key goes to
// the configured host alone.
import { describe, test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { existsSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { eventsOf, soundLog, withMachine } from "../support/machine.ts";
import { type SentEvent, streamText, withMessagesServer } from "../support/messages_server.ts";

const key = "sk-test-4f5a6b7c8d9e0f1a";
const call = {
  blocks: [{ text: "Writing." }, {
    tool: "write_file",
    input: { path: "b.txt", content: "x" },
    id: "toolu_1",
  }],
};
const whole = streamText(call);
const head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
const chunk = (text: string) => `${new TextEncoder().encode(text).length.toString(16)}\r\n${text}\r\n`;
const half = whole.slice(0, whole.indexOf("input_json_delta") + 60);
const unfinished = whole.slice(0, whole.indexOf("event: message_stop"));
const unstopped = whole.slice(0, whole.indexOf("event: message_delta"));

async function listening(answer: (socket: Socket) => void): Promise<{ server: Server; port: number }> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => answer(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return { server, port: typeof address === "object" && address !== null ? address.port : 0 };
}

const ended = (text: string) => (socket: Socket) => void socket.end(text);
const rows: readonly (readonly [name: string, answer: (socket: Socket) => void])[] = [
  [
    "a chunk whose size is no number",
    ended(`${head}transfer-encoding: chunked\r\n\r\nzz\r\n${whole}\r\n0\r\n\r\n`),
  ],
  ["a chunk that is shorter than it says", ended(`${head}transfer-encoding: chunked\r\n\r\nffff\r\n${half}`)],
  [
    "a chunk of a negative size",
    ended(`${head}transfer-encoding: chunked\r\n\r\n-5\r\n${half}\r\n0\r\n\r\n`),
  ],
  ["no last chunk, within a call", ended(`${head}transfer-encoding: chunked\r\n\r\n${chunk(half)}`)],
  ["a length that is never reached", ended(`${head}content-length: 99999\r\n\r\n${half}`)],
  [
    "a length that cuts it",
    (socket) => void socket.end(`${head}content-length: ${half.length}\r\n\r\n${whole}`),
  ],
  ["an orderly end before the last event", ended(`${head}connection: close\r\n\r\n${unfinished}`)],
  ["an orderly end before the stop reason", ended(`${head}connection: close\r\n\r\n${unstopped}`)],
  ["a reset within a call", (socket) => {
    socket.write(`${head}transfer-encoding: chunked\r\n\r\n${chunk(half)}`, () => socket.resetAndDestroy());
  }],
  ["garbage in place of HTTP", ended("\u0000\u0001\u0002 not HTTP at all\r\n\r\n")],
  ["garbage in place of events", ended(`${head}connection: close\r\n\r\n\u0000\u00ff{{{{\n\n\u0000`)],
  ["nothing but a head", ended(`${head}connection: close\r\n\r\n`)],
  [
    "a call that stalls",
    (socket) => void socket.write(`${head}transfer-encoding: chunked\r\n\r\n${chunk(half)}`),
  ],
  ["one byte at a time, for ever", (socket) => {
    socket.write(`${head}transfer-encoding: chunked\r\n\r\n`);
    const timer = setInterval(() => socket.write(chunk(":\n")), 50);
    socket.on("close", () => clearInterval(timer));
  }],
];

describe("a reply of a provider with", () => {
  for (const [name, answer] of rows) {
    test(`${name} runs nothing, and ends the turn`, async () => {
      const { server, port } = await listening(answer);
      try {
        await withMachine(async (m) => {
          const policy = m.write(
            "policy.yaml",
            `version: 1\nmodel: {name: m, base_url: "http://127.0.0.1:${port}", retries: 1, idle_timeout: 1s, timeout: 2s}\npermissions: {allow: [write_file]}\n`,
          );
          const ran = await m.writ(["run", "--policy", policy, "go"], { env: { ANTHROPIC_API_KEY: key } });
          assertEquals([ran.code, ran.stdout], [3, ""], ran.stderr);
          assertEquals(/^\s+at /m.test(ran.stderr), false, ran.stderr);
          const events = await soundLog(m);
          assertEquals(eventsOf(events, "turn.completed").map((e) => e.data.stopReason), ["provider_error"]);
          const failed = eventsOf(events, "model.failed").length;
          assert(failed === 1 || failed === 2, `${failed} attempts`);
          assertEquals([eventsOf(events, "model.completed"), eventsOf(events, "tool.started")], [[], []]);
          assert(!existsSync(join(m.repo, "b.txt")));
        });
      } finally {
        server.close();
      }
    });
  }

  test("events that come twice, or for a block that is not open, runs nothing", async () => {
    const events: readonly SentEvent[] = [
      ["message_start", { type: "message_start", message: { usage: {} } }],
      ["content_block_start", {
        type: "content_block_start",
        index: 0,
        content_block: { type: "tool_use", id: "a", name: "write_file", input: {} },
      }],
      ["content_block_start", {
        type: "content_block_start",
        index: 0,
        content_block: { type: "tool_use", id: "a", name: "write_file", input: {} },
      }],
    ];
    await withMessagesServer(() => ({ events }), async (server) => {
      await withMachine(async (m) => {
        const policy = m.write(
          "policy.yaml",
          `version: 1\nmodel: {name: m, base_url: "${server.url}", retries: 1}\n`,
        );
        const ran = await m.writ(["run", "--policy", policy, "go"], { env: { ANTHROPIC_API_KEY: key } });
        assertEquals([ran.code, server.requests.length], [3, 2], ran.stderr);
        assertEquals(eventsOf(await soundLog(m), "tool.started"), []);
      });
    });
  });
});

describe("the key goes to no other host", () => {
  for (const status of [307]) {
    test(`after a redirect of status ${status}`, async () => {
      const heard: string[] = [];
      const elsewhere = await listening((socket) => {
        heard.push("a request");
        socket.destroy();
      });
      const { server, port } = await listening(
        ended(
          `HTTP/1.1 ${status} Elsewhere\r\nlocation: http://localhost:${elsewhere.port}/v1/messages\r\ncontent-length: 0\r\n\r\n`,
        ),
      );
      try {
        await withMachine(async (m) => {
          const policy = m.write(
            "policy.yaml",
            `version: 1\nmodel: {name: m, base_url: "http://127.0.0.1:${port}"}\n`,
          );
          const ran = await m.writ(["run", "--policy", policy, "go"], { env: { ANTHROPIC_API_KEY: key } });
          assertEquals([ran.code, heard], [3, []], ran.stderr);
          assertEquals(eventsOf(await soundLog(m), "model.failed").map((e) => e.data.code), ["redirected"]);
        });
      } finally {
        server.close();
        elsewhere.server.close();
      }
    });
  }

  test("in the clear through a proxy that the environment names, when the host is one of NO_PROXY", async () => {
    const heard: string[] = [];
    const proxy = await listening((socket) => {
      heard.push("a request");
      socket.destroy();
    });
    try {
      await withMessagesServer([{ blocks: [{ text: "done" }] }], async (server) => {
        await withMachine(async (m) => {
          const policy = m.write("policy.yaml", `version: 1\nmodel: {name: m, base_url: "${server.url}"}\n`);
          const at = `http://127.0.0.1:${proxy.port}`;
          const ran = await m.writ(["run", "--policy", policy, "go"], {
            env: {
              ANTHROPIC_API_KEY: key,
              HTTP_PROXY: at,
              HTTPS_PROXY: at,
              http_proxy: at,
              NO_PROXY: "127.0.0.1",
            },
          });
          assertEquals([ran.code, ran.stdout, heard], [0, "done\n", []], ran.stderr);
        });
      });
    } finally {
      proxy.server.close();
    }
  });

  test("in the clear through a proxy: to an https host it opens a tunnel, and sees no header of ours", async () => {
    let seen = "";
    const proxy = createServer((socket) => {
      socket.on("error", () => {});
      socket.on("data", (piece: Uint8Array) => {
        seen += new TextDecoder().decode(piece);
        socket.end("HTTP/1.1 502 no\r\ncontent-length: 0\r\n\r\n");
      });
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    const address = proxy.address();
    const at = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
    try {
      await withMachine(async (m) => {
        const policy = m.write(
          "policy.yaml",
          'version: 1\nmodel: {name: m, base_url: "https://models.invalid", retries: 0, timeout: 5s}\n',
        );
        const ran = await m.writ(["run", "--policy", policy, "go"], {
          env: { ANTHROPIC_API_KEY: key, HTTPS_PROXY: at, https_proxy: at },
        });
        assertEquals(ran.code, 3, ran.stderr);
        assertEquals([/^CONNECT models\.invalid:443 /.test(seen), seen.includes(key)], [true, false], seen);
      });
    } finally {
      proxy.close();
    }
  });
});
