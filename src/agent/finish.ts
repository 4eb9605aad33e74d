// Gates on the end of a turn: it is sent back while something is missing, a bounded number of times.
import type { Agent } from "./agent.ts";
import { openBlockedGates } from "./gate_watch.ts";
import type { Stop } from "./stop.ts";
import { failedFinish, finishBlocks, showMissing } from "../core/gate.ts";

/** Asked each time the model has nothing more to do: how the turn ends, or undefined when it was sent back. */
export type FinishGuard = () => Promise<Stop | undefined>;

export function finishGuard(agent: Agent, signal: AbortSignal): FinishGuard {
  // The end of a fork is not that of the turn.
  const gates = agent.parent === undefined
    ? agent.policy.gates.filter((gate) => gate.finish !== undefined)
    : [];
  let sentBack = 0;
  return async () => {
    if (gates.length === 0) return { stop: "final" };
    const tree = await agent.evidence.content(signal);
    const { gates: state } = agent.recorder.state;
    const blocks = finishBlocks(gates, state, tree);
    if (blocks.length === 0) {
      const failed = failedFinish(gates, state);
      return {
        stop: "final",
        gates: gates.filter((gate) => gate.reuse !== true).map((gate) => gate.id),
        ...(failed?.skill === undefined
          ? {}
          : { failed: `the verdict of \`${failed.skill}\` is FAIL (gate \`${failed.id}\`)` }),
      };
    }
    const spent = blocks.find(({ gate }) => sentBack >= (gate.finish?.retries ?? 0));
    if (spent === undefined) {
      sentBack++;
      await openBlockedGates(agent, undefined, blocks);
      return undefined;
    }
    return {
      stop: "gate_unmet",
      message: `gate \`${spent.gate.id}\` was not met: ${spent.missing.map(showMissing).join("; ")}`,
      hint: "the log says what was tried; `writ help gates` says what counts",
    };
  };
}
