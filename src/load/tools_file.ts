// tools.json of a skill → its command tools. A file that is wrong anywhere refuses its skill.
import { realpathSync, statSync } from "node:fs";
import { isAbsolute, join, relative } from "node:path";
import { isEmbedded } from "./assets.ts";
import { parseDuration } from "./duration.ts";
import { readWhole } from "./file_head.ts";
import { deeperThan } from "../core/collection.ts";
import { canBringTools, type CommandTool } from "../core/command_tool.ts";
import { type Risk, risks } from "../core/decision.ts";
import type { InputSchema } from "../core/message.ts";
import { isBelow } from "../core/path.ts";
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
  /** Says where, what is wrong and what is expected. */
  | { readonly ok: false; readonly message: string };

/** The command tools of the skill in a folder (a real path), in their order; undefined when it has no tools.json. */
export function readToolsFile(folder: string, skill: string): ToolsFile | undefined {
  const path = join(folder, "tools.json");
  try {
    if (statSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
    if (isEmbedded(folder)) return fault("cannot run files that are inside the executable");
    if (!canBringTools(skill)) {
      return fault(
        `needs another name of the skill: rules know its tools as \`skill.NAME.TOOL\`, so that the name may hold no blank, dot, \`*\` or parenthesis`,
      );
    }
    const whole = readWhole(path, toolsCap);
    if (!whole.ok) return fault(`has ${whole.size} bytes; at most ${toolsCap} are read`);
    const parsed = parseTools(whole.bytes);
    if (!parsed.ok) return parsed;
    if (parsed.entries.length > mostTools) {
      return fault(`has ${parsed.entries.length} tools; at most ${mostTools} are taken`);
    }
    const tools: CommandTool[] = [];
    for (const [index, entry] of parsed.entries.entries()) {
      const read = readTool(entry, folder, tools.map((t) => t.name));
      if (typeof read === "string") return fault(`${entryName(entry, index)}: ${read}`);
      tools.push(read);
    }
    return { ok: true, tools };
  } catch (error) {
    return fault(`cannot be read: ${messageOf(error)}`);
  }
}

function fault(what: string): ToolsFile & { readonly ok: false } {
  return { ok: false, message: `\`tools.json\` ${what}` };
}

function parseTools(
  bytes: Uint8Array,
): { readonly ok: true; readonly entries: readonly unknown[] } | ToolsFile & { readonly ok: false } {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return fault("is not UTF-8");
  }
  let entries: unknown;
  try {
    entries = JSON.parse(text);
  } catch (error) {
    return fault(`is not JSON: ${escapeLine(messageOf(error).slice(0, 200))}`);
  }
  if (!Array.isArray(entries)) return fault("is not a list of tools");
  return deeperThan(entries, mostDepth)
    ? fault(`nests deeper than ${mostDepth} levels`)
    : { ok: true, entries };
}

function entryName(entry: unknown, index: number): string {
  const name = isObject(entry) && typeof entry["name"] === "string" ? escapeLine(entry["name"]) : "";
  return `entry ${index + 1}${name === "" ? "" : ` (${name.slice(0, 64)})`}`;
}

const keys = ["name", "description", "input_schema", "command", "timeout", "risk"];

// The tool, or what is wrong with it: the key, what was found, what is expected.
function readTool(entry: unknown, folder: string, before: readonly string[]): CommandTool | string {
  if (!isObject(entry)) return "is not a map";
  const unknown = Object.keys(entry).find((key) => !keys.includes(key));
  if (unknown !== undefined) {
    return `the key \`${escapeLine(unknown.slice(0, 64))}\` is not known; expected ${
      keys.map((k) => `\`${k}\``).join(", ")
    }`;
  }
  const { name, description, input_schema: schema, command, timeout, risk } = entry;
  if (typeof name !== "string" || !/^[A-Za-z][\w-]{0,63}$/.test(name)) {
    return "`name` is not a word of letters, digits, `_` and `-`, at most 64";
  }
  if (builtinTools.includes(name)) return `\`name\`: \`${name}\` is the name of a built-in tool`;
  if (name.startsWith("mcp__")) return `\`name\`: \`${name}\` reads as the tool of an MCP server`;
  if (before.includes(name)) return `\`name\`: \`${name}\` is there twice`;
  if (typeof description !== "string" || dropHidden(description).trim() === "") {
    return "`description` is missing";
  }
  if (description.length > 4096) return "`description` has more than 4096 characters";
  if (!isInputSchema(schema)) return "`input_schema` is not a JSON Schema of type object";
  const unsound = schemaFault(schema);
  if (unsound !== undefined) return `\`input_schema\`: ${unsound}`;
  const words = commandWords(command);
  if (words === undefined) return "`command` is not a list of words, the program first";
  const program = readProgram(words[0], folder);
  if (!program.ok) return `\`command\`: ${program.message}`;
  const timeoutMs = timeout === undefined ? undefined : readTimeout(timeout);
  if (timeout !== undefined && timeoutMs === undefined) {
    return "`timeout` is neither a number of seconds above zero nor a duration such as `90s`";
  }
  if (risk !== undefined && !isRisk(risk)) {
    return `\`risk\` is none of ${risks.map((r) => `\`${r}\``).join(", ")}`;
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
  const out = { ok: false, message: `the program \`${shown}\` leads out of the skill's folder` } as const;
  const written = isAbsolute(program) ? program : join(folder, program);
  if (!isBelow(written, folder)) return out;
  try {
    if (!isBelow(realpathSync(written), folder)) return out;
  } catch {
    return { ok: false, message: `the program \`${shown}\` is not in the skill's folder` };
  }
  return { ok: true, word: `./${relative(folder, written).replaceAll("\\", "/")}` };
}
