// Arguments of a tool call: whether they fit the tool's JSON Schema, in words that let a model correct itself.
import { format, type OutputUnit, type Schema, Validator } from "@cfworker/json-schema";
import { RE2JS } from "re2js";
import { deeperThan } from "../core/collection.ts";
import type { Args, InputSchema, Json } from "../core/message.ts";
import { nearest } from "../core/problem.ts";
import { isObject } from "../core/text.ts";
import { messageOf } from "../core/thrown.ts";

const deepest = 64;
const mostProblems = 10;
const mostSteps = 100_000;

/**
 * Why `args` do not fit, one plain line each, empty when they fit; at most ten. `pattern` and `patternProperties` run
 * as RE2 in linear time, `format` is an annotation only. A schema that cannot be used is a problem too, never a pass.
 */
export function checkArguments(schema: InputSchema, args: Args): readonly string[] {
  if (deeperThan(args, deepest)) return [`arguments: nested deeper than ${deepest} levels`];
  try {
    const { usable, validator } = validatorFor(schema, args);
    const { valid, errors } = validator.validate(args);
    if (valid) return [];
    const said = new Set(errors.flatMap((e, i) => isLeaf(e, errors) ? [tell(e, errors[i - 1], usable)] : []));
    return said.size === 0 ? ["arguments: do not fit the schema"] : [...said].slice(0, mostProblems);
  } catch (error) {
    const reason = messageOf(error).split("\n")[0];
    return [`the schema of this tool cannot be used: ${reason}`];
  }
}

const typeNames = ["object", "array", "string", "number", "integer", "boolean", "null"];

/**
 * Why a schema that others wrote cannot be used, before the first call: a type that does not exist would match nothing
 * and a reference that leads nowhere would throw. Undefined when it can be used.
 */
export function schemaFault(schema: InputSchema): string | undefined {
  try {
    if (deeperThan(schema, deepest)) return `it is nested deeper than ${deepest} levels`;
    const fault = keywordFault(schema, schema);
    if (fault !== undefined) return fault;
    if (steps(schema, schema, new Map()) > mostSteps) return "its references make it too large";
    const { validator } = validatorFor(schema, {});
    validator.validate({});
    return undefined;
  } catch (error) {
    return messageOf(error).split("\n")[0];
  }
}

