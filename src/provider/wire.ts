// A model request as the body of a Messages request. Equal requests give equal bytes, and what stays the same within
// a turn stands before `messages`, so that one request's bytes begin with those of the one before.
import type {
  AssistantBlock,
  Json,
  Message,
  ModelRequest,
  ResultBlock,
  TextBlock,
  ToolDefinition,
} from "../core/message.ts";

type WireObject = { readonly [key: string]: Json };
type WireMessage = { readonly role: "user" | "assistant"; readonly content: readonly WireObject[] };

/** Members that Writ decides; `model.request` in a policy never replaces them. */
const ownMembers = new Set(["model", "messages", "system", "tools", "stream"]);
const longestToolName = 128;
const breakpoint: WireObject = { type: "ephemeral" };

export type EncodedRequest = {
  /** JSON text. */
  readonly body: string;
  /** Our name of a tool that the model calls; a name that was not offered comes back as it is. */
  toolName(wireName: string): string;
};

/**
 * Writes the request with `extra` (the policy's `model.request`) merged in. At most four cache breakpoints: end of
 * tools, end of system, the block that was last in the request before, and the last block.
 */
export function encodeRequest(request: ModelRequest, extra: WireObject): EncodedRequest {
  const names = wireNames(request.tools);
  const wireName = (name: string) => names.get(name) ?? plainName(name);
  // The API refuses a choice among no tools; a request for a summary offers none.
  const unfit = (key: string) => ownMembers.has(key) || (key === "tool_choice" && request.tools.length === 0);
  const merged = Object.fromEntries(Object.entries(extra).filter(([key]) => !unfit(key)));
  const body = {
    model: request.model,
    max_tokens: request.maxOutputTokens,
    stream: true,
    ...merged,
    ...(request.system.trim() === ""
      ? {}
      : { system: [{ type: "text", text: request.system, cache_control: breakpoint }] }),
    ...(request.tools.length === 0 ? {} : { tools: wireTools(request.tools, wireName) }),
    messages: withBreakpoints(wireMessages(request.messages, wireName)),
  };
  const offered = new Map([...names].map(([name, wire]) => [wire, name]));
  return { body: wellFormedJson(body), toolName: (wire) => offered.get(wire) ?? wire };
}

// The API takes letters, digits, `_` and `-` in a tool's name; ours hold dots (`mcp.server.tool`). A name that fits is
// sent as it is and is never given up to another; tools are only ever appended, so that a number once given stays.
function wireNames(tools: readonly ToolDefinition[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const taken = new Set<string>();
  const give = (name: string, wire: string) => {
    names.set(name, wire);
    taken.add(wire);
  };
  for (const { name } of tools) if (plainName(name) === name) give(name, name);
  for (const { name } of tools) {
    if (names.has(name)) continue;
    const plain = plainName(name);
    let wire = plain;
    for (let n = 2; taken.has(wire); n++) wire = `${plain.slice(0, longestToolName - 8)}_${n}`;
    give(name, wire);
  }
  return names;
}

function plainName(name: string): string {
  const plain = name.replaceAll(".", "__").replace(/[^A-Za-z0-9_-]/g, "_").slice(0, longestToolName);
  return plain === "" ? "_" : plain;
}

function wireTools(tools: readonly ToolDefinition[], wireName: (name: string) => string): WireObject[] {
  return tools.map((tool, index) => ({
    name: wireName(tool.name),
    description: tool.description,
    input_schema: tool.inputSchema,
    ...(index === tools.length - 1 ? { cache_control: breakpoint } : {}),
  }));
}

// A message of which nothing is left is not sent: the API refuses empty texts and empty messages.
function wireMessages(messages: readonly Message[], wireName: (name: string) => string): WireMessage[] {
  return messages.flatMap((message): WireMessage[] => {
    const blocks: readonly (AssistantBlock | ResultBlock)[] = message.content;
    const content = blocks.filter((block) => !isEmptyText(block)).map((block) => wireBlock(block, wireName));
    return content.length === 0 ? [] : [{ role: message.role, content }];
  });
}

function isEmptyText(block: AssistantBlock | ResultBlock): block is TextBlock {
  return block.type === "text" && block.text.trim() === "";
}

function wireBlock(block: AssistantBlock | ResultBlock, wireName: (name: string) => string): WireObject {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text };
    case "tool_use":
      return { type: "tool_use", id: block.id, name: wireName(block.name), input: block.input };
    case "tool_result": {
      const result = { type: "tool_result", tool_use_id: block.call, content: block.content };
      if (block.ok) return result;
      // The API refuses an error without a text.
      return { ...result, content: block.content.trim() === "" ? "failed" : block.content, is_error: true };
    }
    case "opaque":
      return block.value as WireObject;
  }
}

// The request before ended with the user message in front of the last reply.
function withBreakpoints(messages: readonly WireMessage[]): WireMessage[] {
  const last = messages.length - 1;
  const lastReply = messages.findLastIndex((message) => message.role === "assistant");
  const previous = lastReply < last ? lastReply - 1 : -1;
  return messages.map((message, index) => index === last || index === previous ? markLast(message) : message);
}

function markLast(message: WireMessage): WireMessage {
  const at = message.content.length - 1;
  const block = message.content[at];
  const cacheable = block?.type === "text" || block?.type === "tool_use" || block?.type === "tool_result";
  if (block === undefined || !cacheable) return message;
  return { ...message, content: message.content.with(at, { ...block, cache_control: breakpoint }) };
}

// A text that was cut within a surrogate pair is valid in a string but not in a request. Looking for the escape that
// JSON writes for it keeps the usual case at one pass.
function wellFormedJson(value: unknown): string {
  const text = JSON.stringify(value);
  if (!text.includes("\\ud")) return text;
  return JSON.stringify(
    value,
    (_, member: unknown) => typeof member === "string" ? member.toWellFormed() : member,
  );
}
