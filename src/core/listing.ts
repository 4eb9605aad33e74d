// The catalog as the model sees it: names and descriptions, within a budget, and what had to be left out.
import { estimateTokens } from "./budget.ts";
import { compareText } from "./collection.ts";
import type { Catalog } from "./catalog.ts";
import type { CatalogChange } from "./catalog_change.ts";
import { sessionForced, type SkillSettings, type SkillTier } from "./policy.ts";
import type { Skill } from "./skill.ts";
import { dropHidden, escapeFence } from "./text.ts";

export type ListingOptions = {
  readonly budgetTokens: number;
  /** Skills that the policy forces at a gate: listed first. */
  readonly forcedNames: ReadonlySet<string>;
  /** Skills that are in force for the whole session: not listed, their text is there already. */
  readonly sessionNames?: ReadonlySet<string>;
  /** Name → number that grows with each use. */
  readonly recent: ReadonlyMap<string, number>;
};

/** As the policy has it; `recent` is that of the session. */
export function listingOptions(
  { skills }: { readonly skills: Pick<SkillSettings, "forced" | "listingTokens"> },
  recent: { readonly [name: string]: number },
): ListingOptions {
  return {
    budgetTokens: skills.listingTokens,
    forcedNames: new Set(skills.forced.map((f) => f.skill)),
    sessionNames: new Set(sessionForced(skills).map((f) => f.skill)),
    recent: new Map(Object.entries(recent)),
  };
}

export type Listing = {
  /** Empty when there is nothing to list. */
  readonly text: string;
  readonly tokens: number;
  /** Names whose description was shortened. */
  readonly shortened: readonly string[];
  /** Names, from the first that had no room. */
  readonly omitted: readonly string[];
};

/** Names of skills that the model could load, and of which it sees less than all there is to see. */
export type Shown = {
  readonly shortened: ReadonlySet<string>;
  readonly omitted: ReadonlySet<string>;
};

export function shownBy(listing: Pick<Listing, "shortened" | "omitted">): Shown {
  return {
    shortened: new Set(listing.shortened),
    omitted: new Set(listing.omitted),
  };
}

/** Data of `skill.omitted`. */
export type Omission = { readonly name: string; readonly reason: string };

/** Why the model does not see these, save those that it did not see before either. */
export function omissions(
  shown: Shown,
  { skills }: { readonly skills: Pick<SkillSettings, "listingTokens"> },
  before?: Shown,
): readonly Omission[] {
  const reason = `skills.listing_tokens (${skills.listingTokens}) is used up`;
  return [...shown.omitted].filter((name) => before?.omitted.has(name) !== true).map((name) => ({
    name,
    reason,
  }));
}

/** What the model sees of a skill before it is loaded, in words. */
export function sightOf(
  skill: Pick<Skill, "name" | "modelInvocable">,
  settings: Pick<SkillSettings, "forced" | "modelChoice">,
  shown: Shown,
): "all of it" | "full" | "shortened" | "omitted" | "not for the model" | "nothing (skills.model_choice)" {
  if (sessionForced(settings).some((f) => f.skill === skill.name)) return "all of it";
  if (!skill.modelInvocable) return "not for the model";
  if (!settings.modelChoice) return "nothing (skills.model_choice)";
  if (shown.omitted.has(skill.name)) return "omitted";
  return shown.shortened.has(skill.name) ? "shortened" : "full";
}

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
  if (room <= 0) return { text: "", tokens: 0, shortened: [], omitted: lines.map((l) => l.skill.name) };
  const longest = Math.max(...lines.map((l) => l.description.length));
  const fits = (cap: number) => {
    let left = room;
    return lines.every((l) => (left -= cost(l, capFor(l, cap, options))) >= 0);
  };
  const cap = fits(longest) ? longest : largest(shortest, longest, fits);
  const { kept, left } = fill(lines, room, (l) => capFor(l, cap, options));
  return compose(kept, left);
}

/**
 * What to tell the model of skills that came, changed or went since its list was made: an environment text, empty when
 * nothing of it concerns the model. `before` is the catalog that it knows. New and changed ones are listed within the
 * budget, by the rules of renderListing; of those that are gone at most fifty are named.
 */
export function renderChanges(
  change: CatalogChange,
  before: Catalog,
  after: Catalog,
  options: ListingOptions,
): Listing {
  const named = new Set([...change.added, ...change.changed]);
  const fresh = renderListing(after.items.filter((s) => named.has(s.name)), options);
  const gone = [
    ...change.removed,
    ...change.changed.filter((name) => after.get(name)?.modelInvocable !== true),
  ].filter((name) => before.get(name)?.modelInvocable === true).sort(compareText);
  const names = gone.slice(0, mostGone).map((name) => escapeFence(oneLine(name))).join(", ");
  const more = gone.length > mostGone ? ` and ${gone.length - mostGone} more` : "";
  const parts = [
    ...(fresh.text === "" ? [] : ["These skills are new or have changed.", fresh.text]),
    ...(gone.length === 0 ? [] : [`These skills are no longer available: ${names}${more}`]),
  ];
  const text = parts.length === 0 ? "" : `<environment>\n${parts.join("\n\n")}\n</environment>`;
  return { ...fresh, text, tokens: estimateTokens(text) };
}
const mostGone = 50;

type Line = { readonly skill: Skill; readonly name: string; readonly description: string };
type Kept = Line & { readonly shown: string };

function compose(kept: readonly Kept[], left: readonly Line[]): Listing {
  const more = left.length === 0 ? "" : `\n${moreLine(left.length)}`;
  const list = kept.map((l) => render(l.name, l.shown)).join("\n");
  const text = kept.length === 0 && more === ""
    ? ""
    : `${heading}\n\n${instruction}\n\n${list}${more}`.trimEnd();
  return {
    text,
    tokens: estimateTokens(text),
    shortened: kept.filter((l) => l.shown !== l.description).map((l) => l.skill.name),
    omitted: left.map((l) => l.skill.name),
  };
}

function moreLine(count: number): string {
  return `- … and ${count} more skills that are not listed; find_skill searches them`;
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
