// Where policy files, skills, state and the workspace are. Everything ambient comes in as a value.
import { lstatSync, realpathSync, type Stats, statSync } from "node:fs";
import { dirname, isAbsolute, join, normalize, parse, resolve } from "node:path";
import type { SkillTier } from "../core/policy.ts";
import type { Loaded, Problem } from "../core/problem.ts";
import { codeOf } from "../core/thrown.ts";
import { readHead } from "./file_head.ts";

export type Surroundings = {
  readonly env: { readonly [name: string]: string | undefined };
  /** `linux`, `darwin`, `win32`; what follows a dash does not count. */
  readonly platform: string;
  readonly cwd: string;
  readonly home: string;
  /** Where the machine layer lies, in place of the system's folder. */
  readonly machineFolder?: string;
  /** Who alone may write machine files, and the topmost folder that is looked at; root and `/` when absent. */
  readonly machineOwner?: { readonly uid: number; readonly top: string };
};
export function machineFolder(at: Surroundings): string {
  if (at.machineFolder !== undefined) return at.machineFolder;
  if (isOn(at, "darwin")) return "/Library/Application Support/Writ";
  return isOn(at, "win32") ? join(at.env["ProgramData"] ?? "C:\\ProgramData", "Writ") : "/etc/writ";
}

/** `$XDG_CONFIG_HOME/writ`; a relative variable does not count, as its specification says. */
export function userFolder(at: Surroundings): string {
  return join(absoluteVariable(at, "XDG_CONFIG_HOME") ?? join(at.home, ".config"), "writ");
}

/** `$XDG_STATE_HOME/writ` or `~/.local/state/writ`. */
export function stateFolder(at: Surroundings): string {
  return join(absoluteVariable(at, "XDG_STATE_HOME") ?? join(at.home, ".local", "state"), "writ");
}

/** Where sessions are recorded: `audit.dir`, else beside the rest of the state. */
export function sessionsFolder(at: Surroundings, auditDir: string | undefined): string {
  return auditDir ?? join(stateFolder(at), "sessions");
}

export function projectPolicy(root: string): string {
  return join(root, ".writ", "policy.yaml");
}

/** Folders in which the skills of a tier lie, in the order in which they are read. */
export function skillFolders(tier: SkillTier, at: Surroundings, root: string): readonly string[] {
  switch (tier) {
    case "builtin":
      return [];
    case "machine":
      return [join(machineFolder(at), "skills")];
    case "user":
      return [join(userFolder(at), "skills"), ...agentFolders.map((name) => join(at.home, name, "skills"))];
    case "project":
      return [".writ", ...agentFolders].map((name) => join(root, name, "skills"));
  }
}
const agentFolders = [".agents", ".claude"];

/** `~` is home, a relative path starts at the folder of the file that holds it. */
export function resolvePath(path: string, base: { readonly file: string; readonly home: string }): string {
  if (path === "~") return base.home;
  if (/^~[/\\]/.test(path)) return normalize(join(base.home, path.slice(2)));
  return isAbsolute(path) ? normalize(path) : normalize(join(dirname(base.file), path));
}

/**
 * Real path of the workspace: the nearest folder at or above `cwd` that holds `.git` (a file in a linked worktree) or
 * `.writ`, else `cwd`. Never the top of the file system, never home.
 */
export function findRoot(cwd: string, home: string): Loaded<string> {
  const start = realOr(cwd);
  const ends = [parse(start).root, realOr(home)];
  for (let folder = start; !ends.includes(folder); folder = dirname(folder)) {
    if (lstat(join(folder, ".git")) !== undefined || lstat(join(folder, ".writ")) !== undefined) {
      return { ok: true, value: folder, problems: [] };
    }
  }
  if (!ends.includes(start)) return { ok: true, value: start, problems: [] };
  return { ok: false, problems: [noWorkspace(start)] };
}

/** A root that the policy names. */
export function checkRoot(path: string, home: string): Loaded<string> {
  const real = realOr(path);
  if (real === parse(real).root || real === realOr(home)) return { ok: false, problems: [noWorkspace(real)] };
  try {
    if (statSync(real).isDirectory()) return { ok: true, value: real, problems: [] };
  } catch {
    // Said below.
  }
  return {
    ok: false,
    problems: [{
      code: "no-workspace",
      severity: "error",
      message: `\`workspace.root\` names \`${path}\`, which is no folder`,
    }],
  };
}

function noWorkspace(path: string): Problem {
  return {
    code: "no-workspace",
    severity: "error",
    message: `\`${path}\` cannot be a workspace: too much lies in it`,
    hint: "go into the folder that you want to work in, or set `workspace.root`",
  };
}

/** Git folders that belong to the root and are not called `.git` or lie elsewhere, as links of worktrees and submodules say. */
export function gitFoldersOf(root: string): readonly string[] {
  const link = readSmall(join(root, ".git"));
  const target = /^gitdir: (.+?)\s*$/m.exec(link ?? "")?.[1];
  if (target === undefined) return [];
  const folder = realOr(resolve(root, target));
  const common = readSmall(join(folder, "commondir"))?.trim();
  return common === undefined ? [folder] : [folder, realOr(resolve(folder, common))];
}

/** Real path, or the path itself where it leads nowhere. */
export function realOr(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}

function readSmall(path: string): string | undefined {
  try {
    return readHead(path, 4096, () => false);
  } catch {
    return undefined;
  }
}

export function lstat(path: string): Stats | undefined {
  try {
    return lstatSync(path);
  } catch {
    return undefined;
  }
}

export function isMissing(error: unknown): boolean {
  const code = codeOf(error);
  return code === "ENOENT" || code === "ENOTDIR";
}

export function isOn(at: Surroundings, system: string): boolean {
  return at.platform.split("-")[0] === system;
}

function absoluteVariable(at: Surroundings, name: string): string | undefined {
  const value = at.env[name];
  return value !== undefined && isAbsolute(value) ? value : undefined;
}
