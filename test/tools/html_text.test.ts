import { assert, assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { htmlText } from "../../src/tools/html_text.ts";

const base = "https://a.test/dir/page";

describe("htmlText() gives the text of", () => {
  const cases: readonly (readonly [string, string, string])[] = [
    ["nothing", "", ""],
    ["bare text", "a  b\n\tc", "a b c"],
    ["entities", "&lt;b&gt; &amp;amp; &copy; &#x41;&#66; &nbsp; &bogus; &am", "<b> &amp; © AB &bogus; &am"],
    ["paragraphs", "<p>a</p><p>b<p>c", "a\n\nb\n\nc"],
    ["inline elements", "<b>a</b><i>b</i> <em> c </em> d", "ab c d"],
    ["line breaks", "a<br>b<br/><br>c<br><br><br><br>d", "a\nb\n\nc\n\nd"],
    ["headings", "<h1>A <i>b</i></h1>c<h3>D</h3><h2></h2>e", "# A b\n\nc\n\n### D\n\ne"],
    ["a list", "<ul><li>a<li>b</ul>c", "- a\n- b\n\nc"],
    ["a numbered list", "<ol start=9><li>a<li><p>b</p></ol><ol><li>c</ol>", "9. a\n10. b\n\n1. c"],
    [
      "lists in lists",
      "<ul><li>a<ol><li>b<ul><li>c</ul><li>d</ol><li>e</ul>",
      "- a\n  1. b\n    - c\n  2. d\n- e",
    ],
    ["more lines in an item", "<ul><li>a<p>b</p>c<br>d</ul>", "- a\n  b\n  c\n  d"],
    ["items without a list", "<li>a<li>b", "- a\n- b"],
    ["a heading in an item", "<ul><li><h2>a</h2>b</ul>", "- ## a\n  b"],
    ["empty items", "<ul><li></li><li>a</li><li> </li></ul>b", "- a\n\nb"],
    ["a table", "<table><tr><th>a<th>b<tr><td>1<td><b>2</b></table>c", "a | b\n1 | 2\n\nc"],
    ["preformatted text", "x<pre>  a\n\n   b\n</pre>y", "x\n\n  a\n\n   b\n\ny"],
    ["links", '<a href="b?c=1&amp;d">x <b>y</b></a>.', "x y (https://a.test/dir/b?c=1&d)."],
    ["a link around blocks", "<a href=/b><div>x</div><div>y</div></a>z", "x\ny (https://a.test/b)\nz"],
    ["a link that is its own text", "<a href=https://b.test/>https://b.test/</a>", "https://b.test/"],
    [
      "links that lead nowhere",
      "<a href=#x>a</a> <a>b</a> <a href='javascript:x'>c</a> <a href=//[>d</a>",
      "a b c d",
    ],
    ["a link to data", "<a href='data:text/html,x'>a</a> <a href='file:///etc'>b</a>", "a b"],
    ["a link to a mailbox", "<a href='mailto:x@a.test'>x</a>", "x (mailto:x@a.test)"],
    ["a link without text", "<a href=/b><img src=x></a>a", "a"],
    ["a link that nobody closes", "<a href=/b>x<a href=/c>y", "x (https://a.test/b)y (https://a.test/c)"],
    ["a page with a base", "<base href=/other/><a href=x>y</a>", "y (https://a.test/other/x)"],
    ["images with a text", '<img alt="a cat" src=x> and <img alt="" src=y>', "[image: a cat] and"],
    ["what follows scripts and styles", "a<script>if (a</b>) '<p>'</script><style>p{}</style>b", "ab"],
    ["what follows a drawing", "a<svg><title>t</title><text>x</text><svg/></svg>b<svg/>c", "abc"],
    ["what follows a template", "a<template><p>x<template>y</template>z</template>b", "ab"],
    [
      "what follows comments and declarations",
      "<!doctype html>a<!-- <p>x</p> -->b<?xml x?>c<![CDATA[d]]>",
      "abc",
    ],
    ["tags in capitals", "<P>a</P><SCRIPT>x</SCRIPT><H2>b</H2>", "a\n\n## b"],
    ["tags that are never closed", "<p><b><div>a<span>b", "ab"],
    ["tags that were never opened", "a</p></div></ul></b></pre></svg></a>b", "a\n\nb"],
    ["a tag that breaks off", "a<p class='x", "a"],
    ["a text area", "<textarea><b>a</b></textarea>", "<b>a</b>"],
    ["text beyond the basic plane", "<p>😀 &#128512; 漢字", "😀 😀 漢字"],
  ];
  for (const [name, html, expected] of cases) {
    test(name, () => assertEquals(htmlText(html, base), { title: "", text: expected }));
  }

  test("a page with a title", () => {
    const html = "<head><title> A &amp; <b>\n C</title></head><body>d<title>E</title>";
    assertEquals(htmlText(html, base), { title: "A & <b> C", text: "d" });
  });
});

describe("htmlText() takes time and room by length alone", () => {
  const long = "x".repeat(900);
  const cases: readonly (readonly [string, string])[] = [
    ["depth", "<div>".repeat(200_000)],
    ["depth and other ends", `${"<b>".repeat(200_000)}${"</i>".repeat(200_000)}`],
    ["lists in lists", "<ul><li>x".repeat(100_000)],
    ["headings without end", "<h1>".repeat(200_000)],
    ["attributes", `<a ${"x=1 ".repeat(250_000)}>`],
    ["angle brackets", "<".repeat(1_000_000)],
    ["ampersands", "&".repeat(1_000_000)],
    ["comments that open", "<!--".repeat(250_000)],
    ["blanks", `${" ".repeat(1_000_000)}x`],
    ["blanks in preformatted text", `<pre>${" ".repeat(1_000_000)}x`],
    ["a script that never ends", `<script>${"</scrip".repeat(150_000)}`],
    ["short links against a long base", `<base href=https://a.test/${long}/>${"<a href=y>z".repeat(90_000)}`],
  ];
  for (const [name, html] of cases) {
    // A square of the length would take minutes here.
    test(name, () => {
      const { text } = htmlText(html, base);
      assert(text.length <= html.length * 4, `${text.length} characters of ${html.length}`);
    }, 20_000);
  }
});
