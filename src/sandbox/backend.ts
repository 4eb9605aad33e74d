// What this machine can build a box with: looked for once, tried for real, and said in words when there is nothing.
import { accessSync, constants, realpathSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { isWithin } from "../core/path.ts";
import { messageOf } from "../core/thrown.ts";
import { landlockAbi, oldestAbi } from "./landlock.ts";
import { keepInheritedFiles, openNative } from "./native.ts";
import { machineOf } from "./seccomp.ts";
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
  | { readonly ok: true; readonly walls: Walls }
  /** Why there is none, and what to install or change. */
  | { readonly ok: false; readonly message: string };

const programFolders = ["/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin", "/run/current-system/sw/bin"];

export async function findWalls(wanted: WallsWanted): Promise<WallsFound> {
  const machine = machineOf(process.arch);
  if (process.platform !== "linux" || machine === undefined) {
    return { ok: false, message: `this version has no sandbox for ${process.platform} on ${process.arch}` };
  }
  await keepInheritedFiles();
  const reasons: string[] = [];
  if (wanted.backend !== "landlock") {
    const bwrap = findBubblewrap(wanted.writable);
    const fault = bwrap === undefined ? "it is not installed" : await bubblewrapFault(bwrap);
    if (bwrap !== undefined && fault === undefined) {
      return { ok: true, walls: { backend: "bwrap", machine, bwrap, folder: wanted.folder } };
    }
    reasons.push(`bubblewrap: ${fault}`);
  }
  if (wanted.backend !== "bwrap") {
    try {
      const abi = landlockAbi(await openNative(), machine);
      if (abi >= oldestAbi) return { ok: true, walls: { backend: "landlock", abi, self: wanted.self } };
      reasons.push(
        abi === 0
          ? "Landlock: the kernel does not offer it"
          : `Landlock: the kernel has version ${abi}, and version ${oldestAbi} (Linux 6.2) is needed`,
      );
    } catch (error) {
      reasons.push(`Landlock: ${messageOf(error)}`);
    }
  }
  return {
    ok: false,
    message: `there is no sandbox on this machine (${reasons.join("; ")}); install bubblewrap ` +
      "(`apt install bubblewrap`, `dnf install bubblewrap`, `apk add bubblewrap`)",
  };
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
