// tools.json of a skill → its command tools. A file that is wrong anywhere refuses its skill.
import { realpathSync, statSync } from "node:fs";
import { isAbsolute, join, relative } from "node:path";
import { isEmbedded } from "./assets.ts";
import { parseDuration } from "./duration.ts";
import { readWhole } from "./file_head.ts";
import { jsonPlaces } from "./json_places.ts";
import { showFound } from "./check_value.ts";
import { placeIn } from "./text_place.ts";
import { deeperThan } from "../core/collection.ts";
import { canBringTools, type CommandTool } from "../core/command_tool.ts";
import { type Risk, risks } from "../core/decision.ts";
import type { InputSchema } from "../core/message.ts";
import { isBelow } from "../core/path.ts";
import { nearest, type Position } from "../core/problem.ts";
import { dropHidden, escapeLine, isObject } from "../core/text.ts";
import { messageOf } from "../core/thrown.ts";
import { builtinTools } from "../core/tool_names.ts";

const toolsCap = 256 * 1024;
const mostTools = 64;
const mostDepth = 64;
// Definitions that refer to each other twice double the work of checking arguments with each step.
const mostReferences = 32;

export type ToolsFile =
  | { readonly ok: true; readonly tools: readonly CommandTool[] }
  | ToolsFault;
/** `says` follows the name of the file: what is wrong, and what is expected. */
export type ToolsFault = { readonly ok: false; readonly says: string; readonly at: Position };

