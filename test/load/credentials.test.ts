import { assertEquals } from "@std/assert";
import { test } from "bun:test";
import { findCredentials } from "../../src/load/credentials.ts";

const github = `ghp_${"a".repeat(36)}`;
const aws = "AKIAABCDEFGHIJKLMNOP";

const texts: readonly (readonly [string, string, readonly (readonly [string, number])[]])[] = [
  ["nothing", "Use the token of the environment, `$GITHUB_TOKEN`.\n", []],
  ["one", `a\nb ${github}\n`, [["github-token", 2]]],
  ["two of one kind in a line, told once", `${github} ${github}`, [["github-token", 1]]],
  ["two kinds in the order of the lines", `${aws}\n\n${github}`, [["aws-key-id", 1], ["github-token", 3]]],
  [
    "a key of several lines at its first",
    "x\n-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\n",
    [[
      "private-key",
      2,
    ]],
  ],
  [
    "many, of which twenty are told",
    `${github}\n`.repeat(50),
    Array.from({ length: 20 }, (_, i) => ["github-token", i + 1] as const),
  ],
];
for (const [name, text, expected] of texts) {
  test(`findCredentials() finds ${name}`, () => {
    assertEquals(findCredentials(text).map((f) => [f.kind, f.line] as const), expected);
  });
}
