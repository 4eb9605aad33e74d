// What a message says about skills, before it becomes a turn: load these, answer about them, or a slip.
import type { Requested } from "../agent/triggers.ts";
import type { Catalog } from "../core/catalog.ts";
import { plural } from "../core/plural.ts";
import type { SkillTrigger } from "../core/policy.ts";
import { showPosition } from "../core/problem.ts";
import { parseSkillMessage, suggest, userNames } from "../core/trigger.ts";
import { escapeLine } from "../core/text.ts";

export type Asked =
  | { readonly kind: "turn"; readonly message: string; readonly skills: readonly Requested[] }
  | { readonly kind: "answer"; readonly text: string }
  | { readonly kind: "clear"; readonly name?: string }
  | { readonly kind: "reload" }
  | { readonly kind: "fault"; readonly message: string };

/** `options` are names given beside the message (`--skill`), loaded first. */
export function askSkills(catalog: Catalog, message: string, options: readonly string[]): Asked {
  const names = userNames(catalog);
  const unknown = options.find((name) => !names.includes(name));
  if (unknown !== undefined) {
    return { kind: "fault", message: noSkill(unknown, suggest(unknown, names), names) };
  }
  const beside = options.map((name) => ({ name, arguments: "" }));
  const parsed = parseSkillMessage(message, names);
  switch (parsed.kind) {
    case "none":
      return {
        kind: "turn",
        message: message === "" ? `/skill ${options.join(" ")}` : message,
        skills: beside,
      };
    case "load":
      return {
        kind: "turn",
        message,
        skills: [...beside, { name: parsed.name, arguments: parsed.arguments }],
      };
    case "list":
      return { kind: "answer", text: listSkills(catalog) };
    case "find":
      return { kind: "answer", text: findSkills(catalog, parsed.query) };
    case "clear":
      return parsed;
    case "reload":
      return parsed;
    case "unknown":
      return { kind: "fault", message: noSkill(parsed.word, parsed.suggestions, names) };
  }
}

function noSkill(word: string, suggestions: readonly string[], names: readonly string[]): string {
  if (word === "") return `\`/skill\` needs a name; available: ${names.join(", ")}`;
  const hint = suggestions.length > 0
    ? `did you mean ${suggestions.join(" or ")}?`
    : `available: ${names.join(", ") || "none"}`;
  return `no skill \`${word}\`; ${hint}`;
}

/** One line a skill: what a person needs to choose; then what is not available, and why. */
export function listSkills(catalog: Catalog, triggers: readonly SkillTrigger[] = []): string {
  if (catalog.items.length === 0 && catalog.absent.length === 0) return "no skills";
  const width = Math.max(0, ...catalog.items.map((s) => s.name.length));
  const lines = catalog.items.map((s) => {
    const flags = [
      s.tier,
      ...(s.version === undefined ? [] : [s.version]),
      ...(s.modelInvocable ? [] : ["not for the model"]),
      ...(s.userInvocable ? [] : ["not by name"]),
      ...(s.patterns.length > 0 ? [plural(s.patterns.length, "pattern")] : []),
      ...byPolicy(s.name, triggers),
      ...s.shadows.map((other) => `before ${other.tier}`),
    ];
    return `${escapeLine(s.name.padEnd(width))}  ${escapeLine(s.description)} (${
      escapeLine(flags.join(", "))
    })`;
  });
  const absent = catalog.absent.map((a) =>
    `not available: ${escapeLine(a.name)} (${a.tier}): ${escapeLine(a.reason)} [${a.code}]`
  );
  return [...lines, ...absent].join("\n");
}

function byPolicy(name: string, triggers: readonly SkillTrigger[]): readonly string[] {
  const own = triggers.filter((t) => t.skill === name);
  const at = own[0]?.at;
  return at === undefined ? [] : [`${own.length} by policy at ${showPosition(at)}`];
}

function findSkills(catalog: Catalog, query: string): string {
  const words = query.toLowerCase().split(/\s+/).filter((w) => w !== "");
  const hits = catalog.items.filter((s) =>
    words.every((w) => `${s.name} ${s.description}`.toLowerCase().includes(w))
  );
  if (hits.length === 0) return `no skill matches \`${escapeLine(query)}\``;
  return hits.map((s) => `${escapeLine(s.name)}  ${escapeLine(s.description)}`).join("\n");
}
