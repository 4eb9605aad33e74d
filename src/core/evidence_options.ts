// Options with which a command checks little or nothing and still ends well: help, dry runs, filters, other places to look.
// A `*` in an evidence pattern never covers them; a pattern that names them means them.
import { programName } from "./program_options.ts";

type Options = {
  /** Without leading dashes; `name=value`: only with that value. Spellings such as `--passWithNoTests` are the same. */
  readonly long?: string;
  /** Letters of short options. */
  readonly short?: string;
  /** Long options have one dash, so a word with one dash is no bundle of letters. */
  readonly single?: true;
  /** Words such as `SHELL=true` change what is run. */
  readonly assigns?: true;
};

/** Whatever the program is. */
const everywhere: Options = {
  long:
    "help version usage dry-run dry list list-tests list-files show-config collect-only pass-with-no-tests " +
    "no-tests allow-no-tests allow-empty if-present exit-zero no-run no-exec no-fail no-error just-print simulate " +
    "what-if filter grep invert match name test-name-pattern test-path-pattern only skip exclude ignore deselect " +
    "changed changed-since only-changed last-failed related find-related-tests shard tag tags bail=0 " +
    "max-failures=0 maxfail=0 rerun-each=0 repeat=0 count=0 cwd root root-dir dir directory project prefix config " +
    "config-file no-config manifest-path preload require import loader",
  short: "h",
};

const npm: Options = { long: "workspace workspaces include", short: "wCnvr" };
const jest: Options = { long: "todo run-test-by-path only-failures", short: "tcor" };
const pytest: Options = {
  long: "co setup-plan setup-only fixtures markers confcutdir override-ini",
  short: "kmpcoVW",
};
const python: Options = { short: "cV" };
const gradle: Options = { long: "tests exclude-task", short: "xmbpP" };

const byProgram: Readonly<Record<string, Options>> = {
  bun: { long: "todo", short: "tcrv" },
  node: { long: "check eval print test-only test-skip-pattern", short: "crvepi" },
  deno: { long: "no-check permit-no-files", short: "cV" },
  vitest: jest,
  jest,
  mocha: { long: "fgrep file spec", short: "gfirnV" },
  ava: { short: "mv" },
  npm,
  npx: npm,
  pnpm: { ...npm, short: "wCFnvr" },
  yarn: npm,
  pytest,
  "py.test": pytest,
  python,
  python3: python,
  tox: { long: "notest", short: "ecVnl" },
  nox: { short: "ltkfs" },
  uv: { short: "V" },
  poetry: { short: "VCP" },
  cargo: { long: "test bin example package filter-expr", short: "VpEZC" },
  go: { long: "run short n bench fuzz exec vettool modfile overlay o c C toolexec", single: true },
  make: {
    long: "question touch ignore-errors old-file assume-old new-file eval file makefile",
    short: "nqtifoWCIE",
    assigns: true,
  },
  just: { long: "justfile working-directory show summary evaluate set", short: "nfdlsV", assigns: true },
  cmake: { short: "NEPV" },
  ctest: { long: "show-only tests-regex exclude-regex label-regex label-exclude", short: "NRELIVSD" },
  mvn: { long: "define projects file settings activate-profiles", short: "DplfsvP" },
  gradle,
  gradlew: gradle,
  dotnet: { long: "no-build settings", short: "ts" },
  rspec: { long: "example pattern options", short: "eptPOv" },
  rake: { long: "prereqs", short: "nTPWf", assigns: true },
  phpunit: { long: "testsuite group exclude-group list-suites list-groups covers uses", short: "cv" },
  swift: { long: "package-path specifier", short: "ls" },
  xcodebuild: { long: "only-testing skip-testing showsdks", single: true, assigns: true },
  bazel: { long: "test-filter build-tests-only nobuild", short: "k" },
  terraform: { long: "target chdir var-file", single: true },
  tsc: { long: "init no-check all", short: "pv" },
  eslint: { long: "quiet rule no-inline-config max-warnings=-1 ext", short: "cv" },
  biome: { long: "diagnostic-level no-errors-on-unmatched" },
  prettier: { long: "no-error-on-unmatched-pattern" },
  ruff: { long: "select extend-select show-files show-settings silent", short: "eV" },
  mypy: { short: "Vmpc" },
  flake8: { long: "select extend-ignore" },
  shellcheck: { short: "eV" },
  "golangci-lint": { long: "disable-all issues-exit-code new", short: "cnD" },
  git: {
    long:
      "quiet no-patch diff-filter stat numstat shortstat dirstat cumulative summary compact-summary name-only " +
      "name-status check raw output pickaxe-all pickaxe-regex find-object author committer since until after before " +
      "max-count skip-to ignore-all-space ignore-space-change ignore-space-at-eol ignore-blank-lines " +
      "ignore-matching-lines ignore-submodules ignore-cr-at-eol relative no-index word-diff-regex color-words " +
      "first-parent merges no-merges min-parents max-parents format pretty",
    short: "qsSGIXbwLn",
  },
};

