import { assertEquals, assertThrows } from "@std/assert";
import { describe, test } from "bun:test";
import fc from "fast-check";
import { absoluteGlob, escapeGlob, expandBraces, globSource, unescapeGlob } from "../../src/core/glob.ts";
import { lazyPattern } from "../../src/load/pattern.ts";

const base = { root: "/ws", home: "/home/u" };

function matches(glob: string, path: string, at = base): boolean {
  const made = absoluteGlob(glob, at);
  if ("error" in made) throw new Error(`${glob}: ${made.error}`);
  const hit = lazyPattern(globSource(made.glob)).test(path);
  if (hit && !path.startsWith(made.prefix)) {
    throw new Error(`${glob}: prefix ${made.prefix} is wrong for ${path}`);
  }
  if (hit && !path.includes(made.needle)) throw new Error(`${glob}: needle ${made.needle} is not in ${path}`);
  return hit;
}

describe("globs over paths", () => {
  const rows: readonly (readonly [glob: string, yes: readonly string[], no: readonly string[]])[] = [
    ["src/**", ["/ws/src", "/ws/src/a.ts", "/ws/src/a/b/.c"], ["/ws/srcx", "/ws", "/ws/a/src/b", "/src/a"]],
    ["src/*", ["/ws/src/a", "/ws/src/.env"], ["/ws/src", "/ws/src/real/b.ts"]],
    ["src/*.ts", ["/ws/src/a.ts", "/ws/src/.ts"], ["/ws/src/a.tsx", "/ws/src/x/a.ts", "/ws/src/a/ts"]],
    ["/ws/**", ["/ws", "/ws/a/b"], ["/ws-evil/secret", "/w", "/"]],
    ["**", ["/ws", "/ws/a", "/ws/a/b/c"], ["/etc/passwd", "/home/u/.bashrc"]],
    ["/**", ["/", "/etc", "/etc/passwd"], []],
    ["/", ["/"], ["/a"]],
    ["**/.env*", ["/ws/.env", "/ws/packages/a/.env.local"], ["/ws/env", "/ws/.env/x", "/.env"]],
    ["/**/.env", ["/.env", "/ws/.env", "/a/b/.env"], ["/a/.envx"]],
    ["**/x", ["/ws/x", "/ws/a/b/x"], ["/x", "/ws/ax"]],
    ["a/**/b", ["/ws/a/b", "/ws/a/x/b", "/ws/a/x/y/b"], ["/ws/ab", "/ws/a/bb"]],
    ["a/**/**/b", ["/ws/a/b", "/ws/a/x/y/b"], ["/ws/a"]],
    [".env", ["/ws/.env"], ["/ws/xenv", "/ws/a/.env"]],
    ["./.env", ["/ws/.env"], ["/ws/x/.env"]],
    ["src/../.env", ["/ws/.env"], ["/ws/src/.env"]],
    ["../other/*", ["/other/a"], ["/ws/other/a"]],
    ["~/.ssh/**", ["/home/u/.ssh", "/home/u/.ssh/id_rsa"], ["/ws/~/.ssh/id_rsa", "/home/x/.ssh/id_rsa"]],
    ["~", ["/home/u"], ["/home/u/a", "/ws/~"]],
    ["\\~x", ["/ws/~x"], ["/home/u"]],
    ["a?c", ["/ws/abc", "/ws/a.c", "/ws/a中c", "/ws/a😀c"], ["/ws/ac", "/ws/a/c", "/ws/abbc"]],
    ["[abc]", ["/ws/a", "/ws/c"], ["/ws/d", "/ws/ab"]],
    ["[a-c]x", ["/ws/bx"], ["/ws/dx", "/ws/-x"]],
    ["[!a-c]x", ["/ws/dx", "/ws/-x"], ["/ws/ax", "/ws/x", "/wsx"]],
    ["[^a]", ["/ws/b"], ["/ws/a", "/ws/"]],
    ["[]]", ["/ws/]"], ["/ws/["]],
    ["[!]]", ["/ws/a"], ["/ws/]"]],
    ["[a-]", ["/ws/a", "/ws/-"], ["/ws/b"]],
    ["[\\]a]", ["/ws/]", "/ws/a"], ["/ws/\\"]],
    ["a[+-9]b", ["/ws/a+b", "/ws/a0b"], ["/ws/a/b"]],
    ["a[.]b", ["/ws/a.b"], ["/ws/axb"]],
    ["[中-龥]", ["/ws/文"], ["/ws/a"]],
    ["*.{ts,js}", ["/ws/a.ts", "/ws/.js"], ["/ws/a.tsx", "/ws/a.{ts,js}"]],
    ["{src,test}/**", ["/ws/src", "/ws/test/a/b"], ["/ws/docs/a"]],
    ["{a/b,c}/d", ["/ws/a/b/d", "/ws/c/d"], ["/ws/a/d"]],
    ["{a,{b,c}d}x", ["/ws/ax", "/ws/bdx", "/ws/cdx"], ["/ws/bx"]],
    ["a{,.bak}", ["/ws/a", "/ws/a.bak"], ["/ws/a.b"]],
    ["app/\\[id\\]/page.tsx", ["/ws/app/[id]/page.tsx"], ["/ws/app/i/page.tsx"]],
    ["a\\*b", ["/ws/a*b"], ["/ws/axb", "/ws/a\\*b"]],
    ["a\\\\b", ["/ws/a\\b"], ["/ws/ab"]],
    ["a.b", ["/ws/a.b"], ["/ws/axb"]],
    ["a$^|b(c)", ["/ws/a$^|b(c)"], ["/ws/a"]],
    ["café.txt", ["/ws/café.txt"], ["/ws/cafe.txt"]],
    ["*", ["/ws/a", "/ws/a\nb", "/ws/.x"], ["/ws", "/ws/", "/ws/a/b"]],
    ["a//b", ["/ws/a/b"], []],
    ["文档/**", ["/ws/文档/一/二.md"], ["/ws/文/x"]],
    ["\\@(a)", ["/ws/@(a)"], ["/ws/a"]],
    ["\\{a/../b", ["/ws/b"], ["/ws/{a/b"]],
    ["[{]a", ["/ws/{a"], ["/ws/a"]],
    ["{./a,b}", ["/ws/a", "/ws/b"], ["/ws/./a"]],
    ["a\\**", ["/ws/a*", "/ws/a*x"], ["/ws/ax"]],
    ["[^]a]x", ["/ws/bx"], ["/ws/]x", "/ws/ax"]],
    ["{a\\},b}c", ["/ws/a}c", "/ws/bc"], ["/ws/a,bc"]],
    ["{a\\,b,c}", ["/ws/a,b", "/ws/c"], ["/ws/a", "/ws/b"]],
    ["{\\{a,b}c", ["/ws/{ac", "/ws/bc"], ["/ws/ac"]],
    ["[aa]", ["/ws/a"], ["/ws/-"]],
  ];
  for (const [glob, yes, no] of rows) {
    test(`\`${glob}\``, () => {
      assertEquals(yes.filter((path) => !matches(glob, path)), [], "should match");
      assertEquals(no.filter((path) => matches(glob, path)), [], "should not match");
    });
  }

  test("characters of root and home mean themselves", () => {
    const odd = { root: "/a[1]/{x,y}*", home: "/h?" };
    assertEquals(matches("b/*", "/a[1]/{x,y}*/b/c", odd), true);
    assertEquals(matches("b/*", "/a1/x/b/c", odd), false);
    assertEquals(matches("~/x", "/h?/x", odd), true);
    assertEquals(matches("~/x", "/hh/x", odd), false);
  });
});

