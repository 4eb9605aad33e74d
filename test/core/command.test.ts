import { describe, test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import {
  type CommandPattern,
  matchesCommand,
  needsNaming,
  parseCommandPattern,
  programOf,
} from "../../src/core/command.ts";
import type { Part } from "../../src/core/facts.ts";
import { parseRiskyOption } from "../../src/core/risky_options.ts";

function pattern(text: string, ...added: string[]): CommandPattern {
  const risky = added.map((a) => {
    const option = parseRiskyOption(a);
    assert(!("error" in option), a);
    return option;
  });
  const parsed = parseCommandPattern(text, risky);
  assert(!("error" in parsed), text);
  return parsed;
}

function part(text: string, more: Partial<Part> = {}): Part {
  return { argv: text === "" ? [] : text.split(" "), text, assignments: [], level: "top", ...more };
}

describe("parseCommandPattern()", () => {
  const good: [name: string, text: string, words: string[], rest: boolean, assignments: string[]][] = [
    ["words", "git status", ["git", "status"], false, []],
    ["a last star", "git diff *", ["git", "diff"], true, []],
    ["a star alone", "*", [], true, []],
    [
      "quotes and escapes",
      `git commit -m 'a "b' "c'd" e\\ f`,
      ["git", "commit", "-m", `a "b`, "c'd", "e f"],
      false,
      [],
    ],
    ["an empty word", "echo ''", ["echo", ""], false, []],
    ["assignments", "TZ=UTC LC_ALL='C x' date *", ["date"], true, ["TZ=UTC", "LC_ALL=C x"]],
    ["an assignment later is a word", "env A=1 ls", ["env", "A=1", "ls"], false, []],
    ["a quoted star is a word", "ls '*'", ["ls", "*"], false, []],
    ["a backslash at the end", "ls \\", ["ls", "\\"], false, []],
    ["quoted operators", "echo ';' \\$x", ["echo", ";", "$x"], false, []],
    ["blanks of all kinds", "  git\t status\n", ["git", "status"], false, []],
  ];
  for (const [name, text, words, rest, assignments] of good) {
    test(name, () => assertEquals(parseCommandPattern(text), { source: text, assignments, words, rest }));
  }

  test("stars that are no last word are taken literally and reported", () => {
    assertEquals(pattern("ls *.ts *").stars, ["*.ts"]);
    assertEquals(pattern("git * push").words, ["git", "*", "push"]);
  });

  const bad: [text: string, includes: string][] = [
    ["", "is empty"],
    ["   ", "is empty"],
    ["git status && rm", "`&` does not belong"],
    ["echo $(id)", "`$` does not belong"],
    ["echo > x", "`>` does not belong"],
    ["echo 'a", "quote ' is not closed"],
  ];
  for (const [text, includes] of bad) {
    test(`refuses ${JSON.stringify(text)}`, () => {
      const parsed = parseCommandPattern(text);
      assert("error" in parsed && parsed.error.includes(includes), JSON.stringify(parsed));
    });
  }
});

describe("matchesCommand() for rules that allow", () => {
  const unknown = { at: 1, pieces: ["", ""], many: true };
  const rows: [name: string, pattern: string, part: Part, covered: boolean][] = [
    ["the same words", "git status", part("git status"), true],
    ["a further word without a star", "git status", part("git status -s"), false],
    ["no further word for the star", "git diff *", part("git diff"), true],
    ["further words for the star", "git diff *", part("git diff HEAD src"), true],
    ["a longer first word", "git diff *", part("git diff-index HEAD"), false],
    ["an option before the subcommand", "git status *", part("git -C /x status"), false],
    ["another spelling of the program", "git *", part("./git status"), false],
    ["that spelling when named", "./git *", part("./git status"), true],
    ["upper case", "git *", part("GIT status"), false],
    ["an inner command", "git *", part("git status", { level: "inner" }), false],
    [
      "a command that is not understood",
      "git *",
      part("git $X", { notUnderstood: "x", blurs: [unknown] }),
      false,
    ],
    ["a wrapper, named", "timeout 5 *", part("timeout 5 ls", { notUnderstood: "x", nameable: true }), true],
    [
      "a wrapper under a star alone",
      "*",
      part("timeout 5 ls", { notUnderstood: "x", nameable: true }),
      false,
    ],
    ["any plain command under a star alone", "*", part("ls -l"), true],
    ["an assignment that is not named", "date *", part("date", { assignments: ["TZ=UTC"] }), false],
    ["an assignment that is named", "TZ=UTC date *", part("date", { assignments: ["TZ=UTC"] }), true],
    ["another value", "TZ=UTC date *", part("date", { assignments: ["TZ=CET"] }), false],
    ["one assignment too many", "TZ=UTC date *", part("date", { assignments: ["TZ=UTC", "PATH=."] }), false],
    ["a named assignment that is missing", "TZ=UTC date *", part("date"), false],
    ["file names under the star", "ls *", part("ls *.ts", { blurs: [{ ...unknown, glob: true }] }), true],
    [
      "file names where a word is named",
      "ls *.ts",
      part("ls *.ts", { blurs: [{ ...unknown, glob: true }] }),
      false,
    ],
    ["a function definition", "*", part("", { notUnderstood: "f is defined" }), false],
    ["an assignment alone", "X=1", part("", { assignments: ["X=1"] }), true],
    [
      "an assignment alone, named, though it is not understood",
      "X=1",
      part("", { assignments: ["X=1"], notUnderstood: "x", nameable: true }),
      true,
    ],
    ["nothing under a star", "*", part(""), false],
    ["fewer words", "git push origin", part("git push"), false],
    [
      "an unknown word under the star",
      "git log *",
      part("git log $X", { blurs: [{ ...unknown, at: 2 }] }),
      false,
    ],
    [
      "an unknown word beside file names",
      "ls *",
      part("ls *.ts $X", { blurs: [{ ...unknown, glob: true }, { ...unknown, at: 2 }] }),
      false,
    ],
    ["file names for the program", "*", part("l* x", { blurs: [{ ...unknown, at: 0, glob: true }] }), false],
  ];
  for (const [name, source, subject, covered] of rows) {
    test(`${name}: ${source} | ${subject.text}`, () => {
      assertEquals(matchesCommand(pattern(source), subject, "allow"), covered);
    });
  }

  test("options that the policy adds to the table are not covered by a star", () => {
    const added = pattern("deploy *", "deploy --hook", "deploy run --script");
    const covered = [
      "deploy x",
      "deploy --hook=y",
      "deploy --ho y",
      "deploy run --script z",
      "deploy --script z",
    ];
    assertEquals(covered.map((c) => matchesCommand(added, part(c), "allow")), [
      true,
      false,
      false,
      false,
      true,
    ]);
    assert(matchesCommand(pattern("deploy --hook=y *", "deploy --hook"), part("deploy --hook=y z"), "allow"));
  });
});

describe("matchesCommand() for rules that restrict", () => {
  const blur = (at: number, ...pieces: string[]) => ({ blurs: [{ at, pieces, many: false }] });
  const loose = (at: number, ...pieces: string[]) => ({ blurs: [{ at, pieces, many: true }] });
  const rows: [name: string, pattern: string, part: Part, matched: boolean][] = [
    ["an inner command", "rm *", part("rm x", { level: "inner" }), true],
    ["a path before the program", "rm *", part("/bin/rm x"), true],
    ["a path in the pattern", "/usr/bin/rm *", part("rm x"), true],
    ["case and suffix", "git push *", part("GIT.EXE push"), true],
    ["another program", "rm *", part("rmdir x"), false],
    ["an assignment before it", "rm *", part("rm x", { assignments: ["A=1"] }), true],
    ["a pattern with an assignment", "LD_PRELOAD=x *", part("ls", { assignments: ["LD_PRELOAD=x"] }), true],
    ["such a pattern without it", "LD_PRELOAD=x *", part("ls"), false],
    ["a star alone", "*", part("ls"), true],
    ["further words without a star", "git push", part("git push -f"), false],

    ["git -C", "git push *", part("git -C sub push origin"), true],
    ["git flags", "git push *", part("git --no-pager -P push"), true],
    ["git with a joined value", "git push *", part("git --git-dir=x push"), true],
    ["git with an unknown option", "git push *", part("git --new-one v push"), true],
    ["git options in the pattern", "git -c *", part("git --no-pager -c a=b log"), true],
    ["git plumbing", "git push *", part("git send-pack origin"), true],
    ["git as its own program", "git push *", part("/usr/lib/git-core/git-push x"), true],
    ["a git command from elsewhere", "git push *", part("git up"), true],
    ["an alias on the line", "git push *", part("git -c alias.p=push p"), true],
    ["an alias for a command that exists", "git push *", part("git -c Alias.status=push status"), true],
    ["an alias from the environment", "git push *", part("git --config-env=alias.p=X p"), true],
    ["another git command", "git push *", part("git status"), false],
    ["the word as data", "git push *", part("git commit -m push"), false],

    ["kubectl", "kubectl delete *", part("kubectl -n prod --context=a delete pod x"), true],
    ["kubectl, value joined", "kubectl delete *", part("kubectl -nprod delete pod"), true],
    ["kubectl, option between", "kubectl delete pod *", part("kubectl delete -n prod pod x"), true],
    ["docker", "docker rm *", part("docker --context c -D rm x"), true],
    ["docker compose", "docker compose down *", part("docker compose -f a.yaml down -v"), true],
    ["terraform", "terraform destroy *", part("terraform -chdir=infra destroy"), true],
    ["aws", "aws s3 rm *", part("aws --profile p s3 --region r rm x"), true],
    ["gh before and between", "gh pr merge *", part("gh -R o/r pr merge 1"), true],
    ["gh between", "gh pr merge *", part("gh pr --repo o/r merge 1"), true],
    ["npm", "npm publish *", part("npm --prefix x publish"), true],
    ["npm, another name", "npm install *", part("npm i x"), true],
    ["npm, shortened", "npm publish *", part("npm publ"), true],
    ["npm, another command", "npm publish *", part("npm pack"), false],
    ["cargo toolchain", "cargo publish *", part("cargo +nightly publish"), true],
    ["a program without global options", "make clean *", part("make -C x clean"), false],

    ["an unknown argument", "git push *", part("git $X", loose(1, "", "")), true],
    ["an unknown argument that cannot be it", "git push *", part("git s$X", loose(1, "s", "")), false],
    ["an unknown argument in between", "git push origin *", part("git push $R", loose(2, "", "")), true],
    ["an unknown word that may be empty", "git push *", part("git $X push", loose(1, "", "")), true],
    ["a quoted one is a word", "rm x", part("rm $X x", blur(1, "", "")), false],
    ["a known end of the program", "git push *", part("$B/git push", blur(0, "", "/git")), true],
    ["a known start of the program", "rm *", part("r$X y", blur(0, "r", "")), true],
    ["a start that cannot be it", "rm *", part("s$X y", blur(0, "s", "")), false],
    ["an unknown program and a known word", "git push *", part("$X push", loose(0, "", "")), true],
    ["an unknown program and nothing else", "rm *", part("$X y", loose(0, "", "")), false],
    ["an unknown program that may be empty", "rm *", part("$X rm y", loose(0, "", "")), true],
    ["words added when it runs", "git push *", part("git …", loose(1, "", "")), true],
    ["fewer words", "git push origin", part("git push"), false],
    ["a word that may be none at the end", "git push", part("git push $X", loose(2, "", "")), true],
    ["a word at the end", "git push", part('git push "$X"', blur(2, "", "")), false],
    ["an assignment alone", "X=1", part("", { assignments: ["X=1"] }), true],
    ["an assignment alone, and a command", "X=1", part("ls", { assignments: ["X=1"] }), false],
    [
      "an assignment of unknown value",
      "A=b=c ls *",
      part("ls", { assignments: ["A=$X"], notUnderstood: "x" }),
      true,
    ],
    ["an assignment of another value", "A=1 ls *", part("ls", { assignments: ["A=2"] }), false],
    [
      "an assignment of another value before a wrapper",
      "A=1 time *",
      part("time ls", { assignments: ["A=2"], notUnderstood: "x", nameable: true }),
      false,
    ],
    [
      "another assignment of unknown value",
      "A=1 ls *",
      part("ls", { assignments: ["AB=$X"], notUnderstood: "x" }),
      false,
    ],
    ["another git command as its own program", "git push *", part("git-status"), false],
    ["text that only holds an alias", "git push *", part("git -C xalias.a=push status"), false],
    ["an unknown option of git", "git push *", part("git -c $X status", blur(2, "", "")), true],
    ["an unknown git command", "git push *", part("git p$X x", blur(1, "s", "")), false],
    [
      "file names where a word is due",
      "git push *",
      part("git g*b push", { blurs: [{ at: 1, pieces: ["g", "b"], many: true, glob: true }] }),
      false,
    ],
    [
      "an option that is not known, with a value",
      "kubectl delete *",
      part("kubectl --new-one v delete x"),
      true,
    ],
    ["an option that is not known, without", "kubectl delete *", part("kubectl --new-one delete x"), true],
    ["an unknown option", "kubectl delete *", part("kubectl -$X delete x", blur(1, "-", "")), true],
    [
      "an unknown option with a value",
      "kubectl delete *",
      part("kubectl -$X v delete x", blur(1, "-", "")),
      true,
    ],
    ["an unknown word", "kubectl delete x", part('kubectl "$X" delete x', blur(1, "", "")), false],
    ["a path behind an unknown that may be empty", "rm *", part("$X /bin/rm y", loose(0, "", "")), true],
    ["another name of the command, later", "npm x install", part("npm x i"), false],
    [
      "two unknowns",
      "git push *",
      part("$X push", { blurs: [loose(0, "", "").blurs[0]!, loose(1, "", "").blurs[0]!] }),
      false,
    ],
    ["several words from one", "git push origin *", part("gi$X", loose(0, "gi", "in")), true],
    ["several words that end otherwise", "git push origin *", part("gi$X", loose(0, "gi", "ix")), false],
    ["several words that begin otherwise", "git push origin *", part("x$X", loose(0, "x", "in")), false],
    ["two words from one", "git push origin", part("git p$Xn", loose(1, "p", "n")), true],
    ["one word where two are due", "git push origin", part('git "p$X"n', blur(1, "p", "n")), false],
    ["the first word only", "git push origin", part("git p$X", loose(1, "p", "sh")), false],
    ["a known start of the word", "git push *", part("git pu$X", blur(1, "pu", "")), true],
    ["a start in another case", "git push *", part("git PU$X", blur(1, "PU", "")), false],
    ["both ends of the word", "git push *", part("git p$Xh", blur(1, "p", "h")), true],
    ["all of the word, and nothing between", "git push *", part("git pu$Xsh", blur(1, "pu", "sh")), true],
    ["ends that overlap", "git push *", part("git pus$Xsh", blur(1, "pus", "sh")), false],
    ["another end", "git push *", part("git p$Xx", blur(1, "p", "x")), false],
    ["an end at the start", "git push *", part("git $Xpu", blur(1, "", "pu")), false],
    ["a middle", "git push *", part("git p$Xus$Yh", blur(1, "p", "us", "h")), true],
    ["another middle", "git push *", part("git p$Xx$Yh", blur(1, "p", "x", "h")), false],
    [
      "a middle that overlaps the start",
      "git push *",
      part("git pu$Xus$Yh", blur(1, "pu", "us", "h")),
      false,
    ],
    ["a middle that overlaps the end", "git push *", part("git p$Xus$Ysh", blur(1, "p", "us", "sh")), false],
    ["two middles", "git push *", part("git p$Xu$Ys$Zh", blur(1, "p", "u", "s", "h")), true],
    [
      "two middles in another order",
      "git push *",
      part("git p$Xs$Yu$Zh", blur(1, "p", "s", "u", "h")),
      false,
    ],
    ["a middle alone", "git push *", part("git $Xpush$Y", blur(1, "", "push", "")), true],
    ["an end of the program in another case", "rm *", part("$XM y", blur(0, "", "M")), true],
    ["a start that is the end", "rm *", part("m$X y", blur(0, "m", "")), false],
    ["a path before the start", "rm *", part("/usr/bin/r$X y", blur(0, "/usr/bin/r", "")), true],
    ["a path before another start", "rm *", part("/usr/bin/s$X y", blur(0, "/usr/bin/s", "")), false],
  ];
  for (const [name, source, subject, matched] of rows) {
    test(`${name}: ${source} | ${subject.text}`, () => {
      assertEquals(matchesCommand(pattern(source), subject, "restrict"), matched);
    });
  }
});

test("programOf() is the program as rules that restrict see it", () => {
  const found = [
    part(""),
    part("/bin/LS"),
    part("git-push"),
    part("$X", { blurs: [{ at: 0, pieces: ["", ""], many: true }] }),
  ];
  assertEquals(found.map(programOf), ["", "ls", "git", undefined]);
});

describe("needsNaming()", () => {
  test("says why, and nothing for a plain command", () => {
    assertEquals(
      [part("ls"), part("ls", { notUnderstood: "why" }), part("ls", { assignments: ["A=1"] })].map(
        needsNaming,
      ),
      [undefined, "why", "`A=1` is set for it"],
    );
  });
});
