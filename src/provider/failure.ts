// What went wrong outside, as ModelFailure: stable codes, whether asking again may help, and never a secret.
import { ModelFailure } from "../agent/ports.ts";
import type { KeySource } from "../core/policy.ts";
import { describeSource } from "../load/secret.ts";
import { isObject } from "../core/text.ts";

/** What a message may name; `scrub` removes secrets from text that came from outside. */
export type FailureContext = {
  /** Origin and path of the endpoint. */
  readonly endpoint: string;
  readonly model: string;
  readonly keySource: KeySource;
  scrub(text: string): string;
};

/** An error of the SDK for an answer with a status. */
type StatusError = Error & { readonly status: number; readonly headers?: Headers; readonly error?: unknown };

const longestDetail = 300;
const passingStreamErrors = new Set([
  "overloaded_error",
  "api_error",
  "rate_limit_error",
  "timeout_error",
  // One that does not say what it is.
  "stream_error",
]);
const contextFull =
  /prompt is too long|too many (?:input )?tokens|context (?:window|length|limit)|maximum context/i;

export function isStatusError(error: unknown): error is StatusError {
  return error instanceof Error && "status" in error && typeof error.status === "number";
}

/** An answer other than 2xx. Of a body that was cut, nothing is told. */
export function statusFailure(
  error: StatusError,
  context: FailureContext,
  body: "whole body" | "cut body",
): ModelFailure {
  const { status } = error;
  const headers = error.headers ?? new Headers();
  const detail = body === "cut body" ? "" : detailOf(error, context);
  const kind = statusKind(status, detail, context);
  const asked = headers.get("x-should-retry");
  const retryable = asked === "true" || (asked !== "false" && kind.retryable === true);
  const retryAfterMs = retryable ? retryAfter(headers) : undefined;
  const location = status >= 300 && status < 400
    ? ` to ${shownOrigin(headers.get("location"), context)}`
    : "";
  return new ModelFailure(
    kind.code,
    `\`${context.endpoint}\` answered ${status}${location}${detail === "" ? "" : `: ${detail}`}${
      shownRequest(headers, context)
    }`,
    {
      status,
      retryable,
      ...(kind.hint === undefined ? {} : { hint: kind.hint }),
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    },
  );
}

type Kind = { readonly code: string; readonly retryable?: boolean; readonly hint?: string };

function statusKind(status: number, detail: string, context: FailureContext): Kind {
  if (status < 400) {
    return {
      code: "redirected",
      hint:
        "redirects are not followed, since they would carry the key elsewhere; set `model.base_url` to the final address",
    };
  }
  if (status >= 500) return { code: status === 529 ? "overloaded" : "server_error", retryable: true };
  switch (status) {
    case 401:
      return { code: "authentication", hint: `check the key in ${describeSource(context.keySource)}` };
    case 403:
      return {
        code: "permission",
        hint: `check what the key in ${describeSource(context.keySource)} is allowed to use`,
      };
    case 404:
      return {
        code: "model_not_found",
        hint:
          `check \`model.name\` (now \`${context.model}\`) and \`model.base_url\` (now \`${context.endpoint}\`)`,
      };
    case 408:
      return { code: "request_timeout", retryable: true };
    case 409:
      return { code: "conflict", retryable: true };
    case 413:
      return { code: "context_full" };
    case 429:
      return { code: "rate_limited", retryable: true };
    default:
      return { code: status === 400 && contextFull.test(detail) ? "context_full" : "invalid_request" };
  }
}

/** An `error` event within a stream; `error` is its member of that name. */
export function streamErrorFailure(error: unknown, scrub: (text: string) => string): ModelFailure {
  const type = isObject(error) && typeof error.type === "string" && /^[a-z][a-z_]{0,63}$/.test(error.type)
    ? error.type
    : "stream_error";
  const detail = isObject(error) && typeof error.message === "string" ? oneLine(scrub(error.message)) : "";
  const full = type === "invalid_request_error" && contextFull.test(detail);
  return new ModelFailure(
    full ? "context_full" : type,
    `the reply stream ended with \`${type}\`${detail === "" ? "" : `: ${detail}`}`,
    { retryable: passingStreamErrors.has(type) },
  );
}

