import { describe, test } from "bun:test";
import { assertEquals } from "@std/assert";
import { foldCase, requiredText } from "../../src/core/required_text.ts";

const exact: readonly (readonly [source: string, text: string])[] = [
  ["hello", "hello"],
  ["hel+o", "hel"],
  ["colou?r", "colo"],
  ["ab*c", "a"],
  ["foo\\.bar", "foo.bar"],
  ["\\bword\\b", "word"],
  ["x{2,3}yz", "yz"],
  ["a{b", "a"],
  ["a{(}foo)*", "a"],
  ["[abc]def", "def"],
  ["[]a]xy", "xy"],
  ["[[:alpha:]]xy", "xy"],
  ["(abc)?de", "de"],
  ["(abc)de", "de"],
  ["a|b", ""],
  ["(?i)abc", ""],
  ["\\Qa*\\E", ""],
  ["\\x41bc", ""],
  ["\\d+", ""],
  ["a😀*b", "a"],
  ["", ""],
];
const folded: readonly (readonly [source: string, text: string])[] = [
  ["review (this )?pr", "review "],
  ["(?i)Review", "review"],
  ["deploy to (staging|prod)", "deploy to "],
  ["合并前检查", "合并前检查"],
  ["colou?r code", "r code"],
  ["ab+cde", "cde"],
  ["a{2,3}bcd", "bcd"],
  ["\\bticket-\\d+\\.txt", "ticket-"],
  ["[abc]{2}xyz", "xyz"],
  ["a|b", ""],
  ["(abc|def)", ""],
  ["\\x41bc", ""],
  ["(?s)abc", ""],
  ["x", "x"],
  ["ñandú", "and"],
];

describe("requiredText() takes only what every match holds", () => {
  for (const [source, expected] of exact) {
    test(`of ${source}`, () => assertEquals(requiredText(source, { ignoreCase: false }), expected));
  }
  for (const [source, expected] of folded) {
    test(`of ${source} without case`, () =>
      assertEquals(requiredText(source, { ignoreCase: true }), expected));
  }
});

test("foldCase() meets every letter that folds to an ASCII one", () => {
  assertEquals(foldCase("KELVIN \u212aey Meſſage"), "kelvin key message");
});
