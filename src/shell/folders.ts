// Into which folders a command goes, and which of its operands it reads with all that is below them.
import { programName, subcommandIndex } from "../core/program_options.ts";
import type { Shape } from "./words.ts";

const folderOptions: Readonly<Record<string, RegExp>> = {
  git: /^-C(.*)$/,
  go: /^-C(.*)$/,
  cargo: /^-C(.*)$/,
  ninja: /^-C(.*)$/,
  make: /^(?:-C|--directory=?)(.*)$/,
  gmake: /^(?:-C|--directory=?)(.*)$/,
  tar: /^(?:-[a-zA-Z]*C|--directory=?|--cd=?)(.*)$/,
  bsdtar: /^(?:-[a-zA-Z]*C|--directory=?|--cd=?)(.*)$/,
  env: /^(?:-[a-zA-Z0]*C|--chdir=?)(.*)$/,
  sudo: /^(?:-[a-zA-Z]*D|--chdir=?)(.*)$/,
  npm: /^(?:-C|--prefix=?)(.*)$/,
  pnpm: /^(?:-C|--dir=?)(.*)$/,
  yarn: /^--cwd=?(.*)$/,
  bun: /^--cwd=?(.*)$/,
  "7z": /^-o(.*)$/,
  zip: /^-b(.*)$/,
  chroot: /^--?$/,
};

/** Folders, as written, in which the command or what follows it may stand; those that are not known are left out. */
export function foldersOf(words: readonly Shape[]): readonly string[] {
  const program = programName(words[0]?.text ?? "");
  const known = (word: Shape | undefined) => word === undefined || word.blur !== undefined ? [] : [word.path];
  if (program === "cd" || program === "pushd") {
    const target = words.slice(1).find((w) => !/^[-+]/.test(w.text));
    return target === undefined && program === "cd" ? ["~"] : known(target);
  }
  const option = Object.hasOwn(folderOptions, program) ? folderOptions[program] : undefined;
  if (option === undefined) return [];
  return words.flatMap((word, i) => {
    const [, glued] = i === 0 ? [] : option.exec(word.text) ?? [];
    if (glued === undefined) return [];
    return glued === "" ? known(words[i + 1]) : word.blur === undefined ? [glued] : [];
  });
}

/** `path` as it is written from one folder further up; undefined for one that does not depend on it. */
export function below(folder: string, path: string): string | undefined {
  return path.startsWith("/") || path === "~" || path.startsWith("~/") ? undefined : `${folder}/${path}`;
}

/** How a command reads the folders among its operands. */
export type Deep = {
  /** Names that start with a dot are left out, and folders of packages. */
  readonly visible?: true;
  /** What is below is changed, not only read. */
  readonly changes?: true;
  /** Without an operand it takes the folder that it stands in. */
  readonly here?: true;
};

function letters(words: readonly Shape[]): ReadonlySet<string> {
  return new Set(
    words.slice(1).flatMap(({ text }) =>
      text.startsWith("--") ? [text.split("=")[0] ?? text] : text.startsWith("-") ? [...text.slice(1)] : []
    ),
  );
}

/** Undefined: it reads no folder with all that is below it. */
export function deepRead(words: readonly Shape[]): Deep | undefined {
  const program = programName(words[0]?.text ?? "");
  const seen = letters(words);
  const has = (...options: readonly string[]) => options.some((o) => seen.has(o));
  const starts = (...options: readonly string[]) =>
    [...seen].some((s) => options.some((o) => s.length > 4 && o.startsWith(s)));
  switch (program) {
    case "grep":
    case "egrep":
    case "fgrep":
    case "zgrep":
      return has("r", "R") || starts("--recursive", "--dereference-recursive", "--directories") ||
          words.some((w) => /^-[a-zA-Z]*d(recurse)?$/.test(w.text))
        ? { here: true }
        : undefined;
    case "rgrep":
    case "ugrep":
      return { here: true };
    case "rg":
    case "ag":
    case "ack":
      return words.some((w) => /^-[a-zA-Z]*u|^-\.|^--(hidden|unr|no-ignore|all)/.test(w.text)) ||
          has("a") && program === "ag"
        ? { here: true }
        : { here: true, visible: true };
    case "git": {
      const at = subcommandIndex(words.map((w) => w.text));
      const sub = words[at]?.text;
      if (sub === "grep") return starts("--no-index", "--untracked") ? { here: true } : undefined;
      return sub === "diff" && starts("--no-index") ? {} : undefined;
    }
    case "diff":
    case "mv":
      return program === "mv" ? { changes: true } : {};
    case "cp":
      return has("r", "R", "a") || starts("--recursive", "--archive") ? {} : undefined;
    case "scp":
    case "zip":
      return has("r", "R") || starts("--recurse-paths") ? {} : undefined;
    case "rsync":
      return has("r", "a") || starts("--recursive", "--archive") || has("d") ? {} : undefined;
    case "tar":
    case "bsdtar":
      return /^-?[a-zA-Z]*[cru]/.test(words[1]?.text ?? "") || has("c", "r", "u") ||
          starts("--create", "--append", "--update", "--concatenate")
        ? {}
        : undefined;
    case "7z":
    case "7za":
    case "7zr":
    case "jar":
    case "pax":
    case "mksquashfs":
    case "genisoimage":
    case "mkisofs":
    case "rclone":
    case "restic":
    case "borg":
      return {};
    case "gzip":
    case "rm":
    case "chmod":
    case "chown":
    case "chgrp":
      return has("r", "R") || starts("--recursive") ? { changes: true } : undefined;
    case "docker":
    case "podman":
      return /^(build|cp|buildx)$/.test(words[1]?.text ?? "") ? {} : undefined;
    case "find":
      return words.some((w) => /^-(exec|ok)(dir)?$|^-delete$/.test(w.text))
        ? { here: true, ...(words.some((w) => w.text === "-delete") ? { changes: true as const } : {}) }
        : undefined;
    default:
      return undefined;
  }
}