/** An answer of status 200 that is no stream of events, such as a portal's or a web site's page. */
export function notAStream(contentType: string, context: FailureContext): ModelFailure {
  const found = oneLine(context.scrub(contentType)).slice(0, 80);
  return new ModelFailure(
    "not_a_stream",
    `\`${context.endpoint}\` answered with \`${found}\`, expected \`text/event-stream\``,
    {
      hint: "check that `model.base_url` names an endpoint that speaks the Anthropic Messages API",
    },
  );
}

/** No answer at all: name not known, connection refused or lost, no trust in the certificate. */
export function unreachable(error: Error, context: FailureContext): ModelFailure {
  const told = causes(error).replaceAll(new URL(context.endpoint).host, "…");
  const reason = connectionFaults.find(({ pattern }) => pattern.test(told))?.reason ??
    "the connection failed";
  return new ModelFailure("unreachable", `\`${context.endpoint}\` could not be reached: ${reason}`, {
    retryable: true,
    hint: reason === untrusted
      ? "name the file with your certificate authority in `NODE_EXTRA_CA_CERTS`"
      : "check `model.base_url`, the network, and the proxy variables `HTTPS_PROXY` and `NO_PROXY`",
    cause: new Error(context.scrub(told)),
  });
}

const untrusted = "its certificate is not trusted here";

// Each runtime has its own words; ours are the same in all, since they stand in the log.
const connectionFaults: readonly { readonly pattern: RegExp; readonly reason: string }[] = [
  { pattern: /certificate|self.signed|unknownissuer|unable_to_verify|_CERT\b/i, reason: untrusted },
  { pattern: /ENOTFOUND|EAI_AGAIN|dns error|getaddrinfo/i, reason: "its name could not be resolved" },
  { pattern: /ECONNREFUSED|refused/i, reason: "the connection was refused" },
  { pattern: /ENETUNREACH|EHOSTUNREACH|unreachable|no route/i, reason: "there is no route to it" },
  { pattern: /ETIMEDOUT|timed? ?out/i, reason: "the connection timed out" },
  {
    pattern: /ECONNRESET|EPIPE|reset|closed|before message completed/i,
    reason: "the connection was lost before an answer came",
  },
];

// The SDK says "Connection error."; what happened stands in the causes.
function causes(error: Error): string {
  const told: string[] = [];
  let current: unknown = error;
  for (let depth = 0; depth < 5 && current instanceof Error; depth++) {
    told.push("code" in current && typeof current.code === "string" ? current.code : "", current.message);
    current = current.cause;
  }
  return told.join(" ");
}

export function cancelled(): ModelFailure {
  return new ModelFailure("cancelled", "the model request was cancelled");
}

/** Removes every occurrence of the given texts. */
export function scrubber(secrets: readonly string[]): (text: string) => string {
  const known = secrets.filter((secret) => secret !== "").sort((a, b) => b.length - a.length);
  return (text) => known.reduce((rest, secret) => rest.replaceAll(secret, "[redacted]"), text);
}

/** One line of bounded length, for texts of others that go into a message. */
function oneLine(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > longestDetail ? `${line.slice(0, longestDetail).toWellFormed()}…` : line;
}

function detailOf(error: StatusError, context: FailureContext): string {
  const body = error.error;
  const inner = isObject(body) && isObject(body.error) ? body.error.message : undefined;
  if (typeof inner === "string") return oneLine(context.scrub(inner));
  const rest = error.message.replace(/^\d{3} /, "");
  return rest === "status code (no body)" ? "" : oneLine(context.scrub(rest));
}

// `retry-after-ms` is what the API sends; `retry-after` holds seconds or a date.
function retryAfter(headers: Headers): number | undefined {
  const ms = decimal(headers.get("retry-after-ms"));
  if (ms !== undefined) return Math.ceil(ms);
  const text = headers.get("retry-after");
  const seconds = decimal(text);
  if (seconds !== undefined) return Math.ceil(seconds * 1000);
  const date = text === null ? NaN : Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}

function decimal(text: string | null): number | undefined {
  return text !== null && /^\d{1,12}(?:\.\d{1,6})?$/.test(text.trim()) ? Number(text) : undefined;
}

// What the provider's support asks for.
function shownRequest(headers: Headers, context: FailureContext): string {
  const id = context.scrub(headers.get("request-id") ?? "");
  return /^[\w-]{1,64}$/.test(id) ? ` (request \`${id}\`)` : "";
}

function shownOrigin(location: string | null, context: FailureContext): string {
  if (location === null || !URL.canParse(location, context.endpoint)) return "an unknown place";
  return `\`${context.scrub(new URL(location, context.endpoint).origin)}\``;
}
