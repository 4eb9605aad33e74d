// One request from the first check to the answer. Routes come from the table of operations; the order of the checks is here.
import { randomUUID } from "node:crypto";
import { type Context, Hono } from "hono";
import { authenticate, type Gatekeeper, preflight, refusedAtDoor, sharedWith } from "./admission.ts";
import { bodyOf, checkRequest } from "./check_request.ts";
import type { Answer, Call, Operation, Service } from "./operation.ts";
import { type Occurrence, problemResponse } from "./problem.ts";
import type { Rates } from "./rate.ts";
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
  const answer = async (request: Request): Promise<Response> => {
    const refused = refusedAtDoor(request.headers, keeper) ?? preflight(request, keeper) ??
      authenticated(surface, open, request);
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
  return async (request) => {
    ids.set(request, requestIdOf(request.headers));
    const response = await answer(request);
    for (const [name, value] of Object.entries(sharedWith(request.headers, keeper))) {
      response.headers.set(name, value);
    }
    return response;
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
  const checked = checkRequest(operation, {
    url: request.url,
    headers: request.headers,
    path: context.req.param(),
  }, body.value);
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
