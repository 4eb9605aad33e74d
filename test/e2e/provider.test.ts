// The executable against a server that speaks the Messages format: streams, calls, what goes wrong, and what the model is sent.
import { describe, test } from "bun:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { type Ended, eventsOf, eventually, type Machine, soundLog, withMachine } from "../support/machine.ts";
import {
  type MessagesServer,
  type Plan,
  type PlannedResponse,
  withMessagesServer,
} from "../support/messages_server.ts";

const key = "sk-test-4f5a6b7c8d9e0f1a";
const withKey = { ANTHROPIC_API_KEY: key };

function policyFor(m: Machine, url: string, model = "", rest = ""): string {
  const text = `version: 1\nmodel: {name: test-model, base_url: "${url}"${model}}\n${rest}`;
  return m.write("policy.yaml", text);
}

/** One run against a server with this plan. The key is looked for in everything that the run left and said. */
async function runAgainst(
  plan: Plan,
  options: {
    readonly model?: string;
    readonly policy?: string;
    readonly args?: readonly string[];
    readonly prepare?: (m: Machine) => void;
  },
  check: (ran: Ended, m: Machine, server: MessagesServer) => Promise<void> | void,
): Promise<void> {
  await withMachine(async (m) => {
    options.prepare?.(m);
    await withMessagesServer(plan, async (server) => {
      const policy = policyFor(m, server.url, options.model, options.policy);
      const ran = await m.writ(["run", "--policy", policy, ...options.args ?? ["go"]], { env: withKey });
      await check(ran, m, server);
      assertEquals(leaksOf(m, ran), []);
    });
  });
}

/** Where the key stands that should stand nowhere. */
function leaksOf(m: Machine, ran: Ended): readonly string[] {
  const state = join(m.top, "state");
  const files = existsSync(state)
    ? readdirSync(state, { recursive: true, withFileTypes: true }).filter((f) => f.isFile()).map((f) =>
      join(f.parentPath, f.name)
    )
    : [];
  const leaks = files.filter((file) => readFileSync(file, "latin1").includes(key));
  if (ran.stdout.includes(key)) leaks.push("stdout");
  if (ran.stderr.includes(key)) leaks.push("stderr");
  return leaks;
}

const read = (path: string, id = "toolu_1") => ({ tool: "read_file", input: { path }, id });
const answer: PlannedResponse = { blocks: [{ text: "It holds two lines.", pieces: 4 }] };

type Body = {
  readonly system: readonly { readonly text: string }[];
  readonly tools: readonly { readonly name: string }[];
  readonly messages: readonly { readonly role: string; readonly content: readonly Block[] }[];
};
type Block = {
  readonly type: string;
  readonly text?: string;
  readonly tool_use_id?: string;
  readonly content?: string;
  readonly is_error?: boolean;
};
const bodyOf = (server: MessagesServer, index: number): Body =>
  JSON.parse(server.requests[index]?.body ?? "null");
const systemOf = (server: MessagesServer, index: number) =>
  bodyOf(server, index).system.map((b) => b.text).join("\n");
const conversationOf = (server: MessagesServer, index: number) =>
  bodyOf(server, index).messages.flatMap((m) => m.content.map((b) => b.text ?? b.content ?? "")).join("\n");

/** The bytes of a request that the next one of the same turn begins with: all but its end and the marks for the cache. */
function stableBytes(server: MessagesServer, index: number): string {
  const body = (server.requests[index]?.body ?? "").replaceAll(',"cache_control":{"type":"ephemeral"}', "");
  assert(body.endsWith("]}]}"), body.slice(-80));
  return body.slice(0, -2);
}

