// Requests of the real SDK to a loopback server: which bytes and headers are sent, and what never has a say in them.
import { assert, assertEquals } from "@std/assert";
import { afterEach, beforeEach, describe, test } from "bun:test";
import process from "node:process";
import { anthropicModel } from "../../src/provider/anthropic.ts";
import type { Message, ModelRequest } from "../../src/core/message.ts";
import type { ModelSettings } from "../../src/core/policy.ts";
import { withMessagesServer } from "../support/messages_server.ts";
import { failureOf, listen, question, request, settings, testKey, testModel } from "./setup.ts";

const marker = ',"cache_control":{"type":"ephemeral"}';
const answer = { blocks: [{ text: "ok" }] };

/** The body that is sent for a request. */
function bodyOf(asked: ModelRequest, more: Partial<ModelSettings> = {}): Promise<string> {
  return withMessagesServer([answer], async (server) => {
    await listen(testModel(server.url, more), asked);
    return server.requests[0]!.body;
  });
}

describe("anthropicModel() writes the body", () => {
  test("in an order that keeps messages last", async () => {
    const body = await bodyOf(request(), {
      request: { thinking: { type: "adaptive" }, metadata: { user_id: "u" } },
    });
    assertEquals(
      body,
      '{"model":"test-model","max_tokens":1024,"stream":true,"thinking":{"type":"adaptive"},' +
        '"metadata":{"user_id":"u"},"system":[{"type":"text","text":"You work under a policy."' + marker +
        "}]," +
        '"tools":[{"name":"read_file","description":"Reads.","input_schema":{"type":"object"}' + marker +
        "}]," +
        '"messages":[{"role":"user","content":[{"type":"text","text":"review this"' + marker + "}]}]}",
    );
  });

  test("without what is empty", async () => {
    const messages: Message[] = [
      {
        role: "user",
        content: [{ type: "text", text: "" }, { type: "text", text: "a" }, { type: "text", text: " \n" }],
      },
      { role: "assistant", content: [{ type: "text", text: "" }] },
      { role: "user", content: [{ type: "text", text: "b" }] },
    ];
    assertEquals(JSON.parse(await bodyOf(request({ system: "", tools: [], messages }))), {
      model: "test-model",
      max_tokens: 1024,
      stream: true,
      messages: [
        { role: "user", content: [{ type: "text", text: "a" }] },
        { role: "user", content: [{ type: "text", text: "b", cache_control: { type: "ephemeral" } }] },
      ],
    });
  });

  test("with every kind of block", async () => {
    const thinking = { type: "thinking", thinking: "hm", signature: "s", extra: [1] };
    const messages: Message[] = [
      question,
      {
        role: "assistant",
        content: [
          { type: "opaque", value: thinking },
          { type: "text", text: "I look." },
          { type: "tool_use", id: "t1", name: "read_file", input: { path: "a", deep: { b: [1, null] } } },
          { type: "tool_use", id: "t2", name: "read_file", input: {}, malformed: "{", cut: true },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", call: "t1", ok: true, content: "text of a" },
          { type: "tool_result", call: "t2", ok: false, content: "" },
          { type: "text", text: "cwd: /srv" },
        ],
      },
    ];
    const body = JSON.parse((await bodyOf(request({ messages }))).replaceAll(marker, ""));
    assertEquals(body.messages, [
      { role: "user", content: [{ type: "text", text: "review this" }] },
      {
        role: "assistant",
        content: [
          thinking,
          { type: "text", text: "I look." },
          { type: "tool_use", id: "t1", name: "read_file", input: { path: "a", deep: { b: [1, null] } } },
          { type: "tool_use", id: "t2", name: "read_file", input: {} },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "t1", content: "text of a" },
          { type: "tool_result", tool_use_id: "t2", content: "failed", is_error: true },
          { type: "text", text: "cwd: /srv" },
        ],
      },
    ]);
  });

  test("with half a surrogate pair made whole, and whole ones left alone", async () => {
    const text = `cut \ud83d here, 🙂 not, nor "\\ud83d"`;
    const body = await bodyOf(request({ messages: [{ role: "user", content: [{ type: "text", text }] }] }));
    assertEquals(JSON.parse(body).messages[0].content[0].text, `cut \ufffd here, 🙂 not, nor "\\ud83d"`);
  });

  test("with what Writ decides out of the policy's reach", async () => {
    const body = await bodyOf(request(), {
      request: { model: "other", messages: [], system: "x", tools: [], stream: false, max_tokens: 7 },
    });
    assertEquals(body, (await bodyOf(request())).replace('"max_tokens":1024', '"max_tokens":7'));
  });

  test("so that each request of a turn begins with the one before", async () => {
    const plan = [
      {
        blocks: [{ thinking: "hm", signature: "s" }, { text: "I look." }, {
          tool: "read_file",
          input: { path: "ü" },
        }],
      },
      {
        blocks: [{ tool: "read_file", input: { a: 1 }, id: "t1" }, {
          tool: "read_file",
          input: "{",
          id: "t2",
        }],
      },
      { blocks: [{ text: "Done." }] },
    ];
    await withMessagesServer(plan, async (server) => {
      const model = testModel(server.url);
      let messages: readonly Message[] = [question];
      for (let i = 0; i < plan.length; i++) {
        const { reply } = await listen(model, request({ messages }));
        const results = reply.content.flatMap((block) =>
          block.type === "tool_use"
            ? [
              {
                type: "tool_result",
                call: block.id,
                ok: block.malformed === undefined,
                content: "r",
              } as const,
            ]
            : []
        );
        messages = [
          ...messages,
          { role: "assistant", content: reply.content },
          { role: "user", content: [...results, { type: "text", text: `environment ${i}` }] },
        ];
      }
      const bodies = server.requests.map(({ body }) => body);
      assertEquals(bodies.map((body) => body.split(marker).length - 1), [3, 4, 4]);
      const plain = bodies.map((body) => body.replaceAll(marker, ""));
      for (const [i, next] of plain.slice(1).entries()) {
        const before = plain[i]!;
        assert(before.endsWith("]}"));
        assertEquals(next.slice(0, before.length - 2), before.slice(0, -2));
      }
    });
  });

  test("with its breakpoints at tools, system, the block that was last before, and the last block", async () => {
    const long: Message[] = [
      question,
      { role: "assistant", content: [{ type: "text", text: "a1" }] },
      { role: "user", content: [{ type: "text", text: "u2" }, { type: "text", text: "u3" }] },
      { role: "assistant", content: [{ type: "text", text: "a2" }] },
      { role: "user", content: [{ type: "text", text: "u4" }] },
    ];
    const tools = ["one", "two"].map((name) => ({
      name,
      description: "",
      inputSchema: { type: "object" } as const,
    }));
    const body = JSON.parse(await bodyOf(request({ messages: long, tools })));
    const marked = [
      ...body.system,
      ...body.tools,
      ...body.messages.flatMap((message: { content: unknown[] }) => message.content),
    ].filter((block) => block.cache_control !== undefined).map((block) => block.name ?? block.text);
    assertEquals(marked, ["You work under a policy.", "two", "u3", "u4"]);
  });

  test("with a tool that is new behind those that were there, so that only what follows them moves", async () => {
    const tool = (name: string) => ({ name, description: "d", inputSchema: { type: "object" } as const });
    const tools = [tool("read_file"), tool("mcp.docs.find")];
    const [before, after] = [
      await bodyOf(request({ tools })),
      await bodyOf(request({ tools: [...tools, tool("count_words")] })),
    ].map((body) => body.replaceAll(marker, ""));
    const end = before!.indexOf(',"messages":') - 1;
    assertEquals(after!.slice(0, end), before!.slice(0, end));
    assertEquals(
      after!.slice(after!.indexOf(',"messages":')),
      before!.slice(before!.indexOf(',"messages":')),
    );
  });

  test("without a choice among tools where there are none", async () => {
    const choice = { request: { tool_choice: { type: "auto" } } };
    const sent = async (tools: ModelRequest["tools"]) =>
      JSON.parse(await bodyOf(request({ tools }), choice)).tool_choice;
    assertEquals([await sent(request().tools), await sent([])], [{ type: "auto" }, undefined]);
  });

  test("with names that the API takes, and gives ours back", async () => {
    const names = [
      "mcp.github.create_issue",
      "mcp__github__create_issue",
      "prüfen",
      "x".repeat(200),
      "plain-1_a",
    ];
    const tools = names.map((name) => ({ name, description: "d", inputSchema: { type: "object" } as const }));
    const wire = [
      "mcp__github__create_issue_2",
      "mcp__github__create_issue",
      "pr_fen",
      "x".repeat(128),
      "plain-1_a",
    ];
    const blocks = [...wire, "not.offered"].map((tool, i) => ({ tool, id: `t${i}` }));
    const history: Message[] = [question, {
      role: "assistant",
      content: [...names, "mcp.gone.tool"].map((name, i) => ({
        type: "tool_use",
        id: `h${i}`,
        name,
        input: {},
      })),
    }, question];
    await withMessagesServer([{ blocks }], async (server) => {
      const { reply } = await listen(testModel(server.url), request({ tools, messages: history }));
      const body = JSON.parse(server.requests[0]!.body);
      assertEquals(body.tools.map((tool: { name: string }) => tool.name), wire);
      const called = body.messages[1].content.map((block: { name: string }) => block.name);
      assertEquals(called, [...wire, "mcp__gone__tool"]);
      const ours = reply.content.map((block) => block.type === "tool_use" ? block.name : "");
      assertEquals(ours, [...names, "not.offered"]);
    });
  });
});

