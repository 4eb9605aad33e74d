// What a program accepts before its subcommand, and the names under which it does the same thing. Rules that restrict
// see through both: `git -C x send-pack` is a push.

type Options = {
  readonly valued: ReadonlySet<string>;
  readonly flags: ReadonlySet<string>;
  readonly anywhere: boolean;
};

function options(valued: string, flags: string, place?: "anywhere"): Options {
  return { valued: words(valued), flags: words(flags), anywhere: place !== undefined };
}

function words(text: string): ReadonlySet<string> {
  return new Set(text.split(" "));
}

const docker = options(
  "--config -c --context -H --host -l --log-level --tlscacert --tlscert --tlskey --url --connection --identity --root --runroot",
  "-D --debug --tls --tlsverify -v --version --remote -r",
);
const compose = options(
  "-f --file -p --project-name --profile --env-file --project-directory --parallel --progress --ansi --context -c -H --host",
  "--all-resources --compatibility --dry-run --verbose -v",
);
const npm = options(
  "--prefix -C --userconfig --globalconfig --registry -w --workspace --loglevel --cache --script-shell --tag --otp " +
    "--access --omit --include --node-options --cwd --dir --filter -F --scope",
  "-g --global -s --silent -q --quiet -d --verbose --force -f --workspaces -ws --include-workspace-root --json " +
    "--ignore-scripts --no-audit --no-fund --offline --prefer-offline -y --yes -r --recursive",
  "anywhere",
);
const terraform = options("-chdir", "-help -version");
const kubectl = options(
  "-n --namespace --context --cluster --user --kubeconfig -s --server --token --as --as-group --as-uid --cache-dir " +
    "--certificate-authority --client-certificate --client-key --request-timeout --tls-server-name -v --v --profile " +
    "--profile-output --password --username --vmodule",
  "--insecure-skip-tls-verify --match-server-version --warnings-as-errors --disable-compression",
  "anywhere",
);

const table: ReadonlyMap<string, Options> = new Map(Object.entries<Options>({
  git: options(
    "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source",
    "-p -P --paginate --no-pager --bare --no-replace-objects --literal-pathspecs --glob-pathspecs --noglob-pathspecs " +
      "--icase-pathspecs --no-optional-locks --no-lazy-fetch --no-advice --exec-path --html-path --man-path --info-path " +
      "--version -v --help -h",
  ),
  kubectl,
  oc: kubectl,
  helm: options(
    "-n --namespace --kube-context --kubeconfig --kube-apiserver --kube-token --kube-as-user --kube-as-group --kube-ca-file " +
      "--registry-config --repository-cache --repository-config --burst-limit --qps",
    "--debug",
    "anywhere",
  ),
  docker,
  podman: docker,
  "docker compose": compose,
  "docker-compose": compose,
  "podman compose": compose,
  nerdctl: docker,
  terraform,
  tofu: terraform,
  terragrunt: terraform,
  aws: options(
    "--profile --region --endpoint-url --output --query --color --ca-bundle --cli-read-timeout --cli-connect-timeout " +
      "--cli-binary-format",
    "--debug --no-verify-ssl --no-paginate --no-sign-request --no-cli-pager --no-cli-auto-prompt --cli-auto-prompt",
    "anywhere",
  ),
  gcloud: options(
    "--project --account --configuration --format --verbosity --impersonate-service-account --billing-project --flags-file " +
      "--trace-token --access-token-file",
    "-q --quiet --log-http --user-output-enabled --no-user-output-enabled",
    "anywhere",
  ),
  az: options("--subscription -o --output --query", "--debug --only-show-errors --verbose", "anywhere"),
  gh: options("-R --repo --hostname", "", "anywhere"),
  glab: options("-R --repo -g --group", "", "anywhere"),
  npm,
  pnpm: npm,
  yarn: npm,
  bun: options(
    "--cwd -c --config --env-file -r --preload",
    "--silent --verbose -b --bun --hot --watch --smol",
  ),
  cargo: options(
    "--color --config -Z -C --manifest-path",
    "-q --quiet -v --verbose -vv --frozen --locked --offline",
  ),
  go: options("-C", ""),
  pip: options(
    "--python --proxy --log --timeout --retries --cert --client-cert --cache-dir --exists-action --trusted-host",
    "-q --quiet -v --verbose --isolated --no-input --disable-pip-version-check --no-color --require-virtualenv",
  ),
  uv: options(
    "--directory --project --config-file --cache-dir --python --color",
    "-q --quiet -v --verbose --offline -n --no-cache",
  ),
  poetry: options(
    "-C --directory -P --project",
    "-q --quiet -v -vv -vvv --verbose -n --no-interaction --no-ansi --ansi",
  ),
  systemctl: options(
    "-H --host -M --machine -t --type -p --property -n --lines -o --output --root -s --signal --state",
    "--user --system --global --no-pager -q --quiet --no-block --now -f --force -a --all -l --full",
    "anywhere",
  ),
  hg: options(
    "-R --repository --cwd --config --encoding --pager --color",
    "-y -q -v --noninteractive --quiet --verbose --debug --traceback",
  ),
  svn: options("--username --password --config-dir --config-option", "--non-interactive --no-auth-cache"),
  vault: options("-address -namespace -ca-cert", ""),
  flyctl: options("-a --app -c --config -t --access-token", "--verbose --json -j", "anywhere"),
  fly: options("-a --app -c --config -t --access-token", "--verbose --json -j", "anywhere"),
  heroku: options("-a --app -r --remote", "", "anywhere"),
}));

