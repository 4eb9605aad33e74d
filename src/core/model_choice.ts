// Which model answers: the policy's own, or one of the choices that it names. Nothing else can be chosen.
import type { Json } from "./message.ts";
import type { ModelChoice, ModelSettings } from "./policy.ts";
import { canonicalJson } from "./text.ts";

/** Stands for the policy's own model; no choice may bear the name. */
export const ownModel = "default";
/** What skills of other agents write for: the model of the session. */
const asSession = "inherit";

/** The names that may be chosen: `default`, then the choices as the policy lists them. */
export function choiceNames(model: ModelSettings): readonly string[] {
  return [ownModel, ...Object.keys(model.choices ?? {})];
}

/**
 * The settings with another model in force: a choice, `default`, or the exact name of the policy's own model. Undefined
 * when it is none of these. Prices are those of the choice alone; a context size that it does not give is the policy's.
 */
export function chooseModel(model: ModelSettings, name: string): ModelSettings | undefined {
  const own = model.own ?? choiceOf(model);
  const choice = name === ownModel || name === own.name ? own : entryOf(model.choices, name);
  if (choice === undefined) return undefined;
  const { prices: _, ...rest } = model;
  return {
    ...rest,
    name: choice.name,
    contextTokens: choice.contextTokens ?? own.contextTokens ?? model.contextTokens,
    ...(choice.prices === undefined ? {} : { prices: choice.prices }),
    own,
  };
}

/** Whether the same client serves both: only which model, its size and its prices differ. */
export function sameReach(a: ModelSettings, b: ModelSettings): boolean {
  const reach = ({ name: _n, own: _o, prices: _p, choices: _c, contextTokens: _t, ...rest }: ModelSettings) =>
    canonicalJson(rest as unknown as Json);
  return reach(a) === reach(b);
}

/** What a skill asks for, as a name that can be chosen; `unknown` when there is no such choice. */
export function skillModel(
  model: ModelSettings,
  declared: string | undefined,
): { readonly name?: string; readonly unknown?: true } {
  if (declared === undefined || declared === asSession) return {};
  return chooseModel(model, declared) === undefined ? { unknown: true } : { name: declared };
}

/** The model of the next request: that of the skill that was loaded last among those that ask for one. */
export function modelInForce(
  model: ModelSettings,
  active: readonly { readonly model?: string; readonly forced: boolean }[],
): ModelSettings {
  // A skill that is in every request would choose for the whole session; that is for the policy to do.
  const asking = active.findLast((s) => s.model !== undefined && !s.forced);
  return asking?.model === undefined ? model : chooseModel(model, asking.model) ?? model;
}

function choiceOf({ name, contextTokens, prices }: ModelSettings): ModelChoice {
  return { name, contextTokens, ...(prices === undefined ? {} : { prices }) };
}

function entryOf(choices: ModelSettings["choices"], name: string): ModelChoice | undefined {
  return choices !== undefined && Object.hasOwn(choices, name) ? choices[name] : undefined;
}
