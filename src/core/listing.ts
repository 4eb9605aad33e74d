// The catalog as the model sees it: names and descriptions, within a budget, and what had to be left out.
import { estimateTokens } from "./budget.ts";
import { compareText } from "./collection.ts";
import type { SkillTier } from "./policy.ts";
import { dropHidden, type Skill } from "./skill.ts";
import { escapeFence } from "./text.ts";

export type ListingOptions = {
  readonly budgetTokens: number;
  /** Skills that the policy forces at a gate: listed first. */
  readonly forcedNames: ReadonlySet<string>;
  /** Skills that are in force for the whole session: not listed, their text is there already. */
  readonly sessionNames?: ReadonlySet<string>;
  /** Name → number that grows with each use. */
  readonly recent: ReadonlyMap<string, number>;
};

export type Listing = {
  /** Empty when there is nothing to list. */
  readonly text: string;
  readonly tokens: number;
  /** Names whose description was shortened. */
  readonly shortened: readonly string[];
  readonly omitted: readonly { readonly name: string; readonly reason: string }[];
};

const heading = "# Available Skills";
const instruction =
  "When one of these skills is relevant to the task, load it with load_skill before you act, and then follow " +
  "its instructions.";

// A description of fewer characters says nothing; then the skill is rather left out, and found by searching.
const shortest = 60;

/**
 * One line a skill. When all do not fit, descriptions are shortened to one length, the largest that fits, those of forced
 * skills last; when that is not enough, skills are left out from the end of the order: forced, tier (project first), most recently used,
 * name. The text never costs more than the budget, estimated.
 */
export function renderListing(items: readonly Skill[], options: ListingOptions): Listing {
  const ranked = items
    .filter((s) => s.modelInvocable && options.sessionNames?.has(s.name) !== true)
    .sort(ranking(options));
  if (ranked.length === 0) return { text: "", tokens: 0, shortened: [], omitted: [] };
  const lines = ranked.map((skill) => ({
    skill,
    name: oneLine(skill.name),
    description: oneLine(skill.description),
  }));
  const frame = estimateTokens(`${heading}\n\n${instruction}\n\n`) +
    estimateTokens(moreLine(lines.length)) + 2;
  const room = options.budgetTokens - frame;
  if (room <= 0) return { text: "", tokens: 0, shortened: [], omitted: omit(lines, options) };
  const longest = Math.max(...lines.map((l) => l.description.length));
  const fits = (cap: number) => {
    let left = room;
    return lines.every((l) => (left -= cost(l, capFor(l, cap, options))) >= 0);
  };
  const cap = fits(longest) ? longest : largest(shortest, longest, fits);
  const { kept, left } = fill(lines, room, (l) => capFor(l, cap, options));
  return compose(kept, left, options);
}

type Line = { readonly skill: Skill; readonly name: string; readonly description: string };
type Kept = Line & { readonly shown: string };

function compose(kept: readonly Kept[], left: readonly Line[], options: ListingOptions): Listing {
  const more = left.length === 0 ? "" : `\n${moreLine(left.length)}`;
  const list = kept.map((l) => render(l.name, l.shown)).join("\n");
  const text = kept.length === 0 && more === ""
    ? ""
    : `${heading}\n\n${instruction}\n\n${list}${more}`.trimEnd();
  return {
    text,
    tokens: estimateTokens(text),
    shortened: kept.filter((l) => l.shown !== l.description).map((l) => l.skill.name),
    omitted: omit(left, options),
  };
}

function omit(left: readonly Line[], options: ListingOptions): Listing["omitted"] {
  return left.map((l) => ({
    name: l.skill.name,
    reason: `skills.listing_tokens (${options.budgetTokens}) is used up`,
  }));
}

function moreLine(count: number): string {
  return `- … and ${count} more skills that are not listed`;
}

function fill(
  lines: readonly Line[],
  room: number,
  capOf: (line: Line) => number,
): { kept: Kept[]; left: Line[] } {
  const kept: Kept[] = [];
  let used = 0;
  for (const [index, line] of lines.entries()) {
    const price = cost(line, capOf(line));
    // Nothing of lower rank takes the place of what did not fit.
    if (used + price > room) return { kept, left: lines.slice(index) };
    used += price;
    kept.push({ ...line, shown: shorten(line.description, capOf(line)) });
  }
  return { kept, left: [] };
}

function capFor(line: Line, cap: number, options: ListingOptions): number {
  return options.forcedNames.has(line.skill.name) ? line.description.length : cap;
}

function cost(line: Line, cap: number): number {
  return estimateTokens(`${render(line.name, shorten(line.description, cap))}\n`);
}

function render(name: string, description: string): string {
  return `- ${escapeFence(name)}: ${escapeFence(description)}`;
}

// The largest number in [low, high] that fits; `low` when none does.
function largest(low: number, high: number, fits: (n: number) => boolean): number {
  let good = low;
  let bad = fits(low) ? high : low;
  while (bad - good > 1) {
    const middle = Math.floor((good + bad) / 2);
    if (fits(middle)) good = middle;
    else bad = middle;
  }
  return good;
}

function shorten(text: string, cap: number): string {
  if (text.length <= cap) return text;
  const cut = text.slice(0, cap - 1);
  const word = cut.lastIndexOf(" ");
  const end = word > cap * 0.6 ? cut.slice(0, word) : cut.replace(/[\ud800-\udbff]$/, "");
  return `${end.trimEnd()}…`;
}

function oneLine(text: string): string {
  if (!/[^ -~]| {2}/.test(text)) return text;
  return dropHidden(text).replace(/\s+/g, " ").trim();
}

// The nearest tier first: a project's skills are about the work at hand.
const tierOrder: Readonly<Record<SkillTier, number>> = { project: 0, user: 1, machine: 2, builtin: 3 };

function ranking(options: ListingOptions): (a: Skill, b: Skill) => number {
  const forced = (s: Skill) => (options.forcedNames.has(s.name) ? 0 : 1);
  const used = (s: Skill) => options.recent.get(s.name) ?? -1;
  return (a, b) =>
    forced(a) - forced(b) || tierOrder[a.tier] - tierOrder[b.tier] || used(b) - used(a) ||
    compareText(a.name, b.name);
}
