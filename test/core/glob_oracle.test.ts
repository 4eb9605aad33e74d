// Our path globs against picomatch, on paths and patterns where both mean the same: an independent reading of `*`, `**`,
// `?`, sets and alternatives. Patterns that ours refuses as ambiguous are left out.
import { test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import picomatch from "picomatch";
import { absoluteGlob, globSource } from "../../src/core/glob.ts";
import { lazyPattern } from "../../src/load/pattern.ts";

const name = fc.constantFrom("a", "b", "ab", ".env", ".env.local", "a.ts", "b.ts", "src", "x-y");
const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((parts) => `/ws/${parts.join("/")}`);
const segment = fc.constantFrom(
  "a",
  "b",
  "src",
  "*",
  "*.ts",
  "a*",
  "*b",
  ".env*",
  "?",
  "a.??",
  "[ab]",
  "{a,b}",
  "**",
  "x-*",
);
const glob = fc.array(segment, { minLength: 1, maxLength: 4 }).map((parts) => parts.join("/"));

// `a/**` is also `a` itself, for both; picomatch forgets it where a wildcard stands before, ours does not.
function theirReading(pattern: string, candidate: string): boolean {
  const reads = (glob: string) => picomatch(glob, { dot: true, nonegate: true })(candidate);
  if (reads(pattern)) return true;
  return pattern.endsWith("/**") && theirReading(pattern.slice(0, -3), candidate);
}

test("path globs mean what picomatch says they mean", () => {
  let matched = 0;
  fc.assert(
    fc.property(glob, path, (pattern, candidate) => {
      const made = absoluteGlob(pattern, { root: "/ws", home: "/home/u" });
      if ("error" in made) return;
      const ours = lazyPattern(globSource(made.glob)).test(candidate);
      const theirs = theirReading(`/ws/${pattern}`, candidate);
      if (ours) matched++;
      assertEquals(ours, theirs, `${pattern} on ${candidate}`);
    }),
    { numRuns: 10_000, seed: 20261130 },
  );
  assert(matched > 300, `only ${matched} of the tried pairs match`);
});
