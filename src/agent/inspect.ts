// A call and its tool → the facts that are decided on.
import type { Facts, Mode } from "../core/facts.ts";
import type { Args } from "../core/message.ts";
import type { Place, Tool } from "./ports.ts";

export type CallSite = {
  readonly place: Place;
  readonly mode: Mode;
  /** `skill:<name>` of the active skills, in activation order. */
  readonly sourcedBy: readonly string[];
};

/** `args` must fit the tool's schema already. */
export function inspectCall(tool: Tool, args: Args, site: CallSite): Facts {
  const inspection = tool.inspect(args, site.place);
  return {
    tool: tool.name,
    args,
    risk: inspection.risk,
    subjects: inspection.subjects,
    box: inspection.box ?? "default",
    sourcedBy: site.sourcedBy,
    mode: site.mode,
    errors: inspection.errors ?? [],
  };
}