/** Whole options that only look like the beginning of one above. */
const harmless = new Set(["all", "test", "no"]);

/**
 * Indexes in argv of the words that may keep the command from doing its work, in order. Bundled letters, abbreviated and
 * glued options count, and so does what stands behind `--`, which often goes to another program. In doubt a word is one.
 */
export function idleOptions(argv: readonly string[]): readonly number[] {
  const tables = tablesOf(argv);
  const paths = new Set(pathWords(argv));
  return argv.flatMap((word, at) =>
    at > 0 && (paths.has(at) || isIdle(word, argv[at + 1], tables)) ? [at] : []
  );
}

const looksAtPaths = new Set(["diff", "log", "show"]);

// Words that make git show a part: what stands behind `--`, what only a path can be, and in a diff what stands beside a range.
function pathWords(argv: readonly string[]): readonly number[] {
  if (programName(argv[0] ?? "") !== "git" || !looksAtPaths.has(argv[1] ?? "")) return [];
  const end = argv.indexOf("--");
  const places = argv.map((_, at) => at).slice(2);
  const front = places.filter((at) => (end < 0 || at < end) && argv[at]?.startsWith("-") === false);
  const ranged = argv[1] === "diff" && front.some((at) => argv[at]?.includes("..") === true);
  return places.filter((at) => {
    const word = argv[at] ?? "";
    if (end >= 0 && at > end) return true;
    if (!front.includes(at)) return false;
    return /^:|[*?[\]]/.test(word) || (argv[1] === "diff" && front.indexOf(at) >= (ranged ? 1 : 2));
  });
}

// Of the program, and of the one that it runs, as in `npx jest` and `uv run pytest`.
function tablesOf(argv: readonly string[]): readonly Options[] {
  const names = new Set(argv.filter((word, at) => at === 0 || !word.startsWith("-")).map(programName));
  return [
    everywhere,
    ...[...names].flatMap((name) => Object.hasOwn(byProgram, name) ? byProgram[name] ?? [] : []),
  ];
}

function isIdle(word: string, next: string | undefined, tables: readonly Options[]): boolean {
  if (!word.startsWith("-")) {
    return tables.some((t) => t.assigns === true) && /^[A-Za-z_]\w*[:+?!]*=/.test(word);
  }
  const equals = word.indexOf("=");
  const option = equals < 0 ? word : word.slice(0, equals);
  const name = squeezed(option);
  if (name === "") return false;
  const value = equals < 0 ? next : word.slice(equals + 1);
  const abbreviated = word.startsWith("--") && !harmless.has(name);
  if (tables.some((t) => longNames(t).some((l) => l.is(name, value, abbreviated)))) return true;
  if (word.startsWith("--") || tables.some((t) => t.single === true)) return false;
  return tables.some((t) => [...t.short ?? ""].some((letter) => option.includes(letter)));
}

type LongName = { is(name: string, value: string | undefined, abbreviated: boolean): boolean };
const longNamesOf = new WeakMap<Options, readonly LongName[]>();

function longNames(options: Options): readonly LongName[] {
  const known = longNamesOf.get(options);
  if (known !== undefined) return known;
  const made = (options.long ?? "").split(" ").filter((entry) => entry !== "").map(longName);
  longNamesOf.set(options, made);
  return made;
}

function longName(entry: string): LongName {
  const [shown = "", only] = entry.split("=");
  const wanted = squeezed(shown);
  return {
    is: (name, value, abbreviated) =>
      (only === undefined || value === only) && (name === wanted || (abbreviated && wanted.startsWith(name))),
  };
}

// One spelling for `--dry-run`, `--dryRun`, `--dry_run` and `-dryrun`.
function squeezed(option: string): string {
  return option.replace(/[-_]/g, "").toLowerCase();
}
