// The texts that stand before a conversation and stay the same from request to request.
import type { StableText } from "../core/context.ts";
import type { Listing } from "../core/listing.ts";
import { identity } from "../core/prompt.ts";
import { leftOutTokens, readInstructions } from "../load/instructions.ts";
import type { Settings } from "./settings.ts";

/** `listed` is within the budget, `whole` gives the listing without one; `redact` for what was never an event. */
export function stableText(
  { policy, trusted, cwd }: Pick<Settings, "policy" | "trusted" | "cwd">,
  listed: Listing,
  whole: () => Listing,
  redact: (text: string) => string,
): StableText {
  const { root, instructions, model, skills } = policy;
  const read = trusted ? readInstructions(root, cwd, instructions, model.contextTokens) : [];
  const shortened = skills.modelChoice && listed.omitted.length + listed.shortened.length > 0;
  return {
    identity,
    catalog: skills.modelChoice ? redact(listed.text) : "",
    instructions: read.map(({ path, text }) => ({ path, text: redact(text) })),
    cut: {
      instructions: leftOutTokens(read),
      catalog: shortened ? Math.max(0, whole().tokens - listed.tokens) : 0,
    },
  };
}
