// Options with which a program runs another one or writes a file. `*` in an allow rule never covers them.
import { awkUses, sedUses } from "./script_risk.ts";
import { programName, subcommandIndex } from "./program_options.ts";

export type RiskyKind = "runs" | "writes";

/** One entry that a policy adds. */
export type RiskyOption = {
  readonly program: string;
  readonly sub?: string;
  readonly option: string;
  readonly kind: RiskyKind;
};

/** A risky option in use: where in argv it stands and what it was given, when that is known. */
export type RiskyUse = {
  readonly at: number;
  readonly option: string;
  readonly kind: RiskyKind;
  readonly value?: string;
};

type Risks = { readonly runs?: string; readonly writes?: string };
type Program = Risks & {
  /** Letters of short options that take a value: what follows in the same word is no further option. */
  readonly valued?: string;
  /** Long options have one dash and cannot be bundled. */
  readonly single?: true;
  /** Exact words that are no risky option although one begins with them. */
  readonly harmless?: string;
  /** The first word may hold bundled letters without a dash, as in `tar xf`. */
  readonly dashless?: true;
  /** Finds further uses inside arguments. */
  readonly uses?: (argv: readonly string[]) => readonly RiskyUse[];
  /** Only before the subcommand. */
  readonly before?: Risks;
  /** By subcommand; an entry without a dash is a word that follows it. */
  readonly subs?: Readonly<Record<string, Risks & { readonly valued?: string }>>;
};

const sed: Program = { runs: "-f --file", writes: "-i --in-place", valued: "efl", uses: sedUses };
const awk: Program = {
  runs: "-f --file -i --include -l --load -E --exec -D --debug",
  writes: "-o --pretty-print -p --profile -d --dump-variables",
  valued: "vFe",
  uses: awkUses,
};
const fd: Program = { runs: "-x --exec -X --exec-batch", valued: "eEtdcjSogM" };
const npm: Program = { runs: "--script-shell --shell --node-options --userconfig --globalconfig --git" };
const curl: Program = {
  writes:
    "-o --output -O --remote-name --remote-name-all -D --dump-header -c --cookie-jar --trace --trace-ascii --stderr " +
    "--etag-save --libcurl --output-dir --hsts --alt-svc",
  runs: "-K --config --engine",
  valued: "AbCdEeFHhmPQrTtuUwXxYyz",
  harmless: "--cookie",
};

