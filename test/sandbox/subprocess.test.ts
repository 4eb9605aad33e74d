import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { afterEach, beforeEach, describe, test } from "bun:test";
import { chmodSync, existsSync, readFileSync } from "node:fs";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import type { Environment } from "../../src/sandbox/environment.ts";
import { run, type RunOptions, type RunResult, throughPipes } from "../../src/sandbox/subprocess.ts";
import { makeWorkspace, type Workspace } from "../tools/workspace.ts";

let ws: Workspace;
beforeEach(() => ws = makeWorkspace());
afterEach(() => ws.remove());

function options(changes: Partial<RunOptions> = {}): RunOptions {
  return {
    cwd: ws.root,
    env: { PATH: process.env["PATH"] ?? "", LC_ALL: "C.UTF-8" },
    timeoutMs: 20_000,
    maxOutput: 10_000,
    killGraceMs: 200,
    ...changes,
  };
}

const bash = (script: string, changes: Partial<RunOptions> = {}) =>
  run(["bash", "--noprofile", "--norc", "-c", script], options(changes));

/** All but the time that it took, which no test may depend on. */
function told({ durationMs, ...rest }: RunResult) {
  assert(durationMs >= 0);
  return rest;
}

const calm = {
  exit: 0,
  signal: null,
  stdout: "",
  stderr: "",
  timedOut: false,
  cancelled: false,
  flooded: false,
  cut: false,
  removed: [],
};

describe("run() to a normal end", () => {
  const rows: readonly (readonly [string, string, Partial<RunOptions>, Partial<RunResult>])[] = [
    ["both streams and the exit code", "echo out; echo err >&2; exit 3", {}, {
      exit: 3,
      stdout: "out\n",
      stderr: "err\n",
    }],
    ["no input is /dev/null", "cat; echo done", {}, { stdout: "done\n" }],
    ["input is handed over and closed", "cat", { stdin: "grüße 文\n" }, { stdout: "grüße 文\n" }],
    ["bytes as input", "od -An -tx1 | tr -d ' \\n'", { stdin: new Uint8Array([0, 255, 10]) }, {
      stdout: "00ff0a",
    }],
    ["input that nobody reads", "exit 0", { stdin: "x".repeat(1_000_000) }, {}],
    ["a folder to run in", "pwd", {}, {}],
    ["only the given environment", "env | grep -c -e HOME -e USER", {
      env: { PATH: process.env["PATH"] ?? "" },
    }, { exit: 1, stdout: "0\n" }],
    ["invalid UTF-8 is replaced", "printf 'a\\xff\\xc3b'", {}, { stdout: "a\ufffd\ufffdb" }],
    ["a signal of its own", "kill -9 $$", {}, { exit: null, signal: "SIGKILL" }],
    ["a NUL in the output", "printf 'a\\0b'", {}, { stdout: "a\0b" }],
  ];
  for (const [name, script, changes, expected] of rows) {
    test(name, async () => {
      const want = { ...calm, ...expected, ...(script === "pwd" ? { stdout: `${ws.root}\n` } : {}) };
      assertEquals(told(await bash(script, changes)), want);
    });
  }

  test("arguments are handed over as they are, no shell in between", async () => {
    const args = ["a b", "", "'q\"", "$HOME", "*", "文\n字", "-x", "\\"];
    const result = await run(["printf", "<%s>", ...args], options());
    assertEquals(result.stdout, args.map((a) => `<${a}>`).join(""));
  });

  test("characters across the borders of reads stay whole", async () => {
    const result = await bash(
      "for i in $(seq 40); do printf '\\xf0\\x9f'; sleep 0.002; printf '\\x98\\x80'; done",
    );
    assertEquals(result.stdout, "😀".repeat(40));
  });

  test("through pipes, the streams can be opened by their names", async () => {
    const script = "cat /dev/stdin; echo out > /dev/stdout; echo err > /dev/stderr; exit 5";
    const argv = throughPipes(["bash", "--noprofile", "--norc", "-c", script]);
    assertEquals(told(await run(argv, options({ stdin: "in\n" }))), {
      ...calm,
      exit: 5,
      stdout: "in\nout\n",
      stderr: "err\n",
    });
  });

  test("a program runs in its own session, without a terminal", async () => {
    const result = await bash("cut -d' ' -f5,6 /proc/$$/stat; echo $$; tty");
    const [ids, pid, tty] = result.stdout.split("\n");
    assertEquals([ids, tty], [`${pid} ${pid}`, "not a tty"]);
  });
});

