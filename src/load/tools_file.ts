// tools.json of a skill: is it what it must be? Command tools are not offered yet, but a file that reaches out of its folder
// refuses its skill, now as later.
import { realpathSync, statSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { isEmbedded } from "./assets.ts";
import { readWhole } from "./file_head.ts";
import { isBelow } from "../core/path.ts";
import { escapeLine, isObject } from "../core/text.ts";
import { messageOf } from "../core/thrown.ts";
import { builtinTools } from "../core/tool_names.ts";

const toolsCap = 256 * 1024;

export type ToolsFile =
  | { readonly ok: true; readonly names: readonly string[] }
  /** Says what is wrong and what is expected. */
  | { readonly ok: false; readonly message: string };

/** The names of the command tools in a skill's folder (a real path); undefined when it has no tools.json. */
export function checkToolsFile(folder: string): ToolsFile | undefined {
  const path = join(folder, "tools.json");
  try {
    if (statSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
    const whole = readWhole(path, toolsCap);
    if (!whole.ok) return fault(`has ${whole.size} bytes; at most ${toolsCap} are read`);
    const tools: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(whole.bytes));
    if (!Array.isArray(tools)) return fault("is not a list of tools");
    const names: string[] = [];
    for (const [index, tool] of tools.entries()) {
      const wrong = checkTool(tool, folder, names);
      if (wrong !== undefined) return fault(`entry ${index + 1}: ${wrong}`);
      names.push(String(tool.name));
    }
    return { ok: true, names };
  } catch (error) {
    return fault(`cannot be read: ${messageOf(error)}`);
  }
}

function fault(what: string): ToolsFile {
  return { ok: false, message: `\`tools.json\` ${what}` };
}

function checkTool(tool: unknown, folder: string, before: readonly string[]): string | undefined {
  if (!isObject(tool)) return "not a map";
  const { name, description, input_schema: schema, command } = tool;
  if (typeof name !== "string" || !/^[A-Za-z][\w-]{0,63}$/.test(name)) return "`name` is not a word";
  if (builtinTools.includes(name)) return `\`${name}\` is the name of a built-in tool`;
  if (before.includes(name)) return `\`${name}\` is there twice`;
  if (typeof description !== "string" || description.trim() === "") return "`description` is missing";
  if (!isObject(schema) || schema["type"] !== "object") {
    return "`input_schema` is not a JSON Schema of type object";
  }
  if (
    !Array.isArray(command) || command.length === 0 ||
    command.some((w) => typeof w !== "string" || w.includes("\0"))
  ) {
    return "`command` is not a list of words";
  }
  return checkProgram(String(command[0]), folder);
}

// A bare word is looked up on the fixed PATH when it runs; anything else must be a file of the skill itself.
function checkProgram(program: string, folder: string): string | undefined {
  if (/^[\w.+-]+$/.test(program) && program !== "." && program !== "..") return undefined;
  const shown = escapeLine(program.slice(0, 80));
  if (program.trim() === "") return "`command` names no program";
  const out = `the program \`${shown}\` leads out of the skill's folder`;
  const written = isAbsolute(program) ? program : join(folder, program);
  if (!isBelow(written, folder)) return out;
  try {
    const real = isEmbedded(written) ? written : realpathSync(written);
    return isBelow(real, folder) ? undefined : out;
  } catch {
    return `the program \`${shown}\` is not in the skill's folder`;
  }
}
