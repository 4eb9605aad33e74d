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
  if (part.blurs?.some((b) => b.at === 0)) return "execute";
  const program = programName(first);
  // `git-push` is `git push`.
  const argv = program.startsWith("git-") ? ["git", program.slice(4), ...part.argv.slice(1)] : part.argv;
  const known = [programRisk({ ...part, argv }), ...optionRisks(argv)].reduce(strongest);
  return part.blurs?.some((b) => b.glob !== true) ? strongest(known, "execute") : known;
}

/** The higher of two risks. */
export function strongest(a: Risk, b: Risk): Risk {
  return risks.indexOf(a) >= risks.indexOf(b) ? a : b;
}

function optionRisks(argv: readonly string[]): readonly Risk[] {
  return riskyUses(argv).map((use) => use.kind === "runs" ? "execute" : "write");
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

/** By program, the subcommands that reach out. */
const networkCommands: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    git: "fetch pull push clone ls-remote request-pull send-email",
    npm:
      "install ci update publish view info search audit outdated exec adduser logout whoami ping pack deprecate dist-tag owner " +
      "unpublish star",
    pnpm: "install add i update up publish dlx outdated audit",
    yarn: "install add up upgrade publish npm dlx outdated audit",
    bun: "install i add update upgrade publish x create outdated",
    deno: "install add cache upgrade publish",
    uv: "add sync lock tool publish",
    poetry: "install add update publish lock",
    cargo: "install fetch publish add update search yank login owner",
    go: "get install mod",
    docker: "pull push login logout search",
    podman: "pull push login logout search",
    bundle: "install update add",
    composer: "install update require create-project",
    mvn: "deploy",
  }).map(([program, list]) => [program, list.split(" ")]),
);
/** Without a subcommand these install. */
const installers = set("npm yarn pnpm");

/** How far the program by itself goes by the table; undefined when it is not there, or goes as far as its subcommand says. */
export function knownRisk(program: string): Risk | undefined {
  if (readers.has(program)) return "read";
  if (writers.has(program)) return "write";
  if (reachingOut.has(program)) return "network";
  return destroyers.has(program) ? "destructive" : undefined;
}

const gitReads = set(
  "status diff log show blame annotate grep shortlog describe rev-parse rev-list ls-files ls-tree cat-file name-rev merge-base show-ref " +
    "for-each-ref diff-tree diff-index diff-files count-objects fsck var version help check-ignore check-attr check-mailmap " +
    "check-ref-format whatchanged cherry range-diff verify-commit verify-tag verify-pack show-branch show-index get-tar-commit-id " +
    "stripspace column fmt-merge-msg patch-id merge-tree",
);
const gitWrites = set(
  "add stage init mv rm restore reset apply update-index write-tree hash-object mktag mktree commit-tree pack-refs repack symbolic-ref",
);

type Listing = {
  /** Words behind the subcommand with which it only reads, and those with which it reaches out. */
  readonly read: string;
  readonly network?: string;
  /** Alone it reads too. */
  readonly bare?: true;
  readonly otherwise: Risk;
};

const gitListings: ReadonlyMap<string, Listing> = new Map(Object.entries<Listing>({
  remote: { read: "-v --verbose get-url", network: "update show prune", bare: true, otherwise: "write" },
  submodule: { read: "status summary", network: "update add sync", bare: true, otherwise: "execute" },
  branch: {
    read: "-a -r -v -vv --list -l --all --show-current --contains --merged --no-merged --remotes",
    bare: true,
    otherwise: "write",
  },
  tag: { read: "-l --list -n --contains --merged", bare: true, otherwise: "write" },
  stash: { read: "list show", otherwise: "write" },
  worktree: { read: "list", otherwise: "write" },
  notes: { read: "list show", bare: true, otherwise: "write" },
  reflog: { read: "show exists HEAD", bare: true, otherwise: "execute" },
  bisect: { read: "log view visualize", otherwise: "execute" },
  config: {
    read: "--get --get-all --get-regexp --get-urlmatch --get-color --get-colorbool -l --list get list",
    otherwise: "write",
  },
}));

/** What makes a command destructive: any of these. */
type Destroying = {
  /** Letters of short options, also bundled. */
  readonly letters?: string;
  /** Words, and how words may begin. */
  readonly words?: string;
  readonly begins?: string;
  /** The subcommand, and the word behind it. */
  readonly verb?: string;
  readonly next?: string;
  /** Two words in one command: the first, and one of those that make it so. */
  readonly pair?: readonly [string, string];
};

const kubectl: Destroying = { verb: "delete drain", pair: ["replace", "--force"] };
const terraform: Destroying = { verb: "destroy down", words: "-destroy", pair: ["state", "rm"] };
const docker: Destroying = { verb: "rm rmi prune", next: "rm rmi prune" };
const cloud: Destroying = { words: "delete destroy purge rm rb apps:destroy" };
const destroying: ReadonlyMap<string, Destroying> = new Map(Object.entries<Destroying>({
  rm: { letters: "rRf", begins: "--r --f" },
  find: { words: "-delete" },
  rsync: { begins: "--del --remove-source" },
  crontab: { letters: "r" },
  kubectl,
  oc: kubectl,
  helm: { verb: "uninstall delete del un" },
  terraform,
  tofu: terraform,
  terragrunt: terraform,
  pulumi: terraform,
  docker,
  podman: docker,
  aws: { begins: "delete- terminate- remove- purge- deregister- destroy-", pair: ["s3", "rm rb"] },
  gcloud: cloud,
  az: cloud,
  gsutil: cloud,
  gh: cloud,
  glab: cloud,
  doctl: cloud,
  flyctl: cloud,
  fly: cloud,
  heroku: cloud,
  npm: { verb: "unpublish" },
}));

