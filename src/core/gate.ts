// Gates: an action is refused until named evidence, and a verdict if one is wanted, is there and fresh.
// A gate proves order and evidence, not judgement.
import { needsNaming } from "./command.ts";
import { isInner, restricts, topParts } from "./covering.ts";
import type { Cause } from "./decision.ts";
import { evidenceMark } from "./evidence.ts";
import type { Facts } from "./facts.ts";
import { type GateState, type Given, isFresh } from "./gate_state.ts";
import type { Gate } from "./policy.ts";
import type { Rule } from "./rule.ts";

/** `why`: what was wrong with what came nearest. */
type MissingEvidence = { readonly kind: "evidence"; readonly rule: Rule; readonly why?: string };
export type Missing =
  | MissingEvidence
  | { readonly kind: "verdict"; readonly gate: Gate }
  /** The gated command is not the only one in its text. */
  | { readonly kind: "compound" };
export type GateBlock = { readonly gate: Gate; readonly missing: readonly Missing[] };

/** As the log, the model and people are told. */
export function showMissing(missing: Missing): string {
  switch (missing.kind) {
    case "evidence":
      return `evidence missing: ${showEvidence(missing)}`;
    case "verdict": {
      const { skill, verdict = [], by, evidence } = missing.gate;
      const maker = by === "fork" ? ", by a fork of the skill" : "";
      const after = evidence.length === 0 ? "" : ", in a reply after the one that asked for the evidence";
      return `verdict missing: complete_skill ${skill} with outcome ${verdict.join(" or ")}${maker}${after}`;
    }
    case "compound":
      return "gate_compound: the gated command must be the only one in its text";
  }
}

/** The pattern, and what was wrong with what came nearest. */
export function showEvidence({ rule, why }: MissingEvidence): string {
  return why === undefined ? rule.text : `${rule.text} (${why})`;
}

/** Gates whose `before` patterns reach this call; as deep as deny rules look. */
export function gatesOf(gates: readonly Gate[], facts: Facts, root: string): readonly Gate[] {
  return gates.filter((gate) =>
    gate.before.some((rule) => facts.subjects.some((s) => restricts(rule, facts, s, root)))
  );
}

/** The gates that refuse this call now, each with what is missing. `tree`: the content of the workspace, where known. */
export function gateBlocks(
  gates: readonly Gate[],
  state: GateState,
  facts: Facts,
  root: string,
  tree?: string,
): readonly GateBlock[] {
  return gatesOf(gates, facts, root).flatMap((gate) => {
    const missing = [...missingFor(gate, state, tree)];
    if (!isAlone(gate, facts, root)) {
      missing.push({ kind: "compound" });
    }
    return missing.length === 0 ? [] : [{ gate, missing }];
  });
}

/** The gates that do not let the turn end now, each with what is missing. */
export function finishBlocks(
  gates: readonly Gate[],
  state: GateState,
  tree: string | undefined,
): readonly GateBlock[] {
  return gates.filter((gate) => gate.finish !== undefined).flatMap((gate) => {
    const missing = missingFor(gate, state, tree);
    return missing.length === 0 ? [] : [{ gate, missing }];
  });
}

/** The first of the met gates on the end of a turn whose verdict is FAIL. */
export function failedFinish(gates: readonly Gate[], state: GateState): Gate | undefined {
  return gates.find((gate) => gate.finish !== undefined && newestVerdict(gate, state)?.outcome === "FAIL");
}

/** Evidence of this gate that is not there or does not count any more. */
export function missingEvidence(gate: Gate, state: GateState, tree?: string): readonly MissingEvidence[] {
  return gate.evidence.flatMap((rule, index): MissingEvidence[] => {
    if (isThere(gate, state, index, tree)) return [];
    const why = whyMissing(gate, state, index, tree);
    return [{ kind: "evidence", rule, ...(why === undefined ? {} : { why }) }];
  });
}

