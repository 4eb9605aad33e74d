// Which skills there are: tiers merged, refused ones left out with a reason, forced ones kept from being replaced.
import { compareText } from "./collection.ts";
import type { LayerName } from "./decision.ts";
import type { ForcedSkill, Gate, Pin, SkillSettings, SkillTier } from "./policy.ts";
import { nearest, type Problem, showPosition } from "./problem.ts";
import { isUndeclared, mapToolName, type Skill } from "./skill.ts";
import { escapeLine, type Pattern, wildcard } from "./text.ts";

export type Absent = {
  readonly name: string;
  readonly tier: SkillTier;
  readonly file: string;
  /** `disabled`, `duplicate-name`, `duplicate-tool`, `allowed-tools-missing`, `allowed-tools-wildcard`, `tools-missing`,
   * `server-down`, `forced-tier`, `pinned-tier`, `pin-missing`, `pin-mismatch`. */
  readonly code: string;
  readonly reason: string;
  readonly patterns: readonly Pattern[];
};

export type Catalog = {
  /** By its exact name. */
  get(name: string): Skill | undefined;
  /** Sorted by name; so are `names`. */
  readonly items: readonly Skill[];
  readonly names: readonly string[];
  /** Skills that were found and are not in the catalog, also those whose name another one bears; sorted by file. */
  readonly absent: readonly Absent[];
  /** Files that could not be read as skills, as they were given. */
  readonly broken: readonly CatalogError[];
};

/** What `skill.registry_error` tells. */
export type CatalogError = { readonly path: string; readonly code: string; readonly message: string };

export type CatalogRules = Pick<SkillSettings, "forced" | "disabled" | "undeclaredTools"> & {
  readonly pins?: SkillSettings["pins"];
  readonly requirePins?: boolean;
  /** Of each folder of a pinned skill its hash, or why it has none. */
  readonly hashes?: ReadonlyMap<string, HashRead>;
  /** Names of the tools that exist; absent: `tools` of a skill is not checked. */
  readonly knownTools?: ReadonlySet<string>;
  /** Faults of files of which nothing can be in the catalog. */
  readonly broken?: readonly CatalogError[];
  /** Tools that would exist if their server were not down: why each does not. */
  readonly lacking?: ReadonlyMap<string, string>;
};

export type HashRead =
  | { readonly ok: true; readonly hash: string }
  | { readonly ok: false; readonly message: string };

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
 * one name within a tier refuse each other. A forced or pinned skill comes only from tiers whose authority is that of
 * the layer that forces or pins it, or higher; a pinned one has the hash that its pin says. Of skills whose command tools have a name in common the one of more authority stays; equals
 * refuse each other. A refused skill counts as if it were not there. The order of `skills` does not matter.
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
  }).map((skill) => {
    const pin = pinOf(skill, rules);
    return pin === undefined ? skill : { ...skill, pin: pin.hash };
  });
  const single: Skill[] = [];
  for (const same of groupBy(fit, (s) => `${s.tier}\0${s.name}`).values()) {
    if (same.length === 1) single.push(...same);
    else absent.push(...same.map((skill) => duplicate(skill, same)));
  }
  let left: readonly Skill[] = single;
  let items = standing(left);
  // Where one is refused, the one below it comes up, with tools of its own.
  for (let clashes = toolClashes(items); clashes.length > 0; clashes = toolClashes(items)) {
    absent.push(...clashes);
    const refused = new Set(clashes.map(placeOf));
    left = left.filter((s) => !refused.has(placeOf(s)));
    items = standing(left);
  }
  absent.sort((a, b) => compareText(a.file, b.file));
  const errors = absent.filter((a) => a.code !== "disabled")
    .map((a): CatalogError => ({ path: a.file, code: a.code, message: a.reason }));
  return { catalog: makeCatalog(items, absent, rules.broken ?? []), errors };
}

// Of one name the skill of the highest tier; sorted by name.
function standing(single: readonly Skill[]): readonly Skill[] {
  return [...groupBy(single, (s) => s.name).values()].flatMap((sameName): Skill[] => {
    const [winner, ...lower] = sameName.sort((a, b) => tierRank[b.tier] - tierRank[a.tier]);
    return winner === undefined
      ? []
      : [{ ...winner, shadows: lower.map(({ tier, file }) => ({ tier, file })) }];
  }).sort((a, b) => compareText(a.name, b.name));
}

