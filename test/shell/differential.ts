// Support for differential.test.ts: seeds, mutations, a real bash that logs what it would run, and the comparison.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import type { Part } from "../../src/core/facts.ts";

/** Sources with no absolute program and no target outside their folder: they are really given to bash. */
export const seeds: readonly string[] = [
  "aa b c; dd e",
  "aa | bb |& cc",
  "aa && bb || cc & dd",
  "! aa; time bb; time -p cc",
  "aa 'b c' \"d $(ee f) g\" `hh i`",
  "aa $'\\x62\\t' $\"d\" e\\ f \\g",
  "aa $'\\x{63}d\\u0065\\146\\cg' $'\\u00e9\\ch' $'\\'i'\\j $'k\\0l'; $'b\\x{62}' $'\\xc3\\xa9'",
  "aa {b,c}{d,e} {1..3} x{a..c}y {f,g",
  "{aa,-b,c}; a{a,b} d",
  "aa <(bb c) >(dd e) f<(gg)h",
  "aa <(bb){c,d} {e,f}>(gg) >() h <(ii) # jj",
  'aa "${x:-"{b,c}$(dd)"}" "${y:-"e"}" f',
  "aa <<EOF\n$(bb c) \\$(dd) `ee`\nEOF\nff",
  "aa <<'EOF' bb\n$(cc)\nEOF\ndd",
  "aa <<-E\n\tx $(bb)\n\tE\ncc",
  'aa <<< "$(bb c)" dd',
  "aa 2>&1 >o 3<&0 &>p 4>&- <<<x bb",
  "eval$x 'aa $(bb)'; cc$[{1,2}+1] d",
  "x='$(aa b)'; cc >&$x; dd >&1; ee >&\"$x\"",
  ">&o aa b; <>o cc; >|o dd; &>>o ee",
  "if aa; then bb; elif cc; then dd; else ee; fi >o",
  "for i in a $(bb) c; do cc $i; done",
  "for ((i=0;i<2;i++)); do aa $i; done",
  "while aa && bb; do cc; break; done; until dd; do break; done",
  "case x$(aa) in x|y) bb;; *) cc;& z) dd;; esac",
  "case a in (a) bb ;; esac",
  "aa() { bb c; }; aa d; function ee { ff; }; ee",
  "aa() ( bb ) >o; aa",
  "(aa; bb) | { cc; dd; }",
  "X=1 Y=$(aa) bb c; Z=(1 $(cc) 3); W[$(dd)]=1",
  "a=b; $a c; ${a:-$(dd)} e; ${x:=ff} g",
  "eval 'aa b; cc'; eval dd e '$(ff)'",
  "eval \"aa 'b c'\"; eval 'for i in 1; do gg; done'",
  "[[ -f $(aa) && x == y* || ( -n $(bb) ) ]]; [[ $(cc) =~ a(b|c) ]]",
  "(( x = $(aa) + 1 )); y=$(( $(bb) + 2 )); echo $[ $(cc) ]",
  "let 'a[$(aa)]=1'; test -v 'b[$(bb)]'; [[ -v 'c[$(cc)]' ]]",
  "aa # bb; cc\ndd #ee",
  "aa \\\nbb \\\ncc",
  "coproc aa b; coproc NAME { cc; }",
  "trap 'aa b' EXIT; trap - INT",
  "command aa b; command -p cc; builtin echo x; command -v dd",
  'echo ${x/$(aa)/b} ${#x} ${!x} "${x[@]}" ${x:$(bb):1}',
  'echo "${x:-"$(aa)"}" \'${y:-$(bb)}\' "\\$(cc)"',
  "`aa \\`bb c\\``; $(dd $(ee))",
  "aa=1 bb <o; <x cc; 2>o dd",
  "{ aa; } 2>&1; { bb\n}\n",
  "select i in a; do aa; break; done <<< 1",
  "aa;bb;;cc",
  "aa ~ ~/b ~c 'd'~ e~",
  "aa *.x ?b [cd]e \\*f '*'g",
  "declare x=$(aa) -a y=(1 $(bb)); export z=`cc`; local q=1; readonly r=$(dd)",
  "echo x | while read l; do aa $l; done",
  'aa -- -b --c=d \'e f\' "g\\"h"',
  "aa\tb\n\n\ncc",
  "if [ x ]; then aa; fi; [ $(bb) ] && cc",
  "echo a{b,$(aa)}c {$(bb),d}",
  "aa !b !; ! ! cc",
  "aa & bb & wait; cc",
  "((aa)); (( bb )) && cc; ( (dd) )",
  'aa $((1+1)) $((x)) ${x+$(bb)} "$((2 + $(cc)))"',
  "printf -v x '%s' aa; bb \"$x\"; $x",
  'set -- aa bb; "$@"; $1 c; "$*"',
  'aa "b`cc "d e"`f"',
  "aa $(<o) $(bb; cc) $( (dd) )",
  "aa ${x:-{a,b}} {x,${y:-$(bb)}}",
];

