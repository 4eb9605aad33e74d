// What lists and nested values need everywhere: an order of texts, equal items once, answers kept, and how deep a value is.
import type { Json } from "./message.ts";

/** Order by UTF-16 units, the same on every machine. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The first of the items that have one key, in their order. */
export function uniqueBy<T>(items: readonly T[], keyOf: (item: T) => string): T[] {
  const seen = new Set<string>();
  return items.filter((item) => {
    const key = keyOf(item);
    return seen.has(key) ? false : (seen.add(key), true);
  });
}

const mostKept = 16;

/** The same function, which keeps its last few answers: for long texts that are asked about several times in a row. */
export function remembered<T extends object>(answer: (text: string) => T): (text: string) => T {
  const kept = new Map<string, T>();
  return (text) => {
    const known = kept.get(text);
    if (known !== undefined) return known;
    const made = answer(text);
    if (kept.size >= mostKept) kept.clear();
    kept.set(text, made);
    return made;
  };
}

/** Whether more than `levels` objects and lists stand in each other. Never recurses deeper than that. */
export function deeperThan(value: Json, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  return Object.values(value).some((member) => deeperThan(member, levels - 1));
}
