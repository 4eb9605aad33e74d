// How a text that bash is to run becomes a call.
import { throughPipes } from "./subprocess.ts";

const streamByName = /\/dev\/(std|fd)|\/proc\/self\/fd/;

/** Exactly this text in a bash that reads nothing else first. Its streams can be opened by their names where the text may do so. */
export function bashCall(text: string): readonly [string, ...string[]] {
  // After `-c`, bash would still take a text that starts with a dash for options.
  const argv = ["bash", "--noprofile", "--norc", "-c", "--", text] as const;
  return streamByName.test(text) ? throughPipes(argv) : argv;
}

/** What to do where a script, which is not looked into, failed to open a stream by its name; undefined where none did. */
export function streamHint(output: string): string | undefined {
  const stream = /(\/dev\/std(?:in|out|err)): No such device or address/.exec(output)?.[1];
  return stream === undefined
    ? undefined
    : `a script cannot open \`${stream}\` by its name here: write \`>&2\` or the like in it, or run it with \`2>&1 | cat\``;
}
