import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { defaultLimits, type Scan, scanSkills } from "../../src/load/skill_dir.ts";
import type { IndexSite } from "../../src/load/skill_index.ts";

let top = "";
let site: IndexSite;
beforeEach(() => {
  top = realpathSync(mkdtempSync(join(tmpdir(), "writ-index-")));
  mkdirSync(join(top, "state"), { mode: 0o700 });
  mkdirSync(join(top, "ws"));
  site = { folder: join(top, "state/skill-index"), reader: "r1", outside: join(top, "ws"), now: later };
  for (let i = 0; i < 30; i++) put(name(i), `Text ${i}.`);
});
afterEach(() => rmSync(top, { recursive: true, force: true }));

// The files of a test are young; an index is made of those that are not.
const later = () => Date.now() + 60_000;
const name = (i: number) => `s-${String(i).padStart(2, "0")}`;

function put(skill: string, description: string, more = ""): void {
  mkdirSync(join(top, "skills", skill), { recursive: true });
  writeFileSync(
    join(top, "skills", skill, "SKILL.md"),
    `---\nname: ${skill}\ndescription: ${description}\n${more}---\nBody.\n`,
  );
}

function scan(some: Partial<IndexSite> = {}): Scan {
  return scanSkills(join(top, "skills"), "user", defaultLimits, { ...site, ...some });
}

function shown({ skills, problems }: Scan) {
  return {
    skills: skills.map((s) => ({ ...s, patterns: s.patterns.map((p) => p.source) })),
    problems,
  };
}

const files = () => existsSync(site.folder) ? readdirSync(site.folder) : [];
const path = () => join(site.folder, files()[0] ?? "none");

/** Changes what an index says, with a header that fits. */
function rewrite(change: (body: string) => string, reader = "r1"): void {
  const text = readFileSync(path(), "utf8");
  const body = change(text.slice(text.indexOf("\n") + 1));
  const hash = createHash("sha256").update(body).digest("hex");
  writeFileSync(path(), `${JSON.stringify({ format: 2, reader, sha256: hash })}\n${body}`);
}

const told = (scan: Scan) => scan.skills.find((s) => s.name === "s-07")?.description;

test("the second scan gives the same without reading what did not change", () => {
  put(
    "s-03",
    "Text 3.",
    "trigger: {patterns: ['thing\\b'], match: [a thing]}\nallowed-tools: Read, Bash(git log:*)\n",
  );
  put("s-04", "Text 4.", "allowed-tools: []\nversion: 1.0\nuser-invocable: no\n");
  writeFileSync(join(top, "skills/s-05/SKILL.md"), "---\nname: s-05\n---\nBody.\n");
  writeFileSync(join(top, "skills/s-06/SKILL.md"), "no block");
  const plain = shown(scanSkills(join(top, "skills"), "user"));
  assertEquals(shown(scan()), plain);
  assertEquals(shown(scan()), plain);
  rewrite((body) => body.replace("Text 7.", "From the index."));
  const third = scan();
  assertEquals(told(third), "From the index.");
  const [pattern] = third.skills.find((s) => s.name === "s-03")?.patterns ?? [];
  assertEquals([pattern?.test("any THING now"), pattern?.find("a thing"), pattern?.test("things")], [
    true,
    [2, 7],
    false,
  ]);
});

test("what changed is read again, whatever its size and time", () => {
  scan();
  const file = join(top, "skills/s-07/SKILL.md");
  const { atime, mtime } = statSync(file);
  // Deno tells change times in whole seconds; an index is only made of files that are older than two.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1100);
  put("s-07", "Text x.");
  utimesSync(file, atime, mtime);
  assertEquals(told(scan()), "Text x.");
  // Another file in its place.
  writeFileSync(join(top, "other"), readFileSync(file, "utf8").replace("Text x.", "Text y."));
  renameSync(join(top, "other"), file);
  assertEquals(told(scan()), "Text y.");
  rmSync(join(top, "skills/s-08"), { recursive: true });
  put("t", "New.");
  const { skills } = scan();
  assertEquals([skills.length, skills.some((s) => s.name === "s-08"), skills.at(-1)?.name], [30, false, "t"]);
  assertEquals(readFileSync(path(), "utf8").includes("s-08"), false);
});

