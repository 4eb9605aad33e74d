import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { afterEach, beforeEach, describe, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, renameSync, symlinkSync } from "node:fs";
import type { ShellSettings, ToolContext } from "../../src/agent/ports.ts";
import type { Args } from "../../src/core/message.ts";
import { redactText } from "../../src/core/redact.ts";
import { makeRedactor } from "../../src/load/redactor.ts";
import { childEnvironment } from "../../src/sandbox/environment.ts";
import { shell } from "../../src/tools/shell.ts";
import { call, makeWorkspace, type Workspace } from "./workspace.ts";

let ws: Workspace;
beforeEach(() => ws = makeWorkspace());
afterEach(() => ws.remove());
const sh = (args: Args, at: Partial<ToolContext> = {}) => call(shell, args, { ...ws.at, ...at });
const set = (settings: Partial<ShellSettings>) => ({ shell: { ...ws.at.shell, ...settings } });

describe("shell runs exactly the text", () => {
  const rows: readonly (readonly [string, string, string])[] = [
    ["output", "echo hi", "hi\n"],
    ["both streams, one after the other", "echo err >&2; echo out", "out\n[stderr]\nerr\n"],
    ["errors only", "echo err >&2", "[stderr]\nerr\n"],
    ["a text that does not end a line", "printf x; printf y >&2", "x\n[stderr]\ny"],
    ["a pipe and a here-doc", "cat <<'E' | tr a-z A-Z\na b\nE", "A B\n"],
    ["quotes, Chinese and emoji", "printf '%s\\n' 'a  \"b\"' 你好 😀", 'a  "b"\n你好\n😀\n'],
    ["no input", 'cat; read x; echo "[$x]"', "[]\n"],
    ["streams by their names", "echo o > /dev/stdout; echo e > /dev/stderr", "o\n[stderr]\ne\n"],
    ["bash, without start-up files", "shopt -q login_shell || echo ${BASH##*/} $0", "bash bash\n"],
  ];
  for (const [name, command, content] of rows) {
    test(name, async () => assertEquals(await sh({ command }), { ok: true, content, data: { exit: 0 } }));
  }

  test("no output, which is no evidence of what a command should show", async () => {
    assertEquals(await sh({ command: "true" }), {
      ok: true,
      content: "[no output]",
      data: { exit: 0 },
      partial: true,
    });
  });

  test("a text that starts with a dash is no option", async () => {
    const outcome = await sh({ command: "-c 'echo no'" });
    assertEquals([outcome.ok, outcome.data], [false, { exit: 127 }]);
    assertStringIncludes(outcome.content, "-c: command not found");
  });

  test("every call is a fresh shell", async () => {
    await sh({ command: "cd /; x=1; alias ls=false; export Y=2; set -e" });
    assertEquals(
      (await sh({ command: 'pwd; echo "[$x$Y]"; false; echo on' })).content,
      `${ws.root}\n[]\non\n`,
    );
  });

  test("no start-up file of the home or the environment", async () => {
    for (const file of [".bashrc", ".bash_profile", ".profile"]) {
      ws.write(`${ws.home}/${file}`, "echo started\n");
    }
    const source = {
      PATH: ws.at.shell.env["PATH"],
      BASH_ENV: ws.write("env.sh", "echo started\n"),
      SSH_CLIENT: "x",
    };
    const env = childEnvironment(source, {
      allow: ["PATH", "BASH_ENV", "SSH_CLIENT"],
      home: ws.home,
      tmp: ws.home,
      writable: [ws.root],
    });
    assertEquals((await sh({ command: "echo on; cat /dev/stdin" }, set({ env }))).content, "on\n");
  });

  test("in a folder of the workspace", async () => {
    mkdirSync(`${ws.root}/深 a`);
    ws.link("l", "深 a");
    assertEquals((await sh({ command: "pwd", cwd: "l" })).content, `${ws.root}/深 a\n`);
  });
});

