import { describe, test } from "bun:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { findWalls } from "../../src/sandbox/backend.ts";
import { type Machine, withMachine } from "../support/machine.ts";
import { play as playCalls, type Played } from "../support/play.ts";
import { binary } from "../support/runtimes.ts";
import { bubblewrap, withoutBubblewrap } from "../support/sandbox.ts";

const has = async (backend: "bwrap" | "landlock") =>
  (await findWalls({ backend, folder: "/tmp", self: [binary], writable: [] })).ok;
const backends = {
  bwrap: await has("bwrap"),
  landlock: await has("landlock"),
};

type Command = { readonly command: string; readonly box?: string };

/** The results of these commands, in order, under rules that allow each by its own words. */
function play(
  m: Machine,
  sandbox: string,
  commands: readonly Command[],
  more: { readonly allow?: unknown; readonly start?: Parameters<typeof playCalls>[1]["start"] } = {},
): Promise<Played> {
  const rules = commands.map(({ command, box }) => ({
    tool: "shell",
    command: [command],
    ...(box === undefined ? {} : { box }),
  }));
  return playCalls(m, {
    policy: [`sandbox: ${sandbox}`],
    calls: commands.map((command) => ({ shell: command })),
    allow: more.allow ?? rules,
    ...(more.start === undefined ? {} : { start: more.start }),
  });
}

const boxes = `boxes: {net: {network: all, note: downloads}, host: {mode: "off"}}`;

for (const backend of ["bwrap", "landlock"] as const) {
  if (!backends[backend]) {
    test.skip(`commands in a box by ${backend}, which this machine does not offer`, () => {});
    continue;
  }
  describe(`commands in a box by ${backend}`, () => {
    test("work in the workspace, and reach nothing else", () =>
      withMachine(async (m) => {
        m.write("secret", "canary\n");
        m.write("home/.ssh/id", "canary\n");
        const { facts, results } = await play(m, `{backend: ${backend}}`, [
          { command: "cat src/a.txt" },
          { command: "cp src/a.txt src/b.txt" },
          { command: "cat ../secret" },
          { command: "cat ../home/.ssh/id" },
          { command: "cat ../policy.yaml" },
          { command: "touch .git/hooks/pre-commit" },
          { command: "touch ../made" },
        ]);
        assertEquals(facts, { mode: "required", backend, probe: "held" });
        // Around a workspace that lies in the folder for temporary files is a private one.
        assertEquals(results.map((r) => r.ok).slice(0, 4), [true, true, false, false]);
        assertEquals(results[5]?.ok, false);
        assertEquals(results[0]?.text, "one\ntwo\n");
        assert(!results.some((r) => r.text.includes("canary")));
        assertEquals([existsSync(join(m.repo, "src/b.txt")), existsSync(join(m.top, "made"))], [true, false]);
      }));

    test("that fail say what the box lacked, and which boxes have it", () =>
      withMachine(async (m) => {
        const { results } = await play(m, `{backend: ${backend}, ${boxes}}`, [
          { command: "curl -sS http://nowhere.example/" },
          { command: "true", box: "nope" },
        ], { allow: [] });
        assertStringIncludes(
          results[0]?.text ?? "",
          "[the default box has no network; with it: host (no sandbox), net (network; downloads). A call names its box as `box`]",
        );
        assertStringIncludes(
          results[1]?.text ?? "",
          "unknown_box: there is no box `nope`; boxes are `default`, host (no sandbox), net (network; downloads)",
        );
      }));

    test("leave no folder behind, and a private home between calls", () =>
      withMachine(async (m) => {
        m.write("repo/src/put.sh", "echo kept > ~/note; echo x > $TMPDIR/y\n");
        m.write("repo/src/get.sh", "cat ~/note $TMPDIR/y\n");
        const { results } = await play(m, `{backend: ${backend}}`, [
          { command: "sh src/put.sh" },
          { command: "sh src/get.sh" },
        ]);
        assertEquals(results.map((r) => r.text), ["[no output]", "kept\nx\n"]);
        assertEquals(readdirSync(m.env["TMPDIR"] ?? ""), []);
        assertEquals([existsSync(join(m.home, "note")), existsSync(join(m.repo, ".writ"))], [false, false]);
      }));
  });
}