describe("anthropicModel() sends", () => {
  const hostile: { readonly [name: string]: string } = {
    ANTHROPIC_BASE_URL: "http://127.0.0.1:9",
    ANTHROPIC_API_KEY: "sk-ambient",
    ANTHROPIC_AUTH_TOKEN: "token-ambient",
    ANTHROPIC_CUSTOM_HEADERS: "x-ambient: 1\nauthorization: Bearer sk-ambient\nanthropic-beta: ambient",
    ANTHROPIC_LOG: "debug",
    ANTHROPIC_PROFILE: "ambient",
    ANTHROPIC_CONFIG_DIR: "/nowhere",
    ANTHROPIC_WEBHOOK_SIGNING_KEY: "whsec_ambient",
    ANTHROPIC_OPEN_TELEMETRY: "true",
    ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE: "content",
  };
  const before = Object.fromEntries(Object.keys(hostile).map((name) => [name, process.env[name]]));
  const printed: unknown[][] = [];
  const printers = ["log", "info", "warn", "error", "debug"] as const;
  const originals = printers.map((name) => console[name]);
  const realFetch = globalThis.fetch;

  beforeEach(() => {
    Object.assign(process.env, hostile);
    printed.length = 0;
    for (const name of printers) console[name] = (...words: unknown[]) => void printed.push(words);
  });
  afterEach(() => {
    for (const [name, value] of Object.entries(before)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
    for (const [i, name] of printers.entries()) console[name] = originals[i]!;
    globalThis.fetch = realFetch;
  });

  // Made by the runtime's fetch, different in each.
  const byFetch = new Set(["accept-encoding", "accept-language", "connection", "content-length", "host"]);
  const own = (headers: readonly (readonly [string, string])[]) =>
    headers.filter(([name]) => !byFetch.has(name)).sort(([a], [b]) => a < b ? -1 : 1);

  test("these headers whatever ANTHROPIC_ variables say, and prints nothing", async () => {
    // An old model's name, about which the SDK would warn.
    await withMessagesServer([answer, { status: 500, body: { error: {} } }], async (server) => {
      await listen(testModel(server.url), request({ model: "claude-3-opus-20240229" }));
      await failureOf(() => listen(testModel(server.url)));
      assertEquals(
        server.requests.map(({ method, path }) => `${method} ${path}`),
        Array(2).fill("POST /v1/messages"),
      );
      const { headers } = server.requests[0]!;
      assertEquals(own(headers), [
        ["accept", "text/event-stream"],
        ["anthropic-version", "2026-10-21"],
        ["authorization", `Bearer ${testKey}`],
        ["content-type", "application/json"],
        ["user-agent", "Anthropic/JS 1.14.0"],
      ]);
    });
    assertEquals(printed, []);
    const after = Object.fromEntries(Object.keys(hostile).map((name) => [name, process.env[name]]));
    assertEquals(after as { readonly [name: string]: string }, hostile);
  });

  test("the policy's headers, in place of its own where they have the same name", async () => {
    const headers = {
      "anthropic-beta": "one,two",
      "X-Api-Key": "gateway-key",
      "Authorization": "Basic Zm9v",
    };
    await withMessagesServer([answer], async (server) => {
      await listen(testModel(`${server.url}/gateway/`, { headers }));
      const sent = Object.fromEntries(server.requests[0]!.headers);
      assertEquals(server.requests[0]!.path, "/gateway/v1/messages");
      assertEquals(
        [sent["anthropic-beta"], sent["x-api-key"], sent["authorization"]],
        ["one,two", "gateway-key", "Basic Zm9v"],
      );
    });
  });

  test("to the API's own address when the policy names none, never to the one of the environment", async () => {
    const asked: string[] = [];
    const refuse = (input: unknown) => {
      asked.push(String(input));
      return Promise.reject(new TypeError("no network in this test"));
    };
    globalThis.fetch = Object.assign(refuse, { preconnect() {} });
    const { baseUrl: _, ...unset } = settings("");
    const failure = await failureOf(() =>
      listen(anthropicModel(unset, { key: () => Promise.resolve(testKey) }))
    );
    assertEquals(asked, ["https://api.anthropic.com/v1/messages"]);
    assertEquals(failure.code, "unreachable");
  });

  for (
    const baseUrl of [
      "",
      "api.example",
      "file:///etc/passwd",
      "https://u:p@host",
      "https://h/?a=1",
      "data:,x",
    ]
  ) {
    test(`nothing to \`${baseUrl}\``, async () => {
      const failure = await failureOf(() => listen(testModel(baseUrl)));
      assertEquals([failure.code, failure.retryable], ["invalid_base_url", false]);
    });
  }

  test("nothing with a header that cannot be one", async () => {
    for (const headers of [{ "a b": "x" }, { "x-a": "line\nbreak: sk" }]) {
      const failure = await failureOf(() => listen(testModel("http://127.0.0.1:9", { headers })));
      assertEquals([failure.code, failure.retryable], ["invalid_header", false]);
      assertEquals(failure.message.includes("break"), false);
    }
  });
});