describe("shell tells how a command ended", () => {
  test("with another exit code", async () => {
    assertEquals(await sh({ command: "echo out; exit 3" }), {
      ok: false,
      code: "exit",
      content: "out\n[exit 3]",
      data: { exit: 3 },
    });
  });

  test("by a signal", async () => {
    assertEquals(await sh({ command: "kill -9 $$" }), {
      ok: false,
      code: "exit",
      content: "[ended by SIGKILL]",
      data: { exit: null, signal: "SIGKILL" },
      unknown: true,
    });
  });

  test("at the time limit, with what it had said", async () => {
    const outcome = await sh({ command: "echo up; sleep 300", timeout: 1 });
    assertEquals([outcome.code, outcome.content], [
      "timeout",
      "up\n[stopped after 1 second; give a longer timeout or do less at once]",
    ]);
  });

  test("the time limit cannot be raised beyond what is set", async () => {
    const outcome = await sh({ command: "sleep 300", timeout: 600 }, set({ maxTimeoutMs: 300 }));
    assertEquals([outcome.code, outcome.unknown], ["timeout", true]);
  });

  test("when cancelled, with everything that it started", async () => {
    const cancel = new AbortController();
    const running = sh({ command: "(setsid bash -c 'echo $$ > pid; exec sleep 300' &); sleep 300" }, {
      signal: cancel.signal,
    });
    for (let i = 0; i < 2000 && !existsSync(`${ws.root}/pid`); i++) {
      await new Promise((go) => setTimeout(go, 5));
    }
    const pid = readFileSync(`${ws.root}/pid`, "utf8").trim();
    cancel.abort();
    assertEquals((await running).code, "cancelled");
    assert(!existsSync(`/proc/${pid}`) || /\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8")));
  });

  test("when it does not stop writing", async () => {
    const outcome = await sh({ command: "yes" }, set({ maxOutput: 100 }));
    assertEquals([outcome.code, outcome.unknown], ["output_limit", true]);
    assert(outcome.content.length < 400);
  });

  test("long output keeps head and tail, and both streams their share", async () => {
    const command = "seq 1 5000; seq 6000 9000 >&2; exit 1";
    const { content } = await sh({ command }, set({ maxOutput: 400 }));
    assertMatch(
      content,
      /^1\n2\n[\s\S]*characters cut[\s\S]*5000\n\[stderr\]\n6000\n[\s\S]*characters cut[\s\S]*9000\n\[exit 1\]$/,
    );
    assert(content.length < 800, String(content.length));
  });

  test("a command without errors may use the whole cap", async () => {
    const { content } = await sh(
      { command: "printf 'x%.0s' $(seq 100); echo e >&2" },
      set({ maxOutput: 102 }),
    );
    assertEquals(content, `${"x".repeat(100)}\n[stderr]\ne\n`);
  });
});

describe("shell refuses", () => {
  test("any command when there is no sandbox, when inspected and when run", async () => {
    const message = "no sandbox: install bubblewrap";
    const errors = [{ code: "sandbox_unavailable", message }];
    assertEquals(shell.inspect({ command: "true" }, { ...ws.at, shellRefused: message }).errors, errors);
    assertEquals(await sh({ command: "touch ran" }, { shellRefused: message }), {
      ok: false,
      code: "sandbox_unavailable",
      content: message,
    });
    assertEquals(existsSync(`${ws.root}/ran`), false);
  });

  test("a folder outside, when inspected and when run", async () => {
    ws.link("out", ws.outside);
    for (const cwd of ["..", "/", "out", "~"]) {
      const codes = shell.inspect({ command: "true", cwd }, ws.at).errors?.map((e) => e.code);
      assertEquals([cwd, codes, (await sh({ command: "true", cwd })).code], [
        cwd,
        ["cwd_outside"],
        "cwd_outside",
      ]);
    }
  });

  test("a folder that became a link after it was judged", async () => {
    mkdirSync(`${ws.root}/d`);
    mkdirSync(`${ws.root}/e`);
    const args = { command: "touch ran", cwd: "d" };
    shell.inspect(args, ws.at);
    renameSync(`${ws.root}/d`, `${ws.root}/f`);
    symlinkSync("e", `${ws.root}/d`);
    assertEquals([(await shell.run(args, ws.at)).code, existsSync(`${ws.root}/e/ran`)], [
      "path_changed",
      false,
    ]);
  });

  test("a folder that is not there, a box that is not there, and a machine without bash", async () => {
    const outcomes = [
      await sh({ command: "true", cwd: "none" }),
      await sh({ command: "true", box: "push" }),
      await sh({ command: "true" }, set({ env: { PATH: ws.outside } })),
    ];
    assertEquals(outcomes.map((o) => o.code), ["no_folder", "unknown_box", "bash_missing"]);
  });
});

describe("shell is inspected", () => {
  test("by its parts and redirections, from the folder that it runs in", () => {
    mkdirSync(`${ws.root}/d`);
    const { risk, subjects, errors, box } = shell.inspect(
      { command: "git diff > x", cwd: "d", box: "push" },
      { ...ws.at, boxes: [{ name: "push", read: [], write: [], env: [], sockets: [] }] },
    );
    const told = subjects.map((s) =>
      s.kind === "part" ? s.part.argv.join(" ") : s.kind === "path" ? [s.tool, s.path.resolved] : s.kind
    );
    assertEquals([risk, told, errors, box], [
      "write",
      ["git diff", ["write_file", `${ws.root}/d/x`]],
      [],
      "push",
    ]);
  });

  test("with an error for a box that the policy does not define", () => {
    assertEquals(shell.inspect({ command: "true", box: "push" }, ws.at).errors, [{
      code: "unknown_box",
      message: "there is no box `push`; boxes are `default`; the policy defines no other",
    }]);
  });

  test("with an error for a text that is no bash", () => {
    assertEquals(shell.inspect({ command: "echo 'open" }, ws.at).errors?.length, 1);
  });
});

test("shell output that is cut shows no part of a token or of a key at the cut", async () => {
  const token = `ghp_${"A1".repeat(20)}`;
  const key = `-----BEGIN RSA PRIVATE KEY-----\n${"MIIE\n".repeat(40)}-----END RSA PRIVATE KEY-----`;
  const redactor = makeRedactor({
    redact: { builtin: true, env: [], patterns: [] },
    env: {},
    secrets: [],
  });
  for (const secret of [token, key]) {
    for (let pad = 380; pad <= 500; pad += 3) {
      ws.write("f", `${"- ".repeat(pad)}${secret} ${"- ".repeat(900 - pad)}${secret} ${"- ".repeat(pad)}`);
      const { content } = await sh({ command: "cat f" }, set({ maxOutput: 1000 }));
      assertEquals(redactText(redactor, content).match(/A1|MIIE|ghp/g), null, `${pad}\n${content}`);
    }
  }
});