describe("a run with a model", () => {
  test("streams, calls tools and answers; each request begins with the bytes of the one before", async () => {
    const plan: Plan = [
      { blocks: [{ text: "Let me look." }, read("src/a.txt", "toolu_1")], chunk: 7 },
      {
        blocks: [
          { thinking: "Two files …", signature: "c2lnbmVk" },
          read("src/a.txt", "toolu_2"),
          read("src/none.txt", "toolu_3"),
          { tool: "load_skill", input: { name: "explain-code", arguments: "src/a.txt" }, id: "toolu_4" },
        ],
        chunk: 64,
      },
      { blocks: [{ tool: "git_diff", input: {}, id: "toolu_5" }] },
      answer,
    ];
    await runAgainst(plan, {}, async (ran, m, server) => {
      assertEquals([ran.code, ran.stdout], [0, "It holds two lines.\n"], ran.stderr);
      const events = await soundLog(m);
      assertEquals(
        eventsOf(events, "model.delta").map((e) => e.data.text).join("|"),
        "Let me look.|It holds two lines.",
      );
      assertEquals(eventsOf(events, "turn.completed")[0]?.data.usage, {
        input: 40,
        output: 80,
        cacheRead: 0,
        cacheWrite: 0,
      });
      for (let i = 1; i < server.requests.length; i++) {
        const [before, now] = [stableBytes(server, i - 1), stableBytes(server, i)];
        assertEquals(now.slice(0, before.length), before, `request ${i + 1}`);
      }
      const results = bodyOf(server, 2).messages.at(-1)?.content.filter((b) => b.type === "tool_result") ??
        [];
      assertEquals(results.map((b) => [b.tool_use_id, b.is_error === true]), [
        ["toolu_2", false],
        ["toolu_3", true],
        ["toolu_4", false],
      ]);
      // Blocks that Writ does not read go back as they came.
      assertStringIncludes(
        server.requests[2]?.body ?? "",
        '{"type":"thinking","thinking":"Two files …","signature":"c2lnbmVk"}',
      );
      assertEquals(
        new Set(server.requests.map((r) => `${r.method} ${r.path}`)),
        new Set(["POST /v1/messages"]),
      );
    });
  });

  test("a skill's text is in the next request and nowhere before", async () => {
    const secretWord = "walk the whole diff";
    await runAgainst(
      [
        { blocks: [{ tool: "load_skill", input: { name: "walker" }, id: "toolu_1" }] },
        answer,
      ],
      {
        prepare: (m) =>
          m.write(
            "config/writ/skills/walker/SKILL.md",
            `---\nname: walker\ndescription: Walks.\n---\nFirst ${secretWord}.\n`,
          ),
      },
      (ran, m, server) => {
        assertEquals(ran.code, 0, ran.stderr);
        assertStringIncludes(systemOf(server, 0), "walker");
        const bodies = server.requests.map((r) => r.body.includes(secretWord));
        assertEquals(bodies, [false, true]);
        assertStringIncludes(conversationOf(server, 1), secretWord);
        assertEquals(m.ids().length, 1);
      },
    );
  });

  test("a forced skill stands in the system text of every request, also after a resume", async () => {
    await withMachine(async (m) => {
      m.write(
        "config/writ/skills/house/SKILL.md",
        "---\nname: house\ndescription: Rules.\n---\nNever touch the lock file.\n",
      );
      await withMessagesServer(() => answer, async (server) => {
        const policy = policyFor(
          m,
          server.url,
          "",
          "skills: {forced: [{skill: house, when: session}]}\n",
        );
        for (const more of [[], ["--continue"], ["--continue"]]) {
          const ran = await m.writ(["run", "--policy", policy, ...more, "go"], { env: withKey });
          assertEquals(ran.code, 0, ran.stderr);
        }
        const systems = server.requests.map((_, i) => systemOf(server, i));
        assertEquals(systems.map((s) => s.split("Never touch the lock file.").length - 1), [1, 1, 1]);
        assertEquals(systems[1], systems[0]);
        assertEquals(conversationOf(server, 2).includes("Never touch the lock file."), false);
      });
      await soundLog(m);
    });
  });

  test("after a cancel every call that was sent has its result in the next request", async () => {
    await withMachine(async (m) => {
      m.write("repo/work.sh", "touch ready\nsleep 1000\n");
      const plan: Plan = [
        {
          blocks: [
            { tool: "shell", input: { command: "bash work.sh", timeout: 600 }, id: "toolu_1" },
            read("src/a.txt", "toolu_2"),
          ],
        },
        answer,
      ];
      await withMessagesServer(plan, async (server) => {
        const policy = policyFor(
          m,
          server.url,
          "",
          'sandbox: {mode: "off"}\npermissions: {allow: ["shell(bash work.sh)"]}\n',
        );
        const running = m.start(["run", "--policy", policy, "go"], { env: withKey });
        await eventually(() => existsSync(join(m.repo, "ready")));
        running.kill("SIGINT");
        assertEquals((await running.ended).code, 130);
        const back = await m.writ(["run", "--policy", policy, "--continue", "and?"], { env: withKey });
        assertEquals(back.code, 0, back.stderr);
        const results = bodyOf(server, 1).messages.flatMap((msg) =>
          msg.content.filter((b) => b.type === "tool_result").map((
            b,
          ) => [msg.role, b.tool_use_id, b.is_error])
        );
        assertEquals(results, [["user", "toolu_1", true], ["user", "toolu_2", true]]);
      });
      await soundLog(m);
    });
  });
});

