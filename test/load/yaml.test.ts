import { test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { parseYaml } from "../../src/load/yaml.ts";

function codes(text: string): readonly string[] {
  const loaded = parseYaml(text, "f", 300_000);
  return loaded.ok ? [] : loaded.problems.map((p) => p.code);
}

const refused = [
  ["an alias", "a: &x 1\nb: *x\n", ["yaml-alias", "yaml-alias"]],
  ["a tag", "a: !x 1\n", ["yaml-tag", "yaml-tag"]],
  ["a tag for bytes", "a: !!binary aGk=\n", ["yaml-tag"]],
  ["a key that is there twice", "a: 1\na: 2\n", ["duplicate-key"]],
  ["a key that is there as a number and as a text", "1: a\n'1': b\n", ["duplicate-key"]],
  ["a key that is there twice in a flow mapping", "a: {b: 1, c: 2, b: 3}\n", ["duplicate-key"]],
  ["thousands of equal keys", "a: 1\n".repeat(20_000), Array(19_999).fill("duplicate-key")],
  ["a second document", "a: 1\n---\nb: 2\n", ["yaml-documents"]],
  ["a list as a key", "[a, b]: c\n", ["invalid-yaml"]],
  ["thousands of brackets", `a: ${"[".repeat(20_000)}`, ["invalid-yaml"]],
  ["thousands of dashes", `a:\n${"- ".repeat(20_000)}x`, ["invalid-yaml"]],
  ["thousands of question marks", `${"? ".repeat(20_000)}x`, ["invalid-yaml"]],
] as const;

for (const [name, text, expected] of refused) {
  test(`parseYaml() refuses ${name}`, () => assertEquals(codes(text), [...expected]));
}

test("parseYaml() refuses a text over its cap and names both sizes", () => {
  assertEquals(parseYaml("a: bcd\n", "f", 5), {
    ok: false,
    problems: [{
      code: "too-large",
      severity: "error",
      message: "the file has 7 bytes",
      at: { file: "f", line: 1, col: 1 },
      expected: "at most 5",
    }],
  });
});

test("parseYaml() knows how a value is written", () => {
  const loaded = parseYaml('a: 1e3\nb: x # y\nc: "z" # y\nd: [1]\n', "f", 1000);
  assert(loaded.ok);
  assertEquals([["a"], ["b"], ["c"], ["d"], ["d", 0], ["e"]].map((path) => loaded.value.scalar(path)), [
    { source: "1e3", cut: false },
    { source: "x", cut: true },
    { source: "z", cut: false },
    undefined,
    { source: "1", cut: false },
    undefined,
  ]);
});

test("parseYaml() knows the place of each of thousands of keys", () => {
  const loaded = parseYaml(Array.from({ length: 20_000 }, (_, i) => `k${i}: 1\n`).join(""), "f", 300_000);
  assert(loaded.ok);
  const wrong = Array.from({ length: 20_000 }, (_, i) => i).filter((i) =>
    loaded.value.keyAt([`k${i}`]).line !== i + 1 || loaded.value.at([`k${i}`]).line !== i + 1
  );
  assertEquals(wrong, []);
});

// What is nested by thousands on a line, or on lines that are each further in, took minutes once.
test("parseYaml() ends soon on a text of 16 KiB that only opens, and refuses it", () => {
  const openers = [
    "[",
    "{",
    "- ",
    "? ",
    ": ",
    "a: ",
    "'a': ",
    "- a: ",
    "? a: ",
    "{a: ",
    "a:\n",
    "?\n",
    "&a ",
    "!a ",
  ];
  const refused = openers.filter((open) =>
    !parseYaml(`m: ${open.repeat(16_000 / open.length)}x`, "f", 20_000).ok
  );
  assertEquals(refused, openers);
});

test("parseYaml() refuses lines that stand further in a hundred times", () => {
  const stairs = (levels: number, mark: string) =>
    Array.from({ length: levels }, (_, i) => `${" ".repeat(i)}${mark}`).join("\n");
  assertEquals(
    [stairs(90, "a:"), stairs(150, "a:"), stairs(90, "-"), stairs(150, "-")].map((text) =>
      parseYaml(text, "f", 20_000).ok
    ),
    [
      true,
      false,
      true,
      false,
    ],
  );
});

test("parseYaml() refuses anchors and tags of mappings and lists, used or not", () => {
  const codes = ["a: &x {k: 1}", "a: &x [1]", "a: !x {k: 1}", "a: !x [1]", "&x a: 1", "a: !!set {k: 1}"].map(
    (text) => {
      const read = parseYaml(`${text}\n`, "f", 1000);
      return read.ok ? "" : read.problems[0]?.code;
    },
  );
  assertEquals(codes, ["yaml-alias", "yaml-alias", "yaml-tag", "yaml-tag", "yaml-alias", "yaml-tag"]);
});
