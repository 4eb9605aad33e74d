import { test } from "bun:test";
import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { RE2JS } from "re2js";
import { compilePattern } from "../../src/load/pattern.ts";
import { requiredText } from "../../src/core/required_text.ts";

test("requiredText() is in every text that the pattern matches", () => {
  const literal = fc.constantFrom("ab", "aB", "ks", "Sk", "中", "- ", "b");
  const other = fc.constantFrom(
    ...[
      "\\.",
      "\\w",
      "\\b",
      "[ks]",
      "[^a]",
      "(a|b)",
      "(?:ks)",
      "é",
      "?",
      "*",
      "+",
      "??",
      "{2}",
      "{0,2}",
      "|",
      "^",
      "$",
    ],
    ...["{", "]", "\\d", "\\", "(", ")", "(?i)", "."],
  );
  const part = fc.oneof({ weight: 2, arbitrary: literal }, { weight: 1, arbitrary: other });
  const letter = fc.constantFrom(
    "ab",
    "AB",
    "ks",
    "KS",
    "\u212aſ",
    "中",
    "- ",
    "b",
    "a",
    "é",
    "É",
    ".",
    "1",
    "İ",
  );
  let matched = 0;
  fc.assert(
    fc.property(
      fc.array(part, { minLength: 1, maxLength: 5 }),
      fc.array(letter, { maxLength: 10 }),
      (parts, letters) => {
        const source = parts.join("");
        const text = letters.join("");
        let plain: RE2JS;
        try {
          plain = RE2JS.compile(source, RE2JS.CASE_INSENSITIVE);
        } catch {
          return;
        }
        const literal = requiredText(source, { ignoreCase: true });
        const matcher = plain.matcher(text);
        const expected = matcher.find() ? [matcher.start(), matcher.end()] as const : undefined;
        if (expected !== undefined && literal.length >= 2) matched++;
        const pattern = compilePattern(source, { ignoreCase: true });
        assertEquals(
          pattern.find(text),
          expected,
          JSON.stringify({ source, text, literal: literal }),
        );
        assertEquals(pattern.test(text), expected !== undefined);
      },
    ),
    { numRuns: 6000, seed: 3 },
  );
  assert(matched > 300, `only ${matched} matches were looked at`);
});

test("compilePattern() refuses what is not linear", () => {
  for (const source of ["a(?=b)", "(a)\\1", "(?<!x)y", "("]) {
    assertThrows(() => compilePattern(source, { ignoreCase: true }), Error);
  }
});

test("where a match is, which is slow, is looked for only in a text that holds one", () => {
  let sought = 0;
  const matcher = RE2JS.prototype.matcher;
  RE2JS.prototype.matcher = function (text) {
    sought++;
    return matcher.call(this, text);
  };
  try {
    const pattern = compilePattern("(a+)+$", { ignoreCase: true });
    const long = "a".repeat(50_000);
    assertEquals([pattern.find(`${long}!`), sought], [undefined, 0]);
    assertEquals([pattern.find(long), sought], [[0, 50_000], 1]);
  } finally {
    RE2JS.prototype.matcher = matcher;
  }
});
