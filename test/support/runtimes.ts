// The three ways in which the program runs: from source under Bun, from source under Deno, and as the executable.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";

export const root = join(dirname(new URL(import.meta.url).pathname), "../..");
export const binary = join(root, "dist/writ");
const bun = join(root, "node_modules/.bin/bun");
const deno =
  ["node_modules/@deno/linux-x64-glibc/deno", "node_modules/deno/deno"].map((p) => join(root, p)).find(
    existsSync,
  ) ??
    join(root, "node_modules/.bin/deno");

export const runtimes: readonly { readonly name: string; readonly command: readonly string[] }[] = [
  { name: "bun", command: [bun, join(root, "src/main.ts")] },
  {
    name: "deno",
    command: [
      deno,
      "run",
      "-A",
      "--no-check",
      "--quiet",
      "--config",
      join(root, "deno.json"),
      join(root, "src/main.ts"),
    ],
  },
  { name: "binary", command: [binary] },
];

export type Ran = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

/** Runs to the end; `env` replaces the environment but for PATH. */
export function runWith(
  command: readonly string[],
  args: readonly string[],
  options: {
    readonly cwd?: string;
    readonly env?: { readonly [name: string]: string };
    readonly input?: string;
  } = {},
): Ran {
  const [program = "", ...first] = command;
  const result = spawnSync(program, [...first, ...args], {
    cwd: options.cwd ?? root,
    env: { PATH: process.env["PATH"] ?? "", ...options.env },
    encoding: "utf8",
    timeout: 60_000,
    maxBuffer: 64 * 1024 * 1024,
    ...(options.input === undefined
      ? { stdio: ["ignore", "pipe", "pipe"] as const }
      : { input: options.input }),
  });
  return { code: result.status, stdout: result.stdout ?? "", stderr: result.stderr ?? "" };
}

/** The executable. */
export function writ(args: readonly string[], options: Parameters<typeof runWith>[2] = {}): Ran {
  return runWith([binary], args, options);
}
