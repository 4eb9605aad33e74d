// Neighbours of the hostile cases of records: other torn tails, other damage, other ends of a log, several at one session.
import { describe, test } from "bun:test";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { Buffer } from "node:buffer";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventsOf, eventually, type Machine, soundLog, withMachine } from "../support/machine.ts";
import { play } from "../support/play.ts";

const noBox = 'sandbox: {mode: "off"}';

/** A session that was recorded; what is done to its log; how the resume ends. */
async function afterwards(change: (m: Machine, path: string) => void) {
  return await withMachine(async (m) => {
    m.write("repo/work.sh", "echo ran >> count\n");
    const calls = [{ shell: { command: "bash work.sh" } }, { read_file: { path: "src/a.txt" } }];
    await play(m, { policy: [noBox], calls, allow: ["shell(bash work.sh)", "read_file"] });
    const id = m.ids()[0] ?? "";
    const before = m.events(id);
    change(m, m.logPath(id));
    m.write("script.yaml", "- text: back\n");
    const resumed = await m.writ(["run", "--policy", join(m.top, "policy.yaml"), "--resume", id, "again"]);
    const ran = readFileSync(join(m.repo, "count"), "utf8");
    const sound = resumed.code === 0 ? await soundLog(m, id) : [];
    return { before, resumed, ran, sound, log: readFileSync(m.logPath(id), "utf8") };
  });
}

describe("neighbours of h-sl-01: other torn tails", () => {
  const tails: { readonly [what: string]: (whole: Buffer) => Buffer } = {
    "the last line end alone": (whole) => whole.subarray(0, -1),
    "half of the last line": (whole) => whole.subarray(0, -150),
    "NUL behind the last line": (whole) => Buffer.concat([whole, Buffer.alloc(4096)]),
    "NUL in the place of the last line": (whole) => {
      const cut = whole.lastIndexOf("\n", whole.length - 2) + 1;
      return Buffer.concat([whole.subarray(0, cut), Buffer.alloc(whole.length - cut)]);
    },
    "bytes of another file behind it": (whole) =>
      Buffer.concat([whole, Buffer.from("\u007fELF\u0002 and more")]),
    "half of a line once more": (whole) => Buffer.concat([whole, whole.subarray(0, 200)]),
    "half of a character": (whole) =>
      Buffer.concat([whole, Buffer.from('{"seq":99,"x":"汉').subarray(0, -1)]),
    "a carriage return": (whole) => Buffer.concat([whole, Buffer.from("\r")]),
  };
  for (const [what, tear] of Object.entries(tails)) {
    test(`${what}: kept aside and told, and the session goes on`, async () => {
      let left: Buffer = Buffer.alloc(0);
      const { before, resumed, sound, ran } = await afterwards((_, path) => {
        left = tear(readFileSync(path));
        writeFileSync(path, left);
      });
      assertEquals([resumed.code, resumed.stdout, ran], [0, "back\n", "ran\n"], resumed.stderr);
      const [recovered] = eventsOf(sound, "session.recovered");
      const kept = (recovered?.seq ?? 0) - 1;
      assert(kept >= before.length - 1, `${kept} of ${before.length}`);
      assertEquals(sound.slice(0, kept), before.slice(0, kept));
      assertEquals(recovered?.data.bytes, left.length - left.lastIndexOf("\n") - 1);
    });
  }
});

