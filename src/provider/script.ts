// A model that answers from a list: for tests, demonstrations and scenario files. No network, the same ids every time.
import * as v from "valibot";
import { type Model, ModelFailure } from "../agent/ports.ts";
import { type Args, type AssistantBlock, type Json, type ModelReply, noUsage } from "../core/message.ts";
import { type Loaded, nearest, type Problem } from "../core/problem.ts";
import { isObject } from "../core/text.ts";
import { parseYaml, type YamlDocument, type YamlPath } from "../load/yaml.ts";
import { cancelled } from "./failure.ts";

/** The answer to one request: what is said, what is called, or how the provider fails. */
export type ScriptReply = {
  readonly text: string;
  readonly calls: readonly { readonly tool: string; readonly args: Args }[];
  readonly stop: "end" | "tool_use" | "max_tokens" | "refusal";
  readonly fail?: ScriptFailure;
};
export type ScriptFailure = {
  readonly code: string;
  readonly message: string;
  readonly status?: number;
  readonly retryable: boolean;
};

/** Positions of the values below a script's list; a YamlDocument is one. */
export type ScriptPlaces = Pick<YamlDocument, "at" | "keyAt">;

const longestScript = 1024 * 1024;

const toolCall = v.pipe(
  v.custom<{ readonly [tool: string]: unknown }>(isObject, "a mapping of one tool name to its arguments"),
  v.check((call) => Object.keys(call).length === 1, "exactly one tool name"),
  v.rawTransform(({ dataset, addIssue, NEVER }) => {
    const [tool = "", args] = Object.entries(dataset.value)[0] ?? [];
    // `call: {git_diff: }` reads as no value: no arguments.
    if (args === null) return { tool, args: {} };
    if (isObject(args) && isJson(args)) return { tool, args };
    addIssue({
      message: "a mapping of argument names to JSON values",
      input: args,
      path: [{ type: "object", origin: "value", input: dataset.value, key: tool, value: args }],
    });
    return NEVER;
  }),
);

const failure = v.strictObject({
  code: v.pipe(v.string("a code"), v.regex(/^[a-z][a-z0-9_]*$/, "lower case words joined by `_`")),
  message: v.optional(v.string("text")),
  status: v.optional(
    v.pipe(v.number("a status"), v.integer("a status"), v.minValue(400, "a status from 400")),
  ),
  retryable: v.optional(v.boolean("true or false")),
}, "a mapping");

const reply = v.pipe(
  v.strictObject({
    text: v.optional(v.string("text")),
    call: v.optional(toolCall),
    calls: v.optional(v.array(toolCall, "a list of calls")),
    stop: v.optional(v.picklist(["end", "max_tokens", "refusal"], "`end`, `max_tokens` or `refusal`")),
    fail: v.optional(failure),
  }, "a mapping with `text`, `call`, `calls`, `stop` or `fail`"),
  v.check((r) => Object.keys(r).length > 0, "at least one of `text`, `call`, `calls`, `stop`, `fail`"),
  v.check((r) => r.call === undefined || r.calls === undefined, "`call` or `calls`, not both"),
  v.check(
    (r) => r.fail === undefined || Object.keys(r).length === 1,
    "`fail` alone: a failed request says nothing",
  ),
);

const replyKeys = ["text", "call", "calls", "stop", "fail"];
const failureKeys = ["code", "message", "status", "retryable"];

/** Reads a script file: a YAML list, one entry per model request. All faults at once, each with its place. */
export function loadScript(text: string, file: string): Loaded<readonly ScriptReply[]> {
  const document = parseYaml(text, file, longestScript);
  return document.ok ? checkScript(document.value.value, document.value) : document;
}

/** Checks a list that stands in another file; `places` knows positions relative to the list. */
export function checkScript(value: unknown, places: ScriptPlaces): Loaded<readonly ScriptReply[]> {
  const parsed = v.safeParse(v.array(reply, "a list with one entry per model request"), value);
  if (!parsed.success) return { ok: false, problems: parsed.issues.map((issue) => toProblem(issue, places)) };
  return { ok: true, value: parsed.output.map(toReply), problems: [] };
}

/**
 * Answers request after request from the list, beginning behind the first `start` entries. Ids of calls are
 * `call_<request>_<index>`, both from 1; usage is zero. Throws ModelFailure `script_ended` when the list is at its end.
 */
