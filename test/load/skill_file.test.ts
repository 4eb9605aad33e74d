import { test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { frontMatterCap } from "../../src/load/front_matter.ts";
import { parseSkillFile } from "../../src/load/skill_file.ts";

function parse(text: string, folderName = "a") {
  return parseSkillFile(text, { file: "/s/a/SKILL.md", folderName });
}

test("parseSkillFile() reads every field", () => {
  const text = `---
name: a
description: Text
version: 1.0
allowed_tools: [read_file]
tools: [git_diff, "Read"]
mode: fork
user-invocable: false
disable-model-invocation: true
trigger:
  patterns: ["(?i)review"]
  match: ["Review it"]
  no_match: [view]
---
Body
`;
  const file = parse(text);
  assert(file.ok);
  const { patterns, ...meta } = file.meta;
  assertEquals(meta, {
    name: "a",
    description: "Text",
    version: "1.0",
    allowedTools: ["read_file"],
    match: ["Review it"],
    noMatch: ["view"],
    requires: ["git_diff", "Read"],
    mode: "fork",
    modelInvocable: false,
    userInvocable: false,
  });
  assertEquals(patterns.map((p) => p.source), ["(?i)review"]);
  assertEquals(file.warnings, []);
  assertEquals(text.slice(file.bodyStart), "Body\n");
});

const positions = [
  ["a missing fence", "name: a\n", "frontmatter-missing", 1, 1],
  ["a key that is there twice", "---\nname: a\ndescription: x\nname: b\n---\nB\n", "duplicate-key", 4, 1],
  ["an unsafe name", "---\ndescription: x\nname: ../b\n---\nB\n", "name-unsafe", 3, 7],
  ["a list as description", "---\nname: a\ndescription: [x]\n---\nB\n", "description-type", 3, 14],
  ["lines before the block", "\n\n---\ndescription: x\nname: a/b\n---\nB\n", "name-unsafe", 5, 7],
  ["a tag", "---\r\nname: a\r\ndescription: !x y\r\n---\r\nB\r\n", "yaml-tag", 3, 14],
] as const;

for (const [name, text, reason, line, col] of positions) {
  test(`parseSkillFile() says where ${name} is`, () => {
    const file = parse(text);
    assert(!file.ok);
    assertEquals([file.reason, file.at], [reason, { file: "/s/a/SKILL.md", line, col }]);
  });
}

test("parseSkillFile() says what to add", () => {
  const hints = [
    "---\ndescription: x\n---\nB\n",
    "---\nname: a\n---\nB\n",
    "---\nname: a\ndescription: x\n---\n",
  ]
    .map((text) => {
      const file = parse(text);
      return file.ok ? [] : [file.message, file.hint];
    });
  assertEquals(hints, [
    ["the front matter has no `name`", "add a line such as `name: my-skill`"],
    [
      "the front matter has no `description`",
      "add a line such as `description: what it does, and when to use it`",
    ],
    ["there is nothing after the front matter", "write the instructions below the closing `---` line"],
  ]);
});

test("parseSkillFile() refuses a block over the cap, and takes one at the cap", () => {
  const fixed = "name: a\ndescription: x\nlicense: ".length;
  const block = (bytes: number) =>
    `---\nname: a\ndescription: x\nlicense: ${"y".repeat(bytes - fixed)}\n---\nB\n`;
  assertEquals(parse(block(frontMatterCap)).ok, true);
  const over = parse(block(frontMatterCap + 1));
  assert(!over.ok);
  assertEquals([over.reason, over.message], [
    "frontmatter-unclosed",
    "no closing `---` line in the first 16384 bytes",
  ]);
});

test("parseSkillFile() counts the cap in bytes", () => {
  const file = parse(`---\nname: a\ndescription: ${"語".repeat(6000)}\n---\nB\n`);
  assert(!file.ok);
  assertEquals(file.reason, "frontmatter-unclosed");
});

test("parseSkillFile() refuses bytes that are not UTF-8", () => {
  const text = new TextDecoder().decode(
    new Uint8Array([...new TextEncoder().encode("---\nname: a\ndescription: "), 0xff, 10]),
  );
  const file = parse(`${text}---\nB\n`);
  assert(!file.ok);
  assertEquals([file.reason, file.message], ["invalid-yaml", "the front matter is not valid UTF-8"]);
});

test("parseSkillFile() shows control characters of a bad name as escapes", () => {
  const file = parse('---\nname: "a\\e[2Jb"\ndescription: x\n---\nB\n');
  assert(!file.ok);
  assertEquals(file.message, "the name `a\\x1b[2Jb` holds a path separator or a control character");
});

test("parseSkillFile() composes a name that is written taken apart", () => {
  const file = parse("---\nname: cafe\u0301\ndescription: x\n---\nB\n", "caf\u00e9");
  assert(file.ok);
  assertEquals([file.meta.name, file.warnings.map((w) => w.code)], ["caf\u00e9", ["name-invalid"]]);
});

test("parseSkillFile() limits patterns in number and length", () => {
  const list = [...Array.from({ length: 70 }, (_, i) => `"word${i}"`), ""].join(", ");
  const many = parse(`---\nname: a\ndescription: x\ntrigger: {patterns: [${list}]}\n---\nB\n`);
  const long = parse(`---\nname: a\ndescription: x\ntrigger: {patterns: ["${"x".repeat(1001)}"]}\n---\nB\n`);
  assert(many.ok && long.ok);
  assertEquals([many.meta.patterns.length, many.warnings.map((w) => w.code)], [64, ["trigger-invalid"]]);
  assertEquals([long.meta.patterns.length, long.warnings.map((w) => w.code)], [0, ["trigger-invalid"]]);
});
