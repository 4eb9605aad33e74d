// One request from the first check to the answer. Routes come from the table of operations; the order of the checks is here.
import { createHash, randomUUID } from "node:crypto";
import { type Context, Hono } from "hono";
import * as v from "valibot";
import { isObject } from "../core/text.ts";
import { authenticate, type Gatekeeper, refusedAtDoor } from "./admission.ts";
import type { Answer, Call, Operation, Service, TextSchema } from "./operation.ts";
import { type Occurrence, problemResponse } from "./problem.ts";
import type { Rates } from "./rate.ts";
import { bodyLimit, readBody } from "./read_body.ts";
import type { Credential } from "./tokens.ts";

export type Surface = {
  readonly operations: readonly Operation[];
  readonly service: Service;
  readonly keeper: Gatekeeper;
  readonly rates: Rates;
  /** Told of a fault of Writ itself; the client only learns that there was one. */
  readonly onFault: (error: unknown, requestId: string) => void;
  /** Files that need no token, by path. */
  readonly assets?: (path: string) => Response | undefined;
};

/** Answers every request; never rejects. */
export function createApp(surface: Surface): (request: Request) => Promise<Response> {
  const { operations, keeper } = surface;
  const app = new Hono();
  const open = new Set(operations.filter((o) => o.role === undefined).map((o) => o.path));
  for (const operation of operations) {
    app.on(operation.method, operation.path, (context) => perform(surface, operation, context));
  }
  app.notFound(({ req }) => noRoute(operations, req.method, req.path, idOf(req.raw)));
  app.onError((error, { req }) => fault(surface, error, idOf(req.raw)));
  return async (request) => {
    ids.set(request, requestIdOf(request.headers));
    const refused = refusedAtDoor(request.headers, keeper) ?? authenticated(surface, open, request);
    if (refused instanceof Response) return refused;
    if (refused !== undefined) return problemResponse(refused, idOf(request));
    // The router would run the whole GET for it, streams too, and throw the body away.
    if (request.method === "HEAD" && credentials.has(request)) {
      return noRoute(operations, "HEAD", pathOf(request), idOf(request));
    }
    try {
      return await app.fetch(request);
    } catch (error) {
      return fault(surface, error, idOf(request));
    }
  };
}

const ids = new WeakMap<Request, string>();
const credentials = new WeakMap<Request, Credential>();

function idOf(request: Request): string {
  return ids.get(request) ?? "";
}

function requestIdOf(headers: Headers): string {
  const given = headers.get("x-request-id");
  return given !== null && /^[\x21-\x7e]{1,128}$/.test(given) ? given : randomUUID();
}

// Everything but what is open to all needs a token, also a path that leads nowhere: strangers learn nothing of the routes.
function authenticated(
  surface: Surface,
  open: ReadonlySet<string>,
  request: Request,
): Occurrence | Response | undefined {
  const path = pathOf(request);
  if (open.has(path)) return undefined;
  const asset = request.method === "GET" || request.method === "HEAD" ? surface.assets?.(path) : undefined;
  if (asset !== undefined) return asset;
  const found = authenticate(request.headers, surface.keeper.tokens);
  if ("code" in found) return found;
  credentials.set(request, found);
  return undefined;
}

function pathOf(request: Request): string {
  return /^[a-z+]+:\/\/[^/?#]*([^?#]*)/i.exec(request.url)?.[1] ?? "";
}

async function perform(surface: Surface, operation: Operation, context: Context): Promise<Response> {
  const { service } = surface;
  const request = context.req.raw;
  const requestId = idOf(request);
  const credential = credentials.get(request) ?? nobody;
  const refused = refusedByRole(operation, credential) ?? refusedByDrain(operation, service);
  if (refused !== undefined) return problemResponse(refused, requestId);
  const body = await bodyOf(operation, request);
  if ("code" in body) return problemResponse(body, requestId);
  const slow = refusedByRate(surface, operation, credential);
  if (slow !== undefined) return problemResponse(slow, requestId);
  const checked = check(operation, context, body.value);
  if ("code" in checked) return problemResponse(checked, requestId);
  const key = request.headers.get("idempotency-key");
  const call: Call<unknown, unknown, unknown> = {
    service,
    caller: credential.caller,
    credential,
    ...checked,
    headers: request.headers,
    requestId,
    ...(key === null ? {} : {
      idempotency: {
        key,
        bodyHash: body.hash,
        scope: `${credential.caller.name} ${operation.method} ${pathOf(request)}`,
      },
    }),
  };
  return toResponse(await operation.run(call), requestId);
}

const nobody: Credential = {
  caller: { name: "", roles: [], profiles: [], sessions: "own" },
  hash: "",
};

function refusedByRole({ role, id }: Operation, { caller }: Credential): Occurrence | undefined {
  if (role === undefined || caller.roles.includes(role)) return undefined;
  return {
    code: "forbidden",
    detail: `the token \`${caller.name}\` lacks the role \`${role}\`, which \`${id}\` needs`,
    members: { needRole: role },
  };
}

function refusedByDrain({ startsWork }: Operation, { host }: Service): Occurrence | undefined {
  if (startsWork === undefined || !host.draining()) return undefined;
  return {
    code: "draining",
    detail:
      "the server is going down and starts no more work; ask another one, or this one after its restart",
    headers: { connection: "close" },
  };
}

type Body = { readonly value: unknown; readonly hash: string };

const noBody: Body = { value: undefined, hash: sha256(new Uint8Array()) };

async function bodyOf(operation: Operation, request: Request): Promise<Body | Occurrence> {
  if (operation.body === undefined) return noBody;
  const type = request.headers.get("content-type") ?? "";
  if (!/^application\/json\s*(;|$)/i.test(type)) {
    return { code: "unsupported-media-type", detail: "send the body as `Content-Type: application/json`" };
  }
  const read = await readBody(request, bodyLimit);
  if (!read.ok && read.fault === "too-large") {
    return {
      code: "body-too-large",
      detail: `the body is larger than ${bodyLimit} bytes`,
      members: { limit: bodyLimit },
    };
  }
  if (!read.ok) return { code: "bad-request", detail: "the body did not arrive whole" };
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(read.bytes);
    const value: unknown = text.trim() === "" ? {} : JSON.parse(text);
    // An object's schema takes a list for one without members.
    if (isObject(value)) return { value, hash: sha256(read.bytes) };
    return { code: "bad-request", detail: "the body is JSON, but no object" };
  } catch {
    return { code: "bad-request", detail: "the body is no JSON in UTF-8" };
  }
}

