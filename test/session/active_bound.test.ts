// What a skill that is active bounds, from loading it to calls, in a session.
import { assertEquals } from "@std/assert";
import { afterEach, beforeEach, describe, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import {
  calls,
  type Live,
  makeSite,
  openLive,
  says,
  type Site,
  skillText,
} from "../support/skill_session.ts";

const file = "home/.config/writ/skills/narrow/SKILL.md";
const base = 'version: 1\nmodel: {provider: script}\nsandbox: {mode: "off"}\npermissions: {default: allow}\n';
const load = calls("load_skill", { name: "narrow" });
const write = calls("write_file", { path: "OUT", content: "x" });
let site: Site;
let live: Live | undefined;
beforeEach(() => {
  site = makeSite(base);
});
afterEach(() => {
  live?.session.close();
  live = undefined;
  site.remove();
});

function declare(tools: string, trigger = ""): void {
  site.put(file, skillText("narrow", "Narrows.", `allowed_tools: ${tools}\n${trigger}`, "Body.\n"));
}

const written = () => existsSync(join(site.top, "ws/OUT"));

describe("an entry of allowed_tools that is all stars bounds like no list", () => {
  for (const tools of ['"*"', '["*"]', '"**"', '["**"]', '["***"]', '[read_file, "**"]']) {
    test(tools, async () => {
      declare(tools);
      live = await openLive(site, [load, write, says("a")]);
      await live.turn("go");
      assertEquals([live.of("tool.completed").map((t) => t.ok), written()], [[true, false], false]);
    });
  }
});

describe("the bound of a skill that is active", () => {
  const wider = "[read_file, write_file]";

  // Loaded for the session with `[read_file]`; the file is edited between the turns, and the skills are read again.
  async function twoTurns(
    second: readonly Parameters<typeof openLive>[1][number][],
    skills: readonly string[],
  ) {
    site.put("policy.yaml", `${base}skills: {scope: session}\n`);
    declare("[read_file]");
    live = await openLive(site, [says("a"), ...second, write, says("b")]);
    await live.turn("one", ["narrow"]);
    declare(wider, "trigger: {patterns: [again]}\n");
    await live.session.adopt(await site.settings());
    await live.turn("again", skills);
    return [live.of("skill.loaded").slice(1).map((s) => [s.trigger.kind, s.allowedTools]), written()];
  }

  test("is not widened by a pattern", async () => {
    assertEquals(await twoTurns([], []), [[["pattern", ["read_file"]]], false]);
  });

  test("is not widened by the model", async () => {
    assertEquals(await twoTurns([load], []), [
      [["pattern", ["read_file"]], ["model", ["read_file"]]],
      false,
    ]);
    assertEquals(live?.session.agent.recorder.state.active.map((s) => s.body.includes("write_file")), [
      false,
    ]);
  });

  test("is widened when the user names the skill", async () => {
    assertEquals(await twoTurns([], ["narrow"]), [[["explicit", ["read_file", "write_file"]]], true]);
  });

  test("is narrowed by anybody", async () => {
    site.put("policy.yaml", `${base}skills: {scope: session}\n`);
    declare(wider);
    live = await openLive(site, [says("a"), load, write, says("b")]);
    await live.turn("one", ["narrow"]);
    declare("[read_file]");
    await live.session.adopt(await site.settings());
    await live.turn("two");
    assertEquals([live.of("skill.loaded").at(-1)?.allowedTools, written()], [["read_file"], false]);
  });

  test("is that of the file once the skill has ended", async () => {
    declare("[read_file]");
    live = await openLive(site, [load, says("a"), load, write, says("b")]);
    await live.turn("one");
    declare(wider);
    await live.session.adopt(await site.settings());
    await live.turn("two");
    assertEquals([live.of("skill.loaded").at(-1)?.allowedTools, written()], [
      ["read_file", "write_file"],
      true,
    ]);
  });
});

test("a skill whose file is gone stands as it was read last, and is said to", async () => {
  declare("[read_file]");
  live = await openLive(site, [load, says("a"), load, says("b")]);
  await live.turn("one");
  site.drop(file);
  await live.turn("two");
  const [first, second] = live.of("tool.completed").map((t) => t.result);
  const note = live.of("skill.registry_error").map((e) => [e.code, e.message]);
  const told = `\`${join(site.top, file)}\` cannot be read: ENOENT; the body that was read last stands`;
  const loaded = 'loaded skill "narrow" (0 specialized tools registered)';
  assertEquals([first, second, note], [loaded, `${loaded}; ${told}`, [["skill_unreadable", told]]]);
});
