import { assert, assertEquals, assertMatch } from "@std/assert";
import { afterEach, beforeEach, describe, test } from "bun:test";
import fc from "fast-check";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { commandText } from "../../src/core/grant_rule.ts";
import { type ApprovedEntry, firstFault, storeApproved, withApproved } from "../../src/load/approved_file.ts";
import { loadPolicyFile } from "../../src/load/policy_file.ts";
import { loadPolicy } from "../../src/load/load_policy.ts";

const file = "/cfg/policy.d/approved.yaml";
const push: ApprovedEntry = { tool: "shell", command: "git push", workspace: "/ws" };
const edit: ApprovedEntry = { tool: "edit_file", path: "/ws/a.ts", workspace: "/ws" };

function text(before: string | undefined, ...entries: readonly ApprovedEntry[]): string {
  const made = withApproved(before, file, entries, "0.1.0");
  if (!made.ok) throw new Error(firstFault(made.problems));
  return made.value;
}

describe("withApproved()", () => {
  const first = text(undefined, push);

  test("starts a file that says what it is", () => {
    assertEquals(
      first,
      [
        '# Approved at the prompt with "always", by writ. Remove an entry to be asked again.',
        "",
        "version: 1",
        "permissions:",
        "  allow:",
        "    - { id: approved-71bcfdf256, tool: shell, command: git push, workspace: /ws }",
        "",
      ].join("\n"),
    );
  });

  test("adds to what is there, in order", () => {
    const second = text(first, edit);
    assert(second.startsWith(first));
    assertMatch(second.slice(first.length), /^ {4}- \{ id: approved-[0-9a-f]{10}, tool: edit_file, /);
  });

  test("adds nothing twice, whatever else the file says", () => {
    assertEquals(text(first, push, push), first);
    assertEquals(text(undefined, push, push), first);
    const own =
      "version: 1\npermissions:\n  allow: [{command: git push, workspace: /ws, tool: shell, id: mine}]\n";
    assertEquals(text(own, push), own);
    assert(text(first, { ...push, workspace: "/other" }) !== first);
  });

  const kept: readonly (readonly [name: string, before: string])[] = [
    ["comments", "version: 1 # mine\npermissions:\n  # why\n  allow:\n    - read_file # c\n"],
    ["other keys", "version: 1\nname: mine\nlimits: {iterations: 5}\n"],
    ["other lists", "version: 1\npermissions:\n  deny:\n    - write_file\n"],
    ["an empty list", "version: 1\npermissions: {allow: []}\n"],
  ];
  for (const [name, before] of kept) {
    test(`keeps ${name}`, () => {
      const after = text(before, push);
      const [was, is] = [before, after].map((t) => {
        const loaded = loadPolicyFile(t, file, "user", "0.1.0");
        assert(loaded.ok);
        return loaded.value.data;
      });
      const { id: _, ...rule } = is?.permissions?.allow?.at(-1) as { readonly id: string };
      assertEquals(rule as unknown, push);
      const others = is?.permissions?.allow?.slice(0, -1);
      assertEquals(others, [...(was?.permissions?.allow ?? [])]);
      assertEquals({ ...is, permissions: 0 }, { ...was, permissions: 0 });
      assertEquals(is?.permissions?.deny, was?.permissions?.deny);
      for (const comment of before.match(/# \w+/g) ?? []) assert(after.includes(comment), after);
    });
  }

  const refused: readonly (readonly [string, string | undefined, ApprovedEntry, RegExp])[] = [
    [
      "a file with faults",
      "version: 1\npermisions: {}\n",
      push,
      /^\/cfg\/policy\.d\/approved\.yaml:2:1: error: /,
    ],
    ["a file that is empty", "", push, /the policy file is empty/],
    ["a newer file", "version: 2\n", push, /newer-version/],
    [
      "what nobody can see",
      undefined,
      { ...push, command: "git \u202epush" },
      /characters that nobody can see/,
    ],
    ["half a character", undefined, { ...push, command: "git \ud800" }, /characters that nobody can see/],
    ["a rule that would not load", undefined, { ...push, command: "git push | sh" }, /no command pattern/],
    ["a tool that nobody knows", undefined, { ...push, tool: "shel" }, /unknown-tool/],
    [
      "more than a file may hold",
      `version: 1\n#${"x".repeat(262_100)}\n`,
      push,
      /has no room for another rule/,
    ],
  ];
  for (const [name, before, entry, fault] of refused) {
    test(`refuses ${name}`, () => {
      const made = withApproved(before, file, [entry], "0.1.0");
      assertEquals(made.ok, false);
      assertMatch(firstFault(made.problems), fault);
    });
  }

  test("whatever the words, the file loads and holds just them", () => {
    const word = fc.oneof(
      fc.constantFrom("yes", "5", "null", "- a", "a: b", "#x", "'", '"', "\\", "é", "&a", "*a", "{", "%"),
      fc.string(),
    );
    fc.assert(
      fc.property(
        fc.array(fc.array(word.filter((w) => w !== ""), { minLength: 1, maxLength: 4 }), {
          minLength: 1,
          maxLength: 3,
        }),
        (all) => {
          const entries = all.map((words): ApprovedEntry => ({
            tool: "shell",
            command: commandText(words),
            workspace: "/ws",
          }));
          let now: string | undefined;
          const accepted: string[] = [];
          for (const entry of entries) {
            const made = withApproved(now, file, [entry], "0.1.0");
            if (!made.ok) {
              assertMatch(firstFault(made.problems), /characters that nobody can see/);
              continue;
            }
            if (!accepted.includes(entry["command"]!)) accepted.push(entry["command"]!);
            now = made.value;
          }
          if (now === undefined) return;
          const loaded = loadPolicyFile(now, file, "user", "0.1.0");
          assert(loaded.ok, now);
          assertEquals(
            loaded.value.data.permissions?.allow?.map((e) => (e as { readonly command: string }).command),
            accepted,
          );
        },
      ),
      { numRuns: 300, seed: 7 },
    );
  });
});

describe("storeApproved()", () => {
  let top = "";
  beforeEach(() => {
    top = realpathSync(mkdtempSync(join(tmpdir(), "writ-approved-")));
  });
  afterEach(() => rmSync(top, { recursive: true, force: true }));
  const folder = () => join(top, "cfg/policy.d");

  test("makes folder and file for the user alone, and nothing beside them", () => {
    const stored = storeApproved(folder(), [push], "0.1.0");
    assertEquals(stored, { ok: true, value: join(folder(), "approved.yaml"), problems: [] });
    assertEquals(readdirSync(folder()), ["approved.yaml"]);
    assertEquals(statSync(folder()).mode & 0o777, 0o700);
    assertEquals(statSync(join(folder(), "approved.yaml")).mode & 0o777, 0o600);
    assertEquals(readFileSync(join(folder(), "approved.yaml"), "utf8"), text(undefined, push));
  });

  test("leaves a file with faults as it is", () => {
    mkdirSync(folder(), { recursive: true });
    writeFileSync(join(folder(), "approved.yaml"), "version: 1\nallow: []\n");
    assertEquals(storeApproved(folder(), [push], "0.1.0").ok, false);
    assertEquals(readFileSync(join(folder(), "approved.yaml"), "utf8"), "version: 1\nallow: []\n");
  });

  test("writes where a link leads, and takes over what a broken write left", () => {
    mkdirSync(folder(), { recursive: true });
    const real = join(top, "real.yaml");
    writeFileSync(real, "version: 1\n");
    symlinkSync(real, join(folder(), "approved.yaml"));
    writeFileSync(join(top, ".approved.yaml.new"), "half");
    assertEquals(storeApproved(folder(), [push], "0.1.0").ok, true);
    assert(lstatSync(join(folder(), "approved.yaml")).isSymbolicLink());
    assertMatch(readFileSync(real, "utf8"), /command: git push/);
    assertEquals(existsSync(join(top, ".approved.yaml.new")), false);
  });

  test("says what it cannot write", () => {
    writeFileSync(join(top, "cfg"), "a file");
    const stored = storeApproved(folder(), [push], "0.1.0");
    assertEquals(stored.ok, false);
    assertMatch(firstFault(stored.problems), /approved\.yaml` cannot be written: .*(ENOTDIR|EEXIST)/);
  });

  test("is in force at the next load, in its workspace", async () => {
    for (const name of ["ws/.git", "other/.git", "home"]) mkdirSync(join(top, name), { recursive: true });
    const workspace = join(top, "ws");
    assertEquals(storeApproved(folder(), [{ ...push, workspace }], "0.1.0").ok, true);
    const rules = async (cwd: string) => {
      const loaded = await loadPolicy({
        at: {
          env: { XDG_CONFIG_HOME: join(top, "cfg-home") },
          platform: "linux",
          cwd: join(top, cwd),
          home: join(top, "home"),
          machineFolder: join(top, "none"),
        },
        version: "0.1.0",
        policies: [join(folder(), "approved.yaml")],
      });
      assert(loaded.ok);
      return loaded.value.policy.layers.flatMap((l) =>
        l.rules.map((r) => [r.text, r.workspace === loaded.value.policy.root])
      );
    };
    assertEquals(await rules("ws"), [[`shell(git push) workspace ${workspace}`, true]]);
    assertEquals(await rules("other"), [[`shell(git push) workspace ${workspace}`, false]]);
  });
});
