import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { lintSkills } from "../../src/load/skill_lint.ts";

let root = "";
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "writ-lint-")));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function put(path: string, text: string | Uint8Array): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

/** `line:col code`, with `~` before what only warns; the path where it is not that of the one skill. */
function findings(paths: readonly string[] = [""]): readonly string[] {
  return lintSkills(paths.map((p) => join(root, p))).problems.map(({ code, severity, at }) => {
    const file = at?.file.slice(root.length + 1) ?? "";
    return `${file === "a/SKILL.md" ? "" : `${file} `}${at?.line}:${at?.col} ${
      severity === "error" ? "" : "~"
    }${code}`;
  });
}

const head = "---\nname: a\ndescription: d\n---\n";
const token = `ghp_${"a1B2".repeat(9)}`;

const texts: readonly (readonly [string, string, readonly string[]])[] = [
  ["nothing", `${head}Do it.\n`, []],
  ["everything at once", "---\nversion: 1\n---\n", [
    "1:1 description-missing",
    "1:1 name-missing",
    "1:1 body-empty",
  ]],
  ["an unsafe name", "---\nname: ../x\ndescription: [d]\n---\nx", [
    "2:7 name-unsafe",
    "2:7 ~name-dir-mismatch",
    "2:7 ~name-invalid",
    "3:14 description-type",
  ]],
  ["a name of another folder", "---\ndescription: d\nname:  B\n---\nx", [
    "3:8 ~name-dir-mismatch",
    "3:8 ~name-invalid",
  ]],
  ["a block that is not YAML", "---\nname: a\nname: b\ndescription: d\n---\nx", ["3:1 duplicate-key"]],
  ["no block", "text", ["1:1 frontmatter-missing"]],
  [
    "a pattern that fits nearly everything",
    `---\nname: a\ndescription: d\ntrigger:\n  patterns: ["[a-z]", "中文|[\\\\p{L}]+"]\n---\nx`,
    [
      "5:3 ~trigger-broad",
      "5:3 ~trigger-broad",
    ],
  ],
  [
    "a pattern that fits the empty text",
    `---\nname: a\ndescription: d\ntrigger: {patterns: ["x*"]}\n---\nx`,
    ["4:10 ~trigger-invalid"],
  ],
  [
    "a pattern that does not compile",
    `---\nname: a\ndescription: d\ntrigger: {patterns: ["(?=x)", "(a"]}\n---\nx`,
    [
      "4:10 ~trigger-invalid",
      "4:10 ~trigger-invalid",
    ],
  ],
  [
    "examples that fail",
    `---\nname: a\ndescription: d\ntrigger: {patterns: [tea], match: [coffee], no_match: [tea time]}\n---\nx`,
    [
      "4:10 ~trigger-example",
      "4:10 ~trigger-example",
    ],
  ],
  [
    "tools that do not exist",
    "---\nname: a\ndescription: d\nallowed-tools: Read, Task, mcp__x__y\ntools: [nope]\n---\nx",
    [
      "4:1 ~allowed-tools-unknown",
      "5:1 ~tools-missing",
    ],
  ],
  [
    "tools that it needs and does not allow",
    "---\nname: a\ndescription: d\nallowed-tools: Read\ntools: [read_file, shell, load_skill]\n---\nx",
    ["5:1 ~tools-bounded"],
  ],
  [
    "tools that it needs and allows in part, or all of them",
    "---\nname: a\ndescription: d\nallowed-tools: Bash(git:*) mcp__x\ntools: [shell, mcp.x.y]\n---\nx",
    [],
  ],
  ["a long body", `${head}${"word\n".repeat(501)}`, ["5:1 ~body-long"]],
  ["many tokens", `${head}${"word ".repeat(4000)}`, ["5:1 ~body-long"]],
  [
    "files that are not there",
    `${head}See [one](references/one.md), [two](two.md#part), [there](there.md), \`scripts/x.py\` and [out](../b/c.md).\n` +
    "Not [web](https://x.test/a.md), [part](#p), [mail](mailto:a@b.c), [any](<name>.md), `src/x.ts`.\n```\n[code](no.md)\n```\n",
    ["5:9 ~file-missing", "5:35 ~file-missing", "5:70 ~file-missing", "5:93 ~file-outside"],
  ],
  ["a credential", `${head}\n\nUse ${token}.\n`, ["7:5 ~credential"]],
  ["hidden characters in the body", `${head}one\ntwo \u200bthree\n`, ["6:5 ~hidden-characters"]],
  ["emoji and joined scripts are no secret", `${head}👩‍🚀 می‌خواهم\n`, []],
  ["placeholders of others", `${head}$ARGUMENTS and $ARGUMENTS[0] and $ARGUMENTS_DIR costs $5\n`, [
    "5:16 ~arguments-form",
    "5:34 ~arguments-form",
  ]],
  ["a command for another agent", `${head}Now: !\`git status\`\n`, ["5:6 ~embedded-command"]],
  ["line ends of another system", `${head.replaceAll("\n", "\r\n")}one\r\n$ARGUMENTS[1]\r\n`, [
    "6:1 ~arguments-form",
  ]],
];