/** A small generator of numbers in [0, 1): equal seeds give equal runs. */
export function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const pieces = [
  ..."'\"`$(){}[]<>|&;#\\*?!~=, \n\tax1-:@%^+",
  "$(",
  "${",
  "$((",
  "))",
  "<(",
  ">(",
  "<<E\n",
  "<<'E'\n",
  "\nE\n",
  "&&",
  "||",
  ";;",
  "$'",
  '$"',
  "\\\n",
  "2>&1",
  ">o",
  "{a,b}",
  "@(a|b)",
  " zz ",
  "; zz",
  "| zz",
  "if ",
  "then ",
  "fi",
  "do ",
  "done",
  "esac",
  "in ",
  "function ",
  "time ",
  "coproc ",
  "eval ",
  "[[ ",
  " ]]",
  "((",
  "\r",
  "\u00a0",
];

export function mutate(source: string, other: string, random: () => number): string {
  let text = source;
  for (let n = 1 + Math.floor(random() * 3); n > 0; n--) {
    const at = Math.floor(random() * (text.length + 1));
    const piece = pieces[Math.floor(random() * pieces.length)] ?? "";
    const kind = random();
    if (kind < 0.5) text = text.slice(0, at) + piece + text.slice(at);
    else if (kind < 0.75) text = text.slice(0, at) + text.slice(at + 1 + Math.floor(random() * 3));
    else if (kind < 0.9) text = text.slice(0, at) + piece + text.slice(at + 1);
    else text = text.slice(0, at) + other.slice(Math.floor(random() * other.length));
  }
  return text;
}

/** Whether running the source could leave its folder or never end: those are not run. */
export function isTame(source: string): boolean {
  const programsOnPath = /(^|[^a-z])\/|\.\.|\bcd\b|\bkill\b|\bexec\b|\bulimit\b/;
  const runaway = /\(\s*\)[^]*[|&]|\bfunction\b|\bwhile\b[^]*[|&]|\buntil\b[^]*[|&]/;
  return !programsOnPath.test(source) && !(runaway.test(source) && /&(?![&>])|\|/.test(source));
}

const bash = "/bin/bash";
export const hasBash = existsSync(bash);

// What bash reads before the text: limits, and a handler that logs every command there is not. The log is a pipe that
// everything bash starts holds open: its end says that all of it is gone. One write for each command keeps those that run
// side by side apart; a line break would make two.
const beforehand = `unset BASH_ENV
ulimit -t 1 -f 64 -n 64
exec 9>&1 >/dev/null
command_not_found_handle() { printf '%s\\0' "\${@//$'\\n'/$'\\xee\\x80\\x81'}" $'\\xee\\x80\\x82' >&9; return 127; }
`;

const mostLogged = 256 * 1024;
// For the whole text, and then for the killed processes to be gone.
const time = { run: 3000, end: 10_000 };

/**
 * Gives the source to bash in an empty folder; answers every argv that it tried to run, at most 60, also those of commands
 * in the background. Nothing that it started is left. Rejects when that cannot be reached.
 */
export async function runInBash(source: string): Promise<readonly (readonly string[])[]> {
  const home = mkdtempSync(join(tmpdir(), "writ-bash-"));
  const folder = join(home, "empty");
  const environment = join(home, "env");
  mkdirSync(folder);
  writeFileSync(environment, beforehand);
  const log = await logOf(source, folder, environment);
  rmSync(home, { recursive: true });
  return log.split("\ue002\0").slice(0, -1).slice(0, 60).map((entry) =>
    entry.replaceAll("\ue001", "\n").split("\0").slice(0, -1)
  );
}

function logOf(source: string, folder: string, environment: string): Promise<string> {
  return new Promise((resolve, reject) => {
    // A group of its own: a job in the background is killed with it.
    const child = spawn(bash, ["--noprofile", "--norc", "-c", source], {
      cwd: folder,
      env: { PATH: "/nowhere", HOME: folder, BASH_ENV: environment },
      stdio: ["ignore", "pipe", "ignore"],
      detached: true,
    });
    const kept: Uint8Array[] = [];
    let size = 0;
    child.stdout.on("data", (bytes: Uint8Array) => {
      if (size < mostLogged) kept.push(bytes);
      size += bytes.length;
    });
    const last = setTimeout(() => killGroup(child.pid), time.run);
    const never = setTimeout(
      () => reject(new Error(`something that ${JSON.stringify(source)} started is still running`)),
      time.run + time.end,
    );
    const stop = () => [last, never].forEach(clearTimeout);
    child.on("error", (error) => {
      stop();
      reject(error);
    });
    // The process has ended and the pipe has no writer.
    child.on("close", () => {
      stop();
      resolve(new TextDecoder().decode(Buffer.concat(kept)));
    });
  });
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It ended just now.
  }
}

/** Whether the part, as far as it is known, could be this command. */
export function couldRun(part: Part, argv: readonly string[]): boolean {
  const tokens = part.argv.map((text, at) => ({ text, blur: part.blurs?.find((b) => b.at === at) }));
  let due = new Set([0]);
  for (const { text, blur } of tokens) {
    const next = new Set<number>();
    for (const i of due) {
      const word = argv[i];
      if (blur?.many === true) { for (let to = i; to <= argv.length; to++) next.add(to); }
      if (word === undefined) continue;
      if (word === text || text.startsWith("~") || (blur !== undefined && fits(blur.pieces, word))) {
        next.add(i + 1);
      }
    }
    due = next;
  }
  return tokens.length > 0 && due.has(argv.length);
}

function fits(pieces: readonly string[], word: string): boolean {
  let from = 0;
  for (const piece of pieces) {
    const at = word.indexOf(piece, from);
    if (at < 0) return false;
    from = at + piece.length;
  }
  return true;
}