const shipped: ReadonlyMap<string, Program> = new Map(Object.entries<Program>({
  find: { runs: "-exec -execdir -ok -okdir", writes: "-delete -fprint -fprint0 -fprintf -fls", single: true },
  git: {
    before: { runs: "-c --config-env --exec-path -p --paginate --git-dir" },
    runs: "--upload-pack --receive-pack --ext-diff",
    writes: "--output",
    subs: {
      grep: { runs: "-O --open-files-in-pager", valued: "efABCm" },
      rebase: { runs: "-x --exec", valued: "sXC" },
      clone: { runs: "-u -c --config --template", valued: "obj" },
      init: { runs: "--template" },
      archive: { runs: "--exec", writes: "-o" },
      push: { runs: "--exec", valued: "o" },
      "send-pack": { runs: "--exec" },
      "ls-remote": { runs: "--exec", valued: "o" },
      "fetch-pack": { runs: "--exec" },
      "format-patch": { writes: "-o --output-directory", valued: "vU" },
      difftool: { runs: "-x --extcmd -t --tool" },
      mergetool: { runs: "-t --tool" },
      "send-email": { runs: "--smtp-server --sendmail-cmd --to-cmd --cc-cmd --header-cmd" },
      bisect: { runs: "run" },
      submodule: { runs: "foreach" },
      hook: { runs: "run" },
      "for-each-repo": { runs: "--config" },
      "filter-branch": {
        runs:
          "--setup --subdirectory-filter --env-filter --tree-filter --index-filter --parent-filter --msg-filter " +
          "--commit-filter --tag-name-filter",
      },
      config: { runs: "-e --edit" },
      bundle: { writes: "create" },
      bugreport: { writes: "-o --output-directory" },
      diagnose: { writes: "-o --output-directory" },
      daemon: { runs: "--access-hook" },
      instaweb: { runs: "-d --httpd -b --browser" },
    },
  },
  rg: { runs: "--pre --hostname-bin" },
  sed,
  gsed: sed,
  sort: { runs: "--compress-program", writes: "-o --output", valued: "ktST" },
  tar: {
    runs:
      "--checkpoint-action -I --use-compress-program --to-command -F --info-script --new-volume-script --rsh-command --rmt-command",
    writes: "--index-file --volno-file --remove-files",
    valued: "fbCgHKLNTVX",
    harmless: "--checkpoint --to --no --new --remove",
    dashless: true,
  },
  split: { runs: "--filter", valued: "abCnl" },
  zip: { runs: "-TT --unzip-command", single: true },
  fd,
  fdfind: fd,
  awk,
  gawk: awk,
  mawk: { ...awk, runs: "-f --file -W" },
  nawk: awk,
  go: { runs: "-exec -toolexec -vettool -overlay", single: true },
  base64: { writes: "-o --output", valued: "wbi" },
  curl,
  wget: {
    writes:
      "-O --output-document -o --output-file -a --append-output -P --directory-prefix --save-cookies --warc-file --rejected-log",
    runs: "--use-askpass -e --execute --config",
    valued: "ABDGIQRTUWilntw",
  },
  less: {
    writes: "-o -O --log-file --LOG-FILE",
    runs: "-k --lesskey-file --lesskey-src",
    valued: "bhjpPtTxyz",
  },
  man: { runs: "-P --pager -H --html -C --config-file -B --preprocessor", valued: "MRLmSs" },
  ssh: { runs: "-o -F", writes: "-E", valued: "BbcDeIiJLlmOpQRSWw" },
  scp: { runs: "-S -o -F", valued: "cDiJlPX" },
  sftp: { runs: "-S -o -F -b", valued: "BcDiJlPRsX" },
  rsync: {
    runs: "-e --rsh --rsync-path",
    writes:
      "--log-file --write-batch --only-write-batch --remove-source-files --delete --delete-before --delete-during " +
      "--delete-after --delete-excluded --backup-dir",
    valued: "BfMT",
  },
  xmllint: { writes: "--output -o" },
  shuf: { writes: "-o --output", valued: "ein" },
  iconv: { writes: "-o --output", valued: "ft" },
  tree: { writes: "-o", valued: "LPIH" },
  sdiff: { writes: "-o --output", runs: "--diff-program", valued: "IW" },
  patch: { writes: "-o --output -r --reject-file", valued: "bBDdFgipVxYz" },
  yq: { writes: "-i --inplace -s --split-exp" },
  perl: { writes: "-i", valued: "EeImMFlCD0" },
  ruby: { writes: "-i", valued: "eIrEFTWxC" },
  ag: { runs: "--pager" },
  ack: { runs: "--pager", writes: "--output" },
  bat: { runs: "--pager" },
  delta: { runs: "--pager" },
  fzf: { runs: "--bind --preview --listen --with-shell" },
  date: { writes: "-s --set", valued: "drfI" },
  file: { writes: "-C --compile", runs: "-m --magic-file", valued: "eFfP" },
  strace: { writes: "-o --output", valued: "eEpuaOSsXbIPU" },
  tcpdump: { runs: "-z", writes: "-w", valued: "BcCFGiIjMrsTVWyZ" },
  gpg: {
    writes: "-o --output",
    runs: "--photo-viewer --exec-path --agent-program --dirmngr-program",
    valued: "ruN",
  },
  openssl: { writes: "-out -writerand -keyout", runs: "-engine -provider", single: true },
  psql: { writes: "-o --output -L --log-file", runs: "-f --file", valued: "cdhpPRTUFv" },
  mysql: { writes: "--tee", runs: "--pager" },
  sqlite3: { runs: "-cmd -init", single: true },
  kubectl: { runs: "--kubeconfig" },
  npm,
  pnpm: npm,
  yarn: { runs: "--script-shell --use-yarnrc --modules-folder" },
  cargo: { runs: "--config", valued: "pjFZ" },
  make: { runs: "--eval -f --file --makefile", valued: "CIjlOoW" },
  eslint: {
    writes: "--fix -o --output-file",
    runs: "-c --config --rulesdir --plugin --parser --resolve-plugins-relative-to",
  },
  prettier: { writes: "-w --write", runs: "--plugin --config" },
  ruff: { writes: "--fix --unsafe-fixes -o --output-file" },
  vim: { runs: "-c --cmd -S -s -u -U --startuptime -E -e", writes: "-w -W" },
  nvim: { runs: "-c --cmd -S -s -u -l --listen" },
  ip: { runs: "-batch -b -force", single: true },
}));

