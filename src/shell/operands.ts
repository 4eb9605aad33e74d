// Which words of a command are paths that it reads or writes. For rules that restrict: what might be one counts.
import { programName, subcommandIndex } from "../core/program_options.ts";
import { riskyUses } from "../core/risky_options.ts";
import { scriptFiles } from "../core/script_risk.ts";
import { deepRead } from "./folders.ts";
import type { Shape } from "./words.ts";

export type Operand = {
  readonly written: string;
  readonly access: "read" | "write";
  /** Looks like a path, or the program takes nothing else; otherwise it counts when such a file is there. */
  readonly sure: boolean;
  /** Holds unquoted wildcards. */
  readonly glob?: true;
  /** When it is a folder, all that is below it counts. */
  readonly deep?: "all" | "visible";
  /** Counts only when none of these is there. */
  readonly unless?: readonly string[];
};

function set(text: string): ReadonlySet<string> {
  return new Set(text.split(" "));
}

// Their words are text, not names of files.
const talkers = set(
  "echo printf true false : exit return break continue shift sleep kill expr seq type which export alias set unset trap",
);
const fileReaders = set(
  "cat head tail less more nl tac rev cut sort uniq wc od xxd hexdump strings base64 md5sum sha1sum sha256sum sha512sum cksum file stat " +
    "diff cmp comm join paste column fold fmt source . grep egrep fgrep rg ag sed awk gawk cp mv ln tee dd install rsync scp tar zip gzip " +
    "zcat openssl gpg bat jq yq python python3 node ruby perl bash sh",
);
const writers = set(
  "cp mv ln tee touch rm unlink mkdir rmdir install truncate chmod chown chgrp shred mkfifo mknod split gzip gunzip bzip2 xz zstd patch rsync",
);
// The first operand is a pattern or a script unless an option gives it.
const patternFirst: Readonly<Record<string, RegExp>> = {
  grep: /^(-[a-zA-Z]*[ef]|--regexp|--file)/,
  egrep: /^(-[a-zA-Z]*[ef]|--regexp|--file)/,
  fgrep: /^(-[a-zA-Z]*[ef]|--regexp|--file)/,
  rg: /^(-[a-zA-Z]*[ef]|--regexp|--file|--files)/,
  ag: /^$/,
  sed: /^(-[a-zA-Z]*[ef]|--expression|--file)/,
  awk: /^(-[a-zA-Z]*[ef]|--source|--file)/,
  gawk: /^(-[a-zA-Z]*[ef]|--source|--file)/,
  jq: /^(-f|--from-file)/,
  perl: /^(-[a-zA-Z]*[eE])/,
};

const longestPath = 4096;

/** The path operands of one command, in order. */
export function operandsOf(words: readonly Shape[]): readonly Operand[] {
  const program = programName(words[0]?.text ?? "");
  if (talkers.has(program)) return [];
  const argv = words.map((w) => w.text);
  const skipped = patternAt(program, argv);
  const sub = program === "git" ? subcommandIndex(argv) : 0;
  const git = program === "git" ? argv[sub] ?? "" : "";
  const reads = fileReaders.has(program);
  const writes = writers.has(program) || /^(add|rm|mv|restore|checkout|clean)$/.test(git);
  const inPlace = riskyUses(argv).filter((u) => u.kind === "writes");
  const deep = deepRead(words);
  const level = deep === undefined ? {} : { deep: deep.visible ? "visible" as const : "all" as const };
  const found = words.flatMap((word, at): readonly Operand[] => {
    if (at <= sub || at === skipped) return [];
    return pathsIn(word).flatMap((path): readonly Operand[] => {
      const sure = looksLikePath(path) || (reads && !/^-|\s/.test(word.text));
      const glob = word.blur?.glob === true ? { glob: true as const } : {};
      const read: Operand = { written: path, access: "read", sure, ...glob, ...level };
      const changed = writes || (program === "dd" && word.text.startsWith("of=")) ||
        (program === "sed" && inPlace.some((u) => u.option.startsWith("-")));
      const { deep: _, ...shallow } = read;
      return changed ? [read, { ...(deep?.changes === true ? read : shallow), access: "write" }] : [read];
    });
  });
  const here: readonly Operand[] = deep?.here !== true ? [] : [
    {
      written: ".",
      access: deep.changes === true ? "write" : "read",
      sure: true,
      ...level,
      unless: found.map((o) => o.written),
    },
  ];
  const written = inPlace.flatMap((use): readonly Operand[] =>
    use.value === undefined || program === "sed" || program === "gsed" || program === "find" ||
      program === "git" && use.option === "config"
      ? []
      : [{ written: use.value, access: "write", sure: true }]
  );
  const named = scriptFiles(program, argv).map((f): Operand => ({
    written: f.path,
    access: f.access,
    sure: f.sure,
  }));
  return [...found, ...here, ...written, ...named];
}

function patternAt(program: string, argv: readonly string[]): number {
  const given = Object.hasOwn(patternFirst, program) ? patternFirst[program] : undefined;
  if (given === undefined || argv.some((w, i) => i > 0 && given.test(w))) return -1;
  return argv.findIndex((w, i) => i > 0 && !w.startsWith("-"));
}

// `--file=a`, `if=a`, `@a`, `HEAD:a`, `a:b` and `file://a` name files inside a word.
function pathsIn(word: Shape): readonly string[] {
  if (word.blur !== undefined && word.blur.glob !== true) return [];
  const { path } = word;
  const texts = new Set<string>();
  const add = (text: string) => {
    if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return;
    if (text !== "" && text !== "-" && text.length < longestPath && !/[\n\0]/.test(text)) texts.add(text);
  };
  if (!path.startsWith("-") && !/^(if|of)=/.test(path)) add(path);
  const equals = path.indexOf("=");
  if (equals > 0) add(path.slice(equals + 1));
  if (path.startsWith("@")) add(path.slice(1));
  if (/^-[a-zA-Z](\.|~|.*\/)/.test(path)) add(path.slice(2));
  if (path.startsWith("file://")) add(path.slice(7));
  else if (path.includes(":") && !/^[a-z][a-z0-9+.-]*:\/\//i.test(path)) {
    const pieces = (path.startsWith("-") ? path.slice(equals + 1) : path).split(":");
    if (pieces.length <= 4) pieces.forEach(add);
  }
  return [...texts];
}

function looksLikePath(text: string): boolean {
  return text.includes("/") || text.startsWith(".") || text === "~";
}
