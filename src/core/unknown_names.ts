// Names in a policy that are legal and stand for nothing: skills that nobody has, tools that no skill brings, and verdicts that
// the skill of a gate knows under another name.
import { type Catalog, nearestSkill, whyAbsent } from "./catalog.ts";
import { toolIdentity } from "./command_tool.ts";
import type { Policy } from "./policy.ts";
import { nearest, type Position, type Problem } from "./problem.ts";
import type { Matchers } from "./rule.ts";
import { escapeLine, wildcard } from "./text.ts";

/** Warnings, each name once for each key; in the order of the keys below. Globs are left alone where they may mean what comes later. */
export function unknownNames(
  policy: Pick<Policy, "skills" | "layers" | "gates">,
  catalog: Catalog,
): readonly Problem[] {
  const { pins, secrets, boxes, triggers, disabled } = policy.skills;
  const named: readonly Named[] = [
    ...pins.map(({ skill, at }) => ({ what: "`skills.pins` pins", skill, at })),
    ...secrets.map(({ skill, at }) => ({ what: "`skills.secrets` is for", skill, at })),
    ...boxes.map(({ skill, at }) => ({ what: "`skills.boxes` is for", skill, at })),
    ...triggers.flatMap(({ skill, at }) =>
      at === undefined ? [] : [{ what: "`skills.triggers` is for", skill, at }]
    ),
    ...disabled.flatMap(({ glob, at }) =>
      at === undefined || isGlob(glob)
        ? []
        : [{ what: "`skills.disabled` names", skill: glob, at, off: true }]
    ),
    ...rulesOf(policy).flatMap(skillsOfRule),
  ];
  return [
    ...once(named).flatMap((n) => unknownSkill(n, catalog)),
    ...rulesOf(policy).flatMap((rule) => absentTools(rule, catalog)),
  ];
}

type Named = {
  readonly what: string;
  readonly skill: string;
  readonly at: Position;
  /** Taken out by the policy itself. */
  readonly off?: boolean;
};
type PlacedRule = Matchers & { readonly at: Position; readonly text: string };

function rulesOf({ layers, gates }: Pick<Policy, "layers" | "gates">): readonly PlacedRule[] {
  return [...layers.flatMap((l) => l.rules), ...gates.flatMap((g) => [...g.before, ...g.evidence])];
}

function skillsOfRule({ skill = [], sourcedBy = [], at, text }: PlacedRule): readonly Named[] {
  const what = `the rule \`${text}\` is about`;
  const sources = sourcedBy.flatMap((s) => s.startsWith("skill:") ? [s.slice("skill:".length)] : []);
  return [...skill, ...sources].filter((name) => !isGlob(name)).map((name) => ({ what, skill: name, at }));
}

function once(named: readonly Named[]): readonly Named[] {
  return [...new Map(named.map((n) => [`${n.what} ${n.skill}`, n] as const).reverse()).values()].reverse();
}

function unknownSkill({ what, skill, at, off }: Named, catalog: Catalog): readonly Problem[] {
  if (catalog.get(skill) !== undefined) return [];
  const why = whyAbsent(catalog, skill);
  if (
    why !== undefined &&
    (off === true || catalog.absent.some((a) => a.name === skill && a.code === "disabled"))
  ) {
    return [];
  }
  return [{
    code: "unknown-skill",
    severity: "warning",
    message: `${what} \`${escapeLine(skill)}\`, ${
      why === undefined ? "and there is no such skill" : `which is not available: ${why}`
    }`,
    at,
    ...(why === undefined
      ? { hint: nearestSkill(catalog, skill) ?? "`writ skill list` shows what is there" }
      : {}),
  }];
}

// Tools that a skill brings have names of three parts.
function absentTools({ tools, at }: PlacedRule, catalog: Catalog): readonly Problem[] {
  const known = catalog.items.flatMap((s) => s.tools.map((t) => toolIdentity(s.name, t.name)));
  const absent = tools.filter((t) => t.startsWith("skill.") && !known.some((name) => wildcard(t, name)));
  return absent.map((tool) => {
    const [, name = ""] = tool.split(".");
    const skill = isGlob(name) ? undefined : catalog.get(name);
    const why = skill === undefined && !isGlob(name) ? whyAbsent(catalog, name) : undefined;
    const brought = skill?.tools.map((t) => `\`${toolIdentity(name, t.name)}\``) ?? [];
    const near = nearest(tool, known);
    const found = skill !== undefined
      ? `the skill \`${escapeLine(name)}\` brings ${brought.length === 0 ? "no tools" : brought.join(", ")}`
      : why !== undefined
      ? `the skill is not available: ${why}`
      : isGlob(name)
      ? "no skill brings such a tool"
      : `there is no skill \`${escapeLine(name)}\``;
    return {
      code: "absent-tool",
      severity: "warning",
      message: `\`${escapeLine(tool)}\` names no tool: ${found}`,
      at,
      hint: near === undefined ? "the rule has no effect" : `did you mean \`${near}\`?`,
    };
  });
}

function isGlob(name: string): boolean {
  return /[*?]/.test(name);
}

/**
 * Verdicts that a gate waits for and that the text of its skill writes otherwise. `bodyOf` gives the text; undefined: unknown. Only
 * words that stand out as outcomes do are compared: in capitals, or in quotes of any kind.
 */
export function misspeltVerdicts(
  gates: Policy["gates"],
  bodyOf: (skill: string) => string | undefined,
): readonly Problem[] {
  return gates.flatMap((gate): readonly Problem[] => {
    const { skill, verdict = [] } = gate;
    const body = skill === undefined ? undefined : bodyOf(skill);
    if (skill === undefined || body === undefined) return [];
    const words = outcomesIn(body);
    return verdict.filter((word) => !says(body, word)).flatMap((word): readonly Problem[] => {
      const near = nearest(word, words);
      if (near === undefined) return [];
      return [{
        code: "verdict-unsaid",
        severity: "warning",
        message: `the gate \`${gate.id}\` waits for the verdict \`${escapeLine(word)}\`, and the skill \`${
          escapeLine(skill)
        }\` says \`${near}\`: the two must be equal, letter by letter`,
        at: gate.at,
        hint: "write the same word in both",
      }];
    });
  });
}

function says(body: string, word: string): boolean {
  return /[^\w-]/.test(word) ? body.includes(word) : body.split(/[^\w-]+/).includes(word);
}

function outcomesIn(body: string): readonly string[] {
  const quoted = [...body.matchAll(/[`"'“]([\w-]{2,40})[`"'”]/g)].map((m) => m[1] ?? "");
  const capitals = body.match(/\b[A-Z][A-Z_-]+\b/g) ?? [];
  return [...new Set([...capitals, ...quoted])];
}