describe("a box beside the default one", () => {
  test.skipIf(!backends.bwrap)(
    "is asked about unless a rule names it, and stands in the log",
    () =>
      withMachine(async (m) => {
        const call = [{ command: "true", box: "net" }];
        const bare = await play(m, `{${boxes}}`, call, { allow: ["shell(true)"] });
        assertEquals(bare.results.map((r) => [r.ok, r.code]), [[false, "denied"]]);
        assertStringIncludes(bare.results[0]?.text ?? "", "it would run in box `net`");
        const named = await play(m, `{${boxes}}`, call);
        assertEquals(named.results.map((r) => [r.ok, r.box]), [[true, "net"]]);
      }),
  );

  test("without a sandbox runs as Writ itself does, where a rule allows it", () =>
    withMachine(async (m) => {
      m.write("outside", "seen\n");
      const { results } = await play(m, `{${boxes}}`, [{ command: "cat ../outside", box: "host" }]);
      assertEquals(results.map((r) => [r.ok, r.text, r.box]), [[true, "seen\n", "host"]]);
    }));
});

describe("where nothing builds a box", () => {
  const message = "there is no sandbox on this machine (bubblewrap: it is not installed); install bubblewrap";
  test("commands are refused with what to install, and nothing runs", () =>
    withMachine(async (m) => {
      const { facts, results, ended } = await play(m, `{backend: bwrap, ${boxes}}`, [
        { command: "touch made" },
        { command: "cat src/a.txt", box: "host" },
      ], { start: withoutBubblewrap });
      assertEquals(ended.code, 0);
      assertStringIncludes(JSON.stringify(facts), `"backend":"none"`);
      assertStringIncludes(results[0]?.text ?? "", message);
      assertStringIncludes(results[0]?.text ?? "", "without a sandbox runs: box `host`");
      assertEquals([existsSync(join(m.repo, "made")), results[1]?.text], [false, "one\ntwo\n"]);
    }));

  test.skipIf(!backends.landlock || bubblewrap === undefined)(
    "but Landlock, that is taken",
    () =>
      withMachine(async (m) => {
        const { facts, results } = await play(m, "{}", [{ command: "cat src/a.txt" }], {
          start: withoutBubblewrap,
        });
        assertEquals([facts, results[0]?.text], [
          { mode: "required", backend: "landlock", probe: "held" },
          "one\ntwo\n",
        ]);
      }),
  );
});

describe("daily work in a box", () => {
  test.skipIf(!backends.bwrap)(
    "commits as the user, and says what was taken away again",
    () =>
      withMachine(async (m) => {
        m.write("home/.gitconfig", '[user]\n\tname = "Ada L"\n\temail = ada@example.com\n');
        m.git("config", "--unset", "user.name");
        m.git("config", "--unset", "user.email");
        m.write("repo/目录/文件.txt", "你好\n");
        m.write("repo/src/make.sh", "echo x > AGENTS.md\n");
        const { results } = await play(m, "{}", [
          { command: "git add -A" },
          { command: "git commit -qm 第二" },
          { command: "git log -1 '--format=%an %ae %s'" },
          { command: "git worktree add -q wt" },
          { command: "sh src/make.sh" },
        ]);
        assertEquals(results.map((r) => r.ok), [true, true, true, true, true], JSON.stringify(results));
        assertEquals(results[2]?.text, "Ada L ada@example.com 第二\n");
        assertStringIncludes(
          results[4]?.text ?? "",
          `[protected, so removed or set right after the command: ${m.repo}/AGENTS.md]`,
        );
        assertEquals(existsSync(join(m.repo, "AGENTS.md")), false);
      }),
  );

  test.skipIf(!backends.landlock)(
    "by Landlock cannot commit, and says which box can",
    () =>
      withMachine(async (m) => {
        const { results } = await play(m, `{backend: landlock, ${boxes}}`, [{
          command: "git commit --allow-empty -qm x",
        }]);
        assertEquals(results[0]?.ok, false);
        assertStringIncludes(
          results[0]?.text ?? "",
          "without bubblewrap a git folder is read-only in a box; with it: host (no sandbox)",
        );
      }),
  );
});
