// Signals: the first one cancels what runs and lets it end in order, the second one ends the process at once.
import process from "node:process";
import { exitCodes } from "../core/outcome.ts";

export type Interrupt = {
  /** The signal of what runs now; aborted with reason `SIGINT` or `SIGTERM`. */
  readonly signal: AbortSignal;
  /** A new one, for the next turn: what came before it does not count any more. */
  next(): AbortSignal;
  /** As if the key had been pressed. */
  press(): void;
  /** What the last signal was, for the exit code. */
  readonly received: "SIGINT" | "SIGTERM" | undefined;
  stop(): void;
};

/** What was asked was not answered, since the person broke off: nothing is to be concluded from it. */
export class Interrupted extends Error {
  constructor() {
    super("interrupted");
    this.name = "Interrupted";
  }
}

export function catchInterrupts(): Interrupt {
  let controller = new AbortController();
  let received: "SIGINT" | "SIGTERM" | undefined;
  const on = (name: "SIGINT" | "SIGTERM") => {
    if (controller.signal.aborted) {
      process.exit(name === "SIGINT" ? exitCodes.interrupted : exitCodes.terminated);
    }
    received = name;
    controller.abort(name);
  };
  const onInt = () => on("SIGINT");
  const onTerm = () => on("SIGTERM");
  process.on("SIGINT", onInt);
  process.on("SIGTERM", onTerm);
  process.on("SIGHUP", onTerm);
  return {
    get signal() {
      return controller.signal;
    },
    next() {
      controller = new AbortController();
      received = undefined;
      return controller.signal;
    },
    press: onInt,
    get received() {
      return received;
    },
    stop() {
      process.off("SIGINT", onInt);
      process.off("SIGTERM", onTerm);
      process.off("SIGHUP", onTerm);
    },
  };
}
