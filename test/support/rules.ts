// Rules as a policy file has them, for tests of what is done with rules.
import type { Effect, LayerName } from "../../src/core/decision.ts";
import type { Layer } from "../../src/core/policy.ts";
import { showProblem } from "../../src/core/problem.ts";
import type { Rule } from "../../src/core/rule.ts";
import { compileRule, type RuleContext } from "../../src/load/policy_rules.ts";
import type { RuleEntry } from "../../src/load/policy_schema.ts";

export const ruleContext: RuleContext = {
  root: "/ws",
  home: "/home/u",
  sets: new Map(),
  risky: [],
  serverTools: [],
  resolve: (path) => path,
};

/** `line` is where it stands, and names it. Throws what is wrong with it. */
export function ruleOf(
  entry: RuleEntry,
  effect: Effect = "allow",
  line = 1,
  layer: Exclude<LayerName, "builtin"> = "user",
  list: "rules" | "delegate" = "rules",
): Rule {
  const made = compileRule(entry, {
    layer,
    effect,
    list,
    defaultId: `${layer}.${effect}[${line}]`,
    at: () => ({ file: `/${layer}.yaml`, line, col: 3 }),
  }, ruleContext);
  if (!made.ok) throw new Error(made.problems.map(showProblem).join("\n"));
  return made.value.rule;
}

export type Entries = { readonly [E in Effect]?: readonly RuleEntry[] };

/** Rules stand on lines of their own: deny from 1, ask from 11, allow from 21, delegate from 31. */
export function layerOf(
  name: Exclude<LayerName, "builtin">,
  entries: Entries,
  more: { readonly defaults?: Layer["defaults"]; readonly delegate?: readonly RuleEntry[] } = {},
): Layer {
  const list = (effect: Effect, first: number) =>
    (entries[effect] ?? []).map((entry, i) => ruleOf(entry, effect, first + i, name));
  return {
    name,
    rules: [...list("deny", 1), ...list("ask", 11), ...list("allow", 21)],
    defaults: more.defaults ?? {},
    delegates: (more.delegate ?? []).map((entry, i) => ruleOf(entry, "allow", 31 + i, name, "delegate")),
  };
}
