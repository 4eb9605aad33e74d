// Counts in messages.

/** A count and its word: `1 line`, `1,200 lines`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en-US")} ${count === 1 ? one : many}`;
}
