import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import type { Skill } from "../../src/core/skill.ts";
import { readAttached, readSkillBody } from "../../src/load/skill_body.ts";
import { bodyCap, type Scan, scanSkills } from "../../src/load/skill_dir.ts";

let root = "";
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "writ-skills-")));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function put(path: string, text: string | Uint8Array): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

function skillText(name: string, more = "", body = "Body.\n"): string {
  return `---\nname: ${name}\ndescription: Text of ${name}\n${more}---\n${body}`;
}

function shown(scan: Scan): { readonly skills: readonly string[]; readonly problems: readonly string[] } {
  return {
    skills: scan.skills.map((s) => `${s.name} ${s.file.slice(root.length + 1)}`),
    problems: scan.problems.map((p) => `${p.severity} ${p.code} ${p.path.slice(root.length + 1)}`),
  };
}

function only(path = "a"): Skill {
  const [skill] = scanSkills(join(root, path), "project").skills;
  assert(skill !== undefined);
  return skill;
}

test("scanSkills() gives the skills of a folder in order, with tier and real paths", () => {
  put("b/SKILL.md", skillText("b"));
  put("a/SKILL.md", skillText("a", "version: 1.0.0\n"));
  put("readme.md", "no skill");
  const scan = scanSkills(root, "user");
  assertEquals(shown(scan), { skills: ["a a/SKILL.md", "b b/SKILL.md"], problems: [] });
  assertEquals(scan.skills[0], {
    name: "a",
    description: "Text of a",
    version: "1.0.0",
    patterns: [],
    match: [],
    noMatch: [],
    requires: [],
    tools: [],
    mode: "inline",
    modelInvocable: true,
    userInvocable: true,
    tier: "user",
    folder: join(root, "a"),
    file: join(root, "a/SKILL.md"),
    shadows: [],
  });
});

test("scanSkills() takes a folder that is itself a skill, and none that is not there", () => {
  put("a/SKILL.md", skillText("a"));
  assertEquals(shown(scanSkills(join(root, "a"), "user")), { skills: ["a a/SKILL.md"], problems: [] });
  assertEquals(scanSkills(join(root, "missing"), "user"), { skills: [], problems: [] });
});

test("scanSkills() reports a file in a folder's place", () => {
  put("a", "text");
  assertEquals(shown(scanSkills(join(root, "a"), "user")).problems, ["error folder-unreadable a"]);
});

test("scanSkills() keeps the good beside the broken and says what is wrong", () => {
  put("good/SKILL.md", skillText("good"));
  put("noname/SKILL.md", "---\ndescription: x\n---\nBody\n");
  const scan = scanSkills(root, "project");
  assertEquals(scan.skills.map((s) => s.name), ["good"]);
  assertEquals(scan.problems, [{
    path: join(root, "noname/SKILL.md"),
    code: "name-missing",
    message: "the front matter has no `name`; add a line such as `name: my-skill`",
    severity: "error",
    about: "text",
  }]);
});

test("scanSkills() does not look for skills below a skill, nor in .git and node_modules", () => {
  put("a/SKILL.md", skillText("a"));
  put("a/inner/SKILL.md", skillText("inner"));
  put(".git/x/SKILL.md", skillText("x"));
  put("node_modules/y/SKILL.md", skillText("y"));
  put("group/b/SKILL.md", skillText("b"));
  assertEquals(shown(scanSkills(root, "user")), {
    skills: ["a a/SKILL.md", "b group/b/SKILL.md"],
    problems: [],
  });
});

test("scanSkills() follows links once, and reports those that lead nowhere", () => {
  put("real/a/SKILL.md", skillText("a"));
  put("skills/keep", "");
  symlinkSync(join(root, "real"), join(root, "skills/one"));
  symlinkSync(join(root, "real"), join(root, "skills/two"));
  symlinkSync(join(root, "skills"), join(root, "real/loop"));
  symlinkSync(join(root, "gone"), join(root, "skills/broken"));
  assertEquals(shown(scanSkills(join(root, "skills"), "user")), {
    skills: ["a real/a/SKILL.md"],
    problems: ["warning link-broken skills/broken"],
  });
});

test("scanSkills() compares the name with the folder as it was reached", () => {
  put("store/1234/SKILL.md", skillText("a"));
  mkdirSync(join(root, "skills"));
  symlinkSync(join(root, "store/1234"), join(root, "skills/a"));
  assertEquals(shown(scanSkills(join(root, "skills"), "user")), {
    skills: ["a store/1234/SKILL.md"],
    problems: [],
  });
});

