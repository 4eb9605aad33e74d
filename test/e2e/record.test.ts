// The record of a session under hostile hands and on a bad disk: what is kept, what is refused, who speaks for it.
import { describe, test } from "bun:test";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { eventsOf, eventually, isRunning, type Machine, soundLog, withMachine } from "../support/machine.ts";
import { withMessagesServer } from "../support/messages_server.ts";
import { binary } from "../support/runtimes.ts";

function scripted(m: Machine, replies: string, rest = ""): readonly string[] {
  m.write("replies.yaml", replies);
  const policy = m.write(
    "policy.yaml",
    `version: 1\nmodel: {provider: script, script: replies.yaml}\n${rest}`,
  );
  return ["--policy", policy];
}

const reads = "- call: {read_file: {path: src/a.txt}}\n- text: done\n";

/** A session of at least so many events; its id. */
async function withEvents(
  count: number,
  use: (m: Machine, args: readonly string[], id: string) => Promise<void>,
  rest = "",
): Promise<void> {
  await withMachine(async (m) => {
    const args = scripted(m, reads, rest);
    const ran = await m.writ(["run", ...args, "the first message"]);
    assertEquals(ran.code, 0, ran.stderr);
    const id = m.ids()[0] ?? "";
    while (m.events(id).length < count) {
      assertEquals((await m.writ(["run", ...args, "--resume", id, "more"])).code, 0);
    }
    await use(m, args, id);
  });
}

describe("h-sl-01: a log of fifty events that lost its last 17 bytes", () => {
  test("goes on with all but the last, keeps the rest of that aside and says so", async () => {
    await withEvents(50, async (m, args, id) => {
      const path = m.logPath(id);
      const before = m.events(id);
      const whole = readFileSync(path);
      writeFileSync(path, whole.subarray(0, -17));
      const resumed = await m.writ(["run", ...args, "--resume", id, "go on"]);
      assertEquals([resumed.code, resumed.stdout], [0, "done\n"], resumed.stderr);
      const events = m.events(id);
      assertEquals(events.slice(0, before.length - 1), before.slice(0, -1));
      const [recovered] = eventsOf(events, "session.recovered");
      const last = whole.toString("latin1").trimEnd().lastIndexOf("\n") + 1;
      assertEquals(recovered?.seq, before.length);
      assertEquals(recovered?.data, {
        bytes: whole.length - 17 - last,
        savedAs: `${path}.torn-${last}`,
        lost: 1,
      });
      assertEquals(
        new Uint8Array(readFileSync(`${path}.torn-${last}`)),
        new Uint8Array(whole.subarray(last, -17)),
      );
      assertEquals(readFileSync(path, "utf8").split("\n").length - 1, events.length);
      assertEquals((await m.writ(["session", "verify", id])).code, 0);
    });
  });
});

describe("h-sl-02: a log with 300 NUL bytes after event 25", () => {
  test("is refused with the line; only an explicit repair goes on, with every event", async () => {
    await withEvents(50, async (m, args, id) => {
      const path = m.logPath(id);
      const before = m.events(id);
      const lines = readFileSync(path, "utf8").split("\n");
      const damaged = lines.toSpliced(25, 0, "\0".repeat(300)).join("\n");
      writeFileSync(path, damaged);
      const resumed = await m.writ(["run", ...args, "--resume", id, "go on"]);
      assertEquals([resumed.code, resumed.stdout], [8, ""]);
      assertStringIncludes(resumed.stderr, `${path}:26: not a sealed event; the session is not resumed`);
      assertEquals(readFileSync(path, "utf8"), damaged);
      const verified = await m.writ(["session", "verify", id]);
      assertEquals(verified.code, 8);
      assertStringIncludes(verified.stdout, "damaged, 25 events");
      const shown = await m.writ(["session", "show", id]);
      assertEquals(shown.code, 8);
      assertStringIncludes(shown.stderr, `${path}:26: not a sealed event; what follows is not shown`);

      const looked = await m.writ(["session", "repair", id, "--dry-run"]);
      assertStringIncludes(
        looked.stdout,
        `${id}: would keep ${before.length} events, none is known to be lost`,
      );
      assertEquals(readFileSync(path, "utf8"), damaged);
      const repaired = await m.writ(["session", "repair", id]);
      assertEquals(repaired.code, 0, repaired.stderr);
      assertStringIncludes(repaired.stdout, `${id}: kept ${before.length} events, none is known to be lost`);
      assertEquals(readFileSync(`${path}.damaged-1`, "utf8"), damaged);
      assertEquals(m.events(id).slice(0, before.length), before);
      assertEquals(m.events(id).at(-1)?.type, "session.recovered");
      assertEquals((await m.writ(["session", "repair", id])).stdout, `${id}: holds; nothing was done\n`);
      assertEquals((await m.writ(["run", ...args, "--resume", id, "go on"])).code, 0);
      await soundLog(m, id);
    });
  });
});

