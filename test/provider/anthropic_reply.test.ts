// Replies of the real SDK against a loopback server: what a stream becomes.
import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { type PlannedResponse, streamEvents, withMessagesServer } from "../support/messages_server.ts";
import { listen, replyTo, request, testModel } from "./setup.ts";

const usage = { input: 10, output: 20, cacheRead: 0, cacheWrite: 0 };
const call = (more: object) => ({ type: "tool_use", id: "toolu_0", name: "read_file", ...more });

type Case = {
  readonly name: string;
  readonly planned: PlannedResponse;
  readonly stop: string;
  readonly content: unknown;
};
const deep = (levels: number) => `{"a":${"[".repeat(levels)}${"]".repeat(levels)}}`;

const cases: readonly Case[] = [
  {
    name: "text",
    planned: { blocks: [{ text: "hello" }] },
    stop: "end",
    content: [{ type: "text", text: "hello" }],
  },
  {
    name: "text that the block begins with",
    planned: {
      blocks: [{ start: { type: "text", text: "a" }, deltas: [{ type: "text_delta", text: "b" }] }],
    },
    stop: "end",
    content: [{ type: "text", text: "ab" }],
  },
  {
    name: "a call in many fragments",
    planned: { blocks: [{ tool: "read_file", input: { path: "a/é.md", lines: [1, 2] }, pieces: 9 }] },
    stop: "tool_use",
    content: [call({ input: { path: "a/é.md", lines: [1, 2] } })],
  },
  {
    name: "a call with no input at all",
    planned: { blocks: [{ tool: "read_file", input: "" }] },
    stop: "tool_use",
    content: [call({ input: {} })],
  },
  {
    name: "a call whose input comes at once",
    planned: { blocks: [{ start: call({ input: { path: "x" } }) as never }], stop: "tool_use" },
    stop: "tool_use",
    content: [call({ input: { path: "x" } })],
  },
  {
    name: "a call whose input is a list",
    planned: { blocks: [{ tool: "read_file", input: "[1]" }] },
    stop: "tool_use",
    content: [call({ input: {}, malformed: "[1]" })],
  },
  {
    name: "a call whose input is no JSON",
    planned: { blocks: [{ tool: "read_file", input: '{"path": "x' }] },
    stop: "tool_use",
    content: [call({ input: {}, malformed: '{"path": "x' })],
  },
  {
    name: "a call whose input is nested too deep",
    planned: { blocks: [{ tool: "read_file", input: deep(100) }] },
    stop: "tool_use",
    content: [call({ input: {}, malformed: deep(100) })],
  },
  {
    name: "brackets within strings are no nesting",
    planned: { blocks: [{ tool: "read_file", input: JSON.stringify({ a: `\\"${"[".repeat(200)}` }) }] },
    stop: "tool_use",
    content: [call({ input: { a: `\\"${"[".repeat(200)}` } })],
  },
  {
    name: "thinking, redacted thinking and a kind that is not known",
    planned: {
      blocks: [
        { thinking: "let me see", signature: "c2ln" },
        { start: { type: "redacted_thinking", data: "xyz" } },
        {
          start: { type: "novel", title: "T", notes: "", input: {} },
          deltas: [
            { type: "novel_delta", notes: "one " },
            { type: "novel_delta", notes: "two", rank: 3 },
            { type: "input_json_delta", partial_json: '{"q":' },
            { type: "input_json_delta", partial_json: "1}" },
            { type: "citations_delta", citation: { n: 1 } },
            { type: "citations_delta", citation: { n: 2 } },
          ],
        },
        { text: "done" },
      ],
    },
    stop: "end",
    content: [
      { type: "opaque", value: { type: "thinking", thinking: "let me see", signature: "c2ln" } },
      { type: "opaque", value: { type: "redacted_thinking", data: "xyz" } },
      {
        type: "opaque",
        value: {
          type: "novel",
          title: "T",
          notes: "one two",
          input: { q: 1 },
          rank: 3,
          citations: [{ n: 1 }, { n: 2 }],
        },
      },
      { type: "text", text: "done" },
    ],
  },
  {
    name: "the last call is cut when the tokens are used up",
    planned: {
      blocks: [{ text: "so" }, { tool: "read_file", input: { a: 1 } }, { tool: "read_file", input: '{"a":' }],
      stop: "max_tokens",
    },
    stop: "max_tokens",
    content: [
      { type: "text", text: "so" },
      { type: "tool_use", id: "toolu_1", name: "read_file", input: { a: 1 } },
      { type: "tool_use", id: "toolu_2", name: "read_file", input: {}, malformed: '{"a":', cut: true },
    ],
  },
  {
    name: "valid JSON does not save the last call",
    planned: { blocks: [{ tool: "read_file", input: { a: 1 } }], stop: "max_tokens" },
    stop: "max_tokens",
    content: [call({ input: { a: 1 }, cut: true })],
  },
  {
    name: "text cut for want of tokens",
    planned: { blocks: [{ text: "and then" }], stop: "max_tokens" },
    stop: "max_tokens",
    content: [{ type: "text", text: "and then" }],
  },
  { name: "nothing", planned: { blocks: [] }, stop: "end", content: [] },
  { name: "stop_sequence", planned: { stop: "stop_sequence" }, stop: "end", content: [] },
  { name: "refusal", planned: { stop: "refusal" }, stop: "refusal", content: [] },
  {
    name: "a full context",
    planned: { stop: "model_context_window_exceeded" },
    stop: "context_full",
    content: [],
  },
  { name: "pause_turn", planned: { stop: "pause_turn" }, stop: "other", content: [] },
  { name: "a reason of tomorrow", planned: { stop: "tired" }, stop: "other", content: [] },
];

