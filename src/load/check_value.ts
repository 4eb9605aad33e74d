// A parsed YAML document against a valibot schema: every fault at once, each with its place and plain words. The messages
// of the schemas say what is expected ("a whole number"); valibot's own words never reach a person.
import * as v from "valibot";
import { nearest, type Problem } from "../core/problem.ts";
import { escapeLine } from "../core/text.ts";
import type { YamlDocument, YamlPath } from "./yaml.ts";

export type CheckOptions = {
  /** Looks at every key that is set, before its value. A Problem is reported and the value is not looked into. */
  readonly visit?: (path: YamlPath, value: unknown) => Problem | undefined;
  /** Values that a message must not repeat. */
  readonly secret?: (path: YamlPath) => boolean;
  /** Whether a message may name this key, or this value of the key, as one to write; absent: all of them. */
  readonly offered?: Offered;
};
export type Offered = (path: YamlPath, value?: unknown) => boolean;

// The parts of a schema that the walk reads; schemas of one pipe carry the members of their first step.
type Node = {
  readonly type: string;
  readonly expects: string | null;
  readonly message?: unknown;
  readonly entries?: { readonly [key: string]: Node };
  readonly wrapped?: Node;
  readonly item?: Node;
  readonly key?: Node;
  readonly value?: Node;
  readonly literal?: unknown;
  readonly options?: readonly (Node | string)[];
  /** Set when checks on the whole value follow the schema. */
  readonly pipe?: readonly unknown[];
};
type Walk = {
  readonly document: YamlDocument;
  readonly options: CheckOptions;
  readonly problems: Problem[];
  readonly root: Node;
};

/** In document order within one mapping; empty when the value fits. Own keys only: `__proto__` is a key like any other. */
export function checkValue(
  schema: v.GenericSchema,
  document: YamlDocument,
  options: CheckOptions,
): readonly Problem[] {
  const root = schema as unknown as Node;
  const walk: Walk = { document, options, problems: [], root };
  checkNode(walk, root, document.value, []);
  return walk.problems;
}

/** `permissions.deny[0].path`; the empty path is the file. */
export function showPath(path: YamlPath): string {
  let shown = "";
  for (const step of path) shown += typeof step === "number" ? `[${step}]` : shown === "" ? step : `.${step}`;
  return shown === "" ? "the file" : `\`${escapeLine(shown)}\``;
}

/** What stands in the file, for a message: short, and on one line. */
export function showFound(value: unknown): string {
  switch (shapeOf(value)) {
    case "nothing":
      return "empty";
    case "list":
      return "a list";
    case "mapping":
      return "a mapping";
    case "text": {
      const text = escapeLine(String(value));
      return `\`${text.length > 60 ? `${text.slice(0, 60)}…` : text}\``;
    }
    default:
      return `\`${String(value)}\``;
  }
}

function checkNode(walk: Walk, node: Node, value: unknown, path: YamlPath): void {
  switch (node.type) {
    case "exact_optional":
    case "optional":
      if (node.wrapped !== undefined) checkNode(walk, node.wrapped, value, path);
      return;
    case "union":
      return checkUnion(walk, node, value, path);
    case "strict_object":
    case "record":
      if (shapeOf(value) !== "mapping") return wrongType(walk, node, value, path);
      if (node.type === "record") checkRecord(walk, node, value as object, path);
      else checkMapping(walk, node, value as object, path);
      return checkWhole(walk, node, value as object, path);
    case "array":
      return Array.isArray(value) ? checkList(walk, node, value, path) : wrongType(walk, node, value, path);
    default:
      return checkLeaf(walk, node, value, path);
  }
}

function checkUnion(walk: Walk, node: Node, value: unknown, path: YamlPath): void {
  const fitting = alternatives(node).find((option) => shapeOfSchema(option) === shapeOf(value));
  // A word that is none of the few known ones may be meant as any of the alternatives.
  const unfit = fitting?.type === "picklist" && faultOf(fitting, value) !== undefined;
  if (fitting === undefined || unfit) wrongType(walk, node, value, path);
  else checkNode(walk, fitting, value, path);
}

