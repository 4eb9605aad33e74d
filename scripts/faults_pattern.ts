// Regular expressions from files on long messages: known ones that take exponential time elsewhere, and others by a grammar of
// what makes them so. Each is refused when it is read, or takes time by the length of the message.
import process from "node:process";
import { compilePattern } from "../src/load/pattern.ts";
import { dice } from "../test/support/chaos.ts";
import type { FaultOptions, Finding } from "./faults.ts";

const longestMs = 100;
const length = 50_000;

const known = [
  "(a+)+$",
  "(x+x+)+y",
  "(?:\\s*\\w+\\s*)*;",
  "(a|a)*$",
  "(a|aa)+$",
  "(a*)*b",
  "([a-zA-Z]+)*$",
  "^(.*?,){25}P",
  "(.*a){20}",
  "^(([a-z])+.)+[A-Z]([a-z])+$",
  "^(\\w+\\s?)*$",
  "(?:a?){40}a{40}",
];

export async function* patternFaults({ nightly, seed, until }: FaultOptions): AsyncIterable<Finding> {
  const random = dice(seed);
  const made = Array.from({ length: nightly ? 2000 : 200 }, () => patternText(random, 0));
  const faults: string[] = [];
  let slowest = 0;
  let refused = 0;
  let tried = 0;
  for (const source of [...known, ...made]) {
    if (Date.now() >= until) break;
    tried++;
    let pattern: ReturnType<typeof compilePattern>;
    try {
      pattern = compilePattern(source, { ignoreCase: true });
    } catch {
      refused++;
      continue;
    }
    for (const message of [`${"a".repeat(length)}!`, `${"x ".repeat(length / 2)};`]) {
      const ms = leastMs(() => pattern.test(message));
      slowest = Math.max(slowest, ms);
      if (ms > longestMs) faults.push(`\`${source}\` took ${Math.round(ms)} ms`);
    }
  }
  const note = `${refused} refused when read, the slowest took ${Math.round(slowest)} ms of computing`;
  yield { name: `messages of ${length} characters`, tried, faults, note };
}

// What the process computed, the least of several: other load on the machine does not count.
function leastMs(work: () => unknown): number {
  let least = Infinity;
  for (let n = 0; n < 5 && least > longestMs; n++) {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / 1000);
  }
  return least;
}

type Dice = ReturnType<typeof dice>;

function patternText(random: Dice, depth: number): string {
  const piece = () =>
    depth > 2 || random.chance(0.4)
      ? random.pick(["a", "x", "\\w", "\\s", ".", "[a-z]", "[^;]", "\\d", "aa", "ax"])
      : `(${patternText(random, depth + 1)})`;
  const counted = () => `${piece()}${random.pick(["+", "*", "?", "+?", "*?", "{2,9}", "{0,20}", "", ""])}`;
  const joined = Array.from({ length: 1 + random.below(3) }, counted).join(random.chance(0.3) ? "|" : "");
  return depth === 0 ? `${random.pick(["", "^"])}${joined}${random.pick(["$", ";", "y", ""])}` : joined;
}
