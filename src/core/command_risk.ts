// How much one simple command can do, from a shipped table. What the table does not know is execute.
import type { Risk } from "./decision.ts";
import { risks } from "./decision.ts";
import type { Part } from "./facts.ts";
import { programName, sameSubcommand, subcommandIndex } from "./program_options.ts";
import { riskyUses } from "./risky_options.ts";

/**
 * The risk of the part by itself: what a wrapper runs is a part of its own. Options that run a program make it execute
 * at least, options that write a file write at least, words of unknown value execute at least.
 */
export function commandRisk(part: Part): Risk {
  const known = found.get(part);
  if (known !== undefined) return known;
  const risk = riskByTable(part);
  found.set(part, risk);
  return risk;
}

// Every layer asks for it, and a part never changes.
const found = new WeakMap<Part, Risk>();

function riskByTable(part: Part): Risk {
  const [first] = part.argv;
  if (first === undefined) return part.notUnderstood === undefined ? "read" : "execute";
  if (part.blurs?.some((b) => b.at === 0) === true) return "execute";
  const known = strongest(programRisk(part), optionRisk(part.argv));
  return part.blurs?.some((b) => b.glob !== true) === true ? strongest(known, "execute") : known;
}

/** The higher of two risks. */
export function strongest(a: Risk, b: Risk): Risk {
  return risks.indexOf(a) >= risks.indexOf(b) ? a : b;
}

function optionRisk(argv: readonly string[]): Risk {
  return riskyUses(argv).reduce<Risk>(
    (risk, use) => strongest(risk, use.kind === "runs" ? "execute" : "write"),
    "read",
  );
}

function set(text: string): ReadonlySet<string> {
  return new Set(text.split(" "));
}

const readers = set(
  "ls cat head tail less more wc grep egrep fgrep zgrep rg ag ack fd fdfind find stat file du df pwd echo printf true false : test [ [[ " +
    "which type whereis date uname whoami id groups hostname printenv ps pgrep uptime free tree sort uniq cut tr nl tac rev diff cmp comm " +
    "join paste column fold fmt jq yq xxd od hexdump strings md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum " +
    "basename dirname realpath readlink seq expr sleep awk gawk mawk nawk sed gsed cd pushd popd dirs umask wait jobs read clear cal " +
    "man help info apropos nproc arch locale getconf tty zcat bzcat xzcat base64 iconv shuf numfmt tsort pr expand unexpand exit return " +
    "break continue shift bat delta ((",
);
const writers = set(
  "cp mv ln mkdir rmdir rm unlink touch tee truncate chmod chown chgrp install patch mktemp unzip zip gzip gunzip bzip2 bunzip2 " +
    "xz unxz zstd unzstd tar split csplit prettier gofmt black mkfifo mknod setfacl xattr",
);
const reachingOut = set(
  "curl wget ssh scp sftp rsync nc ncat netcat socat telnet ftp lftp dig nslookup host ping ping6 traceroute tracepath mtr whois nmap " +
    "aria2c http https xh gh glab hub aws gcloud gsutil az doctl flyctl fly heroku vercel netlify wrangler kubectl oc helm terraform tofu " +
    "terragrunt pulumi ansible ansible-playbook apt apt-get aptitude yum dnf apk pacman brew snap gem pip pip3 pipx npx bunx uvx pnpx " +
    "ssh-copy-id sshfs rclone s3cmd svn mail sendmail twine",
);
const destroyers = set(
  "dd shred wipefs fdisk sfdisk cfdisk parted sgdisk gdisk mkswap blkdiscard hdparm shutdown reboot halt poweroff userdel groupdel " +
    "dropdb dropuser srm wipe format diskutil",
);

const networkCommands: Readonly<Record<string, ReadonlySet<string>>> = {
  git: set("fetch pull push clone ls-remote request-pull send-email"),
  npm: set(
    "install ci update publish view info search audit outdated exec adduser logout whoami ping pack deprecate dist-tag owner unpublish star",
  ),
  pnpm: set("install add i update up publish dlx outdated audit"),
  yarn: set("install add up upgrade publish npm dlx outdated audit"),
  bun: set("install i add update upgrade publish x create outdated"),
  deno: set("install add cache upgrade publish"),
  uv: set("add sync lock tool publish"),
  poetry: set("install add update publish lock"),
  cargo: set("install fetch publish add update search yank login owner"),
  go: set("get install"),
  docker: set("pull push login logout search"),
  podman: set("pull push login logout search"),
  bundle: set("install update add"),
  composer: set("install update require create-project"),
  mvn: set("deploy"),
};

