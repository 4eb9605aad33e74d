// What this machine can build a box with: looked for once, tried for real, and said in words when there is nothing.
import { accessSync, constants, realpathSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { isWithin } from "../core/path.ts";
import { messageOf } from "../core/thrown.ts";
import { landlockAbi, oldestAbi, signalsAbi } from "./landlock.ts";
import { keepInheritedFiles, openNative } from "./native.ts";
import { type Machine, machineOf } from "./seccomp.ts";
import { run } from "./subprocess.ts";
import type { Walls } from "./walls.ts";

export type WallsWanted = {
  readonly backend: "auto" | "bwrap" | "landlock";
  /** Private to the user, not inside a workspace. */
  readonly folder: string;
  readonly self: readonly [string, ...string[]];
  /** Folders that a command may write to: a program in there is not one that the operator installed. */
  readonly writable: readonly string[];
};
export type WallsFound =
  /** `passedOver`: why what would have been taken before is not. */
  | {
    readonly ok: true;
    readonly walls: Walls;
    readonly passedOver: readonly string[];
    readonly remedy?: string;
  }
  /** Why there is none, and what to install or change: `remedy` is part of the message. */
  | {
    readonly ok: false;
    readonly message: string;
    readonly passedOver: readonly string[];
    readonly remedy?: string;
  };

const programFolders = ["/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin", "/run/current-system/sw/bin"];
const remedies = {
  install: "install bubblewrap (`apt install bubblewrap`, `dnf install bubblewrap`, `apk add bubblewrap`)",
  allow:
    "let programs make namespaces of users (`sysctl kernel.unprivileged_userns_clone=1`, on Ubuntu also " +
    "`sysctl kernel.apparmor_restrict_unprivileged_userns=0`; a container needs that right too)",
} as const;

/** Bubblewrap where it is wanted and installed: nothing has shown yet that it works. A trial of boxes by it shows that as well. */
export async function likelyWalls(wanted: WallsWanted): Promise<Walls | undefined> {
  const machine = machineOf(process.arch);
  if (process.platform !== "linux" || machine === undefined || wanted.backend === "landlock") {
    return undefined;
  }
  const bwrap = findBubblewrap(wanted.writable);
  if (bwrap === undefined) return undefined;
  await keepInheritedFiles();
  return { backend: "bwrap", machine, bwrap, folder: wanted.folder };
}

/** What was tried and works, or why there is none. */
export async function findWalls(wanted: WallsWanted): Promise<WallsFound> {
  const machine = machineOf(process.arch);
  if (process.platform !== "linux" || machine === undefined) {
    const message = `this version has no sandbox for ${process.platform} on ${process.arch}`;
    return { ok: false, message, passedOver: [] };
  }
  const reasons: string[] = [];
  const likely = await likelyWalls(wanted);
  const remedy = likely?.backend === "bwrap" ? remedies.allow : remedies.install;
  if (likely?.backend === "bwrap") {
    const fault = await bubblewrapFault(likely.bwrap);
    if (fault === undefined) return { ok: true, walls: likely, passedOver: [] };
    reasons.push(`bubblewrap: ${fault}`);
  } else if (wanted.backend !== "landlock") {
    reasons.push("bubblewrap: it is not installed");
  }
  if (wanted.backend !== "bwrap") {
    const fault = await landlockFault(machine);
    if (typeof fault === "number") {
      const walls: Walls = { backend: "landlock", abi: fault, self: wanted.self };
      const better = wanted.backend === "landlock" ? {} : { remedy };
      return { ok: true, walls, passedOver: reasons, ...better };
    }
    reasons.push(`Landlock: ${fault}`);
  }
  return {
    ok: false,
    message: `there is no sandbox on this machine (${reasons.join("; ")}); ${remedy}`,
    passedOver: reasons,
    remedy,
  };
}

/** What boxes by these walls lack beside those by bubblewrap, in words. */
export function lacksOf(walls: Walls): readonly string[] {
  if (walls.backend === "bwrap") return [];
  return [
    ...(walls.abi < signalsAbi ? ["signals to other processes are not held back"] : []),
    'a git folder is read-only as a whole: `git commit` needs a box with `mode: "off"`',
    "a folder that holds something protected, such as the workspace's own, takes no new entries",
    "without a network there are no sockets; terminals and shared memory there are none",
    "modes, times, owners and attributes of files that you own are not held",
    "a box cannot name sockets",
  ];
}

/** The version, or what is wrong with it. */
async function landlockFault(machine: Machine): Promise<number | string> {
  try {
    await keepInheritedFiles();
    const abi = landlockAbi(await openNative(), machine);
    if (abi >= oldestAbi) return abi;
    return abi === 0
      ? "the kernel does not offer it"
      : `the kernel has version ${abi}, and version ${oldestAbi} (Linux 6.2) is needed`;
  } catch (error) {
    return messageOf(error);
  }
}

function findBubblewrap(writable: readonly string[]): string | undefined {
  for (const folder of programFolders) {
    const path = join(folder, "bwrap");
    try {
      accessSync(path, constants.X_OK);
      const real = realpathSync(path);
      if (!writable.some((root) => isWithin(real, root))) return real;
    } catch {
      continue;
    }
  }
  return undefined;
}

// It may be there and still be of no use: no user namespaces, or a container in which no `/proc` can be mounted.
async function bubblewrapFault(bwrap: string): Promise<string | undefined> {
  const trial = ["--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--ro-bind", "/", "/"];
  const tried = await run([bwrap, ...trial, "--proc", "/proc", "--dev", "/dev", "/bin/true"], {
    cwd: "/",
    env: {},
    timeoutMs: 5000,
    maxOutput: 2000,
  });
  if (tried.failure !== undefined) return tried.failure.message;
  if (tried.timedOut) return "it does not work here (it took too long)";
  if (tried.exit === 0) return undefined;
  const said = tried.stderr.trim().split("\n").at(-1) ?? "";
  return `it does not work here (${said === "" ? `exit ${tried.exit}` : said})`;
}
