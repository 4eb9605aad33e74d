// What was sent against what the operation expects: faults are told by their place, and nothing of them is repeated.
import { createHash } from "node:crypto";
import * as v from "valibot";
import { isObject } from "../core/text.ts";
import type { Operation, TextSchema } from "./operation.ts";
import type { Occurrence } from "./problem.ts";
import { bodyLimit, readBody } from "./read_body.ts";

/** `hash` of its bytes, in hex. */
export type Body = { readonly value: unknown; readonly hash: string };

const noBody: Body = { value: undefined, hash: sha256(new Uint8Array()) };

/** The JSON object that was sent; where none is expected, nothing is read. */
export async function bodyOf(operation: Operation, request: Request): Promise<Body | Occurrence> {
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

export type Checked = { readonly params: unknown; readonly query: unknown; readonly body: unknown };

/** Path, query and body as their schemas make them, or every fault of all three. */
export function checkRequest(
  operation: Operation,
  { url, headers, path }: {
    readonly url: string;
    readonly headers: Headers;
    readonly path: { readonly [name: string]: string };
  },
  body: unknown,
): Checked | Occurrence {
  const key = headers.get("idempotency-key");
  if (
    operation.headers?.includes("Idempotency-Key") === true && key !== null &&
    !/^[\x21-\x7e]{8,128}$/.test(key)
  ) {
    return { code: "bad-request", detail: "`Idempotency-Key` must be 8 to 128 visible characters of ASCII" };
  }
  const query = queryOf(url);
  if (typeof query === "string") {
    return { code: "bad-request", detail: `the query names \`${query.slice(0, 64)}\` more than once` };
  }
  const parts: readonly (readonly [string, TextSchema | v.GenericSchema | undefined, unknown])[] = [
    ["path", operation.params, path],
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

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
