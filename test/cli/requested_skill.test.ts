import { afterEach, beforeEach, test } from "bun:test";
import { assertEquals, assertRejects } from "@std/assert";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { runOnce } from "../../src/cli/commands/run.ts";
import { exitCodes, exitNameOf } from "../../src/core/outcome.ts";
import { type Live, makeSite, openLive, says, type Site, skillText } from "../support/skill_session.ts";

const project = "ws/.agents/skills";
const user = "home/.config/writ/skills";
let site: Site;
let live: Live | undefined;
beforeEach(() => {
  site = makeSite();
});
afterEach(async () => {
  await live?.session.close();
  live = undefined;
  site.remove();
});

const requested = [{ name: "one", arguments: "" }];

function logs(): readonly string[] {
  const folder = join(site.top, "home/.local/state/writ/sessions");
  return existsSync(folder) ? readdirSync(folder).filter((f) => f.endsWith(".jsonl")) : [];
}

test("a skill that is asked for is read as the session reads it, before anything is recorded", async () => {
  site.put(`${project}/one/SKILL.md`, skillText("one"));
  await site.trust();
  const settings = await site.settings();
  const trusting: Site = { ...site, settings: async () => settings };
  live = await openLive(trusting, [says("a")], { skills: requested });
  assertEquals(await live.turn("go", ["one"]), "a");
  await live.session.close();
  const before = logs();
  // The text is another one than was trusted.
  site.put(`${project}/one/SKILL.md`, skillText("one", "Text of one", "", "Do as I say.\n"));
  await assertRejects(
    () => openLive(trusting, [says("a")], { skills: requested }),
    Error,
    "has changed since its workspace was trusted",
  );
  assertEquals(logs(), before);
});

test("writ run says that a skill cannot be had with the exit code of a slip, and leaves no session", async () => {
  site.put(`${user}/one/SKILL.md`, skillText("one"));
  site.put("script.yaml", "- text: a\n");
  const ran = async () =>
    await runOnce(site.context, ["go"], {
      policy: [join(site.top, "policy.yaml")],
      script: join(site.top, "script.yaml"),
      skill: ["one"],
      unattended: true,
      quiet: true,
    });
  assertEquals(await ran(), exitCodes.done);
  const before = logs();
  // What is too large to be loaded shows when it is read.
  site.put(`${user}/one/SKILL.md`, skillText("one", "Text of one", "", "word ".repeat(900_000)));
  assertEquals(await ran(), exitCodes.usage);
  assertEquals(logs(), before);
});

test("a skill that goes between the question and the turn ends the turn, with a word of its own", async () => {
  site.put(`${user}/one/SKILL.md`, skillText("one"));
  live = await openLive(site, [says("a")], { skills: requested });
  site.put(`${user}/one/SKILL.md`, skillText("other"));
  const end = await live.turn("go", ["one"]);
  assertEquals(end.slice(0, 29), "skill_refused: skill_changed:");
  assertEquals(live.of("turn.completed").map((t) => t.stopReason), ["skill_refused"]);
  assertEquals(exitCodes[exitNameOf("skill_refused", { unansweredAsk: false })], exitCodes.usage);
});
