// What the executable sends over a long session: bytes that stay, and what survives when the conversation is compacted.
import { describe, test } from "bun:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { eventsOf, type Machine, soundLog, withMachine } from "../support/machine.ts";
import {
  type MessagesServer,
  type PlannedBlock,
  type PlannedResponse,
  type RecordedRequest,
  withMessagesServer,
} from "../support/messages_server.ts";

const key = { ANTHROPIC_API_KEY: "sk-test-4f5a6b7c8d9e0f1a" };
const mark = /,"cache_control":\{"type":"ephemeral"\}/g;

type Block = {
  readonly type: string;
  readonly text?: string;
  readonly id?: string;
  readonly tool_use_id?: string;
  readonly content?: string;
};
type Body = {
  readonly system: readonly { readonly text: string }[];
  readonly tools?: readonly { readonly name: string }[];
  readonly messages: readonly { readonly role: string; readonly content: readonly Block[] }[];
};
const parse = (request: RecordedRequest): Body => JSON.parse(request.body);
const isSummary = (request: RecordedRequest) => parse(request).tools === undefined;
/** The server's own measure. */
const count = (request: RecordedRequest) => Math.ceil(new TextEncoder().encode(request.body).length / 4);
const shown = (body: Body) => body.messages.flatMap((m) => m.content.map((b) => b.text ?? b.content ?? ""));

/** Numbers the requests of the conversation, from 0; answers each with what it costs, and summaries by themselves. */
function plan(
  reply: (index: number) => readonly PlannedBlock[],
  summary = "Earlier: files were read.",
): (request: RecordedRequest) => PlannedResponse {
  let index = 0;
  return (request) => ({
    blocks: isSummary(request) ? [{ text: summary }] : reply(index++),
    usage: { input_tokens: count(request) },
  });
}

/** Every call has its result in the message after it, first and in order; roles alternate. */
function checkPairs(body: Body): void {
  body.messages.forEach((message, n) => {
    assertEquals(message.role, n % 2 === 0 ? "user" : "assistant");
    const asked = message.content.flatMap((b) => (b.type === "tool_use" ? [b.id] : []));
    if (message.role === "user") {
      const before = body.messages[n - 1]?.content.filter((b) => b.type === "tool_use") ?? [];
      const results = message.content.filter((b) => b.type === "tool_result");
      assertEquals(results.length, before.length);
      return;
    }
    const given = body.messages[n + 1]?.content.slice(0, asked.length) ?? [];
    assertEquals(given.map((b) => b.tool_use_id), asked);
  });
  assertEquals(body.messages.at(-1)?.role, "user");
}

function lines(word: string, count: number): string {
  return Array.from({ length: count }, (_, i) => `${word} stands on line ${i + 1} of this file\n`).join("");
}

describe("a turn of twenty iterations", () => {
  test("sends, each time, the bytes of the request before and what came since", async () => {
    await withMachine(async (m) => {
      for (let i = 0; i < 20; i++) m.write(`repo/file${i}.txt`, lines(`word${i}`, 20));
      m.write("config/writ/skills/late/SKILL.md", "---\nname: late\ndescription: late\n---\nRead on.\n");
      const reply = (i: number): readonly PlannedBlock[] => {
        if (i === 19) return [{ text: "All read." }];
        if (i === 7) return [{ tool: "load_skill", input: { name: "late" }, id: "toolu_7" }];
        return [{ text: `Now file ${i}.` }, {
          tool: "read_file",
          input: { path: `file${i}.txt` },
          id: `toolu_${i}`,
        }];
      };
      await withMessagesServer(plan(reply), async (server) => {
        const policy = m.write("policy.yaml", `version: 1\nmodel: {name: m, base_url: "${server.url}"}\n`);
        const ran = await m.writ(["run", "--policy", policy, "read all"], { env: key });
        assertEquals([ran.code, ran.stdout], [0, "All read.\n"], ran.stderr);
        assertEquals(server.requests.length, 20);
        const shares = server.requests.slice(1).map((request, i) => {
          const [before, now] = [server.requests[i]?.body ?? "", request.body].map((t) =>
            t.replace(mark, "")
          );
          return commonStart(before!, now!) / before!.length;
        });
        assertEquals(shares.filter((share) => share < 0.99), []);
        for (const request of server.requests) {
          assert((request.body.match(mark)?.length ?? 0) <= 4);
          checkPairs(parse(request));
        }
        const built = eventsOf(await soundLog(m), "context.built");
        assertEquals(built.filter((e) => e.data.truncated), []);
      });
    });
  });
});