describe("run() of what cannot be started", () => {
  const failure = (code: string, message: string) => ({ ...calm, exit: null, failure: { code, message } });

  test("a program that is nowhere", async () => {
    const message = "no program `no-such-program`: it is on no folder of PATH";
    assertEquals(told(await run(["no-such-program"], options())), failure("not_found", message) as never);
  });

  test("a path that is not there", async () => {
    const message = "no program `./none`: there is no such file";
    assertEquals(told(await run(["./none"], options())), failure("not_found", message) as never);
  });

  test("a file that may not be executed", async () => {
    const file = ws.write("data", "x");
    const message = `\`${file}\` may not be executed`;
    assertEquals(told(await run(["./data"], options())), failure("not_executable", message) as never);
  });

  test("a folder that is not there", async () => {
    const message = "no folder `/no/such/folder` to run in";
    assertEquals(
      told(await run(["true"], options({ cwd: "/no/such/folder" }))),
      failure("no_folder", message) as never,
    );
  });

  test("a missing interpreter", async () => {
    chmodSync(ws.write("script", "#!/no/such/interpreter\n"), 0o755);
    assertEquals((await run(["./script"], options())).failure?.code, "not_found");
  });

  test("a NUL in an argument, and more arguments than the system takes", async () => {
    const results = [
      await run(["true", "a\0b"], options()),
      await run(["true", "x".repeat(3_000_000)], options()),
    ];
    assertEquals(results.map((r) => r.failure?.code), ["spawn_failed", "spawn_failed"]);
  });

  test("a bare name is looked up on the given PATH only, and never in the current folder", async () => {
    chmodSync(ws.write("bin/tool", "#!/bin/sh\necho mine\n"), 0o755);
    chmodSync(ws.write("tool", "#!/bin/sh\necho theirs\n"), 0o755);
    const paths = [`${ws.root}/bin`, `.:${ws.root}/bin`, ":", ""];
    const results = await Promise.all(paths.map((PATH) => run(["tool"], options({ env: { PATH } }))));
    assertEquals(results.map((r) => r.failure?.code ?? r.stdout), [
      "mine\n",
      "mine\n",
      "not_found",
      "not_found",
    ]);
  });
});

/** Leaves its process id in the workspace, then sleeps; `how` starts it. */
function sleeper(how: string, file: string): string {
  return how.replace("IT", `bash -c 'echo $$ > ${file}.tmp; mv ${file}.tmp ${file}; exec sleep 300'`);
}

const ways: readonly (readonly [string, string])[] = [
  ["a background job", "IT &"],
  ["a child with its own session", "setsid IT &"],
  ["a double fork", "(IT &)"],
  ["a double fork with its own session, nothing open", "(setsid IT </dev/null >/dev/null 2>&1 &)"],
  ["a double fork with its own session and no environment", "(env -i setsid IT &)"],
  ["one that ignores the polite signal", "(trap '' TERM HUP; setsid IT &)"],
  ["a stopped one", "IT & until [ -e pid ]; do sleep 0.01; done; kill -STOP $!"],
];

function isAlive(file: string): boolean {
  const pid = readFileSync(`${ws.root}/${file}`, "utf8").trim();
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}

