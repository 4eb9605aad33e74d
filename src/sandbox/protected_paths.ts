// What in a workspace is never written by a command: files that decide what runs next, as paths that a box can hold.
import {
  type Dirent,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  realpathSync,
  type Stats,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Protected } from "../core/box_plan.ts";
import { isWithin } from "../core/path.ts";

export type ProtectedSite = {
  /** Real path. */
  readonly root: string;
  /** Git folders of the root that are not its `.git`: that of a linked worktree, and what it shares with the others. */
  readonly gitFolders: readonly string[];
  /** Paths below the root that are protected whether they exist or not. */
  readonly named: readonly Protected[];
  /** Whether the policy protects this absolute path. */
  isProtected(path: string): boolean;
};

/** How far nested repositories and files are looked for. */
const most = { folders: 3000, depth: 10 } as const;
/** How far second names of protected files are looked for. */
const mostTwins = 20_000;
const passedOver = new Set(["node_modules", ".venv", "venv", "__pycache__", ".cache", "target"]);

/**
 * Folders and files, links with where they lead to. What comes to exist later at other places than the named ones is not among
 * them.
 */
export function protectedPaths(site: ProtectedSite): readonly Protected[] {
  const found: Protected[] = [
    ...site.named,
    ...site.gitFolders.flatMap((folder) => gitPaths(folder, site)),
    ...nested(site),
  ];
  const links = found.flatMap(({ path, folder }) => {
    if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return [];
    try {
      return [{ path: realpathSync(path), folder }];
    } catch {
      return [];
    }
  });
  const all = [...found, ...links];
  return [...new Map([...all, ...twins(all, site.root)].map((p) => [p.path, p])).values()];
}

// A protected file that has a second name can be written by that one. Few have, and only then is it looked for.
function twins(found: readonly Protected[], root: string): readonly Protected[] {
  const wanted = new Set<string>();
  for (const { path } of found) {
    eachFile(path, mostTwins, (_, { nlink, dev, ino }) => nlink > 1 && wanted.add(`${dev}:${ino}`));
  }
  const others: Protected[] = [];
  if (wanted.size > 0) {
    eachFile(root, mostTwins, (path, { nlink, dev, ino }) => {
      if (nlink > 1 && wanted.has(`${dev}:${ino}`)) others.push({ path, folder: false });
    });
  }
  return others;
}

function eachFile(start: string, folders: number, use: (path: string, stats: Stats) => void): void {
  let left = folders;
  const visit = (path: string) => {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats?.isFile() === true) use(path, stats);
    if (stats?.isDirectory() !== true || left-- <= 0) return;
    for (const entry of entriesOf(path)) {
      if (entry.isFile() || entry.isDirectory()) visit(join(path, entry.name));
    }
  };
  visit(start);
}

function nested(site: ProtectedSite): readonly Protected[] {
  const found: Protected[] = [];
  let left: number = most.folders;
  const visit = (folder: string, depth: number) => {
    if (left-- <= 0) return;
    const below: string[] = [];
    for (const entry of entriesOf(folder)) {
      const path = join(folder, entry.name);
      if (entry.name === ".git" || entry.name.endsWith(".git")) {
        if (entry.isDirectory()) found.push(...gitPaths(path, site));
        else found.push({ path, folder: false });
      } else if (entry.name === ".writ") {
        found.push({ path, folder: true });
      } else if (entry.isDirectory()) {
        if (!passedOver.has(entry.name)) below.push(path);
      } else if (site.isProtected(path)) {
        found.push({ path, folder: false });
      }
    }
    if (depth < most.depth) { for (const path of below) visit(path, depth + 1); }
  };
  visit(site.root, 0);
  return found;
}

// Of a linked worktree's own folder only what says where the rest is; of the common one also what is the main worktree's.
function gitPaths(git: string, site: ProtectedSite): readonly Protected[] {
  const file = (name: string): Protected => ({ path: join(git, name), folder: false });
  const folder = (name: string): Protected => ({ path: join(git, name), folder: true });
  if (existsSync(join(git, "commondir")) && site.gitFolders.includes(git)) {
    return [file("commondir"), file("gitdir"), file("config.worktree")];
  }
  if (!existsSync(join(git, "HEAD"))) return [];
  return [
    folder("hooks"),
    file("config"),
    file("config.worktree"),
    file("commondir"),
    folder("info"),
    folder("modules"),
    ...(site.gitFolders.includes(git) && !isWithin(git, join(site.root, ".git"))
      ? [file("HEAD"), file("index")]
      : []),
    ...worktreesOf(git).filter((entry) => !isOurs(entry, site)).map((path) => ({ path, folder: true })),
    ...worktreesOf(git).filter((entry) => isOurs(entry, site)).flatMap((entry) =>
      ["commondir", "gitdir", "config.worktree"].map((name) => ({ path: join(entry, name), folder: false }))
    ),
  ];
}

function worktreesOf(git: string): readonly string[] {
  const folder = join(git, "worktrees");
  return entriesOf(folder).filter((e) => e.isDirectory()).map((e) => join(folder, e.name));
}

// A worktree whose files lie in the workspace is worked on from here.
function isOurs(entry: string, { root, gitFolders }: ProtectedSite): boolean {
  if (gitFolders.includes(entry)) return true;
  try {
    const link = resolve(entry, readFileSync(join(entry, "gitdir"), "utf8").trim());
    return isWithin(realpathSync(dirname(link)), root);
  } catch {
    return false;
  }
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}