function commonStart(a: string, b: string): number {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  return at;
}

// ---- a session that outgrows its context --------------------------------------------------------------------------

const contextTokens = 14_000;
const maxOutput = 2_000;
const room = contextTokens - maxOutput;
const guardBody = 'Look at <every> file & say "so".\nNever hurry.';
const styleBody = "Write short lines.\n\n- no jargon\n- <b>no</b> tags";
const talk = `I have read this one; it is like the others. ${
  "It holds what was expected of it. ".repeat(60)
}`;

function policyOf(m: Machine, server: MessagesServer): string {
  return m.write(
    "policy.yaml",
    `version: 1
model: {name: m, base_url: "${server.url}", context_tokens: ${contextTokens}, max_output_tokens: ${maxOutput}}
limits: {same_call: 50}
skills:
  scope: session
  forced:
    - {skill: guard, when: session}
    - {id: notes, before: ["write_file(notes.md)"], evidence: [git_diff]}
permissions:
  deny: [{id: no-secrets, tool: read_file, path: [secret.txt], reason: "credentials"}]
  allow: ["write_file(notes.md)"]
`,
  );
}

type Prepared = { readonly m: Machine; readonly server: MessagesServer };

/** Turn 1 has 24 iterations, turn 2, in another process, 16. */
function conversation(i: number): readonly PlannedBlock[] {
  const id = `toolu_${i}`;
  switch (i) {
    case 1:
      return [{ tool: "read_file", input: { path: "secret.txt" }, id }];
    case 2:
      return [{ tool: "git_diff", input: {}, id }];
    case 22:
    case 38:
      return [{ tool: "write_file", input: { path: "notes.md", content: `note ${i}\n` }, id }];
    case 23:
    case 39:
      return [{ text: "Done." }];
    default:
      return [
        ...(i === 20 ? [{ thinking: "Let me think.", signature: "c2lnbmVk" }] : []),
        { text: `${i}: ${talk}` },
        { tool: "read_file", input: { path: `file${i % 5}.txt` }, id },
      ];
  }
}

async function session(check: (prepared: Prepared) => Promise<void>): Promise<void> {
  await withMachine(async (m) => {
    for (let i = 0; i < 5; i++) m.write(`repo/file${i}.txt`, lines(`word${i}`, 60));
    m.write("repo/secret.txt", "s\n");
    m.write("repo/src/a.txt", "changed\n");
    m.write("config/writ/skills/guard/SKILL.md", `---\nname: guard\ndescription: d\n---\n${guardBody}\n`);
    m.write(
      "config/writ/skills/style/SKILL.md",
      `---\nname: style\ndescription: d\nallowed_tools: [read_file, git_diff, write_file]\n---\n${styleBody}\n`,
    );
    await withMessagesServer(
      plan(conversation, "Earlier: <files> were read.\n</summary>"),
      async (server) => {
        const policy = policyOf(m, server);
        const first = await m.writ(
          ["run", "--policy", policy, "--skill", "style", "read everything, twice"],
          {
            env: key,
          },
        );
        assertEquals([first.code, first.stdout], [0, "Done.\n"], first.stderr);
        const [id = ""] = m.ids();
        const second = await m.writ(["run", "--policy", policy, "--resume", id, "now the rest"], {
          env: key,
        });
        assertEquals([second.code, second.stdout], [0, "Done.\n"], second.stderr);
        await check({ m, server });
      },
    );
  });
}

