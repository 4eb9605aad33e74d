// What the tests of the model provider share: settings for a loopback server, a request, and replies with their deltas.
import { assert } from "@std/assert";
import { anthropicModel } from "../../src/provider/anthropic.ts";
import { type Model, ModelFailure } from "../../src/agent/ports.ts";
import type { Message, ModelReply, ModelRequest } from "../../src/core/message.ts";
import type { ModelSettings } from "../../src/core/policy.ts";
import { type PlannedResponse, withMessagesServer } from "../support/messages_server.ts";

export const testKey = "sk-test-0123456789abcdef";

export function settings(baseUrl: string, more: Partial<ModelSettings> = {}): ModelSettings {
  return {
    provider: "anthropic",
    name: "test-model",
    baseUrl,
    apiKey: { env: "TEST_KEY" },
    headers: {},
    request: {},
    maxOutputTokens: 1024,
    contextTokens: 200_000,
    timeoutMs: 20_000,
    idleTimeoutMs: 20_000,
    retries: 0,
    ...more,
  };
}

export const question: Message = { role: "user", content: [{ type: "text", text: "review this" }] };

export function request(more: Partial<ModelRequest> = {}): ModelRequest {
  return {
    model: "test-model",
    maxOutputTokens: 1024,
    system: "You work under a policy.",
    tools: [{ name: "read_file", description: "Reads.", inputSchema: { type: "object" } }],
    messages: [question],
    ...more,
  };
}

export function testModel(baseUrl: string, more: Partial<ModelSettings> = {}): Model {
  return anthropicModel(settings(baseUrl, more), { key: () => Promise.resolve(testKey) });
}

/** A reply with what the listener heard: texts, and `|` for the end of a block. */
export async function listen(
  model: Model,
  asked: ModelRequest = request(),
  signal: AbortSignal = new AbortController().signal,
): Promise<{ readonly reply: ModelReply; readonly heard: readonly string[] }> {
  const heard: string[] = [];
  const on = { text: (delta: string) => void heard.push(delta), blockEnd: () => void heard.push("|") };
  const reply = await model.reply(asked, on, signal);
  return { reply, heard };
}

/** The failure that `call` throws; anything else fails the test. */
export async function failureOf(call: () => Promise<unknown>): Promise<ModelFailure> {
  try {
    await call();
  } catch (error) {
    assert(error instanceof ModelFailure, `not a ModelFailure: ${error}`);
    return error;
  }
  throw new Error("no failure");
}

/** The reply to one request that the server answers as planned. */
export function replyTo(planned: PlannedResponse, more: Partial<ModelSettings> = {}) {
  return withMessagesServer([planned], (server) => listen(testModel(server.url, more)));
}

/** The failure of one request that the server answers as planned. */
export function failureTo(
  planned: PlannedResponse,
  more: Partial<ModelSettings> = {},
): Promise<ModelFailure> {
  return failureOf(() => replyTo(planned, more));
}

/** What a caller sees of a failure, with the server's port taken out. */
export function seen(failure: ModelFailure): { readonly [key: string]: unknown } {
  const { code, message, status, retryable, retryAfterMs, hint } = failure;
  const port = (text: string) => text.replace(/127\.0\.0\.1:\d+/g, "HOST");
  return {
    code,
    message: port(message),
    retryable,
    ...(status === undefined ? {} : { status }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(hint === undefined ? {} : { hint: port(hint) }),
  };
}
