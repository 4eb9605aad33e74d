// A box by bubblewrap: the machine as the process sees it, built from nothing, as arguments of bwrap(1).
import { lstatSync, readlinkSync, realpathSync } from "node:fs";
import { dirname } from "node:path";
import { isWithin } from "../core/path.ts";
import type { BoxPlan } from "../core/box_plan.ts";
import { hostSockets } from "./host_sockets.ts";

/** Number under which bwrap finds the filter of system calls among its open files. */
export const filterFd = 3;

/** Each is the session's own folder inside. */
const tmpFolders = ["/tmp", "/var/tmp"] as const;

/**
 * Arguments for bwrap up to the program's own. Later ones lie over earlier ones, so what is deeper comes later, and then
 * what is never written. Only a path that exists can be held against writing.
 */
export function bubblewrapArguments(plan: BoxPlan, cwd: string): readonly string[] {
  const open = [...plan.read, ...plan.write, ...plan.sockets];
  const foreign = hostSockets(open).filter((path) => !plan.sockets.includes(path));
  const hidden = [
    ...plan.hide.filter((path) => open.some((root) => isWithin(path, root)) && !isLink(path)),
    ...foreign,
  ];
  const mounts = [
    ...plan.read.map((path): Mount => ({ path, how: "read" })),
    ...plan.write.map((path): Mount => ({ path, how: isProtected(path, plan) ? "read" : "write" })),
    ...[plan.tmp, ...plan.sockets].map((path): Mount => ({ path, how: "write" })),
    ...heldMounts(plan, hidden),
    ...hidden.map((path): Mount => ({ path, how: "hide" })),
  ].sort(byDepth);
  return [
    "--die-with-parent",
    "--new-session",
    "--unshare-all",
    ...(plan.network === "all" ? ["--share-net"] : []),
    "--cap-drop",
    "ALL",
    "--proc",
    "/proc",
    // Settings of the kernel belong to root by their mode alone, which a root without any capability still is.
    "--remount-ro",
    "/proc",
    "--dev",
    "/dev",
    "--tmpfs",
    "/dev/shm",
    "--remount-ro",
    "/dev",
    "--tmpfs",
    "/run",
    ...tmpFolders.flatMap((path) => ["--bind", plan.tmp, path]),
    ...mounts.filter((mount) => !isSeen(mount, mounts)).flatMap(mountArguments),
    // Only now: what lies deeper needed a place to be put.
    ...[...hidden.filter(isFolder), "/"].flatMap((path) => ["--remount-ro", path]),
    "--seccomp",
    String(filterFd),
    "--chdir",
    cwd,
    "--",
  ];
}

type Mount = { readonly path: string; readonly how: "read" | "write" | "hold" | "hide" };

const strength = { read: 0, write: 1, hold: 2, hide: 3 } as const;

// A folder before what is below it, which it would cover; of one path the wider right, then what holds it, and what hides
// it last.
function byDepth(a: Mount, b: Mount): number {
  const depth = a.path.split("/").length - b.path.split("/").length;
  if (depth !== 0) return depth;
  return a.path !== b.path ? (a.path < b.path ? -1 : 1) : strength[a.how] - strength[b.how];
}

// A path through a link that is there with the folder around it is followed inside as it is outside.
function isSeen({ path, how }: Mount, mounts: readonly Mount[]): boolean {
  if (how === "hide" || !mounts.some((m) => m.how !== "hide" && m.path !== path && isWithin(path, m.path))) {
    return false;
  }
  try {
    return realpathSync(path) !== path;
  } catch {
    return false;
  }
}

// `/bin` is a link to `usr/bin` on most machines: the same link is made inside.
function mountArguments({ path, how }: Mount): readonly string[] {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return [];
  if (how === "hide") return found.isDirectory() ? ["--tmpfs", path] : ["--ro-bind", "/dev/null", path];
  if (found.isSymbolicLink()) return linkArguments(path);
  return [how === "write" ? "--bind" : "--ro-bind", path, path];
}

// What is made in the folder for temporary files stays there, where a second link could not be made.
function linkArguments(path: string): readonly string[] {
  if (!tmpFolders.some((folder) => isWithin(path, folder))) return ["--symlink", readlinkSync(path), path];
  try {
    return ["--ro-bind", realpathSync(path), path];
  } catch {
    return [];
  }
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}

function isFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function isProtected(path: string, plan: BoxPlan): boolean {
  return plan.protect.some((p) => isWithin(path, p.path));
}

// A folder above what is protected or hidden could be renamed away, and another one put in its place; a mount cannot.
function heldMounts(plan: BoxPlan, hidden: readonly string[]): readonly Mount[] {
  const inWritable = (path: string) => exists(path) && rootOf(path, plan) !== undefined;
  // What lies in something hidden is out of reach, save for what is opened again below that.
  const carved = plan.protect.map((p) => p.path).filter((path) =>
    inWritable(path) &&
    !hidden.some((h) => isWithin(path, h) && !plan.write.some((w) => isWithin(path, w) && isWithin(w, h)))
  );
  const held = [...carved, ...hidden.filter(inWritable)];
  const above = new Set(held.flatMap((path) => foldersAbove(path, rootOf(path, plan) ?? path)));
  return [
    ...[...above].map((path): Mount => ({ path, how: "write" })),
    ...[...new Set(carved)].map((path): Mount => ({ path, how: "hold" })),
  ];
}

function rootOf(path: string, plan: BoxPlan): string | undefined {
  return plan.write.filter((root) => root !== path && isWithin(path, root)).sort(byLength).at(-1);
}

function foldersAbove(path: string, root: string): readonly string[] {
  const above: string[] = [];
  for (let folder = dirname(path); folder !== root && isWithin(folder, root); folder = dirname(folder)) {
    above.push(folder);
  }
  return above;
}

function byLength(a: string, b: string): number {
  return a.length - b.length;
}

// Links are not followed: bound over, a link would be what it leads to.
function exists(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found !== undefined && !found.isSymbolicLink();
}
