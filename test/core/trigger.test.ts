import { test } from "bun:test";
import { assertEquals } from "@std/assert";
import { mergeCatalog } from "../../src/core/catalog.ts";
import type { SkillTrigger } from "../../src/core/policy.ts";
import type { Skill } from "../../src/core/skill.ts";
import type { Pattern } from "../../src/core/text.ts";
import {
  noSuchSkill,
  parseSkillMessage,
  selectByPattern,
  suggest,
  userNames,
} from "../../src/core/trigger.ts";
import { makeSkill, word } from "./skills.ts";

const names = ["review", "review deep", "list", "Hook Writing", "caf\u00e9", "find bugs"];

const messages = [
  ["hello", { kind: "none" }],
  ["say /skill review", { kind: "none" }],
  ["/skills", { kind: "none" }],
  ["/skillreview", { kind: "none" }],
  ["/skill review", { kind: "load", name: "review", arguments: "" }],
  ["  /skill review", { kind: "load", name: "review", arguments: "" }],
  ["/skill review  PR 12 \n", { kind: "load", name: "review", arguments: "PR 12" }],
  ["/skill\nreview\nline one\nline two", { kind: "load", name: "review", arguments: "line one\nline two" }],
  ["/skill review deep x", { kind: "load", name: "review deep", arguments: "x" }],
  ["/skill review deeper", { kind: "load", name: "review", arguments: "deeper" }],
  ["/skill Hook Writing now", { kind: "load", name: "Hook Writing", arguments: "now" }],
  ["/skill cafe\u0301 n\u0303", { kind: "load", name: "caf\u00e9", arguments: "n\u0303" }],
  ["/skill run review x", { kind: "load", name: "review", arguments: "x" }],
  ["/skill run list", { kind: "load", name: "list", arguments: "" }],
  ["/skill run find bugs in a", { kind: "load", name: "find bugs", arguments: "in a" }],
  ["/skill list", { kind: "list" }],
  ["/skill", { kind: "list" }],
  ["/skill find", { kind: "find", query: "" }],
  ["/skill find pull requests", { kind: "find", query: "pull requests" }],
  ["/discover-skills pull requests", { kind: "find", query: "pull requests" }],
  ["/skill clear", { kind: "clear" }],
  ["/skill clear Hook Writing", { kind: "clear", name: "Hook Writing" }],
  ["/skill reload", { kind: "reload" }],
  ["/skill run", { kind: "unknown", word: "", suggestions: [] }],
  ["/skill reviwe it", { kind: "unknown", word: "reviwe", suggestions: ["review"] }],
  ["/skill Review", { kind: "unknown", word: "Review", suggestions: ["review", "review deep"] }],
  ["/skill ../../etc", { kind: "unknown", word: "../../etc", suggestions: [] }],
] as const;

for (const [message, expected] of messages) {
  test(`parseSkillMessage() of ${JSON.stringify(message)}`, () => {
    assertEquals(parseSkillMessage(message, names), expected as ReturnType<typeof parseSkillMessage>);
  });
}

test("suggest() gives five names at most", () => {
  assertEquals(suggest("a", ["a1", "a2", "a3", "a4", "a5", "a6"]).length, 5);
  assertEquals(suggest("", ["a"]), []);
});

function catalogOf(skills: readonly Skill[]) {
  return mergeCatalog(skills, { forced: [], disabled: [], undeclaredTools: "read_only" }).catalog;
}

function trigger(skill: string, pattern: Pattern): SkillTrigger {
  return { skill, layer: "user", pattern };
}

test("userNames() leaves out skills that are not for the user", () => {
  const catalog = catalogOf([
    makeSkill({ name: "a", userInvocable: false }),
    makeSkill({ name: "b", modelInvocable: false }),
  ]);
  assertEquals(userNames(catalog), ["b"]);
});