describe("instruction files", () => {
  const lay = (m: Machine) => {
    m.write("outside.md", "words from outside\n");
    m.write("repo/AGENTS.md", "words of the root\r\n");
    m.write("repo/src/AGENTS.md", "\ufeffwords of src\n");
    m.write("repo/src/deep/AGENTS.md", `words of deep ${"long ".repeat(20_000)}the end\n`);
    m.write("repo/other/AGENTS.md", "words of other\n");
    m.write("repo/src/deep/a.txt", "");
  };
  const words = (text: string) =>
    ["the root", "src", "deep", "other", "outside"].filter((w) =>
      text.includes(`words of ${w}`) || text.includes(`words from ${w}`)
    );

  test("of a trusted workspace stand in the system text, from the root down to the current folder, capped", async () => {
    await runAgainst(
      [answer],
      { args: ["-C", "src/deep", "--trust", "go"], prepare: lay },
      async (ran, m, server) => {
        assertEquals(ran.code, 0, ran.stderr);
        const system = systemOf(server, 0);
        assertEquals(words(system), ["the root", "src", "deep"]);
        const order = ["the root", "src", "deep"].map((w) => system.indexOf(`words of ${w}`));
        assertEquals(order.toSorted((a, b) => a - b), order);
        const leftOut = "words of deep ".length + 5 * 20_000 + "the end\n".length - 32 * 1024;
        const shown = leftOut.toLocaleString("en-US");
        assertEquals(
          [
            system.includes("the end"),
            system.includes(`[… ${shown} bytes more of this file were not read …]`),
          ],
          [false, true],
        );
        assertStringIncludes(
          ran.stderr,
          `\`src/deep/AGENTS.md\` is too long: the model is not shown the last ${shown} bytes`,
        );
        const [built] = eventsOf(await soundLog(m), "context.built");
        assertEquals(built?.data.sources.instructions, [
          "AGENTS.md",
          "src/AGENTS.md",
          "src/deep/AGENTS.md",
        ]);
        assertEquals([built?.data.truncated, Object.keys(built?.data.cut ?? {})], [true, ["instructions"]]);
      },
    );
  });

  test("of a workspace that nobody trusts are left out, with a notice", async () => {
    for (const args of [["go"], ["--untrusted", "go"]]) {
      await runAgainst([answer], { args, prepare: lay }, (ran, _, server) => {
        assertEquals(ran.code, 0, ran.stderr);
        assertEquals(words(server.requests[0]?.body ?? ""), []);
        assertStringIncludes(ran.stderr, "note: the workspace is not trusted; left out: AGENTS.md");
      });
    }
  });

  const odd: readonly (readonly [string, (m: Machine) => void])[] = [
    ["a link that leads out", (m) => symlinkSync("../outside.md", join(m.repo, "AGENTS.md"))],
    ["a link that leads nowhere", (m) => symlinkSync("gone.md", join(m.repo, "AGENTS.md"))],
    ["a pipe", (m) => void execFileSync("mkfifo", [join(m.repo, "AGENTS.md")])],
    ["a folder", (m) => void mkdirSync(join(m.repo, "AGENTS.md"))],
    ["an empty file", (m) => void m.write("repo/AGENTS.md", " \n")],
  ];
  for (const [name, make] of odd) {
    test(`that are ${name} are passed over`, async () => {
      await runAgainst([answer], {
        args: ["--trust", "go"],
        prepare: (m) => {
          m.write("outside.md", "words from outside\n");
          make(m);
        },
      }, async (ran, m, server) => {
        assertEquals([ran.code, words(server.requests[0]?.body ?? "")], [0, []], ran.stderr);
        assertEquals(eventsOf(await soundLog(m), "context.built").map((e) => e.data.sources.instructions), [
          [],
        ]);
      });
    });
  }
});

