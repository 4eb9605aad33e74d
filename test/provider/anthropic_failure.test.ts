// What the real SDK meets when the provider, or the way to it, misbehaves: stable codes, and no leaked key.
import { assert, assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { anthropicModel } from "../../src/provider/anthropic.ts";
import {
  type PlannedResponse,
  startMessagesServer,
  streamEvents,
  withMessagesServer,
} from "../support/messages_server.ts";
import { failureOf, failureTo, listen, seen, settings, testKey, testModel } from "./setup.ts";

const apiError = (type: string, message: string) => ({ type: "error", error: { type, message } });
const stream = { "content-type": "text/event-stream" };
const text = { blocks: [{ text: "some text" }] };

describe("anthropicModel() reports a status", () => {
  type Row = { readonly name: string; readonly planned: PlannedResponse; readonly failure: object };
  const answered = (status: number, detail: string) =>
    `\`http://HOST\` answered ${status}: ${detail} (request \`req_test\`)`;
  const rows: readonly Row[] = [
    {
      name: "400",
      planned: { status: 400, body: apiError("invalid_request_error", "max_tokens: too big") },
      failure: {
        code: "invalid_request",
        status: 400,
        message: answered(400, "max_tokens: too big"),
        retryable: false,
      },
    },
    {
      name: "400, context full",
      planned: {
        status: 400,
        body: apiError("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
      },
      failure: {
        code: "context_full",
        status: 400,
        message: answered(400, "prompt is too long: 9 tokens > 8 maximum"),
        retryable: false,
      },
    },
    {
      name: "401",
      planned: { status: 401, body: apiError("authentication_error", "invalid bearer token") },
      failure: {
        code: "authentication",
        status: 401,
        message: answered(401, "invalid bearer token"),
        retryable: false,
        hint: "check the key in the environment variable `TEST_KEY`",
      },
    },
    {
      name: "403",
      planned: { status: 403, body: apiError("permission_error", "no") },
      failure: {
        code: "permission",
        status: 403,
        message: answered(403, "no"),
        retryable: false,
        hint: "check what the key in the environment variable `TEST_KEY` is allowed to use",
      },
    },
    {
      name: "404",
      planned: { status: 404, body: apiError("not_found_error", "model: test-model") },
      failure: {
        code: "model_not_found",
        status: 404,
        message: answered(404, "model: test-model"),
        retryable: false,
        hint: "check `model.name` (now `test-model`) and `model.base_url` (now `http://HOST`)",
      },
    },
    {
      name: "404 of something else",
      planned: {
        status: 404,
        body: "<html>\n  not   here\n</html>",
        headers: { "content-type": "text/html" },
      },
      failure: {
        code: "model_not_found",
        status: 404,
        message: answered(404, "<html> not here </html>"),
        retryable: false,
        hint: "check `model.name` (now `test-model`) and `model.base_url` (now `http://HOST`)",
      },
    },
    {
      name: "408",
      planned: { status: 408, body: apiError("timeout_error", "slow") },
      failure: { code: "request_timeout", status: 408, message: answered(408, "slow"), retryable: true },
    },
    {
      name: "409",
      planned: { status: 409, body: apiError("conflict", "again") },
      failure: { code: "conflict", status: 409, message: answered(409, "again"), retryable: true },
    },
    {
      name: "413",
      planned: { status: 413, body: apiError("request_too_large", "32 MB") },
      failure: { code: "context_full", status: 413, message: answered(413, "32 MB"), retryable: false },
    },
    {
      name: "429 with seconds",
      planned: {
        status: 429,
        headers: { "retry-after": "7" },
        body: apiError("rate_limit_error", "slow down"),
      },
      failure: {
        code: "rate_limited",
        status: 429,
        message: answered(429, "slow down"),
        retryable: true,
        retryAfterMs: 7000,
      },
    },
    {
      name: "429 with milliseconds before seconds",
      planned: {
        status: 429,
        headers: { "retry-after": "7", "retry-after-ms": "120.5" },
        body: apiError("rate_limit_error", "slow down"),
      },
      failure: {
        code: "rate_limited",
        status: 429,
        message: answered(429, "slow down"),
        retryable: true,
        retryAfterMs: 121,
      },
    },
    {
      name: "429 with a date that has passed",
      planned: {
        status: 429,
        headers: { "retry-after": "Wed, 21 Oct 2015 07:28:00 GMT" },
        body: apiError("rate_limit_error", "slow down"),
      },
      failure: {
        code: "rate_limited",
        status: 429,
        message: answered(429, "slow down"),
        retryable: true,
        retryAfterMs: 0,
      },
    },
    {
      name: "429 with nonsense",
      planned: {
        status: 429,
        headers: { "retry-after": "soon" },
        body: apiError("rate_limit_error", "slow down"),
      },
      failure: { code: "rate_limited", status: 429, message: answered(429, "slow down"), retryable: true },
    },
    {
      name: "429 that says never",
      planned: {
        status: 429,
        headers: { "x-should-retry": "false", "retry-after": "7" },
        body: apiError("rate_limit_error", "spent"),
      },
      failure: { code: "rate_limited", status: 429, message: answered(429, "spent"), retryable: false },
    },
    {
      name: "400 that says again",
      planned: {
        status: 400,
        headers: { "x-should-retry": "true" },
        body: apiError("invalid_request_error", "odd"),
      },
      failure: { code: "invalid_request", status: 400, message: answered(400, "odd"), retryable: true },
    },
    {
      name: "500 without a body",
      planned: { status: 500, body: "" },
      failure: {
        code: "server_error",
        status: 500,
        message: "`http://HOST` answered 500 (request `req_test`)",
        retryable: true,
      },
    },
    {
      name: "503 with a long body",
      planned: { status: 503, body: "x".repeat(200_000) },
      failure: {
        code: "server_error",
        status: 503,
        message: answered(503, `${"x".repeat(300)}…`),
        retryable: true,
      },
    },
    {
      name: "529",
      planned: { status: 529, body: apiError("overloaded_error", "Overloaded") },
      failure: { code: "overloaded", status: 529, message: answered(529, "Overloaded"), retryable: true },
    },
    {
      name: "200 with a page",
      planned: { body: "<html>", headers: { "content-type": "text/html" } },
      failure: {
        code: "not_a_stream",
        message: "`http://HOST` answered with `text/html`, expected `text/event-stream`",
        retryable: false,
        hint: "check that `model.base_url` names an endpoint that speaks the Anthropic Messages API",
      },
    },
  ];
  for (const { name, planned, failure } of rows) {
    test(name, async () => assertEquals(seen(await failureTo(planned)) as object, failure));
  }

  test("429 with a date to come", async () => {
    const at = new Date(Date.now() + 3_600_000).toUTCString();
    const failure = await failureTo({ status: 429, headers: { "retry-after": at }, body: "" });
    const ms = failure.retryAfterMs ?? 0;
    assert(ms > 3_000_000 && ms <= 3_600_000, String(ms));
  });

  test("500 whose body never ends", async () => {
    const failure = await failureTo({ status: 500, body: "wait for it", stallAt: 4 }, { idleTimeoutMs: 50 });
    assertEquals([failure.code, failure.retryable], ["server_error", true]);
  });
});

describe("anthropicModel() does not follow", () => {
  for (const status of [301, 302, 303, 307, 308]) {
    test(`a redirect of status ${status}`, async () => {
      await withMessagesServer([text], async (other) => {
        const failure = await failureTo({
          status,
          headers: { location: `${other.url}/v1/messages?a=1` },
          body: "",
        });
        assertEquals(seen(failure), {
          code: "redirected",
          status,
          message: `\`http://HOST\` answered ${status} to \`http://HOST\` (request \`req_test\`)`,
          retryable: false,
          hint: "redirects are not followed, since they would carry the key elsewhere; " +
            "set `model.base_url` to the final address",
        });
        assertEquals(other.requests, []);
      });
    });
  }
});

describe("anthropicModel() reports what is not there", () => {
  test("as unreachable", async () => {
    const server = await startMessagesServer([]);
    await server.close();
    assertEquals(seen(await failureOf(() => listen(testModel(server.url)))), {
      code: "unreachable",
      message: "`http://HOST` could not be reached: the connection was refused",
      retryable: true,
      hint: "check `model.base_url`, the network, and the proxy variables `HTTPS_PROXY` and `NO_PROXY`",
    });
  });

  test("as unreachable when the connection is lost before the answer", async () => {
    for (const cutBy of ["end", "reset"] as const) {
      assertEquals(seen(await failureTo({ ...text, cutAt: -1, cutBy })), {
        code: "unreachable",
        message: "`http://HOST` could not be reached: the connection was lost before an answer came",
        retryable: true,
        hint: "check `model.base_url`, the network, and the proxy variables `HTTPS_PROXY` and `NO_PROXY`",
      });
    }
  });
});

describe("anthropicModel() and its key", () => {
  const refused = { status: 401, body: apiError("authentication_error", "no") };
  const withKeys = (url: string, keys: readonly string[]) => {
    const asked: (string | undefined)[] = [];
    const model = anthropicModel(settings(url), {
      key(how?: "again") {
        asked.push(how);
        return Promise.resolve(keys[asked.length - 1] ?? "none");
      },
    });
    return { model, asked };
  };
  const sent = (requests: readonly { readonly headers: readonly (readonly [string, string])[] }[]) =>
    requests.map(({ headers }) => Object.fromEntries(headers).authorization);

  test("are reconciled when a refused key was replaced", async () => {
    await withMessagesServer([refused, text, text], async (server) => {
      const { model, asked } = withKeys(server.url, ["old", "new", "new"]);
      assertEquals((await listen(model)).reply.stop, "end");
      assertEquals((await listen(model)).reply.stop, "end");
      assertEquals(sent(server.requests), ["Bearer old", "Bearer new", "Bearer new"]);
      assertEquals(asked, [undefined, "again", undefined]);
    });
  });

  test("are tried once more, not for ever", async () => {
    await withMessagesServer([refused, refused, text], async (server) => {
      const { model } = withKeys(server.url, ["old", "new", "newer"]);
      assertEquals((await failureOf(() => listen(model))).code, "authentication");
      assertEquals(sent(server.requests), ["Bearer old", "Bearer new"]);
    });
  });

  test("are not tried again when it is the same", async () => {
    await withMessagesServer([refused, text], async (server) => {
      const { model } = withKeys(server.url, ["old", "old"]);
      assertEquals((await failureOf(() => listen(model))).code, "authentication");
      assertEquals(sent(server.requests), ["Bearer old"]);
    });
  });

  test("stay apart from every message", async () => {
    const secret = "gateway-secret-value";
    const echo = `you sent ${testKey} and ${secret}`;
    const events = streamEvents(text);
    const planned: readonly PlannedResponse[] = [
      ...[400, 401, 403, 404, 429, 500].map((status) => ({ status, body: apiError("error", echo) })),
      { status: 400, body: `<html>${"x".repeat(290)}${echo}` },
      { status: 307, headers: { location: `http://${testKey}.example/` }, body: "" },
      { body: "", headers: { "content-type": testKey } },
      { ...text, error: { after: 0, type: "api_error", message: echo } },
      { ...text, error: { after: 0, type: testKey, message: echo } },
      { events: [["x", { type: "error", error: { type: "api_error", message: echo } }]] },
      { events: [events[0]!, ["content_block_stop", { type: "content_block_stop", index: testKey }]] },
      { status: 200, headers: stream, body: `event: error\ndata: ${echo}\n\n` },
      { ...text, cutAt: 300 },
      { ...text, cutAt: -1 },
      { status: 500, body: "", headers: { "request-id": testKey } },
    ];
    for (const plan of planned) {
      const failure = await failureTo(plan, { headers: { "x-gateway-token": secret } });
      const told = [failure.code, failure.message, failure.hint, failure.stack, String(failure.cause)].join(
        "\n",
      );
      assert(!told.includes(testKey) && !told.includes(secret), `${JSON.stringify(plan)}: ${told}`);
    }
  });
});
