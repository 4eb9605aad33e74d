// Who may speak at all: what is looked at before anything is routed, in this order.
import type { Occurrence } from "./problem.ts";
import type { Credential, Tokens } from "./tokens.ts";

export type Gatekeeper = {
  readonly tokens: Tokens;
  /** Values of `Host` in lower case. */
  readonly hosts: readonly string[];
  readonly origins: readonly string[];
  /** Pages of this server itself may call: it serves some. */
  readonly ownOrigin: boolean;
};

/** Host, then origin. Undefined: both are in order. A page of elsewhere that reaches this server by a name of its own fails at the first. */
export function refusedAtDoor(headers: Headers, keeper: Gatekeeper): Occurrence | undefined {
  const host = (headers.get("host") ?? "").toLowerCase();
  if (!keeper.hosts.includes(host)) {
    return {
      code: "host-denied",
      detail: `\`Host: ${shown(host)}\` is not served here; expected ${
        keeper.hosts.map((h) => `\`${h}\``).join(", ")
      }; other names are listed in \`server.hosts\``,
    };
  }
  const origin = headers.get("origin");
  if (origin === null || keeper.origins.includes(origin)) return undefined;
  // The host was checked above, so a page with this origin came from here.
  if (keeper.ownOrigin && origin === `http://${host}`) return undefined;
  return {
    code: "origin-denied",
    detail: `pages of \`${shown(origin)}\` may not call; origins are listed in \`server.origins\``,
  };
}

/** The token of a request, or why there is none. */
export function authenticate(headers: Headers, tokens: Tokens): Credential | Occurrence {
  const header = headers.get("authorization");
  const secret = /^Bearer +([\x21-\x7e]{1,512})$/i.exec(header ?? "")?.[1];
  const found = secret === undefined ? undefined : tokens.find(secret);
  return found ?? {
    code: "unauthorized",
    detail: header === null
      ? "send `Authorization: Bearer TOKEN`; `writ serve` prints at its start which file holds the token"
      : "the token is not known; `writ serve` prints at its start which file holds the tokens",
    headers: { "www-authenticate": "Bearer" },
  };
}

// A header is somebody else's text: bounded, and with nothing that breaks a line.
function shown(value: string): string {
  return value.replace(/[^\x20-\x7e]/g, "?").slice(0, 100);
}

/** What a browser must be told before a page of this origin may read the answer; nothing for origins that are not listed. */
export function sharedWith(headers: Headers, { origins }: Gatekeeper): { readonly [name: string]: string } {
  const origin = headers.get("origin");
  if (origin === null || !origins.includes(origin)) return {};
  return {
    "access-control-allow-origin": origin,
    "access-control-expose-headers": "etag, idempotency-replayed, link, location, retry-after, x-request-id",
    vary: "origin",
  };
}

/** The answer to a browser that asks first whether a page of a listed origin may call; it has no token to show. */
export function preflight(request: Request, keeper: Gatekeeper): Response | undefined {
  const shared = sharedWith(request.headers, keeper);
  const asks = request.method === "OPTIONS" && request.headers.has("access-control-request-method");
  if (!asks || Object.keys(shared).length === 0) return undefined;
  return new Response(null, {
    status: 204,
    headers: {
      ...shared,
      "access-control-allow-methods": "GET, POST, PATCH, DELETE",
      "access-control-allow-headers":
        "authorization, content-type, idempotency-key, if-match, if-none-match, last-event-id, prefer, x-request-id",
      "access-control-max-age": "600",
    },
  });
}