describe("what a provider does wrong and a run survives", () => {
  const called: PlannedResponse = {
    blocks: [{ text: "Writing." }, {
      tool: "write_file",
      input: { path: "b.txt", content: "x" },
      id: "toolu_1",
    }],
  };
  const cases: readonly (readonly [string, PlannedResponse, string])[] = [
    ["529 with retry-after", {
      status: 529,
      headers: { "retry-after": "1" },
      body: { type: "error", error: { type: "overloaded_error", message: "busy" } },
    }, "overloaded"],
    [
      "429 with retry-after-ms",
      { status: 429, headers: { "retry-after-ms": "20" }, body: "slow down" },
      "rate_limited",
    ],
    ["500", { status: 500, headers: { "retry-after-ms": "5" }, body: "oops" }, "server_error"],
    ["a stream that is cut within a tool call", { ...called, cutAt: 900 }, "stream_cut"],
    ["a stream that is cut by a reset", { ...called, cutAt: 900, cutBy: "reset" }, "stream_cut"],
    ["a stream that stalls within a tool call", { ...called, stallAt: 900 }, "stream_stalled"],
    ["an answer that never begins", { stallAt: -1 }, "timeout"],
    ["a connection that is closed before the answer", { cutAt: -1 }, "unreachable"],
    ["an error event within the stream", {
      ...called,
      error: { after: 1, type: "overloaded_error", message: "busy" },
    }, "overloaded_error"],
  ];
  for (const [name, fault, code] of cases) {
    test(name, async () => {
      await runAgainst([fault, called, answer], {
        model: fault.stallAt === undefined ? "" : ", idle_timeout: 2s, timeout: 6s",
        policy: "permissions: {allow: [write_file]}\n",
      }, async (ran, m, server) => {
        assertEquals([ran.code, ran.stdout], [0, "It holds two lines.\n"], ran.stderr);
        assertStringIncludes(ran.stderr, code);
        assertEquals(server.requests[1]?.body, server.requests[0]?.body);
        assertEquals(server.requests.length, 3);
        const events = await soundLog(m);
        const failed = eventsOf(events, "model.failed").map((e) => [e.data.attempt, e.data.code]);
        assertEquals(failed, [[1, code]]);
        assertEquals(eventsOf(events, "tool.started").map((e) => e.data.tool), ["write_file"]);
        const wait = fault.headers?.["retry-after"];
        if (wait !== undefined) {
          assertEquals(eventsOf(events, "model.failed")[0]?.data.retryInMs, Number(wait) * 1000);
        }
      });
    });
  }

  test("wherever a stream is cut, nothing of it is used", async () => {
    await withMachine(async (m) => {
      const whole = 1500;
      const cuts = Array.from({ length: 25 }, (_, i) => 60 * i).filter((at) => at < whole);
      // Every request of a turn is answered by a cut stream first.
      const plan: Plan = (_, index) =>
        index < cuts.length
          ? { ...called, cutAt: cuts[index] ?? 0 }
          : index === cuts.length
          ? called
          : answer;
      await withMessagesServer(plan, async (server) => {
        const policy = policyFor(
          m,
          server.url,
          ", retries: 0",
          "permissions: {allow: [write_file]}\n",
        );
        for (const at of cuts) {
          const ran = await m.writ(["run", "--policy", policy, "--json", "go"], { env: withKey });
          const { exit, reason, result } = JSON.parse(ran.stdout);
          assertEquals([at, exit, reason, result], [at, 3, "provider_error", ""]);
          assertEquals(eventsOf(await soundLog(m), "model.completed"), []);
        }
        assert(!existsSync(join(m.repo, "b.txt")));
        const ran = await m.writ(["run", "--policy", policy, "go"], { env: withKey });
        assertEquals([ran.code, readFileSync(join(m.repo, "b.txt"), "utf8")], [0, "x"], ran.stderr);
      });
    });
  });

  test("calls that are malformed, unknown or do not fit are answered, and the run goes on", async () => {
    const odd: PlannedResponse = {
      blocks: [
        { tool: "read_file", input: '{"path": "src/a', id: "toolu_1" },
        { tool: "read_file", input: '["src/a.txt"]', id: "toolu_2" },
        { tool: "read_file", input: { path: 7 }, id: "toolu_3" },
        { tool: "no_such_tool", input: {}, id: "toolu_4" },
        { tool: "read_file", input: { path: "src/a.txt" }, id: "toolu_5" },
      ],
    };
    await runAgainst([odd, answer], {}, async (ran, m, server) => {
      assertEquals([ran.code, ran.stdout], [0, "It holds two lines.\n"], ran.stderr);
      const results = eventsOf(await soundLog(m), "tool.completed").map((
        e,
      ) => [e.data.call, e.data.code ?? "ok"]);
      assertEquals(results, [
        ["toolu_1", "invalid_arguments"],
        ["toolu_2", "invalid_arguments"],
        ["toolu_3", "invalid_arguments"],
        ["toolu_4", "unknown_tool"],
        ["toolu_5", "ok"],
      ]);
      const sent = bodyOf(server, 1).messages.at(-1)?.content.filter((b) => b.type === "tool_result") ?? [];
      assertEquals(sent.map((b) => b.tool_use_id), results.map(([id]) => id));
    });
  });

  test("a reply without a word is an empty answer", async () => {
    await runAgainst([{ blocks: [] }], {}, async (ran, m) => {
      assertEquals([ran.code, ran.stdout], [0, ""], ran.stderr);
      await soundLog(m);
    });
  });

  test("a tool call that max_tokens cut off never runs, the model is told", async () => {
    const cutCall: PlannedResponse = {
      blocks: [
        read("src/a.txt", "toolu_1"),
        { tool: "write_file", input: { path: "b.txt", content: "whole to look at" }, id: "toolu_2" },
      ],
      stop: "max_tokens",
    };
    await runAgainst(
      [cutCall, answer],
      { policy: "permissions: {allow: [write_file]}\n" },
      async (ran, m, server) => {
        assertEquals(ran.code, 0, ran.stderr);
        assert(!existsSync(join(m.repo, "b.txt")));
        const events = await soundLog(m);
        assertEquals(eventsOf(events, "tool.started").map((e) => e.data.call), ["toolu_1"]);
        assertEquals(eventsOf(events, "tool.completed").map((e) => [e.data.call, e.data.code]), [
          ["toolu_1", undefined],
          ["toolu_2", "cut_call"],
        ]);
        assertStringIncludes(conversationOf(server, 1), "it was not run");
      },
    );
  });
});