describe("absoluteGlob()", () => {
  const rows:
    readonly (readonly [string, { glob: string; literal: boolean; prefix: string; needle: string }])[] = [
      [".writ/policy.yaml", {
        glob: "/ws/.writ/policy.yaml",
        literal: true,
        prefix: "/ws/.writ/policy.yaml",
        needle: "policy.yaml",
      }],
      ["a\\*b", { glob: "/ws/a\\*b", literal: true, prefix: "/ws/a*b", needle: "a*b" }],
      ["src/**/*.ts", { glob: "/ws/src/**/*.ts", literal: false, prefix: "/ws/src", needle: ".ts" }],
      ["src/a*", { glob: "/ws/src/a*", literal: false, prefix: "/ws/src", needle: "src" }],
      ["*.md", { glob: "/ws/*.md", literal: false, prefix: "/ws", needle: ".md" }],
      ["/{etc,opt}/x", { glob: "/{etc,opt}/x", literal: false, prefix: "/", needle: "x" }],
      ["[a]b", { glob: "/ws/[a]b", literal: false, prefix: "/ws", needle: "ws" }],
      ["a\\\\*", { glob: "/ws/a\\\\*", literal: false, prefix: "/ws", needle: "a\\" }],
      ["{bcd,e}fgh", { glob: "/ws/{bcd,e}fgh", literal: false, prefix: "/ws", needle: "fgh" }],
      ["{a{b,c},d}efg", { glob: "/ws/{a{b,c},d}efg", literal: false, prefix: "/ws", needle: "efg" }],
      ["{a\\},b}efg", { glob: "/ws/{a\\},b}efg", literal: false, prefix: "/ws", needle: "efg" }],
      ["{\\{a,b}efg", { glob: "/ws/{\\{a,b}efg", literal: false, prefix: "/ws", needle: "efg" }],
      ["{abcd,e}fgh", { glob: "/ws/{abcd,e}fgh", literal: false, prefix: "/ws", needle: "fgh" }],
      ["*a]b", { glob: "/ws/*a]b", literal: false, prefix: "/ws", needle: "a]b" }],
      ["{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", {
        glob: "/ws/{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}",
        literal: false,
        prefix: "/ws",
        needle: "ws",
      }],
      ["~/.ssh", { glob: "/home/u/.ssh", literal: true, prefix: "/home/u/.ssh", needle: ".ssh" }],
    ];
  for (const [glob, expected] of rows) {
    test(`\`${glob}\``, () => assertEquals(absoluteGlob(glob, base), expected));
  }

  const refused: readonly (readonly [string, string])[] = [
    ["", "the glob is empty"],
    ["a\0b", "a path cannot hold a NUL"],
    ["!a", "a leading `!` does not negate; use `except`, or `\\!` for the character"],
    ["~root/.ssh", "`~` is only known as `~` or `~/…`; use `\\~` for the character"],
    ["src/", "a `/` at the end is not understood; use `/**` for a folder and what is below"],
    ["a+(b)", "extended patterns such as `@(a|b)` are not known; use `{a,b}`"],
    ["[a-bz-y]", "the range in `[a-bz-y]` runs backwards"],
    ["@(a|b)", "extended patterns such as `@(a|b)` are not known; use `{a,b}`"],
    ["a\\", "a `\\` at the end escapes nothing"],
    ["a**", "`**` must stand alone between slashes"],
    ["src/**.ts", "`**` must stand alone between slashes"],
    ["[ab", "`[` is not closed; use `\\[` for the character"],
    ["a[b/c]", "`[` is not closed; use `\\[` for the character"],
    ["[z-a]", "the range in `[z-a]` runs backwards"],
    ["[[:alpha:]]", "named classes such as `[:alpha:]` are not known; write the characters"],
    ["{a,b", "`{` is not closed"],
    ["a}b", "`}` without `{`"],
    ["${HOME}/x", "`{HOME}` holds no choice; write `{a,b}`, or `\\{` for the character"],
    ["a/*/../b", "`..` after a wildcard leads nowhere certain"],
    ["{a/../b,c}", "`..` inside braces leads nowhere certain"],
    ["{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", "braces stand for more than 256 globs"],
  ];
  for (const [glob, error] of refused) {
    test(`refuses \`${glob.replace("\0", "NUL")}\``, () => assertEquals(absoluteGlob(glob, base), { error }));
  }

  test("expandBraces() gives every choice, and takes what is escaped for itself", () => {
    const rows = ["{a,b}", "a{,b}c", "\\{a,b}", "[{]", "{a[,]b,c}", "}", "{a", "{a}"];
    assertEquals(
      rows.map((g) => {
        const made = expandBraces(g);
        return "error" in made ? "fault" : made.globs;
      }),
      [
        ["a", "b"],
        ["ac", "abc"],
        "fault",
        ["[{]"],
        ["a[", "]b", "c"],
        "fault",
        "fault",
        "fault",
      ],
    );
  });

  test("unescapeGlob() gives the characters behind backslashes", () => {
    assertEquals(["a\\*b", "a\\\\b", "a\\\nb", "a\\😀", "\\"].map(unescapeGlob), [
      "a*b",
      "a\\b",
      "a\nb",
      "a😀",
      "\\",
    ]);
  });

  test("globSource() throws on what absoluteGlob() would have refused", () => {
    assertThrows(() => globSource("/a**"), Error, "must stand alone");
  });
});