const gitReads = set(
  "status diff log show blame annotate grep shortlog describe rev-parse rev-list ls-files ls-tree cat-file name-rev merge-base show-ref " +
    "for-each-ref diff-tree diff-index diff-files count-objects fsck var version help check-ignore check-attr check-mailmap " +
    "check-ref-format whatchanged cherry range-diff verify-commit verify-tag verify-pack show-branch show-index get-tar-commit-id " +
    "stripspace column fmt-merge-msg patch-id merge-tree",
);
const gitWrites = set(
  "add stage init notes stash mv rm restore reset tag branch apply update-index write-tree hash-object mktag mktree commit-tree pack-refs repack remote symbolic-ref",
);

function programRisk(part: Part): Risk {
  const { argv } = part;
  const program = programName(argv[0] ?? "");
  const words = argv.slice(1);
  if (destroyers.has(program) || program.startsWith("mkfs") || isDestructive(program, argv, part)) {
    return "destructive";
  }
  if (program === "git" || program.startsWith("git-")) return gitRisk(argv);
  if (program === "command" && /^-[vV]$/.test(words[0] ?? "")) return "read";
  if (program === "set") {
    return words.every((w) => /^[-+][euxo]+$|^(pipefail|errexit|nounset|xtrace)$/.test(w))
      ? "read"
      : "execute";
  }
  if (program === "tar" && /^-?[a-zA-Z]*t[a-zA-Z]*$/.test(words[0] ?? "")) return "read";
  if (program === "hostname" && words.some((w) => !w.startsWith("-"))) return "execute";
  if (reachingOut.has(program)) return "network";
  if (Object.hasOwn(networkCommands, program)) {
    const command = argv[subcommandIndex(argv)] ?? "";
    if ([...networkCommands[program] ?? []].some((c) => sameSubcommand(program, command, c))) {
      return "network";
    }
    if ((program === "npm" || program === "yarn" || program === "pnpm") && command === "") return "network";
    if (program === "go" && command === "mod") return "network";
    return "execute";
  }
  if (readers.has(program)) return "read";
  return writers.has(program) ? "write" : "execute";
}

function gitRisk(argv: readonly string[]): Risk {
  const at = subcommandIndex(argv);
  const command = argv[at];
  const words = argv.slice(at + 1);
  const [next = ""] = words;
  if (command === undefined) return "read";
  if ([...networkCommands["git"] ?? []].some((c) => sameSubcommand("git", command, c))) return "network";
  if (command === "remote") {
    return /^(update|show|prune)$/.test(next)
      ? "network"
      : /^(-v|--verbose|get-url|)$/.test(next)
      ? "read"
      : "write";
  }
  if (command === "archive") return words.some((w) => w.startsWith("--remote")) ? "network" : "read";
  if (command === "submodule") {
    return /^(update|add|sync)$/.test(next)
      ? "network"
      : /^(status|summary|)$/.test(next)
      ? "read"
      : "execute";
  }
  if (gitReads.has(command)) return "read";
  const lists: Readonly<Record<string, RegExp>> = {
    branch: /^(-a|-r|-v|-vv|--list|-l|--all|--show-current|--contains|--merged|--no-merged|--remotes|)$/,
    tag: /^(-l|--list|-n|--contains|--merged|)$/,
    stash: /^(list|show)$/,
    worktree: /^list$/,
    notes: /^(list|show|)$/,
    reflog: /^(show|exists|HEAD|)$/,
    bisect: /^(log|view|visualize)$/,
    config: /^(--get.*|-l|--list|get|list)$/,
    "symbolic-ref": /^HEAD$/,
  };
  const list = Object.hasOwn(lists, command) ? lists[command] : undefined;
  if (list?.test(next) === true && (command !== "symbolic-ref" || words.length === 1)) return "read";
  if (command === "config" && words.length === 1) return "read";
  return gitWrites.has(command) || command === "config" || command === "worktree" ? "write" : "execute";
}

