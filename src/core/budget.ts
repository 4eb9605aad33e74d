// How many tokens a text costs, estimated without a tokenizer; calibrated to what providers report for such texts.

const cjk = /[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]/g;
const dense = /[0-9{}[\]()<>"',:;=+\-*/\\|&%$#@!?_.~^`]/g;

/**
 * Estimated tokens of a text. Prose has about 3.6 characters a token; digits and punctuation about 2; a CJK character
 * is 0.9 of a token. Off by up to a fifth either way.
 */
export function estimateTokens(text: string): number {
  if (text.length === 0) return 0;
  const cjkCount = text.match(cjk)?.length ?? 0;
  const denseCount = text.match(dense)?.length ?? 0;
  const rest = text.length - cjkCount;
  // Only punctuation beyond what prose has anyway costs more.
  const extra = Math.max(0, denseCount - rest * 0.12);
  return Math.ceil((rest - extra) / 3.6 + extra / 2 + cjkCount * 0.9);
}

/** Tokens that a request may have, so that the longest answer still fits behind it. */
export function contextRoom(
  model: { readonly contextTokens: number; readonly maxOutputTokens: number },
): number {
  return model.contextTokens - model.maxOutputTokens;
}

/** How estimates compare with what the provider counts, and the estimate that its next count is compared with. */
export type Calibration = {
  /** An estimate times this is what the provider would count. */
  readonly factor: number;
  readonly measured: boolean;
  /** Estimate of the newest request, not corrected; 0 when there is none to compare with. */
  readonly pending: number;
};
export const uncalibrated: Calibration = { factor: 1, measured: false, pending: 0 };

const smallestFactor = 0.75;
const largestFactor = 2.5;
/** What a provider adds to each request by itself weighs too much in a smaller one. */
const leastTokens = 1000;
/** Counts further off than this are no counts of the request: a stand-in, or one without its cached part. */
const believable = 4;

/** After a request whose buckets were reported with the factor of then. */
export function requested(calibration: Calibration, total: number): Calibration {
  return { ...calibration, pending: total / calibration.factor };
}

/**
 * After the provider's count of the tokens of that request. The first count is taken as it is, a later one moves the factor half
 * the way. Bounded, and rounded so that it is the same number wherever a log is replayed.
 */
export function counted(calibration: Calibration, tokens: number): Calibration {
  const { factor, measured, pending } = calibration;
  const seen = tokens / pending;
  const usable = pending >= leastTokens && seen >= 1 / believable && seen <= believable;
  if (!usable) return { ...calibration, pending: 0 };
  const next = measured ? (factor + seen) / 2 : seen;
  const bounded = Math.min(largestFactor, Math.max(smallestFactor, next));
  return { factor: Math.round(bounded * 1000) / 1000, measured: true, pending: 0 };
}

/** An estimate in the provider's tokens. */
export function corrected(tokens: number, calibration: Calibration): number {
  return Math.round(tokens * calibration.factor);
}
