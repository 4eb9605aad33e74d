// The raw events of a streamed reply, put together into one ModelReply. Nothing of a reply counts before its last event.
import { ModelFailure, type ReplyListener } from "../agent/ports.ts";
import { deeperThan } from "../core/collection.ts";
import type { Args, AssistantBlock, CallBlock, Json, ModelReply, ReplyStop, Usage } from "../core/message.ts";
import { capText, isObject } from "../core/text.ts";
import { streamErrorFailure } from "./failure.ts";

const knownEvents = new Set([
  "message_start",
  "content_block_start",
  "content_block_delta",
  "content_block_stop",
  "message_delta",
  "message_stop",
]);
const deepest = 100;
const longestMalformed = 65_536;

type OpenBlock =
  & { open: boolean; json: string }
  & (
    | { readonly kind: "text"; text: string }
    | { readonly kind: "call"; readonly id: string; readonly name: string; readonly given: Json | undefined }
    | { readonly kind: "opaque"; readonly value: { [key: string]: Json } }
  );

export type ReplyStream = {
  /** Takes the next event in order. Throws ModelFailure for an error event and for what no provider should send. */
  take(event: unknown): void;
  /** The last event was there. */
  readonly complete: boolean;
  /** Throws ModelFailure `stream_cut` before the last event was there. */
  reply(): ModelReply;
};

/** `toolName` gives our name of a tool for the name on the wire; `scrub` removes secrets from a provider's text. */
export function replyStream(
  on: ReplyListener,
  { toolName, scrub }: { toolName(wireName: string): string; scrub(text: string): string },
): ReplyStream {
  const blocks = new Map<number, OpenBlock>();
  const ids = new Set<string>();
  const usage: Record<keyof Usage, number> = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  let stopReason: string | undefined;
  let state: "new" | "started" | "complete" = "new";

  const shown = (value: Json | undefined) =>
    `\`${scrub(typeof value === "object" ? "{…}" : String(value)).slice(0, 80)}\``;
  const blockAt = (index: Json | undefined): OpenBlock => {
    const block = typeof index === "number" ? blocks.get(index) : undefined;
    if (block === undefined || !block.open) throw notUnderstood(`no block is open at index ${shown(index)}`);
    return block;
  };
  const start = (index: Json | undefined, content: Json | undefined) => {
    if (typeof index !== "number" || blocks.has(index)) {
      throw notUnderstood(`block ${shown(index)} begins twice`);
    }
    const block = openBlock(content, toolName);
    if (block.kind === "call") {
      if (ids.has(block.id)) throw notUnderstood(`two tool calls have the id ${shown(block.id)}`);
      ids.add(block.id);
    }
    blocks.set(index, block);
    if (block.kind === "text" && block.text !== "") on.text(block.text);
  };

  return {
    get complete() {
      return state === "complete";
    },
    take(event) {
      if (state === "complete") return;
      if (!isObject(event)) throw notUnderstood("an event is not a JSON object");
      if (event.type === "error") throw streamErrorFailure(event.error, scrub);
      if (typeof event.type !== "string" || !knownEvents.has(event.type)) return;
      if ((state === "new") !== (event.type === "message_start")) {
        throw notUnderstood(
          `${shown(event.type)} comes ${state === "new" ? "before" : "after"} the message begins`,
        );
      }
      switch (event.type) {
        case "message_start":
          state = "started";
          if (isObject(event.message)) takeUsage(usage, event.message.usage);
          return;
        case "content_block_start":
          return start(event.index, event.content_block);
        case "content_block_delta":
          return takeDelta(blockAt(event.index), event.delta, on);
        case "content_block_stop":
          blockAt(event.index).open = false;
          return on.blockEnd();
        case "message_delta":
          takeUsage(usage, event.usage);
          if (isObject(event.delta) && typeof event.delta.stop_reason === "string") {
            stopReason = event.delta.stop_reason;
          }
          return;
        case "message_stop":
          if (stopReason === undefined) throw notUnderstood("the message ends without a stop reason");
          state = "complete";
      }
    },
    reply() {
      if (state !== "complete" || stopReason === undefined) throw streamCut();
      const content = [...blocks.values()].map(finishBlock);
      return { stop: stopOf(stopReason), content: markCut(content, stopReason), usage: { ...usage } };
    },
  };
}

export function streamCut(): ModelFailure {
  return new ModelFailure("stream_cut", "the reply stream ended before the reply was complete", {
    retryable: true,
  });
}

/** What a reply holds that no provider should send; asked again, since a proxy on the way may have garbled it. */
export function notUnderstood(what: string): ModelFailure {
  return new ModelFailure("bad_stream", `the reply stream was not understood: ${what}`, {
    retryable: true,
    hint: "check that `model.base_url` names an endpoint that speaks the Anthropic Messages API",
  });
}

