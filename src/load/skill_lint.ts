// What is wrong with skills, or odd, by the reader that loads them; and what no reader minds and yet was seldom meant.
import { existsSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { findCredentials } from "./credentials.ts";
import { readStart, readWhole } from "./file_head.ts";
import { boundKey } from "./bound_place.ts";
import { realOr } from "./locate.ts";
import { attachedFiles } from "./skill_body.ts";
import { bodyCap, type ScanLimits, scanSkills } from "./skill_dir.ts";
import { hidesCharacters, parseSkillFile, type SkillFile } from "./skill_file.ts";
import { placeIn } from "./text_place.ts";
import { readToolsFile } from "./tools_file.ts";
import { estimateTokens } from "../core/budget.ts";
import { compareText } from "../core/collection.ts";
import { isBelow } from "../core/path.ts";
import type { Position, Problem } from "../core/problem.ts";
import { isUndeclared, isWildcardEntry, mapToolName, type SkillMeta } from "../core/skill.ts";
import { dropHidden, escapeLine, wildcard } from "../core/text.ts";
import { messageOf } from "../core/thrown.ts";
import { builtinTools, engineTools } from "../core/tool_names.ts";

export type SkillLint = {
  readonly files: number;
  /** Files that would load. */
  readonly loaded: number;
  /** By file and place; errors are what keeps a skill from loading. */
  readonly problems: readonly Problem[];
};

// Whoever lints a collection means all of it.
const limits: ScanLimits = { depth: 40, folders: 500_000 };

const bodyTokens = 5000;
const bodyLines = 500;
const mostOfOne = 10;

/** Lints files, and skills below folders. A path that is neither is a problem. Never throws. */
export function lintSkills(paths: readonly string[]): SkillLint {
  const files = new Map<string, string>();
  const problems: Problem[] = [];
  for (const path of paths) {
    const facts = statSync(path, { throwIfNoEntry: false });
    if (facts === undefined) {
      problems.push(error("path-missing", `\`${escapeLine(path)}\` does not exist`, top(path)));
    } else if (facts.isFile()) files.set(realOr(path), basename(dirname(resolve(path))));
    else problems.push(...findFiles(path, files));
  }
  const read = [...files].map(([file, folderName]) => ({ file, ...lintFile(file, folderName) }));
  problems.push(...read.flatMap((r) => r.problems), ...twins(read));
  problems.sort((a, b) =>
    compareText(a.at?.file ?? "", b.at?.file ?? "") || (a.at?.line ?? 0) - (b.at?.line ?? 0) ||
    (a.at?.col ?? 0) - (b.at?.col ?? 0)
  );
  const refused = new Set(
    problems.flatMap((p) => p.severity === "error" && p.at !== undefined ? [p.at.file] : []),
  );
  const loads = (file: string) => !refused.has(file) && !refused.has(join(dirname(file), "tools.json"));
  return { files: files.size, loaded: [...files.keys()].filter(loads).length, problems };
}

/** Adds the SKILL.md files that the loader finds; what it says of everything else is returned. */
function findFiles(folder: string, files: Map<string, string>): readonly Problem[] {
  const { skills, problems } = scanSkills(folder, "user", limits);
  for (const skill of skills) files.set(skill.file, basename(skill.folder));
  return problems.flatMap(({ path, code, message, severity, about }): Problem[] => {
    if (about === "text" || about === "tools") files.set(path, basename(dirname(path)));
    // What is wrong with a text is found again, with its place.
    return about === "text" || about === "tools" ? [] : [{ code, severity, message, at: top(path) }];
  });
}

type FileLint = { readonly meta?: SkillMeta; readonly problems: readonly Problem[] };

function lintFile(file: string, folderName: string): FileLint {
  let text: string;
  try {
    const whole = readWhole(file, bodyCap);
    if (!whole.ok) {
      const message = `the file has ${whole.size} bytes; at most ${bodyCap} are loaded`;
      return { problems: [error("skill-too-large", message, top(file))] };
    }
    text = new TextDecoder().decode(whole.bytes);
  } catch (thrown) {
    // The scan has said so of a file that it found.
    return { problems: [error("skill-unreadable", `cannot be read: ${messageOf(thrown)}`, top(file))] };
  }
  const parsed = parseSkillFile(text, { file, folderName, places: true });
  const problems = [...faultsOf(parsed), ...credentials(text, file)];
  if (!parsed.ok) return { problems };
  const folder = dirname(file);
  const tools = readToolsFile(folder, parsed.meta.name);
  const own = tools?.ok === true ? tools.tools.map((t) => t.name) : [];
  const source: Source = { file, folder, text, bodyStart: parsed.bodyStart, own };
  return {
    meta: parsed.meta,
    problems: [
      ...problems,
      ...(tools?.ok === false ? [error("tools-json-invalid", `\`tools.json\` ${tools.says}`, tools.at)] : []),
      ...lintMeta(parsed.meta, source),
      ...lintBody(source),
      ...lintFolder(source),
    ],
  };
}

type Source = {
  readonly file: string;
  readonly folder: string;
  readonly text: string;
  readonly bodyStart: number;
  /** Names of the command tools that it brings. */
  readonly own: readonly string[];
};

function faultsOf(parsed: SkillFile): readonly Problem[] {
  const warnings = (parsed.warnings ?? []).map(({ code, message, at }): Problem => ({
    code,
    severity: "warning",
    message,
    ...(at === undefined ? {} : { at }),
  }));
  if (parsed.ok) return warnings;
  const faults = [parsed, ...(parsed.further ?? [])];
  return [
    ...faults.map(({ reason, message, hint, at }): Problem => ({
      code: reason,
      severity: "error",
      message,
      at,
      hint,
    })),
    ...warnings,
  ];
}

// ---- front matter -------------------------------------------------------------------------------------------------

// Nobody means a skill to be loaded by most of these.
const unrelated = [
  "hello",
  "ok, thanks",
  "what time is it in Lisbon?",
  "fix the bug in the parser",
  "write a poem about the sea",
  "1 + 1",
  "请解释这段代码",
  "今天天气怎么样？",
];
const tooMany = 3;

function lintMeta(meta: SkillMeta, source: Source): readonly Problem[] {
  const { own } = source;
  const at = (field: RegExp) => placeOf(source, source.text.slice(0, source.bodyStart).search(field));
  const broad = meta.patterns.filter((p) => unrelated.filter((message) => p.test(message)).length >= tooMany);
  const unknown = (meta.allowedTools ?? []).filter((entry) =>
    !isWildcardEntry(entry) && !isKnown(entry, own)
  );
  const missing = meta.requires.filter((entry) => !isKnown(entry, own));
  const bounded = meta.requires.filter((entry) =>
    !missing.includes(entry) && !own.includes(entry) && !isAllowed(entry, meta)
  );
  return [
    ...broad.map((p) =>
      warning(
        "trigger-broad",
        `the pattern \`${escapeLine(p.source.slice(0, 80))}\` matches messages that have nothing in common`,
        at(/(?<=^[ \t]*)["']?patterns/m),
        "name what the message must hold",
      )
    ),
    ...(unknown.length === 0 ? [] : [warning(
      "allowed-tools-unknown",
      `\`allowed-tools\` names ${quoted(unknown)}, which ${unknown.length === 1 ? "is" : "are"} no tool here`,
      at(boundKey),
      "such an entry allows nothing; `writ help tools` lists the tools",
    )]),
    ...(missing.length === 0 ? [] : [warning(
      "tools-missing",
      `\`tools\` names ${quoted(missing)}; without such a tool the skill is not available`,
      at(/^["']?tools/m),
    )]),
    ...(bounded.length === 0 ? [] : [warning(
      "tools-bounded",
      `\`tools\` names ${
        quoted(bounded)
      }, and \`allowed-tools\` does not: while the skill bounds, no call of it is allowed`,
      at(/^["']?tools/m),
      "what a gate of this skill wants as evidence must be among its `allowed-tools` as well",
    )]),
  ];
}

// With a specifier it may be enough.
function isAllowed(entry: string, meta: SkillMeta): boolean {
  const { tool } = mapToolName(entry);
  return isUndeclared(meta) || engineTools.includes(tool) ||
    meta.allowedTools?.some((allowed) => wildcard(mapToolName(allowed).tool, tool)) === true;
}

function isKnown(entry: string, own: readonly string[]): boolean {
  const { tool } = mapToolName(entry);
  return own.includes(entry) || builtinTools.includes(tool) || tool.startsWith("mcp.");
}

function quoted(entries: readonly string[]): string {
  const shown = entries.slice(0, mostOfOne).map((e) => `\`${escapeLine(e.slice(0, 80))}\``).join(", ");
  return entries.length > mostOfOne ? `${shown} and ${entries.length - mostOfOne} more` : shown;
}

// ---- body ---------------------------------------------------------------------------------------------------------

function lintBody(source: Source): readonly Problem[] {
  const body = source.text.slice(source.bodyStart);
  const tokens = estimateTokens(body);
  const lines = body.trimEnd().split("\n").length;
  const long = tokens > bodyTokens || lines > bodyLines;
  return [
    ...(long
      ? [warning(
        "body-long",
        `the body has ${lines} lines, about ${tokens} tokens; ${bodyLines} lines and ${bodyTokens} tokens are much`,
        placeOf(source, source.bodyStart),
        "move what is seldom needed to files of its own, and name them",
      )]
      : []),
    ...hidden(source),
    ...matches(source, /\$ARGUMENTS(?:\[|_?\w)/g, (found) =>
      warning(
        "arguments-form",
        `\`${escapeLine(found[0])}\` is not replaced; \`$ARGUMENTS\` alone is`,
        placeOf(source, found.index),
      )),
    ...matches(source, /(?<![\w`])!`[^`\n]+`/g, (found) =>
      warning(
        "embedded-command",
        `\`${escapeLine(found[0].slice(1, -1).slice(0, 80))}\` is not run when the skill is loaded`,
        placeOf(source, found.index),
        "tell the model to run it",
      )),
    ...links(source),
  ];
}

function matches(
  source: Source,
  pattern: RegExp,
  make: (found: RegExpExecArray) => Problem,
): readonly Problem[] {
  pattern.lastIndex = source.bodyStart;
  const all: Problem[] = [];
  for (
    let found = pattern.exec(source.text);
    found !== null && all.length < mostOfOne;
    found = pattern.exec(source.text)
  ) {
    all.push(make(found));
  }
  return all;
}

function hidden(source: Source): readonly Problem[] {
  let offset = source.bodyStart;
  for (const line of source.text.slice(source.bodyStart).split("\n")) {
    const text = line.replace(/\r$/, "");
    if (hidesCharacters(text)) {
      const place = [...text].findIndex((c) => dropHidden(c) !== c);
      return [warning(
        "hidden-characters",
        "the body holds characters that cannot be seen",
        placeOf(source, offset + Math.max(0, place)),
      )];
    }
    offset += line.length + 1;
  }
  return [];
}

// Only what is plainly a file of the skill: a link, or a path into one of the folders that skills have.
const link =
  /\]\(\s*<?((?![a-z][a-z0-9+.-]*:|[#/?])[^)\s>#?]+)[^)]*\)|`((?:\.\/)?(?:scripts|references|assets)\/[\w./-]+)`/gi;

// What stands in a block of code is an example of something. A line is bounded, since a pattern looks ahead in it.
const lineCap = 2000;

function links(source: Source): readonly Problem[] {
  const said = new Set<string>();
  const all: Problem[] = [];
  let offset = source.bodyStart;
  let fence: string | undefined;
  for (const line of source.text.slice(source.bodyStart).split("\n")) {
    const mark = /^[ \t]*(`{3,}|~{3,})/.exec(line)?.[1];
    if (fence === undefined && mark === undefined) {
      for (const found of line.slice(0, lineCap).matchAll(link)) {
        const written = found[1] ?? found[2] ?? "";
        if (said.has(written) || all.length >= mostOfOne || !isPlainPath(written)) continue;
        said.add(written);
        all.push(...linkFault(source, written, offset + found.index));
      }
    } else if (fence === undefined) fence = mark;
    else if (mark?.startsWith(fence) === true) fence = undefined;
    offset += line.length + 1;
  }
  return all;
}

function linkFault(source: Source, written: string, offset: number): readonly Problem[] {
  const path = join(source.folder, decoded(written));
  const at = placeOf(source, offset);
  if (!isBelow(path, source.folder) && path !== source.folder) {
    const hint = "read_skill_file reads only files inside it";
    return [warning("file-outside", `\`${escapeLine(written)}\` leads out of the skill's folder`, at, hint)];
  }
  return existsSync(path)
    ? []
    : [warning("file-missing", `the skill has no file \`${escapeLine(written)}\``, at)];
}

function isPlainPath(written: string): boolean {
  return /[./]/.test(written) && !/[<>{}$*|"\\…]|\.\.\.|^\.+$/.test(written) &&
    !/^[\w-]+\.(?:com|org|io|dev|net)\b/.test(written);
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

// ---- folder and secrets -------------------------------------------------------------------------------------------

const textCap = 256 * 1024;

function lintFolder({ file, folder }: Source): readonly Problem[] {
  return attachedFiles({ folder, file }).flatMap((inner) => {
    const path = join(folder, inner);
    const nested = basename(inner).toLowerCase() === "skill.md"
      ? [warning("nested-skill", "a skill inside the folder of another one is not found", top(path))]
      : [];
    return [...nested, ...credentials(startOf(path), path)];
  });
}

function startOf(path: string): string {
  try {
    const text = new TextDecoder().decode(readStart(path, textCap).bytes);
    return text.includes("\0") ? "" : text;
  } catch {
    return "";
  }
}

/** Where a text holds what looks like a credential; the text itself is not shown. */
function credentials(text: string, file: string): readonly Problem[] {
  return findCredentials(text).map(({ kind, offset }) =>
    warning(
      "credential",
      `there is what looks like a secret (${kind})`,
      placeIn(text, file, offset),
      "a skill carries no secrets: let the policy bind them by name",
    )
  );
}

// Two of one name in folders beside each other would refuse each other.
function twins(read: readonly ({ readonly file: string } & FileLint)[]): readonly Problem[] {
  const groups = Map.groupBy(
    read.flatMap(({ file, meta }) => meta === undefined ? [] : [{ file, name: meta.name }]),
    ({ file, name }) => `${dirname(dirname(file))}\0${name}`,
  );
  return [...groups.values()].flatMap((group) =>
    group.length < 2 ? [] : group.map(({ file, name }) =>
      warning(
        "duplicate-name",
        `${group.length} skills here have the name \`${escapeLine(name)}\`; in one tier none of them loads`,
        top(file),
      )
    )
  );
}

// ---- places -------------------------------------------------------------------------------------------------------

function placeOf({ text, file }: Source, offset: number): Position {
  return placeIn(text, file, Math.max(0, offset));
}

function top(file: string): Position {
  return { file, line: 1, col: 1 };
}

function error(code: string, message: string, at: Position): Problem {
  return { code, severity: "error", message, at };
}

function warning(code: string, message: string, at: Position, hint?: string): Problem {
  return { code, severity: "warning", message, at, ...(hint === undefined ? {} : { hint }) };
}