describe("run() leaves nothing behind", () => {
  const waitFor = (file: string) => `until [ -e ${file} ]; do sleep 0.01; done`;

  for (const [name, how] of ways) {
    test(`${name}, after a normal end`, async () => {
      const result = await bash(`${sleeper(how, "pid")}\n${waitFor("pid")}; echo done`);
      assertEquals([told(result), isAlive("pid")], [{ ...calm, stdout: "done\n" }, false]);
    });

    test(`${name}, at the time limit`, async () => {
      const result = await bash(`${sleeper(how, "pid")}\n${waitFor("pid")}; echo up; sleep 300`, {
        timeoutMs: 800,
      });
      assertEquals(
        [result.timedOut, result.exit, result.stdout, isAlive("pid")],
        [true, null, "up\n", false],
      );
    });

    test(`${name}, when cancelled`, async () => {
      const cancel = new AbortController();
      const running = bash(`${sleeper(how, "pid")}\n${waitFor("pid")}; sleep 300`, { signal: cancel.signal });
      for (let i = 0; i < 2000 && !existsSync(`${ws.root}/pid`); i++) {
        await new Promise((go) => setTimeout(go, 5));
      }
      cancel.abort();
      const result = await running;
      assertEquals([result.cancelled, result.timedOut, isAlive("pid")], [true, false, false]);
    });
  }

  test("a program that ignores the polite signal is ended by the other one", async () => {
    const result = await bash("trap '' TERM; echo up; while :; do sleep 0.05; done", { timeoutMs: 300 });
    assertEquals(told(result), { ...calm, exit: null, signal: "SIGKILL", stdout: "up\n", timedOut: true });
  });

  test("a program that hears the polite signal can still say something", async () => {
    const script =
      "exec 2>/dev/null; trap 'echo cleaned; exit 0' TERM; echo up; while :; do sleep 0.05; done";
    const result = await bash(script, { timeoutMs: 300, killGraceMs: 5000 });
    assertEquals(told(result), { ...calm, stdout: "up\ncleaned\n", timedOut: true });
  });

  test("a cancelled signal starts nothing", async () => {
    const result = await bash("touch started", { signal: AbortSignal.abort() });
    assertEquals([told(result), existsSync(`${ws.root}/started`)], [
      { ...calm, exit: null, cancelled: true },
      false,
    ]);
  });

  test("what a pipe behind the shell still has to say is heard", async () => {
    assertEquals((await bash("exec > >(cat); echo through")).stdout, "through\n");
  });

  test("nothing outlives Writ's own exit", async () => {
    const script = new URL("./exit_while_running.ts", import.meta.url).pathname;
    const how = process.execPath.includes("deno") ? ["run", "-A", "--no-check", script] : [script];
    const result = await run(
      [process.execPath, ...how, ws.root],
      options({ env: { ...process.env as Environment } }),
    );
    // What was killed in the last moment may take a little longer than who killed it.
    for (let n = 0; n < 300 && (isAlive("near") || isAlive("far")); n++) await sleep(10);
    assertEquals([result.exit, isAlive("near"), isAlive("far")], [7, false, false], result.stderr);
  });

  test("two runs at once do not end each other's processes", async () => {
    const long = bash("sleep 0.6; echo long");
    const short = await bash(`${sleeper("(setsid IT &)", "pid")}\n${waitFor("pid")}`);
    assertEquals([short.exit, (await long).stdout, isAlive("pid")], [0, "long\n", false]);
  });
});

describe("run() bounds the output", () => {
  test("head and tail are kept, and the program runs to its end", async () => {
    const result = await bash("seq 100000; echo last >&2; touch ended", { maxOutput: 40 });
    assertMatch(
      result.stdout,
      /^1\n2\n3\n4\n5\n6\n7\n8\n9\n\[… \d+ characters cut …\]\n99998\n99999\n100000\n$/,
    );
    assertEquals([result.exit, result.cut, result.stderr, existsSync(`${ws.root}/ended`)], [
      0,
      true,
      "last\n",
      true,
    ]);
  });

  test("each stream has its own cap", async () => {
    const result = await bash("seq 10000 >&2; echo short", { maxOutput: 20 });
    assertEquals([result.stdout, result.cut], ["short\n", true]);
    assertStringIncludes(result.stderr, "characters cut");
  });

  test("a program that never stops writing is stopped", async () => {
    const result = await run(["yes"], options({ maxOutput: 8, maxRead: 5_000_000 }));
    assertEquals([result.flooded, result.timedOut, result.exit], [true, false, null]);
    assertMatch(
      result.stdout,
      /^y\ny\n\[… \d+ characters cut …\]\ny\n(y\n)?$/,
    );
  });

  test("a gigabyte passes through without being kept", async () => {
    const before = process.memoryUsage().rss;
    const result = await run(
      ["head", "-c", "1000000000", "/dev/zero"],
      options({ maxOutput: 100, maxRead: 2e9, timeoutMs: 60_000 }),
    );
    const grown = process.memoryUsage().rss - before;
    assertEquals([result.exit, result.cut], [0, true]);
    assert(grown < 150_000_000, `memory grew by ${grown} bytes`);
  }, 90_000);

  test("one line of ten megabytes", async () => {
    const result = await bash("head -c 10000000 /dev/zero | tr '\\0' x; echo; echo end", { maxOutput: 20 });
    assertEquals(result.stdout, "\n[… 10000000 characters cut …]\nend\n");
  });
});
