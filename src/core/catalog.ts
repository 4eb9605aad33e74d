// Which skills there are: tiers merged, refused ones left out with a reason, forced ones kept from being replaced.
import { compareText } from "./collection.ts";
import type { LayerName } from "./decision.ts";
import type { ForcedSkill, SkillSettings, SkillTier } from "./policy.ts";
import type { Problem } from "./problem.ts";
import { isUndeclared, mapToolName, type Skill } from "./skill.ts";
import { wildcard } from "./text.ts";

export type Absent = {
  readonly name: string;
  readonly tier: SkillTier;
  readonly file: string;
  /** `disabled`, `duplicate-name`, `allowed-tools-missing`, `allowed-tools-wildcard`, `tools-missing`,
   * `mode-fork-unsupported`, `forced-tier`. */
  readonly code: string;
  readonly reason: string;
};

export type Catalog = {
  /** By its exact name. */
  get(name: string): Skill | undefined;
  /** Sorted by name; so are `names`. */
  readonly items: readonly Skill[];
  readonly names: readonly string[];
  /** Skills that were found and are not in the catalog, also those whose name another one bears; sorted by file. */
  readonly absent: readonly Absent[];
};

/** What `skill.registry_error` tells. */
export type CatalogError = { readonly path: string; readonly code: string; readonly message: string };

export type CatalogRules = Pick<SkillSettings, "forced" | "disabled" | "undeclaredTools"> & {
  /** Names of the tools that exist; absent: `tools` of a skill is not checked. */
  readonly knownTools?: ReadonlySet<string>;
};

const tierRank: Readonly<Record<SkillTier, number>> = { builtin: 0, machine: 1, user: 2, project: 3 };

// Whose word a tier or a layer is: what ships with Writ and what root installed are the machine's.
const authority: Readonly<Record<SkillTier | LayerName, number>> = {
  builtin: 2,
  machine: 2,
  user: 1,
  project: 0,
};

/**
 * Merges the skills of all tiers. A higher tier stands before a lower one of the same name, which shows in `shadows`; two of
 * one name within a tier refuse each other. A forced skill comes only from tiers whose authority is that of the layer
 * that forces it, or higher. A refused skill counts as if it were not there. The order of `skills` does not matter.
 */
export function mergeCatalog(
  skills: readonly Skill[],
  rules: CatalogRules,
): { readonly catalog: Catalog; readonly errors: readonly CatalogError[] } {
  const absent: Absent[] = [];
  const fit = unfold(skills).filter((skill) => {
    const fault = findFault(skill, rules);
    if (fault !== undefined) absent.push(absence(skill, fault.code, fault.reason));
    return fault === undefined;
  });
  const items: Skill[] = [];
  for (const sameName of groupBy(fit, (s) => s.name).values()) {
    const single = [...groupBy(sameName, (s) => s.tier).values()].flatMap((sameTier) => {
      if (sameTier.length > 1) absent.push(...sameTier.map((skill) => duplicate(skill, sameTier)));
      return sameTier.length > 1 ? [] : sameTier;
    });
    const [winner, ...lower] = single.sort((a, b) => tierRank[b.tier] - tierRank[a.tier]);
    if (winner !== undefined) {
      items.push({ ...winner, shadows: lower.map(({ tier, file }) => ({ tier, file })) });
    }
  }
  items.sort((a, b) => compareText(a.name, b.name));
  absent.sort((a, b) => compareText(a.file, b.file));
  const errors = absent.filter((a) => a.code !== "disabled")
    .map((a): CatalogError => ({ path: a.file, code: a.code, message: a.reason }));
  return { catalog: makeCatalog(items, absent), errors };
}

/**
 * Why a name is not in the catalog; undefined when it is, or when nothing of that name was found. Of a file in `broken`,
 * which could not be read, the folder is the only name that there is.
 */
export function whyAbsent(
  catalog: Catalog,
  name: string,
  broken: readonly CatalogError[] = [],
): string | undefined {
  if (catalog.get(name) !== undefined) return undefined;
  const reasons = [
    ...catalog.absent.filter((a) => a.name === name).map((a) => `${a.file}: ${a.reason}`),
    ...broken.filter((e) => e.path.split(/[\\/]/).at(-2) === name).map((e) => `${e.path}: ${e.message}`),
  ];
  return reasons.length === 0 ? undefined : reasons.join("; ");
}

