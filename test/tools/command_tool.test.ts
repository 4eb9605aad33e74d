import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { afterEach, beforeEach, describe, test } from "bun:test";
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inspectOffline } from "../../src/agent/inspect.ts";
import type { ToolContext } from "../../src/agent/ports.ts";
import type { CommandTool } from "../../src/core/command_tool.ts";
import { decide } from "../../src/core/decide.ts";
import type { Facts } from "../../src/core/facts.ts";
import { evidenceClaims } from "../../src/core/evidence.ts";
import { gateBlocks, gatesOf } from "../../src/core/gate.ts";
import { coveringGrant, grantFor } from "../../src/core/grant.ts";
import { emptyGateState } from "../../src/core/gate_state.ts";
import type { Args } from "../../src/core/message.ts";
import type { Gate } from "../../src/core/policy.ts";
import { commandTool, type SkillSide } from "../../src/tools/command_tool.ts";
import { type Entries, layerOf, ruleOf } from "../support/rules.ts";
import { makeWorkspace, type Workspace } from "./workspace.ts";

let ws: Workspace;
let folder = "";
beforeEach(() => {
  ws = makeWorkspace();
  folder = join(ws.home, "deploy");
  mkdirSync(folder);
});
afterEach(() => ws.remove());

type Command = CommandTool["command"];

function made(command: Command, more: Partial<CommandTool> = {}, side: Partial<SkillSide> = {}) {
  return commandTool(
    { name: "run", description: "Runs it.", inputSchema: { type: "object" }, command, ...more },
    {
      name: "deploy",
      folder,
      runFolder: async () => ({ ok: true, folder }),
      secrets: async () => ({ ok: true, env: {} }),
      ...side,
    },
  );
}

