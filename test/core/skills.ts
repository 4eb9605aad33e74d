// Skills as values, for tests: a whole one from what matters in it.
import type { Skill } from "../../src/core/skill.ts";
import type { Pattern } from "../../src/core/text.ts";

export function makeSkill(some: Partial<Skill> & { readonly name: string }): Skill {
  const tier = some.tier ?? "user";
  return {
    description: `Text of ${some.name}`,
    patterns: [],
    match: [],
    noMatch: [],
    requires: [],
    tools: [],
    mode: "inline",
    modelInvocable: true,
    userInvocable: true,
    tier,
    folder: `/${tier}/${some.name}`,
    file: `/${tier}/${some.name}/SKILL.md`,
    shadows: [],
    ...some,
  };
}

/** A pattern that finds a word, case ignored. */
export function word(source: string): Pattern {
  const find = (text: string) => {
    const start = text.toLowerCase().indexOf(source);
    return start < 0 ? undefined : [start, start + source.length] as const;
  };
  return { source, find, test: (text) => find(text) !== undefined };
}
