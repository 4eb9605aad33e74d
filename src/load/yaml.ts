// YAML text → plain value plus the place of every key and value. Warnings, aliases, tags and second documents are errors.
import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseAllDocuments,
  type YAMLMap,
} from "yaml";
import { uniqueBy } from "../core/collection.ts";
import type { Loaded, Position, Problem } from "../core/problem.ts";
import { byteLength } from "../core/text.ts";
import { messageOf } from "../core/thrown.ts";
import { yamlFault } from "./yaml_fault.ts";

export type YamlPath = readonly (string | number)[];
export type YamlDocument = {
  readonly value: unknown;
  /** Where the value at `path` stands; the nearest existing parent when it is missing. */
  at(path: YamlPath): Position;
  /** Where the key of the entry at `path` stands. */
  keyAt(path: YamlPath): Position;
  /** How the single value at `path` is written; undefined for maps, lists and what is missing. */
  scalar(path: YamlPath): YamlScalar | undefined;
};

export type YamlScalar = {
  /** The characters of the value, before they are read as a number or a truth value; quotes removed. */
  readonly source: string;
  /** Without quotes and followed by a comment, which may have been meant as part of it. */
  readonly cut: boolean;
};

export function parseYaml(text: string, file: string, maxBytes: number): Loaded<YamlDocument> {
  const bytes = byteLength(text);
  if (bytes > maxBytes) {
    return fail([{
      code: "too-large",
      severity: "error",
      message: `the file has ${bytes} bytes`,
      at: { file, line: 1, col: 1 },
      expected: `at most ${maxBytes}`,
    }]);
  }
  const tooDeep = nestingProblem(text, file);
  if (tooDeep !== undefined) return fail([tooDeep]);
  const lines = new LineCounter();
  const place = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { file, line: Math.max(1, line), col: Math.max(1, col) };
  };
  const documents = parseAllDocuments(text, {
    lineCounter: lines,
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: "error",
  });
  if (!Array.isArray(documents) || documents.length === 0) {
    const nowhere = { value: null, at: () => place(0), keyAt: () => place(0), scalar: () => undefined };
    return { ok: true, value: nowhere, problems: [] };
  }
  const [document, second] = documents;
  if (document === undefined) throw new Error("yaml: no document");
  const problems: Problem[] = [];
  if (second !== undefined) {
    problems.push({
      code: "yaml-documents",
      severity: "error",
      message: "the file holds more than one YAML document",
      at: place(second.range[0]),
      hint: "remove the `---` line and what does not belong here",
    });
  }
  for (const fault of [...document.errors, ...document.warnings]) {
    problems.push({
      code: fault.code === "TAG_RESOLVE_FAILED" ? "yaml-tag" : "invalid-yaml",
      severity: "error",
      at: place(fault.pos[0]),
      ...yamlFault(fault.code, fault.message),
    });
  }
  problems.push(...refusedNodes(document, place));
  if (problems.length > 0) return fail(dedupe(problems));
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 0 });
  } catch (error) {
    return fail([{
      code: "invalid-yaml",
      severity: "error",
      message: messageOf(error),
      at: place(0),
    }]);
  }
  const root = document.contents;
  return {
    ok: true,
    problems: [],
    value: {
      value,
      at: (path) => place(offsetOf(root, path, "value")),
      keyAt: (path) => place(offsetOf(root, path, "key")),
      scalar: (path) => scalarOf(document, path),
    },
  };
}

// Tags that say no more than the plain reading would.
const harmlessTags = new Set([
  "!",
  ...["str", "int", "float", "bool", "null", "map", "seq"].map((t) => `tag:yaml.org,2002:${t}`),
]);

// By hand: the library's own walk copies the path to every node, which takes minutes for what is nested by thousands.
function refusedNodes(document: Document.Parsed, place: (offset: number) => Position): Problem[] {
  const problems: Problem[] = [];
  const look = (node: unknown): void => {
    if (!isNode(node)) return;
    const at = place(node.range?.[0] ?? 0);
    if (isAlias(node)) {
      problems.push(refused("yaml-alias", "aliases are not allowed", at));
      return;
    }
    if ("anchor" in node && typeof node.anchor === "string") {
      problems.push(refused("yaml-alias", `anchors are not allowed (\`&${node.anchor}\`)`, at));
    }
    if (node.tag !== undefined && !harmlessTags.has(node.tag)) {
      problems.push(refused("yaml-tag", `the tag \`${node.tag}\` is not allowed`, at));
    }
    if (isSeq(node)) node.items.forEach(look);
    if (!isMap(node)) return;
    problems.push(...keysSetTwice(node, place));
    for (const { key, value } of node.items) {
      if (key !== null && !isScalar(key)) {
        const offset = isNode(key) ? key.range?.[0] : undefined;
        problems.push(refused("invalid-yaml", "a key is not a single word or text", place(offset ?? 0)));
      }
      look(key);
      look(value);
    }
  };
  look(document.contents);
  return problems;
}