describe("a session that is compacted twice and resumed in another process", () => {
  test("keeps within its context and loses nothing that must stay", async () => {
    await session(async ({ m, server }) => {
      const events = await soundLog(m);
      const compactions = eventsOf(events, "context.compacted");
      const summed = compactions.filter((e) => e.data.summary !== "");
      assert(summed.length >= 2, `${summed.length} summaries`);
      assertEquals(new Set(summed.map((e) => e.turn)), new Set([1, 2]));
      for (const { data } of compactions) assert(data.tokensAfter < data.tokensBefore);

      // By the server's own count, also of the requests for summaries.
      assertEquals(server.requests.map(count).filter((n) => n > room), []);

      const asked = server.requests.filter((r) => !isSummary(r)).map(parse);
      assertEquals(asked.length, 40);
      asked.forEach(checkPairs);
      // Compactions in a row are no loop: far fewer than requests.
      assert(compactions.length <= 8, `${compactions.length} compactions`);

      const guard = `<skill name="guard">\nFollow these instructions.\n\n${guardBody}\n</skill>`;
      const style =
        `<skill name="style">\nFollow these instructions.\nAllowed tools: read_file, git_diff, write_file\n\n${styleBody}\n</skill>`;
      for (const body of asked) {
        assertEquals(body.system[0]?.text.split(guard).length, 2);
        assertEquals(shown(body).filter((text) => text === style).length, 1);
      }
      assertEquals(new Set(asked.map((b) => JSON.stringify(b.system[0]?.text))).size, 1);

      // The message that is being worked on.
      const message = (i: number) => (i < 24 ? "read everything, twice" : "now the rest");
      asked.forEach((body, i) => assert(shown(body).includes(message(i)), `request ${i}`));

      // The refusal and its rule, in the words in which it was told first, and what the gate held.
      const denial = eventsOf(events, "tool.completed").find((e) => e.data.code === "denied")?.data.result ??
        "";
      assertStringIncludes(denial, "no-secrets");
      asked.slice(2).forEach((body, i) => {
        assert(shown(body).some((text) => text.includes(denial)), `the refusal, in request ${i + 2}`);
      });
      const last = shown(asked.at(-1)!);
      assert(last.some((text) => text.startsWith("<gates>\n") && text.includes("toolu_2")));

      // Evidence from before a compaction opens the gate; a resume voids it.
      const writes = eventsOf(events, "permission.resolved").filter((e) => e.data.tool === "write_file");
      assertEquals(writes.map((e) => e.data.decision), ["allow", "deny"]);

      const summary = last.filter((text) => text.startsWith("<summary>\n"));
      assertEquals(summary.length, 1);
      assertEquals(summary[0]?.match(/<\/summary>/g)?.length, 1);
      assertStringIncludes(summary[0] ?? "", "not a message of the user");
    });
  });

  test("tells in each context.built what was cut, and counts summaries as use", async () => {
    await session(async ({ m, server }) => {
      const events = await soundLog(m);
      let after = 0;
      for (const event of events) {
        if (event.type === "context.compacted") after += event.data.tokensBefore - event.data.tokensAfter;
        if (event.type !== "context.built") continue;
        assertEquals(
          [event.data.truncated, event.data.cut],
          after > 0 ? [true, { transcript: after }] : [
            false,
            undefined,
          ],
        );
      }
      const used = eventsOf(events, "turn.completed").reduce((sum, e) => sum + e.data.usage.input, 0);
      assertEquals(used, server.requests.map(count).reduce((a, b) => a + b, 0));
      const replies = eventsOf(events, "model.completed");
      assertEquals(replies.length, server.requests.length);
      assertEquals(
        replies.filter((e) => e.data.purpose === "summary").length,
        server.requests.filter(isSummary).length,
      );
    });
  });
});

