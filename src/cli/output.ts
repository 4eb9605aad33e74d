// Standard output carries results, standard error everything else. A reader that went away ends the output, not in a trace.
import process from "node:process";
import colors from "picocolors";
import { escapeTerminal } from "../core/text.ts";

export type Output = {
  /** A result: to stdout as it is. */
  result(text: string): void;
  /** A line for people: to stderr. */
  note(line: string): void;
  /** Text that is not ours, safe to print: control characters become visible. */
  readonly safe: (text: string) => string;
  readonly paint: ReturnType<typeof colors.createColors>;
  /** Waits until everything is written. */
  flush(): Promise<void>;
};

export function createOutput(options: { readonly color: boolean }): Output {
  let closed = false;
  const onError = (error: Error) => {
    if ("code" in error && error.code === "EPIPE") closed = true;
    else throw error;
  };
  process.stdout.on("error", onError);
  process.stderr.on("error", onError);
  const write = (stream: NodeJS.WriteStream, text: string) => {
    if (!closed && text !== "") stream.write(text);
  };
  return {
    result: (text) => write(process.stdout, text),
    note: (line) => write(process.stderr, `${line}\n`),
    safe: escapeTerminal,
    paint: colors.createColors(options.color),
    flush: async () => {
      await Promise.all([drained(process.stdout), drained(process.stderr)]);
    },
  };
}

function drained(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    if (stream.writableLength === 0 || stream.destroyed) return resolve();
    stream.write("", () => resolve());
  });
}
