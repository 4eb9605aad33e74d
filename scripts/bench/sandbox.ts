// What a box costs: one command in it against the same one bare, median of so many runs, interleaved so that the load of the
// machine meets all alike.
//   bun scripts/bench/sandbox.ts [runs: 30]
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import process from "node:process";
import type { Box } from "../../src/core/box_plan.ts";
import { findWalls } from "../../src/sandbox/backend.ts";
import { systemFolders, systemSecrets } from "../../src/sandbox/machine_paths.ts";
import { probe } from "../../src/sandbox/probe.ts";
import { run } from "../../src/sandbox/subprocess.ts";
import { boxWith, type Walls } from "../../src/sandbox/walls.ts";
import { binary } from "../../test/support/runtimes.ts";

const runs = Number(process.argv[2] ?? 30);
const top = realpathSync(mkdtempSync(join(tmpdir(), "writ-bench-")));
const [workspace, tmp, outside] = ["ws", "tmp", "outside"].map((name) => join(top, name));
if (workspace === undefined || tmp === undefined || outside === undefined) throw new Error("no folders");
for (const folder of [workspace, tmp, outside]) mkdirSync(folder);

const boxOf = (walls: Walls): Box =>
  boxWith(walls, {
    name: "default",
    network: "none",
    read: systemFolders(),
    write: [workspace],
    hide: [join(homedir(), ".ssh"), ...systemSecrets],
    protect: [{ path: join(workspace, ".writ"), folder: true }],
    sockets: [],
    tmp,
    processes: 256,
    memory: 2 ** 31,
  });
const kinds: {
  readonly name: string;
  readonly box?: Box;
  readonly ms: number[];
  readonly probes: number[];
}[] = [
  { name: "bare", ms: [], probes: [] },
];
for (const backend of ["bwrap", "landlock"] as const) {
  const found = await findWalls({ backend, folder: join(top, "filters"), self: [binary], writable: [] });
  if (found.ok) kinds.push({ name: backend, box: boxOf(found.walls), ms: [], probes: [] });
  else process.stdout.write(`${backend}: not here: ${found.message}\n`);
}
const env = { PATH: "/usr/local/bin:/usr/bin:/bin" };
for (let round = -2; round < runs; round++) {
  for (const { box, ms, probes } of kinds) {
    const began = performance.now();
    await run(["true"], {
      cwd: workspace,
      env,
      ...(box === undefined ? {} : { box }),
      timeoutMs: 60_000,
      maxOutput: 1000,
    });
    if (round >= 0) ms.push(performance.now() - began);
    if (box === undefined || round < 0) continue;
    const started = performance.now();
    await probe(box, { cwd: workspace, outside, env });
    probes.push(performance.now() - started);
  }
}
rmSync(top, { recursive: true, force: true });

const median = (list: readonly number[]) =>
  [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)] ?? NaN;
const bare = median(kinds[0]?.ms ?? []);
for (const { name, ms, probes } of kinds) {
  const over = name === "bare"
    ? ""
    : `  ${(median(ms) - bare).toFixed(1)} ms over bare; trial ${median(probes).toFixed(1)} ms`;
  process.stdout.write(
    `${name.padEnd(10)} median ${median(ms).toFixed(1)} ms, least ${Math.min(...ms).toFixed(1)} ms${over}\n`,
  );
}
