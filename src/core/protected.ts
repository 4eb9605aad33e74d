// What no wide rule may write, whatever the policy says: the files that decide what runs next.
import { uniqueBy } from "./collection.ts";
import { escapeGlob } from "./glob.ts";

/** Absolute real paths, except `instructions`: names or paths relative to the root. */
export type ProtectedFacts = {
  readonly root: string;
  readonly policyFiles: readonly string[];
  readonly instructions: readonly string[];
  readonly skillFolders: readonly string[];
  /** Git folders of the workspace that are not called `.git`. */
  readonly gitFolders: readonly string[];
  /** Folders and files of Writ itself: state, settings, keys. */
  readonly own: readonly string[];
};

export type ProtectedEntry = {
  /** Absolute glob, to be matched without regard to case. */
  readonly glob: string;
  /** For people. */
  readonly shown: string;
  /** Lower-case text that every covered path holds. */
  readonly holds: string;
};

const gitInside = ["hooks/**", "{config,config.worktree,commondir}", "{info,modules,worktrees}/**"];

/** The embedded list; it unites with what the policy protects. Without duplicates, in a fixed order. */
export function protectedEntries(facts: ProtectedFacts): readonly ProtectedEntry[] {
  const root = escapeGlob(facts.root);
  const entries: ProtectedEntry[] = [
    { glob: "/**/.writ/**", shown: ".writ/**", holds: ".writ" },
    // In a linked worktree a file of this name says where the git folder is.
    { glob: "/**/.git", shown: ".git", holds: ".git" },
    ...gitInside.map((inside) => ({ glob: `/**/*.git/${inside}`, shown: `.git/${inside}`, holds: ".git/" })),
    ...facts.gitFolders.flatMap((folder) => gitInside.map((inside) => at(folder, `/${inside}`))),
    ...facts.policyFiles.map((file) => at(file, "")),
    ...facts.instructions.map((name) => ({
      glob: name.includes("/") ? `${root}/${escapeGlob(name)}` : `${root}/**/${escapeGlob(name)}`,
      shown: name,
      holds: name.slice(name.lastIndexOf("/") + 1).toLowerCase(),
    })),
    ...facts.skillFolders.map((folder) => at(folder, "/**")),
    ...facts.own.map((path) => at(path, "/**")),
  ];
  return uniqueBy(entries, (e) => e.glob);
}

function at(path: string, inside: string): ProtectedEntry {
  return { glob: escapeGlob(path) + inside, shown: path + inside, holds: path.toLowerCase() };
}
