// Streams that end early, say nonsense or fall silent: no half reply is ever taken, and every wait has an end.
import { assert, assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import type { ModelSettings } from "../../src/core/policy.ts";
import {
  type PlannedResponse,
  streamEvents,
  streamText,
  withMessagesServer,
} from "../support/messages_server.ts";
import { failureOf, failureTo, listen, request, seen, testModel } from "./setup.ts";

const stream = { "content-type": "text/event-stream" };
const text = { blocks: [{ text: "some text" }] };
const call = { blocks: [{ text: "I look." }, { tool: "read_file", input: { path: "a" } }] };

describe("anthropicModel() does not take a part for the whole", () => {
  const planned = {
    blocks: [{ text: "é" }, { tool: "shell", input: { command: "rm -rf build" }, pieces: 2 }],
  };
  const size = new TextEncoder().encode(streamText(planned)).length;
  const variants: readonly { readonly name: string; readonly how: PlannedResponse; readonly step: number }[] =
    [
      { name: "cut within chunks", how: {}, step: 1 },
      { name: "ended early", how: { framing: "close" }, step: 1 },
      { name: "reset", how: { cutBy: "reset" }, step: 23 },
    ];
  for (const { name, how, step } of variants) {
    test(`when the stream is ${name} at any byte`, async () => {
      const cuts = Array.from({ length: Math.ceil(size / step) }, (_, i) => i * step);
      const codes = new Set<string>();
      await withMessagesServer((_, i) => ({ ...planned, ...how, cutAt: cuts[i] ?? 0 }), async (server) => {
        const model = testModel(server.url);
        const asked = async () => {
          const failure = await failureOf(() => listen(model));
          codes.add(`${failure.code} ${failure.retryable}`);
        };
        for (let i = 0; i < cuts.length; i += 8) {
          await Promise.all(cuts.slice(i, i + 8).map(asked));
        }
        assertEquals(server.requests.length, cuts.length);
      });
      assertEquals([...codes], ["stream_cut true"]);
    }, 60_000);
  }

  test("and takes it when nothing is missing", async () => {
    await withMessagesServer([{ ...planned, framing: "close", cutAt: size }], async (server) => {
      assertEquals((await listen(testModel(server.url))).reply.stop, "tool_use");
    });
  });
});

describe("anthropicModel() reports within a stream", () => {
  const errors: readonly (readonly [type: string, message: string, code: string, retryable: boolean])[] = [
    ["overloaded_error", "Overloaded", "overloaded_error", true],
    ["api_error", "Internal", "api_error", true],
    ["rate_limit_error", "slow", "rate_limit_error", true],
    ["timeout_error", "late", "timeout_error", true],
    ["invalid_request_error", "bad", "invalid_request_error", false],
    ["invalid_request_error", "prompt is too long", "context_full", false],
    ["authentication_error", "who", "authentication_error", false],
    ["Not A Type\u001b[31m", "odd", "stream_error", true],
  ];
  for (const [type, message, code, retryable] of errors) {
    test(`the error \`${code}\`, ${message}`, async () => {
      const failure = await failureTo({ ...call, error: { after: 1, type, message } });
      const shown = code === "context_full" ? type : code;
      assertEquals(seen(failure), {
        code,
        message: `the reply stream ended with \`${shown}\`: ${message}`,
        retryable,
      });
    });
  }

  const good = streamEvents(call);
  const without = (...names: readonly string[]) => good.filter(([name]) => !names.includes(name));
  const blockStart = (index: number, content_block: object) =>
    ["content_block_start", { type: "content_block_start", index, content_block } as never] as const;
  const nested = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;
  const raw = (line: string) => ({ status: 200, headers: stream, body: line });
  const startText = `event: message_start\ndata: ${JSON.stringify(good[0]![1])}\n\n`;
  const bad: readonly (readonly [name: string, planned: PlannedResponse, found: string])[] = [
    ["data that is no JSON", raw("event: message_start\ndata: {no\n\n"), "an event is not JSON"],
    ["data that is no object", raw("event: message_start\ndata: 7\n\n"), "an event is not a JSON object"],
    [
      "no beginning",
      { events: without("message_start") },
      "`content_block_start` comes before the message begins",
    ],
    ["two beginnings", { events: [good[0]!, ...good] }, "`message_start` comes after the message begins"],
    [
      "a delta without its block",
      { events: without("content_block_start") },
      "no block is open at index `0`",
    ],
    ["a block that begins twice", { events: [good[0]!, good[2]!, good[2]!] }, "block `0` begins twice"],
    ["no stop reason", { events: without("message_delta") }, "the message ends without a stop reason"],
    ["a block without a type", { events: [good[0]!, blockStart(0, { text: "x" })] }, "a block has no type"],
    [
      "a call without an id",
      { events: [good[0]!, blockStart(0, { type: "tool_use", name: "x" })] },
      "a tool call has no id",
    ],
    [
      "a call without a name",
      { events: [good[0]!, blockStart(0, { type: "tool_use", id: "x" })] },
      "a tool call has no name",
    ],
    [
      "two calls of one id",
      { blocks: [{ tool: "a", id: "t" }, { tool: "b", id: "t" }] },
      "two tool calls have the id `t`",
    ],
    [
      "a block that is nested too deep",
      raw(
        `${startText}event: content_block_start\ndata: {"type":"content_block_start","index":0,` +
          `"content_block":{"type":"new","x":${nested(5_000)}}}\n\n`,
      ),
      "a block is nested deeper than 100 levels",
    ],
    [
      "a delta that is nested too deep",
      { blocks: [{ start: { type: "new" }, deltas: [{ type: "d", x: JSON.parse(nested(200)) }] }] },
      "a delta is nested deeper than 100 levels",
    ],
  ];
  for (const [name, planned, found] of bad) {
    test(name, async () => {
      assertEquals(seen(await failureTo(planned)), {
        code: "bad_stream",
        message: `the reply stream was not understood: ${found}`,
        retryable: true,
        hint: "check that `model.base_url` names an endpoint that speaks the Anthropic Messages API",
      });
    });
  }

  test("an end in the midst of garbage", async () => {
    for (
      const body of ["", "\n\n\n", ": comment\n\n", "\u0000\u0001 garbage \ufffd", "data: {}\n\n", startText]
    ) {
      assertEquals((await failureTo(raw(body))).code, "stream_cut", JSON.stringify(body));
    }
  });

  test("a stream without measure", async () => {
    const failure = await failureTo(raw(`${startText}: ${"x".repeat(65 * 1024 * 1024)}`));
    assertEquals(seen(failure), {
      code: "reply_too_large",
      message: "the reply stream is larger than 67108864 bytes",
      retryable: false,
    });
  });

  test("no crash at a million levels", async () => {
    const failure = await failureTo(
      raw(`${startText}event: novelty\ndata: {"type":"novelty","x":${nested(1_000_000)}}\n\n`),
    );
    assert(["stream_cut", "bad_stream"].includes(failure.code), failure.code);
  });
});

describe("anthropicModel() ends every wait", () => {
  const rows: readonly {
    readonly name: string;
    readonly planned: PlannedResponse;
    readonly more: Partial<ModelSettings>;
    readonly failure: readonly [code: string, retryable: boolean];
  }[] = [
    { name: "for an answer", planned: { stallAt: -1 }, more: { timeoutMs: 60 }, failure: ["timeout", true] },
    {
      name: "for the first byte of a body",
      planned: { ...text, stallAt: 0 },
      more: { idleTimeoutMs: 60 },
      failure: ["stream_stalled", true],
    },
    {
      name: "for the rest of a body",
      planned: { ...text, stallAt: 400 },
      more: { idleTimeoutMs: 60 },
      failure: ["stream_stalled", true],
    },
    {
      name: "for the end of a reply that only drips",
      planned: { blocks: [{ text: "x".repeat(5_000) }], chunk: 2, dripMs: 5 },
      more: { timeoutMs: 150 },
      failure: ["timeout", false],
    },
  ];
  for (const { name, planned, more, failure } of rows) {
    test(name, async () => {
      await withMessagesServer([planned], async (server) => {
        const { code, retryable } = await failureOf(() => listen(testModel(server.url, more)));
        assertEquals([code, retryable], [...failure]);
        // The connection is given up, not left behind.
        await server.idle();
      });
    });
  }

  test("but not one in which bytes come", async () => {
    const pings = Array.from({ length: 40 }, () => ["ping", { type: "ping" }] as const);
    const events = streamEvents(text).flatMap((event, i) => i === 2 ? [...pings, event] : [event]);
    const { reply } = await withMessagesServer(
      [{ events, chunk: 34, dripMs: 25 }],
      (server) => listen(testModel(server.url, { idleTimeoutMs: 900 })),
    );
    assertEquals(reply.content, [{ type: "text", text: "some text" }]);
  });

  test("of a caller who cancels", async () => {
    const cases: readonly (readonly [name: string, planned: PlannedResponse])[] = [
      ["before an answer", { stallAt: -1 }],
      ["in the midst of a stream", { ...text, stallAt: 500 }],
      ["in the midst of an error", { status: 500, body: "wait for it", stallAt: 4 }],
    ];
    for (const [name, planned] of cases) {
      const caller = new AbortController();
      await withMessagesServer(() => (setTimeout(() => caller.abort(), 50), planned), async (server) => {
        const failure = await failureOf(() => listen(testModel(server.url), request(), caller.signal));
        assertEquals([failure.code, failure.retryable], ["cancelled", false], name);
        await server.idle();
      });
    }
  });

  test("of a caller who cancels at the first word", async () => {
    const caller = new AbortController();
    await withMessagesServer(
      [{ blocks: [{ text: "abc", pieces: 3 }], chunk: 60, dripMs: 5 }],
      async (server) => {
        const on = { text: () => caller.abort(), blockEnd() {} };
        const failure = await failureOf(() => testModel(server.url).reply(request(), on, caller.signal));
        assertEquals(failure.code, "cancelled");
      },
    );
  });

  test("before it begins when the caller has cancelled already", async () => {
    await withMessagesServer([text], async (server) => {
      const failure = await failureOf(() => listen(testModel(server.url), request(), AbortSignal.abort()));
      assertEquals([failure.code, server.requests.length], ["cancelled", 0]);
    });
  });
});
