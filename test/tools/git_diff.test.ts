import { assertEquals, assertMatch, assertNotEquals, assertStringIncludes } from "@std/assert";
import { afterEach, beforeEach, describe, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync } from "node:fs";
import process from "node:process";
import type { ToolContext } from "../../src/agent/ports.ts";
import type { Args } from "../../src/core/message.ts";
import { gitDiff } from "../../src/tools/git_diff.ts";
import { call, makeWorkspace, type Workspace } from "./workspace.ts";

let ws: Workspace;
beforeEach(() => ws = makeWorkspace());
afterEach(() => ws.remove());

function git(...args: readonly string[]): string {
  return gitIn(ws.root, ...args);
}

function gitIn(cwd: string, ...args: readonly string[]): string {
  const env = {
    PATH: process.env["PATH"],
    HOME: ws.home,
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_AUTHOR_NAME: "a",
    GIT_AUTHOR_EMAIL: "a@b",
    GIT_COMMITTER_NAME: "a",
    GIT_COMMITTER_EMAIL: "a@b",
  };
  return execFileSync("git", ["-c", "init.defaultBranch=main", ...args], {
    cwd,
    env,
    encoding: "utf8",
    stdio: "pipe",
  });
}

function commitAll(message: string): void {
  git("add", "-A", ".");
  git("commit", "-q", "-m", message);
}

/** A repository with one commit of a.txt, src/b.txt and .env. */
function start(): void {
  git("init", "-q");
  ws.write("a.txt", "one\ntwo\n");
  ws.write("src/b.txt", "b\n");
  ws.write(".env", "KEY=1\n");
  commitAll("first");
}

