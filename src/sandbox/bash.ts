// How a text that bash is to run becomes a call.
import { throughPipes } from "./subprocess.ts";

const streamByName = /\/dev\/(std|fd)|\/proc\/self\/fd/;

/** Exactly this text in a bash that reads nothing else first. Its streams can be opened by their names where the text may do so. */
export function bashCall(text: string): readonly [string, ...string[]] {
  // After `-c`, bash would still take a text that starts with a dash for options.
  const argv = ["bash", "--noprofile", "--norc", "-c", "--", text] as const;
  return streamByName.test(text) ? throughPipes(argv) : argv;
}
