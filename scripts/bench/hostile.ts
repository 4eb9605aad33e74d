// How long hostile calls take to be judged, as the loop does it: facts, decision, explanation, and what the model is told.
//   bun scripts/bench/hostile.ts [--json | --fresh] [WORDS OF A KIND …]
// Each kind: the middle and the worst of seven, in milliseconds of this process's processor time (what others do on the machine
// counts less), and the middle by that of `git diff | head`. With --fresh: the same for the first answer of a
// process that has judged nothing before, one process for each kind; the compiler's threads count.
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { hostileCalls, plantHostile } from "../../test/support/hostile.ts";
import { judgeAsLoop } from "../../test/support/judged_as_loop.ts";
import { teamLayers } from "./team_rules.ts";

const [json, words] = [
  process.argv.includes("--json"),
  process.argv.slice(2).filter((a) => !a.startsWith("--")),
];
const root = realpathSync(mkdtempSync(join(tmpdir(), "writ-bench-")));

function timesOf(tool: string, args: Parameters<typeof judgeAsLoop>[1], rounds: number): readonly number[] {
  return Array.from({ length: rounds }, () => {
    const start = process.cpuUsage();
    judgeAsLoop(tool, args, { root, layers: teamLayers });
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1000;
  }).sort((a, b) => a - b);
}

// In a process of its own: the first call of this kind, and of any.
function firstAnswer(kind: string): number {
  const call = hostileCalls.find((c) => `${c.tool} ${c.kind}` === kind);
  if (call === undefined) return NaN;
  return timesOf(call.tool, call.args, 1)[0] ?? NaN;
}

function freshTimes(): void {
  const rows = hostileCalls.map((c) => `${c.tool} ${c.kind}`)
    .filter((kind) => words.every((w) => kind.includes(w)))
    .map((kind) => {
      const said = execFileSync(process.execPath, [import.meta.filename, "--first", kind], {
        encoding: "utf8",
      });
      return { kind, time: Number(said) };
    })
    .sort((a, b) => b.time - a.time);
  console.log(`load ${loadavg()[0]?.toFixed(1)}`);
  for (const { kind, time } of rows) console.log(`${time.toFixed(0).padStart(6)}  ${kind}`);
}

function middle(sorted: readonly number[]): number {
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

function warmTimes(): void {
  const plain = { command: "git diff | head" };
  timesOf("shell", plain, 2000);
  const times = timesOf("shell", plain, 1001);
  const floor = times.reduce((sum, t) => sum + t, 0) / times.length;
  const rows = hostileCalls
    .filter(({ kind, tool }) => words.every((w) => `${tool} ${kind}`.includes(w)))
    .map(({ kind, tool, args }) => {
      const times = timesOf(tool, args, 7);
      const median = middle(times);
      return { tool, kind, median, worst: times.at(-1) ?? 0, ratio: median / floor };
    })
    .sort((a, b) => b.median - a.median);
  if (json) console.log(JSON.stringify({ load: loadavg()[0], floor, rows }));
  else {
    console.log(`load ${loadavg()[0]?.toFixed(1)}; floor (git diff | head): ${floor.toFixed(3)} ms`);
    console.log(`${"middle".padStart(9)}${"worst".padStart(9)}${"ratio".padStart(8)}  kind`);
    for (const { tool, kind, median, worst, ratio } of rows) {
      const figures = [
        median.toFixed(2).padStart(9),
        worst.toFixed(2).padStart(9),
        ratio.toFixed(0).padStart(8),
      ];
      console.log(`${figures.join("")}  ${tool}: ${kind}`);
    }
  }
}

try {
  plantHostile(root);
  if (process.argv.includes("--first")) console.log(firstAnswer(words.join(" ")));
  else if (process.argv.includes("--fresh")) freshTimes();
  else warmTimes();
} finally {
  rmSync(root, { recursive: true });
}
