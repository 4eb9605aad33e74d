// What counts as the content of a workspace, and what does not.
import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { afterEach, beforeEach, describe, test } from "bun:test";
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { contentFingerprint, type FingerprintCaps } from "../../src/tools/content_fingerprint.ts";

let root = "";
const env = {
  PATH: process.env["PATH"] ?? "/usr/bin:/bin",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
};
const signal = new AbortController().signal;

function write(path: string, content: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), content);
}

function git(...args: readonly string[]): void {
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.test", ...args], {
    cwd: root,
    env,
    stdio: "ignore",
  });
}

function commit(): void {
  git("add", "--all");
  git("commit", "-q", "--allow-empty", "-m", "x");
}

const now = (caps?: FingerprintCaps, at = root) => contentFingerprint({ root: at, env }, caps)(signal);

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "writ-content-")));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function repository(): void {
  git("init", "-q", "-b", "main");
  write("a.txt", "one\n");
  write("sub/b.txt", "two\n");
  write(".gitignore", "*.log\n");
  commit();
  git("branch", "other");
}

describe("the fingerprint", () => {
  const rows: readonly (readonly [name: string, changes: boolean, change: () => void])[] = [
    ["nothing", false, () => {}],
    ["a tracked file", true, () => write("a.txt", "two\n")],
    ["a tracked file, of the same length", true, () => write("a.txt", "ten\n")],
    ["a tracked file that is gone", true, () => rmSync(join(root, "a.txt"))],
    ["a file that git does not know", true, () => write("new.txt", "x")],
    ["a file that git ignores", false, () => write("x.log", "x")],
    ["an empty folder", false, () => mkdirSync(join(root, "empty"))],
    ["times alone", false, () => utimesSync(join(root, "a.txt"), 1, 1)],
    ["the right to run it", true, () => chmodSync(join(root, "a.txt"), 0o755)],
    ["a link in place of a file", true, () => {
      rmSync(join(root, "a.txt"));
      symlinkSync("sub/b.txt", join(root, "a.txt"));
    }],
    ["a commit", true, () => commit()],
    ["another branch at the same commit", false, () => git("checkout", "-q", "other")],
    ["a commit on another branch", true, () => {
      git("checkout", "-q", "other");
      commit();
      git("checkout", "-q", "main");
    }],
    ["a branch that is new", true, () => git("branch", "topic")],
    ["a branch that is gone", true, () => git("branch", "-D", "other")],
    ["a branch of a remote that moved", true, () => git("update-ref", "refs/remotes/origin/x", "HEAD")],
    ["a tag", true, () => git("tag", "v1")],
    ["what is stashed besides", false, () => git("update-ref", "refs/stash", "HEAD")],
    ["a fetch that moves no branch", true, () => write(".git/FETCH_HEAD", "1234\t\tbranch 'x' of y\n")],
    ["a list of ignored files that hides itself, beside files that count", true, () => {
      write("sub/.gitignore", "*\n");
      write("sub/new.txt", "x");
    }],
    ["the same at the root", true, () => {
      write("top.log", "x");
      write(".gitignore", "*.log\n.gitignore\n");
      commit();
    }],
    ["a folder that ignores all of itself", false, () => {
      write("cache/.gitignore", "*\n");
      write("cache/new.txt", "x");
    }],
    ["packed refs", false, () => git("pack-refs", "--all")],
    ["what is staged of a change", true, () => {
      write("a.txt", "two\n");
      git("add", "a.txt");
    }],
    ["a change that the index calls none", true, () => {
      git("update-index", "--assume-unchanged", "a.txt");
      write("a.txt", "two\n");
    }],
    ["a change that the index skips", true, () => {
      git("update-index", "--skip-worktree", "a.txt");
      write("a.txt", "two\n");
    }],
    ["a change that a filter takes back", true, () => {
      git("config", "filter.same.clean", "echo one");
      write(".git/info/attributes", "a.txt filter=same\n");
      write("a.txt", "two\n");
    }],
    ["a change of line ends that git would not see", true, () => {
      git("config", "core.autocrlf", "true");
      write("a.txt", "one\r\n");
    }],
    ["a file in a repository within it", true, () => {
      mkdirSync(join(root, "inner"));
      execFileSync("git", ["init", "-q"], { cwd: join(root, "inner"), env });
      write("inner/x/y.txt", "x");
    }],
    ["a file that settings of the repository ignore", true, () => {
      write(".git/own-ignores", "new.txt\n");
      git("config", "core.excludesFile", join(root, ".git/own-ignores"));
      write("new.txt", "x");
    }],
  ];
  for (const [name, changes, change] of rows) {
    test(`${changes ? "changes with" : "does not change with"} ${name}`, async () => {
      repository();
      const content = contentFingerprint({ root, env });
      const before = await content(signal);
      assert(before?.startsWith("git:"));
      change();
      const after = await content(signal);
      (changes ? assertNotEquals : assertEquals)(after, before);
      assertNotEquals(after, undefined);
      // What is remembered of files makes no difference.
      assertEquals(await now(), after);
    });
  }

  test("is the same again when a change is taken back", async () => {
    repository();
    const content = contentFingerprint({ root, env });
    const before = await content(signal);
    write("a.txt", "two\n");
    assertNotEquals(await content(signal), before);
    write("a.txt", "one\n");
    assertEquals(await content(signal), before);
  });

  test("does not depend on whether a new file is staged", async () => {
    repository();
    write("new.txt", "x");
    const before = await now();
    git("add", "new.txt");
    assertEquals(await now(), before);
  });

  test("does not see what is in a repository within this one besides its files", async () => {
    repository();
    mkdirSync(join(root, "inner"));
    execFileSync("git", ["init", "-q"], { cwd: join(root, "inner"), env });
    write("inner/x.txt", "x");
    const before = await now();
    write("inner/.git/description", "other");
    assertEquals(await now(), before);
  });

  test("starts nothing that the repository names", async () => {
    repository();
    const mark = join(root, "mark.log");
    write("evil.log", `#!/bin/sh\ntouch ${mark}\necho one\n`);
    chmodSync(join(root, "evil.log"), 0o755);
    for (
      const key of ["core.fsmonitor", "filter.x.clean", "core.pager", "core.sshCommand", "diff.external"]
    ) {
      git("config", key, join(root, "evil.log"));
    }
    write(".git/info/attributes", "* filter=x\n");
    write("a.txt", "two\n");
    assertNotEquals(await now(), undefined);
    assertEquals(execFileSync("ls", [root], { encoding: "utf8" }).includes("mark.log"), false);
  });

  test("is that of the root alone where that is a folder of the repository, and of HEAD", async () => {
    repository();
    const sub = join(root, "sub");
    const before = await now(undefined, sub);
    write("a.txt", "two\n");
    assertEquals(await now(undefined, sub), before);
    write("sub/b.txt", "three\n");
    assertNotEquals(await now(undefined, sub), before);
  });

  test("is there before the first commit", async () => {
    git("init", "-q");
    write("a.txt", "one\n");
    const before = await now();
    assert(before?.startsWith("git:"));
    write("a.txt", "two\n");
    assertNotEquals(await now(), before);
  });
});

describe("there is no fingerprint", () => {
  const caps: FingerprintCaps = { files: 3, bytes: 14, ms: 20_000 };
  test("without git", async () => {
    write("a.txt", "one\n");
    assertEquals(await now(), undefined);
  });

  test("where a setting of the repository names another working tree", async () => {
    repository();
    git("config", "core.worktree", join(root, "sub"));
    assertEquals(await now(), undefined);
  });

  test("beyond a number of files, and one below it is", async () => {
    repository();
    assertNotEquals(await now(caps), undefined);
    write("c.txt", "");
    assertEquals(await now(caps), undefined);
  });

  test("beyond a number of bytes, and one below it is", async () => {
    repository();
    assertNotEquals(await now(caps), undefined);
    write("a.txt", "three\n");
    assertEquals(await now(caps), undefined);
  });

  test("where it takes too long, or nobody waits for it", async () => {
    repository();
    assertEquals(await now({ ...caps, ms: 0 }), undefined);
    assertEquals(await contentFingerprint({ root, env })(AbortSignal.abort()), undefined);
  });

  test("where a name is not UTF-8", async () => {
    repository();
    writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff, 0x61])]), "x");
    assertEquals(await now(), undefined);
  });
});
