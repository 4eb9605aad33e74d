// Why a skill becomes active before a turn: the user names it, or the message meets one of the patterns.
import { type Catalog, whyAbsent } from "./catalog.ts";
import { compareText } from "./collection.ts";
import type { SkillTrigger } from "./policy.ts";
import { nearest, type Position } from "./problem.ts";
import type { Skill } from "./skill.ts";
import { escapeLine, type Pattern } from "./text.ts";

export type SkillMessage =
  | { readonly kind: "none" }
  | { readonly kind: "load"; readonly name: string; readonly arguments: string }
  | { readonly kind: "list" }
  | { readonly kind: "find"; readonly query: string }
  /** Without a name: all of them. */
  | { readonly kind: "clear"; readonly name?: string }
  | { readonly kind: "reload" }
  /** `word` is what stands where a name should; empty when nothing does. */
  | { readonly kind: "unknown"; readonly word: string; readonly suggestions: readonly string[] };

const command = /^\s*\/(skill|discover-skills)(?=\s|$)\s*([\s\S]*)$/;
const subcommand = /^(list|run|find|clear|reload)(?=\s|$)\s*([\s\S]*)$/;

/**
 * What a message asks of skills. Only a message that begins with `/skill` (or `/discover-skills`) asks anything; the words list,
 * run, find, clear and reload go before skills of these names, which `/skill run NAME` reaches. Names are those that the
 * user may load, they may contain blanks, the longest that fits is taken, and none is guessed.
 */
export function parseSkillMessage(message: string, names: readonly string[]): SkillMessage {
  const [, word, tail] = command.exec(message) ?? [];
  if (word === undefined || tail === undefined) return { kind: "none" };
  const rest = tail.trimEnd();
  if (word === "discover-skills") return { kind: "find", query: rest };
  if (rest === "") return { kind: "list" };
  const [, verb, more = ""] = subcommand.exec(rest) ?? [];
  switch (verb) {
    case "list":
      return { kind: "list" };
    case "find":
      return { kind: "find", query: more };
    case "clear":
      return more === "" ? { kind: "clear" } : { kind: "clear", name: more };
    case "reload":
      return { kind: "reload" };
    case "run":
      return load(more, names);
    default:
      return load(rest, names);
  }
}

/** The names that the user may load. */
export function userNames(catalog: Catalog): readonly string[] {
  return catalog.items.filter((s) => s.userInvocable).map((s) => s.name);
}

/** The names that the model may load. */
export function modelNames(catalog: Catalog): readonly string[] {
  return catalog.items.filter((s) => s.modelInvocable).map((s) => s.name);
}

// Of a thousand names, all would drown the few that were perhaps meant.
const mostNamed = 100;

/** `available: a, b …`: a hundred names at most. */
export function availableNames(names: readonly string[]): string {
  const few = names.slice(0, mostNamed).join(", ") || "none";
  return `available: ${few}${names.length > mostNamed ? ` and ${names.length - mostNamed} more` : ""}`;
}

/**
 * What to say of a name that the user, or the model, may not load: why not, where something of that name is known; else those
 * that were perhaps meant, and which there are.
 */
export function noSuchSkill(name: string, catalog: Catalog, by: "user" | "model"): string {
  const shown = `\`${escapeLine(name.slice(0, 200))}\``;
  const names = by === "user" ? userNames(catalog) : modelNames(catalog);
  if (catalog.get(name) !== undefined) {
    const key = by === "user" ? "user-invocable: false" : "disable-model-invocation: true";
    return `the skill ${shown} says \`${key}\`, so that the ${by} cannot load it; ${availableNames(names)}`;
  }
  const why = whyAbsent(catalog, name);
  if (why !== undefined) {
    return `the skill ${shown} is not available: ${escapeLine(why)}; ${availableNames(names)}`;
  }
  const meant = suggest(name, names);
  const hint = meant.length === 0 ? "" : `did you mean ${meant.join(" or ")}? `;
  return `no skill ${shown}; ${hint}${availableNames(names)}`;
}

function load(text: string, names: readonly string[]): SkillMessage {
  const fitting = names.flatMap((name) => {
    // A name is composed; some keyboards and file systems send it taken apart.
    const written = [name, name.normalize("NFD")].find((form) => text.startsWith(form));
    return written !== undefined && /^(?:\s|$)/.test(text.slice(written.length))
      ? [{ name, length: written.length }]
      : [];
  });
  const [best] = fitting.sort((a, b) => b.length - a.length);
  if (best !== undefined) return { kind: "load", name: best.name, arguments: text.slice(best.length).trim() };
  const word = /^\S*/.exec(text)?.[0] ?? "";
  return { kind: "unknown", word, suggestions: suggest(word, names) };
}

/** At most five names that were perhaps meant: near in spelling first, then those that contain the word. */
export function suggest(word: string, names: readonly string[]): readonly string[] {
  if (word === "") return [];
  const near = nearest(word, names);
  const lower = word.toLowerCase();
  const holding = names.filter((name) => name.toLowerCase().includes(lower)).sort();
  return [...new Set([...(near === undefined ? [] : [near]), ...holding])].slice(0, 5);
}

export type PatternHit = {
  readonly skill: Skill;
  /** As written. */
  readonly pattern: string;
  /** UTF-16 offsets into the message. */
  readonly span: readonly [number, number];
  /** Where a policy holds the pattern; absent for one of the skill itself. */
  readonly at?: Position;
};

export const messageCap = 64 * 1024;

/**
 * The skills of which a pattern meets the first 64 KiB of the message: each once, by its first pattern that does, those of
 * the policy before its own. Ranked by shorter description, then most recently used, then name. `disable-model-invocation`
 * and `user-invocable` do not matter here.
 */
export function selectByPattern(
  message: string,
  triggers: readonly SkillTrigger[],
  catalog: Catalog,
  recent: ReadonlyMap<string, number>,
): readonly PatternHit[] {
  const text = firstBytes(message, messageCap);
  const hits: PatternHit[] = [];
  const byPolicy = Map.groupBy(triggers, (t) => t.skill);
  for (const skill of catalog.items) {
    const own = skill.patterns.map((pattern) => ({ pattern }));
    const patterns = [...byPolicy.get(skill.name) ?? [], ...own];
    const hit = firstHit(patterns, text);
    if (hit !== undefined) hits.push({ skill, ...hit });
  }
  return hits.sort((a, b) => rank(a.skill, b.skill, recent));
}

function firstHit(
  patterns: readonly { readonly pattern: Pattern; readonly at?: Position }[],
  text: string,
): Omit<PatternHit, "skill"> | undefined {
  for (const { pattern, at } of patterns) {
    const span = pattern.find(text);
    if (span !== undefined) return { pattern: pattern.source, span, ...(at === undefined ? {} : { at }) };
  }
  return undefined;
}

function rank(a: Skill, b: Skill, recent: ReadonlyMap<string, number>): number {
  const length = (s: Skill) => [...s.description].length;
  const used = (s: Skill) => recent.get(s.name) ?? -1;
  return length(a) - length(b) || used(b) - used(a) || compareText(a.name, b.name);
}

const encoder = new TextEncoder();

/** The beginning of a text, at most so many bytes of UTF-8, whole characters only. */
export function firstBytes(text: string, cap: number): string {
  if (text.length * 3 <= cap) return text;
  return text.slice(0, encoder.encodeInto(text, new Uint8Array(cap)).read);
}
