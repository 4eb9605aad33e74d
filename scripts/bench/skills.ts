// What a start with many skills costs: `writ skill find`, with an index of what they say and without one, as ratios to ten skills.
//   bun scripts/bench/skills.ts [BINARY]
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";

const binary = resolve(process.argv[2] ?? "dist/writ");
const counts = [10, 100, 1000, 10_000];
const runs = 5;
const top = mkdtempSync(join(tmpdir(), "writ-bench-skills-"));

function makeHome(count: number): string {
  const home = join(top, `home-${count}`);
  for (let i = 0; i < count; i++) {
    const folder = join(home, ".config/writ/skills", `skill-${i}`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(
      join(folder, "SKILL.md"),
      `---\nname: skill-${i}\ndescription: Handles case ${i} of the ledger. Used when a report on case ${i} is asked for.\n` +
        `allowed-tools: Read, Grep, Bash(git log:*)\ntrigger:\n  patterns: ["case ${i}\\\\b"]\n---\n${
          "Look at the files, then decide.\n".repeat(100)
        }`,
    );
  }
  return home;
}

/** Milliseconds, the median of some runs. */
function timeOf(home: string, index: "cold" | "warm"): number {
  const times = Array.from({ length: runs }, () => {
    if (index === "cold") rmSync(join(home, ".local"), { recursive: true, force: true });
    const start = performance.now();
    const ran = spawnSync(binary, ["skill", "find", "ledger"], {
      cwd: workspace,
      env: { HOME: home, PATH: process.env["PATH"] },
      stdio: ["ignore", "ignore", "pipe"],
    });
    const took = performance.now() - start;
    if (ran.status !== 0) throw new Error(String(ran.stderr));
    return took;
  }).sort((a, b) => a - b);
  return times[Math.floor(runs / 2)] ?? NaN;
}

const workspace = join(top, "ws");
mkdirSync(join(workspace, ".git"), { recursive: true });
try {
  const homes = counts.map((count) => ({ count, home: makeHome(count) }));
  // Young files are not indexed.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3000);
  let base = NaN;
  console.log(`load ${loadavg().map((n) => n.toFixed(1)).join(" ")}; median of ${runs} runs`);
  console.log("skills   no index      warm index   (ratio to 10 skills)");
  for (const { count, home } of homes) {
    const cold = timeOf(home, "cold");
    const warm = timeOf(home, "warm");
    if (Number.isNaN(base)) base = warm;
    const cell = (ms: number) => `${ms.toFixed(0)} ms ${(ms / base).toFixed(1)} x`.padEnd(14);
    console.log(`${String(count).padEnd(8)} ${cell(cold)}${cell(warm)}`);
  }
} finally {
  rmSync(top, { recursive: true, force: true });
}
