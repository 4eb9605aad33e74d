// A program's call put into a box, by what this machine can build one with.
import { createHash, randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Box, BoxPlan, EnclosedCall, ProgramCall } from "../core/box_plan.ts";
import { bubblewrapArguments } from "./bubblewrap.ts";
import { hold } from "./hold.ts";
import { type Machine, seccompProgram } from "./seccomp.ts";

/** What builds boxes. `folder` is private to the user; `self` starts Writ itself: program and first arguments. */
export type Walls =
  | {
    readonly backend: "bwrap";
    readonly machine: Machine;
    readonly bwrap: string;
    readonly folder: string;
  }
  | { readonly backend: "landlock"; readonly abi: number; readonly self: readonly [string, ...string[]] };

/** A box of that plan. */
export function boxWith(walls: Walls, plan: BoxPlan): Box {
  return { plan, enclose: (call) => enclose(walls, plan, call) };
}

function enclose(walls: Walls, plan: BoxPlan, call: ProgramCall): EnclosedCall {
  const held = hold(plan);
  if (walls.backend === "landlock") {
    const [program, ...first] = walls.self;
    // Without processes of its own, the kernel counts all those of the user.
    const limited = withLimits(plan.processes + threadsNow(), plan.memory, call);
    const argv = [program, ...first, "__sandbox", JSON.stringify(plan), call.cwd, limited[0], ...limited];
    // Not there where the command is to run: a runtime may read settings from its current folder.
    return { program, argv, cwd: "/", files: [], leave: held.leave };
  }
  const limited = withLimits(plan.processes, plan.memory, call);
  const argv = ["bwrap", ...bubblewrapArguments(plan, call.cwd), ...limited];
  return { program: walls.bwrap, argv, cwd: "/", files: [filterFile(walls, plan)], leave: held.leave };
}

// Set inside, so that they do not bind what builds the box: a runtime that may no longer have memory ends itself. What is
// refused there is bound more tightly already.
function withLimits(processes: number, memory: number, call: ProgramCall): readonly [string, ...string[]] {
  const script = `{ ulimit -c 0; ulimit -u ${processes} || ulimit -p ${processes}
ulimit -d ${Math.floor(memory / 1024)}; } 2>/dev/null
exec "$0" "$@"`;
  return ["/bin/sh", "-c", script, call.program, ...call.argv.slice(1)];
}

function threadsNow(): number {
  try {
    return Number(readFileSync("/proc/loadavg", "latin1").split(" ")[3]?.split("/")[1]) || 0;
  } catch {
    return 0;
  }
}

// Named by its content: whoever finds it finds the right one, and two who write it write the same.
function filterFile(walls: Extract<Walls, { backend: "bwrap" }>, plan: BoxPlan): string {
  // With a network of its own no socket of the host is in sight; on the host's, abstract ones would be.
  const unix = plan.network === "none" || plan.sockets.length > 0;
  const filter = seccompProgram(walls.machine, { unix, inet: true, apart: true });
  const file = join(walls.folder, `${createHash("sha256").update(filter).digest("hex").slice(0, 16)}.bpf`);
  if (!existsSync(file)) {
    mkdirSync(walls.folder, { recursive: true, mode: 0o700 });
    const part = `${file}.${randomUUID()}`;
    writeFileSync(part, filter, { mode: 0o600 });
    renameSync(part, file);
  }
  return file;
}