test("tools.json is looked at each time", () => {
  scan();
  writeFileSync(join(top, "skills/s-07/tools.json"), "no JSON");
  assertEquals(scan().problems.map((p) => p.code), ["tools-json-invalid"]);
});

const damages: readonly (readonly [string, () => void])[] = [
  ["cut off", () => writeFileSync(path(), readFileSync(path(), "utf8").slice(0, -100))],
  [
    "changed in one place",
    () => writeFileSync(path(), readFileSync(path(), "utf8").replace("Text 7.", "Text 0.")),
  ],
  ["empty", () => writeFileSync(path(), "")],
  ["not UTF-8", () => writeFileSync(path(), new Uint8Array([0xff, 0xfe, 0x0a, 0x80]))],
  ["of another version", () => rewrite((body) => body.replace("Text 7.", "Text 0."), "r2")],
  ["of another shape", () => rewrite((body) => `{"rows":${body.replace("Text 7.", "Text 0.")}}`)],
  [
    "with rows of another shape",
    () => rewrite((body) => body.replace('"description":"Text 7."', '"description":7')),
  ],
  [
    "with patterns of another shape",
    () => rewrite((body) => body.replaceAll('"patterns":[]', '"patterns":{}')),
  ],
  ["not JSON", () => rewrite((body) => `${body.replace("Text 7.", "Text 0.")}]`)],
  ["nested too deeply", () => rewrite(() => "[".repeat(200_000))],
];
for (const [how, damage] of damages) {
  test(`an index that is ${how} is not believed, and is written anew`, () => {
    const plain = shown(scan());
    const good = readFileSync(path(), "utf8");
    damage();
    assertEquals(shown(scan()), plain);
    assertEquals(readFileSync(path(), "utf8"), good);
  });
}

const places: readonly (readonly [string, () => Partial<IndexSite>])[] = [
  ["a folder that others may write to", () => {
    chmodSync(site.folder, 0o770);
    return {};
  }],
  ["a folder beside which others may write", () => {
    chmodSync(join(top, "state"), 0o777);
    return {};
  }],
  ["a file that others may write to", () => {
    chmodSync(path(), 0o666);
    return {};
  }],
  ["the workspace", () => ({ outside: top })],
  ["a link", () => {
    renameSync(path(), join(top, "elsewhere"));
    symlinkSync(join(top, "elsewhere"), join(site.folder, files()[0] ?? readName));
    return {};
  }],
];
let readName = "";
for (const [what, arrange] of places) {
  test(`an index in ${what} is not believed`, () => {
    scan();
    readName = files()[0] ?? "";
    rewrite((body) => body.replace("Text 7.", "From the index."));
    assertEquals(told(scan()), "From the index.");
    assertEquals(told(scan(arrange())), "Text 7.");
  });
}

test("an index is for many skills that have been there for a while, and private", () => {
  assertEquals(scan({ now: Date.now }).skills.length, 30);
  assertEquals(files(), []);
  scan();
  assertEquals([files().length, statSync(path()).mode & 0o777, statSync(site.folder).mode & 0o777], [
    1,
    0o600,
    0o700,
  ]);
  for (let i = 10; i < 30; i++) rmSync(join(top, "skills", name(i)), { recursive: true });
  assertEquals([scan().skills.length, files()], [10, []]);
});

test("old indexes go", () => {
  mkdirSync(site.folder, { mode: 0o700 });
  for (let i = 0; i < 80; i++) {
    const old = join(site.folder, `${i}.json`);
    writeFileSync(old, "x");
    utimesSync(old, 1000 + i, 1000 + i);
  }
  scan();
  const left = files();
  assertEquals([left.length, left.includes("16.json"), left.includes("17.json")], [64, false, true]);
  assert(told(scan()) === "Text 7.");
});
