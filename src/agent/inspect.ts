// A call and its tool → the facts that are decided on.
import type { Effect } from "../core/decision.ts";
import type { Facts, HostFact, Mode } from "../core/facts.ts";
import type { Args } from "../core/message.ts";
import { messageOf } from "../core/thrown.ts";
import { identityOf } from "./offered.ts";
import type { Inspection, Network, Place, Tool } from "./ports.ts";

export type CallSite = {
  readonly place: Place;
  readonly mode: Mode;
  /** `skill:<name>` of the active skills, in activation order. */
  readonly sourcedBy: readonly string[];
};
/** Decides on facts, as it will be done for the call itself. */
export type EffectOf = (facts: Facts) => Effect;

/**
 * The facts with all that the outside has to tell. A name whose addresses cannot change the answer is not looked up: that
 * alone would tell others of the call. `args` must fit the tool's schema already.
 */
export async function inspectCall(
  tool: Tool,
  args: Args,
  site: CallSite & { readonly signal: AbortSignal; readonly effectOf: EffectOf },
): Promise<Facts> {
  const { network } = site.place;
  try {
    const place = network === undefined
      ? site.place
      : { ...site.place, network: discreet(network, tool.name, site) };
    await tool.lookUp?.(args, place, site.signal);
  } catch (error) {
    return factsOf(tool, args, site, notInspected(tool, error));
  }
  return inspectOffline(tool, args, site);
}

/** The facts as the arguments alone show them. A tool that fails while it looks is not run: that is a deny, not a crash. */
export function inspectOffline(tool: Tool, args: Args, site: CallSite): Facts {
  try {
    return factsOf(tool, args, site, tool.inspect(args, site.place));
  } catch (error) {
    return factsOf(tool, args, site, notInspected(tool, error));
  }
}

/** A host that no argument names, judged like the one of a call of its own. */
export function hostFacts(tool: string, host: HostFact, site: Omit<CallSite, "place">): Facts {
  return unnamed(tool, { url: host.written }, { risk: "network", subjects: [{ kind: "host", host }] }, site);
}

/** A file that no argument names, judged as read_file would read it. `path`: where it really is, in the workspace. */
export function fileFacts(path: string, site: Omit<CallSite, "place">): Facts {
  const fact = { written: path, absolute: path, resolved: path, inWorkspace: true };
  const subject = { kind: "path", tool: "read_file", operand: true, path: fact } as const;
  return unnamed("read_file", { path }, { risk: "read", subjects: [subject] }, site);
}

function unnamed(
  tool: string,
  args: Args,
  seen: Pick<Facts, "risk" | "subjects">,
  { mode, sourcedBy }: Omit<CallSite, "place">,
): Facts {
  return { tool, args, ...seen, box: "default", sourcedBy, mode, errors: [] };
}

function factsOf(tool: Tool, args: Args, site: CallSite, inspection: Inspection): Facts {
  return {
    tool: identityOf(tool),
    args,
    risk: inspection.risk,
    subjects: inspection.subjects,
    box: inspection.box ?? "default",
    sourcedBy: site.sourcedBy,
    mode: site.mode,
    errors: inspection.errors ?? [],
  };
}

function notInspected(tool: Tool, error: unknown): Inspection {
  const message = `${tool.name} could not be inspected: ${messageOf(error)}`;
  return { risk: "execute", subjects: [{ kind: "call" }], errors: [{ code: "inspect_failed", message }] };
}

function discreet(network: Network, tool: string, site: CallSite & { readonly effectOf: EffectOf }): Network {
  const open = (host: HostFact) => {
    const effect = site.effectOf(hostFacts(tool, host, site));
    return effect === "allow" || (effect === "ask" && site.mode === "interactive");
  };
  return {
    ...network,
    addresses: async (host, signal) =>
      open({ ...host, private: false }) || open({ ...host, private: true })
        ? await network.addresses(host, signal)
        : {
          ok: false,
          code: "unresolved_host",
          message: `the name \`${host.host}\` was not looked up: wherever it leads, the call is not allowed`,
        },
  };
}
