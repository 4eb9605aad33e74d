// Lines from the person at the terminal: with history, a pasted block as one text, and nothing typed ahead of a question.
import { createInterface, type Interface } from "node:readline";
import process from "node:process";

export type Terminal = {
  /** One text, or undefined at end of input. Rejects when `signal` aborts. Ctrl-C calls `onInterrupt`. */
  ask(prompt: string, signal?: AbortSignal): Promise<string | undefined>;
  /** What was typed before now is not an answer to what comes next. */
  discardTyped(): Promise<void>;
  readonly history: readonly string[];
  close(): void;
};

/** Lines that come within this time of each other were pasted together. */
const pasteMs = 25;

export function openTerminal(options: {
  readonly history: readonly string[];
  readonly onInterrupt: () => void;
}): Terminal {
  const reader: Interface = createInterface({
    input: process.stdin,
    output: process.stderr,
    terminal: process.stdin.isTTY === true && process.stderr.isTTY === true,
    history: [...options.history].reverse(),
    historySize: 500,
  });
  const history = [...options.history];
  let waiting: ((text: string | undefined) => void) | undefined;
  let pending: string[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  let ended = false;
  const deliver = () => {
    timer = undefined;
    // A block without a last line break goes on in the line that is being edited: it is whole with the next Enter.
    if (waiting === undefined || pending.length === 0 || (!ended && reader.line !== "")) return;
    const text = pending.join("\n");
    pending = [];
    const give = waiting;
    waiting = undefined;
    give(text);
  };
  reader.on("line", (text) => {
    pending.push(text);
    clearTimeout(timer);
    timer = setTimeout(deliver, pasteMs);
  });
  reader.on("close", () => {
    ended = true;
    clearTimeout(timer);
    deliver();
    waiting?.(undefined);
    waiting = undefined;
  });
  reader.on("SIGINT", options.onInterrupt);
  return {
    history,
    ask(prompt, signal) {
      return new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        if (ended && pending.length === 0) return resolve(undefined);
        const stop = () => {
          waiting = undefined;
          process.stderr.write("\n");
          reject(signal?.reason);
        };
        signal?.addEventListener("abort", stop, { once: true });
        waiting = (text) => {
          signal?.removeEventListener("abort", stop);
          if (text !== undefined && text.trim() !== "") history.push(text);
          resolve(text);
        };
        reader.setPrompt(prompt);
        reader.prompt();
        if (pending.length > 0) timer ??= setTimeout(deliver, pasteMs);
      });
    },
    async discardTyped() {
      await new Promise((resolve) => setTimeout(resolve, pasteMs * 2));
      clearTimeout(timer);
      timer = undefined;
      pending = [];
      // Half a line as well: with the Enter that is meant for the question it would be an answer.
      if (reader.line === "") return;
      reader.setPrompt("");
      reader.write(null, { ctrl: true, name: "e" });
      reader.write(null, { ctrl: true, name: "u" });
    },
    close: () => reader.close(),
  };
}
