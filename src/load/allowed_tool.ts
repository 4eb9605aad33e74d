// An entry of a skill's allowed_tools as matchers: names of other agents mapped, the specifier read as in a rule.
import type { AllowedTool } from "../core/bound.ts";
import { mapToolName } from "../core/skill.ts";
import { specifierOf } from "../core/tool_names.ts";
import { compileText, matchersOf } from "./policy_matchers.ts";

/** An entry whose specifier cannot be read allows nothing: a damaged bound never widens. */
export function compileAllowedTool(
  declared: string,
  place: { readonly root: string; readonly home: string },
): AllowedTool {
  const { tool, specifier } = mapToolName(declared);
  if (specifier === undefined) return { shown: declared, matchers: { tools: [tool] } };
  const kind = specifierOf(tool);
  if (kind === undefined) return { shown: declared };
  const compiled = compileText(kind, specifier, { ...place, sets: new Map(), risky: [] });
  if ("code" in compiled) return { shown: declared };
  return { shown: declared, matchers: { tools: [tool], ...matchersOf(compiled, undefined) } };
}
