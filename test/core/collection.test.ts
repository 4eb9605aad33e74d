import { test } from "bun:test";
import { assertEquals } from "@std/assert";
import { compareText, deeperThan, remembered, uniqueBy } from "../../src/core/collection.ts";

test("compareText() orders by code units", () => {
  assertEquals(["b", "a", "B", "é", "a"].sort(compareText), ["B", "a", "a", "b", "é"]);
});

test("uniqueBy() keeps the first of a key", () => {
  const items = [{ k: "a", n: 1 }, { k: "b", n: 2 }, { k: "a", n: 3 }];
  assertEquals(uniqueBy(items, (i) => i.k), [{ k: "a", n: 1 }, { k: "b", n: 2 }]);
});

test("deeperThan() counts objects and lists", () => {
  const values = ["x", null, [], [1], [[]], { a: { b: 1 } }];
  assertEquals(values.map((v) => [deeperThan(v, 0), deeperThan(v, 1)]), [
    [false, false],
    [false, false],
    [true, false],
    [true, false],
    [true, true],
    [true, true],
  ]);
});

test("remembered() asks once for each text while it is one of the last few", () => {
  const asked: string[] = [];
  const lengthOf = remembered((text) => (asked.push(text), { length: text.length }));
  const texts = ["a", "bb", "a", ...Array.from({ length: 20 }, (_, i) => `${i}`), "a"];
  assertEquals(texts.map((text) => lengthOf(text).length), texts.map((text) => text.length));
  assertEquals(asked.filter((text) => /[ab]/.test(text)), ["a", "bb", "a"]);
});
