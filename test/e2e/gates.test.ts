// Gates from outside: what `policy check` says of them, what refuses the start, how a run with one ends.
import { describe, test } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { type Machine, withMachine } from "../support/machine.ts";

const forced = `
skills:
  forced:
    - {skill: mainline-guardian, before: ["shell(git merge *)"], evidence: [git_diff], verdict: [PASS]}
    - {id: review, skill: mainline-guardian, before: finish, evidence: [read_file], verdict: [PASS, FAIL], gate_retries: 0}
`;

/** Arguments for \`writ\`: a policy with scripted replies. */
function scripted(m: Machine, replies: string, policy: string): readonly string[] {
  m.write("replies.yaml", replies);
  const text = `version: 1\nmodel: {provider: script, script: replies.yaml}\n${policy}`;
  return ["--policy", m.write("policy.yaml", text)];
}

describe("policy check says what each gate is worth", () => {
  const reason =
    "another program could do what the guarded call does; a box that the gate names, and that alone has what the call needs, would close that";
  test("in lines", async () => {
    await withMachine(async (m) => {
      const policy = m.write("policy.yaml", `version: 1${forced}`);
      const ran = await m.writ(["policy", "check", policy]);
      assertEquals([ran.code, ran.stdout], [
        0,
        `ok  user  ${policy}\n` +
        `gate  user.forced[0]  advice  ${policy}:4:7  ${reason}\n` +
        `gate  review  enforced  ${policy}:5:7  nothing but Writ ends a turn well\n`,
      ]);
    });
  });

  test("as JSON", async () => {
    await withMachine(async (m) => {
      const file = m.write("policy.yaml", `version: 1${forced}`);
      const ran = await m.writ(["policy", "check", "--json", file]);
      assertEquals(JSON.parse(ran.stdout).gates, [
        { gate: "user.forced[0]", at: { file, line: 4, col: 7 }, label: "advice", reason },
        {
          gate: "review",
          at: { file, line: 5, col: 7 },
          label: "enforced",
          reason: "nothing but Writ ends a turn well",
        },
      ]);
    });
  });
});

describe("the start is refused where a forced skill", () => {
  const big = `---\nname: broken\ndescription: d\n---\n${"word ".repeat(20_000)}\n`;
  const rows: readonly (readonly [name: string, skill: string | undefined, entry: string, said: string])[] = [
    ["is not there", undefined, "when: session", "broken"],
    ["is not there, for a gate", undefined, "before: finish, evidence: [git_diff]", "broken"],
    ["is broken", "---\nname: [\n---\nx\n", "when: session", "broken"],
    ["is broken, for a gate", "---\nname: [\n---\nx\n", "before: finish, evidence: [git_diff]", "broken"],
    ["is too large", big, "when: session", "tokens for active skills"],
  ];
  for (const [name, skill, entry, said] of rows) {
    test(name, async () => {
      await withMachine(async (m) => {
        if (skill !== undefined) m.write("config/writ/skills/broken/SKILL.md", skill);
        const policy = `skills: {active_tokens: 5000, forced: [{skill: broken, ${entry}}]}\n`;
        const ran = await m.writ(["run", ...scripted(m, '- text: "hello"\n', policy), "go"]);
        assertEquals([ran.code, ran.stdout], [2, ""], ran.stderr);
        assertStringIncludes(ran.stderr, said);
        assertStringIncludes(ran.stderr, "refused to start; nothing ran");
      });
    });
  }
});

describe("a run ends", () => {
  const look = "- call: {read_file: {path: src/a.txt}}\n";
  const verdict = (outcome: string) =>
    `- call: {complete_skill: {name: mainline-guardian, outcome: ${outcome}, summary: read}}\n`;
  const rows: readonly (readonly [name: string, replies: string, exit: number, reason: string])[] = [
    ["well when the gate is met", `${look}${verdict("PASS")}- text: done\n`, 0, "final"],
    ["with 10 when the verdict is FAIL", `${look}${verdict("FAIL")}- text: done\n`, 10, "fail"],
    ["with 6 when it is not met", "- text: done\n", 6, "gate_unmet"],
    [
      "with 6 when nobody could be asked either",
      "- call: {read_file: {path: /etc/hostname}}\n- text: done\n",
      6,
      "gate_unmet",
    ],
    [
      "with 5 when nobody could be asked, whatever the verdict",
      `- call: {read_file: {path: /etc/hostname}}\n${look}${verdict("FAIL")}- text: done\n`,
      5,
      "final",
    ],
    ["with 3 when the model fails", look, 3, "provider_error"],
  ];
  for (const [name, replies, exit, reason] of rows) {
    test(name, async () => {
      await withMachine(async (m) => {
        const args = scripted(m, replies, forced);
        const ran = await m.writ(["run", "--json", "--skill", "mainline-guardian", ...args, "go"]);
        const result = JSON.parse(ran.stdout);
        assertEquals(
          [ran.code, result.exit, result.reason, result.ok],
          [exit, exit, reason, exit === 0],
          ran.stderr,
        );
        if (exit === 10) {
          assertEquals(result.message, "the verdict of `mainline-guardian` is FAIL (gate `review`)");
        }
      });
    });
  }

  test("with a line about the verdict, for people", async () => {
    await withMachine(async (m) => {
      const replies = `${look}${verdict("FAIL")}- text: done\n`;
      const ran = await m.writ([
        "run",
        "--skill",
        "mainline-guardian",
        ...scripted(m, replies, forced),
        "go",
      ]);
      assertEquals([ran.code, ran.stdout], [10, "done\n"]);
      assertStringIncludes(ran.stderr, "the verdict of `mainline-guardian` is FAIL (gate `review`)");
    });
  });
});

describe("a resumed session", () => {
  test("has neither evidence nor verdict", async () => {
    await withMachine(async (m) => {
      const gate = `
sandbox: {mode: "off"}
permissions: {allow: ["shell(true *)"]}
skills:
  scope: session
  forced: [{id: ship, skill: mainline-guardian, before: ["shell(true ship *)"], evidence: [read_file], verdict: [PASS]}]
`;
      const look = "- call: {read_file: {path: src/a.txt}}\n";
      const verdict = "- call: {complete_skill: {name: mainline-guardian, outcome: PASS, summary: read}}\n";
      const ship = "- call: {shell: {command: true ship}}\n- text: done\n";
      const first = await m.writ([
        "run",
        "--skill",
        "mainline-guardian",
        ...scripted(m, `${look}${verdict}- text: done\n`, gate),
        "go",
      ]);
      assertEquals(first.code, 0, first.stderr);
      const second = await m.writ(["run", "--continue", ...scripted(m, ship, gate), "go on"]);
      assertEquals(second.code, 0, second.stderr);
      const blocked = m.events().flatMap((e) => e.type === "gate.blocked" ? e.data.missing : []);
      assertEquals(blocked.map((text) => text.split(" (")[0]?.slice(0, 27)), [
        "evidence missing: read_file",
        "verdict missing: complete_s",
      ]);
      assertStringIncludes(blocked[0] ?? "", "was before the session was resumed");
    });
  });
});
