// Standard output carries results, standard error everything else. A reader that went away ends the output, not in a trace.
import process from "node:process";
import colors from "picocolors";
import { escapeTerminal } from "../core/text.ts";
import { codeOf } from "../core/thrown.ts";

type Paint = ReturnType<typeof colors.createColors>;

export type Output = {
  /** A result: to stdout as it is. */
  result(text: string): void;
  /** A line for people: to stderr. */
  note(line: string): void;
  /** Text that is not ours, safe to print: control characters become visible. */
  readonly safe: (text: string) => string;
  /** Colours of notes. */
  readonly paint: Paint;
  /** Colours of results, which may go elsewhere than notes. */
  readonly paintResult: Paint;
  /** Waits until everything is written. Gives the code of the fault that kept results from being written, if any. */
  flush(): Promise<string | undefined>;
};

export function createOutput(
  color: { readonly results: boolean; readonly notes: boolean },
): Output {
  const results = openSink(process.stdout);
  const notes = openSink(process.stderr);
  return {
    result: results.write,
    note: (line) => notes.write(`${line}\n`),
    safe: escapeTerminal,
    paint: colors.createColors(color.notes),
    paintResult: colors.createColors(color.results),
    async flush() {
      await results.written();
      await notes.written();
      return results.fault();
    },
  };
}

type Sink = {
  write(text: string): void;
  /** Resolves when nothing is left to write. */
  written(): Promise<void>;
  /** What made writing stop, other than a reader that went away. */
  fault(): string | undefined;
};

// Only the callback of a write says that it is done: Bun's `writableLength` is 0 while a pipe is still full.
function openSink(stream: NodeJS.WriteStream): Sink {
  let pending = 0;
  let ended = false;
  let fault: string | undefined;
  let waiting: (() => void)[] = [];
  const settle = (error: unknown) => {
    if (error instanceof Error) {
      ended = true;
      const code = codeOf(error) ?? error.message;
      if (code !== "EPIPE") fault ??= code;
    }
    if (pending > 0 && !ended) return;
    const told = waiting;
    waiting = [];
    for (const tell of told) tell();
  };
  stream.on("error", settle);
  return {
    write(text) {
      if (ended || text === "") return;
      pending++;
      try {
        stream.write(text, (error) => {
          pending--;
          settle(error);
        });
      } catch (error) {
        pending--;
        settle(error);
      }
    },
    written: () =>
      pending === 0 || ended ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve)),
    fault: () => fault,
  };
}
