import { assertEquals, assertThrows } from "@std/assert";
import { describe, test } from "bun:test";
import fc from "fast-check";
import {
  milliseconds,
  parseDuration,
  parseRetention,
  parseSize,
  showDuration,
} from "../../src/load/duration.ts";

describe("parseDuration()", () => {
  const rows: readonly (readonly [string, number | undefined])[] = [
    ["10m", 600_000],
    ["120s", 120_000],
    ["1h30m", 5_400_000],
    ["500ms", 500],
    ["1s500ms", 1500],
    ["2d", 172_800_000],
    ["24d", 2_073_600_000],
    ["25d", undefined],
    ["0s", undefined],
    ["", undefined],
    ["10", undefined],
    ["10 m", undefined],
    ["m", undefined],
    ["1m1h", undefined],
    ["-1s", undefined],
    ["1.5h", undefined],
    ["1H", undefined],
    ["99999999999s", undefined],
  ];
  for (const [text, ms] of rows) test(`\`${text}\``, () => assertEquals(parseDuration(text), ms));

  test("reads back what showDuration() writes", () => {
    fc.assert(fc.property(fc.integer({ min: 1, max: 2_000_000_000 }), (ms) => {
      assertEquals(parseDuration(showDuration(ms)), ms);
    }));
  });
});

test("milliseconds() is never zero: what is no duration is a fault of the schema", () => {
  assertEquals(milliseconds("15m"), 900_000);
  for (const text of ["0s", "25d", "soon"]) {
    assertThrows(() => milliseconds(text), Error, `duration ${text} passed the schema`);
  }
});

test("parseSize()", () => {
  assertEquals(
    ["2GiB", "512MiB", "1B", "0B", "2GB", "2", "", "999999999TiB"].map(parseSize),
    [2 ** 31, 2 ** 29, 1, undefined, undefined, undefined, undefined, undefined],
  );
});

test("parseRetention()", () => {
  assertEquals(["90d", "0d", "3w", "d", ""].map(parseRetention), [
    90,
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});
