// Refusals as RFC 9457 problems: one line for each code, and the one way in which they are answered.

/** Every code that an answer may carry, with its status. The title is the same for all occurrences; `detail` says the rest. */
export const problems = {
  "bad-request": { status: 400, title: "the request does not fit its schema" },
  "bad-cursor": { status: 400, title: "the cursor names no place in this log" },
  unauthorized: { status: 401, title: "a token is needed" },
  forbidden: { status: 403, title: "the token does not have the role" },
  "origin-denied": { status: 403, title: "pages of this origin may not call" },
  "policy-forbids": { status: 403, title: "the policy does not allow this" },
  "session-not-found": { status: 404, title: "there is no such session" },
  "turn-not-found": { status: 404, title: "there is no such turn" },
  "skill-not-found": { status: 404, title: "there is no such skill" },
  "permission-not-found": { status: 404, title: "there is no such permission" },
  "route-not-found": { status: 404, title: "there is no such route" },
  "method-not-allowed": { status: 405, title: "the route does not have this method" },
  "session-busy": { status: 409, title: "a turn of the session is running" },
  "session-closed": { status: 409, title: "the session has ended" },
  "turn-ended": { status: 409, title: "the turn has ended" },
  "workspace-busy": { status: 409, title: "another session works in this workspace" },
  "permission-resolved": { status: 409, title: "the permission has another answer" },
  "not-owner": { status: 409, title: "another process holds the session" },
  "cursor-expired": { status: 410, title: "what the cursor names is not kept any more" },
  "permission-expired": { status: 410, title: "the time for an answer is over" },
  "precondition-failed": { status: 412, title: "the session has changed" },
  "body-too-large": { status: 413, title: "the body is too large" },
  "unsupported-media-type": { status: 415, title: "the body must be JSON" },
  "host-denied": { status: 421, title: "this host is not served here" },
  "policy-invalid": { status: 422, title: "the policy cannot be loaded" },
  "idempotency-mismatch": { status: 422, title: "the key was used for another request" },
  "too-many-turns": { status: 429, title: "too many turns are running" },
  "too-many-sessions": { status: 429, title: "too many sessions are open" },
  "queue-full": { status: 429, title: "the queue of the session is full" },
  "rate-limited": { status: 429, title: "too many requests" },
  "internal-error": { status: 500, title: "an error in writ itself" },
  draining: { status: 503, title: "the server is going down" },
  "not-ready": { status: 503, title: "the server is not ready" },
  "too-many-streams": { status: 503, title: "too many streams are open" },
} as const satisfies { readonly [code: string]: { readonly status: number; readonly title: string } };

export type ProblemCode = keyof typeof problems;

export type Occurrence = {
  readonly code: ProblemCode;
  /** One sentence: what was found, what was expected, what to do. */
  readonly detail: string;
  /** Members of this code beside those that every problem has. */
  readonly members?: { readonly [name: string]: unknown };
  /** Seconds; 429 and 503 always say some, 1 to 5 where this is absent. */
  readonly retryAfter?: number;
  readonly headers?: { readonly [name: string]: string };
};

/** The answer, `instance` naming the request. Never carries more of the request than its id. */
export function problemResponse(occurrence: Occurrence, requestId: string): Response {
  const { code, detail, members = {}, headers = {} } = occurrence;
  const { status, title } = problems[code];
  const body = { ...members, type: `urn:writ:problem:${code}`, title, status, detail, instance: requestId };
  return new Response(`${JSON.stringify(body)}\n`, {
    status,
    headers: {
      "content-type": "application/problem+json",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "x-request-id": requestId,
      ...(status === 429 || status === 503
        ? { "retry-after": String(Math.max(1, Math.ceil(occurrence.retryAfter ?? jittered()))) }
        : {}),
      ...headers,
    },
  });
}

// Clients that were refused together must not come back together.
function jittered(): number {
  return 1 + Math.floor(Math.random() * 5);
}
