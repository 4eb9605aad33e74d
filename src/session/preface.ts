// What stands before a conversation and stays the same from request to request: who the model is, the list of skills, and
// the instruction files.
import { join } from "node:path";
import type { Preface, PrefaceInput } from "../agent/agent.ts";
import { type Listing, listingOptions, renderListing, shownBy } from "../core/listing.ts";
import type { Policy } from "../core/policy.ts";
import { identity } from "../core/prompt.ts";
import type { SessionState } from "../core/session.ts";
import { leftOutTokens, readInstructions } from "../load/instructions.ts";
import { isAsSeen } from "../load/trust.ts";
import type { LoadedCatalog } from "./catalog.ts";
import type { Settings } from "./settings.ts";

type Parts = {
  readonly settings: Pick<Settings, "policy" | "trusted" | "trustedContent" | "cwd">;
  readonly catalog: LoadedCatalog;
  /** For what was never an event. */
  redact(text: string): string;
};

/** As files and catalog are now. */
export function makePreface(
  { settings, catalog, redact }: Parts,
  { recent, contextTokens, before }: PrefaceInput,
): Preface {
  const { policy, trustedContent } = settings;
  const { skills } = policy;
  const listed = listing(policy, catalog, recent);
  const whole = () => listing(policy, catalog, recent, Infinity);
  const shortened = skills.modelChoice && listed.omitted.length + listed.shortened.length > 0;
  const read = instructionsOf(settings, contextTokens);
  return {
    shown: shownBy(listed),
    stable: {
      identity,
      catalog: skills.modelChoice ? redact(listed.text) : "",
      instructions: read.flatMap(({ path, text }) => {
        // Only what was looked at is trusted; a file that became another one since waits until somebody is asked again.
        if (trustedContent === undefined || isAsSeen(trustedContent, join(policy.root, path))) {
          return [{ path, text: redact(text) }];
        }
        return before?.stable.instructions.filter((i) => i.path === path) ?? [];
      }),
      cut: {
        instructions: leftOutTokens(read),
        catalog: shortened ? Math.max(0, whole().tokens - listed.tokens) : 0,
      },
    },
  };
}

function instructionsOf({ policy, trusted, cwd }: Parts["settings"], contextTokens: number) {
  const { root, instructions } = policy;
  return trusted ? readInstructions(root, cwd, instructions, contextTokens) : [];
}

/** The catalog as the model sees it, and what had no room in it. */
export function listing(
  policy: Policy,
  { catalog }: LoadedCatalog,
  recent: SessionState["recent"] = {},
  budgetTokens = policy.skills.listingTokens,
): Listing {
  return renderListing(catalog.items, { ...listingOptions(policy, recent), budgetTokens });
}
