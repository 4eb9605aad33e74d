// Where keys come from, and what is said when one cannot be had.
import { assert, assertEquals } from "@std/assert";
import { afterEach, beforeEach, describe, test } from "bun:test";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import type { KeySource } from "../../src/core/policy.ts";
import { keyReader as readerAt } from "../../src/provider/key.ts";
import { run } from "../../src/sandbox/subprocess.ts";
import { failureOf } from "./setup.ts";

let dir = "";
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "writ-key-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const path = (name: string) => join(dir, name);

/** A command that runs a shell script in `dir`. */
function script(text: string): KeySource {
  writeFileSync(path("key.sh"), `#!/bin/sh\n${text}\n`);
  chmodSync(path("key.sh"), 0o755);
  return { command: [path("key.sh"), "one", "two words"] };
}

const keyReader = (source: KeySource, site: Omit<Parameters<typeof readerAt>[1], "run">) =>
  readerAt(source, { ...site, run });
const env = { PATH: "/usr/bin:/bin" };

describe("keyReader() reads", () => {
  test("a variable, as it is at each call", async () => {
    const changing: { [name: string]: string } = { MODEL_KEY: " first \n" };
    const key = keyReader({ env: "MODEL_KEY" }, { env: changing });
    assertEquals(await key(), "first");
    changing.MODEL_KEY = "second";
    assertEquals([await key(), await key("again")], ["second", "second"]);
  });

  test("a file, as it is at each call", async () => {
    writeFileSync(path("key"), "\ufeff first\n\n");
    const key = keyReader({ file: path("key") }, { env });
    assertEquals([await key(), await key()], ["first", "first"]);
    writeFileSync(path("key"), "second-key\n");
    assertEquals(await key(), "second-key");
    rmSync(path("key"));
    assertEquals((await failureOf(() => key())).code, "no_key");
    writeFileSync(path("key"), "third-key!\n");
    assertEquals([await key(), await key("again")], ["third-key!", "third-key!"]);
  });

  test("a command's output, once, until asked again", async () => {
    const key = keyReader(
      script(`echo x >> ${path("count")}; echo "  $1-$2 " | tr ' ' _ | tr _ .; wc -l < ${path("count")}`),
      {
        env,
      },
    );
    // Two lines are no key, which shows that both arguments arrive and nothing is guessed.
    assertEquals((await failureOf(() => key())).code, "no_key");
    const counting = keyReader(
      script(`echo x >> ${path("runs")}; printf 'run-%s' $(wc -l < ${path("runs")})`),
      { env },
    );
    assertEquals(await Promise.all([counting(), counting()]), ["run-1", "run-1"]);
    assertEquals([await counting("again"), await counting()], ["run-2", "run-2"]);
  });

  test("a command's output in an environment that holds PATH only, without input", async () => {
    process.env.WRIT_TEST_LEAK = "leak";
    try {
      const text = `env | cut -d= -f1 | grep -vx -e PWD -e SHLVL -e _ -e CHILD_OF > ${path("env")}; cat > ${
        path("in")
      }; pwd > ${path("cwd")}; echo k`;
      assertEquals(await keyReader(script(text), { env: { ...env, SECRET: "s" } })(), "k");
      const read = (name: string) => readFileSync(path(name), "utf8");
      assertEquals([read("env"), read("in"), read("cwd")], ["PATH\n", "", "/\n"]);
    } finally {
      delete process.env.WRIT_TEST_LEAK;
    }
  });

  test("a command anew after a failure", async () => {
    const key = keyReader(script(`test -e ${path("ready")} && echo k`), { env });
    assertEquals((await failureOf(() => key())).code, "no_key");
    writeFileSync(path("ready"), "");
    assertEquals(await key(), "k");
  });
});

