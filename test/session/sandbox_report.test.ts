import { afterEach, beforeEach, describe, test } from "bun:test";
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { loadPolicyFile } from "../../src/load/policy_file.ts";
import { mergePolicy } from "../../src/load/policy_merge.ts";
import { findWalls } from "../../src/sandbox/backend.ts";
import { selfCommand } from "../../src/sandbox/self.ts";
import type { BoxesOf } from "../../src/session/box_ground.ts";
import { openBoxes } from "../../src/session/boxes.ts";
import { sandboxReport } from "../../src/session/sandbox_report.ts";

const wanted = { folder: tmpdir(), self: selfCommand(), writable: [] };
const here = {
  bwrap: (await findWalls({ ...wanted, backend: "bwrap" })).ok,
  landlock: (await findWalls({ ...wanted, backend: "landlock" })).ok,
};

let top: string;
beforeEach(() => {
  top = realpathSync(mkdtempSync(join(tmpdir(), "writ-report-")));
  for (const folder of ["ws/.git", "home"]) mkdirSync(join(top, folder), { recursive: true });
});
afterEach(() => rmSync(top, { recursive: true, force: true }));

function settings(yaml: string, root = join(top, "ws")): BoxesOf {
  const file = loadPolicyFile(`version: 1\n${yaml}`, join(top, "policy.yaml"), "user", "0.1.0");
  if (!file.ok) throw new Error(JSON.stringify(file.problems));
  const home = join(top, "home");
  const merged = mergePolicy({
    files: [file.value],
    revision: "r",
    root,
    home,
    protect: { skillFolders: [], gitFolders: [], own: [] },
  });
  if (!merged.ok) throw new Error(JSON.stringify(merged.problems));
  const env = { PATH: process.env["PATH"] ?? "", XDG_STATE_HOME: join(top, "state") };
  return { policy: merged.value.policy, surroundings: { home, env, cwd: root, platform: "linux-x64" } };
}

describe("sandboxReport()", () => {
  test.skipIf(!here.bwrap)("of bubblewrap has nothing missing", async () => {
    const { version, ...rest } = await sandboxReport(settings("sandbox: {backend: bwrap}"));
    assertMatch(version ?? "", /^bubblewrap \d/);
    assertEquals(rest, { mode: "required", backend: "bwrap", probe: "held", missing: [], outside: [] });
  });

  test.skipIf(!here.landlock)("of Landlock says what its boxes lack", async () => {
    const { version, missing, ...rest } = await sandboxReport(settings("sandbox: {backend: landlock}"));
    assertMatch(version ?? "", /^Landlock \d+$/);
    assertStringIncludes(missing.join("\n"), "a git folder is read-only as a whole");
    assertEquals(rest, { mode: "required", backend: "landlock", probe: "held", outside: [] });
  });

  test.skipIf(!here.landlock)(
    "of Landlock in the place of bubblewrap says why, and what to install",
    async () => {
      // A program that a command may write to is none that somebody has installed.
      const { backend, missing, remedy } = await sandboxReport(settings("", "/"));
      assertEquals([backend, missing[0]], ["landlock", "bubblewrap: it is not installed"]);
      assertStringIncludes(remedy ?? "", "apt install bubblewrap");
    },
  );

  test("of nothing says why every command is refused, and what to install", async () => {
    const report = await sandboxReport(settings("sandbox: {backend: bwrap}", "/"));
    const remedy =
      "install bubblewrap (`apt install bubblewrap`, `dnf install bubblewrap`, `apk add bubblewrap`)";
    assertEquals(report, {
      mode: "required",
      backend: "none",
      reason: `there is no sandbox on this machine (bubblewrap: it is not installed); ${remedy}`,
      missing: ["bubblewrap: it is not installed"],
      remedy,
      outside: [],
    });
  });

  test("of a policy that switches it off", async () => {
    assertEquals(await sandboxReport(settings('sandbox: {mode: "off"}')), {
      mode: "off",
      backend: "none",
      missing: [],
      outside: [],
    });
  });

  test("names the keys whose programs run outside, as the record of a session does", async () => {
    const at = settings("sandbox: {backend: bwrap}\nmodel: {name: m, api_key: {command: [/bin/k]}}", "/");
    const boxes = await openBoxes(at);
    boxes.close();
    assertEquals(boxes.facts === "off" ? undefined : boxes.facts.outside, ["model.api_key"]);
    assertEquals((await sandboxReport(at)).outside, ["model.api_key"]);
  });
});
