// Folders of skills: which skills are in them.
import { type Dirent, readdirSync, realpathSync, type Stats, statSync } from "node:fs";
import { platform } from "node:os";
import { basename, join, resolve } from "node:path";
import { isEmbedded } from "./assets.ts";
import { NotRegular, readHead } from "./file_head.ts";
import { type FrontMatter, frontMatterCap, type FrontMatterFault, splitFrontMatter } from "./front_matter.ts";
import { parseSkillFile } from "./skill_file.ts";
import {
  type HeadRead,
  type IndexSite,
  openIndex,
  type ProblemSubject,
  type SkillIndex,
} from "./skill_index.ts";
import { readToolsFile } from "./tools_file.ts";
import { compareText } from "../core/collection.ts";
import type { SkillTier } from "../core/policy.ts";
import type { Position } from "../core/problem.ts";
import type { Skill } from "../core/skill.ts";
import { escapeLine } from "../core/text.ts";
import { codeOf, messageOf } from "../core/thrown.ts";

export type SkillProblem = {
  readonly path: string;
  readonly code: string;
  readonly message: string;
  readonly severity: "error" | "warning";
  readonly about: ProblemSubject;
};
export type Scan = { readonly skills: readonly Skill[]; readonly problems: readonly SkillProblem[] };
export type ScanLimits = { readonly depth: number; readonly folders: number };

export const defaultLimits: ScanLimits = { depth: 6, folders: 20_000 };
/** A SKILL.md of more bytes is not loaded. */
export const bodyCap = 4 * 1024 * 1024;
export const skippedFolders = new Set([".git", "node_modules"]);

/** A folder still to be looked at: `path` is real, `shown` as it was reached. */
type Stop = { readonly path: string; readonly shown: string; readonly depth: number };
type Walk = {
  readonly tier: SkillTier;
  readonly limits: ScanLimits;
  readonly seen: Set<string>;
  readonly skills: Skill[];
  readonly problems: SkillProblem[];
  index?: SkillIndex | undefined;
};

/**
 * Every skill below a folder, or the folder itself when it is one, in the order of its paths. Reads front matter and on to
 * the first byte of the body. A folder that is missing holds no skills; whatever else goes wrong is a problem beside the
 * skills that are well. Folders below a skill are not searched; links are followed once. With a `site`, files that have
 * not changed since they were last read are not read.
 */
export function scanSkills(
  folder: string,
  tier: SkillTier,
  limits: ScanLimits = defaultLimits,
  site?: IndexSite,
): Scan {
  const walk: Walk = { tier, limits, seen: new Set(), skills: [], problems: [] };
  const root = realFolder(folder, walk);
  if (root === undefined) return { skills: [], problems: walk.problems };
  if (site !== undefined && !isEmbedded(root)) walk.index = openIndex(site, root);
  const stack: Stop[] = [{ path: root, shown: resolve(folder), depth: 0 }];
  for (let stop = stack.pop(); stop !== undefined; stop = stack.pop()) {
    if (walk.seen.has(stop.path)) continue;
    if (walk.seen.size >= limits.folders) {
      const message = `more than ${limits.folders} folders; those after \`${stop.shown}\` were not read`;
      walk.problems.push(folderProblem(folder, "scan-limit", message));
      break;
    }
    walk.seen.add(stop.path);
    stack.push(...visit(stop, walk).reverse());
  }
  walk.index?.save();
  return { skills: walk.skills, problems: walk.problems };
}

function realFolder(folder: string, walk: Walk): string | undefined {
  try {
    return isEmbedded(folder) ? folder : realpathSync(folder);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") {
      walk.problems.push(folderProblem(folder, "folder-unreadable", `cannot be read: ${reason(error)}`));
    }
    return undefined;
  }
}

function visit(stop: Stop, walk: Walk): Stop[] {
  const facts = skillFacts(stop.path);
  if (facts !== undefined) {
    readSkill(stop, "SKILL.md", walk, facts);
    return [];
  }
  let entries: Dirent[];
  try {
    entries = readdirSync(stop.path, { withFileTypes: true });
  } catch (error) {
    walk.problems.push(folderProblem(stop.shown, "folder-unreadable", `cannot be read: ${reason(error)}`));
    return [];
  }
  entries.sort((a, b) => compareText(a.name, b.name));
  const file = entries.find((e) => e.name === "SKILL.md") ??
    entries.find((e) => e.name.toLowerCase() === "skill.md" && !e.isDirectory());
  if (file !== undefined) {
    readSkill(stop, file.name, walk);
    return [];
  }
  return entries.flatMap((entry) => below(stop, entry, walk));
}

