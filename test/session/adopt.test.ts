import { afterEach, beforeEach, describe, test } from "bun:test";
import { assertEquals } from "@std/assert";
import { type Live, makeSite, openLive, says, type Site, skillText } from "../support/skill_session.ts";

const policy = (more = "") => `version: 1\nmodel: {provider: script}\nworkspace: {trust: trusted}\n${more}`;

let site: Site;
let live: Live;
beforeEach(() => site = makeSite(policy()));
afterEach(async () => {
  await live.session.close();
  site.remove();
});

async function adopt(text: string): Promise<readonly string[]> {
  site.put("policy.yaml", text);
  return (await live.session.adopt(await site.settings())).map((p) => p.code);
}

describe("what a new policy redacts", () => {
  const redact = `secrets: {redact: {patterns: ["code-[0-9]+"]}}`;

  test("is redacted in the instructions of the request after it", async () => {
    site.put("ws/AGENTS.md", "The door opens with code-4711.\n");
    live = await openLive(site, [says("a"), says("b")]);
    await live.turn("one");
    const before = live.request().system;
    assertEquals(await adopt(policy(redact)), []);
    assertEquals(live.request().system, before.replace("code-4711", "[redacted:policy]"));
  });

  test("is redacted in the list of skills of the request after it", async () => {
    site.put("home/.config/writ/skills/door/SKILL.md", skillText("door", "Opens doors with code-4711"));
    live = await openLive(site, [says("a"), says("b")]);
    await live.turn("one");
    const before = live.request().system;
    assertEquals(await adopt(policy(redact)), []);
    assertEquals(live.request().system, before.replace("code-4711", "[redacted:policy]"));
  });
});

test("a policy that is refused redacts nothing, and is tried again", async () => {
  site.put("ws/AGENTS.md", "The door opens with code-4711.\n");
  live = await openLive(site, [says("a"), says("b")]);
  await live.turn("one");
  const before = live.request();
  const refused = policy(
    `secrets: {redact: {patterns: ["code-[0-9]+"]}}\nmcp_servers: {c: {command: [no-such], tools: [x], required: true}}`,
  );
  assertEquals(await adopt(refused), ["server-down"]);
  assertEquals(live.request(), before);
  assertEquals(await live.turn("code-4711"), "b");
  assertEquals(live.of("user.message").map((e) => e.content), ["one", "code-4711"]);
  assertEquals(await adopt(refused), ["server-down"]);
});
