// Mutation score of the files that decide: how many small changes of them the tests notice. Not part of the gate.
//   bun scripts/mutation.ts [FILE …] [--json] [--sample N]
// FILE: a name in src/core, such as `glob`. `--sample N`: only about N mutants of each file, spread evenly.
// Works in a copy of the tree, on one processor: a warm process runs the tests, the cheap ones first, until one fails.
import { type ChildProcess, execFileSync, fork } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { mutantsOf } from "./mutation_mutants.ts";
import { lived, type Placed, type Result, showMutant, tableOf } from "./mutation_report.ts";
import { withSwitches } from "./mutation_switches.ts";
import type { Ask, Measured, Tried } from "./mutation_worker.ts";

const decisionFiles =
  ("decide rule command command_miss glob glob_walk host grant grant_rule covering rule_cover broad layer_split protected path " +
    "command_risk risky_options program_options script_risk facts").split(" ");
/** Tests beside those of core that see decisions. */
const otherTests = [
  "shell/permission_cases",
  "shell/shell_facts",
  "shell/guessed_words",
  "load/host_pattern",
];
/** How much of their usual number of cases properties try. */
const share = "0.1";
/** Milliseconds from which a case waits until all the cheaper ones of every file have run. */
const dear = 10;

const root = join(dirname(new URL(import.meta.url).pathname), "..");

function copyTree(copy: string): void {
  for (const name of ["src", "test", "scripts", "skills", "config", "package.json", "tsconfig.json"]) {
    cpSync(join(root, name), join(copy, name), { recursive: true });
  }
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
}

/** The bundles that hold the file, with a switch in it for each mutant. */
function bundleTests(copy: string): readonly string[] {
  const core = readdirSync(join(copy, "test/core")).filter((f) => f.endsWith(".test.ts")).sort();
  const tests = [...core.map((f) => `core/${f}`), ...otherTests.map((name) => `${name}.test.ts`)];
  const options = ["--format=cjs", "--target=bun", "--packages=external", "--outdir=bundles", "--root=test"];
  const build = ["build", ...options, ...tests.map((t) => `./test/${t}`)];
  execFileSync(process.execPath, build, { cwd: copy, stdio: ["ignore", "ignore", "inherit"] });
  return tests.map((t) => t.replace(/ts$/, "js"))
    .filter((t) => readFileSync(join(copy, "bundles", t), "utf8").includes("__mutant"));
}

/** A warm process that answers one question at a time; one that takes too long is replaced. */
class Worker {
  private child: ChildProcess | undefined;
  private readonly copy: string;
  constructor(copy: string) {
    this.copy = copy;
  }

  ask<T>(question: Ask, patience: number): Promise<T | "timeout"> {
    const child = this.child ??= fork(
      join(root, "scripts/mutation_worker.ts"),
      [join(this.copy, "bundles")],
      {
        cwd: this.copy,
        execPath: process.execPath,
        env: { ...process.env, WRIT_CASES: share },
        stdio: ["ignore", "ignore", "ignore", "ipc"],
      },
    );
    return new Promise((resolve) => {
      const done = (answer: T | "timeout") => {
        clearTimeout(timer);
        child.removeAllListeners();
        if (answer === "timeout") this.stop();
        resolve(answer);
      };
      const timer = setTimeout(() => done("timeout"), patience);
      child.on("message", (answer) => done(answer as T));
      child.on("exit", () => done("timeout"));
      child.send(question);
    });
  }

  stop(): void {
    this.child?.kill("SIGKILL");
    this.child = undefined;
  }
}

type TestFile = {
  readonly test: string;
  readonly loading: ReadonlySet<number>;
  readonly cases: readonly {
    readonly at: number;
    readonly ms: number;
    readonly reached: ReadonlySet<number>;
  }[];
};

