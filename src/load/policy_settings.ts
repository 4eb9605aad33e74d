// Reads one key from all files and combines it across layers in the one way that its kind allows. Lists of one layer unite;
// a scalar that two files of one layer set is a Problem. Remembers where every value came from.
import { uniqueBy } from "../core/collection.ts";
import type { Json } from "../core/message.ts";
import { type Position, type Problem, showPosition } from "../core/problem.ts";
import { canonicalJson } from "../core/text.ts";
import { showFound, showPath } from "./check_value.ts";
import { resolvePath } from "./locate.ts";
import type { PolicyFile, PolicyLayer } from "./policy_file.ts";
import type { PolicyData } from "./policy_schema.ts";

/** From the most to the least trusted. */
export const policyLayers: readonly PolicyLayer[] = ["machine", "user", "project"];

/** One value of the effective policy; a list gives one entry an item. */
export type Origin = {
  readonly key: string;
  readonly value: Json;
  readonly layer: PolicyLayer | "default";
  readonly at: Position | "default";
};
export type Settings = {
  readonly files: readonly PolicyFile[];
  readonly problems: Problem[];
  readonly origin: Origin[];
};
export type Placed<T> = { readonly value: T; readonly layer: PolicyLayer; readonly at: Position };

/** The type at a dotted path, optional steps included. */
type At<T, P extends string> = P extends `${infer H}.${infer R}`
  ? H extends keyof T ? At<NonNullable<T[H]>, R> : never
  : P extends keyof T ? NonNullable<T[P]>
  : never;
type Item<T> = T extends readonly (infer I)[] ? I : never;

/** What each layer sets, most trusted first. */
export function perLayer<P extends string>(settings: Settings, key: P): readonly Placed<At<PolicyData, P>>[] {
  return policyLayers.flatMap((layer) => {
    const [first, second] = everywhere(settings, key).filter((p) => p.layer === layer);
    if (first !== undefined && second !== undefined) setTwice(settings, key, first, second);
    return first === undefined ? [] : [first];
  });
}

/** The upper layer wins; what a lower one says differently has no effect, and is told. */
export function firstOf<P extends string>(
  settings: Settings,
  key: P,
  fallback: At<PolicyData, P>,
): At<PolicyData, P>;
export function firstOf<P extends string>(settings: Settings, key: P): At<PolicyData, P> | undefined;
export function firstOf<P extends string>(settings: Settings, key: P, fallback?: At<PolicyData, P>) {
  const [first, ...others] = perLayer(settings, key);
  for (const other of others) if (first !== undefined) noEffect(settings, key, other, first);
  return record(settings, key, first, fallback);
}

/** The path at a key, which starts at the folder of the file that sets it. */
export function placedPath<P extends "audit.dir" | "audit.heads" | "model.script" | "server.token_file">(
  settings: Settings,
  key: P,
  home: string,
): string | undefined {
  const path = firstOf(settings, key) as string | undefined;
  const file = perLayer(settings, key)[0]?.at.file;
  return path === undefined || file === undefined ? undefined : resolvePath(path, { file, home });
}

/**
 * The least value. Without an upper layer's word a project is measured against the embedded value, so that it can only
 * lower it. `convert` turns the written value into the number that is compared.
 */
export function leastOf<P extends string>(
  settings: Settings,
  key: P,
  fallback: At<PolicyData, P> | undefined,
  convert: (written: At<PolicyData, P>) => number,
): number | undefined {
  let least: Placed<At<PolicyData, P>> | undefined;
  for (const placed of perLayer(settings, key)) {
    const against = least?.value ?? (placed.layer === "project" ? fallback : undefined);
    if (against === undefined || convert(placed.value) < convert(against)) least = placed;
    else if (convert(placed.value) > convert(against)) noEffect(settings, key, placed, least);
  }
  const value = record(settings, key, least, fallback);
  return value === undefined ? undefined : convert(value);
}

/** The value that comes first in `order`, strictest first. */
export function strictestOf<P extends string>(
  settings: Settings,
  key: P,
  order: readonly At<PolicyData, P>[],
  fallback: At<PolicyData, P>,
): { readonly value: At<PolicyData, P>; readonly at?: Position } {
  let strictest: Placed<At<PolicyData, P>> | undefined;
  for (const placed of perLayer(settings, key)) {
    if (strictest === undefined || order.indexOf(placed.value) < order.indexOf(strictest.value)) {
      strictest = placed;
    } else noEffect(settings, key, placed, strictest);
  }
  const value = record(settings, key, strictest, fallback) ?? fallback;
  return strictest === undefined ? { value } : { value, at: strictest.at };
}

/** Every item of every layer and file, in order; nothing is dropped. */
export function unionOf<P extends string>(
  settings: Settings,
  key: P,
): readonly Placed<Item<At<PolicyData, P>>>[] {
  return itemsOf(settings, key).map((item) => {
    settings.origin.push({ key, value: item.value as Json, layer: item.layer, at: item.at });
    return item;
  });
}

