// Where this machine keeps its programs: the system's folders, and the tools that PATH leads to, under home as well.
import { existsSync, lstatSync, readdirSync, readlinkSync, realpathSync } from "node:fs";
import { basename, delimiter, dirname, isAbsolute, join, normalize, resolve } from "node:path";
import { isWithin } from "../core/path.ts";

const systemRoots = [
  "/usr",
  "/bin",
  "/sbin",
  "/lib",
  "/lib32",
  "/lib64",
  "/libx32",
  "/etc",
  "/opt",
  "/nix",
  "/gnu/store",
  "/run/current-system",
  // How many processors there are.
  "/sys/devices/system/cpu",
] as const;

/** Folders of the system; never homes, `/run` as a whole, or `/var`. */
export function systemFolders(): readonly string[] {
  return systemRoots.filter((path) => existsSync(path));
}

/** In the system's folders, and nobody's business. Also what only root may read: commands may run as root. */
export const systemSecrets: readonly string[] = [
  ...["shadow", "shadow-", "gshadow", "gshadow-", "sudoers", "sudoers.d", "krb5.keytab", "crypttab"],
  ...["ssl/private", "pki/tls/private", "letsencrypt", "wireguard", "NetworkManager/system-connections"],
  ...["ssh/ssh_host_rsa_key", "ssh/ssh_host_ecdsa_key", "ssh/ssh_host_ed25519_key", "ssh/ssh_host_dsa_key"],
  ...["security/opasswd", "docker/key.json", "rancher", "kubernetes", "ppp", "cloud", "writ"],
].map((name) => `/etc/${name}`);

/** Below home, beside what a policy hides: matters where a tool or a box makes what is around it readable. */
export const homeSecretNames: readonly string[] = [
  ".netrc",
  ".npmrc",
  ".pypirc",
  ".git-credentials",
  ".gitconfig",
  ".docker",
  ".kube",
  ".azure",
  ".password-store",
  ".cargo/credentials",
  ".cargo/credentials.toml",
  ".gem/credentials",
  ".m2/settings.xml",
  ".gradle/gradle.properties",
  ".bash_history",
  ".zsh_history",
  ".mozilla",
  ".local/share/keyrings",
  ".local/state",
];

/** Folders on PATH that are no part of the system, each with the installation that it belongs to, and where its links lead. */
export function toolFolders(path: string, home: string): readonly string[] {
  const found = new Set<string>();
  const roots = systemRoots.flatMap((root) => [root, realOr(root)]);
  const isSystem = (folder: string) => roots.some((root) => isWithin(folder, root));
  const add = (folder: string) => {
    if (!isSystem(folder)) found.add(folder);
  };
  for (const written of path.split(delimiter).filter(isAbsolute)) {
    const folder = normalize(written).replace(/(.)\/+$/, "$1");
    if (!existsSync(folder)) continue;
    const links = linksIn(folder, home);
    for (const link of links) add(link);
    // A path through a link that is there itself needs no place of its own.
    for (const place of links.length === 0 ? [folder, realOr(folder)] : [realOr(folder)]) {
      add(installation(place, home));
    }
    // A package of the system leads to the system; what was put there by hand may lead anywhere.
    if (isSystem(realOr(folder)) && !folder.startsWith("/usr/local/")) continue;
    for (const target of linkTargets(folder)) add(installation(dirname(target), home));
  }
  for (const [tool, beside] of companions(home)) {
    if ([...found].some((folder) => isWithin(folder, tool)) && existsSync(beside)) found.add(beside);
  }
  return [...found];
}

/** Variables by which tools find what lies beside them, since commands have another home. */
export function toolVariables(folders: readonly string[], home: string): { readonly [name: string]: string } {
  const env: Record<string, string> = {};
  for (const [name, at] of Object.entries(homes)) {
    const folder = join(home, at);
    if (folders.some((f) => isWithin(f, folder) || isWithin(folder, f)) && existsSync(folder)) {
      env[name] = folder;
    }
  }
  return env;
}

const homes: Readonly<Record<string, string>> = {
  RUSTUP_HOME: ".rustup",
  PYENV_ROOT: ".pyenv",
  RBENV_ROOT: ".rbenv",
  NODENV_ROOT: ".nodenv",
  ASDF_DIR: ".asdf",
  ASDF_DATA_DIR: ".asdf",
  VOLTA_HOME: ".volta",
  MISE_DATA_DIR: ".local/share/mise",
  SDKMAN_DIR: ".sdkman",
};

function companions(home: string): readonly (readonly [string, string])[] {
  return [[".cargo", ".rustup"], [".local/share/mise", ".local/share/mise"]].map(([a = "", b = ""]) => [
    join(home, a),
    join(home, b),
  ]);
}

// `X/bin` stands for `X`, unless that is a place for all kinds of things.
function installation(folder: string, home: string): string {
  if (!/^(?:s?bin|shims|\.bin)$/.test(basename(folder))) return folder;
  const whole = dirname(folder);
  const shared = [home, realOr(home)].some((h) =>
    isWithin(h, whole) || whole === join(h, ".local") || whole === join(h, ".config")
  );
  return shared || whole === "/" || dirname(whole) === "/" ? folder : whole;
}

const mostEntries = 2000;

function linkTargets(folder: string): readonly string[] {
  const targets = new Set<string>();
  for (const entry of entriesOf(folder)) {
    if (!entry.isSymbolicLink()) continue;
    const real = realOr(join(folder, entry.name));
    if (!isWithin(real, folder)) targets.add(real);
  }
  return [...targets];
}

// A folder on PATH that is reached by links, as `current` beside its versions: these have to be there too. Not those above
// home or at the top, behind which all kinds of things lie: what is needed of it is named by its whole path.
function linksIn(folder: string, home: string): readonly string[] {
  const found = new Set<string>();
  const visit = (start: string) => {
    for (let path = start; dirname(dirname(path)) !== dirname(path); path = dirname(path)) {
      if (found.has(path) || isWithin(home, path) || !isLink(path) || found.size > 20) continue;
      found.add(path);
      visit(resolve(dirname(path), readlinkSync(path)));
    }
  };
  visit(folder);
  return [...found];
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true }).slice(0, mostEntries);
  } catch {
    return [];
  }
}

function realOr(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