/** The command tools of the skill in a folder (a real path), in their order; undefined when it has no tools.json. */
export function readToolsFile(folder: string, skill: string): ToolsFile | undefined {
  const path = join(folder, "tools.json");
  const refuse = (says: string, at = { file: path, line: 1, col: 1 }): ToolsFault => ({
    ok: false,
    says,
    at,
  });
  try {
    if (statSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
    if (isEmbedded(folder)) return refuse("cannot run files that are inside the executable");
    if (!canBringTools(skill)) {
      return refuse(
        `needs another name of the skill: rules know its tools as \`skill.NAME.TOOL\`, so that the name may hold no blank, dot, \`*\` or parenthesis`,
      );
    }
    const whole = readWhole(path, toolsCap);
    if (!whole.ok) return refuse(`has ${whole.size} bytes; at most ${toolsCap} are read`);
    const text = decode(whole.bytes);
    if (text === undefined) return refuse("is not UTF-8");
    const read = readTools(text, folder);
    return read.ok ? read : refuse(read.says, placeIn(text, path, read.offset));
  } catch (error) {
    return refuse(`cannot be read: ${messageOf(error)}`);
  }
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

type ReadTools =
  | { readonly ok: true; readonly tools: readonly CommandTool[] }
  | { readonly ok: false; readonly says: string; readonly offset: number };

function readTools(text: string, folder: string): ReadTools {
  let entries: unknown;
  try {
    entries = JSON.parse(text);
  } catch (error) {
    const { fault } = jsonPlaces(text);
    const says = fault?.says ?? escapeLine(messageOf(error).slice(0, 200));
    return { ok: false, says: `is not JSON: ${says}`, offset: fault?.offset ?? 0 };
  }
  if (!Array.isArray(entries)) {
    return {
      ok: false,
      says: `is ${showFound(entries)}; expected a list of tools, \`[{"name": …}]\``,
      offset: jsonPlaces(text).at([]),
    };
  }
  if (deeperThan(entries, mostDepth)) {
    return { ok: false, says: `nests deeper than ${mostDepth} levels`, offset: 0 };
  }
  if (entries.length > mostTools) {
    return { ok: false, says: `has ${entries.length} tools; at most ${mostTools} are taken`, offset: 0 };
  }
  const tools: CommandTool[] = [];
  for (const [index, entry] of entries.entries()) {
    const read = readTool(entry, folder, tools.map((t) => t.name));
    if (!("says" in read)) {
      tools.push(read);
      continue;
    }
    const { says, key, unknown } = read;
    const places = jsonPlaces(text);
    const path = [index, ...key === undefined ? [] : [key]];
    return {
      ok: false,
      says: `${entryName(entry, index)}: ${says}`,
      offset: unknown === true ? places.keyAt(path) : places.at(path),
    };
  }
  return { ok: true, tools };
}

function entryName(entry: unknown, index: number): string {
  const name = isObject(entry) && typeof entry["name"] === "string" ? escapeLine(entry["name"]) : "";
  return `entry ${index + 1}${name === "" ? "" : ` (${name.slice(0, 64)})`}`;
}

const keys = ["name", "description", "input_schema", "command", "timeout", "risk"];

/** What is wrong with an entry: at which key, where it is one; `unknown`: it is the key itself. */
type EntryFault = { readonly says: string; readonly key?: string; readonly unknown?: true };

function readTool(entry: unknown, folder: string, before: readonly string[]): CommandTool | EntryFault {
  if (!isObject(entry)) return { says: `is ${showFound(entry)}; expected a mapping with the keys of a tool` };
  const unknown = Object.keys(entry).find((key) => !keys.includes(key));
  if (unknown !== undefined) return { says: unknownKey(unknown), key: unknown, unknown: true };
  const { name, description, input_schema: schema, command, timeout, risk } = entry;
  if (typeof name !== "string" || !/^[A-Za-z][\w-]{0,63}$/.test(name)) {
    return wrong("name", name, "a word of letters, digits, `_` and `-`, at most 64, a letter first");
  }
  const taken = takenName(name, before);
  if (taken !== undefined) return { says: `\`name\`: \`${name}\` ${taken}`, key: "name" };
  if (typeof description !== "string" || dropHidden(description).trim() === "") {
    return wrong("description", description, "a text that says when the model should call it");
  }
  if (description.length > 4096) {
    return {
      says: `\`description\` has ${description.length} characters; at most 4096 are taken`,
      key: "description",
    };
  }
  if (isObject(schema) && schema["type"] !== "object") {
    return {
      says: `\`input_schema\`: its \`type\` is ${showFound(schema["type"])}; expected \`object\``,
      key: "input_schema",
    };
  }
  if (!isInputSchema(schema)) return wrong("input_schema", schema, 'a JSON Schema with `"type": "object"`');
  const unsound = schemaFault(schema);
  if (unsound !== undefined) return { says: `\`input_schema\`: ${unsound}`, key: "input_schema" };
  const words = commandWords(command);
  if (words === undefined) {
    return wrong("command", command, 'a list of words, the program first, such as `["./run.sh", "--all"]`');
  }
  const program = readProgram(words[0], folder);
  if (!program.ok) return { says: `\`command\`: ${program.message}`, key: "command" };
  const timeoutMs = timeout === undefined ? undefined : readTimeout(timeout);
  if (timeout !== undefined && timeoutMs === undefined) {
    return wrong("timeout", timeout, "a number of seconds above zero, or a duration such as `90s`");
  }
  if (risk !== undefined && !isRisk(risk)) {
    return wrong("risk", risk, `one of ${risks.map((r) => `\`${r}\``).join(", ")}`);
  }
  return {
    name,
    description: dropHidden(description).trim(),
    inputSchema: schema,
    command: [program.word, ...words.slice(1)],
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(risk === undefined ? {} : { risk }),
  };
}

function wrong(key: string, found: unknown, expected: string): EntryFault {
  const is = found === undefined ? "is missing" : `is ${shown(found)}`;
  return { says: `\`${key}\` ${is}; expected ${expected}`, key };
}

function shown(value: unknown): string {
  if (typeof value === "string" && value.trim() === "") return "empty";
  if (typeof value !== "object") return showFound(value);
  const text = escapeLine(JSON.stringify(value));
  return `\`${text.length > 60 ? `${text.slice(0, 60)}…` : text}\``;
}

// What others call the same thing.
const otherNames: { readonly [key: string]: string } = {
  cmd: "command",
  exec: "command",
  run: "command",
  parameters: "input_schema",
  schema: "input_schema",
};

function unknownKey(key: string): string {
  const meant = nearest(key, keys) ?? (Object.hasOwn(otherNames, key) ? otherNames[key] : undefined);
  const hint = meant === undefined
    ? `known here: ${keys.map((k) => `\`${k}\``).join(", ")}`
    : `did you mean \`${meant}\`?`;
  return `unknown key \`${escapeLine(key.slice(0, 64))}\`; ${hint}`;
}

