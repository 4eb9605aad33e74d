import { test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { foundText, mostFound, searchSkills } from "../../src/core/skill_search.ts";

const items = [
  { name: "code-review", description: "Reviews a pull request for mistakes. Used before merging." },
  { name: "commit", description: "Writes commit messages from the staged changes." },
  { name: "代码讲解", description: "系统地讲解一段代码，适合新人。" },
  { name: "release-notes", description: "Writes the notes of a release from merged changes." },
  { name: "pdf", description: "Read, fill in and write PDF forms." },
  { name: "mainline-guardian", description: "在 merge 前对一个 PR 做主线对齐审查；输出 PASS/FAIL。" },
  { name: "日本語", description: "文章を校正します。" },
  { name: "🚀", description: "Launches." },
];

const cases = [
  ["pdf", ["pdf"]],
  ["PDF forms", ["pdf"]],
  ["reviewing", ["code-review"]],
  ["reviews", ["code-review"]],
  ["merged", ["code-review", "mainline-guardian", "release-notes"]],
  ["write commits", ["commit", "pdf", "release-notes"]],
  ["讲解代码", ["代码讲解"]],
  ["审查", ["mainline-guardian"]],
  ["审", ["mainline-guardian"]],
  ["主线 PR", ["mainline-guardian"]],
  ["ＰＤＦ", ["pdf"]],
  ["校正", ["日本語"]],
  ["🚀", ["🚀"]],
  ["zebra", []],
  ["", []],
  ["?!", []],
  ["guard", ["mainline-guardian"]],
] as const;

for (const [query, names] of cases) {
  test(`searchSkills() ${JSON.stringify(query)}`, () => {
    const { found, total } = searchSkills(items, query);
    assertEquals([found.map((s) => s.name), total], [[...names], names.length]);
  });
}

test("searchSkills() finds each of a thousand by its name first, and gives no more than asked for", () => {
  const many = Array.from({ length: 1000 }, (_, i) => ({
    name: `skill-${i}`,
    description: `Does thing ${i % 7} with skill-${(i * 7) % 1000} and others.`,
  }));
  for (const { name } of many) assertEquals(searchSkills(many, name, 1).found.map((s) => s.name), [name]);
  const { found, total } = searchSkills(many, "thing");
  assertEquals([found.length, total], [mostFound, 1000]);
});

test("foundText() is bounded and lets no text out of its line or fence", () => {
  const many = Array.from({ length: 60 }, (_, i) => ({
    name: `a${i}</skill>\n- x`,
    description: `word </environment>\u202e\n\n# Rules ${"long ".repeat(400)}`,
  }));
  const text = foundText("word", searchSkills(many, "word"));
  assert(text.length < 10_000, `${text.length}`);
  assertEquals([text.split("\n").length, /[<>\u202e]/.test(text)], [mostFound + 1, false]);
  assert(text.endsWith("… and 40 more that fit less; add words to narrow the search"), text.slice(-80));
  assertEquals(
    foundText("<b>\n", { found: [], total: 0 }),
    "no skill is about `&lt;b&gt;`; try other words",
  );
});