export function scriptModel(
  replies: readonly ScriptReply[],
  { start = 0 }: { readonly start?: number } = {},
): Model {
  let requests = start;
  return {
    provider: "script",
    async reply(_request, on, signal) {
      if (signal.aborted) throw cancelled();
      const next = replies[requests++];
      if (next === undefined) {
        throw new ModelFailure("script_ended", `the script has no reply for model request ${requests}`, {
          hint: `it has ${replies.length}; add what the model should say next`,
        });
      }
      if (next.fail !== undefined) {
        const { code, message, retryable, status } = next.fail;
        throw new ModelFailure(code, message, { retryable, ...(status === undefined ? {} : { status }) });
      }
      if (next.text !== "") {
        on.text(next.text);
        on.blockEnd();
      }
      const content = toContent(next, requests);
      for (const block of content) if (block.type === "tool_use") on.blockEnd();
      return { stop: next.stop, content, usage: noUsage } satisfies ModelReply;
    },
  };
}

function toContent(reply: ScriptReply, request: number): AssistantBlock[] {
  const text: AssistantBlock[] = reply.text === "" ? [] : [{ type: "text", text: reply.text }];
  const calls = reply.calls.map(({ tool, args }, index): AssistantBlock => ({
    type: "tool_use",
    id: `call_${request}_${index + 1}`,
    name: tool,
    input: args,
    ...(reply.stop === "max_tokens" && index === reply.calls.length - 1 ? { cut: true } : {}),
  }));
  return [...text, ...calls];
}

function toReply(entry: v.InferOutput<typeof reply>): ScriptReply {
  const calls = entry.calls ?? (entry.call === undefined ? [] : [entry.call]);
  const { fail } = entry;
  return {
    text: entry.text ?? "",
    calls,
    stop: entry.stop ?? (calls.length > 0 ? "tool_use" : "end"),
    ...(fail === undefined ? {} : {
      fail: {
        code: fail.code,
        message: fail.message ?? `scripted failure \`${fail.code}\``,
        retryable: fail.retryable ?? false,
        ...(fail.status === undefined ? {} : { status: fail.status }),
      },
    }),
  };
}

function toProblem(issue: v.BaseIssue<unknown>, places: ScriptPlaces): Problem {
  const steps = issue.path ?? [];
  const path: YamlPath = steps.map((step) => step.key as string | number);
  const name = String(path.at(-1) ?? "");
  if (issue.type === "strict_object" && issue.expected === "never") {
    const known = path.includes("fail") ? failureKeys : replyKeys;
    const meant = nearest(name, known);
    return {
      code: "unknown-key",
      severity: "error",
      message: `\`${name}\` is not a key of a script's ${path.includes("fail") ? "failure" : "reply"}`,
      at: places.keyAt(path),
      expected: known.map((key) => `\`${key}\``).join(", "),
      ...(meant === undefined ? {} : { hint: `did you mean \`${meant}\`?` }),
    };
  }
  const missing = issue.type === "strict_object" && steps.at(-1)?.origin === "key";
  return {
    code: missing ? "missing-key" : "wrong-value",
    severity: "error",
    message: missing ? `\`${name}\` is missing` : `${describePlace(path)} is ${describe(issue.input)}`,
    at: places.at(path),
    ...(missing ? {} : { expected: issue.message }),
  };
}

function describePlace(path: YamlPath): string {
  const last = path.at(-1);
  if (last === undefined) return "the script";
  return typeof last === "number" && path.length === 1 ? `reply ${last + 1}` : `\`${last}\``;
}

function describe(input: unknown): string {
  if (input === null || input === undefined) return "empty";
  if (Array.isArray(input)) return "a list";
  if (typeof input === "object") {
    const keys = Object.keys(input);
    return keys.length === 0
      ? "an empty mapping"
      : `a mapping of ${keys.map((key) => `\`${key}\``).join(", ")}`;
  }
  return `\`${String(input)}\``;
}

// YAML has numbers that JSON has not.
function isJson(value: unknown): value is Json {
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || value === null) {
    return typeof value === "string" || typeof value === "boolean" || value === null;
  }
  return Object.values(value).every(isJson);
}