/**
 * A policy's entry: `prog --opt`, `prog sub --opt`, or `prog sub word` for a word right behind the subcommand. The program
 * may be a path: it counts by its name.
 */
export function parseRiskyOption(
  text: string,
): RiskyOption | { readonly error: string; readonly hint: string } {
  const words = text.trim().split(/\s+/);
  const [program = "", second, third] = words;
  const error = `\`${text}\` is no risky option`;
  if (second === undefined || words.length > 3) {
    return { error, hint: "write `PROGRAM OPTION` or `PROGRAM SUBCOMMAND OPTION`" };
  }
  if (third === undefined && !second.startsWith("-")) {
    return {
      error: `${error}: \`${second}\` does not start with \`-\``,
      hint: `for every \`${program} ${second}\` write a rule, as in \`ask: [shell(${program} ${second} *)]\``,
    };
  }
  return {
    program: programName(program),
    ...(third === undefined ? {} : { sub: second }),
    option: third ?? second,
    kind: "runs",
  };
}

/** Every use of a risky option in argv, in order; abbreviated long options and bundled short ones count. */
export function riskyUses(argv: readonly string[], added: readonly RiskyOption[] = []): readonly RiskyUse[] {
  const program = programName(argv[0] ?? "");
  const known = shipped.get(program);
  const own = added.filter((a) => a.program === program);
  if (known === undefined && own.length === 0) return [];
  const sub = subcommandIndex(argv);
  const tables = tablesOf(known ?? nothingKnown, own, argv[sub] ?? "");
  const line: Line = { known: known ?? nothingKnown, argv, sub, tables };
  const uses = argv.flatMap((word, at) => useOf(line, word, at) ?? []);
  if (known?.uses !== undefined) uses.push(...known.uses(argv));
  if (program === "git" && argv[sub] === "config") uses.push(...configUses(argv, sub));
  return uses.sort((a, b) => a.at - b.at);
}

const nothingKnown: Program = {};

type Table = { readonly valued: string; readonly risks: readonly Risks[] };
/** What holds for words before the subcommand, for that one, and behind it. */
type Tables = { readonly before: Table; readonly at: Table; readonly behind: Table };
type Line = {
  readonly known: Program;
  readonly argv: readonly string[];
  readonly sub: number;
  readonly tables: Tables;
};

// The shipped ones, by subcommand: every command asks for its own several times.
const made = new WeakMap<Program, Map<string, Tables>>();

function tablesOf(known: Program, own: readonly RiskyOption[], sub: string): Tables {
  const { subs = {} } = known;
  const name = Object.hasOwn(subs, sub) ? sub : "";
  if (own.length > 0) return makeTables(known, own, sub);
  const kept = made.get(known) ?? new Map<string, Tables>();
  made.set(known, kept);
  const tables = kept.get(name) ?? makeTables(known, own, name);
  kept.set(name, tables);
  return tables;
}

function makeTables(known: Program, own: readonly RiskyOption[], sub: string): Tables {
  const { subs = {}, valued = "" } = known;
  const mine = Object.hasOwn(subs, sub) ? subs[sub] : undefined;
  const anywhere = own.filter((o) => o.sub === undefined).map(({ option }) => ({ runs: option }));
  const under = own.filter((o) => o.sub === sub).map(({ option }) => ({ runs: option }));
  return {
    before: { valued, risks: [known, known.before ?? {}, ...anywhere] },
    at: { valued, risks: [known, ...anywhere] },
    behind: { valued: valued + (mine?.valued ?? ""), risks: [known, mine ?? {}, ...anywhere, ...under] },
  };
}