// The parser compares every key of a mapping with every other, which takes minutes for a long one.
function keysSetTwice(map: YAMLMap, place: (offset: number) => Position): Problem[] {
  const first = new Map<string, Position>();
  return map.items.flatMap(({ key }): Problem[] => {
    if (!isScalar(key)) return [];
    const name = String(key.value);
    const at = place(key.range?.[0] ?? 0);
    const before = first.get(name);
    if (before === undefined) {
      first.set(name, at);
      return [];
    }
    return [{
      code: "duplicate-key",
      severity: "error",
      message:
        `the key \`${name}\` is set twice in one mapping, in line ${before.line} and in line ${at.line}`,
      at,
      hint: "keep one of them",
    }];
  });
}

const mostLevels = 100;

// The parser recurses: a text with tens of thousands of open brackets would end the process, not the parse; and some hundreds of
// keys or lists within each other, on one line or on lines that are further in each, would keep it busy for many seconds.
function nestingProblem(text: string, file: string): Problem | undefined {
  const deep: Problem = {
    code: "invalid-yaml",
    severity: "error",
    message: `nested deeper than ${mostLevels} levels`,
    at: { file, line: 1, col: 1 },
  };
  if (isDeepInBlocks(text)) return deep;
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === "[" || c === "{") depth++;
    else if (c === "]" || c === "}") depth = Math.max(0, depth - 1);
    if (depth > mostLevels) return deep;
  }
  return undefined;
}

/** Marks that open something and follow each other on a line. */
const openRun = /(?:(?:[-?:]|[&!][^ \t]*)(?:[ \t]+|$)){2,}/g;

// Whether lines stand further in than lines before them, and open more on the way, than a parser should follow.
function isDeepInBlocks(text: string): boolean {
  const open: { readonly indent: number; readonly levels: number }[] = [];
  let depth = 0;
  for (const line of text.split("\n")) {
    const indent = line.search(/[^ \t]/);
    if (indent < 0) continue;
    while ((open.at(-1)?.indent ?? -1) >= indent) depth -= open.pop()?.levels ?? 0;
    const runs = [...line.matchAll(openRun)].map(([run]) => run.trim().split(/[ \t]+/).length);
    const levels = Math.max(1, ...runs);
    open.push({ indent, levels });
    depth += levels;
    if (depth > mostLevels) return true;
  }
  return false;
}

function offsetOf(root: Node | null, path: YamlPath, want: "key" | "value"): number {
  let node: Node | null = root;
  let offset = node?.range?.[0] ?? 0;
  for (const [index, step] of path.entries()) {
    const last = index === path.length - 1;
    if (isMap(node)) {
      const pair = pairsOf(node).get(String(step));
      if (pair === undefined) return offset;
      const key = isNode(pair.key) ? pair.key.range?.[0] : undefined;
      const value = isNode(pair.value) ? pair.value.range?.[0] : undefined;
      offset = (last && want === "key" ? key : value ?? key) ?? offset;
      node = isNode(pair.value) ? pair.value : null;
    } else if (isSeq(node)) {
      const item = node.items[Number(step)];
      if (!isNode(item)) return offset;
      offset = item.range?.[0] ?? offset;
      node = item;
    } else {
      return offset;
    }
  }
  return offset;
}

// The places of all keys are asked for one by one.
const pairs = new WeakMap<YAMLMap, ReadonlyMap<string, Pair>>();

function pairsOf(map: YAMLMap): ReadonlyMap<string, Pair> {
  const known = pairs.get(map);
  if (known !== undefined) return known;
  const found = new Map(
    map.items.flatMap((item) => isScalar(item.key) ? [[String(item.key.value), item]] : []),
  );
  pairs.set(map, found);
  return found;
}

function scalarOf(document: Document.Parsed, path: YamlPath): YamlScalar | undefined {
  const node = document.getIn(path, true);
  if (!isScalar(node)) return undefined;
  const source = typeof node.value === "string" ? node.value : node.source ?? String(node.value ?? "");
  return {
    source,
    cut: node.type === "PLAIN" && node.comment !== undefined && node.comment !== null,
  };
}

function refused(code: string, message: string, at: Position): Problem {
  return { code, severity: "error", message, at, hint: "write the value out" };
}

function dedupe(problems: readonly Problem[]): Problem[] {
  return uniqueBy(problems, (p) => `${p.code} ${p.at?.line}:${p.at?.col}`);
}

function fail(problems: readonly Problem[]): { readonly ok: false; readonly problems: readonly Problem[] } {
  return { ok: false, problems };
}