test("scanSkills() stops at its limits and says so", () => {
  put("1/2/c/SKILL.md", skillText("c"));
  put("a/SKILL.md", skillText("a"));
  put("b/SKILL.md", skillText("b"));
  assertEquals(shown(scanSkills(root, "user", { depth: 2, folders: 100 })), {
    skills: ["a a/SKILL.md", "b b/SKILL.md"],
    problems: ["warning scan-limit 1/2/c"],
  });
  assertEquals(shown(scanSkills(root, "user", { depth: 6, folders: 5 })), {
    skills: ["c 1/2/c/SKILL.md", "a a/SKILL.md"],
    problems: ["error scan-limit "],
  });
});

test("scanSkills() refuses what is not a regular file, without opening it", () => {
  put("good/SKILL.md", skillText("good"));
  mkdirSync(join(root, "pipe"));
  execFileSync("mkfifo", [join(root, "pipe/SKILL.md")]);
  mkdirSync(join(root, "folder/SKILL.md"), { recursive: true });
  mkdirSync(join(root, "gone"));
  symlinkSync(join(root, "nowhere"), join(root, "gone/SKILL.md"));
  assertEquals(shown(scanSkills(root, "user")), {
    skills: ["good good/SKILL.md"],
    problems: [
      "error skill-not-a-file folder/SKILL.md",
      "error skill-unreadable gone/SKILL.md",
      "error skill-not-a-file pipe/SKILL.md",
    ],
  });
});

test.skipIf(process.getuid?.() === 0)("scanSkills() reports a folder that it may not read", () => {
  put("good/SKILL.md", skillText("good"));
  put("closed/SKILL.md", skillText("closed"));
  chmodSync(join(root, "closed"), 0);
  const found = shown(scanSkills(root, "user"));
  chmodSync(join(root, "closed"), 0o700);
  assertEquals(found, { skills: ["good good/SKILL.md"], problems: ["error folder-unreadable closed"] });
});

test("scanSkills() prefers SKILL.md to another spelling beside it", () => {
  put("a/SKILL.md", skillText("a"));
  put("a/skill.md", skillText("other"));
  put("b/Skill.md", skillText("b"));
  assertEquals(shown(scanSkills(root, "user")), {
    skills: ["a a/SKILL.md", "b b/Skill.md"],
    problems: ["warning filename-case b/Skill.md"],
  });
});

test("scanSkills() reads front matter and blanks of any length in pieces", () => {
  put("long/SKILL.md", `---\nname: long\ndescription: ${"é".repeat(7000)}\n---${"\r\n".repeat(9000)}Body`);
  put("blank/SKILL.md", skillText("blank", "", " \n".repeat(9000)));
  put("open/SKILL.md", `---\nname: open\n${"x: y\n".repeat(9000)}`);
  assertEquals(shown(scanSkills(root, "user")), {
    skills: ["long long/SKILL.md"],
    problems: [
      "error body-empty blank/SKILL.md",
      "warning description-too-long long/SKILL.md",
      "error frontmatter-unclosed open/SKILL.md",
    ],
  });
});

const ends = [
  ["a fence and a body", "\r\n---\r\n\r\nBody", "ok"],
  ["a fence with blanks after it", "\n---   \n \n\n  Body", "ok"],
  ["a fence that is glued to text", "\n---Body\nx: y\n", "frontmatter-unclosed"],
  ["a fence with text after blanks", "\n---      Body\n", "frontmatter-unclosed"],
  ["a fence and nothing else", "\n---\n\n", "body-empty"],
  ["a character of several bytes", "語\n---\nBody", "ok"],
] as const;

for (const [name, end, expected] of ends) {
  test(`scanSkills() reads ${name} wherever the file is cut in pieces`, () => {
    const found = new Set<string>();
    const start = "---\nname: a\ndescription: ";
    for (let length = 1000; length < 1030; length++) {
      put("a/SKILL.md", start + "x".repeat(length - start.length) + end);
      const { skills, problems } = scanSkills(root, "user");
      found.add(skills.length === 1 ? "ok" : problems.map((p) => p.code).join());
    }
    assertEquals([...found], [expected]);
  });
}

test("scanSkills() finds a skill whose body it could not read", () => {
  put("big/SKILL.md", skillText("big"));
  // A sparse file: only its beginning is on disk.
  truncateSync(join(root, "big/SKILL.md"), 8 * 1024 * 1024 * 1024);
  assertEquals(shown(scanSkills(root, "user")), { skills: ["big big/SKILL.md"], problems: [] });
  const read = readSkillBody(only("big"));
  assertEquals(read, {
    ok: false,
    code: "skill_too_large",
    message: `\`${root}/big/SKILL.md\` has 8589934592 bytes; at most ${bodyCap} are loaded`,
    skipped: { bytes: 8589934592, cap: bodyCap },
  });
});

