// What a gate is worth against somebody who wants to get around it.
import type { Gate } from "./policy.ts";

export type GateLabel = { readonly label: "enforced" | "advice"; readonly reason: string };

/**
 * `enforced`: what the gate guards cannot be had in any other way than through it. A call can, while there are no boxes: some
 * other program can do the same.
 */
export function gateLabel(gate: Pick<Gate, "before">): GateLabel {
  return gate.before.length === 0 ? { label: "enforced", reason: "nothing but Writ ends a turn well" } : {
    label: "advice",
    reason: "this version has no boxes, so another program could do what the guarded call does",
  };
}
