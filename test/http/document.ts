// An answer against the API document.
import { Validator } from "@cfworker/json-schema";
import type { Operation } from "../../src/http/operation.ts";

export type Node = { readonly [member: string]: unknown };

/** What the document says of an answer; a text for one that it does not know. */
function schemaOf(document: Node, { path, method }: Operation, status: number, type: string): Node | string {
  const at = (document["paths"] as Node)[path.replace(/:(\w+)/g, "{$1}")] as Node;
  const response = ((at[method.toLowerCase()] as Node)["responses"] as Node)[status] as Node | undefined;
  if (response === undefined) return `no status ${status}`;
  const content = response["content"] as Node | undefined;
  if (content === undefined) return type === "" ? {} : `no body with ${status}`;
  return ((content[type] as Node | undefined)?.["schema"] as Node | undefined) ?? `no ${type} with ${status}`;
}

// A member that the document does not name is a fault of ours, though clients must bear it.
function closed(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(closed);
  const node: Node = Object.fromEntries(Object.entries(value).map(([k, v]) => [k, closed(v)]));
  const opens = node["type"] === "object" && node["properties"] !== undefined &&
    node["additionalProperties"] === undefined;
  return opens ? { ...node, additionalProperties: false } : node;
}

/** What is wrong with the answer, by the document. */
export async function faultOf(
  document: Node,
  operation: Operation,
  response: Response,
): Promise<readonly string[]> {
  const type = response.headers.get("content-type")?.split(";")[0] ?? "";
  const schema = schemaOf(document, operation, response.status, type);
  if (typeof schema === "string") return [schema];
  const text = await response.text();
  if (!/json$/.test(type)) return type === "" && text !== "" ? ["a body without a type"] : [];
  const isProblem = type === "application/problem+json";
  const components = document["components"];
  const whole = { ...schema, components };
  const validator = new Validator((isProblem ? whole : closed(whole)) as object, "2020-12", false);
  return validator.validate(JSON.parse(text)).errors.map((e) => `${e.instanceLocation}: ${e.error}`);
}
