// Calls to decide again: those that a session's log holds, with what stood beside them, and the examples of rules.
import { emptySession, reduce } from "../core/session.ts";
import type { Event } from "../core/event.ts";
import { emptyGateState, type GateState } from "../core/gate_state.ts";
import type { Mode } from "../core/facts.ts";
import type { Args } from "../core/message.ts";
import type { StandingSkill } from "../agent/standing.ts";
import { mainArgument, type Matcher, specifierOf } from "../core/tool_names.ts";
import { wildcard } from "../core/text.ts";
import type { Rule } from "../core/rule.ts";
import type { RuleExample } from "../load/policy_rules.ts";
import { showPosition } from "../core/problem.ts";
import { builtinTools } from "../tools/registry.ts";

export type PastCall = {
  readonly tool: string;
  readonly args: Args;
  readonly mode: Mode;
  /** Skills that were active, and what the gates had seen. */
  readonly active: readonly StandingSkill[];
  readonly gates: GateState;
  /** Where the call comes from, for people. */
  readonly from: string;
};

/** Every call that was decided, in order. What redaction has taken out of its arguments stays out. */
export function recordedCalls(events: readonly Event[]): readonly PastCall[] {
  const args = new Map<string, Args>();
  const calls: PastCall[] = [];
  let state = emptySession;
  for (const event of events) {
    if (event.type === "model.tool_call_requested") args.set(event.data.call, event.data.args);
    if (event.type === "permission.requested") {
      calls.push({
        tool: event.data.tool,
        args: args.get(event.data.call) ?? {},
        mode: "interactive",
        active: state.active,
        gates: state.gates,
        from: `session ${event.session}, event ${event.seq}`,
      });
    }
    state = reduce(state, event);
  }
  return calls;
}

/** The calls that the examples stand for, each once: the text as the main argument of each tool that the rule is about. */
export function exampleCalls(examples: readonly RuleExample[]): readonly PastCall[] {
  const calls = new Map<string, PastCall>();
  for (const { rule, text, at, want } of examples) {
    const mode = rule.mode ?? "interactive";
    for (const { name: tool } of builtinTools.filter((t) => isAbout(rule, t.name))) {
      const name = mainArgument(tool);
      const key = JSON.stringify([tool, text, mode]);
      if (name === undefined || calls.has(key)) continue;
      const from = `${want} at ${showPosition(at)}`;
      calls.set(key, { tool, args: { [name]: text }, mode, active: [], gates: emptyGateState, from });
    }
  }
  return [...calls.values()];
}

function isAbout(rule: Rule, tool: string): boolean {
  if (!rule.tools.some((glob) => wildcard(glob, tool))) return false;
  const matchers: readonly (readonly [Matcher, unknown])[] = [
    ["command", rule.command],
    ["path", rule.path],
    ["host", rule.host],
    ["skill", rule.skill],
  ];
  const kind = matchers.find(([, value]) => value !== undefined)?.[0];
  return kind === undefined || kind === specifierOf(tool);
}
