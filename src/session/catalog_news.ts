// Skills that came, changed or went between two turns: what is recorded of it and what the model is told.
import type { Agent } from "../agent/agent.ts";
import type { Recorder } from "../agent/recorder.ts";
import { type CatalogChange, compareCatalogs } from "../core/catalog_change.ts";
import { listingOptions, type Omission, omissions, renderChanges, type Shown } from "../core/listing.ts";
import type { LoadedCatalog } from "./catalog.ts";

export type CatalogNews = {
  readonly change?: CatalogChange;
  readonly text: string;
  /** What the model sees of the skills from now on. */
  readonly shown: Shown;
  readonly omitted: readonly Omission[];
};

export function differs(before: LoadedCatalog, after: LoadedCatalog): boolean {
  const faults = ({ catalog, errors }: LoadedCatalog) => JSON.stringify([errors, catalog.absent]);
  return compareCatalogs(before.catalog, after.catalog) !== undefined || faults(before) !== faults(after);
}

/**
 * With `kept` the model goes on with the list that it was given, so it is told the changes, within a quarter of
 * skills.listing_tokens; with `new` it is given another list.
 */
export function catalogNews(before: Agent, after: Agent, stable: "kept" | "new"): CatalogNews {
  const change = compareCatalogs(before.catalog, after.catalog);
  const kept = stable === "kept" ? told(before, after, change) : { text: "", shown: after.preface.now.shown };
  return {
    ...(change === undefined ? {} : { change }),
    ...kept,
    omitted: omissions(kept.shown, after.policy, before.preface.now.shown),
  };
}

function told(before: Agent, after: Agent, change: CatalogChange | undefined): Omit<CatalogNews, "omitted"> {
  const { shown } = before.preface.now;
  if (change === undefined || !after.policy.skills.modelChoice) return { text: "", shown };
  const { skills } = after.policy;
  const news = renderChanges(change, before.catalog, after.catalog, {
    ...listingOptions(after.policy, after.recorder.state.recent),
    budgetTokens: Math.floor(skills.listingTokens / 4),
  });
  const retold = new Set([...change.added, ...change.changed, ...change.removed]);
  const keep = (names: ReadonlySet<string>) => [...names].filter((name) => !retold.has(name));
  return {
    text: news.text,
    shown: {
      shortened: new Set([...keep(shown.shortened), ...news.shortened]),
      omitted: new Set([...keep(shown.omitted), ...news.omitted]),
    },
  };
}

/** One event for the change, one for each fault that is new, one for each skill that the model no longer sees. */
export function recordNews(
  recorder: Recorder,
  news: CatalogNews,
  before: LoadedCatalog,
  after: LoadedCatalog,
): void {
  const known = new Set(before.errors.map((e) => JSON.stringify(e)));
  for (const fault of after.errors.filter((e) => !known.has(JSON.stringify(e)))) {
    recorder.emit("skill.registry_error", fault);
  }
  if (news.change !== undefined) recorder.emit("catalog.changed", { ...news.change, text: news.text });
  for (const omission of news.omitted) recorder.emit("skill.omitted", omission);
}