/** What every layer that sets the key lists, in the order of the most trusted one. */
export function intersectionOf<P extends string>(
  settings: Settings,
  key: P,
  fallback: readonly Item<At<PolicyData, P>>[],
  inUpper: (item: Placed<Item<At<PolicyData, P>>>, upper: readonly Item<At<PolicyData, P>>[]) => boolean,
): readonly Placed<Item<At<PolicyData, P>>>[] | undefined {
  const all = itemsOf(settings, key);
  const setting = policyLayers.filter((layer) => everywhere(settings, key).some((p) => p.layer === layer));
  if (setting.length === 0) {
    for (const value of fallback) {
      settings.origin.push({ key, value: value as Json, layer: "default", at: "default" });
    }
    return undefined;
  }
  let kept: readonly Placed<Item<At<PolicyData, P>>>[] | undefined;
  for (const layer of setting) {
    const own = all.filter((i) => i.layer === layer);
    if (kept === undefined) {
      kept = own;
      continue;
    }
    const upper: readonly Placed<Item<At<PolicyData, P>>>[] = kept;
    const values = upper.map((u) => u.value);
    const narrowed = own.filter((i) => inUpper(i, values));
    for (const item of own) {
      if (!narrowed.includes(item)) noEffect(settings, key, item, undefined);
    }
    kept = narrowed;
  }
  const distinct = dedupe(kept ?? []);
  for (const item of distinct) {
    settings.origin.push({ key, value: item.value as Json, layer: item.layer, at: item.at });
  }
  return distinct;
}

// A header may hold a token of somebody's gateway.
const hidden = "model.headers";

/** Entries of all layers; of one name the upper layer's. Safe for any name. */
export function mapOf<P extends string>(
  settings: Settings,
  key: P,
): ReadonlyMap<string, Placed<At<PolicyData, P>[keyof At<PolicyData, P>]>> {
  type Value = At<PolicyData, P>[keyof At<PolicyData, P>];
  const map = new Map<string, Placed<Value>>();
  for (const layer of policyLayers) {
    const own = new Map<string, Placed<Value>>();
    for (const file of settings.files.filter((f) => f.layer === layer)) {
      const value = valueAt(file.data, key);
      if (value === undefined) continue;
      for (const [name, member] of Object.entries(value as { [name: string]: Value })) {
        const placed = { value: member, layer, at: file.keyAt([...key.split("."), name]) };
        const before = own.get(name);
        if (before === undefined) own.set(name, placed);
        else setTwice(settings, `${key}.${name}`, before, placed);
      }
    }
    for (const [name, placed] of own) {
      const upper = map.get(name);
      if (upper === undefined) map.set(name, placed);
      else noEffect(settings, `${key}.${name}`, placed, upper);
    }
  }
  for (const [name, p] of map) {
    const value: Json = key === hidden ? "…" : p.value as Json;
    settings.origin.push({ key: `${key}.${name}`, value, layer: p.layer, at: p.at });
  }
  return map;
}

export function setTwice(
  settings: Settings,
  key: string,
  first: { readonly at: Position },
  second: { readonly at: Position },
): void {
  settings.problems.push({
    code: "set-twice",
    severity: "error",
    message: `${showPath(key.split("."))} is set twice in one layer, at ${showPosition(first.at)} and at ${
      showPosition(second.at)
    }`,
    at: second.at,
    hint: "keep one of them",
  });
}

function everywhere<P extends string>(settings: Settings, key: P): readonly Placed<At<PolicyData, P>>[] {
  return settings.files.flatMap((file) => {
    const value = valueAt(file.data, key);
    return value === undefined
      ? []
      : [{ value: value as At<PolicyData, P>, layer: file.layer, at: file.at(key.split(".")) }];
  });
}

function itemsOf<P extends string>(settings: Settings, key: P): readonly Placed<Item<At<PolicyData, P>>>[] {
  return settings.files.flatMap((file) => {
    const list = valueAt(file.data, key);
    if (!Array.isArray(list)) return [];
    return list.map((value: Item<At<PolicyData, P>>, index) => ({
      value,
      layer: file.layer,
      at: file.at([...key.split("."), index]),
    }));
  });
}

function valueAt(data: PolicyData, key: string): unknown {
  let value: unknown = data;
  for (const step of key.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as { readonly [key: string]: unknown })[step];
  }
  return value;
}

function record<T>(
  settings: Settings,
  key: string,
  placed: Placed<T> | undefined,
  fallback: T | undefined,
): T | undefined {
  const value = placed?.value ?? fallback;
  if (value === undefined) return undefined;
  settings.origin.push({
    key,
    value: value as Json,
    layer: placed?.layer ?? "default",
    at: placed?.at ?? "default",
  });
  return value;
}

function noEffect<T>(
  settings: Settings,
  key: string,
  placed: Placed<T>,
  winner: Placed<T> | undefined,
): void {
  if (winner !== undefined && canonicalJson(placed.value as Json) === canonicalJson(winner.value as Json)) {
    return;
  }
  const by = winner === undefined
    ? "an upper layer or the embedded value is stricter"
    : `the ${winner.layer} layer decides, at ${showPosition(winner.at)}`;
  const shown = key.startsWith(`${hidden}.`) ? "" : ` as ${showFound(placed.value)}`;
  settings.problems.push({
    code: "no-effect",
    severity: "warning",
    message: `${showPath(key.split("."))}${shown} in the ${placed.layer} layer has no effect: ${by}`,
    at: placed.at,
  });
}

function dedupe<T>(items: readonly Placed<T>[]): readonly Placed<T>[] {
  return uniqueBy(items, (item) => canonicalJson(item.value as Json));
}