function takenName(name: string, before: readonly string[]): string | undefined {
  if (builtinTools.includes(name)) return "is the name of a built-in tool; choose another one";
  if (name.startsWith("mcp__")) return "reads as the tool of an MCP server; choose another one";
  return before.includes(name) ? "is there twice; rename one of them" : undefined;
}

function isInputSchema(value: unknown): value is InputSchema {
  return isObject(value) && value["type"] === "object";
}

// Providers refuse a whole request for one schema that they cannot read.
function schemaFault(schema: InputSchema): string | undefined {
  const { properties, required } = schema;
  if (properties !== undefined && !(isObject(properties) && Object.values(properties).every(isSchema))) {
    return "`properties` is not a map of schemas";
  }
  if (required !== undefined && !(Array.isArray(required) && required.every((r) => typeof r === "string"))) {
    return "`required` is not a list of names";
  }
  return countReferences(schema) > mostReferences
    ? `it holds more than ${mostReferences} \`$ref\``
    : undefined;
}

function isSchema(value: unknown): boolean {
  return isObject(value) || typeof value === "boolean";
}

function countReferences(value: unknown): number {
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + countReferences(item), 0);
  if (!isObject(value)) return 0;
  return Object.entries(value).reduce(
    (sum, [key, inner]) => sum + (/^\$(?:dynamic|recursive)?ref$/i.test(key) ? 1 : countReferences(inner)),
    0,
  );
}

function isRisk(value: unknown): value is Risk {
  return (risks as readonly unknown[]).includes(value);
}

function commandWords(value: unknown): readonly [string, ...string[]] | undefined {
  if (!Array.isArray(value)) return undefined;
  const words = value.filter((w): w is string => typeof w === "string" && !w.includes("\0"));
  const [program, ...rest] = words;
  return program === undefined || words.length !== value.length ? undefined : [program, ...rest];
}

function readTimeout(value: unknown): number | undefined {
  const ms = typeof value === "string"
    ? parseDuration(value)
    : typeof value === "number"
    ? Math.round(value * 1000)
    : undefined;
  return ms !== undefined && ms > 0 && Number.isSafeInteger(ms) ? ms : undefined;
}

type Program =
  | { readonly ok: true; readonly word: string }
  | { readonly ok: false; readonly message: string };

// A bare word is looked up on the fixed PATH when it runs; anything else must be a file of the skill itself.
function readProgram(program: string, folder: string): Program {
  if (/^[\w.+-]+$/.test(program) && program !== "." && program !== "..") return { ok: true, word: program };
  const shown = escapeLine(program.slice(0, 80));
  if (program.trim() === "") return { ok: false, message: "it names no program" };
  const out = {
    ok: false,
    message:
      `the program \`${shown}\` leads out of the skill's folder; name a file in it, or a program of PATH without a slash`,
  } as const;
  const written = isAbsolute(program) ? program : join(folder, program);
  if (!isBelow(written, folder)) return out;
  try {
    if (!isBelow(realpathSync(written), folder)) return out;
  } catch {
    return {
      ok: false,
      message:
        `the program \`${shown}\` is not in the skill's folder; put it there, or name one of PATH without a slash`,
    };
  }
  return { ok: true, word: `./${relative(folder, written).replaceAll("\\", "/")}` };
}
