// Scripted models: what a script may hold, what is said of one that is wrong, and how it answers.
import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { isError, type Loaded, showProblem } from "../../src/core/problem.ts";
import { checkScript, loadScript, scriptModel, type ScriptReply } from "../../src/provider/script.ts";
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
      "s.yaml:1:1: error: the script is empty; expected a list with one entry per model request [wrong-value]",
    ]],
    ["a mapping", "text: hi", [
      "s.yaml:1:1: error: the script is a mapping of `text`; expected a list with one entry per model request [wrong-value]",
    ]],
    ["an unknown key", "- text: hi\n  txt: ho\n", [
      "s.yaml:2:3: error: `txt` is not a key of a script's reply; expected `text`, `call`, `calls`, `stop`, `fail`; " +
      "did you mean `text`? [unknown-key]",
    ]],
    ["an unknown key of a failure", "- fail:\n    code: x\n    retry: true\n", [
      "s.yaml:3:5: error: `retry` is not a key of a script's failure; expected `code`, `message`, `status`, `retryable`; " +
      "did you mean `retryable`? [unknown-key]",
    ]],
    ["several faults at once", "- text: 7\n- stop: never\n- 5\n", [
      "s.yaml:1:9: error: `text` is `7`; expected text [wrong-value]",
      "s.yaml:2:9: error: `stop` is `never`; expected `end`, `max_tokens` or `refusal` [wrong-value]",
      "s.yaml:3:3: error: reply 3 is `5`; expected a mapping with `text`, `call`, `calls`, `stop` or `fail` [wrong-value]",
    ]],
    ["an empty reply", "- {}\n", [
      "s.yaml:1:3: error: reply 1 is an empty mapping; expected at least one of `text`, `call`, `calls`, `stop`, `fail` " +
      "[wrong-value]",
    ]],
    ["a reply of nothing", "-\n", [
      "s.yaml:1:2: error: reply 1 is empty; expected a mapping with `text`, `call`, `calls`, `stop` or `fail` [wrong-value]",
    ]],
    ["two tools in one call", "- call: {a: {}, b: {}}\n", [
      "s.yaml:1:9: error: `call` is a mapping of `a`, `b`; expected exactly one tool name [wrong-value]",
    ]],
    ["a call without arguments", "- call: git_diff\n", [
      "s.yaml:1:9: error: `call` is `git_diff`; expected a mapping of one tool name to its arguments [wrong-value]",
    ]],
    ["a list as a call", "- call: [git_diff]\n", [
      "s.yaml:1:9: error: `call` is a list; expected a mapping of one tool name to its arguments [wrong-value]",
    ]],
    ["arguments that are no mapping", "- calls:\n    - shell: ls\n", [
      "s.yaml:2:14: error: `shell` is `ls`; expected a mapping of argument names to JSON values [wrong-value]",
    ]],
    ["a number that JSON has not", "- call: {shell: {timeout: .inf}}\n", [
      "s.yaml:1:17: error: `shell` is a mapping of `timeout`; expected a mapping of argument names to JSON values " +
      "[wrong-value]",
    ]],
    ["call and calls", "- {call: {a: {}}, calls: []}\n", [
      "s.yaml:1:3: error: reply 1 is a mapping of `call`, `calls`; expected `call` or `calls`, not both [wrong-value]",
    ]],
    ["a failure that speaks", "- {text: hi, fail: {code: x}}\n", [
      "s.yaml:1:3: error: reply 1 is a mapping of `text`, `fail`; expected `fail` alone: a failed request says nothing " +
      "[wrong-value]",
    ]],
    ["a failure without a code", "- fail: {status: 500}\n", [
      "s.yaml:1:9: error: `code` is missing [missing-key]",
    ]],
    ["a failure with a bad code and status", "- fail: {code: No Code, status: 200}\n", [
      "s.yaml:1:16: error: `code` is `No Code`; expected lower case words joined by `_` [wrong-value]",
      "s.yaml:1:33: error: `status` is `200`; expected a status from 400 [wrong-value]",
    ]],
    ["a duplicate key", "- text: a\n  text: b\n", [
      "s.yaml:2:3: error: Map keys must be unique [duplicate-key]",
    ]],
  ];
  for (const [name, text, shown] of problems) {
    test(`refuses ${name}`, () => {
      const loaded = loadScript(text, "s.yaml");
      assertEquals(loaded.problems.map(showProblem), [...shown]);
      assertEquals([loaded.ok, loaded.problems.every(isError)], [false, true]);
    });
  }

  test("checks a list that stands in another file at its places there", () => {
    const places = {
      at: (path: readonly (string | number)[]) => ({ file: "t.yaml", line: 9, col: path.length }),
      keyAt: () => ({ file: "t.yaml", line: 1, col: 1 }),
    };
    const loaded = checkScript([{ text: 7 }], places);
    assertEquals(loaded.problems.map(({ at }) => at), [{ file: "t.yaml", line: 9, col: 2 }]);
  });
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