// A slow second reading of the same rules, level by level and character by character.
function slowly(glob: readonly string[], path: readonly string[]): boolean {
  const [first, ...rest] = glob;
  if (first === undefined) return path.length === 0;
  if (first === "**") return slowly(rest, path) || (path.length > 0 && slowly(glob, path.slice(1)));
  const [name, ...names] = path;
  return name !== undefined && levelFits([...first], [...name]) && slowly(rest, names);
}
function levelFits(glob: readonly string[], name: readonly string[]): boolean {
  const [first, ...rest] = glob;
  if (first === undefined) return name.length === 0;
  if (first === "*") return levelFits(rest, name) || (name.length > 0 && levelFits(glob, name.slice(1)));
  return name.length > 0 && (first === "?" || first === name[0]) && levelFits(rest, name.slice(1));
}

describe("properties", () => {
  const level = fc.array(fc.constantFrom("a", "b", ".", "*", "?"), { minLength: 1, maxLength: 4 })
    .map((cs) => cs.join("").replace(/\*+/g, "*")).filter((l) => l !== "." && l !== "..");
  const glob = fc.array(
    fc.oneof({ arbitrary: level, weight: 3 }, { arbitrary: fc.constant("**"), weight: 1 }),
    {
      minLength: 1,
      maxLength: 4,
    },
  );
  const name = fc.string({ unit: fc.constantFrom("a", "b", "."), minLength: 1, maxLength: 4 });
  const path = fc.array(name, { minLength: 1, maxLength: 5 });

  test("the translation agrees with a second implementation", () => {
    fc.assert(
      fc.property(glob, path, (g, p) => {
        assertEquals(matches(`/${g.join("/")}`, `/${p.join("/")}`), slowly(g, p));
      }),
      { numRuns: 2000 },
    );
  });

  test("an escaped name matches itself and nothing else", () => {
    const text = fc.string({ minLength: 1, maxLength: 8 }).filter((s) =>
      !/[/\0]/.test(s) && s !== "." && s !== ".."
    );
    fc.assert(fc.property(text, text, (a, b) => {
      assertEquals(unescapeGlob(escapeGlob(a)), a);
      assertEquals(matches(`/${escapeGlob(a)}`, `/${b}`), a === b);
      assertEquals(matches(`/${escapeGlob(a)}`, `/${a}`), true);
    }));
  });
});