test("readSkillBody() reads the file as it is now", () => {
  put("a/SKILL.md", skillText("a"));
  const skill = only();
  const text = "\ufeff---\r\nname: a\r\ndescription: New\r\n---\r\n\r\n# Tíitle\r\nText\r\n";
  put("a/SKILL.md", text);
  put("a/scripts/run.sh", "x");
  put("a/assets/b.md", "x");
  put("a/.hidden", "x");
  put("outside.md", "x");
  symlinkSync(join(root, "outside.md"), join(root, "a/assets/link.md"));
  symlinkSync("b.md", join(root, "a/assets/same.md"));
  const read = readSkillBody(skill);
  assert(read.ok);
  assertEquals(read.body, {
    body: "\n# Tíitle\nText\n",
    bytes: 19,
    sha256: createHash("sha256").update(text).digest("hex"),
    files: ["assets/b.md", "assets/same.md", "scripts/run.sh"],
  });
  assertEquals(read.meta.description, "New");
});

test("readSkillBody() lists at most 200 files", () => {
  put("a/SKILL.md", skillText("a"));
  for (let i = 0; i < 210; i++) put(`a/f/${i}.md`, "");
  const read = readSkillBody(only());
  assert(read.ok);
  assertEquals(read.body.files.length, 200);
});

test("readSkillBody() takes the narrower of two bounds", () => {
  const change = (before: string, after: string) => {
    put("a/SKILL.md", skillText("a", before));
    const skill = only();
    put("a/SKILL.md", skillText("a", after));
    const read = readSkillBody(skill);
    return read.ok ? read.meta.allowedTools : read.code;
  };
  assertEquals(change("allowed_tools: [Read, Bash]\n", "allowed_tools: [Read, Write]\n"), ["Read"]);
  assertEquals(change("allowed_tools: [Read]\n", ""), ["Read"]);
  assertEquals(change("allowed_tools: [Read]\n", 'allowed_tools: ["*"]\n'), ["Read"]);
  assertEquals(change("", "allowed_tools: [Read, Bash]\n"), ["Read"]);
  assertEquals(change("", ""), undefined);
});

const changed = [
  ["a broken block", "---\nname: a\n", "skill_changed"],
  ["another name", skillText("b"), "skill_changed"],
  ["no body", skillText("a", "", ""), "skill_changed"],
  ["too many bytes", skillText("a", "", "x".repeat(bodyCap)), "skill_too_large"],
] as const;

for (const [name, text, code] of changed) {
  test(`readSkillBody() refuses a file that has ${name} now`, () => {
    put("a/SKILL.md", skillText("a"));
    const skill = only();
    put("a/SKILL.md", text);
    const read = readSkillBody(skill);
    assertEquals(read.ok ? "ok" : read.code, code);
  });
}

test("readSkillBody() tells a file that is gone, or is no file any more", () => {
  put("a/SKILL.md", skillText("a"));
  const skill = only();
  rmSync(skill.file);
  const gone = readSkillBody(skill);
  execFileSync("mkfifo", [skill.file]);
  const pipe = readSkillBody(skill);
  assertEquals([gone, pipe].map((r) => (r.ok ? "ok" : [r.code, r.message])), [
    ["skill_unreadable", `\`${skill.file}\` cannot be read: ENOENT`],
    ["skill_unreadable", `\`${skill.file}\` cannot be read: not a regular file`],
  ]);
});

test("readAttached() reads text files of the folder, up to a cap", () => {
  put("a/SKILL.md", skillText("a"));
  put("a/refs/x.md", "0123456é89");
  const skill = only();
  assertEquals(readAttached(skill, "refs/x.md", 100), {
    ok: true,
    text: "0123456é89",
    bytes: 11,
    cut: false,
  });
  // The cap falls into a character, which is left out whole.
  assertEquals(readAttached(skill, "./refs/x.md", 8), { ok: true, text: "0123456", bytes: 11, cut: true });
});

const refusedPaths = [
  ["..", "bad_path"],
  ["refs/../../b", "bad_path"],
  ["/etc/passwd", "bad_path"],
  ["C:\\x", "bad_path"],
  ["refs\\x.md", "bad_path"],
  ["", "bad_path"],
  ["x\0y", "bad_path"],
  ["refs", "not_a_file"],
  ["missing.md", "not_found"],
  ["link.md", "outside_skill"],
  ["folder-link/secret.md", "outside_skill"],
  ["binary.dat", "binary"],
  ["pipe", "not_a_file"],
] as const;

for (const [path, code] of refusedPaths) {
  test(`readAttached() refuses ${JSON.stringify(path)}`, () => {
    put("a/SKILL.md", skillText("a"));
    put("a/refs/x.md", "x");
    put("a/binary.dat", new Uint8Array([1, 0, 2, 255]));
    put("secret.md", "secret");
    symlinkSync(join(root, "secret.md"), join(root, "a/link.md"));
    symlinkSync(root, join(root, "a/folder-link"));
    execFileSync("mkfifo", [join(root, "a/pipe")]);
    const read = readAttached(only(), path, 1000);
    assertEquals(read.ok ? "ok" : read.code, code);
  });
}