describe("h-sl-03: a log that ends at a tool that was started", () => {
  test("is closed at the resume: not run again, one result for the call, a request that the provider takes", async () => {
    await withMachine(async (m) => {
      const plan = [
        { blocks: [{ tool: "shell", input: { command: "bash work.sh" } }] },
        { blocks: [{ text: "done" }] },
        { blocks: [{ text: "back" }] },
      ];
      await withMessagesServer(plan, async (server) => {
        const file = m.write(
          "policy.yaml",
          `version: 1\nmodel: {name: m, base_url: "${server.url}"}\nsandbox: {mode: "off"}\npermissions: {allow: ["shell(bash work.sh)"]}\n`,
        );
        m.write("repo/work.sh", "echo ran >> count\n");
        const env = { ANTHROPIC_API_KEY: "sk-test-0123456789" };
        const ran = await m.writ(["run", "--policy", file, "go"], { env });
        assertEquals(ran.code, 0, ran.stderr);
        const id = m.ids()[0] ?? "";
        const path = m.logPath(id);
        const events = m.events(id);
        const started = events.findIndex((e) => e.type === "tool.started");
        writeFileSync(
          path,
          readFileSync(path, "utf8").split("\n").slice(0, started + 1).map((l) => `${l}\n`).join(""),
        );
        // As after a crash: the head is that of the end of the turn before.
        rmSync(join(m.sessions, id, "head.json"));

        const resumed = await m.writ(["run", "--policy", file, "--resume", id, "what happened?"], { env });
        assertEquals([resumed.code, resumed.stdout], [0, "back\n"], resumed.stderr);
        assertEquals(readFileSync(join(m.repo, "count"), "utf8"), "ran\n");
        const after = await soundLog(m, id);
        const [interrupted] = eventsOf(after, "tool.interrupted");
        assertEquals([interrupted?.data.tool, interrupted?.data.started], ["shell", true]);
        const { messages } = JSON.parse(server.requests[2]?.body ?? "{}");
        type Block = { readonly type: string; readonly id?: string; readonly tool_use_id?: string };
        const blocks = messages.flatMap((msg: { content: string | Block[] }) =>
          typeof msg.content === "string" ? [] : msg.content
        ) as readonly Block[];
        const uses = blocks.filter((b) => b.type === "tool_use").map((b) => b.id);
        const results = blocks.filter((b) => b.type === "tool_result").map((b) => b.tool_use_id);
        assertEquals(uses.length, 1);
        assertEquals(results, uses);
        assertEquals(messages.map((msg: { role: string }) => msg.role), ["user", "assistant", "user"]);
      });
    });
  });
});

