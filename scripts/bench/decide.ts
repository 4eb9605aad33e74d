// Decisions a second with 100 rules on a shell command of three parts, and what `writ explain` takes from the start.
//   bun scripts/bench/decide.ts [BINARY]
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import { decide, type Standing } from "../../src/core/decide.ts";
import type { Facts } from "../../src/core/facts.ts";
import { pathFact } from "../../src/tools/path_fact.ts";
import { shellFacts } from "../../src/shell/shell_facts.ts";
import { teamLayers as layers } from "./team_rules.ts";

const command = "git status --short && npm test -- --run | tee out.txt";
const root = mkdtempSync(join(tmpdir(), "writ-bench-"));

function factsOf(): Facts {
  const { subjects, risk, errors } = shellFacts(command, {
    root,
    home: root,
    pathFact: (written, from) => pathFact(written, { root, home: root, protectedBy: () => undefined }, from),
    list: () => [],
    exists: () => false,
  });
  return {
    tool: "shell",
    args: { command },
    risk,
    subjects,
    box: "default",
    sourcedBy: [],
    mode: "interactive",
    errors,
  };
}

const standing: Standing = { root, active: [], bounds: [], blocks: [] };

/** Runs a second by CPU time of this process, the best of twenty stretches: what others do here counts less. */
function rate<T>(prepare: () => T, work: (prepared: T) => unknown): number {
  let best = 0;
  for (let stretch = 0; stretch < 20; stretch++) {
    const prepared = Array.from({ length: 1000 }, prepare);
    const start = process.cpuUsage();
    for (const one of prepared) work(one);
    const { user, system } = process.cpuUsage(start);
    best = Math.max(best, 1000 / ((user + system) / 1e6));
  }
  return best;
}

/** Milliseconds from start to end, the middle one of 15. */
function startTime(binary: string): number {
  const times = Array.from({ length: 15 }, () => {
    const start = performance.now();
    const { status, stderr } = spawnSync(binary, ["explain", "shell", command, "--json"], { cwd: root });
    if (status === null || status > 4) throw new Error(`${binary} explain: ${stderr}`);
    return performance.now() - start;
  });
  return times.sort((a, b) => a - b)[7] ?? 0;
}

try {
  const facts = factsOf();
  const rules = layers.reduce((count, layer) => count + layer.rules.length, 0);
  const binary = process.argv[2];
  console.log(
    `load ${loadavg()[0]?.toFixed(1)}; ${rules} rules, ${facts.subjects.length} subjects: ${command}`,
  );
  const lines: readonly (readonly [string, string])[] = [
    ["decide only", `${Math.round(rate(factsOf, (facts) => decide(layers, facts, standing)))} a second`],
    [
      "facts and decide",
      `${Math.round(rate(() => undefined, () => decide(layers, factsOf(), standing)))} a second`,
    ],
    [
      "explain from the binary",
      binary === undefined ? "no binary given" : `${startTime(resolve(binary)).toFixed(0)} ms`,
    ],
  ];
  for (const [what, figure] of lines) console.log(`${what.padEnd(24)} ${figure}`);
} finally {
  rmSync(root, { recursive: true, force: true });
}