/** The calls on which this gate's evidence rests, in the order of its patterns. */
export function evidenceCalls(gate: Gate, state: GateState): readonly string[] {
  return gate.evidence.flatMap((_, index) => state.marks[evidenceMark(gate, index)]?.call ?? []);
}

/** The votes of the blocking gates. */
export function gateVotes(blocks: readonly GateBlock[]): readonly Cause[] {
  return blocks.map(({ gate, missing }) => ({
    by: "gate",
    effect: "deny",
    gate: gate.id,
    layer: gate.layer,
    at: gate.at,
    missing: missing.map(showMissing),
  }));
}

/** Whether a gated call that started and ended so has used its gates up: it had its effect, or may have had it. */
export function usesUp(outcome: { readonly ok: boolean; readonly unknown?: true }): boolean {
  return outcome.ok || outcome.unknown === true;
}

function missingFor(gate: Gate, state: GateState, tree: string | undefined): readonly Missing[] {
  const missing: Missing[] = [...missingEvidence(gate, state, tree)];
  if (gate.verdict === undefined || gate.skill === undefined) return missing;
  const newest = newestVerdict(gate, state);
  if (
    newest === undefined || !newest.gates.includes(gate.id) || !gate.verdict.includes(newest.outcome) ||
    (gate.by === "fork" && !newest.fork) || !isFresh(gate.id, state, newest, tree)
  ) {
    missing.push({ kind: "verdict", gate });
  }
  return missing;
}

function newestVerdict(gate: Gate, state: GateState): Given | undefined {
  return verdictsOf(gate, state).at(-1);
}

function verdictsOf({ skill = "", verdict }: Gate, state: GateState): readonly Given[] {
  return verdict !== undefined && Object.hasOwn(state.verdicts, skill) ? state.verdicts[skill] ?? [] : [];
}

// A verdict that does not open the gate voids the evidence on which it was based.
function voidedAt(gate: Gate, state: GateState): number {
  const refusals = verdictsOf(gate, state).filter((v) => !gate.verdict?.includes(v.outcome));
  return Math.max(0, ...refusals.map((v) => v.seq));
}

function isThere(gate: Gate, state: GateState, index: number, tree: string | undefined): boolean {
  const mark = state.marks[evidenceMark(gate, index)];
  return mark !== undefined && mark.seq > voidedAt(gate, state) && isFresh(gate.id, state, mark, tree);
}

// What was wrong with what came nearest, so that the next try succeeds.
function whyMissing(
  gate: Gate,
  state: GateState,
  index: number,
  tree: string | undefined,
): string | undefined {
  const name = evidenceMark(gate, index);
  const near = state.nearly[name];
  if (near !== undefined) return `call ${near.call} is none: ${near.why}`;
  const mark = state.marks[name];
  if (mark === undefined) return undefined;
  if (mark.seq <= (state.usedUpTo[gate.id] ?? 0)) return `call ${mark.call} was used up`;
  if (mark.seq <= voidedAt(gate, state)) return `call ${mark.call} was voided by the verdict after it`;
  if (mark.seq <= state.voidUpTo) return `call ${mark.call} was before the session was resumed`;
  return tree === undefined || mark.tree === undefined
    ? `call ${mark.call} is stale: something that may write or execute was started after it`
    : `call ${mark.call} is stale: files, HEAD, branches or tags are not as they were; fetch and commit first, then gather`;
}

// A command that hides nothing and is gated itself may run others (`npx release`); nothing may stand beside it.
function isAlone(gate: Gate, facts: Facts, root: string): boolean {
  const [top, ...others] = topParts(facts);
  if (others.length > 0) return false;
  if (!facts.subjects.some(isInner)) return true;
  // A gate on a skill's tool guards the call as a whole, with all that its fixed command runs.
  const whole = facts.subjects.find((s) => s.kind === "call");
  if (whole !== undefined && gate.before.some((rule) => restricts(rule, facts, whole, root))) return true;
  return top !== undefined && needsNaming(top.part) === undefined &&
    gate.before.some((rule) => restricts(rule, facts, top, root));
}