/** The program's name without folder, case and `.exe`: on some systems `GIT.EXE` is git. */
export function programName(word: string): string {
  const name = word.slice(word.lastIndexOf("/") + 1).toLowerCase();
  return name.endsWith(".exe") ? name.slice(0, -4) : name;
}

/** How a word before or among a program's subcommands is to be stepped over; undefined when it is none of its options. */
export type OptionStep = "alone" | "with_value" | "unsure";

/** Whether the program's subcommand has options of its own before the next one, as `docker compose -f x down` has. */
export function hasGlobalOptions(program: string): boolean {
  return table.has(program);
}

/**
 * `before`: no subcommand was seen yet. An option that the table does not know is `unsure` there: it may take a value.
 * Programs outside the table have no global options.
 */
export function globalOption(program: string, word: string, before: boolean): OptionStep | undefined {
  if (program === "cargo" && before && word.startsWith("+")) return "alone";
  const known = table.get(program);
  if (known === undefined || (!before && !known.anywhere)) return undefined;
  if (!word.startsWith("-") || word === "-") return undefined;
  const equals = word.indexOf("=");
  const name = equals < 0 ? word : word.slice(0, equals);
  if (known.flags.has(name)) return "alone";
  if (known.valued.has(name)) return equals < 0 ? "with_value" : "alone";
  // A letter and its value in one word.
  if (known.valued.has(word.slice(0, 2))) return "alone";
  if (!before) return undefined;
  return equals < 0 && word !== "--" ? "unsure" : "alone";
}

/** Index of the subcommand in argv, or argv.length. Options of unknown kind count as flags. */
export function subcommandIndex(argv: readonly string[]): number {
  const program = programName(argv[0] ?? "");
  let i = 1;
  for (; i < argv.length; i++) {
    const step = globalOption(program, argv[i] ?? "", true);
    if (step === "with_value") i++;
    else if (step === undefined) break;
  }
  return Math.min(i, argv.length);
}

const synonyms: ReadonlyMap<string, ReadonlyMap<string, string>> = new Map(
  Object.entries({
    git: {
      "send-pack": "push",
      "http-push": "push",
      "fetch-pack": "fetch",
      "http-fetch": "fetch",
      stage: "add",
      "init-db": "init",
      annotate: "blame",
      pickaxe: "blame",
      whatchanged: "log",
    },
    npm: {
      i: "install",
      in: "install",
      ins: "install",
      inst: "install",
      add: "install",
      "run-script": "run",
      rum: "run",
      urn: "run",
      t: "test",
      tst: "test",
      un: "uninstall",
      unlink: "uninstall",
      remove: "uninstall",
      rm: "uninstall",
      r: "uninstall",
      up: "update",
      upgrade: "update",
      x: "exec",
      "clean-install": "ci",
      "install-clean": "ci",
      c: "config",
      "add-user": "adduser",
      login: "adduser",
    },
    cargo: { b: "build", c: "check", d: "doc", r: "run", t: "test", rm: "remove" },
  }).map(([program, names]) => [program, new Map(Object.entries(names))]),
);

/** Whether the program does for `word` what it does for `wanted`. */
export function sameSubcommand(program: string, word: string, wanted: string): boolean {
  if (word === wanted) return true;
  if (synonyms.get(program)?.get(word) === wanted) return true;
  if (program === "git" && word === "pull" && (wanted === "merge" || wanted === "rebase")) return true;
  // npm takes any unambiguous beginning of a command's name.
  return program === "npm" && word.length >= 3 && wanted.startsWith(word);
}

const gitCommands = words(
  "add add--interactive am annotate apply archive backfill bisect bisect--helper blame branch bugreport bundle cat-file check-attr " +
    "check-ignore check-mailmap check-ref-format checkout checkout--worker checkout-index cherry cherry-pick citool clean " +
    "clone column commit commit-graph commit-tree config count-objects credential credential-cache credential-store " +
    "cvsexportcommit cvsimport cvsserver daemon describe diagnose diff diff-files diff-index diff-pairs diff-tree difftool " +
    "fast-export fast-import fetch fetch-pack filter-branch fmt-merge-msg for-each-ref for-each-repo format-patch fsck " +
    "fsck-objects gc get-tar-commit-id grep gui hash-object help hook http-backend http-fetch http-push imap-send " +
    "index-pack init init-db instaweb interpret-trailers last-modified log ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge " +
    "merge-base merge-file merge-index merge-octopus merge-one-file merge-ours merge-recursive merge-recursive-ours " +
    "merge-recursive-theirs merge-resolve merge-subtree merge-tree mergetool mktag mktree multi-pack-index mv name-rev notes p4 " +
    "pack-objects pack-redundant pack-refs patch-id pickaxe prune prune-packed pull push quiltimport range-diff read-tree rebase " +
    "receive-pack reflog refs remote remote-ext remote-fd remote-ftp remote-ftps remote-http remote-https repack replace replay repo " +
    "request-pull rerere reset restore rev-list rev-parse revert rm send-email send-pack shell shortlog show show-branch show-index " +
    "show-ref sparse-checkout stage stash status stripspace submodule submodule--helper subtree svn switch symbolic-ref tag unpack-file " +
    "unpack-objects update-index update-ref update-server-info upload-archive upload-pack var verify-commit verify-pack verify-tag " +
    "version web--browse whatchanged worktree write-tree",
);

/** Whether git itself ships the subcommand; anything else is an alias or a program from elsewhere. */
export function isGitCommand(word: string): boolean {
  return gitCommands.has(word);
}
