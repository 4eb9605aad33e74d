// `writ policy check` and the start of a run: all faults in one list, and warnings about what cannot have been meant.
import { describe, test } from "bun:test";
import { assertEquals } from "@std/assert";
import { withMachine } from "../support/machine.ts";
import { binary } from "../support/runtimes.ts";
import { withoutBubblewrap } from "../support/sandbox.ts";

const codes = (stderr: string) =>
  stderr.trim().split("\n").map((line) =>
    line.replace(/^.*?policy\.yaml:(\d+:\d+): (\w+): .* \[([\w-]+)\]$/, "$1 $2 $3")
  );

describe("policy check", () => {
  test("lists a wrong key, a wrong rule and a missing forced skill together", async () => {
    await withMachine(async (m) => {
      const policy = m.write(
        "policy.yaml",
        `version: 1
nmae: x
skills: {forced: [{skill: nosuch, when: session}]}
permissions: {allow: [read_fle]}
`,
      );
      const ran = await m.writ(["policy", "check", policy]);
      assertEquals([ran.code, ran.stdout, codes(ran.stderr)], [2, "", [
        "2:1 error unknown-key",
        "3:27 error forced-skill-missing",
        "4:23 error unknown-tool",
        "3 problems",
      ]]);
    });
  });

  test("says one problem, with its place, for a missing forced skill", async () => {
    await withMachine(async (m) => {
      const policy = m.write(
        "policy.yaml",
        "version: 1\nskills: {forced: [{skill: nosuch, when: session}]}\n",
      );
      const ran = await m.writ(["policy", "check", policy]);
      assertEquals([ran.code, codes(ran.stderr)], [2, ["2:27 error forced-skill-missing", "1 problem"]]);
    });
  });

  const doubtful = `version: 1
model: {provider: script, script: nowhere.yaml}
skills:
  sources: [builtin, {path: nowhere}]
  triggers: {nosuch: {patterns: [a, b]}, mainline-guardian: {patterns: [c]}}
  disabled: [other, "gone-*"]
permissions:
  allow: ["edit_file(src\\\\x)", "shell(git status)", "shell(git diff *)"]
`;
  const warnings = [
    "4:22 warning absent-folder",
    "5:34 warning unknown-skill",
    "6:14 warning unknown-skill",
    "8:11 warning backslash",
  ];

  test("warns of what cannot have been meant, and refuses a script that is not there", async () => {
    await withMachine(async (m) => {
      const ran = await m.writ(["policy", "check", m.write("policy.yaml", doubtful)]);
      assertEquals([ran.code, codes(ran.stderr)], [2, ["2:35 error absent-file", ...warnings, "5 problems"]]);
    });
  });

  test("warns of commands where a sandbox is required and none can be had", async () => {
    await withMachine(async (m) => {
      const policy = m.write(
        "policy.yaml",
        `version: 1\nsandbox: {backend: bwrap}\npermissions: {allow: ["shell(git status)", "shell(git diff *)"]}\n`,
      );
      const ran = await m.program(withoutBubblewrap([binary, "policy", "check", policy]));
      assertEquals([ran.code, codes(ran.stderr)], [0, ["3:23 warning no-sandbox"]]);
    });
  });

  test("and a run says the warnings once, save with --quiet", async () => {
    await withMachine(async (m) => {
      const policy = m.write("policy.yaml", doubtful);
      m.write("nowhere.yaml", "- text: Done.\n");
      const checked = await m.writ(["policy", "check", policy]);
      assertEquals([checked.code, codes(checked.stderr)], [0, warnings]);
      const ran = await m.writ(["run", "--policy", policy, "go"]);
      assertEquals([ran.code, codes(ran.stderr).filter((line) => / warning /.test(line))], [0, warnings]);
      const quiet = await m.writ(["run", "--quiet", "--policy", policy, "go"]);
      assertEquals([quiet.code, quiet.stderr], [0, ""]);
    });
  });
});

test("the workspace's own policy is judged once, as the project's", async () => {
  await withMachine(async (m) => {
    const file = m.write("repo/.writ/policy.yaml", 'version: 1\npermissions: {deny: ["shell(sudo *)"]}\n');
    const ran = await m.writ(["policy", "check", file]);
    assertEquals([ran.code, ran.stdout, ran.stderr], [0, `ok  project  ${file}\n`, ""]);
  });
});

test("patterns of the policy stand with the skill, and a wrong name is a fault for explain too", async () => {
  await withMachine(async (m) => {
    const policy = m.write(
      "policy.yaml",
      "version: 1\nskills: {triggers: {mainline-guardian: {patterns: [ship it]}}}\n",
    );
    const shown = await m.writ(["skill", "show", "mainline-guardian", "--policy", policy]);
    assertEquals(/^by policy +ship it {2}at .*policy\.yaml:2:52$/m.test(shown.stdout), true, shown.stdout);
    const listed = await m.writ(["skill", "list", "--policy", policy]);
    assertEquals(
      /patterns: .*"ship it" by policy at .*policy\.yaml:2:52/.test(listed.stdout),
      true,
      listed.stdout,
    );
    const ran = await m.writ(["explain", "--message", "/skill nosuch hi"]);
    assertEquals([ran.code, ran.stdout, /no skill `nosuch`/.test(ran.stderr)], [2, "", true]);
  });
});
