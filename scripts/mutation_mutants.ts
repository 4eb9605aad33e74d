// Small changes of one source file, each of which a test should notice.
import { tsPlugin } from "@sveltejs/acorn-typescript";
import { Parser } from "acorn";
import { regexMutants } from "./mutation_regex.ts";

/** `text` takes the place of what stands from `start` to `end`: a whole expression, or statements to be left out. */
export type Mutant = {
  readonly start: number;
  readonly end: number;
  readonly form: "expression" | "statements";
  readonly text: string;
  /** What kind of change this is. */
  readonly kind: string;
};

type Node = {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
};

/** Where a node stands: in a chain of `?.` the whole chain is replaced, else its shortcut would end early. */
type Place = { readonly chain?: Node; readonly inFunction: boolean };

const swaps: Readonly<Record<string, string>> = {
  "===": "!==",
  "!==": "===",
  "+": "-",
  "-": "+",
  "*": "/",
  "/": "*",
  "%": "*",
  "**": "*",
  "&": "|",
  "|": "&",
  ">>": "<<",
  "<<": ">>",
  "&&": "||",
  "||": "&&",
  "++": "--",
  "--": "++",
  "+=": "-=",
  "-=": "+=",
};
const boundaries: Readonly<Record<string, readonly string[]>> = {
  "<": ["<=", ">="],
  "<=": ["<", ">"],
  ">": [">=", "<="],
  ">=": [">", "<"],
};
const methods: Readonly<Record<string, string>> = {
  some: "every",
  every: "some",
  startsWith: "endsWith",
  endsWith: "startsWith",
  toLowerCase: "toUpperCase",
  toUpperCase: "toLowerCase",
  min: "max",
  max: "min",
  indexOf: "lastIndexOf",
  lastIndexOf: "indexOf",
  find: "findLast",
  findIndex: "findLastIndex",
};
/** Calls that may be left out, so that what they are called on stands alone. */
const droppable = new Set(["filter", "slice", "trim", "sort", "replace", "replaceAll", "reverse", "concat"]);

const parser = Parser.extend(tsPlugin());

/** All mutants of a TypeScript source, by place, each once. Throws where the source cannot be parsed. */
export function mutantsOf(source: string): readonly Mutant[] {
  const found = new Map<string, Mutant>();
  const program = parser.parse(source, { sourceType: "module", ecmaVersion: "latest", locations: true });
  const add = (m: Mutant) => {
    const key = `${m.start} ${m.end} ${m.form} ${m.text}`;
    if (m.text !== source.slice(m.start, m.end) && !found.has(key)) found.set(key, m);
  };
  visit(program as unknown as Node, { inFunction: false }, (node, place) => {
    for (const m of ofNode(source, node, place)) add(m);
  });
  return [...found.values()].sort((a, b) => a.start - b.start || b.end - a.end);
}

function visit(node: Node, place: Place, see: (node: Node, place: Place) => void): void {
  if (node.type === "ImportDeclaration") return;
  const cast = /^TS(As|Satisfies|NonNull)Expression$/.test(node.type);
  if (node.type.startsWith("TS") && !cast) return;
  see(node, place);
  const inFunction = place.inFunction || /Function/.test(node.type);
  for (const [key, value] of Object.entries(node)) {
    if (cast && key !== "expression") continue;
    if ((key === "key" || key === "property") && node["computed"] !== true) continue;
    const spine = node.type === "ChainExpression" || key === "callee" || key === "object";
    const chain = node.type === "ChainExpression" ? node : spine ? place.chain : undefined;
    for (const child of Array.isArray(value) ? value : [value]) {
      if (isNode(child)) visit(child, { inFunction, ...(chain === undefined ? {} : { chain }) }, see);
    }
  }
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && typeof (value as Node).type === "string";
}

