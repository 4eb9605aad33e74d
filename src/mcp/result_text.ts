// The result of a server's tool → the text that the model reads. What is no text is told by kind and size.
import type { ToolOutcome } from "../agent/ports.ts";
import type { Json } from "../core/message.ts";
import { capText, isObject } from "../core/text.ts";

const mostBlocks = 1000;
const longestData = 65_536;

/** `result` is of any shape; at most `cap` characters of it are kept, from its head and its tail. */
export function outcomeOf(result: unknown, cap: number): ToolOutcome {
  if (!isObject(result) || !(result["content"] === undefined || Array.isArray(result["content"]))) {
    return {
      ok: false,
      code: "bad_result",
      content: "the server's answer is no result of a tool",
      unknown: true,
    };
  }
  const { content, structuredContent: structured, isError } = result;
  const blocks = Array.isArray(content) ? content : [];
  const told = blocks.slice(0, mostBlocks).map(showBlock);
  if (blocks.length > mostBlocks) told.push(`[${blocks.length - mostBlocks} more parts are not shown]`);
  const plain = told.filter((t) => t !== "").join("\n");
  const whole = plain === "" && structured !== undefined ? JSON.stringify(structured) : plain;
  const { text, cut } = capText(whole, cap);
  const data = dataOf(structured);
  if (isError === true) {
    const said = text === "" ? "the tool failed and did not say why" : text;
    return { ok: false, code: "tool_error", content: said, ...data };
  }
  return {
    ok: true,
    content: text === "" ? "[no output]" : text,
    ...data,
    // Nothing, or less than all, proves nothing.
    ...(cut || text === "" || blocks.length > mostBlocks ? { partial: true } : {}),
  };
}

function dataOf(structured: Json | undefined): { readonly data?: Json } {
  if (structured === undefined || JSON.stringify(structured).length > longestData) return {};
  return { data: structured };
}

function showBlock(block: Json): string {
  if (!isObject(block)) return "[a part that is not understood]";
  const { type } = block;
  switch (type) {
    case "text":
      return textOf(block["text"]);
    case "image":
    case "audio":
      return `[${type} ${textOf(block["mimeType"])}, ${bytesOf(block["data"])} bytes, not shown]`;
    case "resource_link":
      return `[resource ${textOf(block["name"])} ${textOf(block["uri"])}]`;
    case "resource":
      return showResource(block["resource"]);
    default:
      return `[a part of type ${typeof type === "string" ? type.slice(0, 80) : "unknown"}, not shown]`;
  }
}

function showResource(resource: Json | undefined): string {
  if (!isObject(resource)) return "[a part that is not understood]";
  const uri = textOf(resource["uri"]);
  if (typeof resource["text"] === "string") return `[resource ${uri}]\n${resource["text"]}`;
  return `[resource ${uri} ${textOf(resource["mimeType"])}, ${bytesOf(resource["blob"])} bytes, not shown]`;
}

function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

// Base64: four letters for three bytes.
function bytesOf(value: Json | undefined): number {
  const text = textOf(value).replace(/=+$/, "");
  return Math.floor(text.length * 3 / 4);
}
