import { assertEquals } from "@std/assert";
import { test } from "bun:test";
import { toJsonLine } from "../../src/cli/json_line.ts";

test("JSON that is printed holds nothing that a terminal acts on or hides, and means the same", () => {
  const hidden = [
    "\x1b[2J",
    "\x7f",
    "\x9b31m",
    "\u00ad",
    "\u061c",
    "\u200b",
    "\u2028",
    "\u202e",
    "\u2066",
    "\ufeff",
  ];
  const value = { text: hidden.join(""), [`key\u202e`]: ['中文 😀\n\t"\\', null, 1.5, true] };
  const line = toJsonLine(value);
  assertEquals([
    line.match(
      /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    ),
    line.split("\n").length,
    JSON.parse(line),
  ], [
    null,
    2,
    value,
  ]);
  assertEquals(toJsonLine({ a: "\x9b\u202e" }), '{"a":"\\u009b\\u202e"}\n');
});