function useOf({ known, argv, sub, tables }: Line, word: string, at: number): RiskyUse | undefined {
  const { valued, risks } = at < sub ? tables.before : at > sub ? tables.behind : tables.at;
  const context = { known, valued, argv, at, firstOperand: at === sub + 1 };
  const form = word.startsWith("-") || isBundle(context, word) ? "dashed" : "bare";
  for (const table of risks) {
    for (const kind of ["runs", "writes"] as const) {
      for (const option of optionsOf(table[kind])[form]) {
        const value = usedValue(word, option, context);
        if (value === undefined) continue;
        return { at, option, kind, ...(value.known === undefined ? {} : { value: value.known }) };
      }
    }
  }
  return undefined;
}

/** `bare`: what an option may be that is a word without a dash. */
type OptionList = { readonly dashed: readonly string[]; readonly bare: readonly string[] };
const lists = new Map<string, OptionList>();
const none: OptionList = { dashed: [], bare: [] };

function optionsOf(list: string | undefined): OptionList {
  if (list === undefined) return none;
  let options = lists.get(list);
  if (options === undefined) {
    const dashed = list.split(" ");
    lists.set(list, options = { dashed, bare: dashed.filter((o) => !o.startsWith("-")) });
  }
  return options;
}

// The first word of `tar xf`.
function isBundle({ known, at }: WordContext, word: string): boolean {
  return known.dashless === true && at === 1 && !word.startsWith("-");
}

type WordContext = {
  readonly known: Program;
  readonly valued: string;
  readonly argv: readonly string[];
  readonly at: number;
  readonly firstOperand: boolean;
};

/** The value that the word gives to the option, `known: undefined` when there is none; undefined: another word. */
function usedValue(
  word: string,
  option: string,
  at: WordContext,
): { readonly known: string | undefined } | undefined {
  const next = at.argv[at.at + 1];
  if (!option.startsWith("-")) {
    return at.firstOperand && word === option ? { known: at.argv.slice(at.at + 1).join(" ") } : undefined;
  }
  const equals = word.indexOf("=");
  const name = equals < 0 ? word : word.slice(0, equals);
  const value = { known: equals < 0 ? next : word.slice(equals + 1) };
  if (at.known.single === true) return name === option || name === `-${option}` ? value : undefined;
  if (option.startsWith("--")) {
    const abbreviated = name.length > 2 && option.startsWith(name);
    return abbreviated && !optionsOf(at.known.harmless).dashed.includes(name) ? value : undefined;
  }
  return bundled(word, option.slice(1), at);
}

function bundled(
  word: string,
  letter: string,
  at: WordContext,
): { readonly known: string | undefined } | undefined {
  const dashless = isBundle(at, word);
  if (!dashless && (!word.startsWith("-") || word.startsWith("--"))) return undefined;
  for (let i = dashless ? 0 : 1; i < word.length; i++) {
    const c = word.charAt(i);
    if (c === letter) return { known: i + 1 < word.length ? word.slice(i + 1) : at.argv[at.at + 1] };
    if (!dashless && at.valued.includes(c)) return undefined;
  }
  return undefined;
}

// Setting a value writes a file from which git later runs programs (core.pager, aliases, filters).
function configUses(argv: readonly string[], sub: number): readonly RiskyUse[] {
  const words = argv.slice(sub + 1);
  const operands = words.filter((w) => !w.startsWith("-"));
  const reading = words.some((w) => /^(--get.*|-l|--list)$/.test(w)) ||
    /^(get|list)$/.test(operands[0] ?? "");
  const changing = operands.length > 1 || words.some((w) => /^--(unset|rename|remove|add|replace)/.test(w));
  if (reading || !changing) return [];
  return [{ at: sub + 1 + words.findIndex((w) => !w.startsWith("-")), option: "config", kind: "writes" }];
}