describe("what a provider does wrong and a run ends for", () => {
  const error = (type: string, message: string) => ({ type: "error", error: { type, message } });
  const cases: readonly {
    readonly name: string;
    readonly response: PlannedResponse;
    readonly code: number;
    readonly says: readonly string[];
    readonly requests?: number;
  }[] = [
    {
      name: "a wrong key (401)",
      response: { status: 401, body: error("authentication_error", `invalid key ${key}`) },
      code: 3,
      says: ["authentication", "401", "check the key in the environment variable `ANTHROPIC_API_KEY`"],
    },
    {
      name: "a key that may not (403)",
      response: { status: 403, body: error("permission_error", "not yours") },
      code: 3,
      says: ["permission", "403", "`ANTHROPIC_API_KEY`"],
    },
    {
      name: "an unknown model (404)",
      response: { status: 404, body: error("not_found_error", "model: test-model") },
      code: 3,
      says: ["model_not_found", "check `model.name` (now `test-model`)"],
    },
    {
      name: "a request that is refused (400)",
      response: { status: 400, body: error("invalid_request_error", "max_tokens: too large") },
      code: 3,
      says: ["invalid_request", "max_tokens: too large"],
    },
    {
      name: "a full context (400)",
      response: {
        status: 400,
        body: error("invalid_request_error", "prompt is too long: 210000 tokens > 200000"),
      },
      code: 4,
      says: ["context_tokens", "start a new session, or raise model.context_tokens"],
    },
    {
      name: "a request that is too large (413)",
      response: { status: 413, body: error("request_too_large", "too large") },
      code: 4,
      says: ["context_tokens"],
    },
    {
      name: "a redirect",
      response: { status: 307, headers: { location: "http://127.0.0.1:1/v1/messages" }, body: "" },
      code: 3,
      says: ["redirected", "would carry the key elsewhere"],
    },
    {
      name: "a page in place of a stream",
      response: { status: 200, headers: { "content-type": "text/html" }, body: "<html>" },
      code: 3,
      says: ["not_a_stream", "text/html"],
    },
    {
      name: "529 for ever",
      response: { status: 529, headers: { "retry-after-ms": "1" }, body: "busy" },
      code: 3,
      says: ["overloaded", "529"],
      requests: 3,
    },
  ];
  for (const { name, response, code, says, requests = 1 } of cases) {
    test(name, async () => {
      await runAgainst(() => response, { model: ", retries: 2" }, async (ran, m, server) => {
        assertEquals([ran.code, ran.stdout], [code, ""], ran.stderr);
        for (const text of says) assertStringIncludes(ran.stderr, text);
        assertEquals(/^\s+at /m.test(ran.stderr), false, ran.stderr);
        assertEquals(server.requests.length, requests);
        const events = await soundLog(m);
        assertEquals(eventsOf(events, "turn.completed").map((e) => e.data.stopReason), [
          code === 4 ? "limit" : "provider_error",
        ]);
        assertEquals(
          eventsOf(events, "limit.reached").map((e) => e.data.limit),
          code === 4 ? ["context_tokens"] : [],
        );
      });
    });
  }

  for (
    const [name, env] of [["no key", {}], ["an empty key", { ANTHROPIC_API_KEY: "" }], [
      "a key of several lines",
      { ANTHROPIC_API_KEY: "one\ntwo" },
    ]] as const
  ) {
    test(`${name} names the variable, and nothing is sent`, async () => {
      await withMachine(async (m) => {
        await withMessagesServer([], async (server) => {
          const ran = await m.writ(["run", "--policy", policyFor(m, server.url), "go"], { env });
          assertEquals([ran.code, ran.stdout, server.requests.length], [3, "", 0]);
          assertStringIncludes(
            ran.stderr,
            "no key for the model: the environment variable `ANTHROPIC_API_KEY`",
          );
          assertStringIncludes(ran.stderr, "hint: ");
          assertEquals(eventsOf(await soundLog(m), "turn.completed").map((e) => e.data.stopReason), [
            "provider_error",
          ]);
        });
      });
    });
  }

  test("an endpoint that nobody listens at", async () => {
    await withMachine(async (m) => {
      const url = `http://127.0.0.1:${await closedPort()}`;
      const policy = policyFor(m, url, ", retries: 1");
      const ran = await m.writ(["run", "--policy", policy, "go"], { env: withKey });
      assertEquals([ran.code, ran.stdout], [3, ""], ran.stderr);
      assertStringIncludes(ran.stderr, `\`${url}\` could not be reached: the connection was refused`);
      assertStringIncludes(ran.stderr, "hint: check `model.base_url`");
      assertEquals(eventsOf(await soundLog(m), "model.failed").length, 2);
      assertEquals(leaksOf(m, ran), []);
    });
  });

  test("a name that cannot be resolved", async () => {
    await withMachine(async (m) => {
      const policy = policyFor(m, "http://no-such-host.invalid", ", retries: 0");
      const ran = await m.writ(["run", "--policy", policy, "go"], { env: withKey });
      assertEquals([ran.code, ran.stdout], [3, ""], ran.stderr);
      assertStringIncludes(ran.stderr, "could not be reached");
      await soundLog(m);
    });
  });

  test("a context that is full before anything is sent", async () => {
    await runAgainst([answer], {
      model: ", context_tokens: 2000, max_output_tokens: 1000",
      args: ["x ".repeat(4000)],
    }, async (ran, m, server) => {
      assertEquals([ran.code, server.requests.length], [4, 0], ran.stderr);
      assertStringIncludes(ran.stderr, "limit `context_tokens` reached");
      await soundLog(m);
    });
  });
});

