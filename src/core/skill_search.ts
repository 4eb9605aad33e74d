// Finding a skill by words, over all names and descriptions: for the model, for `/skill find` and for `writ skill find`.
import { compareText } from "./collection.ts";
import { dropHidden, escapeFence } from "./text.ts";
import type { Skill } from "./skill.ts";

type Searched = Pick<Skill, "name" | "description">;

/** Results that are given when nobody says how many. */
export const mostFound = 20;

/**
 * The skills that a query is about, best first: by words and word stems, and by pairs of characters where a language
 * writes no blanks; words in names count more, so do rare ones. A query that is a name finds that skill first; one
 * without any letter or digit is looked for as it is. At most `most`, and `total` says how many there are.
 */
export function searchSkills<T extends Searched>(
  items: readonly T[],
  query: string,
  most: number = mostFound,
): { readonly found: readonly T[]; readonly total: number } {
  const wanted = plain(query);
  const terms = [...new Set(termsOf(wanted))].slice(0, mostTerms);
  const entries = items.map((item): Entry<T> => ({ item, ...wordsOf(item) }));
  const scored = terms.length === 0
    ? entries.filter((e) => wanted !== "" && e.name.includes(wanted)).map((entry) => ({ entry, score: 1 }))
    : score(entries, terms, wanted);
  scored.sort((a, b) => b.score - a.score || compareText(a.entry.item.name, b.entry.item.name));
  return { found: scored.slice(0, most).map((s) => s.entry.item), total: scored.length };
}

type Words = {
  readonly name: string;
  readonly text: string;
  readonly nameTerms: ReadonlySet<string>;
  readonly textTerms: ReadonlySet<string>;
};
type Entry<T> = Words & { readonly item: T };

// A model that looks for a skill seldom looks once.
const known = new WeakMap<Searched, Words>();

function wordsOf(item: Searched): Words {
  const before = known.get(item);
  if (before !== undefined) return before;
  const name = plain(item.name);
  const text = plain(item.description);
  const words = { name, text, nameTerms: new Set(termsOf(name)), textTerms: new Set(termsOf(text)) };
  known.set(item, words);
  return words;
}

const mostTerms = 40;
const inName = 4;

function score<T>(entries: readonly Entry<T>[], terms: readonly string[], wanted: string) {
  const weights = terms.map((term) => {
    const holding = entries.filter((e) => e.nameTerms.has(term) || inText(e, term)).length;
    return Math.log(1 + entries.length / (1 + holding));
  });
  return entries.flatMap((entry) => {
    let sum = 0;
    for (const [index, term] of terms.entries()) {
      const weight = weights[index] ?? 0;
      if (entry.nameTerms.has(term)) sum += weight * inName;
      else if (entry.name.includes(term)) sum += weight * inName / 2;
      if (inText(entry, term)) sum += weight;
    }
    if (sum === 0) return [];
    return [{ entry, score: entry.name === wanted ? Infinity : sum }];
  });
}

// One character of a text without blanks is in no pair of it as a whole.
function inText<T>(entry: Entry<T>, term: string): boolean {
  return entry.textTerms.has(term) || (single.test(term) && entry.text.includes(term));
}

function plain(text: string): string {
  return dropHidden(text).normalize("NFKC").toLowerCase().trim();
}

const unspaced = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]+/gu;
const single = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]$/u;

// Han text has no blanks: two characters next to each other are its words, near enough. A single one stands for itself.
function termsOf(text: string): readonly string[] {
  const terms: string[] = [];
  const rest = text.replace(unspaced, (run) => {
    const characters = [...run];
    if (characters.length === 1) terms.push(run);
    for (let i = 1; i < characters.length; i++) terms.push(`${characters[i - 1]}${characters[i]}`);
    return " ";
  });
  for (const word of rest.match(/[\p{L}\p{M}\p{N}]+/gu) ?? []) terms.push(stem(word));
  return terms;
}

// Enough that "reviewing", "reviews" and "review" meet; wrong stems are wrong on both sides.
function stem(word: string): string {
  if (!/^[a-z]{5,}$/.test(word)) return word.replace(/^([a-z]{2,})s$/, "$1");
  return word.replace(/(?:ings?|ers?|ions?|ed|es|e|s)$/, "");
}

const describedCap = 300;

/** What the model is told: a line a skill, none of them long, and how many more there are. */
export function foundText(
  query: string,
  { found, total }: { readonly found: readonly Searched[]; readonly total: number },
): string {
  if (total === 0) return `no skill is about \`${oneLine(query, describedCap)}\`; try other words`;
  const lines = found.map((s) => `- ${oneLine(s.name, 200)}: ${oneLine(s.description, describedCap)}`);
  const more = total > found.length
    ? [`… and ${total - found.length} more that fit less; add words to narrow the search`]
    : [];
  return [...lines, ...more].join("\n");
}

function oneLine(text: string, cap: number): string {
  const line = dropHidden(text).replace(/\s+/g, " ").trim();
  return escapeFence(line.length > cap ? `${line.slice(0, cap - 1).replace(/[\ud800-\udbff]$/, "")}…` : line);
}
