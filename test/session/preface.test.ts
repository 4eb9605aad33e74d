import { afterEach, beforeEach, describe, test } from "bun:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { compact } from "../../src/agent/compact.ts";
import { offeredTools } from "../../src/agent/offered.ts";
import { chooseModel } from "../../src/core/model_choice.ts";
import { emptySession, reduce } from "../../src/core/session.ts";
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
const trusted = "version: 1\nmodel: {provider: script}\nworkspace: {trust: trusted}\n";
const long = "words that are not needed any more ".repeat(600);

let site: Site;
let live: Live | undefined;
beforeEach(() => {
  site = makeSite(trusted);
  site.put(`${folder}/one/SKILL.md`, skillText("one"));
  site.put(`${folder}/two/SKILL.md`, skillText("two"));
});
afterEach(async () => {
  await live?.session.close();
  live = undefined;
  site.remove();
});

/** As `/compact` in a chat. */
async function compactNow({ session }: Live): Promise<void> {
  const done = await compact(session.agent, new AbortController().signal, true);
  assertEquals(done.ok ? "compacted" : done.why, "compacted");
}

async function adopt({ session }: Live): Promise<void> {
  assertEquals(await session.adopt(await site.settings()), []);
}

const textsOf = ({ messages }: ReturnType<Live["request"]>) =>
  messages.flatMap((m) => m.content.flatMap((c) => c.type === "text" ? [c.text] : []));
const textOf = (made: Live) => JSON.stringify(made.request().messages);

describe("instruction files that change while a session is open", () => {
  test("are shown as they were until a compaction, and as they are after it", async () => {
    site.put("ws/AGENTS.md", "Use tabs.\n");
    live = await openLive(site, [says("a"), says("b"), says("summary"), says("c")]);
    await live.turn(long);
    const { system } = live.request();
    assertStringIncludes(system, `<instructions file="AGENTS.md">\nUse tabs.\n</instructions>`);
    site.put("ws/AGENTS.md", "Use spaces.\n");
    await adopt(live);
    await live.turn("second");
    assertEquals(live.request().system, system);
    await compactNow(live);
    assertEquals(live.request().system, system.replace("Use tabs.", "Use spaces."));
    await live.turn("third");
    assertEquals(live.request().system, system.replace("Use tabs.", "Use spaces."));
  });

  test("are shown as they were trusted, also after a compaction", async () => {
    site.put("policy.yaml", "version: 1\nmodel: {provider: script}\n");
    site.put("ws/AGENTS.md", "Use tabs.\n");
    await site.trust();
    live = await openLive(site, [says("a"), says("b"), says("summary")]);
    await live.turn(long);
    await live.turn("second");
    const { system } = live.request();
    assertStringIncludes(system, "Use tabs.");
    site.put("ws/AGENTS.md", "Do as I say.\n");
    await compactNow(live);
    assertEquals(live.request().system, system);
  });

  test("are redacted when they are made anew", async () => {
    site.put("policy.yaml", `${trusted}secrets: {redact: {patterns: ["code-[0-9]+"]}}\n`);
    site.put("ws/AGENTS.md", "Knock.\n");
    live = await openLive(site, [says("a"), says("b"), says("summary")]);
    await live.turn(long);
    await live.turn("second");
    const { system } = live.request();
    site.put("ws/AGENTS.md", "The code is code-4711.\n");
    await compactNow(live);
    assertEquals(live.request().system, system.replace("Knock.", "The code is [redacted:policy]."));
  });
});

describe("skills that came and went while a session was open", () => {
  test("are told as news until a compaction, and are in the list after it", async () => {
    live = await openLive(site, [says("a"), says("b"), says("summary"), says("c")]);
    await live.turn(long);
    const { system } = live.request();
    site.put(`${folder}/three/SKILL.md`, skillText("three"));
    site.drop(`${folder}/one`);
    await adopt(live);
    await live.turn("second");
    assertEquals(live.request().system, system);
    assertStringIncludes(textOf(live), "These skills are no longer available: one");
    await compactNow(live);
    assertEquals(
      live.request().system,
      system.replace("- one: Text of one\n", "").replace(
        "- two: Text of two",
        "- three: Text of three\n- two: Text of two",
      ),
    );
    assert(!textOf(live).includes("These skills"), textOf(live));
    await adopt(live);
    await live.turn("third");
    assert(!textOf(live).includes("These skills"), textOf(live));
  });

  test("are told as news again when they change after the compaction", async () => {
    live = await openLive(site, [says("a"), says("b"), says("summary"), says("c")]);
    await live.turn(long);
    await live.turn("second");
    await compactNow(live);
    site.drop(`${folder}/one`);
    await adopt(live);
    await live.turn("third");
    assertStringIncludes(textOf(live), "These skills are no longer available: one");
  });

  test("that a message would have told of are not told once the list has them", async () => {
    live = await openLive(site, [says("a"), says("b"), says("summary"), says("c")]);
    await live.turn(long);
    await live.turn("second");
    site.put(`${folder}/three/SKILL.md`, skillText("three"));
    await adopt(live);
    await compactNow(live);
    await live.turn("third");
    assert(!textOf(live).includes("These skills"), textOf(live));
    assertStringIncludes(live.request().system, "- three: Text of three");
  });

  test("and have no room in the list after it are recorded, and find_skill is offered", async () => {
    site.put("policy.yaml", `${trusted}skills: {listing_tokens: 1200}\n`);
    live = await openLive(site, [says("a"), says("b"), says("summary"), says("c")]);
    await live.turn(long);
    // The news of each scan has room; the list of them all has not.
    for (let n = 0; n < 60; n++) {
      const name = `new-${n}`;
      site.put(`${folder}/${name}/SKILL.md`, skillText(name, `${name} ${"word ".repeat(40)}`));
      if (n % 6 === 5) await adopt(live);
    }
    await live.turn("second");
    const { preface } = live.session.agent;
    assertEquals([live.of("skill.omitted"), preface.now.shown.omitted], [[], new Set()]);
    await compactNow(live);
    const omitted = live.of("skill.omitted").map((o) => o.name);
    assertEquals([omitted.length > 0, omitted], [true, [...preface.now.shown.omitted]]);
    assertEquals(offeredTools(live.session.agent).some((t) => t.name === "find_skill"), true);
  });
});

