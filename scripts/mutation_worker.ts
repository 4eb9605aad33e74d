// Runs bundled test files with one mutant awake, again and again in one process: each run has modules of its own.
// Asked over IPC by scripts/mutation.ts; whoever asks stops it when a mutant makes it run for ever.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import process from "node:process";
import type { configureGlobal } from "fast-check";

export type Ask =
  | { readonly do: "measure"; readonly test: string }
  | {
    readonly do: "try";
    readonly test: string;
    readonly mutant: number;
    /** Which cases run, in this order. */
    readonly cases: readonly number[];
  };
/** `reached`: the mutants at which it came by. */
export type Measured = {
  readonly loading: { readonly reached: readonly number[] };
  readonly cases: readonly MeasuredCase[];
};
export type MeasuredCase = {
  readonly ms: number;
  readonly reached: readonly number[];
  /** What it threw where it fails without a mutant. */
  readonly failed?: string;
};
export type Tried = { readonly noticed: boolean };

type Case = { readonly name: string; readonly run: () => unknown };
/** Makes the bundle's function, in the shape that Bun gives it, with one mutant awake. */
type Bundle = (
  mutant: number,
  saw: (id: number) => boolean,
) => (exports: unknown, require: unknown, module: { exports: unknown }) => void;

const [folder = ""] = process.argv.slice(2);
const require = createRequire(join(folder, "bundle.js"));
const bundles = new Map<string, Bundle>();

function bundleOf(test: string, watched: boolean): Bundle {
  const key = `${test} ${watched}`;
  const known = bundles.get(key);
  if (known !== undefined) return known;
  const text = readFileSync(join(folder, test), "utf8");
  const seen = watched
    ? text.replace(/__mutant (===|!==) (\d+)/g, (_, is, id) => `${is === "===" ? "" : "!"}__saw(${id})`)
    : text;
  const made = new Function("__mutant", "__saw", `return (\n${seen}\n)`) as Bundle;
  bundles.set(key, made);
  return made;
}

/** The cases that the file describes. Throws what it throws. */
function casesOf(test: string, mutant: number, saw?: (id: number) => boolean): readonly Case[] {
  const cases: Case[] = [];
  const names: string[] = [];
  const runner = {
    test: (name: string, run: () => unknown) => {
      cases.push({ name: [...names, name].join(" "), run });
    },
    describe: (name: string, body: () => void) => {
      names.push(name);
      body();
      names.pop();
    },
  };
  const module = { exports: {} };
  const run = bundleOf(test, saw !== undefined)(mutant, saw ?? (() => false));
  run(module.exports, (name: string) => name === "bun:test" ? runner : require(name), module);
  if (cases.length === 0) throw new Error("no test cases");
  return cases;
}

async function measure(test: string): Promise<Measured> {
  let reached = new Set<number>();
  const found = casesOf(test, -1, (id) => !reached.add(id));
  const loading = { reached: [...reached] };
  const cases: MeasuredCase[] = [];
  for (const { name, run } of found) {
    reached = new Set();
    const start = performance.now();
    const threw = await settled(run);
    const failed = threw === undefined ? {} : { failed: `${name}: ${threw}` };
    cases.push({ ms: performance.now() - start, reached: [...reached], ...failed });
  }
  return { loading, cases };
}

async function settled(run: () => unknown): Promise<string | undefined> {
  try {
    await run();
    return undefined;
  } catch (error) {
    return String(error);
  }
}

async function tryOut(test: string, mutant: number, chosen: readonly number[]): Promise<Tried> {
  try {
    const cases = casesOf(test, mutant);
    for (const at of chosen) {
      const one = cases[at];
      if (one === undefined) return { noticed: true };
      await one.run();
    }
    return { noticed: false };
  } catch {
    return { noticed: true };
  }
}

// The module that the bundles are given, which an import would not be.
const fc = require("fast-check") as { readonly configureGlobal: typeof configureGlobal };
fc.configureGlobal({ seed: 20_000, endOnFailure: true });
process.on("message", (ask: Ask) => {
  const answer = ask.do === "measure" ? measure(ask.test) : tryOut(ask.test, ask.mutant, ask.cases);
  answer.then((a) => process.send?.(a));
});