function checkMapping(walk: Walk, node: Node, value: object, path: YamlPath): void {
  const entries = node.entries ?? {};
  for (const [key, member] of Object.entries(value)) {
    const at = [...path, key];
    if (!Object.hasOwn(entries, key)) {
      walk.problems.push(unknownKey(walk, entries, at));
      continue;
    }
    const refused = walk.options.visit?.(at, member);
    const next = entries[key];
    if (refused !== undefined) walk.problems.push(refused);
    else if (next !== undefined) checkNode(walk, next, member, at);
  }
  for (const [key, entry] of Object.entries(entries)) {
    if (entry.type === "exact_optional" || Object.hasOwn(value, key)) continue;
    walk.problems.push({
      code: "missing-key",
      severity: "error",
      message: `\`${key}\` is missing${path.length === 0 ? "" : ` in ${showPath(path)}`}`,
      at: walk.document.at(path),
      expected: wordsOf(walk, entry, [...path, key]),
    });
  }
}

function checkRecord(walk: Walk, node: Node, value: object, path: YamlPath): void {
  for (const [key, member] of Object.entries(value)) {
    const at = [...path, key];
    if (key === "__proto__" || key === "constructor" || key === "prototype") {
      walk.problems.push(unknownKey(walk, {}, at));
      continue;
    }
    const fault = node.key === undefined ? undefined : faultOf(node.key, key);
    if (fault !== undefined) {
      walk.problems.push({
        code: "wrong-value",
        severity: "error",
        message: `${showPath(path)} has the key ${showFound(key)}`,
        at: walk.document.keyAt(at),
        expected: fault.words,
      });
    }
    const refused = walk.options.visit?.(at, member);
    if (refused !== undefined) walk.problems.push(refused);
    else if (node.value !== undefined) checkNode(walk, node.value, member, at);
  }
}

// What a pipe asks of a mapping beyond its members; valibot looks only when those fit.
function checkWhole(walk: Walk, node: Node, value: object, path: YamlPath): void {
  if (node.pipe === undefined) return;
  const own = ownIssue(node, value);
  if (own === undefined) return;
  const keys = Object.keys(value).slice(0, 5).map((key) => showFound(key));
  const found = keys.length === 0 ? "is an empty mapping" : `has ${keys.join(", ")}`;
  walk.problems.push({
    code: "wrong-value",
    severity: "error",
    message: `${showPath(path)} ${walk.options.secret?.(path) ? "does not fit" : found}`,
    at: walk.document.at(path),
    expected: own.message,
  });
}

function ownIssue(node: Node, value: unknown): v.BaseIssue<unknown> | undefined {
  return v.safeParse(node as unknown as v.GenericSchema, value).issues?.find((i) => i.path === undefined);
}

function checkList(walk: Walk, node: Node, value: readonly unknown[], path: YamlPath): void {
  const own = ownIssue(node, value);
  if (own !== undefined) {
    walk.problems.push({
      code: "wrong-value",
      severity: "error",
      message: `${showPath(path)} has ${value.length} entries`,
      at: walk.document.at(path),
      expected: own.message,
    });
  }
  value.forEach((item, index) => {
    const at = [...path, index];
    const refused = walk.options.visit?.(at, item);
    if (refused !== undefined) walk.problems.push(refused);
    else if (node.item !== undefined) checkNode(walk, node.item, item, at);
  });
}

function checkLeaf(walk: Walk, node: Node, value: unknown, path: YamlPath): void {
  const fault = faultOf(node, value);
  if (fault === undefined) return;
  if (fault.type) return wrongType(walk, node, value, path);
  walk.problems.push({
    code: "wrong-value",
    severity: "error",
    message: walk.options.secret?.(path)
      ? `${showPath(path)} does not fit`
      : `${showPath(path)} is ${showFound(value)}`,
    at: walk.document.at(path),
    expected: node.type === "picklist" ? wordsOf(walk, node, path) : fault.words,
  });
}

function faultOf(node: Node, value: unknown): { readonly words: string; readonly type: boolean } | undefined {
  const [issue] = v.safeParse(node as unknown as v.GenericSchema, value).issues ?? [];
  if (issue === undefined) return undefined;
  const wrongShape = issue.kind === "schema" && shapeOfSchema(node) !== shapeOf(value);
  return { words: issue.message, type: wrongShape };
}