describe("keyReader() says what is missing", () => {
  type Row = {
    readonly name: string;
    readonly source: () => KeySource;
    readonly found: string;
    readonly hint: string;
  };
  const forFile = (name: string) =>
    `put the key, and nothing else, into \`${path(name)}\`, or name another place in \`model.api_key\``;
  const forCommand =
    "the command must print the key, and nothing else, and end with status 0; it sees only PATH";
  const forEnv = "set `MODEL_KEY` to the key, or name another place in `model.api_key`";
  const written = (name: string, text: string): KeySource => {
    writeFileSync(path(name), text);
    return { file: path(name) };
  };
  const rows: readonly Row[] = [
    {
      name: "a variable that is not set",
      source: () => ({ env: "MODEL_KEY" }),
      found: "the environment variable `MODEL_KEY` is not set",
      hint: forEnv,
    },
    {
      name: "a file that is not there",
      source: () => ({ file: path("none") }),
      found: "the file `DIR/none` could not be read (ENOENT)",
      hint: "none",
    },
    {
      name: "an empty file",
      source: () => written("key", " \n"),
      found: "the file `DIR/key` is empty",
      hint: "key",
    },
    {
      name: "a file of two lines",
      source: () => written("key", "secret-one\nsecret-two\n"),
      found: "the file `DIR/key` holds several lines or characters that no key has",
      hint: "key",
    },
    {
      name: "a file with characters that no header can carry",
      source: () => written("key", "secret\u00e9"),
      found: "the file `DIR/key` holds several lines or characters that no key has",
      hint: "key",
    },
    {
      name: "a large file",
      source: () => written("key", "secret".repeat(20_000)),
      found: "the file `DIR/key` holds more than 65536 bytes",
      hint: "key",
    },
    {
      name: "a folder",
      source: () => ({ file: dir }),
      found: "the file `DIR` is not a regular file",
      hint: "",
    },
    {
      name: "a command that fails",
      source: () => script("echo secret; exit 3"),
      found: "the output of `DIR/key.sh` could not be had: the command ended with status 3",
      hint: forCommand,
    },
    {
      name: "a command that is killed",
      source: () => script("kill -9 $$"),
      found: "the output of `DIR/key.sh` could not be had: the command ended with SIGKILL",
      hint: forCommand,
    },
    {
      name: "a command that prints nothing",
      source: () => script("exit 0"),
      found: "the output of `DIR/key.sh` is empty",
      hint: forCommand,
    },
    {
      name: "a command that prints without end",
      source: () => script("exec yes secret"),
      found: "the output of `DIR/key.sh` holds more than 65536 bytes",
      hint: forCommand,
    },
    {
      name: "a command that is not there",
      source: () => ({ command: [path("none")] }),
      found: "the output of `DIR/none` could not be had (ENOENT)",
      hint: forCommand,
    },
    {
      name: "a command that is not absolute",
      source: () => ({ command: ["cat", "/etc/hostname"] }),
      found: "the output of `cat` cannot be had: the command is not an absolute path",
      hint: forCommand,
    },
  ];
  for (const { name, source, found, hint } of rows) {
    test(name, async () => {
      const failure = await failureOf(() => keyReader(source(), { env })());
      const expected = hint === forCommand || hint === forEnv ? hint : forFile(hint);
      assertEquals(
        {
          code: failure.code,
          message: failure.message.replaceAll(dir, "DIR"),
          hint: failure.hint,
          again: failure.retryable,
        },
        { code: "no_key", message: `no key for the model: ${found}`, hint: expected, again: false },
      );
      assert(!failure.message.includes("secret"));
    });
  }

  test("a command that does not end, whose children end with it", async () => {
    const source = script(`sleep 600 & echo $! > ${path("pid")}; wait`);
    const failure = await failureOf(() => keyReader(source, { env, limitMs: 300 })());
    assertEquals(
      failure.message.replaceAll(dir, "DIR"),
      "no key for the model: the output of `DIR/key.sh` was not there after 300 ms",
    );
    const pid = Number(readFileSync(path("pid"), "utf8"));
    for (let i = 0; i < 100 && isRunning(pid); i++) await new Promise((resolve) => setTimeout(resolve, 20));
    assertEquals(isRunning(pid), false);
  });
});

// A process that has ended but was not waited for yet does not run.
function isRunning(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return !stat.includes(") Z ");
  } catch {
    return false;
  }
}
