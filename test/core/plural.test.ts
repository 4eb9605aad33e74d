import { test } from "bun:test";
import { assertEquals } from "@std/assert";
import { plural } from "../../src/core/plural.ts";

test("plural()", () => {
  const told = [plural(0, "line"), plural(1, "line"), plural(1200, "line"), plural(2, "match", "matches")];
  assertEquals(told, ["0 lines", "1 line", "1,200 lines", "2 matches"]);
});
