// The fields of a front matter that bound a skill: allowed tools in all their spellings, dependencies, flags. What cannot
// be read narrows, never widens.
import type { Fields, Warn } from "./skill_file.ts";
import { commonTools, isWildcardEntry } from "../core/skill.ts";

/**
 * The entries of allowed-tools as declared; undefined when the field is absent under every spelling. An entry that cannot
 * be read is dropped, so a field that is damaged throughout allows nothing.
 */
export function readToolBound(fields: Fields, warn: Warn): readonly string[] | undefined {
  const keys = fields.spellings("allowed-tools");
  const lists = keys.map((key) => readEntries(key, fields.value(key), warn));
  const [first, ...others] = lists;
  if (first === undefined) return undefined;
  for (const key of keys) {
    if (key !== "allowed-tools" && key !== "allowed_tools") {
      warn("field-alias", `\`${key}\` is read as \`allowed-tools\``, key);
    }
  }
  const bound = others.reduce((entries, list) => commonTools(entries, list), first);
  if (
    others.length > 0 &&
    lists.some((list) => commonTools(list, bound).length !== list.length || list.length !== bound.length)
  ) {
    warn(
      "allowed-tools-conflict",
      `${keys.map((k) => `\`${k}\``).join(" and ")} disagree; only what both allow counts`,
      keys[0],
    );
  }
  if (bound.some(isWildcardEntry)) {
    warn("allowed-tools-wildcard", "`allowed-tools` contains `*`, which bounds nothing", keys[0]);
  }
  return bound;
}

const inText = /[\s,]/;
const inList = /,/;

function readEntries(key: string, value: unknown, warn: Warn): readonly string[] {
  const invalid = (what: string) =>
    warn("allowed-tools-invalid", `\`${key}\`: ${what}; it allows nothing`, key);
  const parts: string[] = [];
  if (typeof value === "string") {
    parts.push(...splitTools(value, inText));
  } else if (Array.isArray(value)) {
    for (const item of value) {
      if (typeof item === "string" && item.trim() !== "") parts.push(...splitTools(item, inList));
      else invalid(`\`${JSON.stringify(item)}\` is not the name of a tool`);
    }
  } else if (value !== null) {
    invalid(`found ${typeof value === "object" ? "a map" : `\`${value}\``}, expected names of tools`);
    return [];
  }
  if (parts.length === 0 && (!Array.isArray(value) || value.length === 0)) {
    warn("allowed-tools-empty", `\`${key}\` lists nothing, so no tool is allowed`, key);
  }
  return parts.filter((part) => isEntry(part) || (invalid(`\`${part}\` is not the name of a tool`), false));
}

/** Splits at separators outside of parentheses; an open parenthesis keeps everything after it in one, unreadable, part. */
function splitTools(text: string, separator: RegExp): readonly string[] {
  if (!text.includes("(")) return text.split(separator).map((p) => p.trim()).filter((p) => p !== "");
  const parts: string[] = [];
  let depth = 0;
  let part = "";
  for (const c of text) {
    if (depth === 0 && separator.test(c)) {
      parts.push(part);
      part = "";
      continue;
    }
    // A blank before a parenthesis leaves a bare name, which would be wider than what was meant.
    if (c === "(" && part === "" && parts.length > 0) part = `${takeLast(parts)} `;
    if (c === "(") depth++;
    if (c === ")") depth--;
    part += c;
  }
  return [...parts, part].map((p) => p.trim()).filter((p) => p !== "");
}

function takeLast(parts: string[]): string {
  let last = "";
  while (last === "" && parts.length > 0) last = parts.pop() ?? "";
  return last;
}

function isEntry(part: string): boolean {
  if (/^[A-Za-z][\w.:-]*$/.test(part)) return true;
  const [, name, inner] = /^([\p{L}\p{N}_.:*/@-]+)(\([\s\S]+\))?$/u.exec(part) ?? [];
  // A glob would open tools that nobody listed; servers hand out theirs under one name.
  if (name?.includes("*") === true && !isWildcardEntry(name) && !/^mcp(__|\.)/.test(name)) return false;
  return name !== undefined && /[\p{L}*]/u.test(name) &&
    (inner === undefined || balanced(inner.slice(1, -1)));
}

function balanced(text: string): boolean {
  let depth = 0;
  for (const c of text) {
    if (c === "(") depth++;
    if (c === ")" && --depth < 0) return false;
  }
  return depth === 0 && text.trim() !== "";
}

/** `tools`: what must exist for the skill to be of use. Without allowed-tools its author may have meant a bound. */
export function readToolList(fields: Fields, bounded: boolean, warn: Warn): readonly string[] {
  const value = fields.value("tools");
  if (value === undefined || value === null) return [];
  if (!bounded) {
    warn(
      "tools-ambiguous",
      "`tools` names what must exist and bounds nothing; write `allowed-tools` for a bound",
      "tools",
    );
  }
  const items = typeof value === "string" ? splitTools(value, inText) : Array.isArray(value) ? value : [];
  return items.filter((item) => typeof item === "string" && isEntry(item.trim())).map((item) =>
    String(item).trim()
  );
}

/** A flag under any spelling; when it cannot be read, or two spellings disagree, the value that closes is taken. */
export function readFlag(
  fields: Fields,
  name: string,
  closed: "closed-when-true" | "closed-when-false",
  warn: Warn,
): boolean {
  const closing = closed === "closed-when-true";
  const keys = fields.spellings(name);
  const values = keys.map((key) => {
    const value = readBoolean(fields.value(key));
    if (value === undefined) {
      warn("flag-invalid", `\`${key}\` is neither true nor false; it is read as ${closing}`, key);
    }
    if (key !== name) warn("field-alias", `\`${key}\` is read as \`${name}\``, key);
    return value ?? closing;
  });
  return values.includes(closing) ? closing : !closing;
}

function readBoolean(value: unknown): boolean | undefined {
  if (typeof value === "boolean") return value;
  if (typeof value !== "string") return undefined;
  const word = value.trim().toLowerCase();
  if (["true", "yes", "on"].includes(word)) return true;
  return ["false", "no", "off"].includes(word) ? false : undefined;
}
