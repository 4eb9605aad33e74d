import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { outcomeOf } from "../../src/mcp/result_text.ts";

describe("outcomeOf() takes no answer of a wrong shape for a result", () => {
  const wrong = {
    ok: false,
    code: "bad_result",
    content: "the server's answer is no result of a tool",
    unknown: true,
  };
  const rows: readonly (readonly [name: string, result: unknown, outcome: object])[] = [
    ["a text", "yes", wrong],
    ["content that is a text", { content: "nope" }, wrong],
    ["content that is a map", { content: { type: "text", text: "x" } }, wrong],
    ["content that is null", { content: null }, wrong],
    ["no content", {}, { ok: true, content: "[no output]", partial: true }],
    ["data alone", { structuredContent: { a: 1 } }, { ok: true, content: '{"a":1}', data: { a: 1 } }],
    ["a text in a list", { content: [{ type: "text", text: "x" }] }, { ok: true, content: "x" }],
  ];
  for (const [name, result, outcome] of rows) {
    test(name, () => assertEquals(outcomeOf(result, 1000) as object, outcome));
  }
});
