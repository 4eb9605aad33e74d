import { afterEach, beforeEach, test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { loadCatalog } from "../../src/cli/catalog.ts";
import { reportLines, triggerReport } from "../../src/cli/trigger_report.ts";
import { makeSite, openLive, says, type Site, skillText } from "../support/skill_session.ts";

const policy = `version: 1
model: {provider: script}
tools: {enabled: [read_file, list_files, shell, write_file]}
sandbox: {mode: "off"}
skills:
  sources: [user]
  active_tokens: 2000
  forced: [{skill: always, when: session}]
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
  site.put(`${folder}/off/SKILL.md`, skillText("off"));
  site.put(`${folder}/off2/SKILL.md`, skillText("off2", "d", 'trigger: {patterns: ["merge"]}\n'));
});
afterEach(() => site.remove());

async function report(message: string) {
  const settings = await site.settings();
  return await triggerReport(settings, loadCatalog(settings), message);
}

test("triggerReport() says what would load in order, what not, and which tools stay open", async () => {
  const found = await report("is it Ready to Merge?");
  const at = `${site.top}/policy.yaml`;
  assertEquals(found.skills.map(({ tokens, ...s }) => (assert(tokens > 0), s)), [
    { skill: "always", by: "policy", at: `${at}:8:12` },
    { skill: "review", by: "pattern", pattern: "ready to merge", span: [6, 20], at: `${at}:10:25` },
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
    { tool: "shell", open: "in part" },
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

test("triggerReport() foretells what a session does", async () => {
  for (const message of ["is it ready to merge?", "REVIEW 代码 please", "hello"]) {
    const told = await report(message);
    const live = await openLive(site, [says("a")]);
    await live.turn(message);
    live.session.close();
    assertEquals(
      live.of("skill.loaded").map((s) => [s.name, s.trigger.kind, s.contextTokensAdded]),
      told.skills.map((s) => [s.skill, s.by, s.tokens]),
    );
    assertEquals(
      live.of("skill.skipped").map((s) => s.name),
      told.skipped.filter((s) => s.code === "skill_too_large").map((s) => s.skill),
    );
  }
});