// Git takes a beginning of a long option for the whole.
const push: Destroying = { letters: "fd", begins: "--for --mir --de --pru + :" };
const rewriting: Destroying = { begins: "--pru" };
const gitDestroying: ReadonlyMap<string, Destroying> = new Map(Object.entries<Destroying>({
  push,
  "send-pack": push,
  reset: { begins: "--ha --me --k" },
  checkout: { letters: "f", begins: "--f", words: "-- ." },
  switch: { letters: "fC", begins: "--f --disc" },
  branch: { letters: "DMdCf", begins: "--de --forc" },
  tag: { letters: "df", begins: "--d --forc" },
  stash: { next: "drop clear" },
  reflog: { next: "expire delete" },
  worktree: { next: "remove prune" },
  rm: { letters: "fr", begins: "--f" },
  gc: rewriting,
  repack: rewriting,
  "update-ref": { letters: "d" },
}));
const gitDestroyers = set("filter-branch filter-repo prune replace");
const databases = set("psql mysql mariadb sqlite3 mongosh redis-cli");

function programRisk(part: Part): Risk {
  const { argv } = part;
  const [first = "", ...words] = argv;
  const program = programName(first);
  const [next = ""] = words;
  if (isDestructive(program, part)) return "destructive";
  if (program === "git") return gitRisk(argv);
  if (program === "command" && oneOf("-v -V", next)) return "read";
  if (program === "set") {
    return words.every((w) => /^[-+][euxo]+$/.test(w) || oneOf("pipefail errexit nounset xtrace", w))
      ? "read"
      : "execute";
  }
  if (program === "tar" && /^-?[a-zA-Z]*t[a-zA-Z]*$/.test(next)) return "read";
  if (program === "hostname" && words.some((w) => !w.startsWith("-"))) return "execute";
  const command = argv[subcommandIndex(argv)];
  if (reachingOut.has(program) || reachesOut(program, command)) return "network";
  if (readers.has(program)) return "read";
  return writers.has(program) ? "write" : "execute";
}

function reachesOut(program: string, command: string | undefined): boolean {
  if (command === undefined) return installers.has(program);
  return networkCommands.get(program)?.some((c) => sameSubcommand(program, command, c)) === true;
}

function gitRisk(argv: readonly string[]): Risk {
  const at = subcommandIndex(argv);
  const command = argv[at];
  const words = argv.slice(at + 1);
  const [next = ""] = words;
  if (command === undefined) return "read";
  if (reachesOut("git", command)) return "network";
  if (command === "archive") return words.some((w) => w.startsWith("--remote")) ? "network" : "read";
  if (gitReads.has(command)) return "read";
  if (words.length === 1 && (command === "config" || (command === "symbolic-ref" && next === "HEAD"))) {
    return "read";
  }
  const listing = gitListings.get(command);
  if (listing === undefined) return gitWrites.has(command) ? "write" : "execute";
  if (oneOf(listing.network, next)) return "network";
  return oneOf(listing.read, next) || (next === "" && listing.bare === true) ? "read" : listing.otherwise;
}

function isDestructive(program: string, part: Part): boolean {
  const { argv } = part;
  const at = subcommandIndex(argv);
  if (destroyers.has(program) || program.startsWith("mkfs")) return true;
  if (program === "git") return gitDestroys(argv, at);
  if (program === "rm" && part.blurs !== undefined) return true;
  if (databases.has(program)) {
    return /\b(drop|truncate|delete|dropDatabase|deleteMany|flushall|flushdb)\b/i.test(argv.join(" "));
  }
  const how = destroying.get(program);
  return how !== undefined && destroys(how, argv, argv[at], argv[at + 1]);
}

function gitDestroys(argv: readonly string[], at: number): boolean {
  const command = argv[at] ?? "";
  const words = argv.slice(at + 1);
  const long = (beginning: string) => words.some((w) => w.startsWith(beginning));
  if (gitDestroyers.has(command)) return true;
  if (command === "clean") return !hasLetter(words, "n") && !long("--dry");
  if (command === "restore") {
    const staged = hasLetter(words, "S") || long("--staged");
    return !staged || hasLetter(words, "W") || long("--w");
  }
  const how = gitDestroying.get(command);
  return how !== undefined && destroys(how, words, undefined, words[0]);
}

function destroys(
  how: Destroying,
  words: readonly string[],
  verb: string | undefined,
  next: string | undefined,
): boolean {
  const { pair } = how;
  return hasLetter(words, how.letters) ||
    words.some((w) => oneOf(how.words, w) || how.begins?.split(" ").some((b) => w.startsWith(b)) === true) ||
    oneOf(how.verb, verb) || oneOf(how.next, next) ||
    (pair !== undefined && words.includes(pair[0]) && words.some((w) => oneOf(pair[1], w)));
}

/** Whether one of the letters stands in a word of short options: `-rf` holds `r` and `f`. */
function hasLetter(words: readonly string[], letters = ""): boolean {
  return words.some((w) => /^-[^-]/.test(w) && [...letters].some((letter) => w.includes(letter)));
}

function oneOf(list: string | undefined, word: string | undefined): boolean {
  return word !== undefined && list?.split(" ").includes(word) === true;
}
