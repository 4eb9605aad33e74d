// What a program may run of which nothing is known: for rules that restrict, its words are taken for a command that may start
// at any of them, and a word that holds a blank for a shell text.
import { knownRisk } from "../core/command_risk.ts";
import { programName, subcommandIndex } from "../core/program_options.ts";
import { callTexts } from "./command_texts.ts";
import { calls, isRead } from "./hidden_commands.ts";
import type { Wrapped } from "./unwrap.ts";
import { type Shape, unknownMark } from "./words.ts";
import { changers, namers, shells, wrappers } from "./wrapper_table.ts";

export type GuessedWords = {
  /** A command may start at any of these words. */
  readonly tail?: readonly Shape[];
  readonly texts: readonly string[];
};

// Words of these are messages, addresses, names of tests and files: none of them is run.
const recorders: ReadonlySet<string> = new Set(
  ("git gh glab hub curl wget http https xh aria2c mail sendmail svn hg dig host nslookup whois ping logger notify-send wall write " +
    "ssh-keygen useradd usermod pytest jest vitest mocha ava tsc eslint mypy pyright pylint flake8 rubocop shellcheck hadolint " +
    "kill pkill killall journalctl figlet cowsay toilet dialog whiptail zenity tput").split(" "),
);
// Verbs behind which things are named, whatever the program is.
const naming = /^(install|add|remove|uninstall|upgrade|update|search|info|show|view|help|list|describe)$/;
// What stands behind these is the name of a script or a task.
const tasks: ReadonlySet<string> = new Set("run run-script task test".split(" "));

/** `wrapped` is what is known to run of the command; where its words are all accounted for, nothing is guessed. */
export function guessedWords(words: readonly Shape[], wrapped: Wrapped): GuessedWords {
  const args = words.slice(1);
  if (args.length === 0) return nothing;
  const [first] = words;
  const program = first?.blur === undefined ? programName(first?.text ?? "") : "";
  if (program.startsWith("git-") || leavesAlone(program) || isUnwrapped(program, wrapped)) {
    return program === "git" ? { texts: gitTexts(words) } : nothing;
  }
  const from = subcommandIndex(words.map((w) => w.text));
  const verb = words[from]?.text ?? "";
  if (knownRisk(program) !== undefined || isRead(program) || naming.test(verb)) {
    const values = args.filter((w, i) =>
      w.text.startsWith("-") || args[i - 1]?.text.startsWith("-") === true
    );
    return { texts: textsOf(values) };
  }
  const names = from === 1 && !hasVerbs.has(program) ? 0 : tasks.has(verb) ? 2 : 1;
  const tail = words.slice(Math.max(1, names === 0 ? 1 : from + names));
  return {
    ...(tail.some((w) => /^[\w./+~]/.test(w.text)) ? { tail } : {}),
    texts: textsOf(args),
  };
}

const nothing: GuessedWords = { texts: [] };
const hasVerbs: ReadonlySet<string> = new Set(
  "npm pnpm yarn bun deno uv poetry cargo go docker podman nerdctl bundle composer mvn kubectl".split(" "),
);

function leavesAlone(program: string): boolean {
  return recorders.has(program) || knownRisk(program) === "read" ||
    (changers.has(program) && program !== "source" && program !== ".") || namers.has(program);
}

// A wrapper whose command was found.
function isUnwrapped(program: string, { inner }: Wrapped): boolean {
  return inner.length > 0 && (shells.has(program) || Object.hasOwn(wrappers, program));
}

// Settings of git may name a program that no table lists.
function gitTexts(words: readonly Shape[]): readonly string[] {
  const settings = words.filter((w, i) =>
    words[i - 1]?.text === "-c" && /^(?!user\.|author\.|committer\.)[\w.-]+=/.test(w.text)
  );
  return textsOf(settings);
}

function textsOf(words: readonly Shape[]): readonly string[] {
  const texts = words.filter((w) => /\s/.test(w.text)).flatMap((w) => {
    const whole = w.blur?.pieces.join(unknownMark) ?? w.text;
    const [equals, colon] = [whole.indexOf("="), whole.indexOf(":")];
    const said = [
      whole,
      ...(equals < 0 ? [] : [whole.slice(equals + 1)]),
      ...(colon < 0 ? [] : [whole.slice(colon + 1)]),
      ...(/^-[A-Za-z][^-]/.test(whole) ? [whole.slice(2)] : []),
      ...whole.split("%pipe%").slice(1).map((text) => text.split(")")[0] ?? ""),
    ].map((text) => text.replace(/^[\s!|@\\:;,+-]+/, "").replace(/^(["'])(.*)\1$/s, "$2"));
    return calls.test(whole) || /write18|%pipe/.test(whole) ? [...said, ...callTexts(whole)] : said;
  });
  return [...new Set(texts)].filter((text) => /\S\s+\S/.test(text));
}
