// `writ run` from outside: triggers and their chains, prompts and pipes, what goes to which stream, how a run ends.
import { describe, test } from "bun:test";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { EventType } from "../../src/core/event.ts";
import {
  assertChain,
  eventsOf,
  eventually,
  isRunning,
  type Machine,
  soundLog,
  withMachine,
} from "../support/machine.ts";
import { withMessagesServer } from "../support/messages_server.ts";
import { binary, root } from "../support/runtimes.ts";

const laptop = join(root, "config/examples/laptop.yaml");
const explicitChain: readonly EventType[] = [
  "session.started",
  "user.message",
  "skill.loaded",
  "context.built",
  "model.delta",
  "model.tool_call_requested",
  "permission.requested",
  "permission.resolved",
  "tool.started",
  "tool.completed",
  "context.built",
  "skill.completed",
  "turn.completed",
];

const look = `
- text: I look at the change first.
  call: {git_diff: {ref: HEAD}}
- call: {complete_skill: {name: mainline-guardian, outcome: PASS, summary: nothing blocks}}
- text: "PASS"
`;

/** A policy with scripted replies; arguments for \`writ\`. */
function scripted(m: Machine, replies: string, policy = ""): readonly string[] {
  m.write("replies.yaml", replies);
  return [
    "--policy",
    m.write("policy.yaml", `version: 1\nmodel: {provider: script, script: replies.yaml}\n${policy}`),
  ];
}

const readsThenAnswers = `
- text: Reading.
  call: {read_file: {path: src/a.txt}}
- text: "It holds two lines."
`;

