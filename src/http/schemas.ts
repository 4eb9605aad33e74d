// Shapes that several operations share, on the wire: what is checked on the way in and promised on the way out.
import * as v from "valibot";

const text = v.string();
const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const time = v.pipe(v.string(), v.isoTimestamp());
const anything = v.record(v.string(), v.unknown());
const optional = v.exactOptional;

/** A number in a path or query, as a number. */
export function numberText(most: number, about: string) {
  return v.pipe(
    v.string(),
    v.description(about),
    v.regex(/^\d{1,15}$/, "a whole number, zero or more"),
    v.transform(Number),
    v.maxValue(most, `at most ${most}`),
  );
}

export const sessionId = v.pipe(v.string(), v.description("of the session"));
export const sessionParams = v.strictObject({ session: sessionId });
export const turnParams = v.strictObject({
  session: sessionId,
  turn: v.pipe(v.string(), v.description("of the turn")),
});
export const pageQuery = {
  limit: optional(numberText(1000, "most items of one answer; default 100")),
  cursor: optional(v.pipe(v.string(), v.description("`next` of the answer before"))),
};

/** A member that JSON may hold, bounded so that a log stays readable. */
export const labels = v.pipe(
  v.record(
    v.pipe(
      v.string(),
      v.regex(
        /^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/,
        "a name of at most 63 letters, digits, `.`, `_`, `/`, `-`",
      ),
    ),
    v.pipe(v.string(), v.maxLength(256, "at most 256 characters")),
  ),
  v.maxEntries(32, "at most 32 entries"),
);

const usageSchema = v.object({ input: count, output: count, cacheRead: count, cacheWrite: count });

const deniedSchema = v.object({ call: text, tool: text, reason: text, unanswered: v.boolean() });

export const problemSchema = v.object({
  type: v.pipe(text, v.regex(/^urn:writ:problem:[a-z-]+$/)),
  title: text,
  status: count,
  detail: text,
  instance: v.pipe(text, v.description("the id of the request")),
  errors: optional(v.array(v.object({ path: text, message: text }))),
});

export const sessionStatus = v.picklist(["idle", "queued", "running", "waiting_permission", "closed"]);

/** A page of a list; `next` is the cursor of the one after it. */
export function pageOf<S extends v.GenericSchema>(item: S) {
  return v.object({ items: v.array(item), next: optional(text) });
}

export const sessionSchema = v.object({
  id: text,
  title: optional(text),
  status: sessionStatus,
  lastSeq: count,
  turn: optional(v.pipe(text, v.description("the turn that is running or was last"))),
  queueDepth: count,
  activeSkills: v.array(v.object({ name: text, version: optional(text), by: text })),
  policyRevision: text,
  model: text,
  workspace: text,
  profile: optional(text),
  owner: optional(v.pipe(text, v.description("the name of the token that made it"))),
  labels: optional(labels),
  metadata: optional(anything),
  usage: usageSchema,
  costUsd: optional(v.number()),
  createdAt: time,
  updatedAt: time,
});

export const turnSchema = v.object({
  id: text,
  status: v.picklist([
    "queued",
    "running",
    "waiting_permission",
    "cancelling",
    "completed",
    "failed",
    "cancelled",
    "interrupted",
  ]),
  stopReason: optional(text),
  output: optional(v.object({ text, structured: optional(v.unknown()) })),
  error: optional(v.object({ code: text, message: text })),
  denied: v.array(deniedSchema),
  usage: usageSchema,
  costUsd: optional(v.number()),
  firstSeq: optional(count),
  lastSeq: optional(count),
});

export const permissionStatus = v.picklist(["pending", "resolved", "expired"]);
export const permissionParams = v.strictObject({
  session: sessionId,
  permission: v.pipe(v.string(), v.description("of the question")),
});

export const permissionSchema = v.object({
  id: text,
  session: text,
  turn: optional(text),
  status: permissionStatus,
  call: text,
  tool: text,
  input: anything,
  inputSha256: text,
  risk: text,
  sourcedBy: v.array(text),
  preview: optional(text),
  causes: v.array(anything),
  rule: optional(v.pipe(text, v.description("the rule that a session's answer would be"))),
  maxScope: v.picklist(["once", "session"]),
  requestedAt: time,
  expiresAt: optional(time),
  onTimeout: v.picklist(["deny"]),
  decision: optional(v.picklist(["allow", "deny"])),
  resolvedBy: optional(text),
  seq: optional(count),
});

export const skillSchema = v.object({
  name: text,
  description: text,
  version: optional(text),
  source: text,
  triggers: v.array(text),
  allowedTools: optional(v.array(text)),
  forced: v.boolean(),
  sha256: text,
  warnings: v.array(text),
  body: optional(text),
});

/** What is wrong in a file, as the command line says it. */
export const policyProblem = v.object({
  code: text,
  severity: v.picklist(["error", "warning"]),
  message: text,
  at: optional(v.object({ file: text, line: count, col: count })),
  expected: optional(text),
  hint: optional(text),
});

export const eventSchema = v.object({
  seq: v.pipe(v.number(), v.integer(), v.minValue(1)),
  ts: time,
  session: text,
  turn: optional(count),
  type: text,
  data: anything,
  prev: text,
  hash: text,
});

/** These stand once in the API document, by their name. */
export const named = {
  Problem: problemSchema,
  Session: sessionSchema,
  Turn: turnSchema,
  Permission: permissionSchema,
  Skill: skillSchema,
  Event: eventSchema,
  Usage: usageSchema,
  PolicyProblem: policyProblem,
} as const;
