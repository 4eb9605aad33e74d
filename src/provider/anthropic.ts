// The Anthropic Messages API through its SDK: one streamed request per reply. Nothing ambient reaches the SDK: no
// variables, no profiles on disk, no redirects, no retries, no log, no telemetry.
import type { BaseAnthropic } from "@anthropic-ai/sdk/client";
import process from "node:process";
import { type Model, ModelFailure, type ReplyListener } from "../agent/ports.ts";
import type { ModelReply } from "../core/message.ts";
import type { ModelSettings } from "../core/policy.ts";
import {
  cancelled,
  type FailureContext,
  isStatusError,
  notAStream,
  scrubber,
  statusFailure,
  streamErrorFailure,
  unreachable,
} from "./failure.ts";
import type { KeyReader } from "./key.ts";
import { notUnderstood, replyStream, streamCut } from "./reply_stream.ts";
import { watch, type Watchdog } from "./watchdog.ts";
import { type EncodedRequest, encodeRequest } from "./wire.ts";

const defaultBaseUrl = "https://api.anthropic.com";
/** How long the end of an answer may lag behind the last event before the connection is given up. */
const lingerMs = 200;

/**
 * A model behind `settings.baseUrl`. `reply` throws ModelFailure for all that goes wrong outside, `cancelled` included,
 * and passes on what the listener throws. It asks once; asking again is the loop's business, except that a refused key is
 * read anew, once, and tried if it has changed.
 */
export function anthropicModel(settings: ModelSettings, options: { readonly key: KeyReader }): Model {
  return {
    provider: "anthropic",
    async reply(request, on, signal) {
      const endpoint = checkedEndpoint(settings);
      const encoded = encodeRequest(request, settings.request);
      const attempt = async (key: string) => {
        if (signal.aborted) throw cancelled();
        const context: FailureContext = {
          endpoint,
          model: request.model,
          keySource: settings.apiKey,
          scrub: scrubber([key, ...secretHeaders(settings.headers)]),
        };
        return await ask({ settings, key, encoded, on, signal, context });
      };
      const key = await options.key();
      try {
        return await attempt(key);
      } catch (failure) {
        if (!(failure instanceof ModelFailure) || failure.status !== 401) throw failure;
        const newKey = await options.key("again");
        if (newKey === key) throw failure;
        return await attempt(newKey);
      }
    },
  };
}

type Ask = {
  readonly settings: ModelSettings;
  readonly key: string;
  readonly encoded: EncodedRequest;
  readonly on: ReplyListener;
  readonly signal: AbortSignal;
  readonly context: FailureContext;
};

async function ask({ settings, key, encoded, on, signal, context }: Ask): Promise<ModelReply> {
  const watchdog = watch(settings, signal);
  try {
    const client = await makeClient(settings, key, watchdog);
    const { data, response } = await outside(
      watchdog,
      context,
      () => post(client, encoded.body, watchdog.signal),
    );
    const contentType = response.headers.get("content-type") ?? "nothing said";
    if (!contentType.includes("text/event-stream")) throw notAStream(contentType, context);
    const events = data[Symbol.asyncIterator]();
    const reply = replyStream(on, { toolName: encoded.toolName, scrub: context.scrub });
    while (!reply.complete) {
      const next = await inStream(watchdog, context, () => events.next());
      if (next.done === true) break;
      reply.take(next.value);
    }
    const whole = reply.reply();
    await readToEnd(events);
    return whole;
  } finally {
    watchdog.close();
  }
}

// The SDK reads one variable that no option replaces: the headers in ANTHROPIC_CUSTOM_HEADERS. It is out of sight while
// the client is made, which takes no turn of the event loop.
async function makeClient(settings: ModelSettings, key: string, watchdog: Watchdog): Promise<BaseAnthropic> {
  const { BaseAnthropic } = await import("./sdk.ts");
  const ambientHeaders = process.env.ANTHROPIC_CUSTOM_HEADERS;
  if (ambientHeaders !== undefined) delete process.env.ANTHROPIC_CUSTOM_HEADERS;
  try {
    return new BaseAnthropic({
      apiKey: key,
      authToken: null,
      credentials: null,
      config: null,
      profile: null,
      webhookKey: null,
      baseURL: settings.baseUrl ?? defaultBaseUrl,
      maxRetries: 0,
      // Ours comes first; the SDK's own ends with the answer's first line.
      timeout: Math.min(settings.timeoutMs + 5000, 2 ** 31 - 1),
      fetch: watchdog.fetch,
      fetchOptions: {},
      middleware: [],
      defaultQuery: {},
      defaultHeaders: { ...withoutPlatform, ...settings.headers },
      logLevel: "off",
      logger: silent,
      openTelemetry: false,
      dangerouslyAllowBrowser: false,
    });
  } finally {
    if (ambientHeaders !== undefined) process.env.ANTHROPIC_CUSTOM_HEADERS = ambientHeaders;
  }
}

