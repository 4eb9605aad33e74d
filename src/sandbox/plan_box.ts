// The box of a policy, on this machine: names of places become paths, and what is never seen or written is added.
import { existsSync, readdirSync, realpathSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { BoxPlace, FullBox } from "../core/box.ts";
import type { BoxPlan, Protected } from "../core/box_plan.ts";
import { isWithin } from "../core/path.ts";
import { homeSecretNames, systemFolders, systemSecrets } from "./machine_paths.ts";

export type BoxSite = {
  /** Real path of the workspace. */
  readonly root: string;
  /** The user's own home. */
  readonly home: string;
  /** Git folders of the workspace that lie outside of it. */
  readonly gitFolders: readonly string[];
  readonly tools: readonly string[];
  readonly privateHome: { readonly folder: string; readonly gitConfig: string };
  readonly tmp: string;
  /** What the policy hides, and what is Writ's own: state, settings, keys. */
  readonly hide: readonly string[];
  readonly protect: readonly Protected[];
  readonly limits: { readonly processes: number; readonly memory: number };
  readonly env: { readonly [name: string]: string | undefined };
};

/** `more`: what this one program may read beside what its box holds. */
export function planBox(box: FullBox, site: BoxSite, more: readonly string[] = []): BoxPlan {
  const places = (list: readonly BoxPlace[], write: boolean) =>
    list.flatMap((place) => pathsOf(place, site, write));
  const network = box.network === "all" ? networkFiles() : [];
  return {
    name: box.name,
    network: box.network,
    read: real([...places(box.read, false), site.privateHome.gitConfig, ...network, ...more]),
    write: real(places(box.write, true)),
    hide: hidden(site),
    protect: site.protect,
    sockets: real(box.sockets.flatMap((name) => socketOf(name, site))),
    tmp: site.tmp,
    ...site.limits,
  };
}

/** For Writ's own git: reads the workspace and the repository that it is part of, writes nothing, has no network. */
export function planLook(site: BoxSite): BoxPlan {
  const around = repositoryAround(site.root);
  return {
    name: "git",
    network: "none",
    read: real([
      ...systemFolders(),
      ...site.tools,
      site.root,
      ...site.gitFolders,
      ...(around === undefined ? [] : [around]),
    ]),
    write: [],
    hide: hidden(site),
    protect: [],
    sockets: [],
    tmp: site.tmp,
    ...site.limits,
  };
}

function pathsOf(place: BoxPlace, site: BoxSite, write: boolean): readonly string[] {
  switch (place) {
    case "system":
      return systemFolders();
    case "tools":
      return site.tools;
    case "workspace":
      return [site.root, ...site.gitFolders];
    case "home":
      return [site.privateHome.folder];
    default:
      // A folder that a policy lets commands write to may be one that they make.
      return write || existsSync(place.path) ? [place.path] : [];
  }
}

function hidden({ hide, home }: BoxSite): readonly string[] {
  return real([...hide, ...homeSecretNames.map((name) => join(home, name)), ...systemSecrets, ...hostKeys()]);
}

function hostKeys(): readonly string[] {
  try {
    return readdirSync("/etc/ssh").filter((name) => /^ssh_host_.*_key$/.test(name)).map((name) =>
      `/etc/ssh/${name}`
    );
  } catch {
    return [];
  }
}

function socketOf(name: string, { env }: BoxSite): readonly string[] {
  const path = name.startsWith("/") ? name : env[name];
  return path === undefined || !path.startsWith("/") || !existsSync(path) ? [] : [path];
}

// Where names of hosts are looked up is often a link into `/run`.
function networkFiles(): readonly string[] {
  return ["/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf"].filter((path) => existsSync(path));
}

// The repository that a workspace within it belongs to: its working tree is compared from there.
function repositoryAround(root: string): string | undefined {
  if (existsSync(join(root, ".git"))) return undefined;
  for (let folder = dirname(root); folder !== dirname(folder); folder = dirname(folder)) {
    if (existsSync(join(folder, ".git"))) return folder;
  }
  return undefined;
}

// As written and where it leads. What is named twice or lies in another one that is as wide stays: it costs nothing.
function real(paths: readonly string[]): readonly string[] {
  return [
    ...new Set(paths.flatMap((path) => {
      try {
        const real = realpathSync(path);
        // Only a device, a pipe or nothing has no place in a box.
        return real === path || !statSync(real).isDirectory() && isWithin(real, "/dev")
          ? [path]
          : [path, real];
      } catch {
        return [path];
      }
    })),
  ];
}
