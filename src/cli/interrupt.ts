// Signals: the first one cancels what runs and lets it end in order, the second one ends the process at once.
import process from "node:process";

export type Interrupt = {
  /** A signal for the next turn; aborted with reason `SIGINT` or `SIGTERM`. */
  next(): AbortSignal;
  /** As if the key had been pressed. */
  press(): void;
  /** What the last signal was, for the exit code. */
  readonly received: "SIGINT" | "SIGTERM" | undefined;
  stop(): void;
};

export function catchInterrupts(onSecond: () => void): Interrupt {
  let controller = new AbortController();
  let received: "SIGINT" | "SIGTERM" | undefined;
  const on = (name: "SIGINT" | "SIGTERM") => {
    if (controller.signal.aborted) return onSecond();
    received = name;
    controller.abort(name);
  };
  const onInt = () => on("SIGINT");
  const onTerm = () => on("SIGTERM");
  process.on("SIGINT", onInt);
  process.on("SIGTERM", onTerm);
  process.on("SIGHUP", onTerm);
  return {
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
