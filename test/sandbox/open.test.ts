import { assert, assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { readFileSync } from "node:fs";
import process from "node:process";
import { open, type OpenChild, type RunFailure } from "../../src/sandbox/subprocess.ts";
import { isRunning } from "../support/machine.ts";
import { makeWorkspace } from "../tools/workspace.ts";

type Opened = { readonly child: OpenChild; readonly root: string; until(text: string): Promise<string> };

async function withChild(script: string, use: (opened: Opened) => Promise<void>): Promise<void> {
  const ws = makeWorkspace();
  let text = "";
  const waiting = new Set<() => void>();
  const child = open(["bash", "--noprofile", "--norc", "-c", script], {
    cwd: ws.root,
    env: { PATH: process.env["PATH"] ?? "" },
    onOutput(chunk) {
      text += new TextDecoder().decode(chunk);
      for (const look of waiting) look();
    },
  });
  if ("code" in child) throw new Error(child.message);
  try {
    await use({
      child,
      root: ws.root,
      until: (wanted) =>
        new Promise((done) => {
          const look = () => text.includes(wanted) && done(text);
          waiting.add(look);
          look();
        }),
    });
  } finally {
    await child.end();
    ws.remove();
  }
}

describe("open()", () => {
  test("talks with the program until it is ended", () =>
    withChild('while read -r line; do echo "got $line"; done; echo over', async ({ child, until }) => {
      child.write("one\n");
      await until("got one\n");
      child.write("two\n");
      assertEquals(await until("got two\n"), "got one\ngot two\n");
      await child.end();
      assertEquals(await until("over"), "got one\ngot two\nover\n");
      assertEquals(await child.ended, { exit: 0, signal: null });
    }));

  test("keeps the last of what it says on stderr", () =>
    withChild("for i in $(seq 2000); do echo line $i >&2; done; echo done; cat", async ({ child, until }) => {
      await until("done");
      while (!child.errors().endsWith("line 2000\n")) await new Promise((done) => setTimeout(done, 5));
      assertEquals(child.errors().length, 4096);
    }));

  test("a program that ends by itself leaves nothing behind", () =>
    withChild("setsid sleep 300 & echo $! > pid; exit 3", async ({ child, root }) => {
      assertEquals(await child.ended, { exit: 3, signal: null });
      assertEquals(isRunning(Number(readFileSync(`${root}/pid`, "utf8"))), false);
      child.write("nobody reads this\n");
    }));

  test("one that will not end is ended with all that it started", () =>
    withChild(
      "trap '' TERM; (trap '' TERM; setsid sleep 300) & echo $! > pid; echo ready; while :; do sleep 1; done",
      async ({ child, root, until }) => {
        await until("ready");
        await child.end();
        const ended = await child.ended;
        assert(!("code" in ended));
        assertEquals(ended.signal, "SIGKILL");
        assertEquals(isRunning(Number(readFileSync(`${root}/pid`, "utf8"))), false);
      },
    ));

  const failures: readonly (readonly [string, readonly [string], RunFailure["code"]])[] = [
    ["a program that is not there", ["no-such-program"], "not_found"],
    ["a file that may not be executed", ["./plain"], "not_executable"],
  ];
  for (const [name, argv, code] of failures) {
    test(`says what is wrong with ${name}`, () => {
      const ws = makeWorkspace();
      ws.write("plain", "x");
      const child = open(argv, { cwd: ws.root, env: { PATH: "/usr/bin" }, onOutput: () => {} });
      assertEquals("code" in child ? child.code : undefined, code);
      ws.remove();
    });
  }
});
