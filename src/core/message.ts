// Provider-neutral messages, tool calls and results, and what a model request and its reply are made of.

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type Args = { readonly [key: string]: Json };

export type ToolCall = { readonly id: string; readonly tool: string; readonly args: Args };

export type TextBlock = { readonly type: "text"; readonly text: string };
export type CallBlock = {
  readonly type: "tool_use";
  readonly id: string;
  readonly name: string;
  /** Parsed arguments; when they were not a JSON object, `malformed` holds the text and `input` is empty. */
  readonly input: Args;
  readonly malformed?: string;
  /** The reply ended inside this call: it must not run. */
  readonly cut?: boolean;
};
export type ResultBlock = {
  readonly type: "tool_result";
  readonly call: string;
  readonly ok: boolean;
  readonly content: string;
};
/** A block of a kind that Writ does not interpret (thinking among them): logged and sent back verbatim. */
export type OpaqueBlock = { readonly type: "opaque"; readonly value: Json };

export type AssistantBlock = TextBlock | CallBlock | OpaqueBlock;
export type Message =
  | { readonly role: "user"; readonly content: readonly (TextBlock | ResultBlock)[] }
  | { readonly role: "assistant"; readonly content: readonly AssistantBlock[] };

/** A JSON Schema of type object. */
export type InputSchema = { readonly type: "object"; readonly [key: string]: Json };
export type ToolDefinition = {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: InputSchema;
};

export type ModelRequest = {
  readonly model: string;
  readonly maxOutputTokens: number;
  readonly system: string;
  readonly tools: readonly ToolDefinition[];
  readonly messages: readonly Message[];
};

/** Tokens as the provider counts them; `input` excludes what was read from or written to its cache. */
export type Usage = {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
};
export const noUsage: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

export function addUsage(a: Usage, b: Usage): Usage {
  return {
    input: a.input + b.input,
    output: a.output + b.output,
    cacheRead: a.cacheRead + b.cacheRead,
    cacheWrite: a.cacheWrite + b.cacheWrite,
  };
}

export type ReplyStop = "end" | "tool_use" | "max_tokens" | "refusal" | "context_full" | "other";
export type ModelReply = {
  readonly stop: ReplyStop;
  readonly content: readonly AssistantBlock[];
  readonly usage: Usage;
};
