import { describe, test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import type { Part } from "../../src/core/facts.ts";
import { longestCommand, parseShell } from "../../src/shell/parse.ts";

// `git status` is an understood command of the top level, `+` one inside, `?` one that is not understood, `~` one that
// a rule may name in spite of that.
function shown(part: Part): string {
  const mark = part.notUnderstood === undefined ? "" : part.nameable === true ? "~ " : "? ";
  const words = [...part.assignments, ...part.argv].map((w) => /\s|^$/.test(w) ? `'${w}'` : w).join(" ");
  return `${part.level === "inner" ? "+ " : ""}${mark}${words}`;
}

function parts(command: string): string[] {
  const text = parseShell(command);
  assertEquals(text.errors, [], command);
  return text.parts.map(shown);
}

type Row = readonly [command: string, ...parts: string[]];

function table(rows: readonly Row[]): void {
  for (const [command, ...expected] of rows) test(command, () => assertEquals(parts(command), expected));
}

describe("parseShell() finds the commands of lists and control flow", () => {
  table([
    ["git status && git diff | cat; ls & wait", "git status", "git diff", "cat", "ls", "wait"],
    ["git status\n\n# a comment\nls # another", "git status", "ls"],
    ["if a; then b; elif c; then d; else e; fi", "a", "b", "c", "d", "e"],
    ["for i in x y; do a; done; while b; do c; done; until d; do e; done", "a", "b", "c", "d", "e"],
    ["case x in y|z) a;; *) b;; esac", "a", "b"],
    ["{ a; (b; c); } 2>&1", "a", "b", "c"],
    ["! a; a |& b", "a", "a", "b"],
    ["select i in x; do a; done", "a"],
    ["[[ -f x && $y == z* ]] && a", "a"],
    ["[[ $(a) ]]", "+ a", "? "],
    ["(( x + 1 )) && a", "? ", "a"],
    ["((1 < 2)) && a", "a"],
    ["for PATH in .; do a; done", "? ", "a"],
    ["for f in $(a); do b; done", "+ a", "? ", "b"],
    ["for f in $list; do b; done", "b"],
    ["for ((i=0; i<3; i++)); do a; done", "? ", "? ", "? ", "a"],
    ["coproc a b", "? ", "+ a b"],
    ["f() { a; }; f", "? ", "+ a", "f"],
    ["time a b", "~ time a b", "+ a b"],
    ["time a | b", "? ", "+ a", "+ b"],
  ]);
});

describe("parseShell() unquotes", () => {
  table([
    [`"git" 'di'ff s\\rc`, "git diff src"],
    [`echo "a; b" 'c && d' e\\;f "\\$(g)" it\\'s`, "echo 'a; b' 'c && d' e;f $(g) it's"],
    [`$'\\x72m' $'a\\tb'`, "rm 'a\tb'"],
    [`$'\\x{72}m' a`, "? $'\\x{72}m' a"],
    [`$'r\\u00e9' a`, "? $'r\\u00e9' a"],
    ["echo a\\\nb", "echo ab"],
    ["cat <<'EOF'\nrm $(x)\nEOF", "cat"],
    ["cat <<EOF\nrm x\nEOF", "cat"],
    ["echo '' \"\"", "echo '' ''"],
    ["ls *.ts ~/x", "ls *.ts ~/x"],
    ["echo ünï 'no\u00a0break' $'\\u202e'", "? echo ünï 'no\u00a0break' $'\\u202e'"],
  ]);
});

describe("parseShell() does not understand what is only known when it runs", () => {
  table([
    ["$X y", "? $X y", "+ y"],
    ["git $X", "? git $X"],
    ["echo ${X:=y} ${!v} ${v@P}", "? echo ${X:=y} ${!v} ${v@P}"],
    ["echo $((x+1))", "? echo $((x+1))"],
    ["{rm,-rf,x}", "? rm -rf x"],
    ["echo {1..3} a{b,c}", "? echo 1 2 3 ab ac"],
    ["a{},b} c", "? a{},b} c", "+ c"],
    ["eval$a 'rm x'", "? eval$a 'rm x'", "+ 'rm x'", "+ ~ eval 'rm x'", "+ rm x"],
    ["/bin/r? x", "? /bin/r? x", "+ x"],
    ["echo ~root", "? echo ~root"],
    [`echo $"a"`, "? echo a"],
    ["cat <<EOF\n$X\nEOF", "? cat"],
    ["cat <<< $X", "? cat"],
    ["cat <<< x", "cat"],
    ["echo a{fd}>x b {fd}>x", "? echo a{fd} b"],
    ["git status\u00a0x", "? git 'status\u00a0x'"],
    ["git sta\u200btus", "? git sta\u200btus"],
    ["git status\rrm", "? git 'status\rrm'"],
    ["ls > /dev/tcp/h/80", "? ls"],
  ]);
});

describe("parseShell() looks inside", () => {
  table([
    [
      'echo $(a $(b)) `c` "$(d)" <(e) >(f)',
      "? echo '$(a $(b))' `c` $(d) <(e) >(f)",
      "+ ? a $(b)",
      "+ b",
      "+ c",
      "+ d",
      "+ e",
      "+ f",
    ],
    ["x=$(a) y=(1 $(b))", "? x=$(a) 'y=(1 $(b))'", "+ a", "+ b"],
    ["cat <<EOF\n$(a)\nEOF", "? cat", "+ a"],
    ['echo x > "$(a)"', "echo x", "+ a"],
    ["echo ${x:-$(a)} $((1+$(b)))", "? echo ${x:-$(a)} $((1+$(b)))", "+ a", "+ b"],
    ["echo $(('x[$(a)]'))", "? echo $(('x[$(a)]'))", "+ ? : $((x[$(a)]))", "+ a"],
    ["echo x<(a)y", "? echo x<(a)y", "+ a"],
    ["bash -c 'a; b \"$1\"'", "~ bash -c 'a; b \"$1\"'", "+ a", "+ ? b $1"],
    ["sh -ec 'a' && dash -o errexit -c b", "~ sh -ec a", "+ a", "~ dash -o errexit -c b", "+ b"],
    ["sh -c '\"$@\"' _ rm x", '~ sh -c "$@" _ rm x', "+ ? $@", "+ _ rm x", "+ rm x"],
    ['bash -c "rm $X"', "? bash -c 'rm $X'", "+ ? rm …"],
    ["bash $O 'rm x'", "? bash $O 'rm x'", "+ ? …", "+ rm x"],
    ["find . -exec sh -c 'rm {}' \\;", "find . -exec sh -c 'rm {}' ;", "+ ~ sh -c 'rm {}'", "+ ? rm …"],
    ["bash script.sh", "bash script.sh"],
    ["echo 'rm x' | sh", "echo 'rm x'", "~ sh", "+ rm x"],
    ["printf 'a\\nb' | bash -s", "printf a\\nb", "~ bash -s", "+ a", "+ b"],
    ["bash <<'E'\nrm x\nE", "~ bash", "+ rm x"],
    ["source /dev/stdin <<< 'rm x'", "~ source /dev/stdin", "+ rm x"],
    ["eval a 'b; c'", "~ eval a 'b; c'", "+ a b", "+ c"],
    ['eval "rm $X"', "? eval 'rm $X'", "+ ? rm …"],
    ["trap 'a b' EXIT", "~ trap 'a b' EXIT", "+ a b"],
    ["alias x='rm y'", "~ alias 'x=rm y'", "+ rm y", "+ ? rm y …"],
    ["test -v 'a[$(b)]'", "? test -v a[$(b)]", "+ ? : a[$(b)]", "+ b"],
  ]);
});

describe("parseShell() looks through wrappers", () => {
  const inner: Row[] = [
    ["sudo -u bob -E A=1 rm x", "+ ~ A=1 rm x"],
    ["sudo -- rm x", "+ rm x"],
    ["env -i -u A B=1 rm x", "+ ~ B=1 rm x"],
    ["env -S 'rm x'", "+ rm x"],
    ["env --split-string='rm x'", "+ rm x"],
    ["nohup rm x", "+ rm x"],
    ["timeout --signal=KILL -k 5 10s rm x", "+ rm x"],
    ["timeout -sKILL 10 rm x", "+ rm x"],
    ["nice -n 5 rm x", "+ rm x"],
    ["nice -5 rm x", "+ rm x"],
    ["ionice -c3 -n 7 rm x", "+ rm x"],
    ["setsid -w rm x", "+ rm x"],
    ["stdbuf -oL -e 0 rm x", "+ rm x"],
    ["command -p rm x", "+ rm x"],
    ["builtin eval rm x", "+ ~ eval rm x", "+ rm x"],
    ["exec -a name rm x", "+ rm x"],
    ["busybox rm x", "+ rm x"],
    ["chroot --userspec=a /r rm x", "+ rm x"],
    ["flock -n /l rm x", "+ rm x"],
    ["flock /l -c 'rm x'", "+ rm x"],
    ["script -qc 'rm x' /dev/null", "+ rm x"],
    ["script /dev/null -- rm x", "+ rm x"],
    ["su - bob -c 'rm x'", "+ rm x"],
    ["watch -n 1 'rm x'", "+ rm x"],
    ["xargs -0 -n1 rm", "+ rm …"],
    ["xargs -I{} rm a{}b", "+ rm a{}b …"],
    ["xargs -I % rm a%b", "+ rm a%b …"],
    ["parallel rm ::: a b", "+ rm …"],
    ["parallel ::: 'rm x' ls", "+ rm x", "+ ls"],
    ["\\time -f %e rm x", "+ rm x"],
    ["/lib64/ld-linux-x86-64.so.2 /bin/rm x", "+ /bin/rm x"],
    ["unshare -r -m nice rm x", "+ ~ nice rm x", "+ rm x"],
    ["strace -f -o log rm x", "+ rm x"],
  ];
  for (const [command, ...expected] of inner) {
    test(command, () => {
      const [first, ...found] = parts(command);
      assert(first?.startsWith("~ "), `a rule must name ${command}`);
      assertEquals(found, expected);
    });
  }
  const open: Row[] = [
    [
      "find . -exec rm {} + -ok sh -c 'a' \\;",
      "find . -exec rm {} + -ok sh -c a ;",
      "+ rm {}",
      "+ ~ sh -c a",
      "+ a",
    ],
    ["fd -x rm {}", "fd -x rm {}", "+ rm {} …"],
    ["git -c core.pager='rm x' log", "git -c 'core.pager=rm x' log", "+ rm x"],
    ["git -c alias.p='!rm x' p", "git -c 'alias.p=!rm x' p", "+ rm x"],
    ["git -c alias.p=push p", "git -c alias.p=push p", "+ git push"],
    ["git submodule foreach 'rm x'", "git submodule foreach 'rm x'", "+ rm x"],
    ["git rebase -x 'rm x' main", "git rebase -x 'rm x' main", "+ rm x"],
    ["tar --checkpoint-action=exec='rm x' -cf a b", "tar '--checkpoint-action=exec=rm x' -cf a b", "+ rm x"],
    ["sed '1e rm x' f", "sed '1e rm x' f", "+ rm x"],
    ["awk 'BEGIN{system(\"rm x\")}'", "awk 'BEGIN{system(\"rm x\")}'", "+ rm x"],
    ["npx -y rimraf x", "npx -y rimraf x", "+ rimraf x"],
    ["docker run --rm -v a:b img rm x", "docker run --rm -v a:b img rm x", "+ rm x"],
    ["kubectl exec pod -- rm x", "kubectl exec pod -- rm x", "+ rm x"],
    ["ssh -p 22 host rm x", "ssh -p 22 host rm x", "+ rm x"],
    ["command -v git", "command -v git"],
  ];
  table(open);

  test("an unknown option may take the next word or not", () => {
    assertEquals(parts("timeout $O 5 rm x").slice(1), [
      "+ ? $O 5 rm x",
      "+ 5 rm x",
      "+ 5 rm x",
      "+ rm x",
      "+ x",
    ]);
  });
});

describe("parseShell() finds what runs although nothing on the line says so", () => {
  const wrapped = [
    "jobs -x rm x",
    "jobs -rx -- rm x",
    "ssh-agent -t 5 rm x",
    "sg users rm x",
    "sg users -c 'rm x'",
    "x86_64 rm x",
    "i386 -R rm x",
    "setarch x86_64 -R rm x",
    "setarch -R rm x",
    "capsh --drop=all -- -c 'rm x'",
    "debconf -o x rm x",
    "setpriv --reuid 1 rm x",
    "uclampset -m 1 rm x",
    "runuser bob -c 'rm x'",
    "gdb --args rm x",
    "perf trace rm x",
    "eatmydata rm x",
    "tini -s -- rm x",
    "gosu bob rm x",
    "envdir d rm x",
    "chpst -u bob rm x",
    "tmux new -d 'rm x'",
    "screen -dm rm x",
    "xterm -e rm x",
    "ip netns exec n rm x",
    "start-stop-daemon --start --exec rm -- x rm x",
    "pee 'rm x' cat",
  ];
  const texts = [
    "mapfile -C 'rm x' -c1 a",
    "readarray -tC'rm x' -c 1 a",
    "history -s 'rm x'; fc -s",
    "compgen -C 'rm x' a",
    "complete -C 'rm x' a",
    "compgen -W '$(rm x)' a",
    "bind -x '\"a\": rm x'",
    "hash -p /bin/rm y; y x",
    "alias y=rm; y x",
    "PS4='$(rm x)'; set -x; ls",
    "GIT_PAGER='rm x' git log",
    "export PAGER='rm x'; man ls",
    "MAKEFLAGS='--eval=a:;rm x' make",
    "gcc -wrapper rm,x a.c",
    "dpkg --pre-invoke='rm x' -i a",
    "apt -o DPkg::Pre-Invoke::='rm x' install a",
    "vim -c '!rm x' -c q",
    "vim '+!rm x'",
    "view -es -c ':silent !rm x' a",
    "vim -c 'call system(\"rm x\")'",
    "ed <<< '!rm x'",
    "echo '!rm x' | ed a",
    "{ ed; } <<< '!rm x'",
    "gdb -ex 'shell rm x'",
    "gdb --eval-command='!rm x'",
    "sqlite3 a '.shell rm x'",
    "sqlite3 a <<< '.system rm x'",
    "sqlite3 a '.once |rm x'",
    "psql -c '\\! rm x'",
    "mysql -e 'system rm x'",
    "make -f - <<< $'a:\\n\\trm x'",
    "make -f/dev/stdin <<< 'a:;rm x'",
    "make --eval='a:;@rm x'",
    "make 'A=$(shell rm x)'",
    "make SHELL=/bin/rm",
    "git submodule --quiet foreach 'rm x'",
    "git submodule foreach --recursive 'rm x'",
    "git submodule--helper foreach rm x",
    "git config core.pager 'rm x'",
    "git ls-remote 'ext::rm x'",
    "sed 's/a/rm x/e' f",
    "sed -f - f <<< '1e rm x'",
    "echo '1e rm x' | sed --file=/dev/stdin f",
    "awk -f - <<< 'BEGIN{system(\"rm x\")}'",
    'awk \'BEGIN{system("r" "m x")}\'',
    "awk 'BEGIN{c = \"rm x\"; system(c)}'",
    "awk 'BEGIN{\"rm \" f | getline}'",
    "awk -v c='rm x' 'BEGIN{system(c)}'",
    "python3 -c 'import os; os.system(\"rm x\")'",
    "python3 <<< 'import os; os.system(\"rm x\")'",
    "expect -c 'spawn rm x'",
    "at now <<< 'rm x'",
    "crontab - <<< '@daily rm x'",
  ];
  for (const command of [...wrapped, ...texts]) {
    test(command, () => {
      const found = parts(command).slice(1).map((p) => p.replace(/^(\+ )?[?~]? ?/, ""));
      assert(found.some((p) => /(^|\/)(rm (x|…)|rm$)/.test(p)), JSON.stringify(found));
      if (wrapped.includes(command)) assert(parts(command)[0]?.startsWith("~ "), "no rule must name it");
    });
  }
  const open = [
    "sed e f",
    "sed -n 's/x/&/e' f",
    "awk '{ system($0) }' f",
    "awk '{ print | $1 }' f",
    "git -c include.path=x log",
    "enable -f ./x.so x",
    "fc -s",
    "sqlite3 a '.load x'",
    "psql",
    "ed a",
  ];
  for (const command of open) test(command, () => assert(parts(command).includes("+ ? …"), command));
  const plain = [
    "jobs -l",
    "history 5",
    "fc -l",
    "sed -n 1,20p f",
    "sed -e 's/a/b/g' f",
    "awk '{print $1}' f",
    "awk '$1 || $2' f",
    "make -j4 V=1 CC=clang test",
    "sqlite3 a 'select 1'",
    "psql -c 'select 1'",
    "gcc -Wall -o a a.c",
    "apt -o Acquire::ForceIPv4=true update",
    "vim +12 f",
    "less +G f",
    "python3 -c 'print(1)'",
    "node -e 'console.log(1)'",
    "ip addr",
    "git config user.name x",
    "git submodule status",
  ];
  for (const command of plain) test(command, () => assertEquals(parts(command).length, 1));
});

describe("parseShell() reads redirections", () => {
  const rows: [command: string, ...opened: string[]][] = [
    ["a > o", "write o"],
    ["a >> o 2>| p", "write o", "write p"],
    ["a &> o; a &>> p", "write o", "write p"],
    [">&echo touch x", "write echo"],
    ["a 3<> o", "write o"],
    ["a < i", "read i"],
    ["a 2>&1 >&- 3<&0 4>&2- > /dev/null 2> /dev/stderr > /dev/fd/3"],
    ["a > $F", "write ?"],
    ["a > *.txt", "write ?"],
    ["a > ~/x", "write ~/x"],
    ["a > '~/x'", "write ./~/x"],
    ["cd x; a > o; a > /o", "write o (moved)", "write /o (moved)"],
    ["a > o; cd x", "write o"],
    ["for i in 1 2; do a > o; cd x; done", "write o (moved)"],
    ["$X; a > o", "write o (moved)"],
    ["eval x; a > o", "write o (moved)"],
    ["{ a; } > o", "write o"],
    ["echo $(a > o)", "write o (inner)"],
    ["> o", "write o"],
  ];
  for (const [command, ...expected] of rows) {
    test(command, () => {
      const text = parseShell(command);
      assertEquals(text.errors, []);
      const found = text.redirections.map((r) =>
        `${r.access} ${r.written ?? "?"}${r.afterCd ? " (moved)" : ""}${
          r.level === "inner" ? " (inner)" : ""
        }`
      );
      assertEquals(found, expected);
    });
  }
});

describe("parseShell() finds path operands", () => {
  const rows: [command: string, ...operands: string[]][] = [
    ["cat .env a", "read .env", "read a"],
    ["head -n 3 src/x", "read 3", "read src/x"],
    ["grep -rn a/b src", "read src", "read . unless src"],
    ["grep -n a/b src", "read src"],
    ["rg x", "read ."],
    ["git grep x", "read? x"],
    ["git grep --untracked x", "read? x", "read . unless x"],
    ["find . -type f", "read .", "read? f"],
    ["cd sub; cat a", "read? sub", "read a", "read sub/a"],
    ["for i in 1 2; do cat a; cd sub; done", "read a", "read? sub", "read sub/a", "read? sub/sub"],
    ["cd a; cd ../b; cat /c", "read? a", "read ../b", "read a/../b", "read /c"],
    ["git -C sub diff a", "read? a", "read? sub/a"],
    [
      "env -C sub cat a",
      "read? sub",
      "read? sub/sub",
      "read? cat",
      "read? sub/cat",
      "read? a",
      "read? sub/a",
      "read a",
      "read sub/a",
    ],
    ["sed '1r a' f", "read f", "read a"],
    ["sed -n -e '/x/R a' -e 's/r/x/w b' f", "read /x/R a", "read s/r/x/w b", "read f", "read a", "write b"],
    ["sed 's/r/x/' f", "read f"],
    ['awk \'{ while ((getline l < "a") > 0) print l > "b" }\' f', "read f", "read a", "write b"],
    ["awk 'BEGIN { f = \"a\"; getline < f }'", "read? a"],
    ["sed -n '/x/p' f", "read f"],
    ["sed -i s/a/b/ f", "read f", "write f"],
    ["cp a b", "read a", "write a", "read b", "write b"],
    ["dd if=a of=b", "read a", "read b", "write b"],
    ["git show HEAD:.env", "read? HEAD:.env", "read? HEAD", "read .env"],
    ["curl -d @.env x", "read? @.env", "read .env", "read? x"],
    ["sort -o out in", "read out", "read in", "write out"],
    ["echo .env"],
    ["wget https://a.test/b file:///etc/c", "read /etc/c"],
    ["x --file=a/b -Ia/b", "read a/b"],
    ["ls *.ts", "read? *.ts*"],
    ["cat $X"],
  ];
  for (const [command, ...expected] of rows) {
    test(command, () => {
      const found = parseShell(command).operands.map((o) =>
        `${o.access}${o.sure ? "" : "?"} ${o.written}${o.glob === true ? "*" : ""}${
          (o.unless ?? []).map((u) => ` unless ${u}`).join("")
        }`
      );
      assertEquals([...new Set(found)], expected);
    });
  }
});

describe("parseShell() tells whose exit status the text has", () => {
  const rows: [command: string, hidden: boolean[]][] = [
    ["a", [false]],
    ["{ a; }", [false]],
    ["(a) > o", [false]],
    ["a &", [true]],
    ["! a", [true]],
    ["a && b", [true, true]],
    ["a; [[ x ]]", [true]],
    ["if a; then :; fi", [true, true]],
    ["X=1 a", [false]],
  ];
  for (const [command, hidden] of rows) {
    test(command, () => assertEquals(parseShell(command).parts.map((p) => p.statusHidden === true), hidden));
  }
});

describe("parseShell() refuses", () => {
  const rows: [name: string, command: string, code: string][] = [
    ["an open quote", 'git status "', "syntax_error"],
    ["an open substitution", "git status $(", "syntax_error"],
    ["a dangling pipe", "git status |", "syntax_error"],
    ["a dangling redirection", "git status >", "syntax_error"],
    ["a fault inside", "echo $(if)", "syntax_error"],
    ["a here-document without end", "cat <<EOF\nx", "syntax_error"],
    ["nothing", "", "empty_command"],
    ["blanks", " \n\t", "empty_command"],
    ["a comment", "# x", "empty_command"],
    ["a NUL", "ls\0x", "nul_in_command"],
    ["a lone surrogate", "ls \ud800", "not_unicode"],
    ["too much", `echo ${"x".repeat(longestCommand)}`, "command_too_long"],
    ["a line broken after a dollar sign", '"$\\\nX"', "unclear_syntax"],
    ["a line broken before a redirection", "a 3\\\n<&0 b", "unclear_syntax"],
    ["a word right after a closed descriptor", ">&-rm x", "unclear_syntax"],
    ["a word right after an array", "x=(1 $(rm x))y", "unclear_syntax"],
    ["a substitution that looks like a descriptor", "a 1<(rm x)", "unclear_syntax"],
    ["a substitution glued to a target", "a >o<(rm x)", "unclear_syntax"],
    ["a number sign right after a substitution", "a <(b)# >(rm x)", "unclear_syntax"],
    ["a number sign after a substitution and a joined line", "a >(b)\\\n# $(rm x)", "unclear_syntax"],
    ["quotes that break up a substitution", '"${x:-"$\\(rm x)"}"', "unclear_syntax"],
    ["quotes in a here-document that do so", 'a <<E\n${x:-"$"(rm x)""}\nE', "unclear_syntax"],
    ["a carriage return right after a closed descriptor", "a >&-\rrm x", "unclear_syntax"],
    ["a backslash at the end", "a='\n'; rm\\", "unclear_syntax"],
    ["a target that is expanded twice", "a >&'$(rm x)'", "unclear_syntax"],
    ["a target that is expanded twice, escaped", "a >&\\`rm x\\`", "unclear_syntax"],
    ["a substitution glued to a name and to another", "a {b}>(rm)>() c", "unclear_syntax"],
    ["an expansion after a dollar sign, in quotes", 'a "$${b:-"c"}"', "unclear_syntax"],
    ["an expansion after a dollar sign, in an index", "W[$${(rm)]=1", "unclear_syntax"],
    ["parentheses without end", "(".repeat(251) + "ls" + ")".repeat(251), "too_complex"],
    ["wrappers without end", "env ".repeat(5000) + "ls", "too_complex"],
    ["unknown wrappers without end", "$X env ".repeat(5000) + "ls", "too_complex"],
    ["wrappers of words without end", "sudo env nice ".repeat(4600) + "ls", "too_complex"],
    ["wrappers before a pipe without end", "env ".repeat(8000) + "echo a | sh", "too_complex"],
    ["shell texts in shell texts without end", "ssh h ".repeat(10_000) + "ls", "too_complex"],
    ["commands without end", "a|".repeat(32_000) + "a", "too_complex"],
    ["commands of one command without end", "alias " + "a=ls ".repeat(3000), "too_complex"],
    ["commands of find, none of them ended", "find . " + "-exec ".repeat(10_000), "too_complex"],
    ["commands of find, ended together", "find . " + "-exec a ".repeat(8000) + "\\;", "too_complex"],
    ["redirections without end", "ls " + ">a ".repeat(10_000), "too_complex"],
    ["words without end", "ls " + "a ".repeat(30_000), "too_complex"],
    ["unknown words without end", "cat " + "* ".repeat(30_000), "too_complex"],
    ["words made by braces without end", "a {1..500};".repeat(5000), "too_complex"],
    ["syntax without end", `: ${Array.from({ length: 9000 }, () => "$a$b").join(" ")}`, "too_complex"],
    ["an expression without end", `echo $((${"1+".repeat(30_000)}1))`, "too_complex"],
    [
      "expansions in expansions",
      '"${a:-'.repeat(240) + "$(b) ".repeat(8000) + '}"'.repeat(240),
      "too_complex",
    ],
    [
      "substitutions around a long text",
      "$(".repeat(240) + "a ".repeat(30_000) + ")".repeat(240),
      "too_complex",
    ],
    ["here-documents for shells without end", "sh <<E\nx\nE\n".repeat(3000), "too_complex"],
  ];
  for (const [name, command, code] of rows) {
    test(
      name,
      () =>
        assert(
          parseShell(command).errors.some((e) => e.code === code),
          JSON.stringify(parseShell(command).errors),
        ),
    );
  }

  test("a text that is only data for a shell may be no shell source", () => {
    assertEquals(parts("bash -c 'if'"), ["~ bash -c if"]);
  });
});

describe("parseShell() ends", () => {
  const opens = [
    "(",
    "{ ",
    "$(",
    "${",
    "`",
    '"$(',
    "[[ ",
    "((",
    "<(",
    "if ",
    "case x in ",
    "{a,",
    "a{",
    "{1..9}",
    "'",
    '"',
    "f() { ",
  ];
  for (const open of opens) {
    test(`20,000 times ${JSON.stringify(open)}`, () => {
      const text = parseShell(open.repeat(Math.min(20_000, Math.floor(longestCommand / open.length))));
      assert(text.errors.length > 0 || text.parts.length > 0 || open === "{ ");
    });
  }
  const lengths: [command: string, count: number, parts: number, codes: string[]][] = [
    ["a;", 2048, 2048, []],
    ["a;", 2049, 2048, ["too_complex"]],
    ["$(a)", 999, 1000, []],
    ["$(a)", 1001, 1001, ["too_complex"]],
  ];
  for (const [command, count, most, codes] of lengths) {
    test(`${count} times ${command}`, () => {
      const { parts, errors } = parseShell(command.repeat(count));
      assertEquals([parts.length, errors.map((e) => e.code)], [most, codes]);
    });
  }
  test("200 substitutions in one another", () => {
    const { parts, errors } = parseShell('echo "$('.repeat(200) + "ls" + ')"'.repeat(200));
    assertEquals([parts.length, errors], [201, []]);
  });
});
