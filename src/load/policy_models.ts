// Models that may be chosen, and what they cost.
import { ownModel } from "../core/model_choice.ts";
import type { Limits, ModelChoice, ModelSettings } from "../core/policy.ts";
import type { Prices } from "../core/price.ts";
import type { Position, Problem } from "../core/problem.ts";
import { mapOf, perLayer, type Settings } from "./policy_settings.ts";

type WrittenPrices = {
  readonly input: number;
  readonly output: number;
  readonly cache_read: number;
  readonly cache_write: number;
};

export function pricesOf(written: WrittenPrices | undefined): { readonly prices?: Prices } {
  if (written === undefined) return {};
  const { input, output, cache_read: cacheRead, cache_write: cacheWrite } = written;
  return { prices: { input, output, cacheRead, cacheWrite } };
}

/** Of one name the upper layer's, whole: prices of one model do not go with another. */
export function mergeChoices(
  settings: Settings,
  maxOutputTokens: number,
): { readonly choices?: NonNullable<ModelSettings["choices"]> } {
  const written = mapOf(settings, "model.choices");
  if (written.size === 0) return {};
  const choices: { [name: string]: ModelChoice } = {};
  for (const [name, { value, at }] of written) {
    const { name: model, prices, context_tokens: contextTokens } = value;
    const fault = choiceFault(name, contextTokens, maxOutputTokens);
    if (fault !== undefined) settings.problems.push({ code: "wrong-value", severity: "error", at, ...fault });
    choices[name] = {
      name: model,
      ...pricesOf(prices),
      ...(contextTokens === undefined ? {} : { contextTokens }),
    };
  }
  return { choices };
}

function choiceFault(
  name: string,
  contextTokens: number | undefined,
  maxOutputTokens: number,
): Pick<Problem, "message" | "hint"> | undefined {
  if (name === ownModel) {
    return {
      message: `no choice can be named \`${ownModel}\`: that is \`model.name\` itself`,
      hint: "give it another name",
    };
  }
  if (contextTokens === undefined || contextTokens > maxOutputTokens) return undefined;
  return {
    message:
      `\`model.max_output_tokens\` (${maxOutputTokens}) leaves nothing of the \`context_tokens\` of \`${name}\` (${contextTokens})`,
    hint: "raise the one or lower the other",
  };
}

/** A limit on what is spent holds only where the price of every model that may answer is known. */
export function unpriced(settings: Settings, model: ModelSettings, limits: Limits): void {
  const at = perLayer(settings, "limits.cost_usd")[0]?.at;
  if (limits.costUsd === undefined || at === undefined) return;
  const missing = [
    ...(model.prices === undefined ? ["`model.prices`"] : []),
    ...Object.entries(model.choices ?? {}).filter(([, c]) => c.prices === undefined)
      .map(([name]) => `\`model.choices.${name}.prices\``),
  ];
  if (missing.length === 0) return;
  settings.problems.push(noPrices(missing, at));
}

function noPrices(missing: readonly string[], at: Position): Problem {
  return {
    code: "prices-missing",
    severity: "error",
    message: `\`limits.cost_usd\` needs ${missing.join(" and ")}, which ${
      missing.length === 1 ? "is" : "are"
    } not set`,
    at,
    hint: "give USD per million tokens: {input, output, cache_read, cache_write}",
  };
}
