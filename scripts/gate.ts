// The whole gate: format, lint, types, layers, documents, build, tests under Bun and under Deno, faults from outside.
//   bun scripts/gate.ts [STEP …]      runs only the named steps
// Ends with `N passed, N failed`; a step without tests of its own counts as one.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";

type Step = {
  readonly name: string;
  readonly command: readonly string[];
  /** A JUnit report that the command writes. */
  readonly junit?: string;
};

const root = join(dirname(new URL(import.meta.url).pathname), "..");
const bun = process.execPath;
const deno = denoPath();
const scratch = mkdtempSync(join(tmpdir(), "writ-gate-"));
const unitTests = [
  "core",
  "load",
  "agent",
  "provider",
  "shell",
  "sandbox",
  "mcp",
  "tools",
  "store",
  "session",
  "server",
  "http",
  "cli",
  "scripts",
]
  .map((name) => `test/${name}`).filter((path) => existsSync(join(root, path)));
const importMap = "test/support/import_map.json";
const bunJunit = join(scratch, "bun.xml");
const denoJunit = join(scratch, "deno.xml");

const steps: readonly Step[] = [
  { name: "format", command: [deno, "fmt", "--check", "--quiet"] },
  { name: "lint", command: [deno, "lint", "--quiet"] },
  { name: "types", command: [bun, "--bun", "node_modules/typescript/bin/tsc", "-p", "."] },
  { name: "layers", command: [bun, "scripts/check_layers.ts"] },
  { name: "docs", command: [bun, "scripts/docs.ts", "--check"] },
  { name: "build", command: [bun, "scripts/build.ts"] },
  {
    name: "bun",
    command: [bun, "test", "--timeout=120000", "--reporter=junit", `--reporter-outfile=${bunJunit}`, "test"],
    junit: bunJunit,
  },
  {
    name: "deno",
    command: [
      deno,
      "test",
      "-A",
      "--no-check",
      "--quiet",
      `--import-map=${importMap}`,
      `--junit-path=${denoJunit}`,
      ...unitTests,
    ],
    junit: denoJunit,
  },
  // Last: it makes the machine fail on purpose.
  { name: "faults", command: [bun, "scripts/faults.ts"] },
];

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !steps.some((s) => s.name === name));
if (unknown.length > 0) {
  console.error(`error: no step ${unknown.join(", ")}; steps: ${steps.map((s) => s.name).join(", ")}`);
  process.exit(2);
}
console.log(`@std/assert: test/support/assert.ts stands in for jsr:@std/assert (see CONTRIBUTING.md)`);
let passed = 0;
let failed = 0;
for (const step of steps.filter((s) => wanted.length === 0 || wanted.includes(s.name))) run(step);
rmSync(scratch, { recursive: true, force: true });
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

function run(step: Step): void {
  console.log(`\n== ${step.name}`);
  const started = Date.now();
  const [program = "", ...args] = step.command;
  const { status } = spawnSync(program, args, { cwd: root, stdio: "inherit", env: testEnvironment() });
  const counts = step.junit === undefined ? undefined : readCounts(step.junit);
  const ok = status === 0;
  if (counts === undefined) {
    if (ok) passed++;
    else failed++;
  } else {
    passed += counts.passed;
    // A run that failed outside its tests (a file that does not load) must not look green.
    failed += counts.failed > 0 || ok ? counts.failed : 1;
  }
  const shown = counts === undefined
    ? (ok ? "ok" : "failed")
    : `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`;
  console.log(`== ${step.name}: ${shown} (${((Date.now() - started) / 1000).toFixed(1)} s)`);
}

// Keys of the person who runs the tests must not reach them.
function testEnvironment(): NodeJS.ProcessEnv {
  const env = { ...process.env };
  for (const name of Object.keys(env)) if (/^(?:ANTHROPIC_|WRIT_)/.test(name)) delete env[name];
  return env;
}

function readCounts(path: string): { passed: number; failed: number; skipped: number } {
  if (!existsSync(path)) return { passed: 0, failed: 1, skipped: 0 };
  const cases = [...readFileSync(path, "utf8").matchAll(/<testcase\b[^>]*?(\/>|>[\s\S]*?<\/testcase>)/g)].map(
    (m) => m[1] ?? "",
  );
  const failures = cases.filter((c) => /<(?:failure|error)\b/.test(c)).length;
  const skipped = cases.filter((c) => /<skipped\b/.test(c)).length;
  return { passed: cases.length - failures - skipped, failed: failures, skipped };
}

function denoPath(): string {
  for (const path of [`node_modules/@deno/linux-x64-glibc/deno`, "node_modules/deno/deno"]) {
    if (existsSync(join(root, path))) return join(root, path);
  }
  return join(root, "node_modules/.bin/deno");
}