describe("a provider that finds the request too long", () => {
  const tooLong: PlannedResponse = {
    status: 400,
    body: { type: "error", error: { type: "invalid_request_error", message: "prompt is too long: 9 > 8" } },
  };
  async function refusing(times: number, check: (m: Machine, server: MessagesServer) => Promise<void>) {
    await withMachine(async (m) => {
      for (let i = 0; i < 5; i++) m.write(`repo/file${i}.txt`, lines(`word${i}`, 400));
      let refusals = 0;
      const answers = plan((i) =>
        i < 6
          ? [{ text: talk }, { tool: "read_file", input: { path: `file${i % 5}.txt` }, id: `toolu_${i}` }]
          : [{ text: "Done." }]
      );
      const serve = (request: RecordedRequest) => {
        const long = !isSummary(request) && parse(request).messages.length > 9;
        return long && refusals++ < times ? tooLong : answers(request);
      };
      await withMessagesServer(serve, async (server) => {
        const policy = m.write("policy.yaml", `version: 1\nmodel: {name: m, base_url: "${server.url}"}\n`);
        const ran = await m.writ(["run", "--policy", policy, "read"], { env: key });
        assertEquals(ran.code, times > 5 ? 4 : 0, ran.stderr);
        await check(m, server);
      });
    });
  }

  test("gets it again, compacted", async () => {
    await refusing(1, async (m) => {
      const events = await soundLog(m);
      assertEquals(eventsOf(events, "model.failed").map((e) => e.data.code), ["context_full"]);
      const [compaction] = eventsOf(events, "context.compacted");
      assert((compaction?.data.tokensAfter ?? Infinity) < (compaction?.data.tokensBefore ?? 0));
      assertEquals(eventsOf(events, "turn.completed")[0]?.data.stopReason, "final");
    });
  });

  test("and finds that too long as well, ends the turn by the limit", async () => {
    await withMachine(async (m) => {
      const answers = plan((i) => [{ tool: "list_files", input: {}, id: `toolu_${i}` }]);
      let asked = 0;
      const serve = (request: RecordedRequest) =>
        isSummary(request) || asked++ < 3 ? answers(request) : tooLong;
      await withMessagesServer(serve, async (server) => {
        const policy = m.write(
          "policy.yaml",
          `version: 1\nmodel: {name: m, base_url: "${server.url}"}\nlimits: {same_call: 50}\n`,
        );
        const ran = await m.writ(["run", "--policy", policy, "read"], { env: key });
        assertEquals(ran.code, 4, ran.stderr);
        assertStringIncludes(ran.stderr, "the provider finds the request too long");
        const events = await soundLog(m);
        assertEquals(eventsOf(events, "limit.reached").map((e) => e.data.limit), ["context_tokens"]);
      });
    });
  });
});

describe("a summary", () => {
  const rows: readonly {
    readonly name: string;
    readonly answer: PlannedResponse;
    readonly limits?: string;
    readonly code: number;
    readonly says: string;
    readonly limit: readonly string[];
  }[] = [
    {
      name: "that is empty ends the turn by the limit",
      answer: { blocks: [] },
      code: 4,
      says: "; the model wrote an empty summary",
      limit: ["context_tokens"],
    },
    {
      name: "that only calls a tool is empty, and nothing runs",
      answer: { blocks: [{ tool: "read_file", input: { path: "file0.txt" }, id: "toolu_summary" }] },
      code: 4,
      says: "; the model wrote an empty summary",
      limit: ["context_tokens"],
    },
    {
      name: "that is refused ends the turn by the limit",
      answer: { blocks: [], stop: "refusal" },
      code: 4,
      says: "; the model refused to write a summary",
      limit: ["context_tokens"],
    },
    {
      name: "that is too long ends the turn by the limit, and is asked for once",
      answer: { blocks: [{ text: "so many words ".repeat(4000) }] },
      code: 4,
      says: "; a compaction brings it down to ",
      limit: ["context_tokens"],
    },
    {
      name: "that the provider fails to give ends the turn as any failure does",
      answer: {
        status: 400,
        body: { type: "error", error: { type: "invalid_request_error", message: "no" } },
      },
      code: 3,
      says: "invalid_request",
      limit: [],
    },
    {
      name: "counts for limits.tokens",
      answer: { blocks: [{ text: "Short." }], usage: { input_tokens: 900_000 } },
      limits: ", tokens: 800000",
      code: 4,
      says: "limit `tokens` reached",
      limit: ["tokens"],
    },
    {
      name: "that was cut off says so",
      answer: { blocks: [{ text: "Short" }], stop: "max_tokens" },
      code: 0,
      says: "context compacted: ",
      limit: [],
    },
  ];
  for (const { name, answer, limits = "", code, says, limit } of rows) {
    test(name, async () => {
      await withMachine(async (m) => {
        m.write("repo/file0.txt", "one\n");
        const answers = plan((i) =>
          i < 12
            ? [{ text: talk }, { tool: "read_file", input: { path: "file0.txt" }, id: `toolu_${i}` }]
            : [{ text: "Done." }]
        );
        const serve = (request: RecordedRequest) => (isSummary(request) ? answer : answers(request));
        await withMessagesServer(serve, async (server) => {
          const policy = m.write(
            "policy.yaml",
            `version: 1\nmodel: {name: m, base_url: "${server.url}", context_tokens: 7500, max_output_tokens: 500}\n` +
              `limits: {same_call: 50${limits}}\n`,
          );
          const ran = await m.writ(["run", "--policy", policy, "go"], { env: key });
          assertEquals(ran.code, code, ran.stderr);
          assertStringIncludes(ran.stderr, says);
          const events = await soundLog(m);
          assertEquals(eventsOf(events, "limit.reached").map((e) => e.data.limit), limit);
          if (code !== 0) assertEquals(server.requests.filter(isSummary).length, 1);
          const [compaction] = eventsOf(events, "context.compacted");
          assertEquals(
            compaction?.data.summary,
            code === 0 ? "Short\n[the summary was cut off here]" : undefined,
          );
        });
      });
    });
  }
});

