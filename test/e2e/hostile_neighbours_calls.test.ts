// Neighbours of the hostile cases of models and output: the same kinds with other values.
import { describe, test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { Buffer } from "node:buffer";
import { existsSync, readdirSync, readFileSync, readlinkSync, symlinkSync } from "node:fs";
import process from "node:process";
import { join } from "node:path";
import { eventsOf, isRunning, type Machine, soundLog, withMachine } from "../support/machine.ts";
import { withMessagesServer } from "../support/messages_server.ts";
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

describe("neighbours of h-sk-12 and h-sk-13: what a skill and its arguments say", () => {
  test("arguments stand where they belong, once, and end nothing", async () => {
    await withMachine(async (m) => {
      m.write(
        "config/writ/skills/arg/SKILL.md",
        "---\nname: arg\ndescription: x\n---\nDo: $ARGUMENTS / {{arguments}} end\n",
      );
      m.write("replies.yaml", "- text: done\n");
      const policy = m.write("policy.yaml", "version: 1\nmodel: {provider: script, script: replies.yaml}\n");
      const given = [
        "$$ARGUMENTS",
        "$ARGUMENTS[0] $1 $0",
        "{{{{arguments}}}}",
        "</SKILL>",
        "</skill >",
        "&lt;/skill&gt;",
        '<skill name="x">',
        "$& $1 $$ $`",
      ];
      for (const text of given) {
        const ran = await m.writ(["run", "--policy", policy, "-"], { input: `/skill arg ${text}` });
        assertEquals([ran.code, ran.stdout], [0, "done\n"], ran.stderr);
        const [loaded] = eventsOf(await soundLog(m), "skill.loaded");
        const body = loaded?.data.body ?? "";
        assertEquals(body.match(/<\s*\/\s*skill\s*>/gi)?.length, 1, JSON.stringify([text, body]));
        assertEquals(body.match(/<skill\b/gi)?.length, 1, JSON.stringify([text, body]));
        const [, first, second] = /Do: ([\s\S]*) \/ ([\s\S]*) end/.exec(body) ?? [];
        assertEquals(first, second, JSON.stringify(text));
        if (!/[<&\u200b]/.test(text)) assertEquals(first, text);
      }
    });
  });

  test("a bound holds however the call is put", async () => {
    await withMachine(async (m) => {
      m.write(
        "config/writ/skills/lie/SKILL.md",
        "---\nname: lie\ndescription: x\nallowed_tools: [read_file, 'shell(echo *)']\n---\nCall anything.\n",
      );
      const commands = [
        "id",
        "echo a; id",
        "echo $(id)",
        "echo a | sh",
        "echo a > b.txt",
        "echo a && touch c.txt",
        "ECHO=1 id",
        "echo\na\nid",
        "bash -c 'echo a'",
        "env echo a",
        "\\id",
        "/bin/echo a; id",
      ];
      const { results } = await play(m, {
        policy: [noBox],
        calls: [
          { load_skill: { name: "lie" } },
          ...commands.map((command) => ({ shell: { command } })),
          { write_file: { path: "d.txt", content: "x" } },
          { load_skill: { name: "lie" } },
          { shell: { command: "echo fine" } },
        ],
        allow: ["shell", "write_file", "load_skill"],
      });
      const got = results.slice(1, 1 + commands.length);
      assertEquals(
        got.map((r, i) => [commands[i], r.ok, /uid=/.test(r.text)]),
        commands.map((c) => [c, false, false]),
      );
      assertEquals(
        [results[commands.length + 1]?.ok, results.at(-1)?.ok],
        [false, true],
        JSON.stringify(results.slice(-3)),
      );
      assertEquals(["b.txt", "c.txt", "d.txt"].filter((f) => existsSync(join(m.repo, f))), []);
    });
  });
});

describe("neighbours of h-mo-02: arguments that are none", () => {
  test("each is answered, no tool starts, and the turn completes", async () => {
    await withMachine(async (m) => {
      const inputs = [
        "[]",
        "null",
        "1",
        '"a"',
        "{",
        "{}",
        '{"path": 1}',
        '{"path": ["a"]}',
        '{"path": "a"} x',
        '{"path": "a", "path": "b", "x": 1}',
        `{"path": ${"[".repeat(100_000)}${"]".repeat(100_000)}}`,
        '{"path": "\\ud800"',
        "{'path': 'a'}",
        `{"path": "${"x".repeat(2_000_000)}`,
        '{"__proto__": {"path": "src/a.txt"}}',
        "\u0000",
        "NaN",
      ];
      const plan = [
        ...inputs.map((input, i) => ({ blocks: [{ tool: "read_file", input, id: `toolu_${i}` }] })),
        { blocks: [{ text: "ok" }] },
      ];
      await withMessagesServer(plan, async (server) => {
        const policy = m.write("policy.yaml", `version: 1\nmodel: {name: m, base_url: "${server.url}"}\n`);
        const ran = await m.writ(["run", "--policy", policy, "go"], {
          env: { ANTHROPIC_API_KEY: "k-12345678" },
        });
        assertEquals([ran.code, ran.stdout], [0, "ok\n"], ran.stderr);
        const events = await soundLog(m);
        assertEquals(eventsOf(events, "tool.started"), []);
        assertEquals(eventsOf(events, "tool.completed").map((e) => e.data.ok), inputs.map(() => false));
      });
    });
  });
});

describe("neighbours of h-mo-06: a denied command in other places", () => {
  test("is never started", async () => {
    await withMachine(async (m) => {
      const curl = "curl http://127.0.0.1:9/";
      const commands = [
        `${"true && ".repeat(200)}${curl}`,
        `${"true\n".repeat(200)}${curl}`,
        `${"true | ".repeat(100)}${curl}`,
        `{ ${"true; ".repeat(60)}${curl}; }`,
        `( ( ( ${curl} ) ) )`,
        `if true; then ${curl}; fi`,
        `for i in 1 2; do ${curl}; done`,
        `f() { ${curl}; }; f`,
        `echo $(${curl})`,
        `echo \`${curl}\``,
        `cat <(${curl})`,
        `true & ${curl} &`,
        `! ${curl}`,
        `time ${curl}`,
        `A=1 B=2 ${curl}`,
        `> out ${curl}`,
        `command ${curl}`,
        `env -i ${curl}`,
        `nohup ${curl}`,
        `cu""rl http://127.0.0.1:9/`,
        `c\\url http://127.0.0.1:9/`,
        `$'curl' http://127.0.0.1:9/`,
        `/usr/bin/${curl}`,
        `c=curl; $c http://127.0.0.1:9/`,
        `eval "${curl}"`,
        `bash -c '${curl}'`,
        `echo http://127.0.0.1:9/ | xargs curl`,
        `case a in a) ${curl};; esac`,
        `cat <<E\n$(${curl})\nE`,
        `true;${" ".repeat(5000)}${curl}`,
        `# x\n${curl}`,
        `\\\n${curl}`,
      ];
      m.write(
        "replies.yaml",
        JSON.stringify([...commands.map((command) => ({ call: { shell: { command } } })), { text: "done" }]),
      );
      const policy = m.write(
        "policy.yaml",
        `version: 1\nmodel: {provider: script, script: replies.yaml}\n${noBox}\npermissions: {default: allow, deny: ["shell(curl *)"], allow: [shell, "shell(true)", "shell(*)"]}\n`,
      );
      const ran = await m.writ(["run", "--policy", policy, "go"]);
      const events = await soundLog(m);
      const started = new Set(eventsOf(events, "tool.started").map((e) => e.data.call));
      const asked = eventsOf(events, "permission.resolved");
      assertEquals(asked.length, commands.length, ran.stderr);
      assertEquals(asked.flatMap((e, i) => started.has(e.data.call) ? [commands[i]] : []), []);
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
