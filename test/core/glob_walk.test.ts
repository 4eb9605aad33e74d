import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import fc from "fast-check";
import { absoluteGlob, globSource } from "../../src/core/glob.ts";
import { levelMatches, walkGlob } from "../../src/core/glob_walk.ts";
import { lazyPattern } from "../../src/load/pattern.ts";
import { tries } from "./decide_generators.ts";

const base = { root: "/ws", home: "/home/u" };

describe("walkGlob()", () => {
  const rows: readonly (readonly [glob: string, path: string, why: string | undefined, followed: number])[] =
    [
      ["src/**", "/ws/src/a/b.ts", undefined, 1],
      ["src/**", "/ws/test/a.ts", "segment 1 is `src`, the path has `test`", 0],
      ["src/lib/*", "/ws/src/app/a.ts", "segment 2 is `lib`, the path has `app`", 1],
      ["src/*", "/ws/src/app/a.ts", "the rule ends after 2 segments, the path goes on with `a.ts`", 2],
      ["src/**/*.ts", "/ws/src/app/a.js", "segment 3 is `*.ts`, the path ends in `a.js`", 1],
      ["src/app", "/ws/src", "segment 2 is `app`, the path ends before it", 1],
      ["{src,test}/*.ts", "/ws/test/a.js", "segment 2 is `*.ts`, the path has `a.js`", 1],
      ["~/notes/*", "/home/u/docs/a", "segment 3 is `notes`, the path has `docs`", 2],
      ["/etc/hosts", "/etc/passwd", "segment 2 is `hosts`, the path has `passwd`", 1],
      ["/**/.env", "/ws/src/a", "segment 2 is `.env`, the path ends in `a`", 0],
      ["/**", "/", undefined, 1],
      ["a/**/", "/ws/a", "the glob cannot be read", 0],
      ["{a/b,a}", "/ws/a/b", undefined, 2],
      ["{./a,b}", "/ws/a", undefined, 1],
      ["{src/lib,test}/x", "/ws/src/lib/y", "segment 3 is `x`, the path has `y`", 2],
      ["{a/x,a/y/z}", "/ws/a/q", "segment 2 is `x`, the path has `q`", 1],
      ["{a/y/z,a/x}", "/ws/a/q", "segment 2 is `x`, the path has `q`", 1],
      ["{a/x,a/y}", "/ws/a/q", "segment 2 is `y`, the path has `q`", 1],
      ["**/a/b", "/ws/a/x", "segment 3 is `b`, the path has `x`", 1],
      ["**/a/b", "/ws/a/x/a/y", "segment 3 is `b`, the path has `x`", 1],
      ["/**/x", "/", "segment 2 is `x`, the path ends in `/`", 0],
      ["/work", "/work/app", "the rule ends after 1 segments, the path goes on with `app`", 1],
    ];
  const inFolders: typeof rows = [
    ["a/x", "/work/app/a/y", "segment 2 is `x`, the path has `y`", 1],
    ["/work/other/*", "/work/b", "segment 2 is `other`, the path has `b`", 1],
    ["/work/app", "/work/b", "segment 2 is `app`, the path has `b`", 1],
    ["/work", "/work/app/a", "the rule ends after 1 segments, the path goes on with `app`", 1],
  ];
  const all = [
    ...rows.map((row) => [...row, base] as const),
    ...inFolders.map((row) => [...row, { root: "/work/app", home: "/home/u" }] as const),
  ];
  for (const [glob, path, why, followed, at] of all) {
    test(`${glob} and ${path} in ${at.root}`, () => {
      const walk = walkGlob(glob, path, at);
      assertEquals([walk.why, walk.followed], [why, followed]);
    });
  }

  const name = fc.constantFrom("a", "b", "ab", "abb", ".env", "a.ts", "ws", "[", "*");
  const level = fc.constantFrom(
    "a",
    "b",
    "*",
    "**",
    "a*",
    "*b",
    "?",
    "[a-b]",
    "[!a]",
    "*.ts",
    "{a,b}",
    "\\*",
    "\\[",
  );

  test("a path follows a glob to its end just when the glob's pattern matches it", () => {
    fc.assert(
      fc.property(
        fc.array(level, { minLength: 1, maxLength: 4 }),
        fc.array(name, { maxLength: 4 }),
        (levels, names) => {
          const glob = `/${levels.join("/")}`;
          const path = `/${names.join("/")}`;
          const made = absoluteGlob(glob, base);
          if ("error" in made) return;
          const matches = lazyPattern(globSource(made.glob)).test(path);
          assertEquals(walkGlob(glob, path, base).why === undefined, matches, `${glob} ${path}`);
        },
      ),
      tries(3_000),
    );
  }, 60_000);
});

describe("levelMatches()", () => {
  const rows: readonly (readonly [level: string, matching: readonly string[], others: readonly string[]])[] =
    [
      ["a", ["a"], ["", "b", "aa"]],
      ["*", ["a", "ab", ".a"], [""]],
      ["a*", ["a", "ab"], ["", "ba"]],
      ["?", ["a", "é", "😀"], ["", "ab"]],
      ["a?c", ["abc"], ["ac", "abbc"]],
      ["\\*", ["*"], ["a", "\\*", ""]],
      ["a\\", ["a\\"], ["a", "a\\\\"]],
      ["[a-c]x", ["ax", "bx", "cx"], ["dx", "-x", "`x", "x", "\0x"]],
      ["x[ab]y", ["xay", "xby"], ["xcy", "xaby", "xy"]],
      ["[ac-]", ["a", "c", "-"], ["b", "d"]],
      ["[a\\-c]", ["a", "-", "c"], ["b", "\\"]],
      ["[-c]", ["-", "c"], ["a"]],
      ["[!a]", ["b", "!"], ["a", ""]],
      ["[^a]", ["b", "^"], ["a"]],
      ["[a!]", ["a", "!"], ["b"]],
      ["[a^]", ["a", "^"], ["b"]],
      ["[!b-c]", ["a", "d", "-"], ["b", "c"]],
      ["[a-cx-z]", ["a", "y", "z"], ["d", "w", "-"]],
      ["[a-c-e]", ["b", "-", "e"], ["d"]],
      ["[😀]a", ["😀a"], ["😀", "a"]],
    ];
  for (const [level, matching, others] of rows) {
    test(`${level} stands for ${matching.join(" ")}`, () => {
      assertEquals(matching.filter((n) => !levelMatches(level, n)), []);
      assertEquals(others.filter((n) => levelMatches(level, n)), []);
      const made = absoluteGlob(`/${level}`, base);
      if ("error" in made) return;
      const pattern = lazyPattern(globSource(made.glob));
      assertEquals([...matching, ...others].filter((n) => n !== "" && pattern.test(`/${n}`)), matching);
    });
  }

  test("takes no longer for many stars than for one", () => {
    assertEquals(levelMatches("*a".repeat(60) + "b", "a".repeat(250)), false);
  });
});