/** Skills that the policy forces and that cannot be had, each with what is wrong with it: nothing starts without them. */
export function missingForced(
  catalog: Catalog,
  forced: readonly ForcedSkill[],
  broken: readonly CatalogError[] = [],
): readonly Problem[] {
  return forced.filter((f) => catalog.get(f.skill) === undefined).map((f): Problem => {
    const why = whyAbsent(catalog, f.skill, broken);
    return {
      code: "forced-skill-missing",
      severity: "error",
      message: `the forced skill \`${f.skill}\` is not available${why === undefined ? "" : `: ${why}`}`,
      at: f.at,
      expected: "a skill of that name in skills.sources",
      hint: "writ skill list shows what is there",
    };
  });
}

function makeCatalog(items: readonly Skill[], absent: readonly Absent[]): Catalog {
  const byName = new Map(items.map((skill) => [skill.name, skill]));
  return { get: (name) => byName.get(name), items, names: items.map((s) => s.name), absent };
}

// Two locations of one tier may lead to the same file.
function unfold(skills: readonly Skill[]): readonly Skill[] {
  return [...new Map(skills.map((skill) => [`${skill.tier}\0${skill.file}`, skill])).values()];
}

function findFault(
  skill: Skill,
  rules: CatalogRules,
): { readonly code: string; readonly reason: string } | undefined {
  const disabled = rules.disabled.find((d) =>
    wildcard(d.glob, skill.name) && (d.layer !== "project" || skill.tier === "project")
  );
  if (disabled !== undefined) {
    return { code: "disabled", reason: `disabled by \`${disabled.glob}\` of the ${disabled.layer} policy` };
  }
  const forced = rules.forced.filter((f) =>
    f.skill === skill.name && authority[f.layer] > authority[skill.tier]
  );
  const [first] = forced.sort((a, b) => authority[b.layer] - authority[a.layer]);
  if (first !== undefined) {
    return {
      code: "forced-tier",
      reason:
        `the ${first.layer} policy forces \`${skill.name}\`, which the ${skill.tier} tier cannot provide`,
    };
  }
  if (rules.undeclaredTools === "reject" && isUndeclared(skill)) {
    return skill.allowedTools === undefined
      ? {
        code: "allowed-tools-missing",
        reason: "it declares no `allowed_tools` (skills.undeclared_tools: reject)",
      }
      : {
        code: "allowed-tools-wildcard",
        reason: "its `allowed_tools` holds `*` (skills.undeclared_tools: reject)",
      };
  }
  if (skill.mode === "fork") {
    return {
      code: "mode-fork-unsupported",
      reason: "`mode: fork` is not in this version; remove the line to run it inline",
    };
  }
  const known = rules.knownTools;
  const missing = known === undefined ? [] : skill.requires.filter((entry) => !exists(entry, known));
  if (missing.length > 0) {
    return {
      code: "tools-missing",
      reason: `its \`tools\` names ${missing.map((m) => `\`${m}\``).join(", ")}, which ${
        missing.length === 1 ? "does" : "do"
      } not exist here`,
    };
  }
  return undefined;
}

function exists(entry: string, known: ReadonlySet<string>): boolean {
  const { tool } = mapToolName(entry);
  return known.has(tool) || (tool.includes("*") && [...known].some((name) => wildcard(tool, name)));
}

function duplicate(skill: Skill, all: readonly Skill[]): Absent {
  const files = all.map((s) => `\`${s.file}\``).sort(compareText).join(" and ");
  return absence(
    skill,
    "duplicate-name",
    `${files} have the same name \`${skill.name}\`; rename all but one`,
  );
}

function absence(skill: Skill, code: string, reason: string): Absent {
  return { name: skill.name, tier: skill.tier, file: skill.file, code, reason };
}

function groupBy<T>(items: readonly T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(key(item));
    if (group === undefined) groups.set(key(item), [item]);
    else group.push(item);
  }
  return groups;
}
