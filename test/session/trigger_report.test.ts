import { afterEach, beforeEach, test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { loadCatalog, type LoadedCatalog } from "../../src/session/catalog.ts";
import type { Settings } from "../../src/session/settings.ts";
import { freshView } from "../../src/session/skill_list.ts";
import { askSkills } from "../../src/session/skill_words.ts";
import { reportLines, triggerReport } from "../../src/session/trigger_report.ts";
import { makeSite, openLive, says, type Site, skillText } from "../support/skill_session.ts";

const policy = `version: 1
model: {provider: script}
tools: {enabled: [read_file, list_files, shell, write_file, fetch_url]}
sandbox: {mode: "off"}
skills:
  sources: [user]
  active_tokens: 2000
  forced:
    - {skill: always, when: session}
    - {skill: guard, before: ["shell(git merge *)", write_file], evidence: [list_files]}
  triggers:
    review: {patterns: ["ready to merge"]}
    off: {patterns: ["merge"]}
  disabled: ["off*"]
`;
const folder = "home/.config/writ/skills";
const bound = "allowed-tools: Read, Bash(git log:*)\n";
let site: Site;
beforeEach(() => {
  site = makeSite(policy);
  site.put(`${folder}/always/SKILL.md`, skillText("always"));
  site.put(
    `${folder}/review/SKILL.md`,
    skillText("review", "Short", `${bound}trigger: {patterns: ["(?i)review 代码"]}\n`),
  );
  site.put(
    `${folder}/notes/SKILL.md`,
    skillText("notes", "Writes the notes", 'trigger: {patterns: ["merge"]}\n'),
  );
  site.put(
    `${folder}/huge/SKILL.md`,
    skillText("huge", "A huge one, ranked last", 'trigger: {patterns: ["merge"]}\n', "word ".repeat(5000)),
  );
  site.put(`${folder}/forker/SKILL.md`, skillText("forker", "Runs apart", `${bound}mode: fork\n`));
  site.put(`${folder}/guard/SKILL.md`, skillText("guard", "Guards", "allowed-tools: Read, Glob\n"));
  site.put(`${folder}/reads/SKILL.md`, skillText("reads", "Says nothing of tools"));
  site.put(`${folder}/off/SKILL.md`, skillText("off"));
  site.put(`${folder}/off2/SKILL.md`, skillText("off2", "d", 'trigger: {patterns: ["merge"]}\n'));
});
afterEach(() => site.remove());

async function reportOf(settings: Settings, loaded: LoadedCatalog, message: string) {
  const asked = askSkills(freshView(settings.policy, loaded), message, []);
  return await triggerReport(settings, loaded, message, asked);
}
async function report(message: string) {
  const settings = await site.settings();
  return await reportOf(settings, loadCatalog(settings), message);
}

test("triggerReport() says what would load in order, what not, and which tools stay open", async () => {
  const found = await report("is it Ready to Merge?");
  const at = `${site.top}/policy.yaml`;
  assertEquals(found.skills.map(({ tokens, ...s }) => (assert(tokens > 0), s)), [
    { skill: "always", by: "policy", at: `${at}:9:7` },
    { skill: "review", by: "pattern", pattern: "ready to merge", span: [6, 20], at: `${at}:12:25` },
    { skill: "notes", by: "pattern", pattern: "merge", span: [15, 20] },
  ]);
  assertEquals(found.skipped.map((s) => [s.skill, s.code, s.pattern]), [
    ["huge", "skill_too_large", "merge"],
    ["off", "disabled", "merge"],
    ["off2", "disabled", "merge"],
  ]);
  assertEquals(found.refused, undefined);
  assertEquals(found.tools, [
    { tool: "read_file", open: "yes" },
    { tool: "list_files", open: "no", by: "review" },
    { tool: "write_file", open: "no", by: "review" },
    { tool: "shell", open: "in part", only: "Bash(git log:*), and of these calls of risk read" },
    { tool: "fetch_url", open: "no", by: "review" },
  ]);
  assertEquals(reportLines(found).at(-3), "tools open: read_file");
});

test("triggerReport() names what the message names first, with its own pattern left out", async () => {
  const found = await report("/skill review 代码 REVIEW 代码 merge");
  assertEquals(found.skills.map((s) => [s.skill, s.by]), [
    ["always", "policy"],
    ["review", "explicit"],
    ["notes", "pattern"],
  ]);
});

test("triggerReport() says why there would be no turn", async () => {
  assertEquals((await report("/skill nope")).refused?.startsWith("no skill `nope`; "), true);
  assertEquals((await report("/skill list")).refused, "this is no turn");
  assertEquals(/about \d+ tokens; \d+ of the 2000/.test((await report("/skill huge")).refused ?? ""), true);
});

test("triggerReport() looks at the first 64 KiB, whatever the letters", async () => {
  const found = async (text: string) => (await report(text)).skills.map((s) => s.skill);
  assertEquals(await found(`${"字".repeat(21_845)}merge`), ["always"]);
  assertEquals(await found(`${"字".repeat(21_843)}merge`), ["always", "notes"]);
});

test("triggerReport() says that a fork bounds nothing, and what a gate's own skill leaves", async () => {
  const fork = await report("/skill forker");
  assertEquals(fork.skills.map((s) => [s.skill, s.fork]), [["always", undefined], ["forker", true]]);
  assertEquals(fork.tools.map((t) => t.open), ["yes", "yes", "yes", "yes", "yes"]);
  const guard = await report("/skill guard");
  assertEquals(guard.tools, [
    { tool: "read_file", open: "yes" },
    { tool: "list_files", open: "yes" },
    { tool: "write_file", open: "yes" },
    { tool: "shell", open: "in part", only: "what the gate `user.forced[1]` guards" },
    { tool: "fetch_url", open: "no", by: "guard" },
  ]);
  assertEquals(
    reportLines(guard).find((line) => line.startsWith("tools open in part")),
    "tools open in part: shell (what the gate `user.forced[1]` guards)",
  );
  const reads = await report("/skill reads");
  assertEquals(reads.tools[3], { tool: "shell", open: "in part", only: "calls of risk read" });
  assertEquals(reads.tools.map((t) => t.open), ["yes", "yes", "no", "in part", "no"]);
});

test("triggerReport() refuses what keeps a session from starting", async () => {
  const settings = await site.settings();
  const loaded = loadCatalog(settings);
  const [gate] = settings.policy.gates;
  assert(gate !== undefined);
  const policy = { ...settings.policy, gates: [{ ...gate, by: "fork" as const }] };
  assertEquals(
    (await reportOf({ ...settings, policy }, loaded, "hello")).refused,
    "the gate `user.forced[1]` waits for the verdict of a fork, and the skill `guard` runs as none",
  );
});

test("triggerReport() takes the bound that the skill has when it is read", async () => {
  const settings = await site.settings();
  const loaded = loadCatalog(settings);
  site.put(
    `${folder}/review/SKILL.md`,
    skillText("review", "Short", 'allowed-tools: Read\ntrigger: {patterns: ["(?i)review"]}\n'),
  );
  const found = await reportOf(settings, loaded, "/skill review");
  assertEquals(found.tools.find((t) => t.tool === "shell"), { tool: "shell", open: "no", by: "review" });
});

// Calls of each tool that a bound may tell apart.
const probes = [
  ["read_file", { path: "a" }],
  ["list_files", { path: "." }],
  ["write_file", { path: "b", content: "" }],
  ["shell", { command: "cat a" }],
  ["shell", { command: "git log" }],
  ["shell", { command: "git merge x" }],
  ["shell", { command: "touch x" }],
  ["fetch_url", { url: "http://127.0.0.1:1/" }],
] as const;

test("triggerReport() foretells what a session does", async () => {
  for (
    const message of [
      "is it ready to merge?",
      "REVIEW 代码 please",
      "hello",
      "/skill forker",
      "/skill guard",
      "/skill reads",
      "/skill guard with words",
    ]
  ) {
    const told = await report(message);
    const made = probes.map(([tool, args]) => ({ tool, args }));
    const forks = told.skills.filter((s) => s.fork === true).map(() => says("done"));
    const live = await openLive(site, [...forks, { text: "", calls: made, stop: "tool_use" }, says("a")]);
    const settings = await site.settings();
    const asked = askSkills(freshView(settings.policy, loadCatalog(settings)), message, []);
    await live.turn(message, asked.kind === "turn" ? asked.skills : []);
    await live.session.close();
    const main = live.events.filter((e) => e.session === live.session.id);
    // Before the first request: what a gate loads later is another matter.
    const before = main.slice(0, main.findIndex((e) => e.type === "context.built"));
    assertEquals(
      before.flatMap((e) =>
        e.type === "skill.loaded"
          ? [[e.data.name, e.data.trigger.kind, e.data.contextTokensAdded]]
          : e.type === "fork.started"
          ? [[e.data.skill, e.data.trigger.kind, "fork"]]
          : []
      ),
      told.skills.map((s) => [s.skill, s.by, s.fork === true ? "fork" : s.tokens]),
    );
    assertEquals(
      live.of("skill.skipped").map((s) => s.name),
      told.skipped.filter((s) => s.code === "skill_too_large").map((s) => s.skill),
    );
    const resolved = main.flatMap((e) => e.type === "permission.resolved" ? [e.data] : []);
    assertEquals(resolved.length, probes.length);
    assertEquals(
      told.tools.map(({ tool }) => {
        const closed = resolved.filter((r) => r.tool === tool).map((r) =>
          r.causes.some((c) => c.by === "bound")
        );
        return [tool, closed.every((c) => c) ? "no" : closed.some((c) => c) ? "in part" : "yes"];
      }),
      told.tools.map(({ tool, open }) => [tool, open]),
      message,
    );
  }
});

test("triggerReport() tells of the tools of servers and of skills as well", async () => {
  site.put(
    "policy.yaml",
    `${policy}mcp_servers: {metrics: {command: [/bin/cat], tools: {query: read, drop: destructive}}}\n`,
  );
  const tool = { name: "ship", description: "d", input_schema: { type: "object" }, command: ["jq"] };
  site.put(`${folder}/reads/tools.json`, JSON.stringify([tool]));
  const found = (await report("/skill reads")).tools.slice(5);
  assertEquals(found, [
    { tool: "mcp.metrics.query", open: "yes" },
    { tool: "mcp.metrics.drop", open: "no", by: "reads" },
    { tool: "skill.reads.ship", open: "yes" },
  ]);
});
