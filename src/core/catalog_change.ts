// What is different between two scans of the skills.
import type { Catalog } from "./catalog.ts";
import type { Skill } from "./skill.ts";

/** Names, each list sorted. */
export type CatalogChange = {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** The front matter says something else, or another file stands for the name. */
  readonly changed: readonly string[];
};

/** Undefined when the two are the same in everything but what they leave out. */
export function compareCatalogs(before: Catalog, after: Catalog): CatalogChange | undefined {
  const added = after.names.filter((name) => before.get(name) === undefined);
  const removed = before.names.filter((name) => after.get(name) === undefined);
  const changed = after.items.flatMap((skill) => {
    const old = before.get(skill.name);
    return old === undefined || same(old, skill) ? [] : [skill.name];
  });
  if (added.length + removed.length + changed.length === 0) return undefined;
  return { added, removed, changed };
}

function same(a: Skill, b: Skill): boolean {
  return a === b || factsOf(a) === factsOf(b);
}

function factsOf({ patterns, ...facts }: Skill): string {
  const members = Object.entries(facts).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([members, patterns.map((p) => p.source)]);
}