// A tool's name is bare, so it can stand for one tool only. Nobody's skill takes the name away from one of more authority.
function toolClashes(items: readonly Skill[]): readonly Absent[] {
  const byTool = groupBy(
    items.flatMap((skill) => skill.tools.map((tool) => ({ skill, tool: tool.name }))),
    (entry) => entry.tool,
  );
  const shared = [...byTool.values()].filter((sharing) => sharing.length > 1);
  const most = Math.max(...shared.flat().map((s) => authority[s.skill.tier]));
  // Those of most authority first: who is refused for their sake takes no name from others.
  const refused = shared.flatMap((sharing) => {
    const top = sharing.filter((s) => authority[s.skill.tier] === most);
    return top.length === 1 ? sharing.filter((s) => !top.includes(s)) : top;
  });
  return [...groupBy(refused, (r) => placeOf(r.skill)).values()].flatMap(([first]): Absent[] => {
    if (first === undefined) return [];
    const others = (byTool.get(first.tool) ?? []).filter((s) => s.skill !== first.skill);
    const files = others.map((s) => `\`${s.skill.file}\``).sort(compareText).join(" and ");
    const reason = `its command tool \`${first.tool}\` has the name of one of ${files}; rename one of them`;
    return [absence(first.skill, "duplicate-tool", reason)];
  });
}

/**
 * Why a name is not in the catalog; undefined when it is, or when nothing of that name was found. Of a file that could not
 * be read, the folder is the only name that there is.
 */
export function whyAbsent(
  catalog: Catalog,
  name: string,
  broken: readonly CatalogError[] = catalog.broken,
): string | undefined {
  if (catalog.get(name) !== undefined) return undefined;
  const reasons = [
    ...catalog.absent.filter((a) => a.name === name).map((a) => `${a.file}: ${a.reason}`),
    ...broken.filter((e) => e.path.split(/[\\/]/).at(-2) === name).map((e) => `${e.path}: ${e.message}`),
  ];
  return reasons.length === 0 ? undefined : reasons.join("; ");
}

/**
 * What of the policy's forced skills and of its gates cannot be had as it wants them, each with what is wrong: nothing starts
 * without them. `broken`: faults of files of which nothing is in the catalog.
 */
export function unavailable(
  catalog: Catalog,
  policy: { readonly skills: Pick<SkillSettings, "forced">; readonly gates: readonly Gate[] },
  broken: readonly CatalogError[] = catalog.broken,
): readonly Problem[] {
  return [
    ...missingForced(catalog, policy.skills.forced, broken),
    ...gatesWithoutFork(catalog, policy.gates),
  ];
}

function missingForced(
  catalog: Catalog,
  forced: readonly ForcedSkill[],
  broken: readonly CatalogError[],
): readonly Problem[] {
  return forced.flatMap((f): readonly Problem[] => {
    const skill = catalog.get(f.skill);
    if (skill !== undefined) return f.when.at === "session" && skill.mode === "fork" ? [forcedFork(f)] : [];
    const why = whyAbsent(catalog, f.skill, broken);
    return [{
      code: "forced-skill-missing",
      severity: "error",
      message: `the forced skill \`${f.skill}\` is not available${why === undefined ? "" : `: ${why}`}`,
      at: f.nameAt,
      ...(why === undefined ? { expected: "a skill of that name in `skills.sources`" } : {}),
      hint: (why === undefined ? nearestSkill(catalog, f.skill) : undefined) ??
        "`writ skill list` shows what is there",
    }];
  });
}

/** Of a name that nobody bears: the available skill that may have been meant. */
export function nearestSkill(catalog: Catalog, name: string): string | undefined {
  const near = catalog.names.includes(name) ? undefined : nearest(name, catalog.names);
  return near === undefined ? undefined : `did you mean \`${escapeLine(near)}\`?`;
}

// Gates that take the verdict of a fork alone, and whose skill runs as none.
function gatesWithoutFork(catalog: Catalog, gates: readonly Gate[]): readonly Problem[] {
  return gates.flatMap((gate): readonly Problem[] => {
    const skill = gate.skill === undefined ? undefined : catalog.get(gate.skill);
    if (gate.by !== "fork" || skill === undefined || skill.mode === "fork") return [];
    return [{
      code: "gate-unreachable",
      severity: "error",
      message:
        `the gate \`${gate.id}\` waits for the verdict of a fork, and the skill \`${skill.name}\` runs as none`,
      at: gate.at,
      hint: "write `mode: fork` into the skill, or take `by` out of the gate",
    }];
  });
}

