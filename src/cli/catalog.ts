// The skills of a run: every source of the policy scanned, merged into one catalog.
import { type Catalog, type CatalogError, mergeCatalog } from "../core/catalog.ts";
import { enableableTools } from "../core/tool_names.ts";
import { engineTools } from "../core/bound.ts";
import { assetFolder } from "../load/assets.ts";
import { skillFolders } from "../load/locate.ts";
import { type Scan, scanSkills, type SkillProblem } from "../load/skill_dir.ts";
import type { Settings } from "./settings.ts";

export type LoadedCatalog = {
  readonly catalog: Catalog;
  /** Each a `skill.registry_error`. */
  readonly errors: readonly CatalogError[];
  readonly warnings: readonly SkillProblem[];
};

/** What the workspace brings counts only when it is trusted. */
export function loadCatalog(settings: Settings): LoadedCatalog {
  const { policy, surroundings, trusted } = settings;
  const scans = policy.skills.sources.flatMap((source): Scan[] => {
    if (source.tier === "project" && !trusted) return [];
    if (source.kind === "path") return [scanSkills(source.path, source.tier)];
    if (source.tier === "builtin") return [scanSkills(assetFolder("skills"), "builtin")];
    return skillFolders(source.tier, surroundings, policy.root).map((folder) =>
      scanSkills(folder, source.tier)
    );
  });
  const problems = scans.flatMap((s) => s.problems);
  const merged = mergeCatalog(scans.flatMap((s) => s.skills), {
    ...policy.skills,
    knownTools: new Set([...enableableTools, ...engineTools]),
  });
  const broken = problems.filter((p) => p.severity === "error");
  return {
    catalog: merged.catalog,
    errors: [...broken.map(({ path, code, message }) => ({ path, code, message })), ...merged.errors],
    warnings: problems.filter((p) => p.severity === "warning"),
  };
}
