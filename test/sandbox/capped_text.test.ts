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
    pieces: ["01 3 5 7 9a"],
    text: "01 3 \n[… 1 characters cut …]\n 7 9a",
    cut: true,
  },
  {
    name: "many small pieces",
    cap: 6,
    pieces: [..."a bcdefghijklmn op"],
    text: "a \n[… 13 characters cut …]\n op",
    cut: true,
  },
  {
    name: "a large piece after a small one",
    cap: 4,
    pieces: ["a ", "b ".repeat(500)],
    text: "a \n[… 999 characters cut …]\n ",
    cut: true,
  },
  { name: "an odd cap", cap: 5, pieces: ["a cdef h"], text: "a \n[… 4 characters cut …]\n h", cut: true },
  {
    name: "what has no blank near the cut",
    cap: 10,
    pieces: ["0123456789a"],
    text: "\n[… 11 characters cut …]\n",
    cut: true,
  },
  {
    name: "line ends at the cut",
    cap: 6,
    pieces: ["a\nbcd", "ef\ng\n"],
    text: "a\n[… 5 characters cut …]\ng\n",
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
    const whole = Array.from({ length: 997 }, (_, i) => i % 2 === 0 ? " " : String.fromCharCode(97 + i % 26))
      .join("");
    for (const size of [1, 2, 3, 7, 50, 64, 101, 996, 997]) {
      const capped = cappedText(100);
      for (let i = 0; i < whole.length; i += size) capped.add(whole.slice(i, i + size));
      assertEquals(
        capped.take().text,
        `${whole.slice(0, 49)}\n[… 899 characters cut …]\n${whole.slice(-49)}`,
        String(size),
      );
    }
  });
});