test("selectByPattern() keeps every hit, one a skill, ranked by description, use and name", () => {
  const skills = [
    makeSkill({ name: "long", description: "a longer text", patterns: [word("review")] }),
    makeSkill({ name: "a", description: "short", patterns: [word("miss"), word("pr"), word("review")] }),
    makeSkill({
      name: "b",
      description: "short",
      patterns: [word("review")],
      modelInvocable: false,
      userInvocable: false,
    }),
    makeSkill({ name: "c", description: "short", patterns: [word("review")] }),
    makeSkill({ name: "no", description: "x", patterns: [word("deploy")] }),
  ];
  const hits = selectByPattern("Review this PR", [], catalogOf(skills), new Map([["c", 4], ["b", 9]]));
  assertEquals(hits.map((h) => [h.skill.name, h.pattern, h.span]), [
    ["b", "review", [0, 6]],
    ["c", "review", [0, 6]],
    ["a", "pr", [12, 14]],
    ["long", "review", [0, 6]],
  ]);
});

test("selectByPattern() counts characters of a description, not units", () => {
  const skills = [
    makeSkill({ name: "emoji", description: "😀😀😀", patterns: [word("x")] }),
    makeSkill({ name: "text", description: "abcd", patterns: [word("x")] }),
  ];
  assertEquals(selectByPattern("x", [], catalogOf(skills), new Map()).map((h) => h.skill.name), [
    "emoji",
    "text",
  ]);
});

test("selectByPattern() tries the policy's patterns before the skill's own, and ignores absent skills", () => {
  const catalog = catalogOf([makeSkill({ name: "a", patterns: [word("own")] })]);
  const triggers = [trigger("gone", word("own")), trigger("a", word("miss")), trigger("a", word("policy"))];
  const of = (message: string) =>
    selectByPattern(message, triggers, catalog, new Map()).map((h) => [h.skill.name, h.pattern]);
  assertEquals([of("own policy"), of("own"), of("neither")], [[["a", "policy"]], [["a", "own"]], []]);
});

test("selectByPattern() looks at the first 64 KiB only, in whole characters", () => {
  let seen = "";
  const spy: Pattern = { source: "spy", test: () => false, find: (text) => void (seen = text) };
  const catalog = catalogOf([makeSkill({ name: "a", patterns: [spy, word("needle")] })]);
  const at = (message: string) => selectByPattern(message, [], catalog, new Map()).length;
  assertEquals([at(`${"x".repeat(65530)}needle`), at(`${"x".repeat(65531)}needle`)], [1, 0]);
  at("é".repeat(40000));
  assertEquals(seen.length, 32768);
  at(`x${"😀".repeat(20000)}`);
  assertEquals(seen, `x${"😀".repeat(16383)}`);
});

test("noSuchSkill() says why a known skill cannot be loaded, and else which one was meant", () => {
  const { catalog } = mergeCatalog([
    makeSkill({ name: "review" }),
    makeSkill({ name: "off" }),
    makeSkill({ name: "quiet", userInvocable: false }),
    makeSkill({ name: "manual", modelInvocable: false }),
  ], {
    forced: [],
    disabled: [{ glob: "off", layer: "user" }],
    undeclaredTools: "read_only",
    broken: [{ path: "/user/torn/SKILL.md", code: "frontmatter-missing", message: "no front matter" }],
  });
  const byUser = "available: manual, review";
  const rows = [
    ["reviw", "user", `no skill \`reviw\`; did you mean review? ${byUser}`],
    ["zzz", "user", `no skill \`zzz\`; ${byUser}`],
    [
      "off",
      "user",
      `the skill \`off\` is not available: /user/off/SKILL.md: disabled by \`off\` of the user policy; ${byUser}`,
    ],
    ["torn", "user", `the skill \`torn\` is not available: /user/torn/SKILL.md: no front matter; ${byUser}`],
    [
      "quiet",
      "user",
      `the skill \`quiet\` says \`user-invocable: false\`, so that the user cannot load it; ${byUser}`,
    ],
    [
      "manual",
      "model",
      "the skill `manual` says `disable-model-invocation: true`, so that the model cannot load it; available: quiet, review",
    ],
  ] as const;
  assertEquals(rows.map(([name, by]) => noSuchSkill(name, catalog, by)), rows.map(([, , says]) => says));
});
