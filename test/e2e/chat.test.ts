// The terminal: `writ chat` and the questions of `writ run`, through a pseudo terminal made by `script` of util-linux.
import { describe, test } from "bun:test";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { spawnSync } from "node:child_process";
import { appendFileSync, existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import {
  type Ended,
  eventsOf,
  eventually,
  isRunning,
  type Machine,
  soundLog,
  withMachine,
} from "../support/machine.ts";
import { withMessagesServer } from "../support/messages_server.ts";
import { binary } from "../support/runtimes.ts";

const enter = "\r";
const ctrlC = "\x03";
const ctrlD = "\x04";
const noTerminal = !/util-linux/.test(spawnSync("script", ["--version"], { encoding: "utf8" }).stdout ?? "");

type Talk = {
  type(keys: string): void;
  /** Waits for a text behind everything that was waited for before. */
  until(text: string): Promise<void>;
  /** Everything so far, without the terminal's own codes. */
  readonly shown: string;
  readonly ended: Promise<Ended>;
};

/** Starts a command line of the shell on a terminal. */
function atTerminal(m: Machine, line: string, env: { readonly [name: string]: string } = {}): Talk {
  const running = m.startProgram(["script", "-qec", line, "/dev/null"], {
    input: { open: true },
    env: { TERM: "xterm", SHELL: "/bin/sh", NO_COLOR: "1", ...env },
  });
  let at = 0;
  let over = false;
  running.ended.then(() => over = true, () => over = true);
  const shown = () => running.stdout.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, "").replaceAll("\r", "");
  return {
    type: running.type,
    async until(text) {
      await eventually(() => over || shown().indexOf(text, at) >= 0);
      const found = shown().indexOf(text, at);
      if (found < 0) throw new Error(`ended without ${JSON.stringify(text)}:\n${shown().slice(at)}`);
      at = found + text.length;
    },
    get shown() {
      return shown();
    },
    ended: running.ended,
  };
}

const script = "model: {provider: script, script: replies.yaml}\n";
type Reply = { readonly text?: string; readonly calls?: readonly { readonly [tool: string]: object }[] };

function chat(m: Machine, replies: readonly Reply[], rest = "", more = ""): Talk {
  m.write("replies.yaml", JSON.stringify(replies));
  const policy = m.write("policy.yaml", `version: 1\n${script}${rest}`);
  return atTerminal(m, `"${binary}" chat --policy "${policy}" ${more}`);
}

const write = (path: string, content = "x\n") => ({ write_file: { path, content } });
const messages = (m: Machine) => eventsOf(m.events(), "user.message").map((e) => e.data.content);
const answers = (m: Machine) =>
  eventsOf(m.events(), "permission.resolved").map((e) => [e.data.decision, e.data.answer ?? null]);