async function measureAll(worker: Worker, tests: readonly string[]): Promise<readonly TestFile[]> {
  const measured: TestFile[] = [];
  for (const test of tests) {
    const found = await worker.ask<Measured>({ do: "measure", test }, 240_000);
    if (found === "timeout") throw new Error(`${test} cannot be loaded, or does not end`);
    for (const { failed } of found.cases) {
      if (failed !== undefined) console.error(`fails without a mutant, left out: ${test}: ${failed}`);
    }
    const cases = found.cases.map((c, at) => ({ ...c, at, reached: new Set(c.reached) }))
      .filter((c) => c.failed === undefined).sort((a, b) => a.ms - b.ms);
    measured.push({ test, loading: new Set(found.loading.reached), cases });
  }
  return measured;
}

/** Some cases of one test file, and what they cost together. */
type Round = { readonly test: string; readonly cases: readonly number[]; readonly ms: number };

/** The cases that come by the mutant, cheap and dear ones of each file apart; the cheapest rounds first. */
function roundsFor(files: readonly TestFile[], mutant: number): readonly Round[] {
  const rounds = files.flatMap(({ test, loading, cases }): Round[] => {
    const mine = loading.has(mutant) ? cases : cases.filter((c) => c.reached.has(mutant));
    return [mine.filter((c) => c.ms < dear), mine.filter((c) => c.ms >= dear)].filter((some) =>
      some.length > 0
    )
      .map((some) => ({ test, cases: some.map((c) => c.at), ms: some.reduce((sum, c) => sum + c.ms, 0) }));
  });
  return rounds.sort((a, b) => a.ms - b.ms);
}

async function endOf(worker: Worker, rounds: readonly Round[], mutant: number): Promise<Result["end"]> {
  for (const { test, cases, ms } of rounds) {
    const tried = await worker.ask<Tried>({ do: "try", mutant, test, cases }, 2_000 + 10 * ms);
    if (tried === "timeout") return "timeout";
    if (tried.noticed) return "killed";
  }
  return rounds.length === 0 ? "not reached" : "survived";
}

async function tryFile(copy: string, file: string, sample: number): Promise<readonly Result[]> {
  const path = join(copy, "src/core", `${file}.ts`);
  const source = readFileSync(path, "utf8");
  const mutants = mutantsOf(source);
  const worker = new Worker(copy);
  try {
    writeFileSync(path, withSwitches(source, mutants, 0));
    const tests = await measureAll(worker, bundleTests(copy));
    const step = Math.max(1, mutants.length / sample);
    const results: Result[] = [];
    for (const [id, m] of mutants.entries()) {
      if (Math.floor(id / step) === Math.floor((id - 1) / step)) continue;
      const line = source.slice(0, m.start).split("\n").length;
      const mutant: Placed = { ...m, file, line, before: source.slice(m.start, m.end) };
      results.push({ mutant, end: await endOf(worker, roundsFor(tests, id), id) });
    }
    return results;
  } finally {
    worker.stop();
    writeFileSync(path, source);
  }
}

async function main(args: readonly string[]): Promise<void> {
  const at = args.indexOf("--sample");
  const sample = at < 0 ? Infinity : Number(args[at + 1]);
  const named = args.filter((a, i) => !a.startsWith("--") && (at < 0 || i !== at + 1))
    .map((a) => a.replace(/^.*\/|\.ts$/g, ""));
  const copy = mkdtempSync(join(tmpdir(), "writ-mutation-"));
  try {
    copyTree(copy);
    const all: Result[] = [];
    for (const file of named.length === 0 ? decisionFiles : named) {
      const results = await tryFile(copy, file, sample);
      all.push(...results);
      if (!args.includes("--json")) console.log(results.filter(lived).map(showMutant).join("\n"));
    }
    console.log(args.includes("--json") ? JSON.stringify(all, null, 1) : `\n${tableOf(all)}`);
  } finally {
    rmSync(copy, { recursive: true });
  }
}

await main(process.argv.slice(2));
