// `writ explain` through the executable: the same decision as a run's log and as the model was told, in words that a
// stranger understands.
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { describe, test } from "bun:test";
import type { Cause } from "../../src/core/decision.ts";
import { showCause } from "../../src/core/decision.ts";
import { eventsOf, type Machine, soundLog, withMachine } from "../support/machine.ts";

const policy = `version: 1
name: explained
model: {provider: script, script: replies.yaml}
sandbox: {mode: "off"}
permissions:
  deny:
    - {id: secrets, tool: "*", path: ["@secrets"], reason: credentials}
    - {id: no-sudo, tool: shell, command: "sudo *"}
  allow:
    - {id: look, tool: shell, command: ["git diff *", "git status"]}
    - edit_file(src/**)
tools: {enabled: [read_file, write_file, edit_file, shell]}
skills:
  forced:
    - {id: merge, skill: mainline-guardian, before: ["shell(gh pr merge *)"], evidence: [git_diff], verdict: [PASS]}
`;

type Call = readonly [tool: string, args: { readonly [name: string]: string }];
const calls: readonly Call[] = [
  ["shell", { command: "git diff | sh" }],
  ["shell", { command: "git status; sudo rm -rf /" }],
  ["shell", { command: "gh pr merge 1" }],
  ["shell", { command: "git diff --output=x" }],
  ["shell", { command: "cat .env" }],
  ["shell", { command: "echo $(" }],
  ["read_file", { path: "../x" }],
  ["read_file", { path: ".env" }],
  ["edit_file", { path: "test/a.txt", old: "a", new: "b" }],
  ["write_file", { path: "src/b.txt", content: "x" }],
];

type Explained = {
  readonly effect: string;
  readonly decision: string;
  readonly reason: string;
  readonly causes: readonly Cause[];
};

async function explained(m: Machine, tool: string, args: object, file: string): Promise<Explained> {
  const ran = await m.writ(
    ["explain", "--policy", file, "--unattended", "--json", tool, JSON.stringify(args)],
  );
  assertEquals([ran.code, ran.stderr], [0, ""]);
  return JSON.parse(ran.stdout) as Explained;
}

describe("writ explain", () => {
  test("says what the log of a run says of the same call, and what its model was told", async () => {
    await withMachine(async (m) => {
      const file = m.write("policy.yaml", policy);
      // One turn for each call: what a call leaves behind must not meet the next one.
      for (const [tool, args] of calls) {
        m.write("replies.yaml", `- call: {${tool}: ${JSON.stringify(args)}}\n- text: done\n`);
        await m.writ(["run", "--policy", file, "go"]);
        const events = await soundLog(m);
        const resolved = eventsOf(events, "permission.resolved")[0]!.data;
        const told = eventsOf(events, "tool.completed")[0]!.data.result;
        const said = await explained(m, tool, args, file);
        const { risk, effect, causes, reason, decision } = resolved;
        assertEquals(
          { tool, risk, effect, causes, reason, decision },
          {
            tool: resolved.tool,
            risk,
            effect: said.effect as typeof effect,
            causes: said.causes,
            reason: said.reason,
            decision: said.decision as typeof decision,
          },
        );
        assertEquals(decision, "deny", JSON.stringify(args));
        assertStringIncludes(told, `denied: ${reason}`);
        for (const cause of causes.filter((c) => c.effect === effect)) {
          assertStringIncludes(told, showCause(cause));
        }
      }
    });
  });

  const texts:
    readonly (readonly [name: string, args: readonly string[], lines: readonly (string | RegExp)[]])[] = [
      ["a pipe into a shell", ["shell", "git diff | sh"], [
        "ask because no allow rule names it: `sh` runs what it reads [sh]",
        /^1\. command `git diff`: allow \(risk read\)$/m,
        /^ {3}decides {3}allow by rule look \(shell\(git diff \*, git status\)\) at .*\/policy\.yaml:10:7$/m,
        /^2\. command `sh`: ask \(risk execute\)$/m,
      ]],
      ["a gated merge", ["shell", "gh pr merge 1"], [
        /^deny: gate: merge at .*\/policy\.yaml:15:7: evidence missing: git_diff; verdict missing: /m,
        /^ {3}says {6}deny by gate merge at .*\/policy\.yaml:15:7, until there is:$/m,
        /^ {13}evidence missing: git_diff$/m,
        "complete_skill mainline-guardian with outcome PASS",
      ]],
      ["a path that leaves the workspace", ["read_file", "../x"], [
        /^ask because no allow rule names it: `.*\/x` lies outside the workspace$/m,
        /^1\. path `\.\.\/x` as read_file: ask \(risk read\)$/m,
        /^ {3}leads to {2}\/.*\/x$/m,
      ]],
      ["a private address in another spelling", ["fetch_url", "http://2130706433/"], [
        /^deny by rule builtin\.private \(fetch_url\(@private\)\), built in: a private or loopback address$/m,
        /^1\. host `127\.0\.0\.1` of `http:\/\/2130706433\/`, private or loopback: deny \(risk network\)$/m,
      ]],
      ["a near miss", ["shell", "git stash"], [
        /^near miss: allow rule look \(.*\) at .*\/policy\.yaml:10:7: word 2 is `diff`, the call has `stash` \[git stash\]$/m,
      ]],
      ["a path near a rule", ["edit_file", "test/a.txt"], [
        /^near miss: allow rule user\.allow\[1\] \(edit_file\(src\/\*\*\)\) at .*\/policy\.yaml:11:7: segment 1 is `src`, the path has `test`/m,
      ]],
      ["a tool that is not offered", ["git_diff", "."], [
        /^note: `git_diff` is not in `tools\.enabled` of this policy: no model is offered it$/m,
      ]],
      ["a tool of the engine", ["load_skill", "mainline-guardian"], [/^allow by the builtin default/m]],
    ];
  for (const [name, args, lines] of texts) {
    test(`${name}, in words`, async () => {
      await withMachine(async (m) => {
        const ran = await m.writ(["explain", "--policy", m.write("policy.yaml", policy), ...args]);
        assertEquals([ran.code, ran.stderr], [0, ""]);
        for (const line of lines) {
          if (typeof line === "string") assertStringIncludes(ran.stdout, line);
          else assertMatch(ran.stdout, line);
        }
      });
    });
  }

  test("takes the skills that policy forces for active, with their bounds", async () => {
    await withMachine(async (m) => {
      m.write(
        "config/writ/skills/house/SKILL.md",
        "---\nname: house\ndescription: Rules.\nallowed_tools: [read_file]\n---\nBe brief.\n",
      );
      const file = m.write(
        "policy.yaml",
        "version: 1\npermissions:\n  allow: [write_file]\nskills: {forced: [{skill: house, when: session, bounding: true}]}\n",
      );
      const args = { path: "src/b.txt", content: "x" };
      const said = await explained(m, "write_file", args, file);
      assertEquals([said.effect, said.reason], ["deny", "tool not in skill.allowed_tools"]);
      const words = await m.writ(["explain", "--policy", file, "write_file", "src/b.txt"]);
      assertStringIncludes(words.stdout, "with skill:house active");
      assert(words.stdout.includes("skill house allows read_file"));
    });
  });
});
