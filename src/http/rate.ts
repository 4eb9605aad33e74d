// How many requests of one kind a token may send: a bucket that fills up again with time.

export type Rates = {
  /** Takes one; gives how many seconds to wait when there is none. */
  take(owner: string, kind: string, perSecond: number): number | undefined;
};

/** `now` in milliseconds, never backwards. A bucket holds what one second allows. */
export function createRates(now: () => number): Rates {
  const buckets = new Map<string, { level: number; at: number }>();
  return {
    take(owner, kind, perSecond) {
      const key = `${owner} ${kind}`;
      const at = now();
      const bucket = buckets.get(key) ?? { level: perSecond, at };
      const level = Math.min(perSecond, bucket.level + (at - bucket.at) / 1000 * perSecond);
      const taken = level >= 1;
      buckets.set(key, { level: taken ? level - 1 : level, at });
      return taken ? undefined : (1 - level) / perSecond;
    },
  };
}
