// Scripted models: what a script may hold, what is said of one that is wrong, and how it answers.
import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { isError, type Loaded, showProblem } from "../../src/core/problem.ts";
import { loadScript, scriptModel, type ScriptReply } from "../../src/provider/script.ts";
import { failureOf, listen, request, seen } from "./setup.ts";

function replies(loaded: Loaded<readonly ScriptReply[]>): readonly ScriptReply[] {
  if (!loaded.ok) throw new Error(loaded.problems.map(showProblem).join("\n"));
  return loaded.value;
}

const sample = `
- text: I look first.
  call: {git_diff: {}}
- calls:
    - read_file: {path: a.md, lines: [1, 2.5, null, true]}
    - git_diff:
- {text: cut off, call: {shell: {command: ls}}, stop: max_tokens}
- {fail: {code: overloaded, status: 529, retryable: true}}
- {fail: {code: odd_thing, message: as it happens}}
- {stop: refusal}
- text: Done.
`;

describe("loadScript()", () => {
  test("reads every form of a reply", () => {
    assertEquals(replies(loadScript(sample, "s.yaml")), [
      { text: "I look first.", calls: [{ tool: "git_diff", args: {} }], stop: "tool_use" },
      {
        text: "",
        calls: [
          { tool: "read_file", args: { path: "a.md", lines: [1, 2.5, null, true] } },
          { tool: "git_diff", args: {} },
        ],
        stop: "tool_use",
      },
      { text: "cut off", calls: [{ tool: "shell", args: { command: "ls" } }], stop: "max_tokens" },
      {
        text: "",
        calls: [],
        stop: "end",
        fail: { code: "overloaded", message: "scripted failure `overloaded`", retryable: true, status: 529 },
      },
      {
        text: "",
        calls: [],
        stop: "end",
        fail: { code: "odd_thing", message: "as it happens", retryable: false },
      },
      { text: "", calls: [], stop: "refusal" },
      { text: "Done.", calls: [], stop: "end" },
    ]);
  });

  test("takes an empty list", () => assertEquals(replies(loadScript("[]", "s.yaml")), []));

  const problems: readonly (readonly [name: string, text: string, shown: readonly string[]])[] = [
    ["nothing", "", [
      "s.yaml:1:1: error: the file is empty; expected a list with one entry per model request; write the value, or remove " +
      "the key [wrong-type]",
    ]],
    ["a mapping", "text: hi", [
      "s.yaml:1:1: error: the file is a mapping; expected a list with one entry per model request [wrong-type]",
    ]],
    ["an unknown key", "- text: hi\n  txt: ho\n", [
      "s.yaml:2:3: error: unknown key `[0].txt`; did you mean `text`? [unknown-key]",
    ]],
    ["an unknown key of a failure", "- fail:\n    code: x\n    retry: true\n", [
      "s.yaml:3:5: error: unknown key `[0].fail.retry`; did you mean `retryable`? [unknown-key]",
    ]],
    ["several faults at once", "- text: 7\n- stop: never\n- 5\n", [
      "s.yaml:1:9: error: `[0].text` is `7`; expected text; put quotes around it [wrong-type]",
      "s.yaml:2:9: error: `[1].stop` is `never`; expected one of `end`, `max_tokens`, `refusal` [wrong-value]",
      "s.yaml:3:3: error: `[2]` is `5`; expected a mapping with `text`, `call`, `calls`, `stop` or `fail` [wrong-type]",
    ]],
    ["an empty reply", "- {}\n", [
      "s.yaml:1:3: error: `[0]` is an empty mapping; expected at least one of `text`, `call`, `calls`, `stop`, `fail` " +
      "[wrong-value]",
    ]],
    ["a reply of nothing", "-\n", [
      "s.yaml:1:2: error: `[0]` is empty; expected a mapping with `text`, `call`, `calls`, `stop` or `fail`; write the " +
      "value, or remove the key [wrong-type]",
    ]],
    ["two tools in one call", "- call: {a: {}, b: {}}\n", [
      "s.yaml:1:9: error: `[0].call` has `a`, `b`; expected exactly one tool name [wrong-value]",
    ]],
    ["a call without arguments", "- call: git_diff\n", [
      "s.yaml:1:9: error: `[0].call` is `git_diff`; expected a mapping of one tool name to its arguments [wrong-type]",
    ]],
    ["a list as a call", "- call: [git_diff]\n", [
      "s.yaml:1:9: error: `[0].call` is a list; expected a mapping of one tool name to its arguments [wrong-type]",
    ]],
    ["arguments that are no mapping", "- calls:\n    - shell: ls\n", [
      "s.yaml:2:14: error: `[0].calls[0].shell` is `ls`; expected a mapping of argument names to JSON values [wrong-type]",
    ]],
    ["a number that JSON has not", "- call: {shell: {timeout: .inf}}\n", [
      "s.yaml:1:17: error: `[0].call.shell` is a mapping; expected a mapping of argument names to JSON values [wrong-type]",
    ]],
    ["call and calls", "- {call: {a: {}}, calls: []}\n", [
      "s.yaml:1:3: error: `[0]` has `call`, `calls`; expected `call` or `calls`, not both [wrong-value]",
    ]],
    ["a failure that speaks", "- {text: hi, fail: {code: x}}\n", [
      "s.yaml:1:3: error: `[0]` has `text`, `fail`; expected `fail` alone: a failed request says nothing [wrong-value]",
    ]],
    ["a failure without a code", "- fail: {status: 500}\n", [
      "s.yaml:1:9: error: `code` is missing in `[0].fail`; expected a code [missing-key]",
    ]],
    ["a failure with a bad code and status", "- fail: {code: No Code, status: 200}\n", [
      "s.yaml:1:16: error: `[0].fail.code` is `No Code`; expected lower case words joined by `_` [wrong-value]",
      "s.yaml:1:33: error: `[0].fail.status` is `200`; expected a status from 400 [wrong-value]",
    ]],
    ["a duplicate key", "- text: a\n  text: b\n", [
      "s.yaml:2:3: error: the key `text` is set twice in one mapping, in line 1 and in line 2; keep one of them [duplicate-key]",
    ]],
  ];
  for (const [name, text, shown] of problems) {
    test(`refuses ${name}`, () => {
      const loaded = loadScript(text, "s.yaml");
      assertEquals(loaded.problems.map(showProblem), [...shown]);
      assertEquals([loaded.ok, loaded.problems.every(isError)], [false, true]);
    });
  }
});