describe("anthropicModel() reads a stream", () => {
  for (const { name, planned, stop, content } of cases) {
    test(name, async () => {
      const { reply } = await replyTo(planned);
      assertEquals(reply as unknown, { stop, content, usage });
    });
  }

  test("as the same reply however its bytes are split", async () => {
    const planned: PlannedResponse = {
      blocks: [
        { thinking: "Überlegung 思考", signature: "s" },
        { text: "Prüfung 合并前检查 🙂", pieces: 5 },
        { tool: "read_file", input: { path: "目录/ü🙂.md" }, pieces: 7 },
      ],
    };
    const whole = await replyTo(planned);
    for (const chunk of [1, 2, 3, 7, 64]) {
      assertEquals(await replyTo({ ...planned, chunk }), whole, `chunks of ${chunk}`);
    }
    assertEquals(await replyTo({ ...planned, framing: "close" }), whole, "until the connection ends");
    assertEquals(await replyTo({ ...planned, chunk: 200, dripMs: 1 }), whole, "piece by piece");
  });

  test("telling text as it comes, and the end of every block", async () => {
    const { heard } = await replyTo({
      blocks: [{ thinking: "hm", signature: "s" }, { text: "abcdef", pieces: 3 }, { tool: "read_file" }],
    });
    assertEquals(heard, ["|", "ab", "cd", "ef", "|", "|"]);
  });

  test("with the usage of its last word", async () => {
    const events = streamEvents({
      blocks: [{ text: "x" }],
      usage: {
        input_tokens: 5,
        cache_read_input_tokens: 70,
        cache_creation_input_tokens: 8,
        output_tokens: -3,
      },
    });
    const delta = { type: "message_delta", delta: { stop_reason: "end_turn" } };
    const late = events.map(([name, data]) =>
      name === "message_delta"
        ? [name, {
          ...delta,
          usage: { output_tokens: 9, input_tokens: 6, cache_read_input_tokens: null },
        }] as const
        : [name, data] as const
    );
    const { reply } = await replyTo({ events: late });
    assertEquals(reply.usage, { input: 6, output: 9, cacheRead: 70, cacheWrite: 8 });
  });

  test("marking a call as cut that never ended", async () => {
    const events = streamEvents({ blocks: [{ tool: "read_file", input: { a: 1 } }] })
      .filter(([name]) => name !== "content_block_stop");
    const { reply } = await replyTo({ events });
    assertEquals(reply as unknown, {
      stop: "tool_use",
      content: [call({ input: { a: 1 }, cut: true })],
      usage,
    });
  });

  test("leaving out events that are not known", async () => {
    const [first, ...rest] = streamEvents({ blocks: [{ text: "x" }] });
    const { reply } = await replyTo({
      events: [["prelude", { type: "prelude" }], first!, ["novelty", { type: "novelty", x: 1 }], ...rest],
    });
    assertEquals(reply.content, [{ type: "text", text: "x" }]);
  });

  test("without waiting for a connection that stays open behind the last event", async () => {
    await withMessagesServer([{ blocks: [{ text: "x" }], stallAt: 100_000 }], async (server) => {
      const { reply } = await listen(testModel(server.url));
      assertEquals(reply.content, [{ type: "text", text: "x" }]);
      // Given up, not left behind.
      await server.idle();
    });
  });

  test("with a large input", async () => {
    const text = "x".repeat(3_000_000);
    const { reply } = await replyTo({ blocks: [{ tool: "read_file", input: { text }, pieces: 50 }] });
    assertEquals(reply.content, [{ type: "tool_use", id: "toolu_0", name: "read_file", input: { text } }]);
  });

  test("under limits that no timer can hold", async () => {
    const { reply } = await replyTo({ blocks: [{ text: "x" }] }, {
      timeoutMs: 2 ** 40,
      idleTimeoutMs: 2 ** 40,
    });
    assertEquals(reply.content, [{ type: "text", text: "x" }]);
  });

  test("several on one model, side by side and one after the other", async () => {
    const plan = (_: unknown, index: number) => ({
      blocks: [{ text: `reply ${index}`, pieces: 4 }],
      chunk: 50,
      dripMs: 1,
    });
    await withMessagesServer(plan, async (server) => {
      const model = testModel(server.url);
      const replies = await Promise.all([listen(model), listen(model), listen(model)]);
      replies.push(await listen(model));
      assertEquals(
        replies.map(({ heard }) => heard.join("")).sort(),
        ["reply 0|", "reply 1|", "reply 2|", "reply 3|"],
      );
      assertEquals(new Set(server.requests.map(({ body }) => body)).size, 1);
    });
  });

  test("passing on what the listener throws", async () => {
    const thrown = new RangeError("the log is full");
    await withMessagesServer([{ blocks: [{ text: "x" }] }], async (server) => {
      let caught: unknown;
      try {
        const on = {
          text() {
            throw thrown;
          },
          blockEnd() {},
        };
        await testModel(server.url).reply(request(), on, new AbortController().signal);
      } catch (error) {
        caught = error;
      }
      assertEquals(caught === thrown, true);
    });
  });
});
