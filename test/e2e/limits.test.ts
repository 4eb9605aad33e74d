// Every limit of a policy through the executable: looked at before the next request, recorded, exit code 4, the usage kept.
import { describe, test } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { eventsOf, soundLog, withMachine } from "../support/machine.ts";
import { type PlannedResponse, withMessagesServer } from "../support/messages_server.ts";

const read = (id: string, path = "src/a.txt"): PlannedResponse => ({
  blocks: [{ tool: "read_file", input: { path }, id }],
});
const two: PlannedResponse = {
  blocks: [
    { tool: "list_files", input: {}, id: "toolu_a" },
    { tool: "read_file", input: { path: "src/a.txt" }, id: "toolu_b" },
    { tool: "search_text", input: { pattern: "one" }, id: "toolu_c" },
  ],
};
const answer: PlannedResponse = { blocks: [{ text: "done" }] };
const prices = ", prices: {input: 1000, output: 10000, cache_read: 0, cache_write: 0}";

type Row = {
  readonly name: string;
  readonly limits: string;
  readonly model?: string;
  /** Before the last, which must not be asked for. */
  readonly replies: readonly PlannedResponse[];
  readonly reached: { readonly limit: string; readonly value: number; readonly cap: number };
  /** Results of calls, and whether each was carried out. */
  readonly results: readonly boolean[];
  /** Of its text, what the run gives back. */
  readonly usage: { readonly input: number; readonly output: number; readonly cacheRead: number };
  readonly project?: string;
};

// Each reply of the server costs 10 tokens in and 20 out, unless it says otherwise.
const rows: readonly Row[] = [
  {
    name: "iterations",
    limits: "{iterations: 2}",
    replies: [read("toolu_1"), read("toolu_2", "src")],
    reached: { limit: "iterations", value: 3, cap: 2 },
    results: [true, false],
    usage: { input: 20, output: 40, cacheRead: 0 },
  },
  {
    name: "tool_calls, within one reply",
    limits: "{tool_calls: 2}",
    replies: [two],
    reached: { limit: "tool_calls", value: 3, cap: 2 },
    results: [true, true, false],
    usage: { input: 10, output: 20, cacheRead: 0 },
  },
  {
    name: "same_call",
    limits: "{same_call: 2}",
    replies: [read("toolu_1"), read("toolu_2")],
    reached: { limit: "same_call", value: 2, cap: 2 },
    results: [true, true],
    usage: { input: 20, output: 40, cacheRead: 0 },
  },
  {
    name: "tokens",
    limits: "{tokens: 50}",
    replies: [read("toolu_1"), read("toolu_2", "src")],
    reached: { limit: "tokens", value: 60, cap: 50 },
    results: [true, false],
    usage: { input: 20, output: 40, cacheRead: 0 },
  },
  {
    name: "tokens, of which a cache's count a tenth",
    limits: "{tokens: 130}",
    replies: [{
      ...read("toolu_1"),
      usage: { input_tokens: 10, cache_read_input_tokens: 1001, cache_creation_input_tokens: 0 },
    }],
    reached: { limit: "tokens", value: 131, cap: 130 },
    results: [false],
    usage: { input: 10, output: 20, cacheRead: 1001 },
  },
  {
    name: "cost_usd",
    limits: "{cost_usd: 0.4}",
    model: prices,
    replies: [read("toolu_1"), read("toolu_2", "src")],
    reached: { limit: "cost_usd", value: 0.42, cap: 0.4 },
    results: [true, false],
    usage: { input: 20, output: 40, cacheRead: 0 },
  },
  {
    name: "wall_time, while the model is silent",
    limits: "{wall_time: 1s}",
    replies: [read("toolu_1"), { stallAt: -1 }],
    reached: { limit: "wall_time", value: 1000, cap: 1000 },
    results: [true],
    usage: { input: 10, output: 20, cacheRead: 0 },
  },
  {
    name: "the lower of two layers",
    limits: "{iterations: 5}",
    project: "{iterations: 1}",
    replies: [read("toolu_1")],
    reached: { limit: "iterations", value: 2, cap: 1 },
    results: [true],
    usage: { input: 10, output: 20, cacheRead: 0 },
  },
  {
    name: "that a project cannot raise",
    limits: "{iterations: 1}",
    project: "{iterations: 50}",
    replies: [read("toolu_1")],
    reached: { limit: "iterations", value: 2, cap: 1 },
    results: [true],
    usage: { input: 10, output: 20, cacheRead: 0 },
  },
];

describe("a limit", () => {
  for (const row of rows) {
    test(row.name, async () => {
      await withMachine(async (m) => {
        await withMessagesServer([...row.replies, answer], async (server) => {
          const policy = m.write(
            "policy.yaml",
            `version: 1\nmodel: {name: m, base_url: "${server.url}", retries: 0${
              row.model ?? ""
            }}\nlimits: ${row.limits}\n`,
          );
          if (row.project !== undefined) {
            m.write("repo/.writ/policy.yaml", `version: 1\nlimits: ${row.project}\n`);
          }
          const ran = await m.writ(["run", "--policy", policy, "--trust", "--json", "go"], {
            env: { ANTHROPIC_API_KEY: "key-12345678" },
          });
          const result = JSON.parse(ran.stdout);
          assertEquals([ran.code, result.exit, result.reason], [4, 4, "limit"], ran.stdout);
          assertStringIncludes(JSON.stringify(result), row.reached.limit);
          assertEquals(server.requests.length, row.replies.length);
          const events = await soundLog(m);
          assertEquals(eventsOf(events, "limit.reached").map((e) => e.data), [row.reached]);
          const results = events.flatMap((e) =>
            e.type === "tool.completed" ? [e.data.ok] : e.type === "tool.interrupted" ? [false] : []
          );
          assertEquals(results, row.results);
          const [end] = eventsOf(events, "turn.completed");
          assertEquals(end?.data.stopReason, "limit");
          const { cacheWrite: _, ...usage } = end?.data.usage ?? { cacheWrite: 0 };
          assertEquals(usage, row.usage);
        });
      });
    });
  }

  test("of tokens and of costs is one of the session: a resume does not begin anew", async () => {
    await withMachine(async (m) => {
      await withMessagesServer([answer, answer, answer], async (server) => {
        const policy = m.write(
          "policy.yaml",
          `version: 1\nmodel: {name: m, base_url: "${server.url}"${prices}}\nlimits: {tokens: 45, cost_usd: 9}\n`,
        );
        const env = { ANTHROPIC_API_KEY: "key-12345678" };
        assertEquals((await m.writ(["run", "--policy", policy, "one"], { env })).code, 0);
        assertEquals((await m.writ(["run", "--policy", policy, "--continue", "two"], { env })).code, 4);
        assertEquals((await m.writ(["run", "--policy", policy, "--continue", "three"], { env })).code, 4);
        // Used up in the second turn, so that the third asks for nothing.
        assertEquals(server.requests.length, 2);
        assertEquals(readFileSync(join(m.repo, "src/a.txt"), "utf8"), "one\ntwo\n");
      });
    });
  });
});
