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
    ];
  for (const [glob, path, why, followed] of rows) {
    test(`${glob} and ${path}`, () => {
      const walk = walkGlob(glob, path, base);
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
  test("takes no longer for many stars than for one", () => {
    assertEquals(levelMatches("*a".repeat(60) + "b", "a".repeat(250)), false);
  });
});