function keywordFault(schema: Json, whole: Json): string | undefined {
  if (Array.isArray(schema)) return firstFault(schema, whole);
  if (!isObject(schema)) return undefined;
  const { type, $ref: reference, pattern, patternProperties } = schema;
  const types: readonly Json[] = Array.isArray(type) ? type : type === undefined ? [] : [type];
  const odd = types.find((t) => typeof t !== "string" || !typeNames.includes(t));
  if (odd !== undefined) return `there is no type ${JSON.stringify(odd)}`;
  const led = reference === undefined ? true : target(reference, whole);
  if (!isObject(led) && typeof led !== "boolean") {
    return `the reference ${JSON.stringify(reference)} leads nowhere`;
  }
  for (const text of [pattern, ...(isObject(patternProperties) ? Object.keys(patternProperties) : [])]) {
    if (typeof text === "string") RE2JS.compile(text);
  }
  for (const [keyword, value] of Object.entries(schema)) {
    if (dataKeywords.has(keyword)) continue;
    const named = mapKeywords.has(keyword) || keyword === "patternProperties";
    const fault = named && isObject(value)
      ? firstFault(Object.values(value), whole)
      : keywordFault(value, whole);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function firstFault(schemas: readonly Json[], whole: Json): string | undefined {
  for (const schema of schemas) {
    const fault = keywordFault(schema, whole);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

// Within the schema itself: nothing is fetched.
function target(reference: Json, whole: Json): Json | undefined {
  if (typeof reference !== "string" || !/^#(\/|$)/.test(reference)) return undefined;
  let at: Json | undefined = whole;
  for (const step of reference.split("/").slice(1).map((s) => unescapePointer(decodeURIComponent(s)))) {
    at = isObject(at) ? at[step] : Array.isArray(at) ? at[Number(step)] : undefined;
  }
  return at;
}

// References that lead to references can ask for more steps than any machine has. Where one leads back to itself, the
// arguments bound it.
function steps(schema: Json, whole: Json, known: Map<Json, number>): number {
  if (typeof schema !== "object" || schema === null) return 1;
  const before = known.get(schema);
  if (before !== undefined) return before;
  known.set(schema, 1);
  let sum = 1;
  for (const value of Object.values(schema)) sum += steps(value, whole, known);
  const { $ref: reference } = isObject(schema) ? schema : {};
  if (reference !== undefined) sum += steps(target(reference, whole) ?? null, whole, known);
  known.set(schema, sum);
  return sum;
}

/** A string argument; undefined when it is absent. Arguments that fit the schema have no other type. */
export function textArg(args: Args, name: string): string | undefined {
  const value = args[name];
  return typeof value === "string" ? value : undefined;
}

export function numberArg(args: Args, name: string): number | undefined {
  const value = args[name];
  return typeof value === "number" ? value : undefined;
}

export function flagArg(args: Args, name: string): boolean {
  return args[name] === true;
}

type Prepared = { readonly usable: Json; readonly validator: Validator };
const prepared = new WeakMap<InputSchema, Prepared>();

// A schema without patternProperties is prepared once; one with them depends on the names that the arguments hold.
function validatorFor(schema: InputSchema, args: Args): Prepared {
  const known = prepared.get(schema);
  if (known !== undefined) return known;
  const names = new Set<string>();
  collectNames(args, names);
  const rewriting = { names: [...names], perCall: false };
  const usable = rewriteSchema(schema, rewriting, 0);
  const made = { usable, validator: new Validator(usable as Schema, "2020-12", false) };
  if (!rewriting.perCall) prepared.set(schema, made);
  return made;
}

function collectNames(value: Json, into: Set<string>): void {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value)) Object.keys(value).forEach((name) => into.add(name));
  for (const inner of Object.values(value)) collectNames(inner, into);
}

type Rewriting = { readonly names: readonly string[]; perCall: boolean };

const dataKeywords = new Set([
  "enum",
  "const",
  "default",
  "examples",
  "required",
  "type",
  "dependentRequired",
]);
const mapKeywords = new Set(["properties", "$defs", "definitions", "dependentSchemas"]);

// The same schema with every regular expression turned into a check of ours, wherever in the schema it stands.
function rewriteSchema(schema: Json, rewriting: Rewriting, depth: number): Json {
  if (depth > deepest) throw new Error(`it is nested deeper than ${deepest} levels`);
  if (Array.isArray(schema)) return schema.map((s) => rewriteSchema(s, rewriting, depth + 1));
  if (!isObject(schema)) return schema;
  const out: Record<string, Json> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword === "pattern" || keyword === "format" || keyword === "patternProperties") continue;
    if (dataKeywords.has(keyword)) out[keyword] = value;
    else if (mapKeywords.has(keyword)) out[keyword] = rewriteMap(value, rewriting, depth);
    else out[keyword] = rewriteSchema(value, rewriting, depth + 1);
  }
  const { pattern, patternProperties } = schema;
  if (typeof pattern === "string") out["format"] = patternFormat(pattern);
  if (isObject(patternProperties)) {
    rewriting.perCall = true;
    out["properties"] = byName(out["properties"], patternProperties, rewriting, depth);
  }
  return out;
}

function rewriteMap(map: Json, rewriting: Rewriting, depth: number): Json {
  if (!isObject(map)) return map;
  return Object.fromEntries(
    Object.entries(map).map(([name, s]) => [name, rewriteSchema(s, rewriting, depth + 1)]),
  );
}

// Only names that the arguments hold can be matched, so the patterns can be spelled out as plain properties.
function byName(
  properties: Json | undefined,
  patterns: { readonly [p: string]: Json },
  rewriting: Rewriting,
  depth: number,
): Json {
  const out = new Map(isObject(properties) ? Object.entries(properties) : []);
  for (const [pattern, schema] of Object.entries(patterns)) {
    const re = RE2JS.compile(pattern);
    const inner = rewriteSchema(schema, rewriting, depth + 1);
    for (const name of rewriting.names.filter((n) => re.test(n))) {
      const own = out.get(name);
      out.set(name, own === undefined ? inner : { allOf: [own, inner] });
    }
  }
  return Object.fromEntries(out);
}

const formatPrefix = "re2:";

// The library looks formats up by name: a pattern becomes a format of its own, the same for every schema that has it.
function patternFormat(pattern: string): string {
  const name = formatPrefix + pattern;
  if (format[name] === undefined) {
    const re = RE2JS.compile(pattern);
    format[name] = (text) => re.test(text);
  }
  return name;
}

const parents = new Set([
  "properties",
  "additionalProperties",
  "unevaluatedProperties",
  "items",
  "prefixItems",
]);
const combiners = new Set(["$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "propertyNames"]);

function isLeaf(error: OutputUnit, all: readonly OutputUnit[]): boolean {
  if (parents.has(error.keyword)) return false;
  if (!combiners.has(error.keyword)) return true;
  return !all.some((e) => e !== error && e.keywordLocation.startsWith(`${error.keywordLocation}/`)) &&
    !(error.keyword === "if" && all.some((e) => /\/(then|else)\//.test(e.keywordLocation)));
}

function tell(error: OutputUnit, before: OutputUnit | undefined, schema: Json): string {
  const steps = error.instanceLocation.split("/").slice(1).map(unescapePointer);
  const where = steps.length === 0 ? "arguments" : `\`${steps.join(".")}\``;
  const quoted = [...error.error.matchAll(/"([^"]*)"/g)].map((m) => m[1] ?? "");
  switch (error.keyword) {
    case "type":
      return `${where}: expected ${quoted.slice(1).join(" or ")}, got ${quoted[0]}`;
    case "required":
      return `\`${[...steps, quoted[0]].join(".")}\` is missing`;
    case "false":
      // The error before this one is that of the keyword which refused the member; only it says where that stands.
      return unknownMember(
        where,
        steps.at(-1) ?? "",
        before === undefined ? [] : membersBeside(before, schema),
      );
    case "format":
      return `${where}: expected text that matches \`${
        error.error.slice(error.error.indexOf(formatPrefix) + 4, -2)
      }\``;
    case "enum":
    case "const":
      return `${where}: expected ${
        error.error.replace(/^Instance does not match (any of )?/, "").replace(/\.$/, "")
      }`;
    default:
      return `${where}: ${error.error.charAt(0).toLowerCase()}${error.error.slice(1).replace(/\.$/, "")}`;
  }
}

function unknownMember(where: string, name: string, known: readonly string[]): string {
  const near = nearest(name, known);
  const hint = near === undefined ? "" : `; did you mean \`${near}\`?`;
  const list = known.length === 0 ? "" : ` (known: ${known.slice(0, 20).join(", ")})`;
  return `${where} is not known${hint}${list}`;
}

// The schema that refused the member holds the names that it would have taken.
function membersBeside(error: OutputUnit, schema: Json): readonly string[] {
  let at: Json | undefined = schema;
  for (const step of error.keywordLocation.split("/").slice(1, -1).map(unescapePointer)) {
    at = isObject(at) ? at[step] : Array.isArray(at) ? at[Number(step)] : undefined;
  }
  const properties = isObject(at) ? at["properties"] : undefined;
  return isObject(properties) ? Object.keys(properties) : [];
}

function unescapePointer(step: string): string {
  return step.replace(/~1/g, "/").replace(/~0/g, "~");
}
