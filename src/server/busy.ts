// What becomes of a turn that is asked for, by what runs already.
import type { NewTurn, RefusalCode } from "./host.ts";

export type Load = {
  /** This session has a turn that runs. */
  readonly running: boolean;
  /** Turns of this session that wait. */
  readonly queued: number;
  readonly mostQueued: number;
  /** Turns that run, of all sessions. */
  readonly turns: number;
  readonly mostTurns: number;
  /** A turn of another session runs in the same workspace. */
  readonly workspaceBusy: boolean;
};
export type BusyDecision =
  | { readonly kind: "start" | "queue" | "interrupt" }
  | { readonly kind: "refuse"; readonly code: RefusalCode };

/** `interrupt` ends what runs and comes before all that waits. Only what is queued waits for room. */
export function decideBusy(onBusy: NewTurn["onBusy"], load: Load): BusyDecision {
  const busy = load.running || load.queued > 0;
  if (onBusy === "interrupt" && load.running) return { kind: "interrupt" };
  if (busy && onBusy === "reject") return { kind: "refuse", code: "session-busy" };
  if (onBusy === "queue" && (busy || hasNoRoom(load))) {
    return load.queued >= load.mostQueued ? { kind: "refuse", code: "queue-full" } : { kind: "queue" };
  }
  if (load.workspaceBusy) return { kind: "refuse", code: "workspace-busy" };
  return load.turns >= load.mostTurns ? { kind: "refuse", code: "too-many-turns" } : { kind: "start" };
}

/** Whether the next one that waits can begin. */
export function hasNoRoom({ turns, mostTurns, workspaceBusy }: Load): boolean {
  return workspaceBusy || turns >= mostTurns;
}
