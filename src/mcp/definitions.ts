// What a server says of its tools, as it is taken at the start and never again: only what the policy lists, cleaned and
// bounded.
import { deeperThan } from "../core/collection.ts";
import type { ListedTool } from "../core/mcp.ts";
import type { InputSchema, Json } from "../core/message.ts";
import { capText, escapeLine, hasHiddenCharacters, isObject } from "../core/text.ts";

export type Definition = {
  readonly tool: ListedTool;
  readonly description: string;
  readonly inputSchema: InputSchema;
};
/** Listed in the policy and not to be had. */
export type AbsentTool = { readonly tool: ListedTool; readonly reason: string };

const longestDescription = 4000;
const longestSchema = 65_536;
const deepestSchema = 64;

/**
 * In the order of the policy. `offered` is the server's own list, of any shape. `schemaFault` says why a schema cannot be
 * used.
 */
export function freezeDefinitions(
  listed: readonly ListedTool[],
  offered: readonly unknown[],
  schemaFault: (schema: InputSchema) => string | undefined,
): { readonly definitions: readonly Definition[]; readonly absent: readonly AbsentTool[] } {
  const definitions: Definition[] = [];
  const absent: AbsentTool[] = [];
  for (const tool of listed) {
    const found = offered.filter(isObject).filter((o) => o["name"] === tool.name);
    const made = found.length === 1
      ? define(tool, found[0] ?? {}, schemaFault)
      : found.length > 1
      ? "the server has it more than once"
      : notThere(offered);
    if (typeof made === "string") absent.push({ tool, reason: made });
    else definitions.push(made);
  }
  return { definitions, absent };
}

function notThere(offered: readonly unknown[]): string {
  const names = offered.filter(isObject).map((o) => o["name"]).filter((n) => typeof n === "string").sort();
  const shown = names.slice(0, 20).map((n) => `\`${escapeLine(n.slice(0, 80))}\``).join(", ");
  if (names.length === 0) return "the server has no tools";
  return `the server has no such tool; it has ${shown}${
    names.length > 20 ? ` and ${names.length - 20} more` : ""
  }`;
}

function define(
  tool: ListedTool,
  offer: { readonly [key: string]: Json },
  schemaFault: (schema: InputSchema) => string | undefined,
): Definition | string {
  const schema = offer["inputSchema"];
  if (!isObject(schema) || schema["type"] !== "object") return "its schema is not that of an object";
  if (deeperThan(schema, deepestSchema)) return `its schema is nested deeper than ${deepestSchema} levels`;
  const clean = cleanSchema(schema);
  const text = JSON.stringify(clean);
  if (text.length > longestSchema) {
    return `its schema has ${text.length} characters; at most ${longestSchema} are taken`;
  }
  if (holdsHidden(clean)) return "its schema holds control or hidden characters";
  const inputSchema: InputSchema = { ...(isObject(clean) ? clean : {}), type: "object" };
  const fault = schemaFault(inputSchema);
  if (fault !== undefined) return `its schema cannot be used: ${escapeLine(fault.slice(0, 300))}`;
  const written = offer["description"];
  const description = typeof written === "string"
    ? capText(visible(written).trim(), longestDescription).text
    : "";
  return { tool, description, inputSchema };
}

// Words for people and models lose what they would hide; everything else in a schema has a meaning and is left alone.
function cleanSchema(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(cleanSchema);
  if (!isObject(schema)) return schema;
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => {
      const words = (key === "description" || key === "title" || key === "$comment") &&
        typeof value === "string";
      return [key, words ? visible(value) : cleanSchema(value)];
    }),
  );
}

function holdsHidden(value: Json): boolean {
  if (typeof value === "string") return hasHiddenCharacters(value);
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([key, inner]) => hasHiddenCharacters(key) || holdsHidden(inner));
}

function visible(text: string): string {
  const lines = text.replace(/\r\n?/g, "\n");
  return hasHiddenCharacters(lines) ? [...lines].filter((c) => !hasHiddenCharacters(c)).join("") : lines;
}
