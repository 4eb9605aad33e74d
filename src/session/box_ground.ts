// What the boxes of a session are planned from: the home that commands have, their environment, and the paths that they see,
// do not see, or must leave alone.
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { FullBox } from "../core/box.ts";
import type { Protected } from "../core/box_plan.ts";
import { absoluteGlob } from "../core/glob.ts";
import { isWithin } from "../core/path.ts";
import { keyFiles, keySources } from "../core/key_sources.ts";
import {
  gitFoldersOf,
  machineFolder,
  realOr,
  sessionsFolder,
  skillFolders,
  stateFolder,
  userFolder,
} from "../load/locate.ts";
import { childEnvironment, type Environment } from "../sandbox/environment.ts";
import { toolFolders, toolVariables } from "../sandbox/machine_paths.ts";
import type { BoxSite } from "../sandbox/plan_box.ts";
import { type PrivateHome, privateHome } from "../sandbox/private_home.ts";
import { protectedPaths } from "../sandbox/protected_paths.ts";
import type { Walls } from "../sandbox/walls.ts";
import type { Settings } from "./settings.ts";

/** What of the settings boxes are made from. */
export type BoxesOf = Pick<Settings, "policy" | "surroundings">;

export type BoxGround = {
  readonly home: PrivateHome;
  readonly tmp: string;
  /** Folders of tools, by where they were looked for: what is installed while a session runs is there for the next one. */
  readonly tools: Map<string, readonly string[]>;
  close(): void;
};

/** Makes both folders; `close` removes the one for temporary files. Throws where they cannot be made. */
export function layBoxGround({ policy, surroundings }: BoxesOf): BoxGround {
  const state = stateFolder(surroundings);
  mkdirSync(state, { recursive: true, mode: 0o700 });
  const config = surroundings.env["XDG_CONFIG_HOME"] ?? join(surroundings.home, ".config");
  const git = [join(surroundings.home, ".gitconfig"), join(config, "git", "config")];
  const home = privateHome(realpathSync(state), policy.root, git);
  const tmp = realpathSync(mkdtempSync(join(tmpdir(), "writ-")));
  return { home, tmp, tools: new Map(), close: () => rmSync(tmp, { recursive: true, force: true }) };
}

/** Of a command that runs as Writ itself does. */
export function bareEnvironment({ policy, surroundings }: BoxesOf, box: FullBox | undefined): Environment {
  return childEnvironment(surroundings.env, {
    allow: [...policy.shellEnv, ...box?.env ?? []],
    home: surroundings.home,
    tmp: tmpdir(),
    writable: [policy.root],
  });
}

/** Of a command in a box. */
export function environmentOf(settings: BoxesOf, ground: BoxGround, box: FullBox, walls: Walls): Environment {
  const { policy, surroundings } = settings;
  const env = childEnvironment(surroundings.env, {
    allow: [...policy.shellEnv, ...box.env],
    home: ground.home.folder,
    // The same folder, by the name under which everything looks for it.
    tmp: walls.backend === "bwrap" ? "/tmp" : ground.tmp,
    writable: [policy.root, ground.home.folder, ground.tmp],
  });
  return {
    ...toolVariables(toolsOf(settings, ground), realOr(surroundings.home)),
    ...env,
    GIT_CONFIG_GLOBAL: ground.home.gitConfig,
  };
}

function toolsOf({ policy, surroundings }: BoxesOf, { tools }: BoxGround): readonly string[] {
  const home = realOr(surroundings.home);
  const { PATH = "" } = childEnvironment(surroundings.env, {
    allow: policy.shellEnv,
    home: surroundings.home,
    tmp: "/tmp",
    writable: [policy.root],
  });
  const key = JSON.stringify([PATH, home]);
  const found = tools.get(key) ?? toolFolders(PATH, home);
  tools.set(key, found);
  return found;
}

/** What a box is planned from. `protect`: as `protectedNow` found it. */
export function siteOf(settings: BoxesOf, ground: BoxGround, protect: readonly Protected[]): BoxSite {
  const { policy, surroundings } = settings;
  return {
    root: policy.root,
    home: realOr(surroundings.home),
    gitFolders: outerGit(policy.root),
    tools: toolsOf(settings, ground),
    privateHome: ground.home,
    tmp: ground.tmp,
    hide: [
      ...policy.sandbox.hide,
      stateFolder(surroundings),
      userFolder(surroundings),
      machineFolder(surroundings),
      sessionsFolder(surroundings, policy.auditDir),
      ...keyFiles(keySources(policy)),
    ],
    protect,
    limits: policy.sandbox.limits,
    env: surroundings.env,
  };
}

// The folder that all worktrees share holds that of each; what lies in the workspace is there with it.
function outerGit(root: string): readonly string[] {
  const folders = gitFoldersOf(root).filter((folder) => !isWithin(folder, root));
  return folders.filter((folder) => !folders.some((other) => other !== folder && isWithin(folder, other)));
}

/** What commands must not change, of what is there now. */
export function protectedNow(settings: BoxesOf): readonly Protected[] {
  return protectedPaths(protectedSite(settings));
}

function protectedSite({ policy, surroundings }: BoxesOf): Parameters<typeof protectedPaths>[0] {
  const { root } = policy;
  const inRoot = (path: string) => isWithin(path, root) && path !== root;
  return {
    root,
    gitFolders: gitFoldersOf(root),
    named: [
      { path: join(root, ".writ"), folder: true },
      ...[
        ...skillFolders("project", surroundings, root),
        ...policy.skills.sources.flatMap((s) => s.kind === "path" ? [s.path] : []),
      ]
        .filter(inRoot).map((path) => ({ path, folder: true })),
      ...[...policy.instructions, "AGENTS.md"].map((name) => ({ path: join(root, name), folder: false })),
      ...policy.files.filter(({ path }) => inRoot(path)).map(({ path }) => ({ path, folder: false })),
      ...policy.protect.filter((p) => p.literal).flatMap(({ source }) => {
        const made = absoluteGlob(source, { root, home: surroundings.home });
        return "error" in made || !inRoot(made.prefix) ? [] : [{ path: made.prefix, folder: false }];
      }),
    ].filter(({ path }) => dirname(path) !== path),
    isProtected: (path) => policy.protect.some((p) => p.pattern.test(path)),
  };
}
