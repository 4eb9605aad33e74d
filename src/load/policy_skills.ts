// Triggers, disabled globs and sources of skills in a policy, and its regular expressions.
import { patternFault } from "../core/pattern_fault.ts";
import type { Disabled, ForcedSkill, SkillSource, SkillTier, SkillTrigger } from "../core/policy.ts";
import { type Position, type Problem, showPosition } from "../core/problem.ts";
import { escapeLine, type Pattern, wildcard } from "../core/text.ts";
import { compilePattern } from "./pattern.ts";
import { intersectionOf, type Settings, unionOf } from "./policy_settings.ts";

/** Patterns in the order of the files; a pattern that is wrong, or fits the empty text, is a Problem. */
export function compileTriggers(settings: Settings): readonly SkillTrigger[] {
  return settings.files.flatMap((file) =>
    Object.entries(file.data.skills?.triggers ?? {}).flatMap(([skill, trigger]) => {
      const base = ["skills", "triggers", skill];
      const patterns: Pattern[] = [];
      const triggers = trigger.patterns.flatMap((source, index): SkillTrigger[] => {
        const at = file.at([...base, "patterns", index]);
        const pattern = triggerPattern(source, at, settings.problems);
        if (pattern === undefined) return [];
        patterns.push(pattern);
        settings.origin.push({ key: `skills.triggers.${skill}`, value: source, layer: file.layer, at });
        return [{ skill, layer: file.layer, pattern, at }];
      });
      if (patterns.length === trigger.patterns.length) {
        for (const want of ["match", "no_match"] as const) {
          const given = trigger[want] ?? [];
          const texts = typeof given === "string" ? [given] : given;
          texts.forEach((text, index) => {
            if (patterns.some((p) => p.test(text)) === (want === "match")) return;
            settings.problems.push(
              triggerExampleFails(
                skill,
                text,
                want,
                file.at([...base, want, ...(given === text ? [] : [index])]),
              ),
            );
          });
        }
      }
      return triggers;
    })
  );
}

/** A regular expression of a policy; undefined after a Problem was reported. */
export function policyPattern(
  source: string,
  at: Position,
  problems: Problem[],
  options: { readonly ignoreCase: boolean },
): Pattern | undefined {
  let pattern: Pattern;
  try {
    pattern = compilePattern(source, options);
  } catch (error) {
    const { says, hint } = patternFault(source, error);
    problems.push({
      code: "bad-pattern",
      severity: "error",
      message: `the regular expression \`${escapeLine(source)}\` ${says}`,
      at,
      hint,
    });
    return undefined;
  }
  if (!pattern.test("")) return pattern;
  problems.push({
    code: "matches-empty",
    severity: "error",
    message: `\`${escapeLine(source)}\` matches the empty text, and so every text`,
    at,
    hint: "make one part of it necessary",
  });
  return undefined;
}

function triggerPattern(source: string, at: Position, problems: Problem[]): Pattern | undefined {
  return policyPattern(source, at, problems, { ignoreCase: true });
}

function triggerExampleFails(skill: string, text: string, want: "match" | "no_match", at: Position): Problem {
  const shown = escapeLine(text);
  return {
    code: "example-fails",
    severity: "error",
    message: want === "match"
      ? `no pattern of \`${skill}\` matches its example \`${shown}\``
      : `a pattern of \`${skill}\` matches \`${shown}\`, which it must not`,
    at,
    hint: "change the pattern or the example",
  };
}

/** Disabled globs of all layers; a skill that is forced where the glob reaches it is a Problem. */
export function compileDisabled(
  settings: Settings,
  forced: readonly ForcedSkill[],
): readonly Disabled[] {
  const disabled = unionOf(settings, "skills.disabled");
  for (const entry of forced) {
    // A project's globs reach project skills only, and those never stand in for what an upper layer forces.
    const by = disabled.find((d) =>
      wildcard(d.value, entry.skill) && (d.layer !== "project" || entry.layer === "project")
    );
    if (by === undefined) continue;
    settings.problems.push({
      code: "forced-and-disabled",
      severity: "error",
      message: `the skill \`${entry.skill}\` is forced here and disabled by \`${by.value}\` at ${
        showPosition(by.at)
      }`,
      at: entry.at,
      hint: "remove one of the two",
    });
  }
  return disabled.map(({ value, layer, at }) => ({ glob: value, layer, at }));
}

const defaultSources: readonly SkillTier[] = ["builtin", "machine", "user", "project"];

/** Sources that every layer admits: a folder counts where the layers above list its tier. */
export function compileSources(
  settings: Settings,
  resolve: (path: string, file: string) => string,
): readonly SkillSource[] {
  type Written = SkillTier | { readonly path: string; readonly tier?: SkillTier };
  const tierOf = (value: Written, layer: string): SkillTier =>
    typeof value === "string" ? value : value.tier ?? (layer === "machine" ? "machine" : "user");
  const sources = intersectionOf(
    settings,
    "skills.sources",
    defaultSources,
    (item, upper) => upper.some((u) => u === tierOf(item.value, item.layer)),
  );
  return sources === undefined
    ? defaultSources.map((tier) => ({ kind: "tier", tier }))
    : sources.flatMap((item): SkillSource[] => {
      const tier = tierOf(item.value, item.layer);
      if (typeof item.value === "string") return [{ kind: "tier", tier }];
      if (tier === "builtin" || (tier === "machine" && item.layer !== "machine")) {
        settings.problems.push({
          code: "wrong-value",
          severity: "error",
          message: `a folder named in the ${item.layer} layer cannot be of tier \`${tier}\``,
          at: item.at,
          hint: "leave `tier` out, or name a lower one",
        });
        return [];
      }
      return [{ kind: "path", path: resolve(item.value.path, item.at.file), tier, at: item.at }];
    });
}