describe("what speaks for a log from outside", () => {
  const key = "0123456789abcdef0123456789abcdef";
  const audit = (m: Machine) => {
    m.write("audit/key", `${key}\n`);
    chmodSync(join(m.top, "audit/key"), 0o600);
    return "audit: {heads: audit/heads.jsonl, key: {file: audit/key}}\n";
  };

  test("every end of a turn is one line of audit.heads, signed, and verify says anchored", async () => {
    await withMachine(async (m) => {
      const args = scripted(m, reads, audit(m));
      for (const how of [[], ["--continue"], ["--continue"]]) {
        assertEquals((await m.writ(["run", ...args, ...how, "go"])).code, 0);
      }
      const id = m.ids()[0] ?? "";
      const ends = eventsOf(m.events(id), "turn.completed");
      const lines = readFileSync(join(m.top, "audit/heads.jsonl"), "utf8").trimEnd().split("\n").map((l) =>
        JSON.parse(l)
      );
      assertEquals(
        lines.map(({ mac, ...rest }) => [rest, /^[0-9a-f]{64}$/.test(mac)]),
        ends.map((e) => [{ ts: e.ts, session: id, seq: e.seq, hash: e.hash }, true]),
      );
      const verified = await m.writ(["session", "verify", ...args]);
      assertEquals(verified.code, 0, verified.stderr);
      assertMatch(verified.stdout, /: anchored \(heads, key\), \d+ events, head [0-9a-f]{16}\n$/);
      assertEquals((await m.writ(["session", "verify", ...args, "--anchored"])).code, 0);
      // Without the policy nothing speaks for it, unless somebody names a copy of the lines, or the key.
      assertStringIncludes((await m.writ(["session", "verify"])).stdout, ": consistent, ");
      assertEquals((await m.writ(["session", "verify", "--anchored"])).code, 8);
      for (
        const witness of [["--heads", join(m.top, "audit/heads.jsonl")], ["--key", join(m.top, "audit/key")]]
      ) {
        assertStringIncludes((await m.writ(["session", "verify", ...witness])).stdout, ": anchored (");
      }
      assertEquals(JSON.stringify(m.events(id)).includes(key), false);
    });
  });

  test("a log that was made anew under the same name is found", async () => {
    await withMachine(async (m) => {
      const args = scripted(m, reads, audit(m));
      assertEquals((await m.writ(["run", ...args, "go"])).code, 0);
      const first = m.ids()[0] ?? "";
      const plain = scripted(m, "- text: forged\n");
      assertEquals((await m.writ(["run", ...plain, "go"])).code, 0);
      const second = m.ids().find((i) => i !== first) ?? "";
      rmSync(join(m.sessions, first), { recursive: true });
      mkdirSync(join(m.sessions, first));
      for (const name of ["log.jsonl", "head.json"]) {
        writeFileSync(join(m.sessions, first, name), readFileSync(join(m.sessions, second, name)));
      }
      const bare = await m.writ(["session", "verify", first]);
      assertEquals(bare.code, 0, bare.stdout);
      scripted(m, reads, audit(m));
      const verified = await m.writ(["session", "verify", first, ...args]);
      assertEquals(verified.code, 8);
      assertStringIncludes(verified.stdout, "the file of heads names ");
      rmSync(join(m.sessions, first), { recursive: true });
      const gone = await m.writ(["session", "verify", "--anchored", ...args]);
      assertEquals(gone.code, 8);
      assertStringIncludes(gone.stdout, `${first}: gone; the file of heads names it`);
    });
  });

  const refused: readonly (readonly [string, string, number, string])[] = [
    ["heads that cannot be written", "audit: {heads: /dev/null/heads}\n", 8, "cannot write /dev/null/heads"],
    [
      "heads in a workspace that nobody trusts",
      "audit: {heads: repo/heads}\n",
      2,
      "`audit.heads` lies in the workspace",
    ],
    ["a key that is not there", "audit: {key: {file: nowhere}}\n", 2, "`audit.key`: the file "],
    ["a key that is short", "audit: {key: {file: short}}\n", 2, "holds 5 characters, expected at least 16"],
  ];
  for (const [name, rest, code, says] of refused) {
    test(`${name} end the run`, async () => {
      await withMachine(async (m) => {
        m.write("short", "12345\n");
        const ran = await m.writ(["run", ...scripted(m, "- text: hello\n", rest), "go"]);
        assertEquals(ran.code, code, ran.stderr);
        assertStringIncludes(ran.stderr, says);
        if (code === 2) assertEquals(existsSync(m.sessions) ? m.ids() : [], []);
      });
    });
  }

  test("a link in the place of audit.heads is not followed", async () => {
    await withMachine(async (m) => {
      const args = scripted(m, "- text: hello\n", "audit: {heads: heads}\n");
      const target = m.write("elsewhere", "");
      symlinkSync(target, join(m.top, "heads"));
      assertEquals((await m.writ(["run", ...args, "go"])).code, 8);
      assertEquals(readFileSync(target, "utf8"), "");
    });
  });
});