const diff = (args: Args = {}, at: Partial<ToolContext> = {}) => call(gitDiff, args, { ...ws.at, ...at });
/** The lines that were added and removed, and the notes. */
async function changes(args: Args = {}, at: Partial<ToolContext> = {}): Promise<readonly string[]> {
  const { content } = await diff(args, at);
  return content.split("\n").filter((l) => /^([+-](?!\+\+|--)|\[)/.test(l));
}

describe("git_diff shows", () => {
  beforeEach(start);

  test("staged and unstaged changes together, and names what is untracked", async () => {
    ws.write("a.txt", "one\n2\n");
    git("add", "a.txt");
    ws.write("src/b.txt", "B\n");
    ws.write("新.md", "");
    ws.write("dir/x", "");
    const outcome = await diff();
    assertEquals(
      outcome.content.replace(/^index .*$/gm, "index"),
      "diff --git a/a.txt b/a.txt\nindex\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n" +
        "diff --git a/src/b.txt b/src/b.txt\nindex\n--- a/src/b.txt\n+++ b/src/b.txt\n@@ -1 +1 @@\n-b\n+B\n" +
        "[untracked, so in no diff: dir/, 新.md]",
    );
    assertEquals([outcome.ok, outcome.data, outcome.partial], [
      true,
      { files: 2, leftOut: [], untracked: 2 },
      undefined,
    ]);
  });

  const rows: readonly (readonly [string, Args, readonly string[]])[] = [
    ["the index only", { staged: true }, ["-two", "+2"]],
    ["one folder", { path: "src" }, ["-b", "+B"]],
    ["one file", { path: "a.txt" }, ["-two", "+2"]],
    ["against a commit", { ref: "HEAD~1" }, ["-two", "+2", "+c", "-b", "+B"]],
    ["against a branch", { ref: "old" }, ["-two", "+2", "+c", "-b", "+B"]],
    ["between commits", { ref: "old..HEAD" }, ["+c"]],
    ["since a common ancestor", { ref: "side...HEAD" }, ["+c"]],
    ["from a commit to here, by leaving a side out", { ref: "old.." }, ["+c"]],
    ["a commit by its id", { ref: "ID" }, ["-two", "+2", "-b", "+B"]],
    ["the index against a commit", { ref: "HEAD~1", staged: true }, ["-two", "+2", "+c"]],
  ];
  for (const [name, args, expected] of rows) {
    test(name, async () => {
      git("branch", "old");
      git("checkout", "-q", "-b", "side");
      ws.write("side.txt", "side\n");
      commitAll("side");
      git("checkout", "-q", "main");
      ws.write("c.txt", "c\n");
      commitAll("second");
      ws.write("a.txt", "one\n2\n");
      git("add", "a.txt");
      ws.write("src/b.txt", "B\n");
      const ref = args["ref"] === "ID" ? { ref: git("rev-parse", "HEAD").trim() } : {};
      assertEquals(await changes({ ...args, ...ref }), expected);
    });
  }

  test("files with names of all kinds", async () => {
    const names = ["a b", "q\"uo'te", "new\nline", "tab\tx", "文件", "-dash", ":(top)x", "*", "café"];
    for (const name of names) ws.write(`n/${name}`, "old\n");
    commitAll("names");
    for (const name of names) ws.write(`n/${name}`, "new\n");
    assertEquals((await changes()).length, 2 * names.length);
    for (const name of names) {
      assertEquals([name, await changes({ path: `n/${name}` })], [name, ["-old", "+new"]]);
    }
  });

  test("a renamed and a deleted file, and a binary one", async () => {
    git("mv", "a.txt", "moved.txt");
    rmSync(`${ws.root}/src/b.txt`);
    ws.write("bin", new Uint8Array([0, 1]));
    git("add", "bin");
    const { content } = await diff();
    assertMatch(content, /rename from a\.txt\nrename to moved\.txt/);
    assertMatch(content, /deleted file mode 100644/);
    assertMatch(content, /Binary files \/dev\/null and b\/bin differ/);
  });

  test("no difference as no evidence, with a hint", async () => {
    ws.write("new.txt", "");
    assertEquals(await diff(), {
      ok: true,
      content:
        "[no differences between HEAD and the working tree; give a ref such as HEAD~1 or main...HEAD to look further back]\n" +
        "[untracked, so in no diff: new.txt]",
      data: { files: 0, leftOut: [], untracked: 1 },
      partial: true,
    });
    assertEquals(
      (await diff({ path: "src" })).content.split(";")[0],
      "[no differences between HEAD and the working tree in src",
    );
  });

  test("a file of which only the time differs as no difference", async () => {
    ws.write("bin", new Uint8Array([0, 1]));
    commitAll("binary");
    for (const name of ["bin", "a.txt"]) utimesSync(`${ws.root}/${name}`, new Date(0), new Date(0));
    assertEquals([(await diff()).partial, (await changes()).length], [true, 1]);
  });

  test("a cut diff as no evidence, with what each file holds", async () => {
    ws.write("a.txt", "x\n".repeat(5000));
    ws.write("src/b.txt", "y\n");
    const outcome = await diff({}, { shell: { ...ws.at.shell, maxOutput: 1000 } });
    assertEquals(outcome.partial, true);
    assertStringIncludes(outcome.content, "characters cut");
    assertStringIncludes(
      outcome.content,
      "[cut: narrow the path; lines added and removed in each file:\n5000\t2\ta.txt\n1\t1\tsrc/b.txt\n]",
    );
    assertEquals(
      (await diff({ path: "src" }, { shell: { ...ws.at.shell, maxOutput: 1000 } })).partial,
      undefined,
    );
  });

  test("files that rules refuse are left out, by any way", async () => {
    ws.write(".env", "KEY=secret\n");
    ws.write("a.txt", "one\n2\n");
    const mayRead = (path: string) => !path.endsWith("/.env");
    assertEquals(await changes({}, { mayRead }), [
      "-two",
      "+2",
      "[left out because rules refuse reading them: .env]",
    ]);
    assertEquals((await diff({ path: ".env" }, { mayRead })).code, "read_refused");
    git("mv", "-f", ".env", "public");
    assertEquals(await changes({}, { mayRead }), [
      "-two",
      "+2",
      "+KEY=secret",
      "[left out because rules refuse reading them: .env]",
    ]);
  });

  test("a workspace that is a folder of the repository, and nothing above it", async () => {
    ws.write("src/b.txt", "B\n");
    ws.write("a.txt", "1\n");
    const at = { root: `${ws.root}/src` };
    assertEquals([await changes({}, at), await changes({ path: "b.txt" }, at)], [["-b", "+B"], ["-b", "+B"]]);
  });

  test("a linked working tree", async () => {
    git("worktree", "add", "-q", `${ws.root}/../linked`);
    const root = `${ws.outside}/../linked`.replace("outside/../", "");
    ws.write(`${root}/a.txt`, "1\n");
    assertEquals(await changes({}, { root }), ["-one", "-two", "+1"]);
  });
});

test("git_diff before the first commit shows the index", async () => {
  git("init", "-q");
  ws.write("a.txt", "a\n");
  git("add", ".");
  ws.write("b.txt", "b\n");
  assertEquals(await changes(), ["+a", "[untracked, so in no diff: b.txt]"]);
});

describe("git_diff refuses", () => {
  test("a folder that is no repository", async () => {
    assertEquals(await diff(), {
      ok: false,
      code: "not_git",
      content:
        `\`${ws.root}\` is in no git working tree: there is nothing to compare with; read the files instead`,
    });
  });

  test("to run without git", async () => {
    start();
    const outcome = await diff({}, { shell: { ...ws.at.shell, env: { PATH: ws.outside } } });
    assertEquals(outcome.code, "git_missing");
  });

  const refs: readonly (readonly [string, string])[] = [
    ["--output=stolen", "bad_ref"],
    ["-p", "bad_ref"],
    ["--", "bad_ref"],
    ["", "bad_ref"],
    ["HEAD:.env", "bad_ref"],
    ["HEAD:.env..HEAD:a.txt", "bad_ref"],
    [":/first", "bad_ref"],
    ["HEAD a.txt", "bad_ref"],
    ["HEAD\n", "bad_ref"],
    ["a\0b", "bad_ref"],
    ["nope", "unknown_ref"],
    ["HEAD~9", "unknown_ref"],
    ["nope..HEAD", "unknown_ref"],
    ["BLOB", "unknown_ref"],
    ["BLOB..BLOB", "unknown_ref"],
  ];
  for (const [ref, code] of refs) {
    test(`the ref ${JSON.stringify(ref)}`, async () => {
      start();
      const blob = git("rev-parse", "HEAD:.env").trim();
      assertEquals([
        (await diff({ ref: ref.replaceAll("BLOB", blob) })).code,
        existsSync(`${ws.root}/stolen`),
      ], [code, false]);
    });
  }

  test("a range together with the index", async () => {
    start();
    assertEquals((await diff({ ref: "HEAD..HEAD", staged: true })).code, "bad_ref");
  });

  test("a path outside", async () => {
    start();
    assertEquals((await diff({ path: ws.outside })).code, "outside");
  });

  test("to go on when cancelled", async () => {
    start();
    assertEquals((await diff({}, { signal: AbortSignal.abort() })).code, "cancelled");
  });
});

describe("git_diff runs nothing that a checkout brings", () => {
  /** A program in the workspace that leaves a mark when it runs. */
  function trap(): string {
    const path = ws.write("trap.sh", `#!/bin/sh\ntouch ${ws.outside}/ran\ncat\n`);
    chmodSync(path, 0o755);
    return path;
  }
  const ran = () => readdirSync(ws.outside);

  test("filters, textconv, external diffs, monitors, pagers and hooks", async () => {
    start();
    const program = trap();
    ws.write(".gitattributes", "*.txt filter=evil diff=evil\n*.md filter=ev.il=x\n");
    ws.write("c.md", "c\n");
    commitAll("attributes");
    for (
      const [key, value] of [
        ["filter.evil.clean", program],
        ["filter.evil.smudge", program],
        ["filter.evil.process", program],
        ["filter.evil.required", "true"],
        ["filter.ev.il=x.clean", program],
        ["filter.ev.il=x.required", "true"],
        ["diff.evil.textconv", program],
        ["diff.evil.command", program],
        ["diff.external", program],
        ["core.fsmonitor", program],
        ["core.pager", program],
        ["core.hooksPath", `${ws.root}/hooks`],
        ["core.sshCommand", program],
        ["gpg.program", program],
      ] as const
    ) git("config", key, value);
    ws.write("hooks/post-index-change", `#!/bin/sh\ntouch ${ws.outside}/ran\n`);
    chmodSync(`${ws.root}/hooks/post-index-change`, 0o755);
    ws.write("a.txt", "one\n2\n");
    ws.write("c.md", "C\n");
    // An index whose times are wrong would be written anew by a plain diff.
    utimesSync(`${ws.root}/src/b.txt`, new Date(0), new Date(0));
    const before = statSync(`${ws.root}/.git/index`).mtimeMs;
    const found = await changes();
    assertEquals([found.slice(0, 4), ran(), statSync(`${ws.root}/.git/index`).mtimeMs], [
      ["-two", "+2", "-c", "+C"],
      [],
      before,
    ]);
  });

  /** Settings that name a program, each with a mark of its own. */
  const programs: readonly string[] = [
    "alias.config",
    "alias.diff",
    "alias.ls-files",
    "alias.rev-parse",
    "core.alternateRefsCommand",
    "core.askPass",
    "core.editor",
    "core.fsmonitor",
    "core.gitProxy",
    "core.pager",
    "core.sshCommand",
    "credential.helper",
    "diff.evil.command",
    "diff.evil.textconv",
    "diff.external",
    "diff.guitool",
    "difftool.evil.cmd",
    "filter.evil.clean",
    "filter.evil.process",
    "filter.evil.smudge",
    "gpg.program",
    "gpg.ssh.program",
    "gpg.x509.program",
    "interactive.diffFilter",
    "merge.evil.driver",
    "pager.config",
    "pager.diff",
    "pager.ls-files",
    "remote.evil.receivepack",
    "remote.evil.uploadpack",
    "sequence.editor",
    "tar.evil.command",
    "trailer.evil.command",
    "uploadpack.packObjectsHook",
  ];
  /** Settings that make git look further, into other files or into submodules. */
  const further: readonly (readonly [string, string])[] = [
    ["core.untrackedCache", "true"],
    ["diff.autoRefreshIndex", "true"],
    ["diff.ignoreSubmodules", "none"],
    ["diff.submodule", "diff"],
    ["extensions.partialClone", "evil"],
    ["fetch.recurseSubmodules", "true"],
    ["filter.evil.required", "true"],
    ["log.showSignature", "true"],
    ["protocol.allow", "always"],
    ["protocol.ext.allow", "always"],
    ["remote.evil.promisor", "true"],
    ["status.submoduleSummary", "true"],
    ["submodule.recurse", "true"],
    ["submodule.sub.ignore", "none"],
  ];

  /** Sets all of these with `set`, and gives every text file in `folder` the evil filter and driver. */
  function armed(set: (key: string, value: string) => void, folder: string): void {
    for (const key of programs) {
      const value = `touch ${ws.outside}/${key} #`;
      set(key, key.startsWith("alias.") ? `!${value}` : value);
    }
    set("remote.evil.url", `ext::touch ${ws.outside}/remote.url`);
    for (const [key, value] of further) set(key, value);
    const attributes = gitIn(folder, "rev-parse", "--git-path", "info/attributes").trim();
    ws.write(
      attributes.startsWith("/") ? attributes : `${folder}/${attributes}`,
      "*.txt filter=evil diff=evil\n",
    );
    const hook = `#!/bin/sh\ntouch ${ws.outside}/hook\n`;
    const hooks = ws.write(`${ws.root}/../hooks/post-index-change`, hook);
    chmodSync(hooks, 0o755);
    set("core.hooksPath", `${ws.root}/../hooks`);
  }

  /** That a plain git runs some of it, so that a place without marks says something. */
  function plainGitRunsIt(folder: string): void {
    try {
      gitIn(folder, "diff", "HEAD");
    } catch {
      // These programs do not do what git expects of them.
    }
    assertNotEquals(ran(), []);
  }

  /** In ws.root, a submodule `sub` of which a commit and a change are not recorded. */
  function withSubmodule(): void {
    start();
    const origin = `${ws.root}/../origin`;
    mkdirSync(origin);
    gitIn(origin, "init", "-q");
    ws.write(`${origin}/s.txt`, "one\n");
    gitIn(origin, "add", ".");
    gitIn(origin, "commit", "-q", "-m", "x");
    git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", origin, "sub");
    commitAll("submodule");
    ws.write("sub/s.txt", "two\n");
    gitIn(`${ws.root}/sub`, "commit", "-q", "-a", "-m", "y");
    ws.write("sub/s.txt", "three\n");
    ws.write("a.txt", "one\n2\n");
  }

  test("no setting of the repository", async () => {
    withSubmodule();
    armed((key, value) => git("config", key, value), ws.root);
    assertEquals([(await changes()).slice(0, 2), await changes({ path: "src" }), ran()], [
      ["-two", "+2"],
      ["[no differences between HEAD and the working tree in src; give a ref such as HEAD~1 or main...HEAD to look further back]"],
      [],
    ]);
    plainGitRunsIt(ws.root);
  });

  test("no setting of a file that the repository's settings include", async () => {
    withSubmodule();
    const included = `${ws.root}/.git/more`;
    armed((key, value) => git("config", "-f", included, key, value), ws.root);
    git("config", "includeIf.onbranch:main.path", included);
    assertEquals([(await changes()).slice(0, 2), ran()], [["-two", "+2"], []]);
    plainGitRunsIt(ws.root);
  });

  test("no setting of the home", async () => {
    withSubmodule();
    armed((key, value) => git("config", "--global", key, value), ws.root);
    assertEquals([(await changes()).slice(0, 2), ran()], [["-two", "+2"], []]);
    plainGitRunsIt(ws.root);
  });

  test("no setting of a submodule", async () => {
    withSubmodule();
    armed((key, value) => gitIn(`${ws.root}/sub`, "config", key, value), `${ws.root}/sub`);
    for (const [key, value] of further) git("config", key, value);
    const found = await changes();
    assertEquals([found.map((l) => l.replace(/[0-9a-f]{40}$/, "…")), ran()], [
      ["-two", "+2", "-Subproject commit …", "+Subproject commit …"],
      [],
    ]);
    plainGitRunsIt(ws.root);
  });

  test("no setting of the submodule that is the workspace", async () => {
    withSubmodule();
    const root = `${ws.root}/sub`;
    armed((key, value) => gitIn(root, "config", key, value), root);
    assertEquals([await changes({}, { root }), ran()], [["-two", "+three"], []]);
    plainGitRunsIt(root);
  });

  test("no setting of a linked working tree", async () => {
    start();
    const root = ws.root.replace(/ws$/, "linked");
    git("worktree", "add", "-q", root);
    git("config", "extensions.worktreeConfig", "true");
    armed((key, value) => gitIn(root, "config", "--worktree", key, value), root);
    ws.write(`${root}/a.txt`, "one\n2\n");
    assertEquals([await changes({}, { root }), ran()], [["-two", "+2"], []]);
    plainGitRunsIt(root);
  });

  test("and refuses when there are more filters than can be switched off", async () => {
    start();
    const program = trap();
    const filters = Array.from({ length: 200 }, (_, i) => `[filter "f${i}"]\n\tclean = ${program}\n`);
    ws.write(".git/more", filters.join(""));
    git("config", "include.path", "more");
    ws.write(".gitattributes", "*.txt filter=f100\n");
    ws.write("a.txt", "one\n2\n");
    const outcome = await diff({}, { shell: { ...ws.at.shell, maxOutput: 512 } });
    assertEquals([outcome, ran()], [{
      ok: false,
      code: "git_failed",
      content: "git was not asked: the repository's settings name too many filters",
    }, []]);
  });

  test("no missing object is fetched by a helper of the repository", async () => {
    start();
    const program = trap();
    ws.write("a.txt", "one\n2\n");
    git("config", "core.repositoryFormatVersion", "1");
    git("config", "extensions.partialClone", "evil");
    git("config", "remote.evil.promisor", "true");
    git("config", "remote.evil.url", `ext::${program}`);
    git("config", "remote.evil.uploadpack", program);
    git("config", "protocol.ext.allow", "always");
    const id = git("rev-parse", "HEAD:a.txt").trim();
    rmSync(`${ws.root}/.git/objects/${id.slice(0, 2)}/${id.slice(2)}`, { force: true });
    assertEquals([(await diff()).code, ran()], ["git_failed", []]);
  });

  test("a working tree that the repository's settings name is not shown", async () => {
    start();
    ws.write(`${ws.outside}/a.txt`, "private\n");
    git("config", "core.worktree", ws.outside);
    assertEquals(await diff().then((o) => [o.code, o.content.includes("private")]), ["not_git", false]);
  });
});

test("git_diff is inspected as a read of its folder", () => {
  assertEquals(gitDiff.inspect({ staged: true }, ws.at), {
    risk: "read",
    subjects: [{
      kind: "path",
      tool: "git_diff",
      operand: false,
      path: { written: ws.root, absolute: ws.root, resolved: ws.root, inWorkspace: true },
    }],
  });
});
