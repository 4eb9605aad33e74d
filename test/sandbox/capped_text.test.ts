import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { cappedText } from "../../src/sandbox/capped_text.ts";

const rows: readonly {
  readonly name: string;
  readonly cap: number;
  readonly pieces: readonly string[];
  readonly text: string;
  readonly cut: boolean;
}[] = [
  { name: "nothing", cap: 10, pieces: [], text: "", cut: false },
  { name: "what just fits", cap: 10, pieces: ["01234", "56789"], text: "0123456789", cut: false },
  {
    name: "one too many",
    cap: 10,
    pieces: ["0123456789a"],
    text: "01234\n[… 1 characters cut …]\n6789a",
    cut: true,
  },
  {
    name: "many small pieces",
    cap: 4,
    pieces: [..."abcdefghijklmnop"],
    text: "ab\n[… 12 characters cut …]\nop",
    cut: true,
  },
  {
    name: "a large piece after a small one",
    cap: 4,
    pieces: ["a", "b".repeat(1000)],
    text: "ab\n[… 997 characters cut …]\nbb",
    cut: true,
  },
  { name: "an odd cap", cap: 5, pieces: ["abcdefgh"], text: "ab\n[… 3 characters cut …]\nfgh", cut: true },
  {
    name: "pairs at both edges",
    cap: 6,
    pieces: ["ab😀cde", "fg😀hi"],
    text: "ab\n[… 9 characters cut …]\nhi",
    cut: true,
  },
];

describe("cappedText()", () => {
  for (const { name, cap, pieces, text, cut } of rows) {
    test(name, () => {
      const capped = cappedText(cap);
      for (const piece of pieces) capped.add(piece);
      assertEquals(capped.take(), { text, cut });
    });
  }

  test("head, tail and count are right however the text is split", () => {
    const whole = Array.from({ length: 997 }, (_, i) => String.fromCharCode(97 + i % 26)).join("");
    for (const size of [1, 2, 3, 7, 50, 64, 101, 996, 997]) {
      const capped = cappedText(100);
      for (let i = 0; i < whole.length; i += size) capped.add(whole.slice(i, i + size));
      assertEquals(
        capped.take().text,
        `${whole.slice(0, 50)}\n[… 897 characters cut …]\n${whole.slice(-50)}`,
        String(size),
      );
    }
  });
});
