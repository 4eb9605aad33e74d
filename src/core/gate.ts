// Gates: an action is refused until named evidence, and a verdict if one is wanted, is there and fresh.
// A gate proves order and evidence, not judgement.
import { needsNaming } from "./command.ts";
import { isInner, isOperand, restricts, topParts } from "./covering.ts";
import type { Cause } from "./decision.ts";
import type { Facts } from "./facts.ts";
import { type GateState, staleFloor } from "./gate_state.ts";
import type { Gate } from "./policy.ts";
import { matchesSubject, type Rule } from "./rule.ts";

export type GateBlock = { readonly gate: Gate; readonly missing: readonly string[] };

function evidenceMark(gate: Gate, index: number): string {
  return `${gate.id}#${index}`;
}

/** Marks that this call would leave if it completes ok; matched as narrowly as an allow rule. */
export function evidenceMarks(gates: readonly Gate[], facts: Facts, root: string): readonly string[] {
  return gates.flatMap((gate) =>
    gate.evidence.flatMap((rule, index) => coversWhole(rule, facts, root) ? [evidenceMark(gate, index)] : [])
  );
}

/** Gates whose `before` patterns reach this call; as deep as deny rules look. */
export function gatesOf(gates: readonly Gate[], facts: Facts, root: string): readonly Gate[] {
  return gates.filter((gate) =>
    gate.before.some((rule) => facts.subjects.some((s) => restricts(rule, facts, s, root)))
  );
}

/** The gates that refuse this call now, each with what is missing. */
export function gateBlocks(
  gates: readonly Gate[],
  state: GateState,
  facts: Facts,
  root: string,
): readonly GateBlock[] {
  return gatesOf(gates, facts, root).flatMap((gate) => {
    const missing = missingFor(gate, state);
    if (!isAlone(gate, facts, root)) {
      missing.push("gate_compound: the gated command must be the only one in its text");
    }
    return missing.length === 0 ? [] : [{ gate, missing }];
  });
}

/** Evidence of this gate that is not there or no longer fresh, as rule texts. */
export function missingEvidence(gate: Gate, state: GateState): readonly Rule[] {
  const floor = evidenceFloor(gate, state);
  return gate.evidence.filter((_, index) => (state.marks[evidenceMark(gate, index)]?.seq ?? 0) <= floor);
}

/** The votes of the blocking gates. */
export function gateVotes(blocks: readonly GateBlock[]): readonly Cause[] {
  return blocks.map(({ gate, missing }) => ({
    by: "gate",
    effect: "deny",
    gate: gate.id,
    layer: gate.layer,
    at: gate.at,
    missing,
  }));
}

function missingFor(gate: Gate, state: GateState): string[] {
  const missing = missingEvidence(gate, state).map((rule) => `evidence missing: ${rule.text}`);
  if (gate.verdict === undefined || gate.skill === undefined) return missing;
  const newest = (state.verdicts[gate.skill] ?? []).at(-1);
  const fresh = newest !== undefined &&
    newest.seq > Math.max(staleFloor(gate.id, state), state.usedUpTo[gate.id] ?? 0);
  if (!fresh || !gate.verdict.includes(newest.outcome)) {
    const wanted = gate.verdict.join(" or ");
    missing.push(`verdict missing: complete_skill ${gate.skill} with outcome ${wanted}, after the evidence`);
  }
  return missing;
}

// A verdict that does not open the gate voids the evidence on which it was based.
function evidenceFloor(gate: Gate, state: GateState): number {
  const verdicts = gate.skill === undefined || gate.verdict === undefined
    ? []
    : state.verdicts[gate.skill] ?? [];
  const refusals = verdicts.filter((v) => !gate.verdict?.includes(v.outcome)).map((v) => v.seq);
  return Math.max(staleFloor(gate.id, state), state.usedUpTo[gate.id] ?? 0, ...refusals);
}

// A command that hides nothing and is gated itself may run others (`npx release`); nothing may stand beside it.
function isAlone(gate: Gate, facts: Facts, root: string): boolean {
  const tops = topParts(facts);
  if (tops.length > 1) return false;
  if (!facts.subjects.some(isInner)) return true;
  return tops.length === 1 &&
    tops.every((top) =>
      needsNaming(top.part) === undefined && gate.before.some((rule) => restricts(rule, facts, top, root))
    );
}

// One command of which nothing is hidden and whose exit status is that of the text.
function coversWhole(rule: Rule, facts: Facts, root: string): boolean {
  const tops = topParts(facts);
  if (tops.length > 1 || tops.some((top) => top.part.statusHidden === true)) return false;
  if (facts.subjects.some(isInner) && tops.every((top) => needsNaming(top.part) !== undefined)) return false;
  const judged = facts.subjects.filter((s) => !isOperand(s) && !isInner(s));
  return judged.length > 0 && judged.every((s) => matchesSubject(rule, facts, s, "allow", root));
}