describe("triggers", () => {
  test("/skill NAME gives the chain of DESIGN §6", async () => {
    await withMachine(async (m) => {
      m.write("repo/src/a.txt", "one\nthree\n");
      const ran = await m.writ([
        "run",
        "--policy",
        laptop,
        "--script",
        m.write("replies.yaml", look),
        "/skill mainline-guardian main",
      ]);
      assertEquals([ran.code, ran.stdout], [0, "PASS\n"], ran.stderr);
      const events = await soundLog(m);
      assertChain(events, explicitChain);
      const [loaded, ...more] = eventsOf(events, "skill.loaded");
      assertEquals([loaded?.data.name, loaded?.data.trigger, more], ["mainline-guardian", {
        kind: "explicit",
      }, []]);
      assertEquals(eventsOf(events, "skill.completed").map((e) => [e.data.name, e.data.outcome]), [[
        "mainline-guardian",
        "PASS",
      ]]);
      assertStringIncludes(eventsOf(events, "tool.completed")[0]?.data.result ?? "", "+three");
    });
  });

  for (
    const [language, message, pattern] of [
      ["English", "Could you review this PR before lunch?", "review this PR"],
      ["Chinese", "麻烦合并前检查一下，谢谢", "合并前检查"],
    ] as const
  ) {
    test(`a pattern is met in ${language}`, async () => {
      await withMachine(async (m) => {
        const ran = await m.writ([
          "run",
          "--policy",
          laptop,
          "--script",
          m.write("replies.yaml", look),
          message,
        ]);
        assertEquals([ran.code, ran.stdout], [0, "PASS\n"], ran.stderr);
        const events = await soundLog(m);
        assertChain(events, explicitChain);
        const loaded = eventsOf(events, "skill.loaded").map(({ data: { name, trigger } }) => [
          name,
          trigger.kind,
          message.slice(...(trigger.span ?? [0, 0])),
        ]);
        assertEquals(loaded, [["mainline-guardian", "pattern", pattern]]);
      });
    });
  }

  test("the model chooses a skill and works under its bound", async () => {
    await withMachine(async (m) => {
      const args = scripted(
        m,
        `
- call: {load_skill: {name: explain-code, arguments: src/a.txt}}
- call: {write_file: {path: src/b.txt, content: x}}
- text: done
`,
        "permissions: {allow: [write_file]}\n",
      );
      const ran = await m.writ(["run", ...args, "What is src/a.txt for?"]);
      assertEquals([ran.code, ran.stdout], [0, "done\n"], ran.stderr);
      const events = await soundLog(m);
      assertChain(events, [
        "user.message",
        "context.built",
        "model.tool_call_requested",
        "permission.requested",
        "permission.resolved",
        "tool.started",
        "skill.loaded",
        "tool.completed",
        "context.built",
        "model.tool_call_requested",
        "permission.resolved",
        "tool.completed",
        "skill.completed",
        "turn.completed",
      ]);
      assertEquals(eventsOf(events, "skill.loaded").map((e) => e.data.trigger), [{ kind: "model" }]);
      const [load, write] = eventsOf(events, "tool.completed").map((e) => e.data);
      assertEquals([load?.result, load?.data], [
        'loaded skill "explain-code" (0 specialized tools registered)',
        { skill: "explain-code", registeredTools: 0 },
      ]);
      assertEquals([write?.ok, write?.code], [false, "denied"]);
      const denied = eventsOf(events, "permission.resolved")[1]?.data;
      assertEquals([denied?.effect, denied?.reason], ["deny", "tool not in skill.allowed_tools"]);
      assert(!existsSync(join(m.repo, "src/b.txt")));
    });
  });

  test("a forced skill is in every request, after --resume and --continue as well", async () => {
    await withMachine(async (m) => {
      m.write(
        "config/writ/skills/house/SKILL.md",
        "---\nname: house\ndescription: Rules of the house.\nallowed_tools: [read_file]\n---\nBe brief.\n",
      );
      const args = scripted(
        m,
        "- call: {read_file: {path: src/a.txt}}\n- text: done\n",
        "skills: {forced: [{skill: house, when: session}]}\n",
      );
      const first = await m.writ(["run", ...args, "--json", "one"]);
      const { session } = JSON.parse(first.stdout) as { session: string };
      const second = await m.writ(["run", ...args, "--json", "--resume", session, "two"]);
      const third = await m.writ(["run", ...args, "--json", "--continue", "three"]);
      assertEquals([first, second, third].map((r) => [r.code, JSON.parse(r.stdout).session]), [
        [0, session],
        [0, session],
        [0, session],
      ]);
      const events = await soundLog(m, session);
      assertChain(events, [
        "session.started",
        "skill.loaded",
        "user.message",
        "context.built",
        "tool.completed",
        "turn.completed",
        "session.resumed",
        "user.message",
        "turn.completed",
        "session.resumed",
        "user.message",
        "turn.completed",
      ]);
      assertEquals(eventsOf(events, "skill.loaded").map((e) => [e.data.trigger, e.data.scope]), [[
        { kind: "policy" },
        "session",
      ]]);
      assertEquals(eventsOf(events, "context.built").map((e) => e.data.sources.skills), [
        ["house"],
        ["house"],
        ["house"],
        ["house"],
        ["house"],
        ["house"],
      ]);
      assertEquals(eventsOf(events, "skill.unloaded"), []);
    });
  });

  test("`writ skill run NAME` and --skill make the same of a skill as /skill", async () => {
    await withMachine(async (m) => {
      const args = scripted(m, "- text: done\n");
      const ways = [
        ["skill", "run", ...args, "explain-code", "src/a.txt"],
        ["run", ...args, "/skill", "explain-code", "src/a.txt"],
        ["run", ...args, "--skill", "explain-code", "look at src/a.txt"],
      ];
      const triggers = [];
      for (const way of ways) {
        const ran = await m.writ(way);
        assertEquals([ran.code, ran.stdout], [0, "done\n"], ran.stderr);
        const events = await soundLog(m);
        triggers.push(eventsOf(events, "skill.loaded").map((e) => [e.data.name, e.data.trigger.kind]));
      }
      assertEquals(triggers, ways.map(() => [["explain-code", "explicit"]]));
    });
  });
});

