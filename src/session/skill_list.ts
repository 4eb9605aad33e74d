// What there is to see of the skills: where each comes from, when it is loaded, what it may do, and what the model sees.
import type { Agent } from "../agent/agent.ts";
import type { Catalog } from "../core/catalog.ts";
import { type Shown, shownBy, sightOf } from "../core/listing.ts";
import { plural } from "../core/plural.ts";
import type { Policy } from "../core/policy.ts";
import { showPosition } from "../core/problem.ts";
import { isUndeclared, type Skill } from "../core/skill.ts";
import { searchSkills } from "../core/skill_search.ts";
import { escapeLine } from "../core/text.ts";
import { listing } from "./preface.ts";
import type { LoadedCatalog } from "./catalog.ts";

export type SkillView = {
  readonly catalog: Catalog;
  readonly policy: Pick<Policy, "skills">;
  /** What the model sees of them. */
  shown(): Shown;
};

/** As a running session has it. */
export function viewOf(
  { catalog, policy, preface }: Pick<Agent, "catalog" | "policy" | "preface">,
): SkillView {
  return { catalog, policy, shown: () => preface.now.shown };
}

/** As a session that starts now would have it. */
export function freshView(policy: Policy, loaded: LoadedCatalog): SkillView {
  return { catalog: loaded.catalog, policy, shown: () => shownBy(listing(policy, loaded)) };
}

/** What a skill is to who chooses among them; for JSON as it is. */
export function skillFacts(skill: Skill, view: SkillView, shown: Shown) {
  const { patterns, ...facts } = skill;
  const { triggers } = view.policy.skills;
  return {
    ...facts,
    triggers: [
      ...triggers.filter((t) => t.skill === skill.name).map((t) => ({
        pattern: t.pattern.source,
        by: "policy",
        ...(t.at === undefined ? {} : { at: showPosition(t.at) }),
      })),
      ...patterns.map((p) => ({ pattern: p.source, by: "skill" })),
    ],
    bound: boundOf(skill, view.policy),
    model: sightOf(skill, view.policy.skills, shown),
  };
}

function boundOf(skill: Skill, { skills }: SkillView["policy"]): string {
  const declared = skill.allowedTools;
  if (declared !== undefined && !isUndeclared(skill)) {
    return declared.length === 0 ? "no tool" : declared.join(", ");
  }
  return skills.undeclaredTools === "unbounded" ? "unbounded" : "calls of risk read";
}

/** Two lines a skill: what a person needs to choose, and where it stands; then what is not available, and why. */
export function listSkills(view: SkillView): string {
  const { items, absent } = view.catalog;
  if (items.length === 0 && absent.length === 0) return "no skills";
  const shown = view.shown();
  const width = Math.max(0, ...items.map((s) => s.name.length));
  const lines = items.flatMap((skill) => [
    `${escapeLine(skill.name.padEnd(width))}  ${escapeLine(skill.description)}`,
    `${" ".repeat(width)}  ${escapeLine(`(${flagsOf(skill, view, shown).join(", ")})`)}`,
  ]);
  const left = absent.map((a) =>
    `not available: ${escapeLine(a.name)} (${a.tier}): ${escapeLine(a.reason)} [${a.code}] ${
      escapeLine(a.file)
    }`
  );
  const { omitted, shortened } = shown;
  const cut = omitted.size + shortened.size === 0
    ? []
    : [`the model sees ${plural(shortened.size, "description")} shortened and does not see ${omitted.size}`];
  return [...lines, ...left, ...cut].join("\n");
}

const mostPatterns = 5;

function flagsOf(skill: Skill, view: SkillView, shown: Shown): readonly string[] {
  const facts = skillFacts(skill, view, shown);
  const patterns = facts.triggers.slice(0, mostPatterns).map((t) =>
    `${JSON.stringify(t.pattern)} by ${"at" in t ? `policy at ${t.at}` : t.by}`
  );
  const more = facts.triggers.length - patterns.length;
  return [
    skill.tier,
    ...(skill.version === undefined ? [] : [`version ${skill.version}`]),
    `tools: ${facts.bound}`,
    `model sees: ${facts.model}`,
    ...(skill.userInvocable ? [] : ["not by name"]),
    ...(patterns.length === 0
      ? []
      : [`patterns: ${patterns.join(" ")}${more > 0 ? ` and ${more} more` : ""}`]),
    ...skill.shadows.map((other) => `before ${other.tier} ${other.file}`),
  ];
}

/** A line a skill, best first. */
export function findSkills(catalog: Catalog, query: string): string {
  const { found, total } = searchSkills(catalog.items, query);
  if (total === 0) return `no skill is about \`${escapeLine(query)}\``;
  const lines = found.map((s) => `${escapeLine(s.name)}  ${escapeLine(s.description)}`);
  return [...lines, ...(total > found.length ? [`… and ${total - found.length} more`] : [])].join("\n");
}
