import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { afterEach, beforeEach, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hashFolder } from "../../src/load/folder_hash.ts";
import { openSnapshot, snapshotFolder } from "../../src/load/snapshot.ts";

let top = "";
let folder = "";
let state = "";
let pin = "";
beforeEach(() => {
  top = realpathSync(mkdtempSync(join(tmpdir(), "writ-snap-")));
  [folder, state] = ["skill", "state"].map((name) => join(top, name)) as [string, string];
  mkdirSync(join(folder, "scripts"), { recursive: true });
  writeFileSync(join(folder, "SKILL.md"), "one\n");
  writeFileSync(join(folder, "scripts/run.sh"), "echo\n", { mode: 0o755 });
  const hashed = hashFolder(folder);
  pin = hashed.ok ? hashed.hash : "";
});
afterEach(() => rmSync(top, { recursive: true, force: true }));

const open = (purpose: "load" | "use") => openSnapshot(state, { folder, pin }, purpose);
const place = () => snapshotFolder(state, pin);

test("a snapshot has the hashed bytes, is for this user alone, and is made once", () => {
  assertEquals(open("load"), { ok: true, folder: place() });
  assertEquals(readFileSync(join(place(), "SKILL.md"), "utf8"), "one\n");
  assertEquals([place(), join(place(), "scripts")].map((f) => statSync(f).mode & 0o777), [0o700, 0o700]);
  assertEquals(statSync(join(place(), "scripts/run.sh")).mode & 0o777, 0o500);
  assertEquals(statSync(join(place(), "SKILL.md")).mode & 0o777, 0o400);
  const made = statSync(place()).ino;
  assertEquals(open("load"), { ok: true, folder: place() });
  assertEquals(statSync(place()).ino, made);
  assertEquals(readdirSync(join(state, "pinned")), [pin.slice(7)]);
});

test("a folder that changed is not loaded, and what was loaded is used on", () => {
  open("load");
  writeFileSync(join(folder, "SKILL.md"), "two\n");
  const now = hashFolder(folder);
  const refused = open("load");
  assertEquals([refused.ok, refused.ok ? "" : refused.code], [false, "skill_changed"]);
  for (const hash of [pin, now.ok ? now.hash : "-"]) {
    assertStringIncludes(refused.ok ? "" : refused.message, hash);
  }
  assertEquals(open("use"), { ok: true, folder: place() });
  assertEquals(readFileSync(join(place(), "SKILL.md"), "utf8"), "one\n");
});

const damages: readonly (readonly [string, () => void])[] = [
  ["another byte", () => {
    chmodSync(join(place(), "SKILL.md"), 0o600);
    writeFileSync(join(place(), "SKILL.md"), "two\n");
  }],
  ["a new file", () => writeFileSync(join(place(), "new"), "")],
  ["a missing file", () => rmSync(join(place(), "SKILL.md"))],
  ["rights for others", () => chmodSync(place(), 0o755)],
  ["a link in its place", () => {
    rmSync(place(), { recursive: true });
    symlinkSync(folder, place());
  }],
];
for (const [name, damage] of damages) {
  test(`a snapshot with ${name} is made anew from what still has the hash`, () => {
    open("load");
    damage();
    assertEquals(open("use"), { ok: true, folder: place() });
    assertEquals(hashFolder(place()).ok, true);
    assertEquals([statSync(place()).mode & 0o777, readFileSync(join(place(), "SKILL.md"), "utf8")], [
      0o700,
      "one\n",
    ]);
    assertEquals(readdirSync(join(state, "pinned")), [pin.slice(7)]);
  });

  test(`a snapshot with ${name} is not used when the folder has changed too`, () => {
    open("load");
    damage();
    writeFileSync(join(folder, "SKILL.md"), "two\n");
    const refused = open("use");
    assertEquals(refused.ok ? "" : refused.code, "skill_changed");
  });
}

test("copies that nothing has used for a month go when a new one is made, and so does what a crash left", () => {
  open("load");
  const base = join(state, "pinned");
  const old = new Date(Date.now() - 40 * 24 * 60 * 60 * 1000);
  for (const name of ["0".repeat(64), ".left.tmp", "1".repeat(64)]) mkdirSync(join(base, name));
  for (const name of ["0".repeat(64), ".left.tmp"]) utimesSync(join(base, name), old, old);
  rmSync(place(), { recursive: true });
  assert(open("use").ok);
  assertEquals(readdirSync(base).sort(), [pin.slice(7), "1".repeat(64)].sort());
});

test("a state folder that cannot be written is said, and nothing is read from elsewhere", () => {
  writeFileSync(state, "a file");
  const refused = open("load");
  assertEquals([refused.ok, refused.ok ? "" : refused.code, existsSync(place())], [
    false,
    "snapshot_failed",
    false,
  ]);
});
