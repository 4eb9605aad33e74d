// The block between the `---` lines of a SKILL.md: where it ends, its YAML, and the one repair of values meant as prose.
import type { Position, Problem } from "../core/problem.ts";
import { byteLength } from "../core/text.ts";
import { parsePlainYaml } from "./plain_yaml.ts";
import { parseYaml, type YamlDocument } from "./yaml.ts";

/** A block with more bytes is refused before it is parsed. */
export const frontMatterCap = 16 * 1024;

export type FrontMatterFault = {
  readonly ok: false;
  readonly reason: string;
  readonly message: string;
  readonly hint: string;
  readonly at: Position;
};

export type FrontMatter = {
  readonly ok: true;
  /** With `\n` line ends. */
  readonly block: string;
  /** Lines of the file before the block. */
  readonly linesBefore: number;
  /** Offset of the line after the closing fence. */
  readonly bodyStart: number;
};

const opening = /^\uFEFF?(?:[ \t]*(?:\r\n|\n|\r))*---[ \t]*(?:\r\n|\n|\r|$)/;

/**
 * Finds the block at the start of a text; a byte order mark and blank lines may stand before it. Line ends of any kind;
 * blanks and tabs may follow a fence.
 */
export function splitFrontMatter(text: string, file: string): FrontMatter | FrontMatterFault {
  const head = opening.exec(text)?.[0];
  if (head === undefined) {
    return fault("frontmatter-missing", "the first line is not `---`", at(file, 1), {
      hint: "begin the file with a `---` line, `name:` and `description:`, and another `---` line",
    });
  }
  // The line end of the opening fence may be the one before the closing fence.
  const closing = /(?:\r\n|\n|\r)---[ \t]*(?:\r\n|\n|\r|$)/g;
  closing.lastIndex = head.length - (head.endsWith("\r\n") ? 2 : 1);
  const end = closing.exec(text);
  const block = text.slice(head.length, end === null ? undefined : Math.max(end.index, head.length));
  if (block.length * 3 > frontMatterCap && byteLength(block) > frontMatterCap) {
    return fault(
      "frontmatter-unclosed",
      `no closing \`---\` line in the first ${frontMatterCap} bytes`,
      at(file, 1),
      {
        hint: "close the front matter with a line that is only `---`, or make it shorter",
      },
    );
  }
  if (end === null) {
    return fault("frontmatter-unclosed", "the front matter has no closing `---` line", at(file, 1), {
      hint: "close it with a line that is only `---`",
    });
  }
  return {
    ok: true,
    block: block.replace(/\r\n?/g, "\n"),
    linesBefore: head.match(/\r\n|\n|\r/g)?.length ?? 0,
    bodyStart: end.index + end[0].length,
  };
}

export type Block =
  | { readonly ok: true; readonly document: YamlDocument; readonly repaired: boolean }
  | FrontMatterFault;

/**
 * Reads the block. When it is not valid YAML, values that were plainly meant as prose are quoted, once; a block that
 * cannot be read after that is refused, never read in part.
 */
export function parseBlock(front: FrontMatter, file: string): Block {
  const { block, linesBefore } = front;
  const first = read(block, file, linesBefore);
  if (first.ok) return { ...first, repaired: false };
  const better = repairBlock(block);
  if (better === undefined || better === block) return first;
  const second = read(better, file, linesBefore);
  return second.ok ? { ...second, repaired: true } : second;
}

function read(
  block: string,
  file: string,
  linesBefore: number,
): { readonly ok: true; readonly document: YamlDocument } | FrontMatterFault {
  if (block.includes("\uFFFD")) {
    return fault("invalid-yaml", "the front matter is not valid UTF-8", at(file, 1), {
      hint: "save the file as UTF-8",
    });
  }
  // So that positions are those of the file.
  const text = "\n".repeat(linesBefore) + block;
  const plain = parsePlainYaml(text, file);
  if (plain !== undefined) return { ok: true, document: plain };
  const parsed = parseYaml(text, file, 2 * frontMatterCap);
  if (parsed.ok) return { ok: true, document: parsed.value };
  const { reason, problem } = classify(parsed.problems, block);
  return fault(reason, problem?.message ?? "not valid YAML", problem?.at ?? at(file, 1), {
    hint: hints[reason] ?? "put the value in single quotes",
  });
}

const hints: Readonly<Record<string, string>> = {
  "duplicate-key": "keep one of the two lines",
  "yaml-tag": "remove the tag, or put the value in quotes",
  "yaml-alias-limit": "write the value out; a value that begins with `*` or `&` needs quotes",
};

// The library also reports lines of a broken list as keys that are there twice.
function classify(
  problems: readonly Problem[],
  block: string,
): { readonly reason: string; readonly problem: Problem | undefined } {
  const find = (code: string) => problems.find((p) => p.code === code);
  const invalid = find("invalid-yaml");
  const duplicate = find("duplicate-key");
  if (duplicate !== undefined && (invalid === undefined || repeatsKey(block))) {
    return { reason: "duplicate-key", problem: duplicate };
  }
  const tag = find("yaml-tag");
  if (tag !== undefined) return { reason: "yaml-tag", problem: tag };
  const alias = find("yaml-alias");
  if (invalid === undefined && alias !== undefined) return { reason: "yaml-alias-limit", problem: alias };
  return { reason: "invalid-yaml", problem: invalid ?? problems[0] };
}

