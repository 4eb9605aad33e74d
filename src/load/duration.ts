// Durations, sizes and retention periods as people write them in a policy.

/** Timers of both runtimes overflow above this: about 24 days. */
const longestMs = 2_147_483_647;

export const durationWords = "a duration such as 10m, 120s, 1h30m or 500ms, above zero and at most 24 days";
export const sizeWords = "a size such as 512MiB or 2GiB";
export const retentionWords = "a number of days such as 90d";

/** Milliseconds; undefined when the text is no duration, is zero, or is longer than a timer can run. */
export function parseDuration(text: string): number | undefined {
  const match = /^(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m(?!s))?(?:(\d{1,8})s)?(?:(\d{1,10})ms)?$/.exec(
    text,
  );
  if (match === null) return undefined;
  const [days = 0, hours = 0, minutes = 0, seconds = 0, rest = 0] = match.slice(1).map((n) => Number(n ?? 0));
  const ms = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + rest;
  return ms > 0 && ms <= longestMs ? ms : undefined;
}

/** Milliseconds of a text that the schema let through; throws for any other, since a duration of zero would be silent and wrong. */
export function milliseconds(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined) throw new Error(`duration ${text} passed the schema`);
  return ms;
}

/** The shortest text that parseDuration reads back as the same number. */
export function showDuration(ms: number): string {
  const units: readonly (readonly [string, number])[] = [["h", 3_600_000], ["m", 60_000], ["s", 1000], [
    "ms",
    1,
  ]];
  let left = ms;
  const parts = units.map(([unit, size]) => {
    const count = Math.floor(left / size);
    left -= count * size;
    return count === 0 ? "" : `${count}${unit}`;
  });
  return parts.join("");
}

const binaryUnits: { readonly [unit: string]: number } = {
  B: 1,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
};

/** Bytes; undefined when the text is no size or is zero. */
export function parseSize(text: string): number | undefined {
  const match = /^(\d{1,9})(B|KiB|MiB|GiB|TiB)$/.exec(text);
  const bytes = Number(match?.[1] ?? 0) * (binaryUnits[match?.[2] ?? ""] ?? 0);
  return bytes > 0 && Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** Days; undefined when the text is no retention period or is zero. */
export function parseRetention(text: string): number | undefined {
  const match = /^(\d{1,5})d$/.exec(text);
  const days = Number(match?.[1] ?? 0);
  return days > 0 ? days : undefined;
}