describe("the key", () => {
  test("goes to the provider and to nobody else", async () => {
    const plan: Plan = [
      {
        blocks: [
          { tool: "shell", input: { command: "env; cat key.txt" }, id: "toolu_1" },
          read("key.txt", "toolu_2"),
        ],
      },
      { blocks: [{ text: `The key is ${key}.` }] },
    ];
    await runAgainst(plan, {
      policy: 'sandbox: {mode: "off"}\npermissions: {allow: ["shell(env)", "shell(cat key.txt)"]}\n',
      args: [`My key is ${key}, is it in key.txt?`],
      prepare: (m) => m.write("repo/key.txt", `${key}\n`),
    }, async (ran, m, server) => {
      assertEquals(ran.code, 0, ran.stderr);
      assertEquals(ran.stdout, "The key is [redacted:ANTHROPIC_API_KEY].\n");
      assertEquals(server.requests.filter((r) => r.body.includes(key)), []);
      const sent = server.requests.map((r) =>
        r.headers.filter(([, value]) => value.includes(key)).map(([n]) => n)
      );
      assertEquals(sent, [["authorization"], ["authorization"]]);
      const [shell] = eventsOf(await soundLog(m), "tool.completed");
      assertEquals(/^ANTHROPIC_API_KEY=/m.test(shell?.data.result ?? ""), false, shell?.data.result);
    });
  });

  test("of a file or a command is as secret as one of the environment", async () => {
    for (const source of ["{file: KEYFILE}", '{command: [/bin/cat, "KEYFILE"]}']) {
      await withMachine(async (m) => {
        const file = m.write("key.txt", `${key}\n`);
        await withMessagesServer([{ blocks: [{ text: `It is ${key}.` }] }], async (server) => {
          const policy = policyFor(m, server.url, `, api_key: ${source.replace("KEYFILE", file)}`);
          const ran = await m.writ(["run", "--policy", policy, "go"]);
          assertEquals([ran.code, ran.stdout], [0, "It is [redacted:key].\n"], ran.stderr);
          assertEquals(leaksOf(m, ran), []);
          await soundLog(m);
        });
      });
    }
  });

  test("that the model itself says slowly is not told apart by what is recorded at a time", async () => {
    const slow: PlannedResponse = {
      blocks: [{ text: `The key is ${key}, or so I think.`, pieces: 12 }],
      chunk: 100,
      dripMs: 50,
    };
    await runAgainst([slow], {}, async (ran, m) => {
      const said = "The key is [redacted:ANTHROPIC_API_KEY], or so I think.";
      assertEquals([ran.code, ran.stdout], [0, `${said}\n`], ran.stderr);
      const deltas = eventsOf(await soundLog(m), "model.delta").map((e) => e.data.text);
      assertEquals(deltas.join(""), said);
    });
  });

  test("and other secrets in instruction files and skills do not reach the model", async () => {
    const token = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB";
    await runAgainst([answer], {
      args: ["--trust", "/skill talker"],
      prepare: (m) => {
        m.write("repo/AGENTS.md", `Work with ${key} and ${token}.\n`);
        m.write(
          "config/writ/skills/talker/SKILL.md",
          `---\nname: talker\ndescription: Talks of ${token}.\n---\nSay ${token}.\n`,
        );
      },
    }, (ran, _, server) => {
      assertEquals(ran.code, 0, ran.stderr);
      const { body } = server.requests[0] ?? { body: "" };
      assertStringIncludes(body, "Work with [redacted:ANTHROPIC_API_KEY] and [redacted:github-token].");
      assertEquals([body.includes(token), body.includes(key)], [false, false]);
    });
  });

  test("nothing ambient changes where it goes", async () => {
    await withMessagesServer([], async (elsewhere) => {
      await withMachine(async (m) => {
        await withMessagesServer([answer], async (server) => {
          const ran = await m.writ(["run", "--policy", policyFor(m, server.url), "go"], {
            env: {
              ...withKey,
              ANTHROPIC_BASE_URL: elsewhere.url,
              ANTHROPIC_AUTH_TOKEN: "another",
              ANTHROPIC_CUSTOM_HEADERS: "x-mine: 1",
            },
          });
          assertEquals([ran.code, ran.stdout], [0, "It holds two lines.\n"], ran.stderr);
          const headers = server.requests[0]?.headers ?? [];
          assertEquals(headers.filter(([name]) => name === "authorization" || name === "x-mine"), [[
            "authorization",
            `Bearer ${key}`,
          ]]);
        });
      });
      assertEquals(elsewhere.requests, []);
    });
  });
});

async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}
