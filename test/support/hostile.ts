// Calls that nobody means well with: what a model that runs wild, or a text that it read, could ask for.
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Args } from "../../src/core/message.ts";

export type HostileCall = { readonly kind: string; readonly tool: string; readonly args: Args };

const full = 64 * 1024;

/** As often as it fits into the longest command that is looked at. */
function filled(piece: string, head = "", tail = ""): string {
  return head + piece.repeat(Math.floor((full - head.length - tail.length) / piece.length)) + tail;
}

function nested(depth: number, open: string, middle: string, close: string): string {
  return open.repeat(depth) + middle + close.repeat(depth);
}

function shWithin(depth: number): string {
  let text = "rm x";
  for (let i = 0; i < depth; i++) text = `sh -c ${JSON.stringify(text).replaceAll("$", "\\$")}`;
  return text;
}

const opened = [
  "(",
  "{ ",
  "$(",
  "${",
  "`",
  '"$(',
  "[[ ",
  "((",
  "$((",
  "<(",
  "if a;",
  "case x in ",
  "{a,",
  "{1..9}",
  "'",
  '"',
  "$'",
  "f() { ",
  "cat <<E\n",
  "a |",
  "a\\\n",
  "x=(",
  "@(a|",
  "a[$(",
  "for i in ",
  "coproc ",
  "! ",
  "time ",
];

