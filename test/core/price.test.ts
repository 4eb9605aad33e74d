// Costs in USD.
import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { addCost, costOf } from "../../src/core/price.ts";

const prices = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };

describe("costOf()", () => {
  const rows = [
    { name: "nothing", usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, usd: 0 },
    {
      name: "a million of each",
      usage: { input: 1e6, output: 1e6, cacheRead: 1e6, cacheWrite: 1e6 },
      usd: 22.05,
    },
    {
      name: "each kind by its own price",
      usage: { input: 1, output: 10, cacheRead: 100, cacheWrite: 1000 },
      usd: 0.003933,
    },
  ];
  for (const { name, usage, usd } of rows) {
    test(name, () => assertEquals(costOf(usage, prices), usd));
  }
});

describe("addCost()", () => {
  test("begins at nothing", () => assertEquals(addCost(undefined, 0.5), 0.5));
  test("shows no digits that binary fractions add", () => assertEquals(addCost(0.1, 0.2), 0.3));
});
