// Command tools, pins and secrets through the executable: a skill brings a tool, rules and gates meet it, and it leaves.
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { describe, test } from "bun:test";
import { chmodSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { eventsOf, type Machine, soundLog, withMachine } from "../support/machine.ts";

const folder = "config/writ/skills/deploy";
const off = 'model: {provider: script, script: replies.yaml}\nsandbox: {mode: "off"}\n';

function skill(m: Machine, tools: readonly object[] = [tool(["./target.sh"])]): void {
  m.write(
    `${folder}/SKILL.md`,
    "---\nname: deploy\ndescription: Puts a release in place.\n---\nAsk for the target.\n",
  );
  chmodSync(
    m.write(
      `${folder}/target.sh`,
      '#!/bin/sh\nread -r args\necho "$args in $(basename "$SKILL_WORKSPACE") [$TOKEN]"\n',
    ),
    0o755,
  );
  m.write(`${folder}/tools.json`, JSON.stringify(tools));
}

function tool(command: readonly string[], name = "target") {
  return { name, description: "Says where.", input_schema: { type: "object" }, command };
}

function policy(m: Machine, text: string): void {
  m.write("config/writ/policy.yaml", `version: 1\n${off}${text}`);
}

const script = (m: Machine, replies: string) => m.write("config/writ/replies.yaml", replies);
const loadAndCall =
  "- call: {load_skill: {name: deploy}}\n- call: {target: {release: '1'}}\n- {text: done}\n";

async function resultsOf(m: Machine): Promise<readonly string[]> {
  return eventsOf(await soundLog(m), "tool.completed").map((e) => e.data.result);
}

describe("a tool of a skill", () => {
  test("is called in the reply after the load, and is gone in the next turn", async () => {
    await withMachine(async (m) => {
      skill(m);
      policy(m, "permissions: {allow: [skill.deploy.target]}\n");
      script(m, loadAndCall);
      assertEquals((await m.writ(["run", "go"])).stdout, "done\n");
      assertEquals(await resultsOf(m), [
        'loaded skill "deploy" (1 specialized tools registered)',
        '{"release":"1"} in repo []\n',
      ]);
      script(m, "- call: {target: {}}\n- {text: gone}\n");
      await m.writ(["run", "--continue", "again"]);
      assertStringIncludes(
        (await resultsOf(m)).at(-1) ?? "",
        "no tool `target`: it comes with the skill `deploy`",
      );
    });
  });

  const met: readonly (readonly [string, readonly string[], string, RegExp])[] = [
    [
      "denied by its words",
      ["bash", "-c", "gh pr merge 1"],
      "deny: ['shell(gh pr merge *)'], ",
      /^denied: deny by rule user\.deny\[0\]/,
    ],
    [
      "denied by its name",
      ["true"],
      "deny: ['skill.*'], ",
      /^denied: deny by rule user\.deny\[0\] \(skill\.\*\)/,
    ],
    ["asked, and nobody is there", ["gh", "pr", "view"], "ask: ['shell(gh *)'], ", /nobody can be asked/],
  ];
  for (const [name, command, rules, said] of met) {
    test(`is ${name}`, async () => {
      await withMachine(async (m) => {
        skill(m, [tool(command)]);
        policy(m, `permissions: {${rules}allow: [skill.deploy.target]}\n`);
        script(m, loadAndCall);
        await m.writ(["run", "go"]);
        assertMatch((await resultsOf(m)).at(-1) ?? "", said);
      });
    });
  }

  test("is held back by a gate on what its words hide", async () => {
    await withMachine(async (m) => {
      skill(m, [tool(["env", "A=1", "sh", "-c", "gh pr merge 1"])]);
      policy(
        m,
        "skills: {forced: [{id: review, before: ['shell(gh pr merge *)'], evidence: [git_diff]}]}\npermissions: {allow: [skill.deploy.target]}\n",
      );
      script(m, loadAndCall);
      await m.writ(["run", "go"]);
      assertEquals(eventsOf(await soundLog(m), "gate.blocked").map((e) => e.data.gate), ["review"]);
      assertEquals(eventsOf(await soundLog(m), "tool.started").map((e) => e.data.tool), ["load_skill"]);
    });
  });

  const escapes: readonly (readonly [string, readonly string[], ((m: Machine) => void)?])[] = [
    ["`..`", ["../../../../../bin/sh"]],
    ["an absolute path", ["/bin/sh"]],
    ["a link", ["./link"], (m) => symlinkSync("/bin/sh", join(m.top, folder, "link"))],
  ];
  for (const [name, command, make] of escapes) {
    test(`that leads out by ${name} refuses its skill and no other`, async () => {
      await withMachine(async (m) => {
        skill(m, [tool(command)]);
        make?.(m);
        policy(m, "");
        const listed = JSON.parse((await m.writ(["skill", "list", "--json"])).stdout);
        const errors: readonly { readonly code: string; readonly message: string }[] = listed.errors;
        assertEquals(errors.map((e) => e.code), ["tools-json-invalid"]);
        assertStringIncludes(errors[0]?.message ?? "", "leads out of the skill's folder");
        assert(listed.skills.length > 0);
      });
    });
  }

  test("is explained by its identity", async () => {
    await withMachine(async (m) => {
      skill(m, [tool(["bash", "-c", "gh pr merge 1"])]);
      policy(
        m,
        "permissions: {deny: [{id: merges, tool: shell, command: gh pr merge *}], allow: [skill.deploy.target]}\n",
      );
      const explained = await m.writ(["explain", "skill.deploy.target", '{"release": "1"}', "--json"]);
      const call = JSON.parse(explained.stdout);
      assertEquals([call.tool, call.decision, call.sourcedBy, call.causes[0].rule], [
        "skill.deploy.target",
        "deny",
        ["skill:deploy"],
        "merges",
      ]);
      const unknown = await m.writ(["explain", "skill.deploy.nothing", "{}"]);
      assertEquals(unknown.code, 2);
      assertStringIncludes(unknown.stderr, "no tool `skill.deploy.nothing`; tools: skill.deploy.target");
    });
  });
});

describe("a pin", () => {
  test("is printed, holds, and refuses the start of a forced skill that changed", async () => {
    await withMachine(async (m) => {
      skill(m);
      policy(m, "permissions: {allow: [skill.deploy.target]}\n");
      const pinned = await m.writ(["skill", "pin", "deploy"]);
      assertMatch(pinned.stdout, /^pins: \{deploy: "sha256:[0-9a-f]{64}"\}\n$/);
      const byPath = await m.writ(["skill", "pin", join(m.top, folder), "--json"]);
      assertEquals(
        JSON.parse(byPath.stdout).pins.map((p: { skill: string; files: number }) => [p.skill, p.files]),
        [
          ["deploy", 3],
        ],
      );
      policy(
        m,
        `skills: {forced: [{skill: deploy, when: session}], ${pinned.stdout.trim()}, require_pins: true}\n` +
          "permissions: {allow: [skill.deploy.target]}\n",
      );
      script(m, "- call: {target: {}}\n- {text: done}\n");
      assertEquals((await m.writ(["run", "go"])).stdout, "done\n");
      assertEquals(await resultsOf(m), ["{} in repo []\n"]);
      m.write(`${folder}/target.sh`, "#!/bin/sh\necho other\n");
      const refused = await m.writ(["run", "go"]);
      assertEquals([refused.code, refused.stdout], [2, ""]);
      const again = await m.writ(["skill", "pin", join(m.top, folder)]);
      for (const pin of [pinned, again]) {
        assertStringIncludes(refused.stderr, /sha256:\w+/.exec(pin.stdout)?.[0] ?? "-");
      }
    });
  });

  test("is wanted of every skill that does not ship with Writ", async () => {
    await withMachine(async (m) => {
      skill(m);
      policy(m, "skills: {require_pins: true}\n");
      const listed = JSON.parse((await m.writ(["skill", "list", "--json"])).stdout);
      assertEquals(listed.absent.map((a: { name: string; code: string }) => [a.name, a.code]), [[
        "deploy",
        "pin-missing",
      ]]);
      const shown = await m.writ(["policy", "show", "--origin"]);
      assertMatch(shown.stdout, /skills\.require_pins: true +# user +\S+policy\.yaml:4:24/);
    });
  });
});

test("a secret reaches the tool of its skill and no log", async () => {
  await withMachine(async (m) => {
    skill(m);
    m.write("token", "s3cret-of-deploy\n");
    policy(
      m,
      `skills: {secrets: {deploy: {TOKEN: {file: ${m.top}/token}}}}\npermissions: {allow: [skill.deploy.target]}\n`,
    );
    script(m, loadAndCall);
    const ran = await m.writ(["run", "go", "--json"]);
    assertEquals((await resultsOf(m)).at(-1), '{"release":"1"} in repo [[redacted:key]]\n');
    assert(!`${ran.stdout}${ran.stderr}`.includes("s3cret-of-deploy"));
  });
});