// Shell texts by what is much of them.
const commands: Readonly<Record<string, string>> = {
  "2,000 parts": "git status;".repeat(2000),
  "2,000 parts of a pipe": "git diff | ".repeat(2000) + "cat",
  "64 KiB of commands": filled("a;"),
  "64 KiB of words": filled("w ", "echo "),
  "64 KiB of lines": filled("ls\n"),
  "longer than 64 KiB": filled("w ", "echo ") + "w w w",
  "1 MiB": "ls ;".repeat(256 * 1024),
  "one word": filled("w", "echo "),
  "one word, quoted": filled("w ", "echo '", "'"),
  "one word, every character quoted": filled("'w'", "echo "),
  "one word of escapes": filled("\\w", "echo "),
  "one word of $'…'": filled("$'\\x41'", "echo "),
  "one word of variables": filled("$a", "echo "),
  "one word of wildcards": filled("*a", "cat "),
  "words of wildcards": filled("*a ", "cat "),
  "wildcards in 200 levels": `cat ${"*/".repeat(200)}x`,
  "words of brackets": filled("[a-z]*/ ", "cat "),
  "assignments": filled("A=1 "),
  "redirections": filled(">a ", "ls "),
  "redirections to variables": filled(">&$a ", "ls "),
  "control characters": filled("\u0001\u001b[2K\u0008 ", "echo "),
  "bidirectional characters": filled("\u202e\u2066", "echo "),
  "invisible characters": filled("\u200b\ufeff ", "echo "),
  "no Unicode": filled("\ud800 ", "echo "),
  "NUL": filled("\0", "echo "),
  "empty": "",
  "blanks": filled(" \t\n"),
  "comments": filled("# rm x\n"),
  "200 substitutions in one another": nested(200, "echo $(", "ls", ")"),
  "200 substitutions in one another, quoted": nested(200, 'echo "$(', "ls", ')"'),
  "200 subshells in one another": nested(200, "(", "ls", ")"),
  "40 expansions in one another": nested(40, "${a:-", filled("b ").slice(0, full - 400), "}"),
  "substitutions": filled("$(a) ", "echo "),
  "process substitutions": filled("<(a) ", "cat "),
  "backquotes": filled("`a` ", "echo "),
  "arithmetic": `echo $((${filled("1+").slice(0, full - 20)}1))`,
  "arithmetic in one another": `echo ${nested(200, "$((1+", "1", "))")}`,
  "a brace bomb": `echo ${"{a,b}".repeat(31)}`,
  "a brace bomb of numbers": "echo {1..999999999} {a..z}{a..z}{a..z}{1..9999}",
  "a brace bomb of many words": filled("{1..500}; ", "a "),
  "braces in one another": `echo ${nested(30, "{a,", "b", "}")}`,
  "braces without end": filled("{a,b", "echo "),
  "here-documents": filled("cat <<E\nx\nE\n"),
  "here-documents for shells": filled("sh <<E\nls\nE\n"),
  "here-documents of one command": Array.from({ length: 2000 }, () => "<<E").join(" ") + "\n" +
    "E\n".repeat(2000),
  "a here-document": filled("$(a)\n", "cat <<E\n", "E\n"),
  "a here-document for a shell": filled("rm x\n", "sh <<'E'\n", "E\n"),
  "sh -c in one another": shWithin(10),
  "sh -c of a long text": `sh -c '${filled("rm x;").slice(0, full - 20)}'`,
  "eval": filled("eval ") + "ls",
  "wrappers": filled("env nice sudo ") + "ls",
  "unknown wrappers": filled("$a env ") + "ls",
  "xargs": filled("xargs ") + "ls",
  "ssh": filled("ssh h ") + "ls",
  "find -exec": filled("-exec a ; ".replace(";", "\\;"), "find . "),
  "find -exec without end": filled("-exec ", "find . "),
  "parallel": filled("a ", "parallel "),
  "parallel with texts": filled("'a b' ", "parallel "),
  "git options": filled("-c a=b ", "git ", "status"),
  "git aliases": filled("-c alias.a=!b ", "git ", "a"),
  "programs with paths": filled("./a;"),
  "cd": filled("cd a;"),
  "cd into many folders": Array.from({ length: 2000 }, (_, i) => `cd d${i};`).join("") + "cat .env",
  "cd into 30 folders, 1,000 operands": Array.from({ length: 30 }, (_, i) => `cd d${i};`).join("") +
    `cat ${Array.from({ length: 1000 }, (_, i) => `f${i}`).join(" ")}`,
  "5 folders, 250 programs with paths": Array.from({ length: 5 }, (_, i) => `cd d${i};`).join("") +
    Array.from({ length: 250 }, (_, i) => `./p${i};`).join(""),
  "30 folders, 2,000 programs with paths": Array.from({ length: 30 }, (_, i) => `cd d${i};`).join("") +
    Array.from({ length: 2000 }, (_, i) => `./p${i};`).join(""),
  "loops": nested(60, "while a; do ", "cd x; cat y", "; done"),
  "functions": filled("f() { a; }\n"),
  "cases": `case x in ${filled("a) b;; ").slice(0, full - 40)} esac`,
  "tests": filled("[[ -f a ]] && "),
  "operands": `cat ${Array.from({ length: 3900 }, (_, i) => `f/${i}`).join(" ")}`,
  "operands with colons": filled("a:b:c:d ", "cat "),
  "paths of 4 KiB": `cat ${Array.from({ length: 15 }, (_, i) => `${i}/`.repeat(1300)).join(" ")}`,
  "a path of 60 KiB": filled("d/", "cat "),
  "paths upwards": filled("../", "cat ").slice(0, 4000),
  "a loop of links": filled("loop/x ", "cat "),
  "a chain of links": filled("chain0/x ", "cat "),
  "many files": "cat * */* */*/*",
  "many files, many times": filled("*x* ", "cat "),
  "deep reads": filled("big ", "grep -r a "),
  "aliases": filled("alias a=ls;"),
  "traps": filled("trap 'a b' EXIT;"),
  "awk": `awk '${filled('BEGIN{system("a")}').slice(0, full - 20)}'`,
  "awk, quotes without end": `awk 'system ${filled('" ').slice(0, full - 40)}'`,
  "awk, slashes": `awk 'system( ${filled("/ ").slice(0, full - 40)}'`,
  "awk, blanks": `awk 'system${filled(" ").slice(0, full - 40)}x'`,
  "awk, prints": `awk '${filled("print ").slice(0, full - 60)}'`,
  "awk, strings without end": `awk '${filled('\\"').slice(0, full - 60)}'`,
  "sed, many delimiters": `sed '${
    Array.from({ length: 15_000 }, (_, i) => `s${String.fromCharCode(0x4e00 + i)}`).join("")
  }'`,
  "mysql, blanks": `mysql -e '${filled("\n").slice(0, full - 60)}'`,
  "awk, words": `awk 'system("a")${filled("a ").slice(0, full - 60)}'`,
  "sed": `sed '${filled("s/a/b/e;").slice(0, full - 20)}'`,
  "sed, slashes": `sed '${filled("s/").slice(0, full - 20)}'`,
  "sed, lines": `sed '${filled("e a\n").slice(0, full - 20)}'`,
  "sed, addresses": `sed '${filled("/a/,").slice(0, full - 20)}e'`,
  "sed, options": filled("-e 's/a/b/e' ", "sed "),
  "sed, backslashes": `sed 's/${filled("\\a").slice(0, full - 20)}'`,
  "sed, letters": `sed '${filled("sasbsc").slice(0, full - 20)}'`,
  "python": `python3 -c 'os.system("a")${filled('"a" ').slice(0, full - 60)}'`,
  "python, quotes without end": `python3 -c 'system("${filled("a'\\''").slice(0, full - 60)}'`,
  "python, parentheses": `python3 -c 'system${filled("(a ").slice(0, full - 60)}'`,
  "perl, backquotes": `perl -e '${filled("\\`").slice(0, full - 60)}'`,
  "make": `make --eval='${filled("$(shell a)").slice(0, full - 60)}'`,
  "make, colons": `make --eval='${filled("a:").slice(0, full - 60)}'`,
  "make, recipes": `make --eval='${filled("\ta\n").slice(0, full - 60)}'`,
  "editors": `vim -c '${filled("!").slice(0, full - 60)}'`,
  "editor commands": filled("-c '!a' ", "vim "),
  "psql": `psql -c '${filled("\\o a").slice(0, full - 60)}'`,
  "psql, pipes": `psql -c '${filled("\\o | a ").slice(0, full - 60)}'`,
  "sqlite": `sqlite3 a '${filled(".shell a\n").slice(0, full - 60)}'`,
  "sqlite, blanks": `sqlite3 a '${filled("\n ").slice(0, full - 60)}'`,
  "mysql": `mysql -e '${filled("system ").slice(0, full - 60)}'`,
  "gdb": filled("-ex 'shell a' ", "gdb "),
  "expect": `expect -c '${filled("spawn a;").slice(0, full - 60)}'`,
  "expect, blanks": `expect -c '${filled("\n").slice(0, full - 60)}'`,
  "crontab": `crontab - <<'E'\n${filled("* * * * * a\n").slice(0, full - 60)}\nE\n`,
  "crontab, blanks": `crontab - <<'E'\n${filled("a ").slice(0, full - 60)}\nE\n`,
  "tar": filled("--to-command=a ", "tar "),
  "jq": `jq '${filled("a|").slice(0, full - 20)}'`,
  "printf": filled("a | sh;", "printf "),
  "echo into shells": filled("echo ls | sh;"),
  "cat into shells": `cat <<E | sh\n${filled("ls\n").slice(0, full - 40)}E\n`,
  "let": `let '${filled("a[$(b)]+").slice(0, full - 20)}'`,
  "declare": filled("a=$(b) ", "declare "),
  "export": filled("PATH=a ", "export "),
};

