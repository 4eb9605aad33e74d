import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { test } from "bun:test";
import { assertEquals, assertThrows } from "@std/assert";
import { assetFolder, isEmbedded } from "../../src/load/assets.ts";
import { readSkillBody } from "../../src/load/skill_body.ts";
import { scanSkills } from "../../src/load/skill_dir.ts";

test("assetFolder() finds skills that load without a warning", () => {
  const { skills, problems } = scanSkills(assetFolder("skills"), "builtin");
  assertEquals(problems, []);
  assertEquals(skills.filter((s) => !readSkillBody(s).ok), []);
  assertEquals(skills.some((s) => s.name === "mainline-guardian"), true);
});

test("assetFolder() throws for a folder that is missing or empty", () => {
  assertThrows(() => assetFolder("no-such-folder"), Error, "no-such-folder");
  const empty = mkdtempSync(join(tmpdir(), "writ-empty-"));
  const root = join(assetFolder("skills"), "..");
  assertThrows(() => assetFolder(relative(root, empty)), Error, "is empty");
  rmSync(empty, { recursive: true });
});

test("isEmbedded() knows paths inside the binary", () => {
  assertEquals(
    ["/$bunfs/root/skills/a", "B:\\~BUN\\root\\skills", "B:/~BUN/root", "/home/$bunfs/x", "/skills"].map(
      isEmbedded,
    ),
    [true, true, true, false, false],
  );
});
