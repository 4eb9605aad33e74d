// A box by bubblewrap: the machine as the process sees it, built from nothing, as arguments of bwrap(1).
import { lstatSync, readlinkSync } from "node:fs";
import { dirname } from "node:path";
import { isWithin } from "../core/path.ts";
import type { BoxPlan } from "./box_plan.ts";

/** Number under which bwrap finds the filter of system calls among its open files. */
export const filterFd = 3;

/**
 * Arguments for bwrap up to the program's own. Later ones lie over earlier ones, so what is readable comes first, then
 * what is writable, then what is carved out of it. Only a path that exists can be held against writing.
 */
export function bubblewrapArguments(plan: BoxPlan, cwd: string): readonly string[] {
  const mounts = [
    ...plan.read.map((path): Mount => ({ path, how: "read" })),
    ...[...plan.write, plan.tmp].map((path): Mount => ({ path, how: "write" })),
    ...plan.sockets.map((path): Mount => ({ path, how: "write" })),
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
    "--bind",
    plan.tmp,
    "/tmp",
    ...mounts.flatMap(mountArguments),
    ...plan.hide.flatMap(hideArguments),
    ...protectArguments(plan),
    "--seccomp",
    String(filterFd),
    "--chdir",
    cwd,
    "--",
  ];
}

type Mount = { readonly path: string; readonly how: "read" | "write" };

// A folder before what is below it; of one path the wider right last.
function byDepth(a: Mount, b: Mount): number {
  const depth = a.path.split("/").length - b.path.split("/").length;
  return depth !== 0 ? depth : a.path !== b.path ? (a.path < b.path ? -1 : 1) : a.how === "read" ? -1 : 1;
}

// `/bin` is a link to `usr/bin` on most machines: the same link is made inside.
function mountArguments({ path, how }: Mount): readonly string[] {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return [];
  if (found.isSymbolicLink()) return ["--symlink", readlinkSync(path), path];
  return [how === "read" ? "--ro-bind" : "--bind", path, path];
}

function hideArguments(path: string): readonly string[] {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return [];
  return found.isDirectory() ? ["--tmpfs", path, "--remount-ro", path] : ["--ro-bind", "/dev/null", path];
}

// A folder above a protected path could be renamed away, and another one put in its place; a mount cannot.
function protectArguments(plan: BoxPlan): readonly string[] {
  const carved = plan.protect.map((p) => p.path).filter((path) =>
    exists(path) && rootOf(path, plan) !== undefined
  );
  const above = new Set(carved.flatMap((path) => foldersAbove(path, rootOf(path, plan) ?? path)));
  return [
    ...[...above].sort(byLength).flatMap((path) => ["--bind", path, path]),
    ...[...new Set(carved)].sort(byLength).flatMap((path) => ["--ro-bind", path, path]),
  ];
}

function rootOf(path: string, plan: BoxPlan): string | undefined {
  return plan.write.find((root) => root !== path && isWithin(path, root));
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
