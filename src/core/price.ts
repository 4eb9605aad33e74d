// What a reply costs: its usage by the prices that the policy gives for the model.
import type { Usage } from "./message.ts";

/** USD per million tokens. */
export type Prices = {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
};

/** In USD. */
export function costOf(usage: Usage, prices: Prices): number {
  return rounded(
    (usage.input * prices.input + usage.output * prices.output + usage.cacheRead * prices.cacheRead +
      usage.cacheWrite * prices.cacheWrite) / 1e6,
  );
}

/** In USD; sums of many small costs show no digits that are only an artefact of binary fractions. */
export function addCost(a: number | undefined, b: number): number {
  return rounded((a ?? 0) + b);
}

function rounded(usd: number): number {
  return Math.round(usd * 1e9) / 1e9;
}