function forcedFork({ skill, at }: ForcedSkill): Problem {
  return {
    code: "forced-skill-fork",
    severity: "error",
    message: `the skill \`${skill}\` runs as a fork, and \`when: session\` puts a skill into every request`,
    at,
    hint: "use `before` with it, or take `mode: fork` out of the skill",
  };
}

function makeCatalog(
  items: readonly Skill[],
  absent: readonly Absent[],
  broken: readonly CatalogError[],
): Catalog {
  const byName = new Map(items.map((skill) => [skill.name, skill]));
  return { get: (name) => byName.get(name), items, names: items.map((s) => s.name), absent, broken };
}

// Two locations of one tier may lead to the same file.
function unfold(skills: readonly Skill[]): readonly Skill[] {
  return [...new Map(skills.map((skill) => [placeOf(skill), skill])).values()];
}

function placeOf({ tier, file }: { readonly tier: SkillTier; readonly file: string }): string {
  return `${tier}\0${file}`;
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
  const low = tierFault(skill, rules) ?? pinFault(skill, rules);
  if (low !== undefined) return low;
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
  const known = rules.knownTools;
  const missing = known === undefined
    ? []
    : skill.requires.filter((entry) => !skill.tools.some((t) => t.name === entry) && !exists(entry, known));
  const down = missing.map((entry) => whyLacking(entry, rules.lacking)).find((why) => why !== undefined);
  if (down !== undefined) return { code: "server-down", reason: `it needs a tool of a server: ${down}` };
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

function whyLacking(entry: string, lacking: CatalogRules["lacking"]): string | undefined {
  const { tool } = mapToolName(entry);
  return [...lacking ?? []].find(([name]) => wildcard(tool, name))?.[1];
}

type Fault = { readonly code: string; readonly reason: string };

function tierFault(skill: Skill, rules: CatalogRules): Fault | undefined {
  const { name, tier } = skill;
  const forced = rules.forced.filter((f) => f.skill === name && !mayProvide(tier, f));
  const [first] = forced.sort((a, b) => authority[b.layer] - authority[a.layer]);
  if (first !== undefined) {
    const from = first.tier === undefined ? "" : ` from the ${first.tier} tier or above`;
    return {
      code: "forced-tier",
      reason: `the ${first.layer} policy forces \`${name}\`${from}, which the ${tier} tier cannot provide`,
    };
  }
  const pin = pinOf(skill, rules);
  return pin === undefined || authority[pin.layer] <= authority[tier] ? undefined : {
    code: "pinned-tier",
    reason: `the ${pin.layer} policy pins \`${name}\`, which the ${tier} tier cannot provide`,
  };
}

// Tiers that an entry names count one by one, what ships with Writ first.
function mayProvide(tier: SkillTier, forced: ForcedSkill): boolean {
  return forced.tier === undefined
    ? authority[forced.layer] <= authority[tier]
    : tierRank[tier] <= tierRank[forced.tier];
}

function pinOf(skill: Skill, rules: CatalogRules): Pin | undefined {
  return rules.pins?.find((p) => p.skill === skill.name);
}

function pinFault(skill: Skill, rules: CatalogRules): Fault | undefined {
  const pin = pinOf(skill, rules);
  if (pin === undefined) {
    return rules.requirePins !== true || skill.tier === "builtin" ? undefined : {
      code: "pin-missing",
      reason: "it has no pin (skills.require_pins: true); `writ skill pin` prints one",
    };
  }
  const read = rules.hashes?.get(skill.folder);
  if (read?.ok === true && read.hash === pin.hash) return undefined;
  const found = read === undefined
    ? "its folder was not hashed"
    : read.ok
    ? `its folder has the hash \`${read.hash}\``
    : read.message;
  return {
    code: "pin-mismatch",
    reason: `${found}; \`${pin.hash}\` is pinned at ${showPosition(pin.at)}: look at what changed, ` +
      "then pin it again with `writ skill pin`",
  };
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
  return { name: skill.name, tier: skill.tier, file: skill.file, code, reason, patterns: skill.patterns };
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