describe("writ session", () => {
  test("export gives the log byte by byte, and a folder that verify can check", async () => {
    await withEvents(1, async (m, _, id) => {
      const exported = await m.writ(["session", "export", id]);
      assertEquals([exported.code, exported.stdout], [0, readFileSync(m.logPath(id), "utf8")]);
      const to = join(m.top, "export");
      const copied = await m.writ(["session", "export", id, "--to", to]);
      assertEquals(copied.code, 0, copied.stderr);
      assertEquals(readdirSync(join(to, id)).sort(), ["head.json", "log.jsonl"]);
      assertEquals((await m.writ(["session", "verify", "--dir", to])).code, 0);
      const again = await m.writ(["session", "export", id, "--to", to]);
      assertEquals(again.code, 2);
      assertStringIncludes(again.stderr, "is there already");
    });
  });

  test("prune says first, removes with --yes, and leaves what is young, open or damaged", async () => {
    await withEvents(1, async (m, args, young) => {
      const made: string[] = [];
      for (let n = 0; n < 3; n++) {
        assertEquals((await m.writ(["run", ...args, "go"])).code, 0);
        made.push(m.ids().find((i) => i !== young && !made.includes(i)) ?? "");
      }
      const [old = "", damaged = "", open = ""] = made;
      writeFileSync(m.logPath(damaged), "garbage\n");
      // Somebody has it: a claim of this process, which lives.
      const stat = readFileSync(`/proc/${process.pid}/stat`, "utf8");
      const start = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
      writeFileSync(join(m.sessions, open, `lock.${process.pid}-${start}`), "");
      const longAgo = new Date(Date.now() - 100 * 24 * 3600 * 1000);
      for (const id of [old, damaged, open]) utimesSync(m.logPath(id), longAgo, longAgo);

      const without = await m.writ(["session", "prune", ...args]);
      assertEquals(without.code, 2);
      assertStringIncludes(without.stderr, "no age: the policy sets no `audit.keep`");
      scripted(m, reads, "audit: {keep: 90d}\n");
      const looked = await m.writ(["session", "prune", ...args]);
      assertEquals([looked.code, looked.stdout.trimEnd().split("\n").sort()], [
        0,
        [`would remove ${old}`, `would remove ${open}`].sort(),
      ]);
      assertStringIncludes(looked.stderr, `kept ${damaged}: damaged`);
      assertEquals(m.ids().length, 4);
      const pruned = await m.writ(["session", "prune", ...args, "--yes"]);
      assertEquals(pruned.stdout, `removed ${old}\n`);
      assertStringIncludes(
        pruned.stderr,
        `kept ${open}: session \`${open}\` is open in process ${process.pid}`,
      );
      assertEquals([...m.ids()].sort(), [young, damaged, open].sort());
      const none = await m.writ(["session", "prune", ...args, "--older-than", "3x"]);
      assertEquals(none.code, 2);
    });
  });

  test("resume goes on with a session", async () => {
    await withEvents(1, async (m, args, id) => {
      const resumed = await m.writ(["session", "resume", id, ...args, "go on"]);
      assertEquals([resumed.code, resumed.stdout], [0, "done\n"], resumed.stderr);
      assertEquals(eventsOf(await soundLog(m, id), "user.message").map((e) => e.data.content), [
        "the first message",
        "go on",
      ]);
    });
  });

  test("list says what begins or ends badly", async () => {
    await withEvents(1, async (m, _, id) => {
      const path = m.logPath(id);
      const lines = readFileSync(path, "utf8").trimEnd().split("\n");
      writeFileSync(path, lines.slice(0, -1).map((l) => `${l}\n`).join(""));
      assertStringIncludes((await m.writ(["session", "list"])).stdout, " DAMAGED ");
    });
  });
});

const noPrlimit = spawnSync("prlimit", ["--version"]).error !== undefined ||
  !/util-linux/.test(spawnSync("script", ["--version"], { encoding: "utf8" }).stdout ?? "");

describe("a chat whose disk is full", () => {
  test.skipIf(noPrlimit)("ends the turn, lives, and goes on when there is room", async () => {
    await withMachine(async (m) => {
      const args = scripted(m, "- text: one\n- text: two\n- text: three\n");
      const line = [binary, "chat", ...args].join(" ");
      const running = m.startProgram([
        "script",
        "-qec",
        `trap '' XFSZ; ulimit -S -f 8; exec ${line}`,
        "/dev/null",
      ], {
        input: { open: true },
        env: { TERM: "xterm", SHELL: "/bin/bash", NO_COLOR: "1" },
      });
      await running.until("stdout", "/help lists the commands");
      running.type(`${"long words ".repeat(300)}\r`);
      running.type(`${"long words ".repeat(300)}\r`);
      running.type(`${"long words ".repeat(300)}\r`);
      await running.until("stdout", "audit_error: cannot write ");
      const id = m.ids()[0] ?? "";
      const claim = readdirSync(join(m.sessions, id)).find((f) => f.startsWith("lock.")) ?? "";
      const pid = Number(/^lock\.(\d+)-/.exec(claim)?.[1]);
      assert(isRunning(pid), claim);
      assertEquals(spawnSync("prlimit", ["--pid", String(pid), "--fsize=unlimited"]).status, 0);
      running.type("is there room?\r");
      await eventually(() =>
        m.events(id).some((e) => e.type === "user.message" && e.data.content === "is there room?")
      );
      await eventually(() => m.events(id).at(-1)?.type === "turn.completed");
      running.type("/quit\r");
      assertEquals((await running.ended).code, 0);
      const events = await soundLog(m, id);
      assertEquals(eventsOf(events, "turn.completed").at(-1)?.data.stopReason, "final");
    });
  });
});
