// Faults from outside, on purpose, and what must hold all the same.
//   scripts/faults [--nightly] [--seed N] [--minutes N] [PART …]
// Parts: kill (SIGKILL at any moment), disk (writes, syncs, opens and renames that fail, a disk that is full or read-only),
// clock (time that jumps), fuzz (files that a hostile hand wrote), pattern (regular expressions that take long elsewhere), chaos
// (a model that means no good), simulation (the loop in a world that a seed makes), soak (turn after turn in one process). A part
// whose tools are not there is skipped, with the reason; one that `--minutes` ends says how far it came. The last line is
// `N passed, N failed`.
import process from "node:process";
import { clockFaults } from "./faults_clock.ts";
import { diskFaults } from "./faults_disk.ts";
import { chaosFaults, fuzzFaults } from "./faults_fuzz.ts";
import { killFaults } from "./faults_kill.ts";
import { patternFaults } from "./faults_pattern.ts";
import { simulationFaults } from "./faults_simulation.ts";
import { soakFaults } from "./faults_soak.ts";

/** What was tried under one name. */
export type Finding =
  | {
    readonly name: string;
    readonly tried: number;
    readonly faults: readonly string[];
    readonly note?: string;
  }
  | { readonly name: string; readonly skipped: string };
export type FaultOptions = {
  readonly nightly: boolean;
  readonly seed: number;
  /** No new try from then on, in milliseconds since 1970. */
  readonly until: number;
};
type Part = (options: FaultOptions) => AsyncIterable<Finding>;

const parts: { readonly [name: string]: Part } = {
  kill: killFaults,
  disk: diskFaults,
  clock: clockFaults,
  fuzz: fuzzFaults,
  pattern: patternFaults,
  chaos: chaosFaults,
  simulation: simulationFaults,
  soak: soakFaults,
};

const args = process.argv.slice(2);
const valueOf = (name: string, absent: number) => {
  const at = args.indexOf(name);
  return at < 0 ? absent : Number(args.splice(at, 2)[1]);
};
const seed = valueOf("--seed", 1);
const until = Date.now() + 60_000 * valueOf("--minutes", Infinity);
const options: FaultOptions = { nightly: args.includes("--nightly"), seed, until };
const wanted = args.filter((a) => a !== "--nightly");
const unknown = wanted.filter((name) => parts[name] === undefined);
if (unknown.length > 0 || !Number.isInteger(seed) || Number.isNaN(until)) {
  console.error(`usage: faults [--nightly] [--seed N] [--minutes N] [${Object.keys(parts).join("|")} …]`);
  process.exit(2);
}
let passed = 0;
let failed = 0;
for (const [name, part] of Object.entries(parts)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  for await (const finding of part(options)) {
    const skipped = "skipped" in finding
      ? finding.skipped
      : finding.tried === 0
      ? "no time was left"
      : undefined;
    if ("skipped" in finding || skipped !== undefined) {
      console.log(`skip ${name}: ${finding.name}: ${skipped}`);
      continue;
    }
    const ok = finding.faults.length === 0;
    if (ok) passed++;
    else failed++;
    const note = finding.note === undefined ? "" : `, ${finding.note}`;
    console.log(
      `${
        ok ? "ok  " : "FAIL"
      } ${name}: ${finding.name}: ${finding.tried} tried, ${finding.faults.length} faults${note}`,
    );
    for (const fault of finding.faults.slice(0, 10)) console.log(`       ${fault}`);
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