describe("a reply that fills the context", () => {
  for (
    const [name, blocks] of [
      ["with words goes on after a compaction", [{ text: "I was about to" }]],
      ["with calls runs them and goes on", [{
        tool: "read_file",
        input: { path: "file0.txt" },
        id: "toolu_full",
      }]],
    ] as const
  ) {
    test(name, async () => {
      await withMachine(async (m) => {
        m.write("repo/file0.txt", "one\n");
        const answers = plan((i) =>
          i < 8
            ? [{ text: talk + talk + talk }, {
              tool: "read_file",
              input: { path: "file0.txt" },
              id: `toolu_${i}`,
            }]
            : [{ text: "Done." }]
        );
        let asked = 0;
        const serve = (request: RecordedRequest): PlannedResponse =>
          !isSummary(request) && ++asked === 5
            ? { blocks, stop: "model_context_window_exceeded" }
            : answers(request);
        await withMessagesServer(serve, async (server) => {
          const policy = m.write(
            "policy.yaml",
            `version: 1\nmodel: {name: m, base_url: "${server.url}", context_tokens: 30000, max_output_tokens: 500}\n` +
              "limits: {same_call: 50}\n",
          );
          const ran = await m.writ(["run", "--policy", policy, "go"], { env: key });
          assertEquals([ran.code, ran.stdout], [0, "Done.\n"], ran.stderr);
          const events = await soundLog(m);
          assert(eventsOf(events, "context.compacted").length >= 1);
          for (const request of server.requests.filter((r) => !isSummary(r))) checkPairs(parse(request));
        });
      });
    });
  }
});

test("a list of skills that was shortened is told in context.built", async () => {
  await withMachine(async (m) => {
    await withMessagesServer(plan(() => [{ text: "Done." }]), async (server) => {
      const policy = m.write(
        "policy.yaml",
        `version: 1\nmodel: {name: m, base_url: "${server.url}"}\nskills: {listing_tokens: 150}\n`,
      );
      const ran = await m.writ(["run", "--policy", policy, "go"], { env: key });
      assertEquals(ran.code, 0, ran.stderr);
      const [built] = eventsOf(await soundLog(m), "context.built");
      assertEquals([built?.data.truncated, Object.keys(built?.data.cut ?? {})], [true, ["catalog"]]);
      assert((built?.data.tokens.catalog ?? 0) <= 150 && (built?.data.cut?.catalog ?? 0) > 0);
    });
  });
});
