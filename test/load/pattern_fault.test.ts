// Every construct that other engines take and this one does not is named, with what to write instead.
import { assertEquals, assertThrows } from "@std/assert";
import { describe, test } from "bun:test";
import { patternFault } from "../../src/core/pattern_fault.ts";
import { compilePattern } from "../../src/load/pattern.ts";

const linear = "it is not supported, because every text is matched in linear time (RE2)";
const rows: readonly (readonly [source: string, says: string, hint: string])[] = [
  ["a(?=b)", `uses lookahead, \`(?=\`: ${linear}`, "write what follows into the pattern itself"],
  ["(?!b)a", `uses negative lookahead, \`(?!\`: ${linear}`, "write a pattern for what may stand there"],
  [
    "(?<=a)b",
    `uses lookbehind, \`(?<=\`: ${linear}`,
    "write what comes before into the pattern itself, or use `\\b`",
  ],
  [
    "x(?<!a)b",
    `uses negative lookbehind, \`(?<!\`: ${linear}`,
    "write what may come before into the pattern itself, or use `\\b`",
  ],
  ["(a)\\1", `uses a backreference, \`\\1\`: ${linear}`, "write out what may be repeated"],
  ["(?<n>a)\\k<n>", `uses a backreference, \`\\k\`: ${linear}`, "write out what may be repeated"],
  ["(?P<n>a)(?P=n)", `uses a backreference, \`(?P=\`: ${linear}`, "write out what may be repeated"],
  ["(?>a)b", `uses an atomic group, \`(?>\`: ${linear}`, "write `(?:` in its place"],
  ["(a)(?1)", `uses a call of another group, \`(?1\`: ${linear}`, "write that group out"],
  ["(a)?(?(1)b)", `uses a condition, \`(?(\`: ${linear}`, "write both cases with `|`"],
  ["(?#c)a", `uses a comment, \`(?#\`: ${linear}`, "remove it"],
  ["(?x)a", "has the group `(?x`, which is not known", "write `(?:`, `(?i)` or `(?P<name>`"],
  ["a++", "repeats a repetition with `++`", "put the inner one into `(?:` and `)`"],
  [
    "*a",
    "repeats nothing with `*`",
    "write before it what is to be repeated, or a `\\` before it for the character",
  ],
  [
    "*",
    "repeats nothing with `*`",
    "write before it what is to be repeated, or a `\\` before it for the character",
  ],
  ["a{2,1}", "has the repetition `{2,1}`", "at most 1000 times, and the lesser number first"],
  ["(a", "opens a group that is not closed", "close it with `)`, or write `\\(` for the character"],
  ["a)", "closes a group that is not open", "remove the `)`, or write `\\)` for the character"],
  [
    "[a",
    "opens a set of characters that is not closed",
    "close it with `]`, or write `\\[` for the character",
  ],
  [
    "[z-a]",
    "has the set or range of characters `z-a`",
    "write the lesser end of a range first, or the name of a set as in `[[:alpha:]]` and `\\p{Greek}`",
  ],
  ["\\q", "has `\\q`, which stands for nothing", "remove the `\\`"],
  [
    "\\u0041",
    "has `\\u`, which stands for nothing",
    "write the character itself, or `\\x{…}` with its number",
  ],
  ["a\\Z", "has `\\Z`, which stands for nothing", "write `\\z` for the end of the text"],
  ["a\\", "ends with a single `\\`", "write `\\\\` for the character"],
  ["(?P<n>a)(?P<n>b)", "names two groups `n`", "give each its own name"],
];

describe("faults of regular expressions", () => {
  for (const [source, says, hint] of rows) {
    test(source, () => {
      const thrown = assertThrows(() => compilePattern(source, { ignoreCase: true }));
      assertEquals(patternFault(source, thrown), { says, hint });
    });
  }

  test("what nobody foresaw is said in the words of whoever threw it", () => {
    assertEquals(patternFault("a", new Error("odd")), {
      says: "is not understood: odd",
      hint: "see `writ help policy`",
    });
  });
});
