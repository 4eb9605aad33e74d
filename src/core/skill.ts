// A skill: what its front matter says, where it comes from, and how its body is rendered for the model.
import type { CommandTool } from "./command_tool.ts";
import type { SkillTier } from "./policy.ts";
import { dropHidden, escapeFence, keepOpen, type Pattern, wildcard } from "./text.ts";
import { builtinTool } from "./tool_names.ts";

export type SkillMeta = {
  readonly name: string;
  readonly description: string;
  readonly version?: string;
  /** As declared, in the words of the file; undefined: none declared; empty: nothing is allowed. */
  readonly allowedTools?: readonly string[];
  readonly patterns: readonly Pattern[];
  /** Example messages that must, or must not, match one of the patterns. */
  readonly match: readonly string[];
  readonly noMatch: readonly string[];
  /** Tools that must exist for the skill to be of use. */
  readonly requires: readonly string[];
  /** `fork`: it runs as a session of its own. */
  readonly mode: "inline" | "fork";
  /** What a fork sees of the conversation; absent: nothing. */
  readonly history?: "none" | "summary" | "full";
  /** The model that it asks for, as declared. */
  readonly model?: string;
  readonly modelInvocable: boolean;
  readonly userInvocable: boolean;
};

export type Skill = SkillMeta & {
  /** What its tools.json holds. */
  readonly tools: readonly CommandTool[];
  readonly tier: SkillTier;
  /** Real path of the folder; for embedded skills inside the binary a path that only Writ can read. */
  readonly folder: string;
  readonly file: string;
  /** The hash of its whole folder, where the policy pins it; then it is rendered, read and run from a copy of just these bytes. */
  readonly pin?: string;
  /** Files of the same name in lower tiers that this one stands before. */
  readonly shadows: readonly { readonly tier: SkillTier; readonly file: string }[];
};

export type SkillBody = {
  readonly body: string;
  /** Bytes of the body, front matter not counted. */
  readonly bytes: number;
  /** SHA-256 of the whole SKILL.md, hex. */
  readonly sha256: string;
  /** Paths inside the folder, relative, sorted, SKILL.md not among them. */
  readonly files: readonly string[];
};

/** Whether its allowed_tools bound nothing: none declared, or `*` among them. */
export function isUndeclared(skill: { readonly allowedTools?: readonly string[] | undefined }): boolean {
  return skill.allowedTools === undefined || skill.allowedTools.some(isWildcardEntry);
}

export function isWildcardEntry(entry: string): boolean {
  return /^\*+$/.test(entry);
}

/** An entry of allowed_tools in the words of Writ. No specifier: every call of the tool. */
export type ToolName = { readonly tool: string; readonly specifier?: string };

// Names that other agents give to the same tools, lower case.
const otherNames: Readonly<Record<string, string>> = {
  bash: "shell",
  bashoutput: "shell",
  execute_command: "shell",
  run_command: "shell",
  run_shell_command: "shell",
  read: "read_file",
  notebookread: "read_file",
  read_many_files: "read_file",
  grep: "search_text",
  search_file_content: "search_text",
  search_files: "search_text",
  glob: "list_files",
  ls: "list_files",
  list: "list_files",
  list_dir: "list_files",
  list_directory: "list_files",
  write: "write_file",
  write_to_file: "write_file",
  edit: "edit_file",
  multiedit: "edit_file",
  notebookedit: "edit_file",
  replace: "edit_file",
  replace_in_file: "edit_file",
  apply_patch: "edit_file",
  skill: "load_skill",
  activate_skill: "load_skill",
  invoke_skill: "load_skill",
  webfetch: "fetch_url",
  web_fetch: "fetch_url",
};

/**
 * The tool that an entry of allowed_tools means, and what it narrows it to: `Bash(git log:*)` is `shell` with the command
 * pattern `git log *`. A name that is not known stays as it is, so that it allows only a tool of exactly that name.
 */
export function mapToolName(declared: string): ToolName {
  const { name, inner } = splitEntry(declared.trim());
  const tool = otherNames[name.toLowerCase()] ?? mcpName(name);
  if (inner === undefined) return { tool };
  const specifier = mapSpecifier(tool, inner);
  return specifier === undefined ? { tool } : { tool, specifier };
}

function splitEntry(entry: string): { readonly name: string; readonly inner?: string } {
  const open = entry.indexOf("(");
  if (open < 0 || !entry.endsWith(")")) return { name: entry };
  return { name: entry.slice(0, open), inner: entry.slice(open + 1, -1).trim() };
}

function mcpName(name: string): string {
  const [, server, tool] = /^mcp__(.+?)__(.+)$/.exec(name) ?? [];
  if (server !== undefined && tool !== undefined) return `mcp.${server}.${tool}`;
  const [, whole] = /^mcp__([^_].*)$/.exec(name) ?? [];
  return whole === undefined ? name : `mcp.${whole}.*`;
}