describe("scriptModel()", () => {
  const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const script = replies(loadScript(sample, "s.yaml"));

  test("answers one entry per request", async () => {
    const model = scriptModel(script);
    assertEquals(model.provider, "script");
    assertEquals(await listen(model), {
      reply: {
        stop: "tool_use",
        content: [
          { type: "text", text: "I look first." },
          { type: "tool_use", id: "call_1_1", name: "git_diff", input: {} },
        ],
        usage,
      },
      heard: ["I look first.", "|", "|"],
    });
    assertEquals((await listen(model)).reply, {
      stop: "tool_use",
      content: [
        {
          type: "tool_use",
          id: "call_2_1",
          name: "read_file",
          input: { path: "a.md", lines: [1, 2.5, null, true] },
        },
        { type: "tool_use", id: "call_2_2", name: "git_diff", input: {} },
      ],
      usage,
    });
    assertEquals((await listen(model)).reply, {
      stop: "max_tokens",
      content: [
        { type: "text", text: "cut off" },
        { type: "tool_use", id: "call_3_1", name: "shell", input: { command: "ls" }, cut: true },
      ],
      usage,
    });
    assertEquals(seen(await failureOf(() => listen(model))), {
      code: "overloaded",
      message: "scripted failure `overloaded`",
      status: 529,
      retryable: true,
    });
    assertEquals(seen(await failureOf(() => listen(model))), {
      code: "odd_thing",
      message: "as it happens",
      retryable: false,
    });
    assertEquals(await listen(model), { reply: { stop: "refusal", content: [], usage }, heard: [] });
    assertEquals((await listen(model)).reply.stop, "end");
    assertEquals(seen(await failureOf(() => listen(model))), {
      code: "script_ended",
      message: "the script has no reply for model request 8",
      hint: "it has 7; add what the model should say next",
      retryable: false,
    });
  });

  test("goes on where a session stopped, with ids of its own", async () => {
    const { reply } = await listen(scriptModel(script, { start: 1 }));
    assertEquals(reply.content.map((block) => block.type === "tool_use" ? block.id : ""), [
      "call_2_1",
      "call_2_2",
    ]);
  });

  test("does not answer a caller who has cancelled, and keeps the reply", async () => {
    const model = scriptModel(script);
    const failure = await failureOf(() => listen(model, request(), AbortSignal.abort()));
    assertEquals([failure.code, failure.retryable], ["cancelled", false]);
    assertEquals((await listen(model)).reply.stop, "tool_use");
  });
});