function openBlock(content: Json | undefined, toolName: (wireName: string) => string): OpenBlock {
  if (!isObject(content) || typeof content.type !== "string") throw notUnderstood("a block has no type");
  if (content.type === "text") {
    return { open: true, json: "", kind: "text", text: typeof content.text === "string" ? content.text : "" };
  }
  if (content.type === "tool_use") {
    const { id, name, input } = content;
    if (typeof id !== "string" || id === "") throw notUnderstood("a tool call has no id");
    if (typeof name !== "string" || name === "") throw notUnderstood("a tool call has no name");
    return { open: true, json: "", kind: "call", id, name: toolName(name), given: input };
  }
  if (deeperThan(content, deepest)) throw notUnderstood(`a block is nested deeper than ${deepest} levels`);
  return { open: true, json: "", kind: "opaque", value: { ...content } };
}

function takeDelta(block: OpenBlock, delta: Json | undefined, on: ReplyListener): void {
  if (!isObject(delta)) throw notUnderstood("a delta is not a JSON object");
  if (delta.type === "input_json_delta") {
    if (typeof delta.partial_json === "string") block.json += delta.partial_json;
  } else if (block.kind === "text") {
    if (delta.type !== "text_delta" || typeof delta.text !== "string" || delta.text === "") return;
    block.text += delta.text;
    on.text(delta.text);
  } else if (block.kind === "opaque") {
    if (deeperThan(delta, deepest)) throw notUnderstood(`a delta is nested deeper than ${deepest} levels`);
    mergeDelta(block.value, delta);
  }
}

// A kind of block that Writ does not know grows in the one way that all known kinds do: texts are appended to the
// member of the same name, a citation is added to the list of citations, anything else is set.
function mergeDelta(value: { [key: string]: Json }, delta: { readonly [key: string]: Json }): void {
  for (const [key, part] of Object.entries(delta)) {
    if (key === "type" || key === "__proto__") continue;
    const before = value[key];
    if (key === "citation") {
      value.citations = [...(Array.isArray(value.citations) ? value.citations : []), part];
    } else if (typeof part === "string" && typeof before === "string") {
      value[key] = before + part;
    } else {
      value[key] = part;
    }
  }
}

function finishBlock(block: OpenBlock): AssistantBlock {
  if (block.kind === "text") return { type: "text", text: block.text };
  if (block.kind === "opaque") {
    if (block.json === "") return { type: "opaque", value: block.value };
    const { input, malformed } = parseInput(block.json);
    return { type: "opaque", value: { ...block.value, input: malformed ?? input } };
  }
  const { id, name, given } = block;
  const atOnce = block.json === "" && isObject(given) && !deeperThan(given, deepest);
  return {
    type: "tool_use",
    id,
    name,
    ...(atOnce ? { input: given } : parseInput(block.json)),
    ...(block.open ? { cut: true } : {}),
  };
}

function parseInput(text: string): { readonly input: Args; readonly malformed?: string } {
  if (text.trim() === "") return { input: {} };
  if (!textDeeperThan(text, deepest)) {
    try {
      const value: unknown = JSON.parse(text);
      if (isObject(value)) return { input: value };
    } catch {
      // Told apart from a good one by `malformed`.
    }
  }
  return { input: {}, malformed: capText(text, longestMalformed).text };
}

// Out of output tokens, the model may have been within its last call even where the text so far is valid JSON.
function markCut(content: readonly AssistantBlock[], stopReason: string): readonly AssistantBlock[] {
  if (stopReason !== "max_tokens") return content;
  const at = content.findLastIndex((block) => block.type === "tool_use");
  const call = content[at];
  return call?.type === "tool_use" ? content.with(at, { ...call, cut: true } satisfies CallBlock) : content;
}

function stopOf(reason: string): ReplyStop {
  switch (reason) {
    case "end_turn":
    case "stop_sequence":
      return "end";
    case "tool_use":
    case "max_tokens":
    case "refusal":
      return reason;
    case "model_context_window_exceeded":
      return "context_full";
    default:
      return "other";
  }
}

// Counts are totals of the whole message: a later one replaces an earlier one, an absent one leaves it.
function takeUsage(usage: Record<keyof Usage, number>, given: Json | undefined): void {
  if (!isObject(given)) return;
  const members = {
    input: given.input_tokens,
    output: given.output_tokens,
    cacheRead: given.cache_read_input_tokens,
    cacheWrite: given.cache_creation_input_tokens,
  };
  for (const key of ["input", "output", "cacheRead", "cacheWrite"] as const) {
    const count = members[key];
    if (typeof count === "number" && Number.isSafeInteger(count) && count >= 0) usage[key] = count;
  }
}

// On the text, before parsing: what comes out must be safe for every recursive reader behind.
function textDeeperThan(text: string, levels: number): boolean {
  let depth = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c === "\\") i++;
      else if (c === '"') quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === "{" || c === "[") {
      if (++depth > levels) return true;
    } else if (c === "}" || c === "]") depth--;
  }
  return false;
}
