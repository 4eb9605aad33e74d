// A call and its tool → the facts that are decided on.
import type { Facts, Mode } from "../core/facts.ts";
import type { Args } from "../core/message.ts";
import type { Inspection, Place, Tool } from "./ports.ts";

export type CallSite = {
  readonly place: Place;
  readonly mode: Mode;
  /** `skill:<name>` of the active skills, in activation order. */
  readonly sourcedBy: readonly string[];
};

/** `args` must fit the tool's schema already. A tool that fails while it looks is not run: that is a deny, not a crash. */
export function inspectCall(tool: Tool, args: Args, site: CallSite): Facts {
  const inspection = lookAt(tool, args, site.place);
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

function lookAt(tool: Tool, args: Args, place: Place): Inspection {
  try {
    return tool.inspect(args, place);
  } catch (error) {
    const message = `${tool.name} could not be inspected: ${error instanceof Error ? error.message : error}`;
    return { risk: "execute", subjects: [{ kind: "call" }], errors: [{ code: "inspect_failed", message }] };
  }
}