function wrongType(walk: Walk, node: Node, value: unknown, path: YamlPath): void {
  const empty = shapeOf(value) === "nothing";
  const quoted = isQuoted(node, value);
  const hint = empty
    ? "write the value, or remove the key"
    : quoted
    ? "remove the quotes"
    : needsQuotes(node, value)
    ? "put quotes around it"
    : undefined;
  const alike = alternatives(node).some((option) => shapeOfSchema(option) === shapeOf(value));
  walk.problems.push({
    code: alike ? "wrong-value" : "wrong-type",
    severity: "error",
    message: walk.options.secret?.(path)
      ? `${showPath(path)} does not fit`
      : `${showPath(path)} is ${quoted ? "the text " : ""}${showFound(value)}`,
    at: empty && path.length > 0 ? walk.document.keyAt(path) : walk.document.at(path),
    expected: wordsOf(walk, node, path),
    ...(hint === undefined ? {} : { hint }),
  });
}

// A number or truth value that stands in quotes.
function isQuoted(node: Node, value: unknown): boolean {
  if (typeof value !== "string") return false;
  const meant = value === "true"
    ? true
    : value === "false"
    ? false
    : /^\d+$/.test(value)
    ? Number(value)
    : value;
  return meant !== value && faultOf(node, meant) === undefined;
}

function needsQuotes(node: Node, value: unknown): boolean {
  if (typeof value !== "number" && typeof value !== "boolean") return false;
  return [node, ...alternatives(node)].some((option) => faultOf(option, String(value)) === undefined);
}

/** Behind so many faults nobody reads what may have been meant, and looking for it takes longer than the rest. */
const mostHints = 200;

function unknownKey(walk: Walk, entries: { readonly [key: string]: Node }, path: YamlPath): Problem {
  const fault = {
    code: "unknown-key",
    severity: "error",
    message: `unknown key ${showPath(path)}`,
    at: walk.document.keyAt(path),
  } as const;
  if (walk.problems.length >= mostHints) return fault;
  const key = String(path.at(-1));
  const offered = walk.options.offered ?? (() => true);
  const known = Object.keys(entries).filter((k) => offered([...path.slice(0, -1), k]));
  const near = nearest(key, known);
  const elsewhere = near === undefined ? placesOf(walk.root, key, [], offered) : [];
  const hint = near !== undefined
    ? `did you mean \`${near}\`?`
    : elsewhere.length > 0
    ? `it belongs in ${elsewhere.map((place) => `\`${place}\``).join(" or ")}`
    : known.length > 0
    ? `known here: ${listed(known)}`
    : undefined;
  return hint === undefined ? fault : { ...fault, hint };
}

// Mappings with fixed keys in which the key is known; at most three.
function placesOf(node: Node, key: string, path: readonly string[], offered: Offered): string[] {
  const found: string[] = [];
  for (const [name, member] of Object.entries(node.entries ?? {})) {
    const inner = member.wrapped ?? member;
    const at = [...path, name];
    if (inner.entries === undefined) continue;
    if (Object.hasOwn(inner.entries, key) && offered([...at, key])) found.push(at.join("."));
    found.push(...placesOf(inner, key, at, offered));
  }
  return found.slice(0, 3);
}

function wordsOf(walk: Walk, node: Node, path: YamlPath): string {
  return expectedWords(node, path, walk.options.offered ?? (() => true));
}

/** What a schema wants at `path`, in words that fit after "expected"; of fixed words only those that are offered. */
export function expectedWords(schema: unknown, path: YamlPath, offered: Offered): string {
  const node = schema as Node;
  const inner = node.wrapped ?? node;
  if (inner.type === "picklist") {
    const words = (inner.options ?? []).filter((o) => typeof o === "string" && offered(path, o));
    const [only, other] = words;
    if (only !== undefined) return other === undefined ? `\`${only}\`` : `one of ${listed(words)}`;
  }
  return typeof inner.message === "string" ? inner.message : inner.expects ?? "another value";
}

function listed(words: readonly unknown[]): string {
  return words.map((word) => `\`${word}\``).join(", ");
}

function alternatives(node: Node): readonly Node[] {
  return (node.options ?? []).filter((o) => typeof o !== "string");
}

function shapeOfSchema(node: Node): string {
  switch (node.type) {
    case "exact_optional":
    case "optional":
      return node.wrapped === undefined ? "any" : shapeOfSchema(node.wrapped);
    case "string":
    case "picklist":
      return "text";
    case "literal":
      return shapeOf(node.literal);
    case "array":
      return "list";
    case "strict_object":
    case "record":
      return "mapping";
    default:
      return node.type;
  }
}

function shapeOf(value: unknown): string {
  if (value === null || value === undefined) return "nothing";
  if (Array.isArray(value)) return "list";
  if (typeof value === "object") return "mapping";
  return typeof value === "string" ? "text" : typeof value;
}
