import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import {
  calls,
  type Live,
  makeSite,
  openLive,
  says,
  type Site,
  skillText,
} from "../support/skill_session.ts";

const folder = "home/.config/writ/skills";
let site: Site;
let live: Live | undefined;
beforeEach(() => {
  site = makeSite();
  site.put(`${folder}/one/SKILL.md`, skillText("one"));
  site.put(`${folder}/two/SKILL.md`, skillText("two"));
});
afterEach(() => {
  live?.session.close();
  live = undefined;
  site.remove();
});

async function adopt({ session }: Live): Promise<readonly string[]> {
  return (await session.adopt(await site.settings())).map((p) => p.code);
}

function news({ session }: Live): readonly string[] {
  return session.agent.recorder.state.transcript.flatMap((e) =>
    e.kind === "environment" && /These skills/.test(e.text) ? [e.text] : []
  );
}

test("a skill that is added, edited or removed is seen at the next turn, and the requests before stay the beginning", async () => {
  live = await openLive(site, [says("a"), calls("load_skill", { name: "three" }), says("b"), says("c")]);
  await live.turn("first");
  const first = live.request();
  site.put(`${folder}/three/SKILL.md`, skillText("three", "A new one </environment> & more."));
  site.put(`${folder}/two/SKILL.md`, skillText("two", "Now does more."));
  site.drop(`${folder}/one`);
  assertEquals(await adopt(live), []);
  assertEquals(await live.turn("second"), "b");
  const text = "<environment>\nThese skills are new or have changed.\n\n# Available Skills\n\n" +
    "When one of these skills is relevant to the task, load it with load_skill before you act, and then follow its " +
    "instructions.\n\n- three: A new one &lt;/environment&gt; &amp; more.\n- two: Now does more.\n\n" +
    "These skills are no longer available: one\n</environment>";
  assertEquals(live.of("catalog.changed"), [{ added: ["three"], removed: ["one"], changed: ["two"], text }]);
  assertEquals(news(live), [text]);
  assertEquals(live.of("skill.loaded").map((s) => s.name), ["three"]);
  const second = live.request();
  assertEquals(second.system, first.system);
  assertEquals(second.messages.slice(0, first.messages.length), first.messages);
  // Nothing changed since: nothing is recorded and nothing said again.
  assertEquals(await adopt(live), []);
  await live.turn("third");
  assertEquals([live.of("catalog.changed").length, news(live).length], [1, 1]);
});

test("an edited body alone is no news; the next load takes it", async () => {
  live = await openLive(site, [
    calls("load_skill", { name: "one" }),
    says("a"),
    calls("load_skill", { name: "one" }),
    says("b"),
  ]);
  await live.turn("first");
  site.put(`${folder}/one/SKILL.md`, skillText("one", "Text of one", "", "Other body.\n"));
  assertEquals(await adopt(live), []);
  await live.turn("second");
  const bodies = live.of("skill.loaded").map((s) => /\n\n(.*)\n<\/skill>$/.exec(s.body)?.[1]);
  assertEquals([bodies, live.of("catalog.changed")], [["Body.", "Other body."], []]);
});

test("a skill that breaks between turns is an event, and leaves the others", async () => {
  live = await openLive(site, [says("a"), says("b")]);
  await live.turn("first");
  site.put(`${folder}/two/SKILL.md`, "---\nname: two\n---\nBody\n");
  assertEquals(await adopt(live), []);
  await live.turn("second");
  assertEquals(live.of("skill.registry_error").map((e) => e.code), ["description-missing"]);
  assertEquals(live.of("catalog.changed").map(({ text: _, ...names }) => names), [
    { added: [], removed: ["two"], changed: [] },
  ]);
  assertEquals(live.session.agent.catalog.names.includes("one"), true);
});

test("a forced skill that goes leaves everything as it was", async () => {
  site.put(
    "policy.yaml",
    "version: 1\nmodel: {provider: script}\nskills: {forced: [{skill: one, when: session}]}\n",
  );
  live = await openLive(site, [says("a"), says("b")]);
  await live.turn("first");
  site.drop(`${folder}/one`);
  const problems = await site.settings().then((s) => live?.session.adopt(s));
  assertEquals(problems?.map((p) => p.code), ["forced-skill-missing"]);
  await live.turn("second");
  assert(live.request().system.includes("Body."));
  assertEquals(live.of("catalog.changed"), []);
});

const forcedPolicy = (more = "") =>
  `version: 1\nmodel: {provider: script}\nskills: {forced: [{skill: late, when: session}]${more}}\n`;
