// The record of past runs: what is shown of it, how it survives a crash, and what refuses to go on with it.
import { describe, test } from "bun:test";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { appendFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
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
import { binary } from "../support/runtimes.ts";

function scripted(m: Machine, replies: string, rest = ""): readonly string[] {
  m.write("replies.yaml", replies);
  return [
    "--policy",
    m.write(
      "policy.yaml",
      `version: 1\nname: notes\nmodel: {provider: script, script: replies.yaml}\n${rest}`,
    ),
  ];
}

const reads = "- text: Looking.\n  call: {read_file: {path: src/a.txt}}\n- text: done\n";

/** A machine with one session of one turn; its id. */
async function withSession(
  use: (m: Machine, args: readonly string[], id: string) => Promise<void>,
): Promise<void> {
  await withMachine(async (m) => {
    const args = scripted(m, reads);
    const ran = await m.writ(["run", ...args, "the first message"]);
    assertEquals([ran.code, ran.stdout], [0, "done\n"], ran.stderr);
    await use(m, args, m.ids()[0] ?? "");
  });
}

describe("writ session", () => {
  test("list gives the newest first, for people and as JSON", async () => {
    await withSession(async (m, args, first) => {
      assertEquals((await m.writ(["run", ...args, "the second\nmessage"])).code, 0);
      const second = m.ids()[0] ?? "";
      const list = await m.writ(["session", "list"]);
      assertEquals([list.code, list.stderr], [0, ""]);
      const rows = list.stdout.trimEnd().split("\n");
      assertEquals(rows.map((r) => r.split("  ")[0]), [second, first]);
      assertMatch(
        rows[0] ?? "",
        /^\S+ {2}\d{4}-\d\d-\d\dT\S+Z {2}1 turn {2}\d+ events {2}the second\\nmessage$/,
      );
      const json = await m.writ(["session", "list", "--json"]);
      const { sessions } = JSON.parse(json.stdout);
      assertEquals(
        sessions.map((
          s: { [key: string]: unknown },
        ) => [s["id"], s["turns"], s["open"], s["damaged"], s["workspace"], s["message"], s["log"]]),
        [
          [second, 1, false, false, m.repo, "the second\nmessage", m.logPath(second)],
          [first, 1, false, false, m.repo, "the first message", m.logPath(first)],
        ],
      );
      const one = await m.writ(["session", "list", "--limit", "1"]);
      assertEquals(one.stdout.trimEnd().split("\n"), rows.slice(0, 1));
    });
  });

  test("list of nothing is no fault", async () => {
    await withMachine(async (m) => {
      const list = await m.writ(["session", "list"]);
      assertEquals([list.code, list.stdout, list.stderr], [0, "", `no sessions in ${m.sessions}\n`]);
      const json = await m.writ(["session", "list", "--json"]);
      assertEquals(JSON.parse(json.stdout), { sessions: [] });
      const verify = await m.writ(["session", "verify"]);
      assertEquals([verify.code, verify.stdout], [0, ""]);
    });
  });

  test("show tells what happened; --events gives the lines of the log", async () => {
    await withSession(async (m, _, id) => {
      const shown = await m.writ(["session", "show", id]);
      assertEquals([shown.code, shown.stderr], [0, ""]);
      const inOrder = [
        "started ",
        "policy notes ",
        "model script/script",
        "> the first message",
        "Looking.",
        "→ read_file path=src/a.txt",
        "✓ allowed",
        "done",
        "turn ended: final",
      ];
      let at = 0;
      for (const text of inOrder) {
        const found = shown.stdout.indexOf(text, at);
        assert(found >= at, `${text} is not behind what comes before it:\n${shown.stdout}`);
        at = found + text.length;
      }
      for (const option of ["--events", "--json"]) {
        const events = await m.writ(["session", "show", option, id]);
        assertEquals([events.code, events.stdout], [0, readFileSync(m.logPath(), "utf8")]);
      }
    });
  });

  test("verify checks one or all and gives the head", async () => {
    await withSession(async (m, args, id) => {
      assertEquals((await m.writ(["run", ...args, "second"])).code, 0);
      const head = m.events(id).at(-1)?.hash ?? "";
      const one = await m.writ(["session", "verify", id]);
      assertEquals(one, {
        code: 0,
        signal: null,
        stdout: `${id}: consistent, ${m.events(id).length} events, head ${head.slice(0, 16)}\n`,
        stderr: "",
      });
      const all = await m.writ(["session", "verify", "--json"]);
      const { sessions } = JSON.parse(all.stdout);
      assertEquals(
        sessions.map((s: { [key: string]: unknown }) => [s["id"], s["result"]]),
        m.ids().map((i) => [i, "consistent"]),
      );
      assertEquals(sessions[1], {
        id,
        path: m.logPath(id),
        result: "consistent",
        events: m.events(id).length,
        head,
        anchoredBy: [],
        faults: [],
      });
    });
  });

  test("the record is for its owner only", async () => {
    await withSession(async (m, _, id) => {
      const modes = [m.logPath(id), join(m.sessions, id), m.sessions].map((p) =>
        (statSync(p).mode & 0o777).toString(8)
      );
      assertEquals(modes, ["600", "700", "700"]);
    });
  });

  test("the policy's audit.dir holds the record, and --dir finds it", async () => {
    await withMachine(async (m) => {
      const dir = join(m.top, "audit");
      const args = scripted(m, reads, `audit: {dir: ${dir}}\n`);
      for (const more of [[], ["--continue"]]) {
        assertEquals((await m.writ(["run", ...args, ...more, "go"])).code, 0);
      }
      assertEquals(m.ids(), []);
      const list = JSON.parse((await m.writ(["session", "list", "--dir", dir, "--json"])).stdout);
      assertEquals(list.sessions.map((s: { turns: number }) => s.turns), [2]);
      assertEquals((await m.writ(["session", "verify", "--dir", dir])).code, 0);
    });
  });
});

test("what an edit replaces is kept beside the log", async () => {
  await withMachine(async (m) => {
    const args = scripted(
      m,
      "- calls: [{edit_file: {path: src/a.txt, old: one, new: uno}}, {write_file: {path: new.txt, content: x}}]\n- text: done\n",
      'permissions: {allow: ["edit_file(**)", "write_file(**)"]}\n',
    );
    assertEquals((await m.writ(["run", ...args, "go"])).code, 0);
    const folder = join(m.sessions, m.ids()[0] ?? "", "before");
    assertEquals(readFileSync(join(folder, "000001.bin"), "utf8"), "one\ntwo\n");
    const notes = ["000001.json", "000002.json"].map((f) =>
      JSON.parse(readFileSync(join(folder, f), "utf8"))
    );
    assertEquals(notes, [
      { path: join(m.repo, "src/a.txt"), existed: true },
      { path: join(m.repo, "new.txt"), existed: false },
    ]);
  });
});

describe("a log that was changed", () => {
  const changes: readonly (readonly [string, (lines: string[]) => string, number, string])[] = [
    [
      "a letter",
      (l) => l.with(1, (l[1] ?? "").replace("the first", "the worst")).join("\n"),
      2,
      "the hash does not fit the line",
    ],
    ["a line that is left out", (l) => l.toSpliced(2, 1).join("\n"), 3, "the event has seq 4, expected 3"],
    [
      "two lines that changed places",
      (l) => [l[0], l[2], l[1], ...l.slice(3)].join("\n"),
      2,
      "the event has seq 3, expected 2",
    ],
    [
      "a line of another session",
      (l) => [l[0], l[0], ...l.slice(1)].join("\n"),
      2,
      "the event has seq 1, expected 2",
    ],
    ["what is no JSON", (l) => l.with(3, "garbage").join("\n"), 4, "not a sealed event"],
  ];
  for (const [name, change, line, says] of changes) {
    test(`by ${name}: verify gives exit code 8 and the line, a resume is refused`, async () => {
      await withSession(async (m, args, id) => {
        const path = m.logPath(id);
        writeFileSync(path, change(readFileSync(path, "utf8").split("\n")));
        const before = readFileSync(path, "utf8");
        for (const which of [[id], []]) {
          const verified = await m.writ(["session", "verify", ...which]);
          assertEquals(verified.code, 8);
          assertStringIncludes(verified.stdout, `${id}: damaged, ${line - 1} event`);
          assertStringIncludes(verified.stdout, `line ${line}: ${says}`);
        }
        const resumed = await m.writ(["run", ...args, "--resume", id, "go"]);
        assertEquals([resumed.code, resumed.stdout], [8, ""]);
        assertStringIncludes(resumed.stderr, `${path}:${line}: ${says}; the session is not resumed`);
        const shown = await m.writ(["session", "show", id]);
        assertEquals(shown.code, 8);
        assertStringIncludes(shown.stderr, `${path}:${line}: ${says}; what follows is not shown`);
        assertEquals(readFileSync(path, "utf8"), before);
        assertEquals(m.ids(), [id]);
      });
    });
  }

  test("one that cannot be read is a finding beside the others", async () => {
    await withSession(async (m, args, good) => {
      mkdirSync(join(m.sessions, "folder/log.jsonl"), { recursive: true });
      m.write("state/writ/sessions/stray", "");
      const verified = await m.writ(["session", "verify"]);
      assertEquals(verified.code, 8);
      assertStringIncludes(verified.stdout, `${good}: consistent`);
      assertStringIncludes(verified.stdout, "folder: damaged, 0 events");
      const list = await m.writ(["session", "list"]);
      assertEquals([list.code, list.stdout.trimEnd().split("\n").length], [0, 2], list.stderr);
      assertEquals((await m.writ(["run", ...args, "--continue", "go"])).code, 0);
    });
  });
});

describe("a log that was torn", () => {
  for (const cut of [1, 40, 200]) {
    test(`${cut} bytes within a write are saved aside and cut at the resume`, async () => {
      await withSession(async (m, args, id) => {
        const path = m.logPath(id);
        const whole = readFileSync(path);
        const torn = whole.subarray(0, cut);
        appendFileSync(path, torn);
        const verified = await m.writ(["session", "verify", id]);
        assertEquals(verified.code, 8);
        assertStringIncludes(verified.stdout, `torn: ${cut} bytes after the last event`);
        const resumed = await m.writ(["run", ...args, "--resume", id, "go on"]);
        assertEquals([resumed.code, resumed.stdout], [0, "done\n"], resumed.stderr);
        assertStringIncludes(resumed.stderr, `${cut} bytes were saved as ${path}.torn-${whole.length}`);
        const events = await soundLog(m, id);
        assertChain(events, [
          "turn.completed",
          "session.recovered",
          "session.resumed",
          "user.message",
          "turn.completed",
        ]);
        const [recovered] = eventsOf(events, "session.recovered");
        assertEquals(recovered?.data, { bytes: cut, savedAs: `${path}.torn-${whole.length}` });
        assertEquals(readFileSync(`${path}.torn-${whole.length}`), torn);
        assertEquals(readFileSync(path).subarray(0, whole.length), whole);
      });
    });
  }
});

describe("a crash", () => {
  const policy =
    'sandbox: {mode: "off"}\npermissions: {allow: ["shell(bash work.sh)", "write_file(*.txt)"]}\n';

  test("within a running command is closed at the resume, and the command is not run again", async () => {
    await withMachine(async (m) => {
      m.write("repo/work.sh", "echo ran >> count\necho $$ > pid\ntouch ready\nexec sleep 1000\n");
      const args = scripted(
        m,
        "- calls: [{shell: {command: bash work.sh}}, {read_file: {path: src/a.txt}}]\n- text: never\n",
        policy,
      );
      m.write(
        "config/writ/skills/worker/SKILL.md",
        "---\nname: worker\ndescription: Works.\nallowed_tools: [shell, read_file]\n---\nWork.\n",
      );
      const running = m.start(["run", ...args, "/skill worker"]);
      await eventually(() => existsSync(join(m.repo, "ready")));
      running.kill("SIGKILL");
      assertEquals((await running.ended).signal, "SIGKILL");
      const pid = Number(readFileSync(join(m.repo, "pid"), "utf8"));
      process.kill(pid, "SIGKILL");
      const id = m.ids()[0] ?? "";
      assertEquals(m.events(id).at(-1)?.type, "tool.started");
      assertStringIncludes((await m.writ(["session", "list"])).stdout, " open ");

      m.write("replies.yaml", "- text: back again\n");
      const resumed = await m.writ(["run", ...args, "--resume", id, "what happened?"]);
      assertEquals([resumed.code, resumed.stdout], [0, "back again\n"], resumed.stderr);
      const events = await soundLog(m, id);
      assertChain(events, [
        "tool.started",
        "tool.interrupted",
        "tool.interrupted",
        "skill.completed",
        "skill.unloaded",
        "turn.completed",
        "session.resumed",
        "user.message",
        "turn.completed",
      ]);
      assertEquals(eventsOf(events, "tool.interrupted").map((e) => [e.data.tool, e.data.started]), [
        ["shell", true],
        ["read_file", false],
      ]);
      assertEquals(eventsOf(events, "turn.completed").map((e) => e.data.stopReason), [
        "interrupted",
        "final",
      ]);
      assertEquals(eventsOf(events, "skill.completed").map((e) => e.data.outcome), ["unreported"]);
      assertEquals(readFileSync(join(m.repo, "count"), "utf8"), "ran\n");
      assertEquals(isRunning(pid), false);
    });
  });

  test("within the model's words is closed at the resume", async () => {
    await withMachine(async (m) => {
      const plan = [{ blocks: [{ text: "Half a sent" }], stallAt: 600 }, {
        blocks: [{ text: "A whole one." }],
      }];
      await withMessagesServer(plan, async (server) => {
        const file = m.write("policy.yaml", `version: 1\nmodel: {name: m, base_url: "${server.url}"}\n`);
        const env = { ANTHROPIC_API_KEY: "sk-test-0123456789" };
        const running = m.start(["run", "--policy", file, "go"], { env });
        await eventually(() => server.requests.length === 1);
        running.kill("SIGKILL");
        await running.ended;
        const resumed = await m.writ(["run", "--policy", file, "--continue", "again"], { env });
        assertEquals([resumed.code, resumed.stdout], [0, "A whole one.\n"], resumed.stderr);
        const events = await soundLog(m);
        assertEquals(eventsOf(events, "turn.completed").map((e) => e.data.stopReason), [
          "interrupted",
          "final",
        ]);
        const body = JSON.parse(server.requests[1]?.body ?? "{}");
        assertEquals(body.messages.map((msg: { role: string }) => msg.role), ["user"]);
      });
    });
  });
});

describe("a resume is refused", () => {
  test("while the session is open in another process, which is not disturbed", async () => {
    await withMachine(async (m) => {
      m.write("repo/work.sh", "touch ready\nuntil [ -e go ]; do sleep 0.02; done\n");
      const args = scripted(
        m,
        "- call: {shell: {command: bash work.sh}}\n- text: done\n",
        'sandbox: {mode: "off"}\npermissions: {allow: ["shell(bash work.sh)"]}\n',
      );
      const running = m.start(["run", ...args, "go"]);
      await eventually(() => existsSync(join(m.repo, "ready")));
      const id = m.ids()[0] ?? "";
      for (const how of [["--resume", id], ["--continue"]]) {
        const second = await m.writ(["run", ...args, ...how, "me too"]);
        assertEquals([second.code, second.stdout], [2, ""]);
        assertStringIncludes(
          second.stderr,
          `session \`${id}\` is open in process ${running.pid}; end that first`,
        );
      }
      m.write("repo/go", "");
      const ended = await running.ended;
      assertEquals([ended.code, ended.stdout], [0, "done\n"], ended.stderr);
      assertEquals(eventsOf(await soundLog(m, id), "user.message").length, 1);
      m.write("replies.yaml", "- text: now\n");
      assertEquals((await m.writ(["run", ...args, "--resume", id, "now?"])).stdout, "now\n");
    });
  });

  test("to all but one of those that come at the same time, also after a crash", async () => {
    await withSession(async (m, args, id) => {
      for (let round = 0; round < 4; round++) {
        m.write(`state/writ/sessions/${id}/lock.999999999-1`, "");
        const all = await Promise.all(
          Array.from({ length: 6 }, (_, i) => m.writ(["run", ...args, "--resume", id, `${round} ${i}`])),
        );
        assertEquals(all.filter((r) => r.code !== 0 && r.code !== 2), []);
        const refused = all.filter((r) => r.code === 2);
        assertEquals(refused.filter((r) => !r.stderr.includes(`session \`${id}\` is open in process `)), []);
        const events = await soundLog(m, id);
        const said = eventsOf(events, "user.message").filter((e) => e.data.content.startsWith(`${round} `));
        assertEquals(said.length, all.length - refused.length);
        assert(said.length > 0);
      }
    });
  });

  test("from another workspace", async () => {
    await withSession(async (m, args, id) => {
      const before = readFileSync(m.logPath(id));
      m.write("other/a.txt", "");
      const other = join(m.top, "other");
      const resumed = await m.writ(["run", ...args, "-C", other, "--resume", id, "go"]);
      assertEquals([resumed.code, resumed.stdout], [2, ""]);
      assertStringIncludes(
        resumed.stderr,
        `the session belongs to the workspace \`${m.repo}\`, this is \`${other}\``,
      );
      const continued = await m.writ(["run", ...args, "-C", other, "--continue", "go"]);
      assertEquals(continued.code, 2);
      assertStringIncludes(continued.stderr, `no session of ${other} to continue`);
      assertEquals(readFileSync(m.logPath(id)), before);
    });
  });

  test("by another user", async () => {
    await withSession(async (m, args, id) => {
      const resumed = await m.writ(["run", ...args, "--resume", id, "go"], { env: { USER: "somebody" } });
      assertEquals([resumed.code, resumed.stdout], [2, ""]);
      assertStringIncludes(resumed.stderr, "the session belongs to the user `tester`, this is `somebody`");
    });
  });

  test("without a skill that the policy now forces; then the log stays as it was", async () => {
    await withSession(async (m, _, id) => {
      const before = readFileSync(m.logPath(id));
      const args = scripted(m, reads, "skills: {forced: [{skill: nowhere, when: session}]}\n");
      const resumed = await m.writ(["run", ...args, "--resume", id, "go"]);
      assertEquals(resumed.code, 2);
      assertEquals(readFileSync(m.logPath(id)), before);
    });
  });
});

describe("a resume goes by the policy of now", () => {
  test("what is forced anew is loaded, what is no longer forced ends", async () => {
    await withMachine(async (m) => {
      for (const name of ["one", "two"]) {
        m.write(
          `config/writ/skills/${name}/SKILL.md`,
          `---\nname: ${name}\ndescription: Is ${name}.\n---\nDo ${name}.\n`,
        );
      }
      const forced = (name: string) =>
        scripted(m, "- text: done\n", `skills: {forced: [{skill: ${name}, when: session}]}\n`);
      assertEquals((await m.writ(["run", ...forced("one"), "first"])).code, 0);
      assertEquals((await m.writ(["run", ...forced("two"), "--continue", "second"])).code, 0);
      const events = await soundLog(m);
      assertChain(events, [
        "session.started",
        "skill.loaded",
        "turn.completed",
        "session.resumed",
        "skill.unloaded",
        "skill.loaded",
        "user.message",
      ]);
      assertEquals(eventsOf(events, "context.built").map((e) => e.data.sources.skills), [["one"], ["two"]]);
    });
  });
});

describe("a log that cannot be written", () => {
  test("refuses the start with exit code 8 and says where", async () => {
    await withMachine(async (m) => {
      const args = scripted(m, reads);
      for (const json of [[], ["--json"]]) {
        const ran = await m.writ(["run", ...args, ...json, "go"], {
          env: { XDG_STATE_HOME: "/dev/null/state" },
        });
        assertEquals(ran.code, 8);
        assertStringIncludes(`${ran.stdout}${ran.stderr}`, "cannot create /dev/null/state/writ/sessions/");
        if (json.length > 0) assertEquals(JSON.parse(ran.stdout).exit, 8);
      }
    });
  });

  // A file may grow to so many KiB; the signal that comes with it is ignored, so that the write fails.
  const limited = (m: Machine, kib: number, args: readonly string[]) =>
    m.program(["bash", "-c", `trap '' XFSZ; ulimit -f ${kib}; exec "$@"`, "bash", binary, ...args]);

  test("at its first event leaves nothing behind", async () => {
    await withMachine(async (m) => {
      const ran = await limited(m, 0, ["run", ...scripted(m, reads), "go"]);
      assertEquals([ran.code, ran.stdout], [8, ""], ran.stderr);
      assertStringIncludes(ran.stderr, "error: cannot ");
      assertEquals(/^\s+at /m.test(ran.stderr), false, ran.stderr);
      assertEquals(existsSync(m.sessions) ? m.ids() : [], []);
    });
  });

  test("within a turn ends it: what could not be recorded does not run, what was recorded holds", async () => {
    await withMachine(async (m) => {
      const args = scripted(
        m,
        `- text: ${
          "long words ".repeat(700)
        }\n  call: {write_file: {path: b.txt, content: x}}\n- text: never\n`,
        "permissions: {allow: [write_file]}\n",
      );
      const ran = await limited(m, 8, ["run", ...args, "go"]);
      assertEquals(ran.code, 8, ran.stderr);
      assertStringIncludes(ran.stderr, "audit_error: cannot write ");
      assertEquals(existsSync(join(m.repo, "b.txt")), false);
      const id = m.ids()[0] ?? "";
      const verified = await m.writ(["session", "verify", id]);
      assertEquals(
        [verified.code, m.events(id).at(-1)?.type === "turn.completed"],
        [0, false],
        verified.stdout,
      );
      m.write("replies.yaml", "- text: room again\n");
      const resumed = await m.writ(["run", ...args, "--resume", id, "go"]);
      assertEquals([resumed.code, resumed.stdout], [0, "room again\n"], resumed.stderr);
      await soundLog(m, id);
    });
  });

  test("at the message of a resumed turn: that turn has no answer and no denials of the one before", async () => {
    await withMachine(async (m) => {
      const args = scripted(m, "- call: {write_file: {path: b.txt, content: x}}\n- text: an old answer\n");
      assertEquals((await m.writ(["run", ...args, "go"])).code, 5);
      const kib = Math.ceil(statSync(m.logPath()).size / 1024) + 1;
      const ran = await limited(m, kib, ["run", ...args, "--json", "--continue", "long words ".repeat(200)]);
      const { exit, reason, result, denied } = JSON.parse(ran.stdout);
      assertEquals({ exit, reason, result, denied }, {
        exit: 8,
        reason: "audit_error",
        result: "",
        denied: [],
      });
      assertEquals((await m.writ(["session", "verify"])).code, 0);
    });
  });
});