function ofNode(source: string, node: Node, place: Place): readonly Mutant[] {
  const site = place.chain ?? node;
  /** The site with the text between two places of it changed. */
  const change = (kind: string, from: number, to: number, text: string): Mutant => ({
    start: site.start,
    end: site.end,
    form: "expression",
    text: source.slice(site.start, from) + text + source.slice(to, site.end),
    kind,
  });
  const whole = (kind: string, text: string, of: Node = node): Mutant => ({
    start: of.start,
    end: of.end,
    form: "expression",
    text,
    kind,
  });
  const child = (key: string) => node[key] as Node;
  const empty = (kind: string, start = node.start, end = node.end): Mutant => ({
    start,
    end,
    form: "statements",
    text: "",
    kind,
  });
  const operator = String(node["operator"]);
  const swapped = (left: Node, right: Node, kind: string): readonly Mutant[] => {
    const at = source.indexOf(operator, left.end);
    const others = [
      ...(swaps[operator] === undefined ? [] : [swaps[operator]]),
      ...(boundaries[operator] ?? []),
    ];
    return right.start < at ? [] : others.map((to) => change(kind, at, at + operator.length, to));
  };
  switch (node.type) {
    case "IfStatement":
    case "ConditionalExpression":
      return ["true", "false"].map((text) => whole("condition", text, child("test")));
    case "WhileStatement":
      return [whole("condition", "false", child("test"))];
    case "ForStatement":
      return isNode(node["test"]) ? [whole("condition", "false", child("test"))] : [];
    case "LogicalExpression":
      return ofLogical(source, node, swapped, whole);
    case "BinaryExpression":
      if (operator === "+" && [child("left"), child("right")].some(isText)) return [];
      return swapped(
        child("left"),
        child("right"),
        /[=<>]/.test(operator.replace(/>>|<</, "")) ? "comparison" : "arithmetic",
      );
    case "AssignmentExpression":
      return isText(child("right")) ? [] : swapped(child("left"), child("right"), "arithmetic");
    case "UpdateExpression":
      return [whole("update", source.slice(node.start, node.end).replace(operator, swaps[operator] ?? ""))];
    case "UnaryExpression":
      return operator === "!" || operator === "-" ? [change("negation", node.start, node.start + 1, "")] : [];
    case "Literal":
      return ofLiteral(source, node, place, whole);
    case "TemplateLiteral":
      return [whole("text", "``")];
    case "ArrayExpression":
      return [whole("list", (node["elements"] as readonly unknown[]).length === 0 ? '["mutant"]' : "[]")];
    case "ObjectExpression":
      return [whole("object", "{}")];
    case "BlockStatement":
      return (node["body"] as readonly unknown[]).length === 0 ? [] : [empty("block")];
    case "ExpressionStatement":
      return [empty("statement")];
    case "SwitchCase": {
      const body = node["consequent"] as readonly Node[];
      const [first, last] = [body[0], body.at(-1)];
      if (first === undefined || last === undefined || first.type === "BlockStatement") return [];
      return [empty("case", first.start, last.end)];
    }
    case "ArrowFunctionExpression":
      return child("body").type === "BlockStatement" ? [] : [whole("result", "undefined", child("body"))];
    case "MemberExpression":
    case "CallExpression":
      return [...ofOptional(source, node, change), ...ofMethod(source, node, change)];
    default:
      return [];
  }
}

type Change = (kind: string, from: number, to: number, text: string) => Mutant;
type Whole = (kind: string, text: string, of?: Node) => Mutant;

// An operand of `&&` and `||` is left out; of `??` each side stands alone, but where the compiler asks for a fallback.
function ofLogical(
  source: string,
  node: Node,
  swapped: (left: Node, right: Node, kind: string) => readonly Mutant[],
  whole: Whole,
): readonly Mutant[] {
  const [left, right] = [node["left"] as Node, node["right"] as Node];
  const text = (n: Node) => source.slice(n.start, n.end);
  if (node["operator"] !== "??") {
    const neutral = node["operator"] === "&&" ? "true" : "false";
    return [
      ...swapped(left, right, "logical"),
      ...[left, right].map((side) => whole("operand", neutral, side)),
    ];
  }
  const indexed = left.type === "MemberExpression" && left["computed"] === true;
  return [whole("fallback", text(right)), ...(indexed ? [] : [whole("fallback", text(left))])];
}

function ofLiteral(source: string, node: Node, place: Place, whole: Whole): readonly Mutant[] {
  const { value } = node;
  if (typeof value === "boolean") return [whole("boolean", String(!value))];
  if (node["regex"] !== undefined) {
    return regexMutants(source.slice(node.start, node.end)).map((text) => whole("regex", text));
  }
  // Words of a table are data.
  if (typeof value !== "string" || !place.inFunction) return [];
  return [whole("text", value === "" ? '"mutant"' : '""')];
}

function ofOptional(source: string, node: Node, change: Change): readonly Mutant[] {
  if (node["optional"] !== true) return [];
  const at = source.indexOf("?.", ((node["object"] ?? node["callee"]) as Node).end);
  return [change("optional", at, at + 2, /[[(]/.test(source[at + 2] ?? "") ? "" : ".")];
}

function ofMethod(source: string, node: Node, change: Change): readonly Mutant[] {
  const callee = node["callee"] as Node | undefined;
  if (callee?.type !== "MemberExpression" || callee["computed"] === true) return [];
  const property = callee["property"] as Node;
  const name = String(property["name"]);
  const dot = source.lastIndexOf(callee["optional"] === true ? "?." : ".", property.start);
  const other = Object.hasOwn(methods, name) ? methods[name] : undefined;
  return [
    ...(other === undefined ? [] : [change("method", property.start, property.end, other)]),
    ...(droppable.has(name) ? [change("method", dot, node.end, "")] : []),
  ];
}

function isText(node: Node): boolean {
  return node.type === "TemplateLiteral" || (node.type === "Literal" && typeof node["value"] === "string") ||
    (node.type === "BinaryExpression" && [node["left"], node["right"]].some((n) => isText(n as Node)));
}
