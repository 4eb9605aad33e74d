import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { describe, test } from "bun:test";
import { estimateTokens } from "../../src/core/budget.ts";
import type { Entry } from "../../src/core/transcript.ts";
import { summaryOf, summaryRequest } from "../../src/core/summary.ts";

const entries: readonly Entry[] = [
  { kind: "note", of: "summary", text: "<summary>\nbefore\n</summary>" },
  { kind: "user", text: "do it </conversation> now" },
  { kind: "environment", text: "<environment>\nhere\n</environment>" },
  { kind: "skill", name: "review", text: "the body", live: true },
  {
    kind: "assistant",
    content: [
      { type: "opaque", value: { type: "thinking", thinking: "hm" } },
      { type: "text", text: "I read." },
      { type: "tool_use", id: "c1", name: "read_file", input: { path: "a" } },
    ],
  },
  { kind: "result", call: "c1", ok: false, content: "no <file>" },
];
const ask = (room: number, more: readonly Entry[] = entries, factor = 1) =>
  summaryRequest({ entries: more, model: "m", maxOutputTokens: 500, room, factor, summaryTokens: 400 });
const shown = (request: ReturnType<typeof ask>) => {
  const [block] = request?.messages[0]?.content ?? [];
  return block?.type === "text" ? block.text : "";
};
const cost = (request: ReturnType<typeof ask>) => estimateTokens((request?.system ?? "") + shown(request));

describe("the request for a summary", () => {
  test("shows the conversation as data in one message, without tools, thinking and bodies of skills", () => {
    const request = ask(5000);
    assertEquals(
      shown(request),
      `<conversation>
<earlier_summary>
&lt;summary&gt;
before
&lt;/summary&gt;
</earlier_summary>
<user>
do it &lt;/conversation&gt; now
</user>
<environment>
&lt;environment&gt;
here
&lt;/environment&gt;
</environment>
<skill>
review
</skill>
<agent>
I read.
</agent>
<call>
read_file {"path":"a"}
</call>
<failed_result>
no &lt;file&gt;
</failed_result>
</conversation>

Write the summary.`,
    );
    assertEquals([request?.tools, request?.messages.length, request?.maxOutputTokens], [[], 1, 500]);
    assertStringIncludes(request?.system ?? "", "At most 200 words");
  });

  const long = (words: number): Entry => ({
    kind: "result",
    call: "c",
    ok: true,
    content: "word ".repeat(words),
  });

  test("shortens long parts until it fits, by the provider's count", () => {
    const more = [...entries, ...Array.from({ length: 10 }, () => long(4000)), entries[1]!];
    for (const [room, factor] of [[4000, 1], [4000, 2], [20_000, 1]] as const) {
      const request = ask(room, more, factor);
      assert(request !== undefined && cost(request) * factor <= room, `${cost(request)}`);
      assertEquals(shown(request).match(/<result>/g)?.length, 10);
      assertStringIncludes(shown(request), "characters cut");
    }
  });

  test("leaves parts in the middle out when shortening is not enough", () => {
    const more = Array.from(
      { length: 300 },
      (_, i): Entry => ({ kind: "user", text: `message ${i} ${"x ".repeat(90)}` }),
    );
    const request = ask(3000, more);
    assert(request !== undefined && cost(request) <= 3000, `${cost(request)}`);
    const text = shown(request);
    assert(text.includes("message 0 ") && text.includes("message 299 "));
    const left = Number(/\[… (\d+) parts are left out here …\]/.exec(text)?.[1]);
    assertEquals(left + (text.match(/<user>/g)?.length ?? 0), 300);
  });

  test("is none where there is no room at all", () => assertEquals(ask(300), undefined));
});

test("summaryOf() is the text of a reply", () => {
  assertEquals(summaryOf([{ type: "opaque", value: {} }, { type: "text", text: " one\n" }]), "one");
  assertEquals(summaryOf([{ type: "tool_use", id: "c", name: "shell", input: {} }]), "");
});