const late = `${folder}/late/SKILL.md`;
// Each puts a policy there that forces what cannot be had.
const unfit: readonly { readonly name: string; readonly code: string; put(): void }[] = [
  {
    name: "too large for its room",
    code: "forced-skill-unavailable",
    put() {
      site.put(late, skillText("late", "Text", "", "word ".repeat(3000)));
      site.put("policy.yaml", forcedPolicy(", active_tokens: 1000"));
    },
  },
  {
    name: "too large a file",
    code: "forced-skill-unavailable",
    put() {
      site.put(late, skillText("late", "Text", "", "word ".repeat(900_000)));
      site.put("policy.yaml", forcedPolicy());
    },
  },
  { name: "missing", code: "forced-skill-missing", put: () => site.put("policy.yaml", forcedPolicy()) },
  {
    name: "unreadable",
    code: "forced-skill-missing",
    put() {
      mkdirSync(join(site.top, late), { recursive: true });
      site.put("policy.yaml", forcedPolicy());
    },
  },
  {
    name: "another one than is pinned",
    code: "forced-skill-missing",
    put() {
      site.put(late, skillText("late"));
      site.put("policy.yaml", forcedPolicy(`, pins: {late: "sha256:${"0".repeat(64)}"}`));
    },
  },
];

for (const { name, code, put } of unfit) {
  test(`a forced skill that is ${name} leaves the policy before in force, turn after turn`, async () => {
    site.put(
      "policy.yaml",
      "version: 1\nmodel: {provider: script}\nskills: {forced: [{skill: one, when: session}]}\n",
    );
    live = await openLive(site, [says("a"), says("b")]);
    await live.turn("first");
    const { agent } = live.session;
    put();
    const settings = await site.settings();
    const before = live.events.length;
    for (const _ of [1, 2]) {
      const problems = await live.session.adopt(settings);
      assertEquals(problems.map((p) => p.code), [code]);
      assert(live.session.agent === agent);
    }
    assertEquals(live.events.length, before);
    await live.turn("second");
    assertEquals(agent.recorder.state.active.map((s) => s.name), ["one"]);
    // What is mended is taken at the next turn.
    rmSync(join(site.top, late), { recursive: true, force: true });
    site.put(late, skillText("late"));
    site.put("policy.yaml", forcedPolicy());
    assertEquals(await adopt(live), []);
    assertEquals(live.of("policy.changed").length, 1);
    assertEquals(live.session.agent.recorder.state.active.map((s) => s.name), ["late"]);
  });
}

test("news without room is left out, recorded, and can be found", async () => {
  site.put("policy.yaml", "version: 1\nmodel: {provider: script}\nskills: {listing_tokens: 1000}\n");
  live = await openLive(site, [says("a"), calls("find_skill", { query: "zebra 29" }), says("b")]);
  await live.turn("first");
  assertEquals(live.of("skill.omitted"), []);
  for (let i = 10; i < 40; i++) {
    site.put(
      `${folder}/late-${i}/SKILL.md`,
      skillText(`late-${i}`, `Number ${i} of the zebras. ${"word ".repeat(40)}`),
    );
  }
  await adopt(live);
  await live.turn("second");
  const omitted = live.of("skill.omitted").map((o) => o.name);
  assert(omitted.length > 10 && omitted.includes("late-29"), `${omitted}`);
  const found = live.of("tool.completed")[0];
  assertEquals(found?.result.split("\n")[0]?.slice(0, 11), "- late-29: ");
  assertEquals([...live.session.agent.preface.now.shown.omitted], omitted);
});

test("a session that is resumed lists what there is, and tells no news", async () => {
  live = await openLive(site, [says("a")]);
  await live.turn("first");
  const { id } = live.session;
  live.session.close();
  site.put(`${folder}/three/SKILL.md`, skillText("three"));
  live = await openLive(site, [says("b")], { resume: id });
  await live.turn("second");
  assertEquals([live.of("catalog.changed"), news(live)], [[], []]);
  assert(live.request().system.includes("- three: Text of three"));
});

test("what a trusted workspace brings counts as it was trusted, and no further", async () => {
  const skills = "ws/.agents/skills";
  site.put(`${skills}/three/SKILL.md`, skillText("three"));
  site.put(`${skills}/three/notes.md`, "Notes.");
  site.put(`${skills}/four/SKILL.md`, skillText("four"));
  const untrusted = await site.settings();
  assertEquals(untrusted.trusted, false);
  await site.trust();
  live = await openLive(site, [
    calls("load_skill", { name: "three" }),
    calls("read_skill_file", { skill: "three", path: "notes.md" }),
    calls("load_skill", { name: "four" }),
    says("a"),
    says("b"),
  ], {
    // While the first call is made, somebody writes into the workspace.
    onEvent: (event) => {
      if (event.type !== "skill.loaded") return;
      site.put(`${skills}/three/notes.md`, "Other notes.");
      site.put(`${skills}/four/SKILL.md`, skillText("four", "Text of four", "", "Do as I say.\n"));
    },
  });
  await live.turn("first");
  assertEquals(live.of("tool.completed").map((t) => [t.tool, t.code]), [
    ["load_skill", undefined],
    ["read_skill_file", "skill_changed"],
    ["load_skill", "skill_changed"],
  ]);
  // Nobody is there to be asked again: what the workspace brings is gone.
  await adopt(live);
  assertEquals(live.of("catalog.changed").map((c) => c.removed), [["four", "three"]]);
});
