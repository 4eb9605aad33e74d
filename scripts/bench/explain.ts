// What `writ explain` takes from the start to the end of the process, beside `writ version` and a bare executable of the same
// runtime. Runs take turns, so that all three meet the same load.
//   bun scripts/bench/explain.ts [BINARY]        default: dist/writ
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";

const rounds = 31;
const binary = resolve(process.argv[2] ?? "dist/writ");
const scratch = mkdtempSync(join(tmpdir(), "writ-bench-"));
const [workspace, policy, bare] = ["ws", "policy.yaml", "bare"].map((name) => join(scratch, name)) as [
  string,
  string,
  string,
];

const rules = `version: 1
permissions:
  allow: [shell(git diff *), "read_file(src/**)", fetch_url(docs.test)]
  ask: [shell(git push *)]
  deny: [shell(rm -rf *)]
`;

function timed(program: string, args: readonly string[]): number {
  const start = performance.now();
  const { status, stderr } = spawnSync(program, args, {
    cwd: workspace,
    env: { PATH: process.env["PATH"] ?? "", HOME: scratch },
  });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")}: status ${status}: ${stderr}`);
  return performance.now() - start;
}

try {
  mkdirSync(workspace);
  writeFileSync(policy, rules);
  writeFileSync(join(scratch, "bare.ts"), `console.log("hello");\n`);
  const built = spawnSync(process.execPath, [
    "build",
    "--compile",
    join(scratch, "bare.ts"),
    "--outfile",
    bare,
  ]);
  if (built.status !== 0) throw new Error(`the bare executable was not built: ${built.stderr}`);
  const explain = (tool: string, argument: string): readonly [string, string, readonly string[]] => [
    `writ explain ${tool} '${argument}'`,
    binary,
    ["explain", tool, argument, "--policy", policy],
  ];
  const runs = [
    ["a bare executable", bare, []],
    ["writ version", binary, ["version"]],
    explain("shell", "git diff | sh"),
    explain("shell", "git status --short && npm test -- --run | tee out.txt"),
    explain("read_file", "../x"),
    explain("fetch_url", "http://2130706433/"),
  ] as const;
  const times = runs.map((): number[] => []);
  for (let round = 0; round < rounds; round++) {
    for (const [i, [, program, args]] of runs.entries()) times[i]?.push(timed(program, args));
  }
  console.log(
    `load ${loadavg()[0]?.toFixed(1)}; ${rounds} runs of each, the middle and the best, in milliseconds`,
  );
  for (const [i, [name]] of runs.entries()) {
    const sorted = (times[i] ?? []).sort((a, b) => a - b);
    const figures = [sorted[Math.floor(rounds / 2)] ?? 0, sorted[0] ?? 0].map((t) =>
      t.toFixed(1).padStart(8)
    );
    console.log(`${figures.join("")}  ${name}`);
  }
} finally {
  rmSync(scratch, { recursive: true });
}
