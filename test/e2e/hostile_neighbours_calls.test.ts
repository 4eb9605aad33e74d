// Neighbours of the hostile cases of models, output and records: the same kinds with other values.
import { describe, test } from "bun:test";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { Buffer } from "node:buffer";
import {
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import process from "node:process";
import { join } from "node:path";
import { eventsOf, isRunning, type Machine, soundLog, withMachine } from "../support/machine.ts";
import { play } from "../support/play.ts";

const noBox = 'sandbox: {mode: "off"}';
const raw = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/;

describe("neighbours of h-mo-01: tools that there are not", () => {
  test("none is started, each is answered, and the turn completes", async () => {
    await withMachine(async (m) => {
      const names = [
        "read_file ",
        "READ_FILE",
        "read-file",
        "toString",
        "skill.",
        "mcp.x.y",
        "read_file\u0000",
        "ｒead_file",
        "x".repeat(1000),
        "\u001b[2J",
      ];
      const { ended, results: got } = await play(m, {
        policy: [noBox],
        calls: names.map((name) => ({ [name]: {} })),
        allow: ["*"],
      });
      assertEquals([ended.code, got.map((r) => [r.ok, r.code])], [
        0,
        names.map(() => [false, "unknown_tool"]),
      ], ended.stderr);
      assertEquals(raw.test(ended.stderr), false, JSON.stringify(ended.stderr));
    });
  });
});

describe("neighbours of h-mo-03: ways to a file outside", () => {
  test("none is read", async () => {
    await withMachine(async (m) => {
      const canary = "canary-outside-77";
      m.write("home/.ssh/id", canary);
      m.write("outside", canary);
      symlinkSync("..", join(m.repo, "up"));
      symlinkSync("up", join(m.repo, "up2"));
      symlinkSync("/proc/self/root", join(m.repo, "root"));
      symlinkSync(join(m.home, ".ssh/id"), join(m.repo, "id"));
      const paths = [
        join(m.home, ".ssh/id"),
        "~/.ssh/id",
        "up/outside",
        "up2/outside",
        "./up/../up/outside",
        `root${m.top}/outside`,
        "id",
        `/proc/self/root${m.top}/outside`,
        "/proc/self/environ",
        "/proc/self/cwd/../outside",
        "src/../../outside",
        "..//outside",
        `${m.repo}/../outside`,
        "..%2foutside",
        "..\\outside",
        "\u0000../outside",
        "../outside\u0000.txt",
        `file://${m.top}/outside`,
        "/dev/fd/0",
        "/etc/shadow",
        "/proc/1/root/etc/shadow",
      ];
      const { results: got } = await play(m, {
        policy: [noBox],
        calls: paths.flatMap((path) => [{ read_file: { path } }]),
        allow: ["read_file"],
      });
      assertEquals(got.map((r, i) => [paths[i], r.ok]), paths.map((p) => [p, false]));
      const log = readFileSync(m.logPath(), "utf8");
      assertEquals(log.includes(canary), false);
      const more = await play(m, {
        policy: [noBox],
        calls: [{ search_text: { pattern: "canary-outside" } }, { list_files: { path: "up" } }, {
          search_text: { pattern: "canary-outside", path: "root/tmp" },
        }],
        allow: ["search_text", "list_files"],
      });
      assertEquals(more.results.some((r) => r.text.includes(canary)), false, JSON.stringify(more.results));
    });
  });
});

describe("neighbours of h-mo-05: other ways to write what is protected", () => {
  test("none writes, moves or links it, with and without a box", async () => {
    await withMachine(async (m) => {
      const project = "version: 1\npermissions: {deny: [fetch_url]}\n";
      m.write("repo/.writ/policy.yaml", project);
      symlinkSync(".writ", join(m.repo, "w"));
      symlinkSync(".git", join(m.repo, "g"));
      const files = [
        ".writ/policy.yaml",
        "./.writ//policy.yaml",
        "src/../.writ/policy.yaml",
        "w/policy.yaml",
        ".writ/skills/x/SKILL.md",
        ".git/hooks/pre-commit",
        "g/hooks/pre-commit",
        ".git/config",
        ".git/info/attributes",
        ".git/modules/x/config",
      ];
      const commands = [
        "printf x > w/policy.yaml",
        "cp src/a.txt .writ/policy.yaml",
        "mv .writ old",
        "mv .git old",
        "rm -rf .writ",
        "ln -sf /tmp/x .writ/policy.yaml",
        "cd .writ && printf x > policy.yaml",
        "tee .git/hooks/pre-commit < src/a.txt",
        "git config core.hooksPath src",
        "sed -i s/1/2/ .writ/policy.yaml",
        "truncate -s 0 .writ/policy.yaml",
        "dd if=src/a.txt of=.writ/policy.yaml",
        "install src/a.txt .git/hooks/post-checkout",
        "touch .writ/new",
      ];
      const before = readFileSync(join(m.repo, ".git/config"), "utf8");
      const { results: got } = await play(m, {
        policy: [noBox, "workspace: {trust: untrusted}"],
        calls: [
          ...files.map((path) => ({ write_file: { path, content: "x" } })),
          ...commands.map((command) => ({ shell: { command } })),
        ],
        allow: ["write_file", "shell"],
      });
      assertEquals(
        got.map((r, i) => [[...files, ...commands][i], r.ok]),
        [...files, ...commands].map((f) => [f, false]),
      );
      assertEquals(readFileSync(join(m.repo, ".writ/policy.yaml"), "utf8"), project);
      assertEquals([
        readFileSync(join(m.repo, ".git/config"), "utf8"),
        existsSync(join(m.repo, ".git/hooks/pre-commit")),
      ], [before, false]);
    });
  });
});

describe("neighbours of h-to-01: much output", () => {
  test("many lines, wide characters, both streams and no end are cut to the cap, with a count", async () => {
    await withMachine(async (m) => {
      const commands = [
        "seq 2000000",
        "head -c 9000000 /dev/zero | tr '\\0' '\\n'",
        "yes 汉字 | head -c 9000000",
        "yes x | head -c 5000000 >&2; yes y | head -c 5000000",
        "head -c 3000000 /dev/zero",
        "head -c 3000000 /dev/urandom",
      ];
      const { ended, results } = await play(m, {
        policy: [noBox, "limits: {same_call: 9}"],
        calls: scripts(m, commands),
        allow: ["shell(bash *)"],
      });
      assertEquals(ended.code, 0, ended.stderr);
      assertEquals(
        results.map((r, i) => [commands[i], r.ok, r.text.length < 100_000]),
        commands.map((c) => [c, true, true]),
      );
      assertEquals(results.map((r) => /\[… \d+ characters cut …\]/.test(r.text)), commands.map(() => true));
      const longest = Math.max(...readFileSync(m.logPath(), "utf8").split("\n").map((line) => line.length));
      assert(longest < 1024 * 1024, `a line of ${longest}`);
      assertEquals(raw.test(readFileSync(m.logPath(), "utf8")), false);
    });
  });
});

describe("neighbours of h-to-02: bytes that steer a terminal", () => {
  test("none is printed, recorded raw, or answered", async () => {
    await withMachine(async (m) => {
      const texts = [
        "a\u001bP1$r0m\u001b\\b",
        "a\u009b31mb",
        "a\u001b_Gf=100;x\u001b\\b",
        "a\u001b]8;;http://x\u001b\\b",
        "a\u2066b\u2069\u202d",
        "\ufeff\u200b\u2028\u2029",
        "safe\b\b\b\bevil",
        "safe\revil",
        "\u001bc\u001b[?1049h",
        "a\u007fb\u0000c",
        "\u001b[6n\u001b[c",
      ];
      texts.forEach((text, i) => m.write(`repo/t${i}`, text));
      m.write(
        "repo/bad-utf8",
        new Uint8Array([0x61, 0xff, 0xc2, 0x9b, 0x33, 0x31, 0x6d, 0xe2, 0x80, 0xae, 0xc0, 0x9b]),
      );
      const { ended, results } = await play(m, {
        policy: [noBox],
        calls: [
          ...texts.map((_, i) => ({ shell: { command: `cat t${i}` } })),
          { shell: { command: "cat bad-utf8" } },
          { read_file: { path: "t0" } },
          { search_text: { pattern: "evil" } },
          { shell: { command: "cat t0 >&2; exit 3" } },
        ],
        allow: ["shell(bash *)", "shell(cat *)", "shell(exit *)", "read_file", "search_text"],
      });
      assertEquals(ended.code, 0, ended.stderr);
      assertEquals(results.length, texts.length + 4);
      const shown = await m.writ(["session", "show", m.ids()[0] ?? ""]);
      const events = await m.writ(["session", "show", m.ids()[0] ?? "", "--events"]);
      for (
        const text of [
          ended.stdout,
          ended.stderr,
          shown.stdout,
          events.stdout,
          readFileSync(m.logPath(), "utf8"),
        ]
      ) {
        assertEquals(raw.test(text.replaceAll("\r\n", "\n")), false, JSON.stringify(text.slice(0, 3000)));
      }
    });
  });
});

describe("neighbours of h-to-03: ways in which a tool says a secret", () => {
  test("none reaches log, model, stdout or stderr", async () => {
    await withMachine(async (m) => {
      const value = "correct horse 7 battery/staple+";
      const token = "ghp_0123456789abcdefABCDEF0123456789wxyz";
      m.write("repo/s", value);
      m.write("repo/t", token);
      const commands = [
        "cat s t",
        "base64 < s",
        "xxd -p s | tr -d '\\n'",
        "od -An -tx1 s | tr -d ' \\n'",
        "cat s; echo; cat s",
        "printf '%s' \"$(cat s)\" >&2; exit 1",
        "cat t | sed 's/.*/\"&\"/'",
        'python3 -c \'import urllib.parse; print(urllib.parse.quote(open("s").read(), safe=""))\'',
        'python3 -c \'import json; print(json.dumps({"a": open("s").read()}))\'',
        "head -c 70000 /dev/zero | tr '\\0' x; cat s; head -c 70000 /dev/zero | tr '\\0' x; cat s",
      ];
      const { ended } = await play(m, {
        policy: [noBox],
        calls: [...scripts(m, commands), { read_file: { path: "s" } }, {
          read_file: { path: "t" },
        }, { search_text: { pattern: "ghp_" } }],
        allow: ["shell(bash *)", "shell(cat *)", "shell(exit *)", "read_file", "search_text"],
        env: { DEPLOY_PASSWORD: value },
      });
      assertEquals(ended.code, 0, ended.stderr);
      const bytes = Buffer.from(value);
      const forms = [
        value,
        token,
        bytes.toString("base64").replace(/=+$/, ""),
        bytes.toString("hex"),
        encodeURIComponent(value),
      ];
      const texts = [readFileSync(m.logPath(), "utf8"), ended.stdout, ended.stderr];
      assertEquals(forms.filter((form) => texts.some((text) => text.includes(form))), []);
    });
  });
});

describe("neighbours of h-to-04: children that do not want to end", () => {
  test("none is alive after the limit of the call", async () => {
    await withMachine(async (m) => {
      const commands = [
        "(sleep 611 &) ; sleep 612",
        "trap '' TERM INT HUP; sleep 615; sleep 616",
        "setsid sh -c 'setsid sleep 617 & sleep 618' & sleep 619",
        "sh -c 'kill -STOP $$; sleep 620'",
        "(trap '' TERM; setsid sleep 624) < /dev/null & wait",
      ];
      const { ended, results } = await play(m, {
        policy: [noBox],
        calls: scripts(m, commands, { timeout: 1 }),
        allow: ["shell(bash *)"],
      });
      assertEquals(ended.code, 0, ended.stderr);
      assertEquals(
        results.map((r, i) => [commands[i], r.ok, r.code]),
        commands.map((c) => [c, false, "timeout"]),
      );
      await new Promise((resolve) => setTimeout(resolve, 500));
      assertEquals(runningIn(m.repo), []);
    });
  });
});

/** Each text is a script of its own; the calls that run them. */
function scripts(m: Machine, texts: readonly string[], more: object = {}) {
  return texts.map((text, i) => {
    m.write(`repo/c${i}.sh`, `${text}\n`);
    return { shell: { command: `bash c${i}.sh`, ...more } };
  });
}

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

/** Processes whose current folder is this one. */
function runningIn(folder: string): readonly string[] {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && name !== String(process.pid)).filter(
    (pid) => {
      try {
        return readlinkSync(`/proc/${pid}/cwd`) === folder && isRunning(Number(pid));
      } catch {
        return false;
      }
    },
  );
}
