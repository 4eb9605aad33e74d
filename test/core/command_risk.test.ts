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
    ["read", "git-stash list"],
    ["write", "git reset HEAD", "tar out.x"],
    ["execute", "sqlite3 f 'select backdrop'"],
    // Every program of the tables, and words that only resemble those which make a difference.
    [
      "read",
      "git",
      "git -C x",
      "command -V git",
      "set",
      "set +x",
      "set -e -o pipefail",
      "set nounset",
      "tar tf a",
      "tar -t",
      "tar -vtf a",
    ],
    [
      "read",
      "hostname",
      "hostname -f -i",
      "git remote",
      "git remote -v",
      "git remote get-url x",
      "git archive HEAD",
      "git stash show",
    ],
    [
      "read",
      "git submodule",
      "git submodule status",
      "git tag",
      "git tag -l",
      "git worktree list",
      "git notes",
      "git notes list",
    ],
    [
      "read",
      "git reflog",
      "git reflog show",
      "git bisect log",
      "git config --get a.b",
      "git config -l",
      "git symbolic-ref HEAD",
    ],
    [
      "read",
      "git branch --show-current",
      "git-status",
      "/usr/lib/git-core/git-log -p",
      "git show-branch",
      "git config a.b",
    ],
    [
      "write",
      "git remote add x y",
      "git remote -vx",
      "git stash",
      "git stash push",
      "git stash lists",
      "git worktree add x",
      "git notes add",
    ],
    [
      "write",
      "git config",
      "git config --unset a",
      "git config a.b c",
      "git symbolic-ref a",
      "git symbolic-ref HEAD x",
      "git tag v1",
      "git tag -lx",
    ],
    [
      "write",
      "git rm x",
      "git mv a b",
      "git reset",
      "git reset --soft x",
      "git restore -S x",
      "git branch --format=x",
    ],
    [
      "write",
      "git repack -a",
      "git-add x",
      "unlink x",
      "tar -cf at b",
      "tar --create",
      "tar",
      "rm -- x",
      "rm -i x",
      "rm - x",
    ],
    [
      "execute",
      "command git",
      "command -vx git",
      "command --v git",
      "commands -v git",
      "set -o posix -e",
      "set xpipefail",
      "set pipefailx",
      "set -ef",
      "set --",
      "set x-e",
    ],
    [
      "execute",
      "hostname new",
      "hostname -F new",
      "git reflog x",
      "git bisect start",
      "git bisect logs",
      "git submodule init",
      "git submodule statusx",
    ],
    [
      "execute",
      "git clean -n",
      "git clean -xn",
      "git clean --dry-run",
      "git checkout x",
      "git switch x",
      "git switch -c x",
      "git gc",
      "git update-ref a b",
    ],
    [
      "execute",
      "npm run x",
      "npm test publish",
      "docker ps",
      "docker run x rm",
      "cargo build",
      "go build mod",
      "crontab -l",
      "crontab f",
      "mvn package",
    ],
    [
      "execute",
      "mysql -e 'select * from backdrops'",
      "redis-cli get dropped",
      "sqlite3 f .tables",
      "makefs x",
      "xmkfs",
      "toString",
      "git toString",
    ],
    [
      "network",
      "npm",
      "yarn",
      "pnpm",
      "bun add x",
      "deno install",
      "uv sync",
      "poetry lock",
      "cargo install x",
      "go get x",
      "podman pull x",
    ],
    [
      "network",
      "bundle install",
      "composer require x",
      "mvn deploy",
      "npm exec x",
      "pnpm dlx x",
      "yarn up",
      "docker push x",
      "git-fetch",
      "git-push x",
    ],
    [
      "network",
      "git remote update",
      "git remote show x",
      "git remote prune x",
      "git submodule add x",
      "git archive --remote=x HEAD",
      "git archive HEAD --remote x",
    ],
    [
      "network",
      "git push --follow-tags",
      "git push -n",
      "git push a:b",
      "git push --dry-run",
      "git send-pack x",
      "git ls-remote",
      "rsync a b",
      "rsync --dirs a b",
    ],
    [
      "network",
      "kubectl replace -f x",
      "kubectl get x --force",
      "kubectl get deletes",
      "oc get x",
      "helm list",
      "helm install un",
      "terraform state list",
    ],
    [
      "network",
      "terraform plan -destroyed",
      "tofu apply rm",
      "aws s3 ls",
      "aws ec2 describe-delete-x",
      "aws ec2 rm",
      "gh pr delete-x",
      "heroku apps",
      "az rmx",
    ],
    [
      "destructive",
      "rm -R x",
      "rm -f x",
      "rm -if x",
      "rm --force x",
      "rm --rec x",
      "rsync --delete a b",
      "rsync --remove-source-files a b",
      "crontab -r",
    ],
    [
      "destructive",
      "mysql -e 'truncate x'",
      "mariadb -e 'delete from x'",
      "sqlite3 f 'Drop table x'",
      "mongosh 'db.x.deleteMany()'",
      "redis-cli flushall",
    ],
    [
      "destructive",
      "oc delete x",
      "oc drain x",
      "kubectl drain x",
      "kubectl replace --force -f x",
      "helm uninstall x",
      "helm del x",
      "helm un x",
      "helm delete x",
    ],
    [
      "destructive",
      "tofu destroy",
      "terragrunt destroy",
      "pulumi down",
      "pulumi destroy",
      "terraform state rm x",
      "docker rm x",
      "docker rmi x",
      "podman rm x",
    ],
    [
      "destructive",
      "docker image rm x",
      "docker image prune",
      "podman volume prune",
      "aws s3 rb x",
      "aws iam delete-user",
      "aws x remove-y",
      "aws x purge-y",
    ],
    [
      "destructive",
      "gcloud x delete y",
      "az group delete",
      "gsutil rm x",
      "glab repo delete",
      "doctl x delete",
      "flyctl apps destroy x",
      "fly destroy x",
    ],
    [
      "destructive",
      "heroku apps:destroy x",
      "gsutil rb x",
      "aws x deregister-y",
      "aws x destroy-y",
      "gh cache purge",
      "wipefs x",
      "mkfs x",
    ],
    [
      "destructive",
      "git push -d x y",
      "git push --delete x",
      "git push --mirror",
      "git push --prune",
      "git push -vf",
      "git push --forc",
      "git send-pack -f x",
    ],
    [
      "destructive",
      "git reset --merge",
      "git reset --keep x",
      "git clean",
      "git clean -x",
      "git checkout -f",
      "git checkout --force x",
      "git checkout .",
    ],
    [
      "destructive",
      "git checkout -- x",
      "git switch -f x",
      "git switch -C x",
      "git switch --force x",
      "git switch --discard-changes x",
      "git restore x",
    ],
    [
      "destructive",
      "git restore -SW x",
      "git restore --staged -W x",
      "git restore --staged --worktree x",
      "git branch -M x",
      "git branch -d x",
      "git branch -C x",
    ],
    [
      "destructive",
      "git branch -f x",
      "git branch --delete x",
      "git branch --force x",
      "git branch --forc x",
      "git tag -d x",
      "git tag -f x",
      "git tag --delete x",
    ],
    [
      "destructive",
      "git tag --force x",
      "git stash clear",
      "git reflog expire",
      "git reflog delete",
      "git worktree remove x",
      "git worktree prune",
    ],
    [
      "destructive",
      "git rm -f x",
      "git rm -r x",
      "git rm --force x",
      "git gc --prune=now",
      "git repack --prune",
      "git update-ref -d x",
      "git filter-branch",
    ],
    [
      "destructive",
      "git filter-repo",
      "git prune",
      "git replace x",
      "git-push --force",
      "git-reset --hard",
      "git --no-pager push -f",
      "git push x -f",
    ],
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
    const both = { blurs: [...names.blurs, ...unknown.blurs] };
    assertEquals(commandRisk(part("cat * $X", both)), "execute");
    const program = {
      blurs: [{ at: 0, pieces: ["l", ""], many: false, glob: true as const }, ...names.blurs],
    };
    assertEquals(commandRisk(part("ls *", program)), "execute");
    assertEquals(commandRisk(part("touch $X", unknown)), "execute");
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

  // One option of every program, and of every subcommand of git.
  const each: readonly (readonly [program: string, option: string])[] = [
    ["npm install", "--script-shell"],
    ["pnpm install", "--shell"],
    ["yarn", "--use-yarnrc"],
    ["git init", "--template"],
    ["git archive", "--exec"],
    ["git archive", "-o"],
    ["git push", "--exec"],
    ["git send-pack", "--exec"],
    ["git ls-remote", "--exec"],
    ["git fetch-pack", "--exec"],
    ["git format-patch", "-o"],
    ["git difftool", "--extcmd"],
    ["git mergetool", "-t"],
    ["git send-email", "--to-cmd"],
    ["git hook", "run"],
    ["git for-each-repo", "--config"],
    ["git filter-branch", "--env-filter"],
    ["git config", "--edit"],
    ["git bundle", "create"],
    ["git bugreport", "-o"],
    ["git diagnose", "--output-directory"],
    ["git daemon", "--access-hook"],
    ["git instaweb", "--httpd"],
    ["git grep", "--open-files-in-pager"],
    ["git rebase", "--exec"],
    ["git clone", "--template"],
    ["mawk", "-W"],
    ["wget", "-O"],
    ["less", "-k"],
    ["ssh", "-F"],
    ["scp", "-S"],
    ["sftp", "-b"],
    ["rsync", "--rsh"],
    ["xmllint", "--output"],
    ["shuf", "-o"],
    ["iconv", "-o"],
    ["tree", "-o"],
    ["sdiff", "--diff-program"],
    ["patch", "-r"],
    ["yq", "-i"],
    ["perl", "-i"],
    ["ruby", "-i"],
    ["ag", "--pager"],
    ["ack", "--output"],
    ["bat", "--pager"],
    ["delta", "--pager"],
    ["fzf", "--preview"],
    ["date", "-s"],
    ["file", "-m"],
    ["strace", "-o"],
    ["tcpdump", "-z"],
    ["gpg", "--exec-path"],
    ["openssl", "-engine"],
    ["psql", "-f"],
    ["mysql", "--pager"],
    ["sqlite3", "-init"],
    ["kubectl", "--kubeconfig"],
    ["cargo", "--config"],
    ["make", "--eval"],
    ["eslint", "--rulesdir"],
    ["prettier", "-w"],
    ["ruff", "--fix"],
    ["vim", "-S"],
    ["nvim", "-l"],
    ["ip", "-batch"],
    ["gsed", "-i"],
    ["fdfind", "-x"],
    ["gawk", "-f"],
    ["nawk", "-f"],
    ["find", "-ok"],
    ["rg", "--pre"],
    ["go", "-exec"],
    ["base64", "-o"],
    ["man", "-P"],
    ["tar", "-I"],
  ];
  for (const [program, option] of each) {
    test(`${program} ${option}`, () => {
      const argv = [...program.split(" "), option, "x"];
      assertEquals(riskyUses(argv).map((use) => [use.at, use.option]), [[argv.length - 2, option]]);
    });
  }

  const uses: readonly (readonly [
    command: string,
    uses: readonly (readonly [at: number, option: string, value?: string])[],
  ])[] = [
    ["", []],
    ["ls --output=x", []],
    ["toString -o x", []],
    ["sort", []],
    ["sort -o", [[1, "-o"]]],
    ["sort -o=x", [[1, "-o", "=x"]]],
    ["sort -ox f", [[1, "-o", "x"]]],
    ["sort -k1o x", []],
    ["sort --outpu=x", [[1, "--output", "x"]]],
    ["sort --output=", [[1, "--output", ""]]],
    ["sort --", []],
    ["sort --ux", []],
    ["sort -- -o x", [[2, "-o", "x"]]],
    ["sort x-o", []],
    ["sort x--output", []],
    ["curl --output x", [[1, "--output", "x"]]],
    ["curl --cookie-jar x", [[1, "--cookie-jar", "x"]]],
    ["openssl enc -out x", [[2, "-out", "x"]]],
    ["openssl enc --out=x", [[2, "-out", "x"]]],
    ["openssl enc -outx", []],
    ["sqlite3 --cmd x", [[1, "-cmd", "x"]]],
    ["ip -ba x", []],
    ["find --delete", [[1, "-delete"]]],
    ["go test --exec x", [[2, "-exec", "x"]]],
    ["git -c a=b -c c=d log", [[1, "-c", "a=b"], [3, "-c", "c=d"]]],
    ["git log -c a=b", []],
    ["git bisect run ls -l", [[2, "run", "ls -l"]]],
    ["git bisect run", [[2, "run", ""]]],
    ["git bisect start run", []],
    ["git run", []],
    ["git rebase", []],
    ["git toString -x ls", []],
    ["git -x ls rebase", []],
    ["git rebase -sx a", []],
    ["git grep -eO", []],
    ["git push -oexec x", []],
    ["git config a b", [[2, "config"]]],
    ["git config -f x a", [[3, "config"]]],
    ["git config --add a", [[3, "config"]]],
    ["git config x--add", []],
    ["git config --get a b", []],
    ["git config --get-all a b", []],
    ["git config -l a b", []],
    ["git config --list a b", []],
    ["git config --listx a b", [[3, "config"]]],
    ["git config -lx a b", [[3, "config"]]],
    ["git config x--get b", [[2, "config"]]],
    ["git config get a b", []],
    ["git config list a b", []],
    ["git config gets a", [[2, "config"]]],
    ["git config aget b", [[2, "config"]]],
    ["git config a- -b", []],
    ["git config a", []],
    ["npm config a b", []],
    ["tar If x a", [[1, "-I", "f"]]],
    ["tar xfI a x", [[1, "-I", "a"]]],
    ["tar -fI a", []],
    ["tar x I", []],
    ["tar x- I", []],
    ["tar -xf a-I", []],
    ["sort o x", []],
    ["git rebase -sX x", []],
  ];
  for (const [command, found] of uses) {
    test(`uses in ${command}`, () =>
      assertEquals(
        riskyUses(words(command)).map(({ at, option, value }) =>
          value === undefined ? [at, option] : [at, option, value]
        ),
        found as never,
      ));
  }

  test("uses say what they are, and a value only where there is one", () => {
    assertEquals(riskyUses(["sort", "-o"]), [{ at: 1, option: "-o", kind: "writes" }]);
    assertEquals(riskyUses(["git", "config", "a", "b"]), [{ at: 2, option: "config", kind: "writes" }]);
    assertEquals(riskyUses(["git", "-p", "-O", "grep"]), [{
      at: 1,
      option: "-p",
      kind: "runs",
      value: "-O",
    }]);
  });

  test("uses stand in the order of the words", () => {
    assertEquals(riskyUses(words("sed -e 'w out' -i f")).map((use) => use.at), [2, 3]);
    assertEquals(riskyUses(words("git config a b --output=x")).map((use) => use.at), [2, 4]);
  });

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
  test("says what is wrong, and what to write", () => {
    const forms = "write `PROGRAM OPTION` or `PROGRAM SUBCOMMAND OPTION`";
    assertEquals([parseRiskyOption("deploy"), parseRiskyOption("a b c d"), parseRiskyOption("deploy hook")], [
      { error: "`deploy` is no risky option", hint: forms },
      { error: "`a b c d` is no risky option", hint: forms },
      {
        error: "`deploy hook` is no risky option: `hook` does not start with `-`",
        hint: "for every `deploy hook` write a rule, as in `ask: [shell(deploy hook *)]`",
      },
    ]);
  });
  test("counts for its program and its subcommand, behind that", () => {
    const added = ["tool run --x", "tool --y", "other --z"].flatMap((text) => {
      const option = parseRiskyOption(text);
      return "error" in option ? [] : [option];
    });
    const uses = (argv: string) => riskyUses(argv.split(" "), added).map((use) => use.at);
    assertEquals(
      ["tool run --x", "tool go --x", "tool --x run", "tool --y", "tool --z", "other --z", "sort -o x"].map(
        uses,
      ),
      [[2], [], [], [1], [], [1], [1]],
    );
  });
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