const urls: Readonly<Record<string, string>> = {
  "no URL": "http://",
  "an open bracket": "http://[::1",
  "64 KiB of labels": `http://${"a.".repeat(32 * 1024)}test/`,
  "64 KiB of path": `http://a.test/${"%2e%2e/".repeat(9000)}`,
  "64 KiB of userinfo": `http://${"a@".repeat(32 * 1024)}b.test/`,
  "64 KiB of numbers": `http://${"1.".repeat(32 * 1024)}1/`,
  "64 KiB of hexadecimals": `http://0x${"f".repeat(64 * 1024)}/`,
  "64 KiB of letters beyond ASCII": `http://${"ü.".repeat(32 * 1024)}test/`,
  "control characters": "http://a\u0000b\u202e.test/",
  "a number": "http://2130706433/",
};

/** Every kind by itself, in an order that does not change. */
export const hostileCalls: readonly HostileCall[] = [
  ...Object.entries(commands).map(([kind, command]) => shell(kind, command)),
  ...opened.map((open) => shell(`without end: ${JSON.stringify(open)}`, filled(open))),
  ...Object.entries({
    "a path of 4 KiB": "d/".repeat(2048),
    "a path of 64 KiB": "d/".repeat(full / 2),
    "a path upwards": "../".repeat(full / 4),
    "a path with NUL": "a\0b",
    "an empty path": "",
    "a path that is no Unicode": "\ud800".repeat(1000),
    "a loop of links": "loop/x",
    "a chain of links": "chain0/x",
    "links in links": `${"again/".repeat(600)}x`,
  }).map(([kind, path]): HostileCall => ({ kind, tool: "read_file", args: { path } })),
  ...Object.entries(urls).map(([kind, url]): HostileCall => ({ kind, tool: "fetch_url", args: { url } })),
];

function shell(kind: string, command: string): HostileCall {
  return { kind, tool: "shell", args: { command } };
}

/** What the calls look for: loops and chains of links, and many files. */
export function plantHostile(root: string): void {
  symlinkSync("loop", join(root, "loop"));
  symlinkSync(".", join(root, "again"));
  for (let i = 0; i < 45; i++) symlinkSync(`chain${i + 1}`, join(root, `chain${i}`));
  for (let folder = 0; folder < 30; folder++) {
    mkdirSync(join(root, "big", `d${folder}`), { recursive: true });
    for (let i = 0; i < 50; i++) writeFileSync(join(root, "big", `d${folder}`, `x${i}`), "");
  }
}
