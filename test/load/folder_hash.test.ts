import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { afterEach, beforeEach, describe, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { hashFolder } from "../../src/load/folder_hash.ts";

let folder = "";
beforeEach(() => folder = realpathSync(mkdtempSync(join(tmpdir(), "writ-hash-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(path: string, content: string, mode = 0o644): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), content);
  chmodSync(join(folder, path), mode);
}

function hash(): string {
  const hashed = hashFolder(folder);
  return hashed.ok ? hashed.hash : hashed.message;
}

// As `writ help skills` has it.
const recipe = `find . -type f | LC_ALL=C sort | while IFS= read -r f; do
  printf '%s %s %s\\n' "$(sha256sum < "$f" | cut -c1-64)" "$(test -x "$f" && echo x || echo -)" "\${f#./}"
done | sha256sum`;

test("hashFolder() gives what the shell recipe gives", () => {
  write("SKILL.md", "---\nname: a\n---\nBody\n");
  write("scripts/run.sh", "echo\n", 0o755);
  write(".hidden/空 file", "\xff");
  write("\u{1f600}", "astral");
  write("\uffee", "after it by its bytes, before it by UTF-16");
  mkdirSync(join(folder, "empty"));
  const [sum = ""] = execFileSync("bash", ["-c", recipe], { cwd: folder, encoding: "utf8" }).split(" ");
  assertEquals(hash(), `sha256:${sum}`);
  assertMatch(sum, /^[0-9a-f]{64}$/);
});

describe("hashFolder() gives another hash after", () => {
  const changes: readonly (readonly [string, () => void])[] = [
    ["another byte", () => write("a", "2")],
    ["the right to execute", () => chmodSync(join(folder, "a"), 0o755)],
    ["another name", () => (rmSync(join(folder, "a")), write("b", "1"))],
    ["another folder", () => (rmSync(join(folder, "a")), write("d/a", "1"))],
    ["a new file", () => write("b", "")],
    ["a hidden file", () => write(".b", "")],
  ];
  for (const [name, change] of changes) {
    test(name, () => {
      write("a", "1");
      const before = hash();
      change();
      assertEquals(hash() === before, false);
    });
  }
});

test("hashFolder() does not depend on other rights, times or empty folders", () => {
  write("a", "1");
  const before = hash();
  write("a", "1", 0o600);
  mkdirSync(join(folder, "empty"));
  assertEquals(hash(), before);
});

describe("hashFolder() refuses", () => {
  const refused: readonly (readonly [string, () => void, string])[] = [
    ["a link to a file inside", () => (write("a", ""), symlinkSync("a", join(folder, "l"))), "`l` is a link"],
    ["a link to a folder", () => symlinkSync("/", join(folder, "l")), "`l` is a link"],
    ["a pipe", () => execFileSync("mkfifo", [join(folder, "p")]), "`p` is no regular file"],
    ["a line end in a name", () => write("a\nb", ""), "holds a control character"],
    ["levels without end", () => write(`${"d/".repeat(40)}a`, ""), "deeper than 32 folders"],
  ];
  for (const [name, make, said] of refused) {
    test(name, () => {
      make();
      const hashed = hashFolder(folder);
      assertEquals(hashed.ok, false);
      assertStringIncludes(hashed.ok ? "" : hashed.message, said);
    });
  }

  test("a folder that is not there", () => assertEquals(hashFolder(join(folder, "gone")).ok, false));
});