describe("neighbours of h-sl-02: other damage before the tail", () => {
  const lines = (change: (all: string[]) => string[]) => (whole: string) =>
    change(whole.split("\n")).join("\n");
  const damages: { readonly [what: string]: (whole: string) => string } = {
    "an empty line": lines((all) => all.toSpliced(3, 0, "")),
    "a line twice": lines((all) => all.toSpliced(3, 0, all[3] ?? "")),
    "two lines exchanged": lines((all) => all.toSpliced(3, 2, all[4] ?? "", all[3] ?? "")),
    "a line less": lines((all) => all.toSpliced(3, 1)),
    "no first line": lines((all) => all.slice(1)),
    "line ends of Windows": (whole) => whole.replaceAll("\n", "\r\n"),
    "a byte-order mark": (whole) => `\ufeff${whole}`,
    "another decision": (whole) => whole.replace('"decision":"allow"', '"decision":"deny" '),
    "blanks": (whole) => whole.replace('"type":', '"type": '),
    "the log twice": (whole) => whole + whole,
    "a whole line of NUL at the end": (whole) => `${whole}${"\0".repeat(50)}\n`,
  };
  for (const [what, damage] of Object.entries(damages)) {
    test(`${what}: refused with the line, and nothing is changed`, async () => {
      let left = "";
      const { resumed, log } = await afterwards((_, path) => {
        left = damage(readFileSync(path, "utf8"));
        writeFileSync(path, left);
      });
      assertEquals([resumed.code, resumed.stdout], [8, ""], resumed.stderr);
      assertMatch(resumed.stderr, /log\.jsonl:\d+: /);
      assertStringIncludes(resumed.stderr, "the session is not resumed");
      assertEquals(log, left);
    });
  }
});

describe("neighbours of h-sl-03: logs that end elsewhere within a call", () => {
  const ends = [
    "model.completed",
    "model.tool_call_requested",
    "permission.requested",
    "permission.resolved",
    "user.message",
    "context.built",
  ];
  for (const type of ends) {
    test(`${type}: closed at the resume, nothing is run by itself`, async () => {
      const { resumed, sound, ran } = await afterwards((m, path) => {
        const all = readFileSync(path, "utf8").split("\n");
        const at = all.findIndex((line) => line.includes(`"type":"${type}"`));
        writeFileSync(path, all.slice(0, at + 1).map((line) => `${line}\n`).join(""));
        rmSync(join(path, "../head.json"));
        writeFileSync(join(m.repo, "count"), "before\n");
      });
      assertEquals([resumed.code, resumed.stdout, ran], [0, "back\n", "before\n"], resumed.stderr);
      assertEquals(eventsOf(sound, "turn.completed").map((e) => e.data.stopReason), ["interrupted", "final"]);
      assertEquals(
        eventsOf(sound, "tool.interrupted").map((e) => e.data.started),
        type === "user.message" || type === "context.built" ? [] : [false],
      );
    });
  }
});

describe("neighbours of h-sl-04: several at one session", () => {
  test("of five that resume it one gets it; one that stands still keeps it", async () => {
    await withMachine(async (m) => {
      m.write("repo/wait.sh", "touch started; while [ ! -e go ]; do sleep 0.05; done\n");
      await play(m, {
        policy: [noBox],
        calls: [{ read_file: { path: "src/a.txt" } }],
        allow: ["read_file", "shell(bash wait.sh)"],
      });
      const id = m.ids()[0] ?? "";
      m.write("script.yaml", "- call: {shell: {command: bash wait.sh}}\n- text: back\n");
      const args = ["run", "--policy", join(m.top, "policy.yaml"), "--resume", id, "again"];
      const all = Array.from({ length: 5 }, () => m.start(args));
      const codes = new Map<number, number | null>();
      for (const one of all) void one.ended.then(({ code }) => codes.set(one.pid, code));
      await eventually(() => codes.size === 4 && existsSync(join(m.repo, "started")));
      assertEquals([...codes.values()], [2, 2, 2, 2]);
      const holder = all.find((one) => !codes.has(one.pid));
      holder?.kill("SIGSTOP");
      const late = await m.writ(args);
      assertEquals([late.code, late.stdout], [2, ""]);
      assertStringIncludes(late.stderr, `is open in process ${holder?.pid}`);
      holder?.kill("SIGCONT");
      m.write("repo/go", "");
      assertEquals((await holder?.ended)?.code, 0);
      await soundLog(m, id);
    });
  });
});