// `words` are options as written, short ones unbundled: `-rf` gives `-r` and `-f`.
function optionsIn(words: readonly string[]): ReadonlySet<string> {
  const seen = new Set<string>();
  for (const word of words) {
    if (word.startsWith("--")) seen.add(word.split("=")[0] ?? word);
    else if (word.startsWith("-")) { for (const c of word.slice(1)) seen.add(`-${c}`); }
  }
  return seen;
}

function isDestructive(program: string, argv: readonly string[], part: Part): boolean {
  const words = argv.slice(1);
  const seen = optionsIn(words);
  const has = (...names: readonly string[]) => names.some((n) => seen.has(n));
  switch (program) {
    case "rm":
      return has("-r", "-R", "-f", "--recursive", "--force") || [...seen].some((o) => /^--(r|f)/.test(o)) ||
        part.blurs !== undefined;
    case "git":
      return gitDestroys(argv);
    case "find":
      return words.includes("-delete");
    case "rsync":
      return [...seen].some((o) => o.startsWith("--del") || o === "--remove-source-files");
    case "crontab":
      return has("-r");
    case "psql":
    case "mysql":
    case "mariadb":
    case "sqlite3":
    case "mongosh":
    case "redis-cli":
      return /\b(drop|truncate|delete|dropDatabase|deleteMany|flushall|flushdb)\b/i.test(words.join(" "));
    case "kubectl":
    case "oc":
      return verb(argv, /^(delete|drain)$/) || (verb(argv, /^replace$/) && has("--force"));
    case "helm":
      return verb(argv, /^(uninstall|delete|del|un)$/);
    case "terraform":
    case "tofu":
    case "terragrunt":
    case "pulumi":
      return verb(argv, /^(destroy|down)$/) || words.includes("-destroy") ||
        (verb(argv, /^state$/) && words.includes("rm"));
    case "docker":
    case "podman":
      return verb(argv, /^(rm|rmi|prune)$/) ||
        /\b(prune|rm)\b/.test(argv.slice(subcommandIndex(argv), subcommandIndex(argv) + 2).join(" "));
    case "aws":
      return words.some((w) => /^(delete|terminate|remove|purge|deregister|destroy)-/.test(w)) ||
        (words.includes("s3") && words.some((w) => /^(rm|rb)$/.test(w)));
    case "gcloud":
    case "az":
    case "gsutil":
    case "gh":
    case "glab":
    case "doctl":
    case "flyctl":
    case "fly":
    case "heroku":
      return words.some((w) => /^(delete|destroy|purge|rm|rb|apps:destroy)$/.test(w));
    case "npm":
      return verb(argv, /^unpublish$/);
    default:
      return false;
  }
}

function verb(argv: readonly string[], wanted: RegExp): boolean {
  return wanted.test(argv[subcommandIndex(argv)] ?? "");
}

function gitDestroys(argv: readonly string[]): boolean {
  const at = subcommandIndex(argv);
  const words = argv.slice(at + 1);
  const seen = optionsIn(words);
  const has = (...names: readonly string[]) => names.some((n) => seen.has(n));
  const long = (beginning: string) => [...seen].some((o) => o.startsWith(beginning));
  switch (argv[at]) {
    case "push":
    case "send-pack":
      return has("-f", "-d") || long("--force") || long("--fo") || long("--mir") || long("--del") ||
        long("--prune") ||
        words.some((w) => /^[+:]./.test(w));
    case "reset":
      return long("--har") || long("--mer") || long("--kee");
    case "clean":
      return !has("-n") && !long("--dry");
    case "checkout":
      return has("-f") || long("--force") || words.includes("--") || words.includes(".");
    case "switch":
      return has("-f", "-C") || long("--force") || long("--discard");
    case "restore":
      return !has("-S") && !long("--staged") || has("-W") || long("--worktree");
    case "branch":
      return has("-D", "-M", "-d", "-C") || long("--del") || (has("-f") || long("--force"));
    case "tag":
      return has("-d", "-f") || long("--del") || long("--force");
    case "stash":
      return /^(drop|clear)$/.test(words[0] ?? "");
    case "reflog":
      return /^(expire|delete)$/.test(words[0] ?? "");
    case "worktree":
      return words[0] === "remove" || words[0] === "prune";
    case "rm":
      return has("-f", "-r") || long("--force");
    case "gc":
    case "repack":
      return long("--prune");
    case "update-ref":
      return has("-d");
    case "filter-branch":
    case "filter-repo":
    case "prune":
    case "replace":
      return true;
    default:
      return false;
  }
}
