import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import {
  afterCut,
  beforeCut,
  capText,
  dropHidden,
  escapeJson,
  escapeLine,
  hasHiddenCharacters,
  keepOpen,
  neutralText,
} from "../../src/core/text.ts";

const long = "x".repeat(1500);
const key = (side: string) => `-----${side} RSA PRIVATE KEY-----`;

describe("at a cut no part of a secret is shown", () => {
  const rows: readonly {
    readonly name: string;
    readonly text: string;
    readonly before: string;
    readonly after: string;
  }[] = [
    { name: "nothing", text: "", before: "", after: "" },
    { name: "words", text: "one two three", before: "one two ", after: " two three" },
    { name: "blanks at the borders", text: "\tone\n", before: "\tone\n", after: "\tone\n" },
    { name: "one word", text: "token", before: "", after: "" },
    { name: "letters that need two units", text: "😀 b 😀", before: "😀 b ", after: " b 😀" },
    {
      name: "a run that is too long for a secret",
      text: long,
      before: long.slice(1024),
      after: long.slice(1024),
    },
    {
      name: "half a letter at the border of what is dropped",
      text: `a${"😀".repeat(1000)}b`,
      before: `a${"😀".repeat(488)}`,
      after: `${"😀".repeat(488)}b`,
    },
    {
      name: "a key that goes on",
      text: `a\n${key("BEGIN")}\nMII a\nb`,
      before: "a\n",
      after: `\n${key("BEGIN")}\nMII a\nb`,
    },
    {
      name: "a key that began before",
      text: `MII\nabc\n${key("END")}\nz`,
      before: `MII\nabc\n${key("END")}\n`,
      after: "\nz",
    },
    {
      name: "a whole key",
      text: `a\n${key("BEGIN")}\nM\n${key("END")}\nz`,
      before: `a\n${key("BEGIN")}\nM\n${key("END")}\n`,
      after: `\n${key("BEGIN")}\nM\n${key("END")}\nz`,
    },
    {
      name: "the end of one key and the start of another",
      text: `M\n${key("END")}\nb\n${key("BEGIN")}\nM`,
      before: `M\n${key("END")}\nb\n`,
      after: `\nb\n${key("BEGIN")}\nM`,
    },
  ];
  for (const { name, text, before, after } of rows) {
    test(name, () => assertEquals([beforeCut(text), afterCut(text)], [before, after]));
  }
});

test("capText() counts what is dropped at the cut, and shows no half of a token wherever the cut falls", () => {
  const token = "sk-ant-0123456789abcdef";
  for (let pad = 0; pad < 60; pad++) {
    const text = `${"a ".repeat(pad)}${token} ${"b ".repeat(60 - pad)}`;
    const capped = capText(text, 100).text;
    const [, missing] = /\[… (\d+) characters cut …\]/.exec(capped) ?? [];
    const shown = capped.replace(/\n\[.*\]\n/, "");
    assertEquals([Number(missing), shown.replaceAll(token, "").replace(/[ab ]/g, "")], [
      text.length - shown.length,
      "",
    ]);
  }
});

describe("a character that nobody sees is shown as an escape, or dropped", () => {
  const rows:
    readonly (readonly [name: string, text: string, line: string, json: string, dropped: string])[] = [
      ["a control character", "a\u001b[2Jb", "a\\x1b[2Jb", "a\\u001b[2Jb", "a[2Jb"],
      ["a direction character", "a\u202eb", "a\\u202eb", "a\\u202eb", "ab"],
      ["a deprecated format character", "a\u206ab", "a\\u206ab", "a\\u206ab", "ab"],
      ["a tag character", "a\u{e0041}b", "a\\u{e0041}b", "a\\udb40\\udc41b", "ab"],
      ["others beyond ASCII", "ä 日 😀", "ä 日 😀", "ä 日 😀", "ä 日 😀"],
    ];
  for (const [name, text, line, json, dropped] of rows) {
    test(name, () => {
      assertEquals([escapeLine(text), escapeJson(text), dropHidden(text)], [line, json, dropped]);
      assertEquals(hasHiddenCharacters(text), text !== dropped);
      assertEquals(JSON.parse(`"${json}"`), text);
    });
  }
});

describe("keepOpen() lets no text end a fence that it stands in", () => {
  const rows: readonly (readonly [string, text: string, names: readonly string[], kept: string])[] = [
    ["an end", "a</skill>b", ["skill"], "a&lt;/skill>b"],
    ["one in other letters and with blanks", "< / SKILL >", ["skill"], "&lt; / SKILL >"],
    ["one that is not closed", "</fork", ["user", "fork"], "&lt;/fork"],
    ["a longer name", "</users>", ["user"], "&lt;/users>"],
    ["each of them", "</a></b>", ["a", "b"], "&lt;/a>&lt;/b>"],
    ["another fence", "</b> & <a>", ["a"], "</b> & <a>"],
  ];
  for (const [name, text, names, kept] of rows) test(name, () => assertEquals(keepOpen(text, names), kept));
});

test("neutralText() shows what would steer a terminal or turn text around, and keeps what words are written with", () => {
  const rows: readonly (readonly [text: string, neutral: string])[] = [
    ["tab\tand\nlines\r\n", "tab\tand\nlines\r\n"],
    ["\u001b[2J\u0007\u009b\u007f", "\\x1b[2J\\x07\\x9b\\x7f"],
    ["over\rwritten\r", "over\\x0dwritten\\x0d"],
    ["\u202eevil\u202c \u2066x\u2069", "\\u202eevil\\u202c \\u2066x\\u2069"],
    ["a\u{e0041}\u{e007f}", "a\\u{e0041}\\u{e007f}"],
    [
      "\u{1f468}\u200d\u{1f469} \u0645\u06cc\u200c\u062e",
      "\u{1f468}\u200d\u{1f469} \u0645\u06cc\u200c\u062e",
    ],
  ];
  for (const [text, neutral] of rows) assertEquals(neutralText(text), neutral);
});