function repeatsKey(block: string): boolean {
  const keys = block.split("\n").flatMap((line) => keyLine.exec(line)?.[1] ?? []);
  return new Set(keys).size < keys.length;
}

// Repair: entries are looked at one by one, and only those that do not parse alone are touched. -------------------------

const keyLine = /^([\p{L}_][\p{L}\p{N}_.-]*)[ \t]*:(?:[ \t]+(.*))?$/u;

/** The block with prose values quoted; undefined when some line is not understood. */
function repairBlock(block: string): string | undefined {
  const entries = splitEntries(block.split("\n"));
  if (entries === undefined) return undefined;
  const aliased = new Set([...block.matchAll(/(?<=[\s,[{])\*([^\s,[\]{}]+)/g)].map((m) => m[1]));
  const out: string[] = [];
  for (const lines of entries) {
    const repaired = parses(lines.join("\n")) ? lines : repairEntry(lines, aliased);
    if (repaired === undefined) return undefined;
    out.push(...repaired);
  }
  return out.join("\n");
}

function parses(text: string): boolean {
  return parseYaml(text, "", 2 * frontMatterCap).ok;
}

// One entry: a `key:` line without indentation and what belongs to it. A list may stand without indentation below a key
// that has no value of its own. Any other line without indentation makes the whole block unreadable.
function splitEntries(lines: readonly string[]): string[][] | undefined {
  const entries: string[][] = [];
  for (const line of lines) {
    const current = entries.at(-1);
    const key = keyLine.exec(line);
    if (/^(?:[ \t]|#|$)/.test(line)) {
      if (current === undefined) entries.push([line]);
      else current.push(line);
    } else if (key !== null) {
      entries.push([line]);
    } else if (line.startsWith("- ") && current !== undefined && isBareKey(current[0] ?? "")) {
      current.push(line);
    } else {
      return undefined;
    }
  }
  return entries;
}

function isBareKey(line: string): boolean {
  const key = keyLine.exec(line);
  return key !== null && (key[2] ?? "").trim() === "";
}

function repairEntry(
  lines: readonly string[],
  aliased: ReadonlySet<string | undefined>,
): string[] | undefined {
  const [first = "", ...rest] = lines;
  const [, key, value] = keyLine.exec(first) ?? [];
  if (key === undefined) return undefined;
  if (value === undefined || value.trim() === "") return repairNested(first, rest);
  if (!isProse(value.trim(), aliased) || rest.some(holdsBound)) return undefined;
  const text = [value, ...rest].map((line) => line.trim()).join("\n").trim()
    .replace(/\n+/g, (breaks) => breaks.length === 1 ? " " : "\n".repeat(breaks.length - 1));
  return [`${key}: ${JSON.stringify(withoutOuterQuotes(text))}`];
}

// A map below a key is repaired like the block itself; tabs are not indentation.
function repairNested(first: string, rest: readonly string[]): string[] | undefined {
  const filled = rest.filter((line) => line.trim() !== "");
  const indent = /^ */.exec(filled[0] ?? "")?.[0].length ?? 0;
  if (indent === 0 || filled.some((line) => !line.startsWith(" ".repeat(indent)))) return undefined;
  const inner = repairBlock(filled.map((line) => line.slice(indent)).join("\n"));
  return inner === undefined
    ? undefined
    : [first, ...inner.split("\n").map((line) => " ".repeat(indent) + line)];
}

// Folding such a line into the prose before it would lose a bound.
const bounds =
  /^\s+(?:(?:dis)?allowed[-_ ]?tools|disable[-_ ]?model[-_ ]?invocation|user[-_ ]?invocable)[ \t]*:/i;

function holdsBound(line: string): boolean {
  return bounds.test(line);
}

/** Whether a value that is not YAML can only have been meant as text: it is neither a tag nor something left open. */
function isProse(value: string, aliased: ReadonlySet<string | undefined>): boolean {
  switch (value[0]) {
    case "!":
      return false;
    case "*":
      return !/^\*[\w-]+$/.test(value);
    case "&":
      return !aliased.has(/^&([^\s,[\]{}]*)/.exec(value)?.[1]);
    case "[":
    case "{":
      return textAfterBracket(value);
    case '"':
    case "'":
      return value.indexOf(value[0], 1) > 0;
    case "|":
    case ">":
      return !/^[|>][-+0-9]*[ \t]*(?:#.*)?$/.test(value);
    default:
      return true;
  }
}

function textAfterBracket(value: string): boolean {
  let depth = 0;
  for (const [index, c] of [...value].entries()) {
    if (c === "[" || c === "{") depth++;
    else if (c === "]" || c === "}") depth--;
    if (depth === 0) return value.slice(index + 1).trim() !== "";
  }
  return false;
}

// `'Don't'` and `"C:\new"` are quoted texts with a slip inside; `"A" and "B"` is text that begins with a quotation.
function withoutOuterQuotes(text: string): string {
  const quote = text[0];
  if (quote !== '"' && quote !== "'") return text;
  if (text.length < 2 || !text.endsWith(quote)) return text;
  const inner = text.slice(1, -1);
  const next = inner.indexOf(quote);
  const closes = next >= 0 && !/[\p{L}\p{N}]/u.test(inner[next + 1] ?? "");
  return closes ? text : inner;
}

function at(file: string, line: number): Position {
  return { file, line, col: 1 };
}

function fault(
  reason: string,
  message: string,
  place: Position,
  more: { readonly hint: string },
): FrontMatterFault {
  return { ok: false, reason, message, hint: more.hint, at: place };
}