describe("a skill that does not fit in skills.active_tokens", () => {
  const cases: readonly (readonly [string, string, string, number, readonly EventType[]])[] = [
    ["asked for by name: the turn is refused", "/skill mainline-guardian", "", 4, [
      "limit.reached",
      "turn.completed",
    ]],
    ["met by a pattern: it is skipped", "review this PR", "done\n", 0, [
      "skill.skipped",
      "context.built",
      "turn.completed",
    ]],
  ];
  for (const [name, message, stdout, code, chain] of cases) {
    test(name, async () => {
      await withMachine(async (m) => {
        const args = scripted(m, "- text: done\n", "skills: {active_tokens: 100}\n");
        const ran = await m.writ(["run", ...args, message]);
        assertEquals([ran.code, ran.stdout], [code, stdout], ran.stderr);
        assertMatch(ran.stderr, /skill `mainline-guardian` has \d+ bytes, about \d+ tokens/);
        const events = await soundLog(m);
        assertChain(events, ["user.message", ...chain]);
        assertEquals(eventsOf(events, "skill.loaded"), []);
      });
    });
  }

  test("chosen by the model: it gets a failed result", async () => {
    await withMachine(async (m) => {
      const args = scripted(
        m,
        "- call: {load_skill: {name: mainline-guardian}}\n- text: done\n",
        "skills: {active_tokens: 100}\n",
      );
      const ran = await m.writ(["run", ...args, "go"]);
      assertEquals([ran.code, ran.stdout], [0, "done\n"], ran.stderr);
      const results = eventsOf(await soundLog(m), "tool.completed").map((e) => [e.data.ok, e.data.code]);
      assertEquals(results, [[false, "skill_too_large"]]);
    });
  });
});

describe("prompts", () => {
  const said = async (m: Machine) => eventsOf(await soundLog(m), "user.message").map((e) => e.data.content);
  const cases: readonly (readonly [string, string, string | undefined])[] = [
    ["words are joined", "run ARGS say it", undefined],
    ["a pipe is the prompt", "printf 'say\\nit\\n' | WRIT run ARGS", "say\nit"],
    ["`-` is the pipe", "printf 'say it' | WRIT run ARGS -", "say it"],
    ["words stand before the pipe", "printf 'the text' | WRIT run ARGS 'say it:' -", "say it:\n\nthe text"],
    ["a file is the prompt", "WRIT run ARGS < text.txt", "from a file"],
    ["`--` ends the options", "WRIT run ARGS -- --version", "--version"],
  ];
  for (const [name, line, expected] of cases) {
    test(name, async () => {
      await withMachine(async (m) => {
        m.write("repo/text.txt", "from a file\n");
        const args = scripted(m, "- text: done\n");
        const ran = expected === undefined ? await m.writ(["run", ...args, "say", "it"]) : await m.program([
          "bash",
          "-c",
          line.replace("WRIT", `"${binary}"`).replace("ARGS", args.join(" ")),
        ]);
        assertEquals([ran.code, ran.stdout], [0, "done\n"], ran.stderr);
        assertEquals(await said(m), [expected ?? "say it"]);
      });
    });
  }

  for (
    const [name, args] of [
      ["a run with a prompt", ["run", "say it"]],
      ["`writ skill run`", ["skill", "run", "explain-code"]],
    ] as const
  ) {
    test(`a silent pipe that stays open does not hold up ${name}`, async () => {
      await withMachine(async (m) => {
        const [verb, ...words] = args;
        const options = scripted(m, "- text: done\n");
        const ran = await m.writ(
          verb === "run" ? ["run", ...options, ...words] : [verb, "run", ...options, "explain-code"],
          { input: { open: true } },
        );
        assertEquals([ran.code, ran.stdout], [0, "done\n"], ran.stderr);
      });
    });
  }

  for (
    const [name, input, message] of [
      ["nothing at all", undefined, "no prompt; expected words, `-`, or a text on standard input"],
      ["an empty pipe", "", "the prompt is empty"],
      ["a pipe of blanks", " \n\n", "the prompt is empty"],
      ["more than a prompt can be", "x".repeat(1024 * 1024 + 1), "is longer than 1048576 bytes"],
    ] as const
  ) {
    test(`${name} is refused with exit code 2 and nothing written`, async () => {
      await withMachine(async (m) => {
        const args = scripted(m, "- text: done\n");
        const ran = await m.writ(["run", ...args], input === undefined ? {} : { input });
        assertEquals([ran.code, ran.stdout], [2, ""]);
        assertStringIncludes(ran.stderr, message);
        assertEquals(m.ids(), []);
      });
    });
  }
});