// Spares the listing of nearly every folder that is a skill. Elsewhere `skill.md` would answer to this name, too.
function skillFacts(path: string): Stats | undefined {
  if (platform() !== "linux") return undefined;
  try {
    return statSync(join(path, "SKILL.md"), { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

function below(stop: Stop, entry: Dirent, walk: Walk): Stop[] {
  if (skippedFolders.has(entry.name)) return [];
  const shown = join(stop.shown, entry.name);
  let path = join(stop.path, entry.name);
  if (entry.isSymbolicLink()) {
    try {
      path = realpathSync(path);
      if (!statSync(path).isDirectory()) return [];
    } catch (error) {
      const message = `the link leads nowhere: ${reason(error)}`;
      walk.problems.push(folderProblem(shown, "link-broken", message, "warning"));
      return [];
    }
  } else if (!entry.isDirectory()) {
    return [];
  }
  if (stop.depth >= walk.limits.depth) {
    const message = `deeper than ${walk.limits.depth} folders; not read`;
    walk.problems.push(folderProblem(shown, "scan-limit", message, "warning"));
    return [];
  }
  return [{ path, shown, depth: stop.depth + 1 }];
}

function readSkill(stop: Stop, fileName: string, walk: Walk, facts?: Stats): void {
  const file = join(stop.path, fileName);
  const { meta, findings } = headOf(stop, fileName, walk, facts);
  const tools = meta === undefined ? undefined : readToolsFile(stop.path, meta.name);
  if (tools?.ok === false) {
    const { says, at } = tools;
    walk.problems.push({
      path: file,
      code: "tools-json-invalid",
      message: `\`tools.json:${at.line}:${at.col}\` ${says}`,
      severity: "error",
      about: "tools",
    });
    return;
  }
  walk.problems.push(...findings.map((finding) => ({ path: file, ...finding })));
  if (meta === undefined) return;
  walk.skills.push({
    ...meta,
    tools: tools?.tools ?? [],
    tier: walk.tier,
    folder: stop.path,
    file,
    shadows: [],
  });
}

function headOf(stop: Stop, fileName: string, walk: Walk, given?: Stats): HeadRead {
  const file = join(stop.path, fileName);
  const folderName = basename(stop.shown) || basename(stop.path);
  try {
    const facts = given ?? statSync(file);
    const known = walk.index?.get(file, facts, folderName);
    if (known !== undefined) return known;
    const read = readFrontMatter(file, folderName, facts);
    walk.index?.put(file, facts, folderName, read);
    return read;
  } catch (error) {
    return error instanceof NotRegular
      ? refusal("file", "skill-not-a-file", `\`${fileName}\` is not a regular file`)
      : refusal("file", "skill-unreadable", `cannot be read: ${reason(error)}`);
  }
}

function readFrontMatter(file: string, folderName: string, facts: Stats): HeadRead {
  const finder = bodyFinder(file);
  const text = readHead(file, bodyCap, finder.enough, facts);
  const parsed = parseSkillFile(text, { file, folderName }, finder.split);
  if (!parsed.ok) {
    return refusal("text", parsed.reason, `${place(parsed.at)}${parsed.message}; ${parsed.hint}`);
  }
  const fileName = basename(file);
  const severity = "warning";
  const misnamed = fileName === "SKILL.md" ? [] : [{
    code: "filename-case",
    message: `the file is named \`${escapeLine(fileName)}\`, not \`SKILL.md\``,
    severity,
    about: "file",
  }] as const;
  const warnings = parsed.warnings.map(({ code, message }) =>
    ({ code, message, severity, about: "text" }) as const
  );
  return { meta: parsed.meta, findings: [...warnings, ...misnamed] };
}

function refusal(about: ProblemSubject, code: string, message: string): HeadRead {
  return { findings: [{ code, message, severity: "error", about }] };
}

function place(at: Position): string {
  return at.line > 1 ? `line ${at.line}: ` : "";
}

/**
 * Follows a file until it reaches beyond the front matter to something that is not blank, or need not be read any further;
 * `split` is what was found then, undefined when there was nothing to decide.
 */
function bodyFinder(file: string) {
  let from: number | undefined;
  const finder = {
    split: undefined as FrontMatter | FrontMatterFault | undefined,
    enough(text: string): boolean {
      if (from === undefined) {
        finder.split = splitFrontMatter(text, file);
        if (!finder.split.ok) {
          return finder.split.reason !== "frontmatter-unclosed" || text.length > frontMatterCap + 8;
        }
        from = finder.split.bodyStart;
      }
      if (/\S/.test(text.slice(from))) return true;
      // A line end may be cut in two, so the fence is looked for again when little follows it.
      from = text.length > from + 8 ? text.length : undefined;
      return false;
    },
  };
  return finder;
}

function folderProblem(
  path: string,
  code: string,
  message: string,
  severity: SkillProblem["severity"] = "error",
): SkillProblem {
  return { path, code, message, severity, about: "folder" };
}

function reason(error: unknown): string {
  return codeOf(error) ?? messageOf(error);
}