for (const [what, text, expected] of texts) {
  test(`lintSkills(): ${what}`, () => {
    put("a/SKILL.md", text);
    put("a/there.md", "x");
    assertEquals(findings(), expected);
    assertEquals(findings(["a/SKILL.md"]), expected);
  });
}

test("lintSkills() does not show what it takes for a secret", () => {
  put("a/SKILL.md", `${head}${token}`);
  put("a/references/b.md", `first\n${token}`);
  const { problems } = lintSkills([root]);
  assertEquals(JSON.stringify(problems).includes(token), false);
  assertEquals(findings(), ["5:1 ~credential", "a/references/b.md 2:1 ~credential"]);
});

test("lintSkills() says of a folder that is called like a file of skills that it was not read", () => {
  const folder = `${"d/".repeat(40)}skill.md`;
  put(`${folder}/SKILL.md`, head);
  assertEquals(findings(), [`${folder} 1:1 ~scan-limit`]);
});

test("lintSkills() knows the tools that a skill brings itself", () => {
  put("a/SKILL.md", "---\nname: a\ndescription: d\nallowed-tools: Read ship\ntools: [ship, gone]\n---\nx");
  const tool = { name: "ship", description: "d", input_schema: { type: "object" }, command: ["jq"] };
  put("a/tools.json", JSON.stringify([tool]));
  assertEquals(findings(), ["5:1 ~tools-missing"]);
});

test("lintSkills() goes through folders, and says what it could not read", () => {
  put("a/SKILL.md", `${head}x`);
  put("a/inner/SKILL.md", head);
  put("b/skill.md", "---\nname: b\ndescription: d\n---\nx");
  put("c/SKILL.md", "---\nname: a\ndescription: d\n---\nx");
  put("d/SKILL.md", `${head}x`);
  put("d/tools.json", "{}");
  put("deep/1/2/3/4/5/6/7/8/9/SKILL.md", "---\nname: '9'\ndescription: d\n---\nx");
  put("bytes/SKILL.md", new Uint8Array([0xff, 0xfe, 0, 1]));
  mkdirSync(join(root, "folder/SKILL.md"), { recursive: true });
  symlinkSync("/nowhere", join(root, "gone"));
  const { files, loaded } = lintSkills([root]);
  assertEquals([files, loaded], [6, 4]);
  assertEquals(findings(), [
    "1:1 ~duplicate-name",
    "a/inner/SKILL.md 1:1 ~nested-skill",
    "b/skill.md 1:1 ~filename-case",
    "bytes/SKILL.md 1:1 frontmatter-missing",
    "c/SKILL.md 1:1 ~duplicate-name",
    "c/SKILL.md 2:7 ~name-dir-mismatch",
    "d/SKILL.md 1:1 ~duplicate-name",
    "d/SKILL.md 2:7 ~name-dir-mismatch",
    "d/tools.json 1:1 tools-json-invalid",
    "folder/SKILL.md 1:1 skill-not-a-file",
    "gone 1:1 ~link-broken",
  ]);
  assertEquals(
    findings(["none", "a"]),
    ["1:1 ~filename-case"].slice(1).concat([
      "a/inner/SKILL.md 1:1 ~nested-skill",
      "none 1:1 path-missing",
    ]),
  );
});

test("lintSkills() ends in bounded time on hostile files", () => {
  const body = "x\n";
  put(
    "keys/SKILL.md",
    `---\n${Array.from({ length: 200_000 }, (_, i) => `k${i}: v`).join("\n")}\n---\n${body}`,
  );
  put("deep/SKILL.md", `---\nname: d\ndescription: ${"[".repeat(100_000)}\n---\n${body}`);
  put(
    "alias/SKILL.md",
    `---\na: &a [x,x,x,x,x,x,x,x,x]\n${
      "bcdefghi".split("").map((c, i) => `${c}: &${c} [${Array(9).fill(`*${"abcdefgh"[i]}`).join(",")}]`)
        .join("\n")
    }\nname: x\ndescription: y\n---\n${body}`,
  );
  put("tag/SKILL.md", `---\nname: !!js/function x\ndescription: d\n---\n${body}`);
  put(
    "proto/SKILL.md",
    `---\n__proto__: {name: p}\nconstructor: x\nname: proto\ndescription: d\n---\n${body}`,
  );
  put("large/SKILL.md", `${head}${"[a](b.md ".repeat(120_000)}`);
  put("ticks/SKILL.md", `${head}${"```\n".repeat(60_000)}${"`".repeat(50_000)}`);
  put("huge/SKILL.md", "x".repeat(5 * 1024 * 1024));
  const seen = findings().filter((f) => !f.includes("~"));
  assertEquals(seen.map((f) => f.replace(/ \d+:\d+/, "")), [
    "alias/SKILL.md yaml-alias-limit",
    "deep/SKILL.md frontmatter-unclosed",
    "huge/SKILL.md skill-too-large",
    "keys/SKILL.md frontmatter-unclosed",
    "tag/SKILL.md yaml-tag",
  ]);
  assert(({} as { name?: string }).name === undefined);
});
