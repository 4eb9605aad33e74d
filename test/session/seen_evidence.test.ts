// A verdict counts for evidence that its maker had before it: whole, in the request that it answers.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { afterEach, beforeEach, describe, test } from "bun:test";
import {
  calls,
  type Live,
  makeSite,
  openLive,
  says,
  type Site,
  skillText,
} from "../support/skill_session.ts";

const policy = `version: 1
model: {provider: script}
sandbox: {mode: "off"}
permissions: {default: allow}
skills:
  scope: session
  forced: [{skill: judge, before: ["write_file(OUT)"], evidence: [read_file], verdict: [PASS]}]
`;
const load = calls("load_skill", { name: "judge" });
const look = calls("read_file", { path: "facts.txt" });
const pass = calls("complete_skill", { name: "judge", outcome: "PASS", summary: "s" });
const write = calls("write_file", { path: "OUT", content: "x" });
let site: Site;
let live: Live | undefined;
beforeEach(() => {
  site = makeSite(policy);
  site.put("home/.config/writ/skills/judge/SKILL.md", skillText("judge"));
  site.put("ws/facts.txt", "fact\n".repeat(400));
});
afterEach(() => {
  live?.session.close();
  live = undefined;
  site.remove();
});

// As a compaction would between two turns: of what the first call gave, which is the evidence.
function compact({ session, events }: Live, how: "cut" | "summary"): void {
  const { recorder } = session.agent;
  const evidence = events.find((e) => e.type === "tool.completed" && e.data.tool === "read_file")?.seq ?? 0;
  recorder.emit("context.compacted", {
    from: how === "cut" ? evidence : 1,
    to: how === "cut" ? evidence : recorder.state.seq,
    tokensBefore: 10,
    tokensAfter: 5,
    summary: how === "cut" ? "" : "what was done",
    ...(how === "cut" ? { cut: { results: [evidence], keep: 1000 } } : {}),
  });
}

const ends = (all: Live) =>
  all.of("tool.completed").map((t) => [t.tool, t.ok, ...(t.code === undefined ? [] : [t.code])]);

for (const how of ["cut", "summary"] as const) {
  describe(`evidence that a compaction took out (${how})`, () => {
    test("opens no verdict until it is gathered again", async () => {
      live = await openLive(site, [load, look, says("a"), pass, look, pass, write, says("b")]);
      await live.turn("one");
      compact(live, how);
      await live.turn("two");
      assertEquals(ends(live), [
        ["load_skill", true],
        ["read_file", true],
        ["complete_skill", false, "evidence_missing"],
        ["read_file", true],
        ["complete_skill", true],
        ["write_file", true],
      ]);
      assertStringIncludes(
        live.of("tool.completed")[2]?.result ?? "",
        "is none: its result is not in the request any more, or not whole",
      );
    });

    test("still bears the verdict that was given before", async () => {
      live = await openLive(site, [load, look, pass, says("a"), write, says("b")]);
      await live.turn("one");
      compact(live, how);
      await live.turn("two");
      assertEquals(ends(live).at(-1), ["write_file", true]);
    });
  });
}
