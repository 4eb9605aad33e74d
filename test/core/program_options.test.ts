import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import {
  globalOption,
  hasGlobalOptions,
  isGitCommand,
  type OptionStep,
  programName,
  sameSubcommand,
  subcommandIndex,
} from "../../src/core/program_options.ts";

test("programName() leaves out folder, case and suffix", () => {
  const rows = ["git", "/usr/bin/git", "./GIT.EXE", "a/b/c", "git.exe.x", "gitexe", "x/", ""];
  assertEquals(rows.map(programName), ["git", "git", "git", "c", "git.exe.x", "gitexe", "", ""]);
});

describe("globalOption() before the subcommand, and after it", () => {
  const rows: readonly (readonly [program: string, word: string, before?: OptionStep, after?: OptionStep])[] =
    [
      ["git", "-C", "with_value"],
      ["git", "-Cx", "alone"],
      ["git", "-p", "alone"],
      ["git", "--git-dir", "with_value"],
      ["git", "--git-dir=x", "alone"],
      ["git", "--git-dir=x=y", "alone"],
      ["git", "--no-pager", "alone"],
      ["git", "--new-one", "unsure"],
      ["git", "--new-one=x", "alone"],
      ["git", "-z", "unsure"],
      ["git", "--", "alone"],
      ["git", "-"],
      ["git", "push"],
      ["git", "+x"],
      ["kubectl", "-n", "with_value", "with_value"],
      ["kubectl", "-nprod", "alone", "alone"],
      ["kubectl", "-nprod=x", "alone", "alone"],
      ["kubectl", "--context", "with_value", "with_value"],
      ["kubectl", "--context=a=b", "alone", "alone"],
      ["kubectl", "--contexts", "unsure"],
      ["kubectl", "--disable-compression", "alone", "alone"],
      ["kubectl", "--disable-compression=x", "alone", "alone"],
      ["kubectl", "--new-one", "unsure"],
      ["kubectl", "-"],
      ["kubectl", "get"],
      ["npm", "-w", "with_value", "with_value"],
      ["npm", "-g", "alone", "alone"],
      ["gh", "-R", "with_value", "with_value"],
      ["gh", "--x", "unsure"],
      ["terraform", "-chdir", "with_value"],
      ["terraform", "-chdir=x", "alone"],
      ["docker compose", "-f", "with_value"],
      ["cargo", "+nightly", "alone"],
      ["cargo", "build"],
      ["cargo", "-q", "alone"],
      ["make", "-C"],
      ["toString", "-C"],
    ];
  for (const [program, word, before, after] of rows) {
    test(`${program} ${word}`, () =>
      assertEquals([globalOption(program, word, true), globalOption(program, word, false)], [before, after]));
  }
});

test("hasGlobalOptions() also of what stands in two words", () => {
  const rows = ["git", "docker compose", "docker ps", "make", "toString"];
  assertEquals(rows.map(hasGlobalOptions), [true, true, false, false, false]);
});

test("subcommandIndex() steps over options and their values", () => {
  const rows: readonly (readonly [text: string, index: number])[] = [
    ["git push", 1],
    ["git", 1],
    ["git -C x push", 3],
    ["git -C", 2],
    ["git --no-pager push", 2],
    ["git --new-one push", 2],
    ["git -p -C x -c a=b log -p", 6],
    ["/usr/bin/git -C x push", 3],
    ["make -C x all", 1],
    ["cargo +nightly build", 2],
  ];
  for (const [text, index] of rows) assertEquals([text, subcommandIndex(text.split(" "))], [text, index]);
  assertEquals(subcommandIndex([]), 0);
});

test("sameSubcommand() knows other names, and beginnings for npm", () => {
  const rows: readonly (readonly [program: string, word: string, wanted: string, same: boolean])[] = [
    ["git", "push", "push", true],
    ["git", "send-pack", "push", true],
    ["git", "pull", "merge", true],
    ["git", "pull", "rebase", true],
    ["git", "merge", "pull", false],
    ["git", "send-pack", "fetch", false],
    ["git", "pus", "push", false],
    ["npm", "i", "install", true],
    ["npm", "ins", "install", true],
    ["npm", "pub", "publish", true],
    ["npm", "pu", "publish", false],
    ["npm", "publishx", "publish", false],
    ["npm", "pack", "publish", false],
    ["cargo", "b", "build", true],
    ["cargo", "bui", "build", false],
    ["make", "ins", "install", false],
    ["git", "toString", "push", false],
    ["toString", "a", "b", false],
  ];
  for (const [program, word, wanted, same] of rows) {
    assertEquals([program, word, wanted, sameSubcommand(program, word, wanted)], [
      program,
      word,
      wanted,
      same,
    ]);
  }
});

test("isGitCommand() is about what git ships", () => {
  assertEquals(["push", "write-tree", "up", "toString", ""].map(isGitCommand), [
    true,
    true,
    false,
    false,
    false,
  ]);
});