describe("output", () => {
  test("the answer goes to standard output, everything else to standard error", async () => {
    await withMachine(async (m) => {
      const args = scripted(m, readsThenAnswers);
      const loud = await m.writ(["run", ...args, "look"]);
      assertEquals([loud.code, loud.stdout], [0, "It holds two lines.\n"]);
      assertStringIncludes(loud.stderr, "→ read_file path=src/a.txt");
      assertEquals(loud.stderr.includes("\x1b"), false);
      const quiet = await m.writ(["run", ...args, "--quiet", "look"]);
      assertEquals(quiet, { code: 0, signal: null, stdout: "It holds two lines.\n", stderr: "" });
    });
  });

  test("--json gives one line that says how it ended and where the record is", async () => {
    await withMachine(async (m) => {
      const args = scripted(m, readsThenAnswers);
      const ran = await m.writ(["run", ...args, "--json", "look"]);
      const events = await soundLog(m);
      assertEquals([ran.code, ran.stderr, ran.stdout.trimEnd().split("\n").length], [0, "", 1]);
      assertEquals(JSON.parse(ran.stdout), {
        resultVersion: 1,
        ok: true,
        exit: 0,
        reason: "final",
        result: "It holds two lines.",
        usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
        denied: [],
        skills: [],
        session: m.ids()[0],
        log: m.logPath(),
        head: { seq: events.length, hash: events.at(-1)?.hash },
      });
    });
  });

  test("--json says what was denied and which skills were there", async () => {
    await withMachine(async (m) => {
      const args = scripted(m, "- call: {write_file: {path: b.txt, content: x}}\n- text: no\n");
      const ran = await m.writ(["run", ...args, "--json", "/skill explain-code"]);
      const { ok, exit, reason, denied, skills } = JSON.parse(ran.stdout);
      assertEquals(ran.code, exit);
      assertEquals({ ok, exit, reason, skills }, {
        ok: true,
        exit: 0,
        reason: "final",
        skills: ["explain-code"],
      });
      assertEquals(denied, [{
        call: "call_1_1",
        tool: "write_file",
        reason: "tool not in skill.allowed_tools",
        unanswered: false,
      }]);
    });
  });

  test("`/skill list` is an answer, no turn, and no session is left behind", async () => {
    await withMachine(async (m) => {
      const args = scripted(m, "- text: unused\n");
      const ran = await m.writ(["run", ...args, "/skill list"]);
      assertEquals(ran.code, 0, ran.stderr);
      assertMatch(ran.stdout, /^commit +Makes a clean git commit/m);
      const json = await m.writ(["run", ...args, "--json", "/skill list"]);
      assertEquals(json.code, 0);
      assertEquals(JSON.parse(json.stdout), {
        resultVersion: 1,
        ok: true,
        exit: 0,
        reason: "final",
        result: ran.stdout.trimEnd(),
      });
      assertEquals(m.ids(), []);
    });
  });

  test("a reader that goes away ends the output quietly, the run goes on", async () => {
    await withMachine(async (m) => {
      const lines = Array.from({ length: 60_000 }, (_, i) => `    line ${i}`).join("\n");
      const args = scripted(m, `- text: |\n${lines}\n`);
      const pipe = `"${binary}" run ${args.join(" ")} go | head -1; echo "\${PIPESTATUS[0]}"`;
      const ran = await m.program(["bash", "-c", pipe]);
      assertEquals([ran.stdout, ran.stderr], ["line 0\n0\n", ""]);
      await soundLog(m);
      const id = m.ids()[0] ?? "";
      const commands = [`session show --events ${id}`, "help policy", "--help", `session show ${id}`];
      for (const command of commands) {
        const cut = await m.program(["bash", "-c", `"${binary}" ${command} | head -c 1 | wc -c`]);
        assertEquals([cut.stdout.trim(), cut.stderr], ["1", ""], command);
      }
    });
  });

  test("a reader that went away before does not silence what is said on standard error", async () => {
    await withMachine(async (m) => {
      const args = scripted(m, "- call: {write_file: {path: b.txt, content: x}}\n- text: no\n");
      const line = `"${binary}" run ${args.join(" ")} go > >(exec true); exit $?`;
      const ran = await m.program(["bash", "-c", line]);
      assertEquals(ran.code, 5);
      assertStringIncludes(ran.stderr, "not approved: write_file");
    });
  });

  test("a slow reader gets the whole of a long answer", async () => {
    await withMachine(async (m) => {
      const text = "0123456789abcdef".repeat(50_000);
      const args = scripted(m, `- text: ${text}\n`);
      const ran = await m.program([
        "bash",
        "-c",
        `"${binary}" run ${args.join(" ")} go | { sleep 0.3; wc -c; }; echo "\${PIPESTATUS[0]}"`,
      ]);
      assertEquals([ran.stdout, ran.stderr], [`${text.length + 1}\n0\n`, ""]);
    });
  });

  test("streams that are closed are no fault, and nothing of the output gets into the log", async () => {
    await withMachine(async (m) => {
      const args = scripted(m, readsThenAnswers).join(" ");
      for (const closed of [">&-", "2>&-", "<&-", "<&- >&- 2>&-"]) {
        const ran = await m.program(["bash", "-c", `"${binary}" run ${args} go ${closed}`]);
        assertEquals([closed, ran.code], [closed, 0], ran.stderr);
        await soundLog(m);
      }
    });
  });

  test("output that cannot be written is a fault with a message, not a trace", async () => {
    await withMachine(async (m) => {
      const args = scripted(m, "- text: done\n");
      const ran = await m.program(["bash", "-c", `"${binary}" run ${args.join(" ")} go > /dev/full`]);
      assertEquals(ran.code === 0, false);
      assertStringIncludes(ran.stderr, "error: cannot write to standard output");
      assertEquals(/\bat .+:\d+/.test(ran.stderr), false, ran.stderr);
      await soundLog(m);
    });
  });

  test("colour is for terminals only, and NO_COLOR turns it off", async () => {
    await withMachine(async (m) => {
      const args = scripted(m, readsThenAnswers).join(" ");
      const terminal = (line: string, env = {}) =>
        m.program(["script", "-qec", line, "/dev/null"], { env: { TERM: "xterm", ...env } });
      const run = `"${binary}" run ${args} look`;
      const colour = /\x1b\[[0-9;]*m/;
      assertMatch((await terminal(run)).stdout, colour);
      const plain = await terminal(run, { NO_COLOR: "1" });
      assertEquals([plain.code, colour.test(plain.stdout)], [0, false], plain.stdout);
      assertStringIncludes(plain.stdout, "→ read_file");
      assertEquals(colour.test((await terminal(run, { TERM: "dumb" })).stdout), false);
      // Each stream counts for itself: here standard error is a terminal and standard output is not.
      const piped = await terminal(`"${binary}" session show ${m.ids()[0]} | cat`);
      assertEquals([colour.test(piped.stdout), piped.stdout.includes("→ read_file")], [false, true]);
    });
  });
});

describe("how a run ends", () => {
  const write = "- call: {write_file: {path: b.txt, content: x}}\n- text: not written\n";
  const cases: readonly {
    readonly name: string;
    readonly replies: string;
    readonly policy?: string;
    readonly args?: readonly string[];
    readonly code: number;
    readonly reason: string;
  }[] = [
    { name: "a good end", replies: "- text: done\n", code: 0, reason: "final" },
    {
      name: "a provider that fails for good",
      replies: "- fail: {code: authentication, status: 401}\n",
      code: 3,
      reason: "provider_error",
    },
    {
      name: "a script that is at its end",
      replies: "- call: {read_file: {path: src/a.txt}}\n",
      code: 3,
      reason: "provider_error",
    },
    { name: "a refusal", replies: "- {text: no, stop: refusal}\n", code: 3, reason: "refusal" },
    {
      name: "a limit",
      replies: "- call: {read_file: {path: src/a.txt}}\n- text: never asked\n",
      policy: "limits: {iterations: 1}\n",
      code: 4,
      reason: "limit",
    },
    {
      name: "an answer that was cut",
      replies: "- {text: half, stop: max_tokens}\n",
      code: 4,
      reason: "limit",
    },
    { name: "an ask that nobody answers", replies: write, code: 5, reason: "final" },
    {
      name: "an ask that nobody answers, with --unattended",
      replies: write,
      args: ["--unattended"],
      code: 5,
      reason: "final",
    },
    {
      name: "a denied call",
      replies: write,
      policy: "permissions: {deny: [write_file]}\n",
      code: 0,
      reason: "final",
    },
    {
      name: "a denied call under --strict",
      replies: write,
      policy: "permissions: {deny: [write_file]}\n",
      args: ["--strict"],
      code: 5,
      reason: "denied",
    },
    {
      name: "an ask that nobody answers, then a limit: the limit stands first",
      replies: write,
      policy: "limits: {iterations: 1}\n",
      code: 4,
      reason: "limit",
    },
    {
      name: "an ask that nobody answers, then a failure of the provider: that stands first",
      replies: "- call: {write_file: {path: b.txt, content: x}}\n- fail: {code: permission, status: 403}\n",
      code: 3,
      reason: "provider_error",
    },
  ];
  for (const { name, replies, policy, args = [], code, reason } of cases) {
    test(`${name}: exit code ${code}`, async () => {
      await withMachine(async (m) => {
        const options = scripted(m, replies, policy ?? "");
        const ran = await m.writ(["run", ...options, ...args, "--json", "go"]);
        const result = JSON.parse(ran.stdout);
        assertEquals(
          { code: ran.code, exit: result.exit, ok: result.ok, reason: result.reason },
          { code, exit: code, ok: code === 0, reason },
          ran.stdout,
        );
        const events = await soundLog(m);
        assertEquals(eventsOf(events, "turn.completed").map((e) => e.data.stopReason), [reason]);
        assert(!existsSync(join(m.repo, "b.txt")));
        const people = await m.writ(["run", ...options, ...args, "go"]);
        assertEquals(people.code, code);
        if (code !== 0) assertMatch(people.stderr.trimEnd().split("\n").at(-1) ?? "", /^[a-z_ ]+: ./);
      });
    });
  }

  test("a turn that takes longer than it may: exit code 4, and the command is ended", async () => {
    await withMachine(async (m) => {
      m.write("repo/work.sh", work.polite);
      const args = scripted(
        m,
        "- call: {shell: {command: bash work.sh, timeout: 600}}\n- text: never\n",
        'sandbox: {mode: "off"}\npermissions: {allow: ["shell(bash work.sh)"]}\nlimits: {wall_time: 1s}\n',
      );
      const ran = await m.writ(["run", ...args, "go"]);
      assertEquals(ran.code, 4, ran.stderr);
      assertStringIncludes(ran.stderr, "limit `wall_time` reached");
      const events = await soundLog(m);
      assertEquals(eventsOf(events, "limit.reached").map((e) => e.data.limit), ["wall_time"]);
      assertEquals(
        readFileSync(join(m.repo, "pids"), "utf8").trim().split("\n").map(Number).filter(isRunning),
        [],
      );
    });
  });

  test("a turn that fails at its start has no answer, not that of the turn before", async () => {
    await withMachine(async (m) => {
      const args = scripted(m, "- text: the first answer\n");
      assertEquals((await m.writ(["run", ...args, "one"])).code, 0);
      m.write("replies.yaml", "- fail: {code: authentication, status: 401}\n");
      const ran = await m.writ(["run", ...args, "--continue", "two"]);
      assertEquals([ran.code, ran.stdout], [3, ""]);
    });
  });
});

/** Commands that note their own and a child's process id and then take for ever. */
const work = {
  polite: "echo $$ > pids; sleep 1000 & echo $! >> pids; touch ready; wait\n",
  stubborn:
    "trap 'touch asked' TERM\necho $$ > pids\n(trap '' TERM; exec sleep 1000) & echo $! >> pids\ntouch ready\nwhile :; do wait; done\n",
  detached: "setsid sleep 1000 & echo $! > pids; touch ready; wait\n",
};

describe("interrupts", () => {
  const shellPolicy =
    'sandbox: {mode: "off"}\npermissions: {allow: ["shell(bash work.sh)"]}\nlimits: {wall_time: 10m}\n';
  const shellReplies =
    "- text: Working.\n  calls:\n    - {shell: {command: bash work.sh, timeout: 600}}\n    - {read_file: {path: src/a.txt}}\n- text: never\n";
  const pids = (m: Machine) => readFileSync(join(m.repo, "pids"), "utf8").trim().split("\n").map(Number);

  for (
    const [signal, code, stop] of [["SIGINT", 130, "cancelled"], ["SIGTERM", 143, "interrupted"]] as const
  ) {
    for (const kind of ["polite", "stubborn", "detached"] as const) {
      test(`${signal} while a ${kind} command runs: ${code}, nothing left behind`, async () => {
        await withMachine(async (m) => {
          m.write("repo/work.sh", work[kind]);
          const args = scripted(m, shellReplies, shellPolicy);
          const running = m.start(["run", ...args, "--json", "go"]);
          await eventually(() => existsSync(join(m.repo, "ready")));
          running.kill(signal);
          const ended = await running.ended;
          assertEquals([ended.code, ended.signal], [code, null], ended.stderr);
          assertEquals(pids(m).filter(isRunning), []);
          const events = await soundLog(m);
          const results = events.flatMap((e) =>
            e.type === "tool.completed"
              ? [`${e.data.tool} ${e.data.code}`]
              : e.type === "tool.interrupted"
              ? [`${e.data.tool} ${e.data.started ? "within" : "not started"}`]
              : []
          );
          assertEquals(results, ["shell cancelled", "read_file not started"]);
          assertEquals(eventsOf(events, "turn.completed").map((e) => e.data.stopReason), [stop]);
          assertEquals(JSON.parse(ended.stdout).reason, stop);
        });
      });
    }

    test(`${signal} while the model's words come in: ${code}`, async () => {
      await withMachine(async (m) => {
        const plan = [{ blocks: [{ text: "Let me think about it." }], stallAt: 700 }];
        await withMessagesServer(plan, async (server) => {
          const policy = m.write(
            "policy.yaml",
            `version: 1\nmodel: {name: test, base_url: "${server.url}"}\n`,
          );
          const running = m.start(["run", "--policy", policy, "go"], {
            env: { ANTHROPIC_API_KEY: "sk-test-0123456789" },
          });
          await eventually(() => server.requests.length === 1);
          running.kill(signal);
          const ended = await running.ended;
          assertEquals([ended.code, ended.signal, ended.stdout], [code, null, ""], ended.stderr);
          await server.idle();
          assertEquals(server.requests.length, 1);
          const events = await soundLog(m);
          assertEquals(eventsOf(events, "model.completed"), []);
          assertEquals(eventsOf(events, "turn.completed").map((e) => e.data.stopReason), [stop]);
        });
      });
    });

    test(`${signal} while it waits to ask the model again: ${code}`, async () => {
      await withMachine(async (m) => {
        const busy = { status: 529, headers: { "retry-after": "120" }, body: "overloaded" };
        await withMessagesServer([busy], async (server) => {
          const policy = m.write(
            "policy.yaml",
            `version: 1\nmodel: {name: test, base_url: "${server.url}"}\n`,
          );
          const running = m.start(["run", "--policy", policy, "go"], {
            env: { ANTHROPIC_API_KEY: "sk-test-0123456789" },
          });
          await running.until("stderr", "again in 120000 ms");
          running.kill(signal);
          const ended = await running.ended;
          assertEquals([ended.code, ended.signal], [code, null], ended.stderr);
          await soundLog(m);
        });
      });
    });

    test(`a second ${signal} ends at once, and the session can be resumed`, async () => {
      await withMachine(async (m) => {
        m.write("repo/work.sh", work.stubborn);
        const args = scripted(m, shellReplies, shellPolicy);
        const running = m.start(["run", ...args, "go"]);
        await eventually(() => existsSync(join(m.repo, "ready")));
        running.kill(signal);
        await eventually(() => existsSync(join(m.repo, "asked")));
        running.kill(signal);
        const ended = await running.ended;
        assertEquals([ended.code, ended.signal], [code, null], ended.stderr);
        // Killed in the last moment: that they are gone may show a little later.
        await eventually(() => pids(m).filter(isRunning).length === 0);
        m.write("replies.yaml", "- text: back\n");
        const back = await m.writ(["run", ...args, "--continue", "and now?"]);
        assertEquals([back.code, back.stdout], [0, "back\n"], back.stderr);
        await soundLog(m);
      });
    });
  }
});
