import { test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { parsePlainYaml } from "../../src/load/plain_yaml.ts";
import { parseYaml } from "../../src/load/yaml.ts";

function plain(text: string): unknown {
  return parsePlainYaml(text, "f")?.value;
}

const read = [
  ["texts", "name: a b\nversion: 1.2.3\n", { name: "a b", version: "1.2.3" }],
  ["quotes", "a: \"x: y\"\nb: 'p # q'\n", undefined],
  ["quotes without a hash", 'a: "x: y"\nb: \'p, q\'\nc: ""\n', { a: "x: y", b: "p, q", c: "" }],
  ["truth values", "a: true\nb: false\n", { a: true, b: false }],
  ["colon inside a word", "a: see http://x:80/y\n", { a: "see http://x:80/y" }],
  ["lists", 'a:\n  - x\n  - "y z"\nb:\n- p\nc: [q, r]\n', { a: ["x", "y z"], b: ["p"], c: ["q", "r"] }],
  ["maps", "t:\n  p:\n    - x y\n  q: z\nu: v\n", { t: { p: ["x y"], q: "z" }, u: "v" }],
  ["blank lines", "\n\na: x\n\n  \nb: y\n", { a: "x", b: "y" }],
] as const;

for (const [name, text, expected] of read) {
  test(`parsePlainYaml() reads ${name}`, () => assertEquals(plain(text), expected));
}

const left = [
  ["a comment", "a: x # y\n"],
  ["a number", "a: 1\n"],
  ["a null", "a: null\n"],
  ["an empty value", "a:\nb: c\n"],
  ["a colon in prose", "a: b: c\n"],
  ["a colon at the end", "a: b:\n"],
  ["a continuation", "a: b\n  c\n"],
  ["a continuation in a list", "a:\n  - b\n    c\n"],
  ["a block text", "a: |\n  b\n"],
  ["an anchor", "a: &b c\n"],
  ["a tag", "a: !b c\n"],
  ["a key that is there twice", "a: b\na: c\n"],
  ["the key of a prototype", "__proto__: a\n"],
  ["an escape", 'a: "b\\n"\n'],
  ["a tab", "a:\tb\n"],
  ["a return", "a: b\r\n"],
  ["less indentation than the first line", "  a: b\nc: d\n"],
  ["a list of maps", "a:\n  - b: c\n"],
  ["a document end", "a: b\n...\n"],
  ["nothing", ""],
] as const;

for (const [name, text] of left) {
  test(`parsePlainYaml() leaves ${name} to the library`, () => {
    const found = plain(text);
    // Nothing at all is an empty map by hand and null to the library: both hold no field.
    assertEquals(found, text === "" ? {} : undefined);
  });
}

test("parsePlainYaml() gives positions and spellings as the library does", () => {
  const text = "\nname: a\nt:\n  p:\n    - x\nflag: true\n";
  const [hand, library] = [parsePlainYaml(text, "f"), parseYaml(text, "f", 1000)];
  assert(hand !== undefined && library.ok);
  for (const path of [["name"], ["t", "p", 0], ["flag"], ["missing"], []]) {
    assertEquals(hand.at(path), library.value.at(path));
    assertEquals(hand.keyAt(path), library.value.keyAt(path));
    assertEquals(hand.scalar(path), library.value.scalar(path));
  }
});

// Pieces that meet in front matter, good and bad, in any order.
const piece = fc.constantFrom(
  ...[
    "name",
    "a",
    "-",
    "- ",
    " ",
    "  ",
    "\n",
    "\n  ",
    "\n- ",
    "\n  - ",
    ": ",
    ":",
    "x",
    "y z",
    '"',
    "'",
    "[",
    "]",
    ", ",
  ],
  ...[
    "true",
    "null",
    "1",
    "1.2.3",
    "#",
    " #",
    "*",
    "&b",
    "!",
    "|",
    ">",
    "%",
    "@",
    "`",
    "{",
    "}",
    "?",
    "? ",
    "---",
    "...",
  ],
  ...[
    "é",
    "中文",
    "\t",
    "\r",
    "\u0007",
    "\u00a0",
    "\ufeff",
    "\\",
    "~",
    "=",
    "<<",
    "(git log:*)",
    "http://x:1",
  ],
);

test("parsePlainYaml() never reads anything otherwise than the library", () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 24 }), (pieces) => {
      const text = pieces.join("");
      const found = plain(text);
      if (found === undefined || Object.keys(found as object).length === 0) return;
      const library = parseYaml(text, "f", 10000);
      assert(library.ok, JSON.stringify({ text, problems: library.problems }));
      assertEquals(JSON.stringify(found), JSON.stringify(library.value.value), JSON.stringify(text));
    }),
    { numRuns: 3000, seed: 7 },
  );
});

const line = fc.tuple(
  fc.constantFrom("", "", "  ", "    ", "- ", "  - "),
  fc.constantFrom("name", "a", "b", "t", ""),
  fc.constantFrom(": ", ":", "", ":  "),
  fc.constantFrom(
    "x",
    "y z",
    "[p, q]",
    '"r"',
    "'s'",
    "true",
    "1.2.3",
    "(k)",
    "Bash(git log:*)",
    "",
    "null",
    "x:y",
    "x, [y]",
  ),
  fc.constantFrom("", "", " "),
).map((parts) => parts.join(""));

test("parsePlainYaml() agrees with the library on whole lines", () => {
  let compared = 0;
  fc.assert(
    fc.property(fc.array(line, { minLength: 1, maxLength: 6 }), (lines) => {
      const text = lines.join("\n");
      const found = plain(text);
      if (found === undefined || Object.keys(found as object).length === 0) return;
      compared++;
      const library = parseYaml(text, "f", 10000);
      assert(library.ok, JSON.stringify({ text, problems: library.problems }));
      assertEquals(JSON.stringify(found), JSON.stringify(library.value.value), JSON.stringify(text));
    }),
    { numRuns: 4000, seed: 11 },
  );
  assert(compared > 50, `only ${compared} texts were compared`);
});
