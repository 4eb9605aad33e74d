// "always" at the prompt, through the executable: the rule that was shown is in the user's own policy, and answers the next
// run. The terminal is made by `script` of util-linux.
import { describe, test } from "bun:test";
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { eventsOf, type Machine, soundLog, withMachine } from "../support/machine.ts";
import { binary } from "../support/runtimes.ts";

const noTerminal = !/util-linux/.test(spawnSync("script", ["--version"], { encoding: "utf8" }).stdout ?? "");
const script = 'model: {provider: script, script: replies.yaml}\nsandbox: {mode: "off"}\n';
const replies = `- calls:
    - {shell: {command: "touch 'a b'"}}
    - {shell: {command: "touch 'a b'"}}
- text: done
`;

/** One run at a terminal; answers are typed one for each question. */
async function runAtTerminal(m: Machine, line: string, answers: readonly string[]): Promise<string> {
  const running = m.startProgram(["script", "-qec", `"${binary}" run ${line} go`, "/dev/null"], {
    input: { open: true },
    env: { TERM: "xterm", SHELL: "/bin/sh", NO_COLOR: "1" },
  });
  const shown = () => running.stdout.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, "").replaceAll("\r", "");
  for (const [index, answer] of answers.entries()) {
    await running.until("stdout", new RegExp(`(?:allow\\?[^]*){${index + 1}}`));
    running.type(`${answer}\r`);
  }
  await running.ended;
  return shown();
}

describe("always", () => {
  test.skipIf(noTerminal)("writes the rule that was shown, once, and the next run asks nobody", async () => {
    await withMachine(async (m) => {
      m.write("config/writ/policy.yaml", `version: 1\n${script}`);
      m.write("config/writ/replies.yaml", replies);
      const file = join(m.top, "config/writ/policy.d/approved.yaml");
      const shown = await runAtTerminal(m, "", ["a"]);
      assertStringIncludes(shown, "  a  always in this workspace, as the rule: shell(touch 'a b')\n");
      assertStringIncludes(shown, `  kept in ${file}\n`);
      const first = eventsOf(await soundLog(m), "permission.resolved").map((e) => e.data.answer);
      const rule = "shell(touch 'a b')";
      assertEquals(first, [{ by: "user", scope: "always", rule }, { by: "grant", rule }]);

      const text = readFileSync(file, "utf8");
      assertEquals(statSync(file).mode & 0o777, 0o600);
      assertMatch(
        text,
        /^ {4}- \{ id: approved-\w{10}, tool: shell, command: touch 'a b', workspace: \/.* \}\n$/m,
      );
      const checked = await m.writ(["policy", "check"]);
      assertEquals([checked.code, checked.stderr], [0, ""]);

      await runAtTerminal(m, "", []);
      const second = eventsOf(await soundLog(m), "permission.resolved").map((e) => e.data);
      assertEquals(second.map((d) => [d.effect, d.answer]), [["allow", undefined], ["allow", undefined]]);
      assertMatch(second[0]?.reason ?? "", /^allow by rule approved-\w{10} .*approved\.yaml:6:7$/);
      assertEquals(readFileSync(file, "utf8"), text);

      // Elsewhere it says nothing.
      const elsewhere = await m.writ(["explain", "-C", "../tmp", "shell", "touch 'a b'"]);
      assertStringIncludes(elsewhere.stdout, "it is for the workspace");
      assertStringIncludes(elsewhere.stdout, "ask by the builtin default for risk write");
    });
  });

  test.skipIf(noTerminal)("is not offered where --policy stands in the place of the user's own", async () => {
    await withMachine(async (m) => {
      m.write("replies.yaml", replies);
      const policy = m.write("policy.yaml", `version: 1\n${script}`);
      const shown = await runAtTerminal(m, `--policy ${policy}`, ["a", "s"]);
      assertStringIncludes(shown, "     not for good: your own policy is replaced by --policy in this run\n");
      const rule = "shell(touch 'a b')";
      assertEquals(eventsOf(await soundLog(m), "permission.resolved").map((e) => e.data.answer), [
        { by: "user" },
        { by: "user", scope: "session", rule },
      ]);
      assertEquals(existsSync(join(m.top, "config/writ/policy.d")), false);
    });
  });
});
