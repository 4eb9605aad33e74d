// A program's call put into a box, by what this machine can build one with.
import { createHash, randomUUID } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { isWithin } from "../core/path.ts";
import type { BoxPlan, Walls } from "../core/box_plan.ts";
import { bubblewrapArguments } from "./bubblewrap.ts";
import { seccompProgram } from "./seccomp.ts";

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
   * cannot be held against being made, and protected links that were changed are set right; answers their paths. `keep`:
   * nothing of that is done.
   */
  leave(files: "remove" | "keep"): readonly string[];
};

export function enclose(walls: Walls, plan: BoxPlan, call: Call): Enclosed {
  const held = hold(plan);
  if (walls.backend === "landlock") {
    const [program, ...first] = walls.self;
    const argv = [program, ...first, "__sandbox", JSON.stringify(plan), call.cwd, call.program, ...call.argv];
    // Not there where the command is to run: a runtime may read settings from its current folder.
    return { program, argv, cwd: "/", files: [], leave: held.leave };
  }
  const argv = ["bwrap", ...bubblewrapArguments(plan, call.cwd), ...withLimits(plan, call)];
  return { program: walls.bwrap, argv, cwd: "/", files: [filterFile(walls, plan)], leave: held.leave };
}

/** Folders that were made to be held, and how many calls need each. */
const made = new Map<string, number>();

// An empty folder is made and harms nobody; an empty file could mean something.
function hold(plan: BoxPlan): Pick<Enclosed, "leave"> {
  const reachable = plan.protect.filter(({ path }) => plan.write.some((root) => isWithin(path, root)));
  const folders: string[] = [];
  const missing: string[] = [];
  const links: { readonly path: string; readonly target: string }[] = [];
  for (const { path, folder } of reachable) {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found?.isSymbolicLink() === true) links.push({ path, target: readlinkSync(path) });
    else if (made.has(path)) folders.push(path);
    else if (found === undefined && folder && makeFolder(path)) folders.push(path);
    else if (found === undefined) missing.push(path);
  }
  for (const path of folders) made.set(path, (made.get(path) ?? 0) + 1);
  return {
    leave(files) {
      // What was made last lies in what was made before.
      for (const path of [...folders].reverse()) giveUp(path);
      return files === "keep" ? [] : [...missing.filter(remove), ...links.filter(restore).map((l) => l.path)];
    },
  };
}

function makeFolder(path: string): boolean {
  try {
    mkdirSync(path);
    return true;
  } catch {
    return false;
  }
}

function giveUp(path: string): void {
  const left = (made.get(path) ?? 1) - 1;
  if (left > 0) return void made.set(path, left);
  made.delete(path);
  try {
    rmdirSync(path);
  } catch {
    // Somebody outside has put something in.
  }
}

function remove(path: string): boolean {
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return false;
  rmSync(path, { recursive: true, force: true });
  return true;
}

function restore({ path, target }: { readonly path: string; readonly target: string }): boolean {
  try {
    if (readlinkSync(path) === target) return false;
  } catch {
    // Another thing, or nothing.
  }
  rmSync(path, { recursive: true, force: true });
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path);
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
