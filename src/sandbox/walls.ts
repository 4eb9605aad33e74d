// A program's call put into a box, by what this machine can build one with.
import { createHash, randomUUID } from "node:crypto";
import { existsSync, lstatSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isWithin } from "../core/path.ts";
import type { BoxPlan } from "./box_plan.ts";
import { bubblewrapArguments } from "./bubblewrap.ts";
import { type Machine, seccompProgram } from "./seccomp.ts";

/** `folder` is private to the user; `self` starts Writ itself: program and first arguments. */
export type Walls =
  | { readonly backend: "bwrap"; readonly machine: Machine; readonly bwrap: string; readonly folder: string }
  | { readonly backend: "landlock"; readonly abi: number; readonly self: readonly [string, ...string[]] };

export type Call = {
  /** Absolute path of what runs. */
  readonly program: string;
  /** With the name by which it is started first. */
  readonly argv: readonly string[];
  readonly cwd: string;
};

/** The call as it is to be started. */
export type Enclosed = Call & {
  /** To be opened for reading and handed down as file 3 and following. */
  readonly files: readonly string[];
  /**
   * To be called when everything that ran is gone. Protected files that came to exist are removed, since what does not exist
   * cannot be held against being made; answers their paths.
   */
  leave(): readonly string[];
};

export function enclose(walls: Walls, plan: BoxPlan, call: Call): Enclosed {
  const missing = holdFolders(plan);
  const leave = () => missing.filter(remove);
  if (walls.backend === "landlock") {
    const [program, ...first] = walls.self;
    const argv = [program, ...first, "__sandbox", JSON.stringify(plan), call.program, ...call.argv];
    return { program, argv, cwd: call.cwd, files: [], leave };
  }
  const argv = ["bwrap", ...bubblewrapArguments(plan, call.cwd), ...withLimits(plan, call)];
  return { program: walls.bwrap, argv, cwd: "/", files: [filterFile(walls, plan)], leave };
}

// An empty folder is made and harms nobody; an empty file could mean something. Answers the files that are not there. Where
// the folder around is missing too, as in a repository that is still to come, there is nothing to be had by it.
function holdFolders(plan: BoxPlan): readonly string[] {
  const missing = plan.protect.filter(({ path }) =>
    plan.write.some((root) => isWithin(path, root)) && existsSync(dirname(path)) &&
    lstatSync(path, { throwIfNoEntry: false }) === undefined
  );
  return missing.flatMap(({ path, folder }) => {
    if (!folder) return [path];
    try {
      mkdirSync(path);
      return [];
    } catch {
      return [path];
    }
  });
}

function remove(path: string): boolean {
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return false;
  rmSync(path, { recursive: true, force: true });
  return true;
}

// Set inside, so that they do not bind what builds the box. What is refused there is bound more tightly already.
function withLimits(plan: BoxPlan, call: Call): readonly string[] {
  const script = `{ ulimit -c 0; ulimit -u ${plan.processes} || ulimit -p ${plan.processes}
ulimit -d ${Math.floor(plan.memory / 1024)}; } 2>/dev/null
exec "$0" "$@"`;
  return ["/bin/sh", "-c", script, call.program, ...call.argv.slice(1)];
}

// Named by its content: whoever finds it finds the right one, and two who write it write the same.
function filterFile(walls: Extract<Walls, { backend: "bwrap" }>, plan: BoxPlan): string {
  // With a network of its own no socket of the host is in sight; on the host's, abstract ones would be.
  const unix = plan.network === "none" || plan.sockets.length > 0;
  const filter = seccompProgram(walls.machine, { unix, inet: true });
  const file = join(walls.folder, `${createHash("sha256").update(filter).digest("hex").slice(0, 16)}.bpf`);
  if (!existsSync(file)) {
    mkdirSync(walls.folder, { recursive: true, mode: 0o700 });
    const part = `${file}.${randomUUID()}`;
    writeFileSync(part, filter, { mode: 0o600 });
    renameSync(part, file);
  }
  return file;
}