function refusedByRate(
  { rates }: Surface,
  operation: Operation,
  { hash }: Credential,
): Occurrence | undefined {
  if (operation.rate === undefined) return undefined;
  const wait = rates.take(hash, operation.rate === undefined ? "" : String(operation.rate), operation.rate);
  if (wait === undefined) return undefined;
  return {
    code: "rate-limited",
    detail: `the token may send ${operation.rate} of these a second`,
    members: { limit: operation.rate },
  };
}

type Checked = { readonly params: unknown; readonly query: unknown; readonly body: unknown };

function check(operation: Operation, { req }: Context, body: unknown): Checked | Occurrence {
  const key = req.raw.headers.get("idempotency-key");
  if (
    operation.headers?.includes("Idempotency-Key") === true && key !== null &&
    !/^[\x21-\x7e]{8,128}$/.test(key)
  ) {
    return { code: "bad-request", detail: "`Idempotency-Key` must be 8 to 128 visible characters of ASCII" };
  }
  const query = queryOf(req.url);
  if (typeof query === "string") {
    return { code: "bad-request", detail: `the query names \`${query.slice(0, 64)}\` more than once` };
  }
  const parts: readonly (readonly [string, TextSchema | v.GenericSchema | undefined, unknown])[] = [
    ["path", operation.params, req.param()],
    ["query", operation.query ?? (Object.keys(query).length === 0 ? undefined : noQuery), query],
    ["body", operation.body, body],
  ];
  const errors: { readonly path: string; readonly message: string }[] = [];
  const values = parts.map(([part, schema, value]) => {
    if (schema === undefined) return undefined;
    const result = v.safeParse(schema, value);
    if (result.success) return result.output;
    for (const issue of result.issues.slice(0, 20)) {
      errors.push({ path: placeOf(part, issue), message: wordsOf(issue) });
    }
    return undefined;
  });
  if (errors.length > 0) {
    const [first] = errors;
    return { code: "bad-request", detail: `${first?.path}: ${first?.message}`, members: { errors } };
  }
  return { params: values[0], query: values[1], body: values[2] };
}

const noQuery = v.strictObject({});

/** The members of a query; or a name that it has twice, of which no reading would be right. */
function queryOf(url: string): { readonly [name: string]: string } | string {
  const start = url.indexOf("?");
  if (start < 0) return {};
  const entries = [...new URLSearchParams(url.slice(start + 1).replace(/#.*$/s, ""))];
  const names = new Set(entries.map(([name]) => name));
  if (names.size === entries.length) return Object.fromEntries(entries);
  return entries.find(([name], i) => entries.findIndex(([other]) => other === name) < i)?.[0] ?? "";
}

function placeOf(part: string, issue: v.BaseIssue<unknown>): string {
  const steps = (issue.path ?? []).map((item) => String(item.key).slice(0, 64));
  return [part, ...steps].join(".");
}

// What was sent is not repeated: it may be a secret in the wrong place.
function wordsOf(issue: v.BaseIssue<unknown>): string {
  if (issue.type === "strict_object" && issue.expected === "never") return "this member is not known";
  if (issue.type === "strict_object" && issue.received === "undefined") return "this member is missing";
  const own = issue.message.startsWith("Invalid ") ? undefined : issue.message;
  return own === undefined ? `expected ${issue.expected ?? "another value"}` : `expected ${own}`;
}

function toResponse(answer: Answer, requestId: string): Response {
  if (answer instanceof Response) {
    answer.headers.set("x-request-id", requestId);
    return answer;
  }
  if ("refused" in answer) return problemResponse(answer.refused, requestId);
  const { status, value, headers } = answer;
  return new Response(status === 204 || status === 304 ? null : `${JSON.stringify(value)}\n`, {
    status,
    headers: {
      ...(status === 204 || status === 304 ? {} : { "content-type": "application/json" }),
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "x-request-id": requestId,
      ...headers,
    },
  });
}

function noRoute(
  operations: readonly Operation[],
  method: string,
  path: string,
  requestId: string,
): Response {
  const others = operations.filter((o) => fits(o.path, path)).map((o) => o.method);
  if (others.length === 0) {
    return problemResponse({
      code: "route-not-found",
      detail: "no operation has this path; `GET /v1/openapi.json` lists them",
    }, requestId);
  }
  return problemResponse({
    code: "method-not-allowed",
    detail: `\`${method}\` is not among the methods of this path: ${others.join(", ")}`,
    headers: { allow: others.join(", ") },
  }, requestId);
}

function fits(pattern: string, path: string): boolean {
  const steps = path.split("/");
  const wanted = pattern.split("/");
  return steps.length === wanted.length &&
    wanted.every((step, i) => step.startsWith(":") || step === steps[i]);
}

function fault({ onFault }: Surface, error: unknown, requestId: string): Response {
  onFault(error, requestId);
  return problemResponse({
    code: "internal-error",
    detail:
      "this is an error in writ itself; its log on standard error has the place, by the id of this request",
  }, requestId);
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