function mapSpecifier(tool: string, inner: string): string | undefined {
  if (tool === "shell") {
    const command = inner.replace(/:\*$/, " *").replace(/\s+/g, " ").trim();
    return command === "*" ? undefined : command;
  }
  if (tool === "fetch_url") return inner.replace(/^domain:/, "");
  if (tool === "load_skill") return inner.replace(/(?::\*| \*)$/, "");
  // `//` at the front is how another agent writes an absolute path.
  return inner.replace(/^\/\//, "/");
}

/**
 * The entries that both lists allow; never more than either. An entry without specifier covers one of the same tool with
 * a specifier.
 */
export function commonTools(a: readonly string[], b: readonly string[]): readonly string[] {
  const kept = a.filter((entry) => b.some((other) => coversEntry(other, entry)));
  return [...kept, ...b.filter((entry) => !kept.includes(entry) && a.some((other) => narrows(entry, other)))];
}

function coversEntry(wide: string, narrow: string): boolean {
  if (isWildcardEntry(wide)) return true;
  const w = mapToolName(wide);
  const n = mapToolName(narrow);
  return wildcard(w.tool, n.tool) && (w.specifier === undefined || w.specifier === n.specifier);
}

function narrows(entry: string, other: string): boolean {
  return coversEntry(other, entry) && !coversEntry(entry, other);
}

/**
 * The bound after a file was read again: what was declared before and what is declared now, never wider than either. A bound that is new takes the place of none only for tools that merely read.
 */
export function narrowerTools(
  before: readonly string[] | undefined,
  now: readonly string[] | undefined,
): readonly string[] | undefined {
  if (now === undefined || now.some(isWildcardEntry)) return before;
  return isUndeclared({ allowedTools: before }) ? now.filter(onlyReads) : commonTools(before ?? [], now);
}

function onlyReads(entry: string): boolean {
  const tool = builtinTool(mapToolName(entry).tool);
  return tool !== undefined && tool.reads && !tool.engine;
}

const fence = "skill";

/**
 * A skill as the model sees it: a fence with name, version, tools and files, and the body inside. `$ARGUMENTS` and
 * `{{arguments}}` are replaced once by the arguments as data; without a placeholder they follow the body. Nothing but the
 * last line can end the fence. `ownTools`: names of the command tools that come with it.
 */
export function renderSkill(
  meta: SkillMeta,
  body: SkillBody,
  argumentsText: string,
  ownTools: readonly string[] = [],
): string {
  const version = meta.version === undefined ? "" : ` version="${attribute(meta.version)}"`;
  const head = [`<${fence} name="${attribute(meta.name)}"${version}>`, "Follow these instructions."];
  if (meta.allowedTools !== undefined) {
    const tools = meta.allowedTools.map((entry) => attribute(entry)).join(", ");
    head.push(`Allowed tools: ${tools === "" ? "none" : tools}`);
  }
  if (ownTools.length > 0) head.push(`Tools of this skill: ${ownTools.join(", ")}`);
  if (body.files.length > 0) {
    head.push(`Attached files (read_skill_file): ${body.files.map((path) => attribute(path)).join(", ")}`);
  }
  return `${head.join("\n")}\n\n${fill(body.body, argumentsText)}\n</${fence}>`;
}

// A backslash-free, whole-word placeholder only: `$ARGUMENTS[0]` and `$ARGUMENTS_DIR` mean something else elsewhere.
const placeholder = /\$ARGUMENTS(?![\w[])|\{\{\s*arguments\s*\}\}/g;

function fill(body: string, argumentsText: string): string {
  const data = escapeFence(dropHidden(argumentsText.trim()));
  let used = false;
  const filled = body.replace(/^(?:[ \t]*\n)+/, "").trimEnd().replace(placeholder, () => (used = true, data));
  const text = used || data === "" ? filled : `${filled}\n\nArguments: ${data}`;
  // After filling, so that no mark can be pieced together from body and arguments.
  return keepOpen(text, [fence]);
}

/** Stands in the place of a body that was loaded anew, one line. */
export function replacedMarker(name: string): string {
  return `[an earlier text of the skill "${attribute(name)}" stood here; the newer one is in force]`;
}

/** Stands in a finished skill's place, one line. */
export function skillMarker(name: string): string {
  return `[skill "${attribute(name)}" has ended; its instructions are no longer in force]`;
}

/** Text for the value of an attribute of a fence: one line, no quotes, nothing that cannot be seen. */
export function attribute(text: string): string {
  return escapeFence(dropHidden(text)).replace(/\s+/g, " ").replace(/"/g, "&quot;").trim();
}