describe("a question at the terminal", () => {
  test.skipIf(noTerminal)(
    "y allows once, s for the session, n refuses with a reason that the model sees",
    async () => {
      await withMachine(async (m) => {
        const talk = chat(m, [
          {
            text: "Four files.",
            calls: [write("a.txt"), write("b.txt"), write("b.txt", "y\n"), write("c.txt")],
          },
          { text: "All said." },
        ]);
        await talk.until("> ");
        talk.type(`write them${enter}`);
        await talk.until("Four files.");
        await talk.until("write_file");
        await talk.until("+x");
        await talk.until("y  once");
        await talk.until("allow? [");
        talk.type(`y${enter}`);
        await talk.until("s  for this session, as the rule: ");
        await talk.until("allow? [");
        talk.type(`s${enter}`);
        await talk.until("answered by grant");
        await talk.until("allow? [");
        talk.type(`n use src instead${enter}`);
        await talk.until("use src instead");
        await talk.until("All said.");
        await talk.until("> ");
        talk.type(`/grants${enter}`);
        await talk.until("write_file");
        await talk.until("> ");
        talk.type(`/quit${enter}`);
        assertEquals((await talk.ended).code, 0);
        const events = await soundLog(m);
        const rule = (answers(m)[1]?.[1] as { rule?: string } | null)?.rule ?? "";
        assertStringIncludes(rule, "b.txt");
        assertEquals(answers(m), [
          ["allow", { by: "user", scope: "once" }],
          ["allow", { by: "user", scope: "session", rule }],
          ["allow", { by: "grant", rule }],
          ["deny", { by: "user", reason: "use src instead" }],
        ]);
        const results = eventsOf(events, "tool.completed").map((e) => e.data);
        assertEquals(results.map((r) => r.ok), [true, true, true, false]);
        assertStringIncludes(results[3]?.result ?? "", "use src instead");
        assertEquals(["a.txt", "b.txt", "c.txt"].map((f) => existsSync(join(m.repo, f))), [
          true,
          true,
          false,
        ]);
        assertEquals(readFileSync(join(m.repo, "b.txt"), "utf8"), "y\n");
        assertEquals(talk.shown.split("allow? [").length - 1, 3);
      });
    },
  );

  for (
    const [name, keys] of [["Enter alone", enter], ["another word", `maybe${enter}`], [
      "`s` where nothing can be kept",
      `s${enter}`,
    ]] as const
  ) {
    test.skipIf(noTerminal)(`${name} is a no`, async () => {
      await withMachine(async (m) => {
        const talk = chat(
          m,
          [{ calls: [write("a.txt")] }, { text: "not written" }],
          "permissions: {ask: [{tool: write_file, always: true}]}\n",
        );
        await talk.until("> ");
        talk.type(`go${enter}`);
        await talk.until("allow? [");
        talk.type(keys);
        await talk.until("not written");
        await talk.until("> ");
        talk.type(ctrlD);
        assertEquals((await talk.ended).code, 0);
        await soundLog(m);
        assertEquals([answers(m).map(([d]) => d), existsSync(join(m.repo, "a.txt"))], [["deny"], false]);
      });
    });
  }

  for (
    const [name, ahead] of [["a whole line", `y${enter}`], ["half a line", "y"], [
      "both",
      `y${enter}y`,
    ]] as const
  ) {
    test.skipIf(noTerminal)(`${name} that was typed before it is no answer`, async () => {
      await withMachine(async (m) => {
        m.write("repo/work.sh", "touch ready\nuntil [ -e go ]; do sleep 0.02; done\n");
        const talk = chat(
          m,
          [{ calls: [{ shell: { command: "bash work.sh" } }, write("a.txt")] }, { text: "not written" }],
          'sandbox: {mode: "off"}\npermissions: {allow: ["shell(bash work.sh)"]}\n',
        );
        await talk.until("> ");
        talk.type(`go${enter}`);
        await eventually(() => existsSync(join(m.repo, "ready")));
        talk.type(ahead);
        // What was typed has reached the program once the terminal shows it.
        await talk.until("y");
        m.write("repo/go", "");
        await talk.until("allow? [");
        talk.type(enter);
        await talk.until("not written");
        await talk.until("> ");
        talk.type(ctrlD);
        assertEquals((await talk.ended).code, 0);
        await soundLog(m);
        assertEquals(answers(m).at(-1), ["deny", { by: "user" }]);
        assertEquals([messages(m), existsSync(join(m.repo, "a.txt"))], [["go"], false]);
      });
    });
  }

  test.skipIf(noTerminal)(
    "what was typed before the first question of a run is no answer either",
    async () => {
      await withMachine(async (m) => {
        m.write("repo/work.sh", "touch ready\nuntil [ -e go ]; do sleep 0.02; done\n");
        const calls = [{ shell: { command: "bash work.sh" } }, write("a.txt")];
        m.write("replies.yaml", JSON.stringify([{ calls }, { text: "not written" }]));
        const policy = m.write(
          "policy.yaml",
          `version: 1\n${script}sandbox: {mode: "off"}\npermissions: {allow: ["shell(bash work.sh)"]}\n`,
        );
        const talk = atTerminal(m, `"${binary}" run --policy "${policy}" go`);
        await eventually(() => existsSync(join(m.repo, "ready")));
        talk.type(`y${enter}y`);
        await talk.until("y\ny");
        m.write("repo/go", "");
        await talk.until("allow? [");
        talk.type(enter);
        await talk.until("not written");
        await talk.ended;
        await soundLog(m);
        assertEquals(answers(m).at(-1), ["deny", { by: "user" }]);
        assertEquals(existsSync(join(m.repo, "a.txt")), false);
      });
    },
  );

  test.skipIf(noTerminal)("Ctrl-C at it cancels the turn, and the chat goes on", async () => {
    await withMachine(async (m) => {
      const talk = chat(m, [{ calls: [write("a.txt")] }, { text: "the next" }]);
      await talk.until("> ");
      talk.type(`go${enter}`);
      await talk.until("allow? [");
      talk.type(ctrlC);
      await talk.until("cancelled");
      await talk.until("> ");
      talk.type(`again${enter}`);
      await talk.until("the next");
      await talk.until("> ");
      talk.type(`/quit${enter}`);
      assertEquals((await talk.ended).code, 0);
      const events = await soundLog(m);
      assertEquals(eventsOf(events, "turn.completed").map((e) => e.data.stopReason), ["cancelled", "final"]);
      assertEquals(existsSync(join(m.repo, "a.txt")), false);
    });
  });

  test.skipIf(noTerminal)("shows control and direction characters as what they are", async () => {
    await withMachine(async (m) => {
      const talk = chat(m, [{ calls: [write("a\u202etxt.\u001b[2Jb", "x\u0007\u202ey\n")] }, {
        text: "over",
      }]);
      await talk.until("> ");
      talk.type(`go${enter}`);
      await talk.until("\\u202e");
      await talk.until("allow? [");
      talk.type(enter);
      await talk.until("over");
      talk.type(ctrlD);
      const { stdout } = await talk.ended;
      assertEquals(/[\u202e\u0007]|\x1b\[2J/.test(stdout), false, JSON.stringify(stdout));
    });
  });

  test.skipIf(noTerminal)(
    "that nobody answers in time is a no; the time of waiting is not the turn's",
    async () => {
      await withMachine(async (m) => {
        m.write("replies.yaml", JSON.stringify([{ calls: [write("a.txt")] }, { text: "went on" }]));
        const run = (rest: string) => {
          const policy = m.write("policy.yaml", `version: 1\n${script}${rest}`);
          return atTerminal(m, `"${binary}" run --policy "${policy}" go`);
        };
        const late = run("permissions: {ask_timeout: 1s}\n");
        await late.until("went on");
        assertEquals((await late.ended).code, 5);
        assertStringIncludes(late.shown, "nobody answered within 1 s (permissions.ask_timeout)");
        assertEquals([answers(m).at(-1)?.[0], existsSync(join(m.repo, "a.txt"))], ["deny", false]);

        const slow = run("limits: {wall_time: 1s}\n");
        await slow.until("allow? [");
        // Longer than the turn may take.
        await new Promise((resolve) => setTimeout(resolve, 1500));
        slow.type(`y${enter}`);
        await slow.until("went on");
        assertEquals([(await slow.ended).code, existsSync(join(m.repo, "a.txt"))], [0, true]);
        await soundLog(m);
      });
    },
  );

  test.skipIf(noTerminal)("an answer is shown harmless on a terminal, also with --quiet", async () => {
    await withMachine(async (m) => {
      m.write("replies.yaml", JSON.stringify([{ text: "red \u001b[31m and back \u202e" }]));
      const policy = m.write("policy.yaml", `version: 1\n${script}`);
      for (const option of ["", "--quiet"]) {
        const ended = await atTerminal(m, `"${binary}" run ${option} --policy "${policy}" go`).ended;
        assertEquals(ended.code, 0);
        assertStringIncludes(ended.stdout, "red \\x1b[31m and back \\u202e");
        assertEquals(/\x1b\[31m|\u202e/.test(ended.stdout), false, JSON.stringify(ended.stdout));
      }
    });
  });

  test.skipIf(noTerminal)("`writ run` at a terminal asks as well, and not with --unattended", async () => {
    await withMachine(async (m) => {
      m.write("replies.yaml", JSON.stringify([{ calls: [write("a.txt")] }, { text: "written" }]));
      const policy = m.write("policy.yaml", `version: 1\n${script}`);
      const asked = atTerminal(m, `"${binary}" run --policy "${policy}" go`);
      await asked.until("allow? [");
      asked.type(`y${enter}`);
      await asked.until("written");
      assertEquals([(await asked.ended).code, existsSync(join(m.repo, "a.txt"))], [0, true]);
      assertEquals(asked.shown.split("written").length - 1, 1, asked.shown);
      await soundLog(m);
      const alone = atTerminal(m, `"${binary}" run --unattended --policy "${policy}" go`);
      assertEquals([(await alone.ended).code, alone.shown.includes("allow?")], [5, false]);
    });
  });
});

describe("commands of the chat", () => {
  test.skipIf(noTerminal)(
    "/help, /status, /compact, /grants and /skill answer and send nothing to the model",
    async () => {
      await withMachine(async (m) => {
        const talk = chat(m, [{ text: "unused" }]);
        const exchanges: readonly (readonly [string, readonly string[]])[] = [
          ["/help", ["/help", "/status", "/model", "/compact", "/skill", "/grants", "/quit"]],
          ["/status", [
            "session  ",
            "policy   ",
            "model    script/script",
            "skills   none active",
            "context  ",
            " of 191808 tokens: system ",
            "log      ",
          ]],
          ["/compact", ["not compacted: nothing is left in it that could be cut or summed up"]],
          ["/grants", ["no kept answers"]],
          ["/skill list", ["commit ", "explain-code ", "mainline-guardian "]],
          ["/skill find review", ["mainline-guardian"]],
          ["/skill clear", ["no such skill is loaded"]],
          ["/skill nope", ["no skill `nope`; available: "]],
          ["/skill mainlin-guardian", ["did you mean mainline-guardian?"]],
          ["/staus", ["error: no command /staus; did you mean /status?"]],
          ["/model", ["* default"]],
          ["/model fast", ["error: `fast` is no model of this policy", "* default"]],
          ["/modle fast", ["error: no command /modle; did you mean /model?"]],
          ["/帮助", ["error: no command /帮助"]],
          ["   ", []],
        ];
        await talk.until("/help lists the commands");
        for (const [typed, expected] of exchanges) {
          await talk.until("> ");
          talk.type(`${typed}${enter}`);
          if (typed.trim() !== "") await talk.until(typed);
          for (const text of expected) await talk.until(text);
        }
        await talk.until("> ");
        talk.type(`/quit${enter}`);
        assertEquals((await talk.ended).code, 0);
        await soundLog(m);
        assertEquals(messages(m), []);
      });
    },
  );

  test.skipIf(noTerminal)("/skill NAME is a turn with that skill; a path is a message", async () => {
    await withMachine(async (m) => {
      const talk = chat(m, [{ text: "one" }, { text: "two" }]);
      await talk.until("> ");
      talk.type(`/skill explain-code src/a.txt${enter}`);
      await talk.until("one");
      await talk.until("> ");
      talk.type(`/etc/hosts is what I mean${enter}`);
      await talk.until("two");
      await talk.until("> ");
      talk.type(`/exit${enter}`);
      assertEquals((await talk.ended).code, 0);
      const events = await soundLog(m);
      assertEquals(messages(m), ["/skill explain-code src/a.txt", "/etc/hosts is what I mean"]);
      assertEquals(eventsOf(events, "skill.loaded").map((e) => [e.data.name, e.data.trigger.kind]), [[
        "explain-code",
        "explicit",
      ]]);
    });
  });

  test.skipIf(noTerminal)("--continue goes on with a session, and a run with it afterwards", async () => {
    await withMachine(async (m) => {
      const first = chat(m, [{ text: "one" }]);
      await first.until("> ");
      first.type(`first${enter}`);
      await first.until("one");
      await first.until("> ");
      first.type(ctrlD);
      assertEquals((await first.ended).code, 0);
      const second = chat(m, [{ text: "two" }], "", "--continue");
      await second.until("> ");
      second.type(`second${enter}`);
      await second.until("two");
      await second.until("> ");
      second.type(`/status${enter}`);
      await second.until(`session  ${m.ids()[0]}, 2 turns`);
      await second.until("> ");
      second.type(ctrlD);
      assertEquals((await second.ended).code, 0);
      const ran = await m.writ(["run", "--policy", join(m.top, "policy.yaml"), "--continue", "third"]);
      assertEquals([ran.code, ran.stdout], [0, "two\n"], ran.stderr);
      await soundLog(m);
      assertEquals([m.ids().length, messages(m)], [1, ["first", "second", "third"]]);
    });
  });

  test.skipIf(noTerminal)("/compact has the earlier part summed up, and keeps the last answer", async () => {
    await withMachine(async (m) => {
      const long = (word: string) => ({ text: `${word} ${"of many words ".repeat(600)}` });
      const talk = chat(m, [long("one"), long("two"), long("three"), { text: "It was about words." }, {
        text: "after that",
      }]);
      for (const [typed, shown] of [["a", "one"], ["b", "two"], ["c", "three"]] as const) {
        await talk.until("> ");
        talk.type(`${typed}${enter}`);
        await talk.until(shown);
      }
      await talk.until("> ");
      talk.type(`/compact${enter}`);
      await talk.until("context compacted: ");
      await talk.until("the earlier part summed up");
      await talk.until("> ");
      talk.type(`d${enter}`);
      await talk.until("after that");
      await talk.until("> ");
      talk.type(ctrlD);
      assertEquals((await talk.ended).code, 0);
      const events = await soundLog(m);
      const [compaction] = eventsOf(events, "context.compacted");
      assertEquals([compaction?.turn, compaction?.data.summary], [undefined, "It was about words."]);
      assertEquals(eventsOf(events, "model.completed").map((e) => e.data.purpose), [
        undefined,
        undefined,
        undefined,
        "summary",
        undefined,
      ]);
      assertEquals(eventsOf(events, "context.built").map((e) => e.data.truncated), [
        false,
        false,
        false,
        true,
      ]);
    });
  });

  test.skipIf(noTerminal)("a skill of session scope stays until /skill clear", async () => {
    await withMachine(async (m) => {
      const talk = chat(
        m,
        [{ text: "one" }, { text: "two" }, { text: "three" }],
        "skills: {scope: session}\n",
      );
      for (
        const [typed, shown] of [
          ["/skill commit", "one"],
          ["more", "two"],
          ["/status", "commit (explicit, session)"],
          ["/skill clear commit", "ended: commit"],
          ["end", "three"],
        ] as const
      ) {
        await talk.until("> ");
        talk.type(`${typed}${enter}`);
        await talk.until(shown);
      }
      await talk.until("> ");
      talk.type(ctrlD);
      assertEquals((await talk.ended).code, 0);
      const events = await soundLog(m);
      assertEquals(eventsOf(events, "context.built").map((e) => e.data.sources.skills), [["commit"], [
        "commit",
      ], []]);
    });
  });
});

describe("what is typed", () => {
  const block = ["first line", "  second line", "", "fourth line"];
  for (
    const [name, keys] of [
      ["with a last Enter", `${block.join(enter)}${enter}`],
      ["whose last line waits for Enter", block.join(enter)],
    ] as const
  ) {
    test.skipIf(noTerminal)(`a pasted block is one message, ${name}`, async () => {
      await withMachine(async (m) => {
        const talk = chat(m, [{ text: "read it" }, { text: "read more" }]);
        await talk.until("> ");
        talk.type(keys);
        if (!keys.endsWith(enter)) {
          await talk.until("fourth line");
          // Long enough for a block that is taken for whole to have become a message.
          await new Promise((resolve) => setTimeout(resolve, 200));
          talk.type(` and more${enter}`);
        }
        await talk.until("read it");
        await talk.until("> ");
        talk.type(`/quit${enter}`);
        assertEquals((await talk.ended).code, 0);
        await soundLog(m);
        assertEquals(messages(m), [keys.endsWith(enter) ? block.join("\n") : `${block.join("\n")} and more`]);
      });
    });
  }

  test.skipIf(noTerminal)("a message in Chinese comes through whole and meets its pattern", async () => {
    await withMachine(async (m) => {
      const talk = chat(m, [{ text: "检查过了" }]);
      await talk.until("> ");
      talk.type(`合并前检查一下${enter}`);
      await talk.until("skill mainline-guardian");
      await talk.until("检查过了");
      await talk.until("> ");
      talk.type(ctrlD);
      assertEquals((await talk.ended).code, 0);
      await soundLog(m);
      assertEquals(messages(m), ["合并前检查一下"]);
    });
  });

  test.skipIf(noTerminal)("is kept as history for its owner only", async () => {
    await withMachine(async (m) => {
      for (const message of ["alpha", "beta"]) {
        if (message === "beta") appendFileSync(join(m.top, "state/writ/history"), '"half a li');
        const talk = chat(m, [{ text: "done" }]);
        await talk.until("> ");
        // The arrow brings what was typed in the chat before; Ctrl-U takes the line away.
        if (message === "beta") {
          talk.type("\x1b[A\x1b[A");
          await talk.until("alpha");
          talk.type("\x15");
        }
        talk.type(`${message}${enter}`);
        await talk.until("done");
        await talk.until("> ");
        talk.type(`/quit${enter}`);
        assertEquals((await talk.ended).code, 0);
        assertEquals(messages(m), [message]);
      }
      const file = join(m.top, "state/writ/history");
      assertEquals(readFileSync(file, "utf8").trim().split("\n").map((l) => JSON.parse(l)), [
        "alpha",
        "/quit",
        "beta",
        "/quit",
      ]);
      assertEquals((statSync(file).mode & 0o777).toString(8), "600");
    });
  });
});

describe("interrupts at the terminal", () => {
  test.skipIf(noTerminal)(
    "Ctrl-C cancels a running command, then the chat goes on; at the prompt it ends it",
    async () => {
      await withMachine(async (m) => {
        m.write("repo/work.sh", "echo $$ > pid\ntouch ready\nexec sleep 1000\n");
        const talk = chat(
          m,
          [{ calls: [{ shell: { command: "bash work.sh", timeout: 600 } }] }, { text: "the next" }],
          'sandbox: {mode: "off"}\npermissions: {allow: ["shell(bash work.sh)"]}\n',
        );
        await talk.until("> ");
        talk.type(`go${enter}`);
        await eventually(() => existsSync(join(m.repo, "ready")));
        talk.type(ctrlC);
        await talk.until("cancelled");
        await talk.until("> ");
        assertEquals(isRunning(Number(readFileSync(join(m.repo, "pid"), "utf8"))), false);
        talk.type(`again${enter}`);
        await talk.until("the next");
        await talk.until("> ");
        talk.type(ctrlC);
        assertEquals((await talk.ended).code, 0);
        const events = await soundLog(m);
        assertEquals(eventsOf(events, "turn.completed").map((e) => e.data.stopReason), [
          "cancelled",
          "final",
        ]);
      });
    },
  );

  test.skipIf(noTerminal)("Ctrl-C stops the model's words where they are", async () => {
    await withMachine(async (m) => {
      await withMessagesServer(
        [{ blocks: [{ text: "Once upon a time there was" }], stallAt: 760 }],
        async (server) => {
          const policy = m.write("policy.yaml", `version: 1\nmodel: {name: m, base_url: "${server.url}"}\n`);
          const talk = atTerminal(m, `"${binary}" chat --policy "${policy}"`, {
            ANTHROPIC_API_KEY: "sk-test-0123456789",
          });
          await talk.until("> ");
          talk.type(`tell me${enter}`);
          await talk.until("Once upon");
          talk.type(ctrlC);
          await talk.until("cancelled");
          await talk.until("> ");
          talk.type(`/quit${enter}`);
          assertEquals((await talk.ended).code, 0);
          await soundLog(m);
        },
      );
    });
  });

  for (const signal of ["SIGTERM", "SIGHUP"] as const) {
    test.skipIf(noTerminal)(`${signal} ends the turn and the chat, in a turn and at the prompt`, async () => {
      for (const within of ["a turn", "the prompt"]) {
        await withMachine(async (m) => {
          m.write("repo/work.sh", "touch ready\nexec sleep 1000\n");
          m.write(
            "replies.yaml",
            JSON.stringify([{ calls: [{ shell: { command: "bash work.sh", timeout: 600 } }] }]),
          );
          const policy = m.write(
            "policy.yaml",
            `version: 1\n${script}sandbox: {mode: "off"}\npermissions: {allow: ["shell(bash work.sh)"]}\n`,
          );
          const talk = atTerminal(m, `echo $$ > pid; exec "${binary}" chat --policy "${policy}"`);
          await talk.until("> ");
          if (within === "a turn") {
            talk.type(`go${enter}`);
            await eventually(() => existsSync(join(m.repo, "ready")));
          }
          process.kill(Number(readFileSync(join(m.repo, "pid"), "utf8")), signal);
          assertEquals([within, (await talk.ended).code], [within, 143], talk.shown);
          const stops = eventsOf(await soundLog(m), "turn.completed").map((e) => e.data.stopReason);
          assertEquals(stops, within === "a turn" ? ["interrupted"] : []);
        });
      }
    });
  }

  test.skipIf(noTerminal)("the terminal is as it was, however the chat ends", async () => {
    await withMachine(async (m) => {
      m.write("repo/work.sh", "trap '' TERM\ntouch ready\nwhile :; do sleep 0.05; done\n");
      m.write("replies.yaml", JSON.stringify([{ calls: [{ shell: { command: "bash work.sh" } }] }]));
      const policy = m.write(
        "policy.yaml",
        `version: 1\n${script}sandbox: {mode: "off"}\npermissions: {allow: ["shell(bash work.sh)"]}\n`,
      );
      const line =
        `stty -a > before; "${binary}" chat --policy "${policy}"; echo "ended $?"; stty -a > after`;
      const ways: readonly ((talk: Talk) => Promise<void>)[] = [
        async (talk) => talk.type(`/quit${enter}`),
        async (talk) => talk.type(ctrlC),
        async (talk) => talk.type(ctrlD),
        async (talk) => {
          talk.type(`go${enter}`);
          await eventually(() => existsSync(join(m.repo, "ready")));
          talk.type(ctrlC);
          talk.type(ctrlC);
        },
      ];
      for (const way of ways) {
        const talk = atTerminal(m, `sh -c '${line}'`);
        await talk.until("> ");
        await way(talk);
        await talk.until("ended ");
        await talk.ended;
        const [before, after] = ["before", "after"].map((f) => readFileSync(join(m.repo, f), "utf8"));
        assertMatch(before ?? "", /\becho\b/);
        assertEquals(after, before);
      }
    });
  });
});

test.skipIf(noTerminal)(
  "a run that asks nothing leaves the terminal alone, even when it is killed",
  async () => {
    await withMachine(async (m) => {
      m.write("repo/work.sh", "echo $$ > child\ntouch ready\nexec sleep 1000\n");
      m.write(
        "replies.yaml",
        JSON.stringify([{ calls: [{ shell: { command: "bash work.sh", timeout: 600 } }] }]),
      );
      const policy = m.write(
        "policy.yaml",
        `version: 1\n${script}sandbox: {mode: "off"}\npermissions: {allow: ["shell(bash work.sh)"]}\n`,
      );
      const run = `sh -c "echo \\$\\$ > pid; exec \"${binary}\" run --policy \"${policy}\" go"`;
      const talk = atTerminal(m, `stty -a > before; ${run}; echo "ended $?"; stty -a > after`);
      await eventually(() => existsSync(join(m.repo, "ready")));
      const pids = ["pid", "child"].map((f) => Number(readFileSync(join(m.repo, f), "utf8")));
      for (const pid of pids) process.kill(pid, "SIGKILL");
      await talk.until("ended 137");
      await talk.ended;
      const [before, after] = ["before", "after"].map((f) => readFileSync(join(m.repo, f), "utf8"));
      assertEquals(after, before);
    });
  },
);

describe("trust", () => {
  const brought = 'version: 1\npermissions: {deny: ["read_file(src/**)"]}\n';
  const reads = JSON.stringify([{ calls: [{ read_file: { path: "src/a.txt" } }] }, { text: "done" }]);
  const start = (m: Machine) => {
    m.write("repo/.writ/policy.yaml", brought);
    m.write("replies.yaml", reads);
    const policy = m.write("policy.yaml", `version: 1\n${script}`);
    return () => atTerminal(m, `"${binary}" run --policy "${policy}" go`);
  };

  for (const [answer, code] of [["y", "denied"], ["n", undefined]] as const) {
    test.skipIf(noTerminal)(`is asked once: ${answer} is kept until the content changes`, async () => {
      await withMachine(async (m) => {
        const run = start(m);
        const first = run();
        await first.until("brings:");
        await first.until(".writ/policy.yaml");
        await first.until("trust them? [y/N]");
        first.type(`${answer}${enter}`);
        await first.until("done");
        assertEquals((await first.ended).code, 0);
        const second = run();
        assertEquals([(await second.ended).code, second.shown.includes("trust them?")], [0, false]);
        const codes = m.ids().map((id) => eventsOf(m.events(id), "tool.completed").map((e) => e.data.code));
        assertEquals(codes, [[code], [code]]);
        m.write("repo/.writ/policy.yaml", `${brought}# changed\n`);
        const third = run();
        await third.until("trust them? [y/N]");
        third.type(`${answer}${enter}`);
        assertEquals((await third.ended).code, 0);
      });
    });
  }

  for (const [name, key] of [["Ctrl-C", ctrlC], ["the end of the input", ctrlD]] as const) {
    test.skipIf(noTerminal)(
      `${name} at the question is no answer: nothing runs, it is asked again`,
      async () => {
        await withMachine(async (m) => {
          const run = start(m);
          for (let i = 0; i < 2; i++) {
            const talk = run();
            await talk.until("trust them? [y/N]");
            talk.type(key);
            assertEquals((await talk.ended).code, 130);
          }
          assertEquals(m.ids(), []);
        });
      },
    );
  }
});

describe("a policy that changes while a chat is open", () => {
  test.skipIf(noTerminal)(
    "counts from the next turn on; one that does not load leaves the old one in force",
    async () => {
      await withMachine(async (m) => {
        const talk = chat(
          m,
          [{ calls: [write("a.txt")] }, { text: "one" }, { text: "two" }, { calls: [write("b.txt")] }, {
            text: "three",
          }],
          "permissions: {allow: [write_file]}\n",
        );
        await talk.until("> ");
        talk.type(`first${enter}`);
        await talk.until("one");
        m.write("policy.yaml", `version: 1\n${script}permissions: {alow: [write_file]}\n`);
        await talk.until("> ");
        talk.type(`second${enter}`);
        await talk.until("policy.yaml:3:15: error: unknown key `permissions.alow`; did you mean `allow`?");
        await talk.until("the changed policy was not taken; the one before stays in force");
        await talk.until("two");
        m.write("policy.yaml", `version: 1\n${script}permissions: {deny: [write_file]}\n`);
        await talk.until("> ");
        talk.type(`third${enter}`);
        await talk.until("three");
        await talk.until("> ");
        talk.type(`/quit${enter}`);
        assertEquals((await talk.ended).code, 0);
        const events = await soundLog(m);
        assertEquals(eventsOf(events, "policy.changed").length, 1);
        assertEquals(eventsOf(events, "tool.completed").map((e) => e.data.code), [undefined, "denied"]);
        assert(!existsSync(join(m.repo, "b.txt")));
      });
    },
  );
});
