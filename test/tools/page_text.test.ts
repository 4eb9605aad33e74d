import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { pageText } from "../../src/tools/page_text.ts";

const utf8 = (text: string) => new TextEncoder().encode(text);
const bytes = (...values: readonly number[]) => new Uint8Array(values);

function read(contentType: string, body: Uint8Array<ArrayBuffer>, cut = false) {
  return pageText({ contentType, body, cut, url: "https://a.test/" });
}

describe("pageText() takes for text", () => {
  for (
    const [declared, type] of [
      ["text/plain", "text/plain"],
      ["TEXT/Markdown; charset=utf-8", "text/markdown"],
      ["application/json", "application/json"],
      ["application/ld+json;x=y", "application/ld+json"],
      ["application/xml", "application/xml"],
      ["application/rss+xml", "application/rss+xml"],
      ["image/svg+xml", "image/svg+xml"],
      ["application/yaml", "application/yaml"],
      ["application/javascript", "application/javascript"],
      ["application/x-ndjson", "application/x-ndjson"],
      ["", "text/plain"],
    ] as const
  ) {
    test(JSON.stringify(declared), () =>
      assertEquals(read(declared, utf8("{<b>a</b>}")), {
        ok: true,
        type,
        title: "",
        text: "{<b>a</b>}",
        notes: [],
      }));
  }

  for (const declared of ["text/html", "application/xhtml+xml; charset=utf-8", "TEXT/HTML"]) {
    test(`${declared}, without its tags`, () =>
      assertEquals(read(declared, utf8("<title>t</title><p>a")), {
        ok: true,
        type: declared.split(";")[0]?.toLowerCase() ?? "",
        title: "t",
        text: "a",
        notes: [],
      }));
  }

  test("a page that looks like HTML and does not say so", () =>
    assertEquals(read("", utf8("\n <!DOCTYPE html><p>a")), {
      ok: true,
      type: "text/html",
      title: "",
      text: "a",
      notes: [],
    }));
});

describe("pageText() refuses", () => {
  const cases: readonly (readonly [string, string, Uint8Array<ArrayBuffer>, boolean, string])[] = [
    ["an image", "image/png", utf8("abc"), false, "image/png, 3 bytes"],
    ["an archive", "application/zip", utf8("abc"), false, "application/zip, 3 bytes"],
    ["unknown bytes", "application/octet-stream", utf8("a"), false, "application/octet-stream, 1 byte"],
    ["a type that is none", "nonsense", utf8("abc"), false, "nonsense, 3 bytes"],
    [
      "a document that calls itself text",
      "text/plain",
      utf8("%PDF-1.7"),
      false,
      "text/plain (PDF document), 8 bytes",
    ],
    ["zero bytes in text", "text/html", bytes(97, 0, 98), false, "text/html (binary data), 3 bytes"],
    ["zero bytes without a type", "", bytes(97, 0, 98), false, "text/plain (binary data), 3 bytes"],
    ["the beginning of a film", "video/mp4", utf8("abc"), true, "video/mp4, more than 3 bytes"],
  ];
  for (const [name, type, body, cut, what] of cases) {
    test(name, () =>
      assertEquals(read(type, body, cut), {
        ok: false,
        code: "not_text",
        message: `it is no text: ${what}; expected text, HTML, JSON or XML`,
      }));
  }
});

describe("pageText() reads characters", () => {
  const latin = bytes(0x63, 0x61, 0x66, 0xe9);
  const russian = bytes(0xcf, 0xf0, 0xe8);
  const japanese = bytes(0x93, 0xfa, 0x96, 0x7b);
  const meta = (charset: string, rest: Uint8Array) =>
    bytes(...utf8(`<html><head><meta ${charset}></head>`), ...rest);
  const unknown = "the character set `klingon` is not known; read as UTF-8";
  const unnamed = "no character set is named; read as windows-1252";
  const cases: readonly (readonly [string, string, Uint8Array<ArrayBuffer>, string, ...string[]])[] = [
    ["as UTF-8 when nothing is said", "text/plain", utf8("café"), "café"],
    ["as windows-1252 when nothing is said and it is no UTF-8", "text/plain", latin, "café", unnamed],
    ["by the header", "text/plain; charset=iso-8859-1", latin, "café"],
    ["by a quoted header", 'text/plain; x=y; charset="windows-1251"', russian, "При"],
    ["by a header in Japanese", "text/plain;charset=Shift_JIS", japanese, "日本"],
    [
      "by the mark, whatever the header says",
      "text/plain; charset=latin1",
      bytes(0xef, 0xbb, 0xbf, 0xc3, 0xa9),
      "é",
    ],
    ["in two bytes by the mark", "text/plain", bytes(0xff, 0xfe, 0x61, 0, 0xe9, 0), "aé"],
    ["in two bytes the other way round", "text/plain", bytes(0xfe, 0xff, 0, 0x61, 0, 0xe9), "aé"],
    ["in two bytes by the header", "text/plain; charset=utf-16le", bytes(0x61, 0, 0xe9, 0), "aé"],
    ["by what the page says", "text/html", meta('charset="windows-1251"', russian), "При"],
    [
      "by what the page says the old way",
      "text/html",
      meta('http-equiv=Content-Type content="text/html; charset=windows-1251"', russian),
      "При",
    ],
    ["by the header before the page", "text/html; charset=utf-8", meta("charset=latin1", utf8("é")), "é"],
    ["in single bytes where the page says two", "text/html", meta("charset=utf-16", utf8("é")), "é"],
    [
      "by an XML declaration",
      "text/html",
      bytes(...utf8('<?xml version="1.0" encoding="windows-1251"?>'), ...russian),
      "При",
    ],
    ["as UTF-8 where the name is not known", "text/plain; charset=klingon", utf8("é"), "é", unknown],
    [
      "without what no reader sees",
      "text/plain",
      utf8("a\u0001b\u001b[31m\u{e0041}c\r\nd\re\ufeff"),
      "ab[31mc\nd\ne",
    ],
  ];
  for (const [name, type, body, text, ...notes] of cases) {
    test(name, () => {
      const page = read(type, body);
      assertEquals(page.ok && [page.text, page.notes], [text, notes]);
    });
  }

  test("and none that a cut has split", () => {
    const page = read("text/plain", utf8("caffè").subarray(0, 5), true);
    assertEquals(page.ok && [page.text, page.notes], ["caff", []]);
  });
});
