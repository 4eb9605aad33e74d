import { describe, test } from "bun:test";
import { assertEquals } from "@std/assert";
import { bashCall } from "../../src/sandbox/bash.ts";
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