function script(text: string, name = "run.sh"): Command {
  writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`);
  chmodSync(join(folder, name), 0o755);
  return [`./${name}`];
}

async function run(
  command: Command,
  { args = {}, at = {}, spec = {}, side = {} }: {
    readonly args?: Args;
    readonly at?: Partial<ToolContext>;
    readonly spec?: Partial<CommandTool>;
    readonly side?: Partial<SkillSide>;
  } = {},
) {
  return await made(command, spec, side).run(args, { ...ws.at, ...at });
}

const limited = (more: Partial<ToolContext["shell"]>) => ({ shell: { ...ws.at.shell, ...more } });

describe("a command tool gives back what its command wrote", () => {
  const rows: readonly (readonly [string, string, Args, string])[] = [
    ["arguments as one line of JSON", "cat", { b: [1, "é"], a: null }, '{"a":null,"b":[1,"é"]}\n'],
    ["arguments by the name of the stream", "cat /dev/stdin", { a: 1 }, '{"a":1}\n'],
    ["standard error is left out", "echo no >&2; echo yes", {}, "yes\n"],
    ["several streams by name", "echo e > /dev/stderr; echo o > /dev/stdout", {}, "o\n"],
    ["input that is not read", "exec <&-; echo done", { a: "x".repeat(300_000) }, "done\n"],
  ];
  for (const [name, text, args, content] of rows) {
    test(name, async () => {
      assertEquals(await run(script(text), { args }), { ok: true, content, data: { exit: 0 } });
    });
  }

  test("in the skill's folder, with the workspace by name", async () => {
    assertEquals((await run(script('pwd; echo "$SKILL_WORKSPACE"'))).content, `${folder}\n${ws.root}\n`);
  });

  test("without a shell: what a shell would expand stands as it is", async () => {
    assertEquals((await run(["printf", "%s|", "$HOME", "a;b", "`id`", "*"])).content, "$HOME|a;b|`id`|*|");
  });

  test("nothing, and no evidence", async () => {
    assertEquals(await run(["true"]), { ok: true, content: "[no output]", data: { exit: 0 }, partial: true });
  });

  test("cut, and no evidence", async () => {
    const { content, ...rest } = await run(script("seq 1 10000"), { at: limited({ maxOutput: 1000 }) });
    assertEquals(rest, { ok: true, data: { exit: 0 }, partial: true });
    assert(content.length < 1200);
  });
});

describe("a command tool that fails", () => {
  const rows: readonly (readonly [string, () => Command, object, string])[] = [
    ["shows the end of standard error", () => script("echo out; seq 1 9000 >&2; exit 3"), {
      code: "exit",
      data: { exit: 3 },
    }, "9000\n[exit 3]"],
    ["shows its output when there are no errors", () => script("echo why; exit 1"), {
      code: "exit",
      data: { exit: 1 },
    }, "why\n[exit 1]"],
    ["by a signal", () => script("kill -9 $$"), {
      code: "exit",
      data: { exit: null, signal: "SIGKILL" },
      unknown: true,
    }, "[ended by SIGKILL]"],
    ["by what is no text", () => script("printf '\\377\\376'"), {
      code: "not_text",
      data: { exit: 0 },
      unknown: true,
    }, "[its output is not UTF-8]"],
  ];
  for (const [name, command, expected, end] of rows) {
    test(name, async () => {
      const { content, ...rest } = await run(command());
      assertEquals(rest, { ok: false, ...expected });
      assert(content.endsWith(end), content.slice(-200));
      assert(content.length < 5000);
    });
  }

  test("because there is no such program", async () => {
    const { ok, code } = await run(["no-such-program-here"]);
    assertEquals([ok, code], [false, "not_found"]);
  });

  test("because a file of the folder was named as a word of PATH", async () => {
    script("true");
    assertStringIncludes((await run(["run.sh"])).content, "is written `./run.sh` in its tools.json");
  });

  test("because the file may not be executed", async () => {
    writeFileSync(join(folder, "plain.sh"), "true\n");
    assertEquals((await run(["./plain.sh"])).code, "not_executable");
  });

  test("because it never ends: its own limit counts, and what it started is gone", async () => {
    const outcome = await run(script("sleep 1000 & sleep 1000"), { spec: { timeoutMs: 200 } });
    assertEquals([outcome.code, outcome.unknown], ["timeout", true]);
  });

  test("because it is cancelled", async () => {
    const stop = new AbortController();
    const running = run(script("sleep 1000"), { at: { signal: stop.signal } });
    stop.abort();
    assertEquals((await running).code, "cancelled");
  });

  test("because it writes without end", async () => {
    const outcome = await run(["yes"]);
    assertEquals([outcome.code, outcome.unknown], ["output_limit", true]);
    assert(outcome.content.length < 5000);
  });

  test("because no command may run at all", async () => {
    const { code, content } = await run(["true"], { at: { shellRefused: "no sandbox" } });
    assertEquals([code, content], ["sandbox_unavailable", "no sandbox"]);
  });

  test("because a link was put in the program's place", async () => {
    const command = script("true");
    rmSync(join(folder, "run.sh"));
    symlinkSync("/bin/ls", join(folder, "run.sh"));
    assertEquals((await run(command)).code, "program_outside");
  });

  test("because a link was put in the folder's place", async () => {
    const command = script("true");
    renameSync(folder, `${folder}-real`);
    symlinkSync(`${folder}-real`, folder);
    assertEquals((await run(command)).code, "program_outside");
  });

  test("because its folder is not what it was", async () => {
    const side = {
      runFolder: async () => ({ ok: false, code: "skill_changed", message: "changed" } as const),
    };
    assertEquals(await run(["true"], { side }), { ok: false, code: "skill_changed", content: "changed" });
  });

  test("because a secret is missing", async () => {
    const side = { secrets: async () => ({ ok: false, message: "no TOKEN" } as const) };
    assertEquals(await run(["true"], { side }), { ok: false, code: "secret_missing", content: "no TOKEN" });
  });
});

test("secrets are in the environment of that one child", async () => {
  const side = { secrets: async () => ({ ok: true, env: { TOKEN: "s3cret-value" } } as const) };
  assertEquals((await run(script('echo "$TOKEN"'), { side })).content, "s3cret-value\n");
  assertEquals((await run(script('echo "[$TOKEN]"'))).content, "[]\n");
});

function factsOf(command: Command, args: Args = {}, more: Partial<CommandTool> = {}): Facts {
  return inspectOffline(made(command, more), args, { place: ws.at, mode: "interactive", sourcedBy: [] });
}

describe("risk of a command tool", () => {
  const rows: readonly (readonly [Command, CommandTool["risk"], Facts["risk"]])[] = [
    [["cat", "a"], undefined, "execute"],
    [["cat", "a"], "read", "execute"],
    [["cat", "a"], "network", "network"],
    [["curl", "https://a.example"], undefined, "network"],
    [["rm", "-rf", "/"], "read", "destructive"],
    [["bash", "-c", "git push --force"], undefined, "destructive"],
  ];
  for (const [command, risk, expected] of rows) {
    test(`${command.join(" ")}, declared ${risk ?? "nothing"}: ${expected}`, () =>
      assertEquals(factsOf(command, {}, risk === undefined ? {} : { risk }).risk, expected));
  }
});

describe("decisions on a command tool", () => {
  const merge: Command = ["gh", "pr", "merge", "1"];
  const inner: Command = ["bash", "-c", "gh pr merge 1"];
  const rows: readonly (readonly [string, Command, Entries, string, Args?])[] = [
    ["nothing said", merge, {}, "ask"],
    ["a rule for the tool", merge, { allow: ["skill.deploy.run"] }, "allow"],
    ["a rule for the tool covers what it runs inside", inner, { allow: ["skill.deploy.run"] }, "allow"],
    ["a glob does not name what is not understood", inner, { allow: ["skill.deploy.*"] }, "ask"],
    ["a glob covers what is plain", merge, { allow: ["skill.deploy.*"] }, "allow"],
    ["a rule for another skill", merge, { allow: ["skill.other.run"] }, "ask"],
    ["a rule that allows the command to shell", merge, { allow: ["shell(gh pr merge *)"] }, "ask"],
    ["a rule that allows shell", merge, { allow: ["shell"] }, "ask"],
    ["a denied command", merge, { allow: ["skill.deploy.run"], deny: ["shell(gh pr merge *)"] }, "deny"],
    [
      "a denied command inside",
      inner,
      { allow: ["skill.deploy.run"], deny: ["shell(gh pr merge *)"] },
      "deny",
    ],
    ["a denied wrapped command", ["env", "A=1", "timeout", "9", "gh", "pr", "merge"], {
      allow: ["skill.deploy.run"],
      deny: ["shell(gh pr merge *)"],
    }, "deny"],
    ["an asked command", merge, { allow: ["skill.deploy.run"], ask: ["shell(gh *)"] }, "ask"],
    ["shell denied as a whole", merge, { allow: ["skill.deploy.run"], deny: ["shell"] }, "deny"],
    ["the tool denied", merge, { allow: ["*"], deny: ["skill.deploy.run"] }, "deny"],
    ["a command of the tool denied", merge, {
      allow: ["skill.deploy.run"],
      deny: [{ tool: "skill.*", command: "gh *" }],
    }, "deny"],
    ["a path denied to reading", ["cat", "/etc/hostname"], {
      allow: ["skill.deploy.run"],
      deny: [{ tool: "read_file", path: "/etc/**" }],
    }, "deny"],
    ["a path outside, the tool named", ["cat", "/etc/hostname"], { allow: ["skill.deploy.run"] }, "allow"],
    ["a path outside, a glob", ["cat", "/etc/hostname"], { allow: ["skill.*"] }, "ask"],
    ["destructive, the tool named", ["rm", "-rf", "x"], { allow: ["skill.deploy.run"] }, "ask", { a: "1" }],
    [
      "destructive, the exact call named",
      ["rm", "-rf", "x"],
      {
        allow: [{ tool: "skill.deploy.run", arg: { a: "1" } }],
      },
      "allow",
      { a: "1" },
    ],
    [
      "destructive, another call named",
      ["rm", "-rf", "x"],
      {
        allow: [{ tool: "skill.deploy.run", arg: { a: "2" } }],
      },
      "ask",
      { a: "1" },
    ],
    [
      "an argument that is allowed",
      merge,
      { allow: [{ tool: "skill.deploy.run", arg: { env: "test" } }] },
      "allow",
      {
        env: "test",
      },
    ],
    [
      "an argument that is not",
      merge,
      { allow: [{ tool: "skill.deploy.run", arg: { env: "test" } }] },
      "ask",
      {
        env: "prod",
      },
    ],
  ];
  for (const [name, command, entries, effect, args] of rows) {
    test(`${name}: ${effect}`, () => {
      const verdict = decide([layerOf("user", entries)], factsOf(command, args), {
        root: ws.root,
        active: [],
        bounds: [],
        blocks: [],
      });
      assertEquals(verdict.effect, effect as typeof verdict.effect, JSON.stringify(verdict.causes, null, 1));
    });
  }

  test("its own files may be read, a rule over them still counts", () => {
    writeFileSync(join(folder, "data.txt"), "x");
    const decided = (entries: Entries) =>
      decide([layerOf("user", entries)], factsOf(["cat", "data.txt"]), {
        root: ws.root,
        active: [],
        bounds: [],
        blocks: [],
      }).effect;
    assertEquals(decided({ allow: ["skill.*"] }), "allow");
    assertEquals(
      decided({ allow: ["skill.*"], deny: [{ tool: "read_file", path: `${folder}/data.txt` }] }),
      "deny",
    );
  });
});

function gate(before: string, evidence: string): Gate {
  return {
    id: "g",
    layer: "user",
    at: { file: "p", line: 1, col: 1 },
    before: [ruleOf(before, "deny")],
    evidence: [ruleOf(evidence)],
  };
}

describe("gates and a command tool", () => {
  for (const command of [["gh", "pr", "merge"], ["bash", "-c", "x; gh pr merge 1"]] as const) {
    test(`a gate is reached through ${command[0]}`, () => {
      assertEquals(gatesOf([gate("shell(gh pr merge *)", "git_diff")], factsOf(command), ws.root).length, 1);
    });
  }

  test("a gate on the tool itself waits for its evidence alone, whatever the tool runs inside", () => {
    const facts = factsOf(["bash", "-c", "make x && gh pr merge 1"]);
    const missing = (before: string) =>
      gateBlocks([gate(before, "git_diff")], emptyGateState, facts, ws.root).flatMap((b) => b.missing);
    assertEquals(missing("skill.deploy.run").map((m) => m.kind), ["evidence"]);
    assertEquals(missing("shell(gh pr merge *)").map((m) => m.kind), ["evidence", "compound"]);
  });

  test("a command tool that runs the evidence is none", () => {
    const marks = (evidence: string) =>
      evidenceClaims([gate("shell(x)", evidence)], factsOf(["bun", "test"]), {
        root: ws.root,
        writableProgram: false,
      }).marks;
    assertEquals(marks("shell(bun test)"), []);
    assertEquals(marks("skill.other.run"), []);
    assertEquals(marks("skill.deploy.run"), ["g#0"]);
  });
});

test("a kept answer covers the same arguments of the same command, whatever that runs", () => {
  const facts = factsOf(["bash", "-c", "make x"], { a: 1 });
  const grant = grantFor(facts);
  assertEquals(grant?.rule, "skill.deploy.run with exactly these arguments");
  const covered = (other: Facts) => coveringGrant(grant === undefined ? [] : [grant], other) !== undefined;
  assertEquals(covered(factsOf(["bash", "-c", "make x"], { a: 1 })), true);
  assertEquals(covered(factsOf(["bash", "-c", "make x"], { a: 2 })), false);
  assertEquals(covered(factsOf(["bash", "-c", "make y"], { a: 1 })), false);
});
