// One call, judged with the parts that the loop uses: the tool's own look, the decision, what is recorded, and what the model
// is told. Only names are not looked up.
import { inspectOffline } from "../../src/agent/inspect.ts";
import { decide } from "../../src/core/decide.ts";
import type { Verdict } from "../../src/core/decision.ts";
import { explain, refusalText } from "../../src/core/explain.ts";
import type { Facts } from "../../src/core/facts.ts";
import type { Args } from "../../src/core/message.ts";
import { nearMisses } from "../../src/core/near_miss.ts";
import type { Layer } from "../../src/core/policy.ts";
import { builtinTools } from "../../src/tools/registry.ts";

export type Judged = { readonly facts: Facts; readonly verdict: Verdict; readonly told: string };

export function judgeAsLoop(
  name: string,
  args: Args,
  { root, layers }: { readonly root: string; readonly layers: readonly Layer[] },
): Judged {
  const tool = builtinTools.find((t) => t.name === name);
  if (tool === undefined) throw new Error(`no tool ${name}`);
  const place = { root, home: `${root}/home`, protectedBy: () => undefined };
  const facts = inspectOffline(tool, args, { place, mode: "unattended", sourcedBy: [] });
  const standing = { root, active: [], bounds: [], blocks: [] };
  const verdict = decide(layers, facts, standing);
  const near = nearMisses({ layers, facts, standing, home: place.home });
  const told = refusalText(explain(facts, verdict), { unattended: true, allowed: [], nearMisses: near });
  return { facts, verdict, told };
}
