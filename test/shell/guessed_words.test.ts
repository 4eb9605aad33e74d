import { assert, assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { commandMiss } from "../../src/core/command_miss.ts";
import { matchesCommand, parseCommandPattern } from "../../src/core/command.ts";
import { parseShell } from "../../src/shell/parse.ts";

/** How a rule that restrains `git merge *` sees the command: it runs, it may run, or neither. */
function seen(command: string): string {
  const { parts, guesses, errors } = parseShell(command);
  const pattern = parseCommandPattern("git merge *");
  assert(!("error" in pattern));
  assertEquals(errors, []);
  if (parts.some((p) => matchesCommand(pattern, p, "restrict"))) return "runs";
  return guesses.some((g) => matchesCommand(pattern, g, "restrict")) ? "may run" : "no";
}

const tables: Readonly<Record<string, readonly (readonly [command: string, seen: string])[]>> = {
  "words of a program of which nothing is known": [
    ["logsave f git merge x", "may run"],
    ["cmake -E env git merge x", "may run"],
    ["ctest --build-and-test . . --test-command git merge x", "may run"],
    ["runcon x git -C y merge x", "may run"],
    ["mpirun -n 2 /usr/bin/git merge x", "may run"],
    ["lxc-attach -n x -- git merge x", "may run"],
    ["flatpak-spawn --host git merge x", "may run"],
    ["docker compose run x git merge x", "may run"],
    ['f() { "$@"; }; f git merge x', "may run"],
    ["./run.sh git-merge x", "may run"],
    [`any ${"a ".repeat(300)}git merge x`, "may run"],
    [`any git ${"-c a.b=c ".repeat(300)}merge x`, "may run"],
    ["any $X git merge x", "may run"],
    ["any git $X", "may run"],
    ["any git", "no"],
    ["any git is fine", "no"],
    ["docker build -t git .", "no"],
  ],
  "texts that a program may hand to a shell": [
    ["sbatch --wrap 'git merge x'", "may run"],
    ["sops exec-env f 'git merge x'", "may run"],
    ["diff3 --diff-program='git merge x' a b c", "may run"],
    ["bun exec 'git merge x'", "may run"],
    ["deno task --eval 'git merge x'", "may run"],
    ["dc -e '!git merge x'", "may run"],
    ["pwsh -c 'git merge x'", "may run"],
    ["julia -e 'run(`git merge x`)'", "runs"],
    ["R -e 'system(\"git merge x\")'", "runs"],
    ["gnuplot -e 'system \"git merge x\"'", "runs"],
    ["python3 -m timeit 'os.system(\"git merge x\")'", "may run"],
    ["xelatex '\\write18{git merge x}'", "may run"],
    ["any 'any \"git merge x\"'", "may run"],
    ["any 'cd y; env A=1 git merge x'", "may run"],
  ],
  "options and verbs of known programs": [
    ["split --filter='git merge x' a", "runs"],
    ["split --filter 'git merge x' a", "runs"],
    ["zip a.zip a -T -TT 'git merge x #'", "runs"],
    ["zip a.zip a -T --unzip-command 'git merge x'", "runs"],
    ["gpg-agent --daemon git merge x", "runs"],
    ["arch -x86_64 git merge x", "runs"],
    ["git -c tar.x.command='git merge x' archive --format=x HEAD", "runs"],
    ["git -c imap.tunnel='git merge x' imap-send", "runs"],
    ["git -c some.thing='git merge x' log", "may run"],
    ["ssh -o ProxyCommand='git merge x' h", "runs"],
    ["git pull --no-rebase . x", "runs"],
    ["git bisect run sh -c 'git merge x'", "runs"],
    ["git bisect run git merge x", "runs"],
    ["git submodule foreach 'git merge x'", "runs"],
  ],
  "words that are printed, searched or kept": [
    ["git commit -m 'git merge x'", "no"],
    ["git commit -m 'fix: git merge x'", "no"],
    ["git log --grep 'git merge x'", "no"],
    ["git tag -a v1 -m 'git merge x'", "no"],
    ["git -c user.name='git merge bot' commit -m x", "no"],
    ["echo git merge x", "no"],
    ["printf '%s' 'git merge x'", "no"],
    ["rg 'git merge x' .", "no"],
    ["timeout 5 rg 'git merge x'", "no"],
    ["cat 'git merge x'", "no"],
    ["ls git merge x", "no"],
    ["test 'git merge x' = y", "no"],
    ["touch 'git merge x'", "no"],
    ["gh pr create --title 'git merge x'", "no"],
    ["npm install git merge", "no"],
    ["pytest -k 'git merge x'", "no"],
    ["export MSG='git merge x'", "no"],
    ["sed -n '/git merge x/p' f", "no"],
    ["python3 -c 'print(\"git merge x\")'", "no"],
    ["arch", "no"],
  ],
};

for (const [what, rows] of Object.entries(tables)) {
  describe(what, () => {
    for (const [command, expected] of rows) {
      test(command.slice(0, 60), () => assertEquals(seen(command), expected));
    }
  });
}

test("guessed words are no part of the command, and an allow rule neither needs nor covers them", () => {
  const { parts, guesses } = parseShell("any git merge x");
  assertEquals(parts.map((p) => [p.argv, p.level]), [[["any", "git", "merge", "x"], "top"]]);
  assertEquals(guesses, [{
    argv: ["git", "merge", "x"],
    text: "git merge x",
    assignments: [],
    level: "guessed",
    mayRun: "any",
    anyStart: true,
  }]);
});

test("what a rule misses of guessed words is its first word", () => {
  const pattern = parseCommandPattern("git merge *");
  const [guess] = parseShell("any rm x").guesses;
  assert(!("error" in pattern) && guess !== undefined);
  assertEquals(commandMiss(pattern, guess, "restrict"), {
    missed: "word",
    why: "word 1 is `git`, the call has `rm`",
    progress: 0,
  });
});
