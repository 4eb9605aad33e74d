// What `writ __sandbox PLAN FOLDER PROGRAM NAME ARGS…` does: confine this very process, then become the program.
import process from "node:process";
import type { BoxPlan } from "../core/box_plan.ts";
import { confine, landlockPaths } from "./landlock.ts";
import { openNative } from "./native.ts";
import { machineOf } from "./seccomp.ts";

/** Exit code when the process could not be confined or the program not be started; nothing of it ran then. */
export const notConfined = 125;

/** Returns only when it failed; says why on stderr. */
export async function becomeConfined(args: readonly string[]): Promise<number> {
  const [plan = "", folder = "", program = "", ...argv] = args;
  try {
    const machine = machineOf(process.arch);
    if (machine === undefined) throw new Error(`no Landlock numbers for ${process.arch}`);
    const box: BoxPlan = JSON.parse(plan);
    const native = await openNative();
    const paths = landlockPaths(box);
    process.chdir(folder);
    const env = Object.entries(process.env).map(([name, value]) => `${name}=${value ?? ""}`);
    confine(native, machine, box, paths);
    native.execve(program, argv, env);
    throw new Error(`\`${program}\` cannot be started`);
  } catch (error) {
    process.stderr.write(`writ: not confined: ${error instanceof Error ? error.message : String(error)}\n`);
    return notConfined;
  }
}
