// Allow rules that give away more than they seem to.
import type { CommandPattern } from "./command.ts";
import { absoluteGlob, type GlobBase } from "./glob.ts";
import { isWithin } from "./path.ts";
import { programName } from "./program_options.ts";
import type { Rule } from "./rule.ts";
import { builtinsOf } from "./tool_names.ts";

const interpreters: ReadonlySet<string> = new Set(
  ("sh bash dash zsh ksh mksh ash yash fish csh tcsh pwsh powershell python python2 python3 pypy pypy3 ipython node nodejs deno bun " +
    "tsx ts-node ruby irb perl php lua luajit r rscript julia osascript tclsh wish expect java jshell groovy scala kotlin erl elixir " +
    "iex ghci runghc guile racket sbcl clojure awk gawk mawk nawk vim nvim vi emacs ed ex gdb lldb m4 make gmake just task rake " +
    "writ").split(" "),
);
/** Subcommands that run any file or text. */
const running: ReadonlySet<string> = new Set(["run", "eval", "exec", "x", "repl", "task"]);

/**
 * Why an allow rule is broader than most people mean, for each of its ways to be so; entries of shipped sets apart. `runsOthers` says whether the
 * command of these words runs another one that follows them.
 */
export function broadness(
  rule: Rule,
  base: GlobBase,
  runsOthers: (words: readonly string[]) => boolean,
): readonly string[] {
  const tools = toolsOf(rule);
  const faults: string[] = [];
  const bare = rule.command === undefined && rule.path === undefined && rule.host === undefined &&
    rule.args === undefined && rule.skill === undefined && !onlyReads(rule);
  if (bare && tools.includes("shell")) faults.push("it covers every command");
  const writers = tools.filter((tool) => tool === "write_file" || tool === "edit_file");
  if (bare && writers.length > 0) {
    faults.push(`it covers every file of the workspace that ${list(writers)} can reach`);
  }
  if (bare && tools.includes("fetch_url")) faults.push("it covers every host");
  for (const command of rule.command ?? []) {
    const why = broadCommand(command, runsOthers);
    if (why !== undefined) faults.push(`\`${command.source}\` ${why}`);
  }
  if (writers.length > 0) {
    faults.push(
      ...(rule.path ?? []).flatMap((p) => {
        const tree = treeOf(p.source, base);
        return tree === undefined ? [] : [`\`${p.source}\` covers every file of ${tree}`];
      }),
    );
  }
  if (rule.host?.some((h) => h.kind === "any") === true) faults.push("`*` covers every host");
  return faults;
}

// By name only: what a glob over tools may mean beyond them is not known here.
function toolsOf(rule: Rule): readonly string[] {
  return [...new Set(rule.tools.flatMap((tool) => builtinsOf(tool)))];
}

function onlyReads(rule: Rule): boolean {
  return rule.risk !== undefined && rule.risk.every((risk) => risk === "read");
}

function broadCommand(
  { words, rest, set }: CommandPattern,
  runsOthers: (words: readonly string[]) => boolean,
): string | undefined {
  if (!rest || set !== undefined) return undefined;
  const [first, ...others] = words;
  if (first === undefined) return "covers every command";
  const program = programName(first);
  const open = others.every((word) => word.startsWith("-") || running.has(word));
  if (isInterpreter(program) && open) return `lets \`${program}\` run any program text or file`;
  return runsOthers(words) ? `lets \`${program}\` run any other command` : undefined;
}

function isInterpreter(program: string): boolean {
  return interpreters.has(program) || interpreters.has(program.replace(/[0-9.]+$/, ""));
}

// The tree of which the glob covers every file, for people; undefined where it covers no whole one.
function treeOf(source: string, base: GlobBase): string | undefined {
  const made = absoluteGlob(source, base);
  if ("error" in made || !/\/\*\*(\/\*)?$/.test(made.glob)) return undefined;
  const { prefix } = made;
  if (prefix === base.root) return "the workspace";
  if (prefix === base.home) return "your home";
  return [base.root, base.home].some((path) => isWithin(path, prefix)) ? `\`${prefix}\`` : undefined;
}

function list(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(" and ");
}
