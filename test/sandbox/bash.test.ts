import { describe, test } from "bun:test";
import { assertEquals } from "@std/assert";
import { bashCall, streamHint } from "../../src/sandbox/bash.ts";
import { throughPipes } from "../../src/sandbox/subprocess.ts";

describe("bashCall()", () => {
  const plain = (text: string) => ["bash", "--noprofile", "--norc", "-c", "--", text] as const;
  const rows: readonly (readonly [name: string, text: string, call: readonly string[]])[] = [
    ["runs a text", "echo a; echo b", plain("echo a; echo b")],
    ["takes no text for options", "-x", plain("-x")],
    ["has pipes where a stream is named", "cat > /dev/stderr", throughPipes(plain("cat > /dev/stderr"))],
    ["has pipes where a descriptor is named", "cat /dev/fd/3", throughPipes(plain("cat /dev/fd/3"))],
    ["has pipes below /proc", "cat /proc/self/fd/0", throughPipes(plain("cat /proc/self/fd/0"))],
    ["needs none for another device", "cat > /dev/null", plain("cat > /dev/null")],
  ];
  for (const [name, text, call] of rows) {
    test(name, () => assertEquals(bashCall(text), call as readonly [string, ...string[]]));
  }
});

test("streamHint() is for streams that a script could not open", () => {
  assertEquals(
    ["x.sh: line 1: /dev/stderr: No such device or address", "cat: /dev/sdb: No such device or address"].map(
      streamHint,
    ),
    [
      "a script cannot open `/dev/stderr` by its name here: write `>&2` or the like in it, or run it with `2>&1 | cat`",
      undefined,
    ],
  );
});
