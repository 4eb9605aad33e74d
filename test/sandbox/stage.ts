// A box for real, as tests of it use one.
import { existsSync, mkdirSync, mkdtempSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import type { BoxPlan } from "../../src/core/box_plan.ts";
import { findWalls } from "../../src/sandbox/backend.ts";
import { run, type RunResult } from "../../src/sandbox/subprocess.ts";
import { boxWith, type Walls } from "../../src/sandbox/walls.ts";
import { runtimes } from "../support/runtimes.ts";

export const source = runtimes[process.versions["bun"] === undefined ? 1 : 0]?.command as [
  string,
  ...string[],
];
export const scratch = realpathSync(mkdtempSync(join(tmpdir(), "writ-box-")));
const system = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc"].filter((p) =>
  existsSync(p)
);

/** Undefined: this machine does not offer it. */
export async function wallsOf(backend: "bwrap" | "landlock"): Promise<Walls | undefined> {
  const found = await findWalls({ backend, folder: join(scratch, "filters"), self: source, writable: [] });
  return found.ok ? found.walls : undefined;
}

export type Stage = {
  readonly top: string;
  readonly ws: string;
  readonly outside: string;
  readonly plan: BoxPlan;
};

/** A workspace with what is worth protecting and hiding, a secret beside it, and the plan of a box for it. */
export function stage(changes: Partial<BoxPlan> = {}): Stage {
  const top = mkdtempSync(join(scratch, "stage-"));
  const ws = join(top, "ws");
  const outside = join(top, "outside");
  for (
    const folder of [
      join(ws, ".git/hooks"),
      join(ws, "src"),
      join(ws, "skills/a"),
      outside,
      join(top, "tmp"),
      join(ws, "private"),
    ]
  ) {
    mkdirSync(folder, { recursive: true });
  }
  writeFileSync(join(ws, ".git/config"), "[core]\n");
  writeFileSync(join(ws, "skills/a/SKILL.md"), "kept\n");
  writeFileSync(join(ws, "private/key"), "canary-in-workspace\n");
  writeFileSync(join(outside, "secret"), "canary-outside\n");
  symlinkSync(join(outside, "secret"), join(ws, "link"));
  mkdirSync(join(ws, "deep/private"), { recursive: true });
  writeFileSync(join(ws, "deep/private/key"), "canary-deep-in-workspace\n");
  symlinkSync("skills/a", join(ws, "linked"));
  return {
    top,
    ws,
    outside,
    plan: {
      name: "default",
      network: "none",
      read: system,
      write: [ws],
      hide: ["/etc/shadow", join(ws, "private"), join(ws, "deep/private")],
      protect: [
        { path: join(ws, ".git/hooks"), folder: true },
        { path: join(ws, ".git/config"), folder: false },
        { path: join(ws, ".git/commondir"), folder: false },
        { path: join(ws, ".writ"), folder: true },
        { path: join(ws, "skills/a"), folder: true },
        { path: join(ws, "AGENTS.md"), folder: false },
        { path: join(ws, "linked"), folder: false },
      ],
      sockets: [],
      tmp: join(top, "tmp"),
      processes: 256,
      memory: 2 ** 31,
      ...changes,
    },
  };
}

export const python = ["/usr/bin/python3", "/usr/local/bin/python3"].find((p) => existsSync(p));

/** What bash does with that text in a box of that plan. */
export function inBox(walls: Walls, plan: BoxPlan, cwd: string, script: string): Promise<RunResult> {
  return run(["bash", "--noprofile", "--norc", "-c", script], {
    cwd,
    env: { PATH: "/usr/local/bin:/usr/bin:/bin", TMPDIR: plan.tmp, HOME: plan.tmp },
    box: boxWith(walls, plan),
    timeoutMs: 20_000,
    maxOutput: 10_000,
  });
}

/** What must not come about: the script says `ESCAPED`, or a word that only stands outside, when it did. */
export type Attempt = readonly [name: string, script: string];

export function asPython(code: string): string {
  return `${python} - <<'EOF'\n${code}\nEOF`;
}

/** A call by its number, for x64 and arm64, that has to be refused whatever its arguments are. */
export function systemCall(numbers: readonly [number, number], args: string): string {
  return asPython(`import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
me = os.getpid()
result = libc.syscall(${numbers[process.arch === "arm64" ? 1 : 0]}, ${args})
if os.getpid() != me: os._exit(0)
if result >= 0 or ctypes.get_errno() not in (1, 38): print('ESCAPED', result, ctypes.get_errno())`);
}

/** Those that came about, and those that did not run to their end; `words` stand in the scripts for what they name. */
export async function ways(
  inside: (script: string) => Promise<RunResult>,
  attempts: readonly Attempt[],
  words: { readonly [word: string]: string },
): Promise<readonly string[]> {
  const found: string[] = [];
  for (const [name, script] of attempts) {
    const text = Object.entries(words).reduce((s, [word, value]) => s.replaceAll(word, value), script);
    const { stdout, stderr } = await inside(`${text}\necho TRIED`);
    if (/ESCAPED|canary/.test(stdout + stderr) || !stdout.endsWith("TRIED\n")) {
      found.push(`${name}: ${stdout}${stderr}`);
    }
  }
  return found;
}
