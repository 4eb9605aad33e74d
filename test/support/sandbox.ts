// Machines that lack something to build a box with.
import { existsSync, realpathSync } from "node:fs";

/** Where bubblewrap is; undefined: this machine has none. */
export const bubblewrap =
  ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"].filter(existsSync).map((p) => realpathSync(p))[0];

/** The same program where bubblewrap cannot be found. */
export function withoutBubblewrap(
  argv: readonly [string, ...string[]],
): readonly [string, ...string[]] {
  if (bubblewrap === undefined) return argv;
  return [bubblewrap, "--dev-bind", "/", "/", "--ro-bind", "/dev/null", bubblewrap, "--", ...argv];
}
