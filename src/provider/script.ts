// A model that answers from a list: for tests, demonstrations and scenario files. No network, the same ids every time.
import * as v from "valibot";
import { type Model, ModelFailure } from "../agent/ports.ts";
import { type Args, type AssistantBlock, type Json, type ModelReply, noUsage } from "../core/message.ts";
import type { Loaded } from "../core/problem.ts";
import { isObject } from "../core/text.ts";
import { checkValue } from "../load/check_value.ts";
import { parseYaml } from "../load/yaml.ts";
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

const longestScript = 1024 * 1024;

// `call: {git_diff: }` reads as no value: no arguments.
const args = v.pipe(
  v.custom<Args | null>(
    (value) => value === null || (isObject(value) && isJson(value)),
    "a mapping of argument names to JSON values",
  ),
  v.transform((value): Args => value ?? {}),
);

const toolCall = v.pipe(
  v.record(v.string("a tool name"), args, "a mapping of one tool name to its arguments"),
  v.check((call) => Object.keys(call).length === 1, "exactly one tool name"),
  v.transform((call) => {
    const [tool = "", given = {}] = Object.entries(call)[0] ?? [];
    return { tool, args: given };
  }),
);

const failure = v.strictObject({
  code: v.pipe(v.string("a code"), v.regex(/^[a-z][a-z0-9_]*$/, "lower case words joined by `_`")),
  message: v.exactOptional(v.string("text")),
  status: v.exactOptional(
    v.pipe(v.number("a status"), v.integer("a status"), v.minValue(400, "a status from 400")),
  ),
  retryable: v.exactOptional(v.boolean("true or false")),
}, "a mapping");

const reply = v.pipe(
  v.strictObject({
    text: v.exactOptional(v.string("text")),
    call: v.exactOptional(toolCall),
    calls: v.exactOptional(v.array(toolCall, "a list of calls")),
    stop: v.exactOptional(v.picklist(["end", "max_tokens", "refusal"], "`end`, `max_tokens` or `refusal`")),
    fail: v.exactOptional(failure),
  }, "a mapping with `text`, `call`, `calls`, `stop` or `fail`"),
  v.check((r) => Object.keys(r).length > 0, "at least one of `text`, `call`, `calls`, `stop`, `fail`"),
  v.check((r) => r.call === undefined || r.calls === undefined, "`call` or `calls`, not both"),
  v.check(
    (r) => r.fail === undefined || Object.keys(r).length === 1,
    "`fail` alone: a failed request says nothing",
  ),
  v.transform((written) => toReply(written)),
);

/** A script, for files that hold one; its output are the replies. Faults are told by `checkValue`. */
export const scriptSchema = v.array(reply, "a list with one entry per model request");

/** Reads a script file: a YAML list, one entry per model request. All faults at once, each with its place. */
export function loadScript(text: string, file: string): Loaded<readonly ScriptReply[]> {
  const document = parseYaml(text, file, longestScript);
  if (!document.ok) return document;
  const problems = checkValue(scriptSchema, document.value, {});
  if (problems.length > 0) return { ok: false, problems };
  return { ok: true, value: v.parse(scriptSchema, document.value.value), problems: [] };
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

type Call = ScriptReply["calls"][number];
/** A reply as it is written, its calls read. */
type Written = {
  readonly text?: string;
  readonly call?: Call;
  readonly calls?: readonly Call[];
  readonly stop?: "end" | "max_tokens" | "refusal";
  readonly fail?: { readonly code: string } & Partial<ScriptFailure>;
};

function toReply(entry: Written): ScriptReply {
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

// YAML has numbers that JSON has not.
function isJson(value: unknown): value is Json {
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || value === null) {
    return typeof value === "string" || typeof value === "boolean" || value === null;
  }
  return Object.values(value).every(isJson);
}
