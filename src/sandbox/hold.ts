// What a box cannot hold against being made, because it is not there, and against being led elsewhere, because it is a link:
// looked at before a call and set right after it. What a command leaves may be a trap for whoever cleans up behind it, so
// every path is walked from the writable folder down, and no link on it is followed.
import {
  chmodSync,
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmdirSync,
  rmSync,
  type Stats,
  symlinkSync,
  unlinkSync,
} from "node:fs";
import { join } from "node:path";
import type { BoxPlan, EnclosedCall } from "../core/box_plan.ts";
import { isWithin } from "../core/path.ts";

export type Held = Pick<EnclosedCall, "leave">;

/** A path by its writable folder, which is no link, and the steps down from there. */
type Spot = { readonly root: string; readonly steps: readonly string[] };
type Link = { readonly spot: Spot; readonly target: string };
type Found = {
  /** Where it is, or would be, in what can be written; absent where the last step is a link, or it leads elsewhere. */
  readonly spot?: Spot;
  readonly exists: boolean;
  /** The path itself, or what is above it. */
  readonly links: readonly Link[];
};

/** Folders that were made to be held, and how many calls need each. */
const made = new Map<string, number>();

/** An empty folder is made where a protected one is missing, and harms nobody; an empty file could mean something. */
export function hold(plan: BoxPlan): Held {
  const folders: Spot[] = [];
  const missing: Spot[] = [];
  const links = new Map<string, Link>();
  for (const { path, folder } of plan.protect) {
    const found = look(path, plan);
    for (const link of found.links) links.set(shown(link.spot), link);
    const { spot } = found;
    if (spot === undefined) continue;
    if (made.has(shown(spot))) folders.push(spot);
    else if (!found.exists) (folder && makeFolder(spot) ? folders : missing).push(spot);
  }
  for (const spot of folders) made.set(shown(spot), (made.get(shown(spot)) ?? 0) + 1);
  return {
    leave(files) {
      // What was made last lies in what was made before.
      for (const spot of [...folders].reverse()) giveUp(spot);
      if (files === "keep") return [];
      return [...[...links.values()].flatMap(restore), ...missing.flatMap(remove)];
    },
  };
}

const mostLinks = 20;

function look(path: string, plan: BoxPlan, links: readonly Link[] = []): Found {
  const spot = spotOf(path, plan);
  if (spot === undefined) return { exists: false, links };
  for (let depth = 1; depth <= spot.steps.length; depth++) {
    const here: Spot = { root: spot.root, steps: spot.steps.slice(0, depth) };
    const found = statOf(shown(here));
    if (found === undefined) return { spot, exists: false, links };
    if (!found.isSymbolicLink()) continue;
    const all = [...links, { spot: here, target: readlinkSync(shown(here)) }];
    const real = realOf(shown(here));
    // What the path itself leads to is protected by a path of its own.
    return real === undefined || all.length > mostLinks || depth === spot.steps.length
      ? { exists: false, links: all }
      : look(join(real, ...spot.steps.slice(depth)), plan, all);
  }
  return { spot, exists: true, links };
}

// From the outermost folder: of those in between none can be trusted to be what it was.
function spotOf(path: string, plan: BoxPlan): Spot | undefined {
  const root =
    plan.write.filter((folder) => folder !== path && isWithin(path, folder) && realOf(folder) === folder)
      .sort((a, b) => a.length - b.length)[0];
  if (root === undefined) return undefined;
  return { root, steps: path.slice(root.length).split("/").filter((step) => step !== "") };
}

function shown({ root, steps }: Spot): string {
  return join(root, ...steps);
}

function statOf(path: string): Stats | undefined {
  try {
    return lstatSync(path);
  } catch {
    return undefined;
  }
}

function realOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

function makeFolder(spot: Spot): boolean {
  return inParent(spot, (path) => {
    try {
      mkdirSync(path);
      return true;
    } catch {
      return false;
    }
  }) === true;
}

function giveUp(spot: Spot): void {
  const left = (made.get(shown(spot)) ?? 1) - 1;
  if (left > 0) return void made.set(shown(spot), left);
  made.delete(shown(spot));
  inParent(spot, (path) => {
    try {
      rmdirSync(path);
    } catch {
      // Somebody outside has put something in.
    }
  });
}

// A link that was put above the protected path, to have it exist elsewhere, goes itself; what it leads to stays as it is.
function remove(spot: Spot): readonly string[] {
  for (let depth = 1; depth <= spot.steps.length; depth++) {
    const here: Spot = { root: spot.root, steps: spot.steps.slice(0, depth) };
    const gone = inParent(here, (path) => {
      const found = statOf(path);
      if (found === undefined || depth < spot.steps.length && !found.isSymbolicLink()) return false;
      removeAll(path);
      return true;
    });
    if (gone === undefined) return [];
    if (gone) return [shown(here)];
  }
  return [];
}

function restore({ spot, target }: Link): readonly string[] {
  for (let depth = 1; depth < spot.steps.length; depth++) {
    inParent({ root: spot.root, steps: spot.steps.slice(0, depth) }, (path) => {
      if (statOf(path)?.isDirectory() === true) return;
      removeAll(path);
      mkdirSync(path);
    });
  }
  const changed = inParent(spot, (path) => {
    const found = statOf(path);
    if (found?.isSymbolicLink() === true && readlinkSync(path) === target) return false;
    removeAll(path);
    symlinkSync(target, path);
    return true;
  });
  return changed === true ? [shown(spot)] : [];
}

const asFolder = constants.O_RDONLY | (constants.O_DIRECTORY ?? 0) | (constants.O_NOFOLLOW ?? 0);
const pathOnly = 0o10000000;

/**
 * What `use` gives for the path of the last step below its opened folder, which nothing can swap for another one; undefined
 * where one of the steps before is not there or no folder.
 */
function inParent<T>({ root, steps }: Spot, use: (path: string) => T): T | undefined {
  let open = openFolder(root);
  for (const step of steps.slice(0, -1)) {
    if (open === undefined) return undefined;
    const next = openFolder(join(within(open), step));
    closeSync(open);
    open = next;
  }
  if (open === undefined) return undefined;
  try {
    return use(join(within(open), steps.at(-1) ?? ""));
  } finally {
    closeSync(open);
  }
}

function within(folder: number): string {
  return `/proc/self/fd/${folder}`;
}

function openFolder(path: string): number | undefined {
  try {
    return openSync(path, asFolder | pathOnly);
  } catch {
    return undefined;
  }
}

function removeAll(path: string): void {
  try {
    if (statOf(path)?.isDirectory() === true) rmSync(path, { recursive: true });
    else unlinkSync(path);
  } catch {
    if (statOf(path) === undefined) return;
    // Folders that their owner may not write to.
    openUp(path);
    rmSync(path, { recursive: true, force: true });
  }
}

function openUp(path: string): void {
  const folder = openFolder(path);
  if (folder === undefined) return;
  try {
    chmodSync(within(folder), 0o700);
    for (const entry of readdirSync(within(folder), { withFileTypes: true })) {
      if (entry.isDirectory()) openUp(join(within(folder), entry.name));
    }
  } finally {
    closeSync(folder);
  }
}