test("what is in force outlives a compaction byte by byte, whatever its file says by then", async () => {
  site.put(
    "policy.yaml",
    `${trusted}skills: {forced: [{skill: one, when: session}]}\npermissions: {deny: [{id: keep-out, tool: "*", path: [secret.txt]}]}\n`,
  );
  live = await openLive(site, [
    calls("load_skill", { name: "two" }),
    calls("read_file", { path: "secret.txt" }),
    says(long),
    says("b"),
    says("summary"),
  ]);
  await live.turn(long);
  const last = `the last message, <byte> by "byte"`;
  await live.turn(last);
  const before = live.request();
  const [one = "?", two = "?"] = live.of("skill.loaded").map((s) => s.body);
  site.put(`${folder}/one/SKILL.md`, skillText("one", "Text of one", "", "Another body.\n"));
  await compactNow(live);
  const after = live.request();
  assertEquals([after.system, after.system.includes(one)], [before.system, true]);
  const environment = (text: string) => text.startsWith("<environment>");
  const shown = textsOf(after);
  assertEquals(shown.filter((text) => text === last), [last]);
  assertEquals(shown.filter(environment), textsOf(before).filter(environment));
  const [refused] = shown.filter((text) => text.startsWith(`<refused tool="read_file">`));
  assertStringIncludes(refused ?? "", "keep-out");
  assertEquals([two === "?", shown.includes(two)], [false, false]);
});

test("the log of a session that was compacted replays into its state", async () => {
  live = await openLive(site, [says("a"), says("b"), says("summary"), says("c")]);
  await live.turn(long);
  site.drop(`${folder}/one`);
  await adopt(live);
  await live.turn("second");
  await compactNow(live);
  await live.turn("third");
  assertEquals(live.events.reduce(reduce, emptySession), live.session.agent.recorder.state);
});

test("a compaction in a fork leaves what the session around it was given", async () => {
  site.put(
    "policy.yaml",
    "version: 1\nmodel: {provider: script, context_tokens: 8000, max_output_tokens: 1000}\nworkspace: {trust: trusted}\nlimits: {same_call: 50}\n",
  );
  site.put("ws/AGENTS.md", "Use tabs.\n");
  site.put("ws/big.txt", "a line that is long enough to matter\n".repeat(120));
  site.put(
    `${folder}/look/SKILL.md`,
    skillText("look", "Looks around", "context: fork\nallowed_tools: [read_file]\n"),
  );
  const reads = Array.from({ length: 6 }, () => calls("read_file", { path: "big.txt" }));
  live = await openLive(site, [...reads, says("seen"), says("done")], {
    onEvent: ({ type }) => type === "fork.started" && site.put("ws/AGENTS.md", "Use spaces.\n"),
  });
  const { system } = live.request();
  assertEquals(await live.turn("look", ["look"]), "done");
  const compacted = live.events.filter((e) => e.type === "context.compacted").map((e) => e.session);
  assertEquals([compacted.length > 0, compacted.includes(live.session.id)], [true, false]);
  assertEquals(live.request().system, system);
});

test("instruction files take no more of another model than it has, once they are made anew", async () => {
  site.put(
    "policy.yaml",
    "version: 1\nmodel: {provider: script, max_output_tokens: 500, choices: {small: {name: small, context_tokens: 4000}}}\nworkspace: {trust: trusted}\n",
  );
  site.put("ws/AGENTS.md", "x".repeat(6000));
  live = await openLive(site, [says("a"), says("b"), says("summary")]);
  const shown = ({ session }: Live) =>
    session.agent.preface.now.stable.instructions.map(({ text }) => /^x*/.exec(text)?.[0].length);
  assertEquals(shown(live), [6000]);
  await live.turn(long.slice(0, 6000));
  await live.turn("second");
  const small = chooseModel(live.session.agent.policy.model, "small");
  if (small === undefined) throw new Error("no such choice");
  live.session.useModel(small);
  assertEquals(shown(live), [6000]);
  await compactNow(live);
  const [bytes = 0] = shown(live);
  assertEquals([shown(live).length, bytes > 0, bytes <= 4000], [1, true, true]);
});
