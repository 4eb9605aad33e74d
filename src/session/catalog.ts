// The skills of a run: every source of the policy scanned, merged into one catalog.
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { type Catalog, type CatalogError, type HashRead, mergeCatalog } from "../core/catalog.ts";
import { listedToolNames } from "../core/mcp.ts";
import { builtinTools } from "../core/tool_names.ts";
import { assetFolder, isCompiled } from "../load/assets.ts";
import { hashFolder } from "../load/folder_hash.ts";
import { skillFolders, stateFolder } from "../load/locate.ts";
import { defaultLimits, type Scan, scanSkills, type SkillProblem } from "../load/skill_dir.ts";
import type { IndexSite } from "../load/skill_index.ts";
import type { Policy } from "../core/policy.ts";
import type { Skill } from "../core/skill.ts";
import type { Settings } from "./settings.ts";
import { version } from "./version.ts";

export type LoadedCatalog = {
  readonly catalog: Catalog;
  /** Each a `skill.registry_error`. */
  readonly errors: readonly CatalogError[];
  readonly warnings: readonly SkillProblem[];
};

/**
 * What the workspace brings counts only when it is trusted. `lacking`: tools of servers that are not to be had, and why; until
 * a session has asked the servers, those of the policy's list count as there.
 */
export function loadCatalog(
  settings: Pick<Settings, "policy" | "surroundings" | "trusted">,
  lacking: ReadonlyMap<string, string> = new Map(),
): LoadedCatalog {
  const { policy, surroundings, trusted } = settings;
  const site = indexSite(settings);
  const scans = policy.skills.sources.flatMap((source): Scan[] => {
    if (source.tier === "project" && !trusted) return [];
    if (source.kind === "path") return [scanSkills(source.path, source.tier, defaultLimits, site)];
    if (source.tier === "builtin") return [scanSkills(assetFolder("skills"), "builtin")];
    return skillFolders(source.tier, surroundings, policy.root).map((folder) =>
      scanSkills(folder, source.tier, defaultLimits, site)
    );
  });
  const problems = scans.flatMap((s) => s.problems);
  const skills = scans.flatMap((s) => s.skills);
  const broken = problems.filter((p) => p.severity === "error")
    .map(({ path, code, message }) => ({ path, code, message }));
  const merged = mergeCatalog(skills, {
    ...policy.skills,
    broken,
    knownTools: new Set([
      ...builtinTools,
      ...listedToolNames(policy.mcpServers).filter((name) => !lacking.has(name)),
    ]),
    lacking,
    hashes: hashesOf(skills, policy),
  });
  return {
    catalog: merged.catalog,
    errors: [...broken, ...merged.errors],
    warnings: problems.filter((p) => p.severity === "warning"),
  };
}

// From source, the reader may change without its version.
function indexSite(
  { policy, surroundings }: Pick<Settings, "policy" | "surroundings">,
): IndexSite | undefined {
  if (!isCompiled()) return undefined;
  const { size, mtimeMs } = statSync(process.execPath);
  return {
    folder: join(stateFolder(surroundings), "skill-index"),
    reader: `${version} ${size} ${mtimeMs}`,
    outside: policy.root,
    now: Date.now,
  };
}

// Every file of a pinned skill is read to know its hash, so only of those.
function hashesOf(skills: readonly Skill[], { skills: { pins } }: Policy): ReadonlyMap<string, HashRead> {
  const pinned = skills.filter((s) => pins.some((p) => p.skill === s.name));
  return new Map(pinned.map(({ folder }) => {
    const read = hashFolder(folder);
    return [folder, read.ok ? { ok: true, hash: read.hash } : read];
  }));
}

/** Whether there may be skills that nobody has looked at, since what the workspace brings is not trusted. */
export function mayLackSkills(
  { policy, surroundings, trusted }: Pick<Settings, "policy" | "surroundings" | "trusted">,
): boolean {
  return !trusted && skillFolders("project", surroundings, policy.root).some((f) => existsSync(f));
}

/** Faults of files that are not even in the catalog's list of what is absent. */
export function unlisted({ catalog, errors }: LoadedCatalog): readonly CatalogError[] {
  return errors.filter((e) => !catalog.absent.some((a) => a.file === e.path));
}