const silent = { error() {}, warn() {}, info() {}, debug() {} };

/** What the SDK would tell about this machine. */
const withoutPlatform = {
  "x-stainless-arch": null,
  "x-stainless-lang": null,
  "x-stainless-os": null,
  "x-stainless-package-version": null,
  "x-stainless-retry-count": null,
  "x-stainless-runtime": null,
  "x-stainless-runtime-version": null,
  "x-stainless-timeout": null,
};

// `post` and not `messages.create`: that one warns about old models on the console, past the logger. The body is text
// already, so that its bytes are ours.
function post(
  client: BaseAnthropic,
  body: string,
  signal: AbortSignal,
): Promise<{ readonly data: AsyncIterable<unknown>; readonly response: Response }> {
  return client.post<AsyncIterable<unknown>>("/v1/messages", {
    body,
    stream: true,
    signal,
    headers: { "content-type": "application/json", accept: "text/event-stream" },
  }).withResponse();
}

async function outside<T>(watchdog: Watchdog, context: FailureContext, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    // An error's body may stall; its status has said enough then.
    if (isStatusError(error) && watchdog.failure?.code !== "cancelled") {
      throw statusFailure(error, context, watchdog.failure === undefined ? "whole body" : "cut body");
    }
    if (watchdog.failure !== undefined) throw watchdog.failure;
    if (error instanceof Error && /^APIConnection(Timeout)?Error$/.test(error.name)) {
      throw unreachable(error, context);
    }
    throw error;
  }
}

// The SDK ends the iteration without a word when the request was aborted, so the reason is asked for in both cases.
async function inStream(
  watchdog: Watchdog,
  context: FailureContext,
  next: () => Promise<IteratorResult<unknown>>,
): Promise<IteratorResult<unknown>> {
  let result: IteratorResult<unknown>;
  try {
    result = await next();
  } catch (error) {
    if (watchdog.failure !== undefined) throw watchdog.failure;
    if (error instanceof SyntaxError) throw notUnderstood("an event is not JSON");
    if (error instanceof Error && "error" in error && "type" in error) {
      throw streamErrorFailure((error.error as { error?: unknown } | undefined)?.error, context.scrub);
    }
    throw streamCut();
  }
  if (result.done === true && watchdog.failure !== undefined) throw watchdog.failure;
  return result;
}

// A connection can be used again only if its answer was read to the end.
async function readToEnd(events: AsyncIterator<unknown>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const linger = new Promise<void>((resolve) => timer = setTimeout(resolve, lingerMs));
  const rest = async () => {
    while ((await events.next()).done !== true);
  };
  await Promise.race([rest().catch(() => {}), linger]);
  clearTimeout(timer);
}

function checkedEndpoint(settings: ModelSettings): string {
  const text = settings.baseUrl ?? defaultBaseUrl;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const plain = url !== undefined && /^https?:$/.test(url.protocol) && url.username === "" &&
    url.password === "" &&
    url.search === "" && url.hash === "";
  if (!plain) {
    throw new ModelFailure("invalid_base_url", "`model.base_url` is not an address that can be asked", {
      hint: "expected `https://host` or `https://host/path`, without user, password, `?` and `#`",
    });
  }
  for (const [name, value] of Object.entries(settings.headers)) {
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name) || !/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) {
      throw new ModelFailure(
        "invalid_header",
        `\`model.headers\` holds a header that cannot be sent: \`${name}\``,
      );
    }
  }
  return `${url.origin}${url.pathname}`.replace(/\/$/, "");
}

function secretHeaders(headers: { readonly [name: string]: string }): string[] {
  return Object.entries(headers).filter(([name]) => /auth|key|token|secret|cookie/i.test(name)).map((
    [, value],
  ) => value);
}
