import { describe, test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { commandRisk, strongest } from "../../src/core/command_risk.ts";
import type { Risk } from "../../src/core/decision.ts";
import type { Part } from "../../src/core/facts.ts";
import { parseRiskyOption, riskyUses } from "../../src/core/risky_options.ts";

function part(text: string, more: Partial<Part> = {}): Part {
  return { argv: words(text), text, assignments: [], level: "top", ...more };
}

// Words at blanks, those in single quotes kept together.
function words(text: string): string[] {
  return [...text.matchAll(/'([^']*)'|(\S+)/g)].map((m) => m[1] ?? m[2] ?? "");
}

describe("commandRisk()", () => {
  const rows: [risk: Risk, ...commands: string[]][] = [
    [
      "read",
      "ls -l",
      "cat a",
      "git status",
      "git -C x log -p",
      "git branch",
      "git branch -a",
      "git stash list",
      "git config user.name",
    ],
    [
      "read",
      "rg x",
      "sed -n 1p f",
      "sort f",
      "find . -name x",
      "awk '{print $1}'",
      "tar -tf a",
      "set -euo pipefail",
      "command -v git",
      "true",
    ],
    [
      "write",
      "touch x",
      "rm x",
      "sed -i s/a/b/ f",
      "sort -o x f",
      "tar -xf a",
      "git add .",
      "git config a b",
      "git branch new",
      "git restore --staged x",
    ],
    [
      "execute",
      "make",
      "./x",
      "unknown",
      "npm test",
      "git commit -m x",
      "find . -exec ls ;",
      "git -c a=b log",
      "sudo ls",
      "git foreign",
    ],
    [
      "network",
      "curl x",
      "git fetch",
      "git pull",
      "git push origin main",
      "npm i",
      "npm ci",
      "go mod download",
      "kubectl get pods",
      "pip install x",
    ],
    ["network", "terraform plan", "gh pr list", "git submodule update", "docker pull x", "ssh h"],
    [
      "destructive",
      "rm -rf x",
      "rm -r x",
      "rm --recurs x",
      "git push --force",
      "git push -f",
      "git push origin +main",
      "git push origin :x",
    ],
    [
      "destructive",
      "git push --force-with-lease",
      "git -C x reset --hard",
      "git clean -fd",
      "git checkout -- .",
      "git branch -D x",
      "git stash drop",
    ],
    [
      "destructive",
      "dd of=x",
      "mkfs.ext4 x",
      "shred x",
      "find . -delete",
      "kubectl -n p delete pod x",
      "terraform destroy",
      "terraform apply -destroy",
    ],
    [
      "destructive",
      "psql -c 'DROP TABLE x'",
      "docker system prune",
      "aws s3 rm x",
      "aws ec2 terminate-instances x",
      "gh repo delete x",
      "npm unpublish",
    ],
    ["execute", "psql -c 'select 1'"],
  ];
  for (const [risk, ...commands] of rows) {
    for (const command of commands) {
      test(`${risk}: ${command}`, () => assertEquals(commandRisk(part(command)), risk));
    }
  }

  test("what is not known makes it execute at least", () => {
    const unknown = { blurs: [{ at: 1, pieces: ["", ""], many: true }] };
    const names = { blurs: [{ at: 1, pieces: ["", ""], many: true, glob: true as const }] };
    assertEquals(commandRisk(part("cat $X", unknown)), "execute");
    assertEquals(commandRisk(part("cat *", names)), "read");
    assertEquals(commandRisk(part("rm *", names)), "destructive");
    assertEquals(commandRisk(part("$X", { blurs: [{ at: 0, pieces: ["", ""], many: true }] })), "execute");
    assertEquals(
      commandRisk({ argv: [], text: "f() { :; }", assignments: [], level: "top", notUnderstood: "x" }),
      "execute",
    );
    assertEquals(commandRisk({ argv: [], text: "X=1", assignments: ["X=1"], level: "top" }), "read");
  });

  test("strongest() is the higher of two", () => {
    assertEquals([strongest("read", "write"), strongest("destructive", "network")], ["write", "destructive"]);
  });
});

describe("riskyUses()", () => {
  const risky: [command: string, at: number, option: string][] = [
    ["find . -exec ls ;", 2, "-exec"],
    ["find . -execdir ls ;", 2, "-execdir"],
    ["find . -ok ls ;", 2, "-ok"],
    ["find . -delete", 2, "-delete"],
    ["find . -fprintf f x", 2, "-fprintf"],
    ["git -c core.pager=x diff", 1, "-c"],
    ["git --config-env=a=b log", 1, "--config-env"],
    ["git --exec-path=x log", 1, "--exec-path"],
    ["git -p status", 1, "-p"],
    ["git diff --output=x", 2, "--output"],
    ["git log --outp x", 2, "--output"],
    ["git fetch --upload-pack x", 2, "--upload-pack"],
    ["git push --receive-pack=x", 2, "--receive-pack"],
    ["git diff --ext-diff", 2, "--ext-diff"],
    ["git grep -O./x p", 2, "-O"],
    ["git grep -nOx p", 2, "-O"],
    ["git rebase -x ls", 2, "-x"],
    ["git clone -c a=b x", 2, "-c"],
    ["git bisect run x", 2, "run"],
    ["git submodule foreach x", 2, "foreach"],
    ["git config core.pager x", 2, "config"],
    ["git config --unset a", 3, "config"],
    ["rg --pre x p", 1, "--pre"],
    ["rg -e -- --pre=x p", 3, "--pre"],
    ["rg --hostname-bin x", 1, "--hostname-bin"],
    ["sed -i s/a/b/ f", 1, "-i"],
    ["sed -i.bak s/a/b/ f", 1, "-i"],
    ["sed -nEi p f", 1, "-i"],
    ["sed --in-place=.b p f", 1, "--in-place"],
    ["sed --in p f", 1, "--in-place"],
    ["sed -f x f", 1, "-f"],
    ["sed 's/a/b/w out' f", 1, "s///w"],
    ["sed 's|a|b|ge' f", 1, "s///e"],
    ["sed -n '/x/w out' f", 2, "w"],
    ["sed -e p -e '1,3W out' f", 4, "W"],
    ["sed '1e id' f", 1, "e"],
    ["sed 's/[/]/x/e' f", 1, "s///e"],
    ["sed '$!{s/a/b/;w out\n}' f", 1, "w"],
    ["sed 'ยง' f", 1, "a script that is not understood"],
    ["sort -o out f", 1, "-o"],
    ["sort -ro out f", 1, "-o"],
    ["sort --compress-prog=x f", 1, "--compress-program"],
    ["tar --checkpoint-action=exec=x -cf a b", 1, "--checkpoint-action"],
    ["tar -I x -xf a", 1, "-I"],
    ["tar xIf x a", 1, "-I"],
    ["tar --to-command=x -xf a", 1, "--to-command"],
    ["tar --use-compress-prog=x -xf a", 1, "--use-compress-program"],
    ["fd -x rm", 1, "-x"],
    ["fd -HX rm", 1, "-X"],
    ["fd --exec-b rm", 1, "--exec-batch"],
    ["awk 'BEGIN{system(\"x\")}'", 1, "system()"],
    ["awk '{print | \"sh\"}'", 1, "a pipe"],
    ["awk '{\"date\" | getline x}'", 1, "a pipe"],
    ["awk '{print $1 > \"f\"}' x", 1, "print >"],
    ['awk -F: \'{f="system"; @f("x")}\'', 2, "@"],
    ["awk 'x \\\n/ system(y) / z'", 1, "system()"],
    ["awk -f x f", 1, "-f"],
    ["go test -exec x ./...", 2, "-exec"],
    ["go build --toolexec=x", 2, "-toolexec"],
    ["base64 -o x f", 1, "-o"],
    ["curl -sSLo x u", 1, "-o"],
    ["man -P x ls", 1, "-P"],
    ["/usr/bin/sort -o x", 1, "-o"],
  ];
  for (const [command, at, option] of risky) {
    test(command, () => {
      const [first] = riskyUses(words(command));
      assertEquals([first?.at, first?.option], [at, option]);
    });
  }

  const plain = [
    "git log -p -3",
    "git log --oneline",
    "git commit -m '-c x'",
    "git config --get core.pager",
    "git config -l",
    "git push -o x",
    "sed -n 1,20p f",
    "sed -e s/i/e/ f",
    "sed 's/w/e/g;y/abc/def/;/x/,/y/d;$!N;:a;ta' f",
    "sed 'a w out' f",
    "rg -n --glob src p",
    "sort -k2,2n -u f",
    "tar -xzf a",
    "tar xf a",
    "tar --checkpoint=10 -cf a b",
    "fd -e ts",
    "awk '{print $1}' f",
    "awk -F'|' '$3 > 5 && /a|b/ {print \"x|y>z\"}' f",
    "awk '{print ($1 > 2)}' f",
    "go test -run x",
    "find . -name x -print",
    "curl --cookie a=b u",
    "ls -o",
  ];
  for (const command of plain) {
    test(`nothing in ${command}`, () => assertEquals(riskyUses(words(command)), []));
  }

  test("gives the value, joined or from the next word", () => {
    assertEquals(riskyUses(["sort", "-o", "a", "--output=b", "-oc"]), [
      { at: 1, option: "-o", kind: "writes", value: "a" },
      { at: 3, option: "--output", kind: "writes", value: "b" },
      { at: 4, option: "-o", kind: "writes", value: "c" },
    ]);
  });
});

describe("parseRiskyOption()", () => {
  const rows: [text: string, parsed: ReturnType<typeof parseRiskyOption>][] = [
    ["deploy --hook", { program: "deploy", option: "--hook", kind: "runs" }],
    ["  git  push  -x ", { program: "git", sub: "push", option: "-x", kind: "runs" }],
    ["/usr/bin/MyTool.exe --danger", { program: "mytool", option: "--danger", kind: "runs" }],
    ["tool hooks run", { program: "tool", sub: "hooks", option: "run", kind: "runs" }],
  ];
  for (const [text, parsed] of rows) test(text, () => assertEquals(parseRiskyOption(text), parsed));
  for (const text of ["", "deploy", "deploy hook", "a b c d"]) {
    test(`refuses ${JSON.stringify(text)}`, () => assert("error" in parseRiskyOption(text)));
  }
  test("every form that it takes is found in use", () => {
    const uses = (entry: string, argv: string) => {
      const option = parseRiskyOption(entry);
      assert(!("error" in option));
      return riskyUses(argv.split(" "), [option]).map((u) => u.at);
    };
    assertEquals(
      [
        uses("/usr/bin/mytool --danger", "mytool a --danger x"),
        uses("mytool --danger", "/opt/mytool --danger=1"),
        uses("tool hooks run", "tool hooks run x"),
        uses("tool hooks run", "tool hooks list run"),
      ],
      [[2], [1], [2], []],
    );
  });
});
