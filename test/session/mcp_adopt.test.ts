import { afterEach, beforeEach, test } from "bun:test";
import { assertEquals, assertNotEquals } from "@std/assert";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isRunning } from "../support/machine.ts";
import { root } from "../support/runtimes.ts";
import { type Live, makeSite, openLive, says, type Site, skillText } from "../support/skill_session.ts";

// The server says its process id in the description of its tool.
const command = `[${join(root, "node_modules/.bin/bun")}, ${
  join(root, "test/support/mcp/odd_server.ts")
}, pid]`;
const policy = (servers: string, more = "") =>
  `version: 1\nmodel: {provider: script}\nsandbox: {mode: "off"}\nmcp_servers:\n${servers}\n${more}`;

let site: Site;
let live: Live | undefined;
beforeEach(() => site = makeSite(policy(`  a: {command: ${command}, tools: {do: read}}`)));
afterEach(async () => {
  await live?.session.close();
  live = undefined;
  site.remove();
});

async function adopt({ session }: Live, text: string): Promise<readonly string[]> {
  site.put("policy.yaml", text);
  return (await session.adopt(await site.settings())).map((p) => p.code);
}

const toolsOf = ({ session }: Live) =>
  session.agent.serverTools.map((t) => ({ name: t.name, pid: Number(t.description) }));

test("servers of a changed policy that stay the same stay as they are", async () => {
  live = await openLive(site, [says("x")]);
  const before = toolsOf(live);
  assertEquals(
    await adopt(live, policy(`  a: {command: ${command}, tools: {do: read}}`, "limits: {iterations: 3}")),
    [],
  );
  assertEquals([live.session.agent.policy.limits.iterations, toolsOf(live)], [3, before]);
});

test("servers that changed are started, and those before are ended", async () => {
  live = await openLive(site, [says("x")]);
  const [before] = toolsOf(live);
  const next = policy(
    `  b: {command: ${command}, tools: {do: write}}\n  c: {command: [no-such], tools: [x]}`,
  );
  assertEquals(await adopt(live, next), []);
  const after = toolsOf(live);
  assertEquals(after.map((t) => t.name), ["mcp.b.do"]);
  assertNotEquals(after[0]?.pid, before?.pid);
  assertEquals([isRunning(before?.pid ?? 0), isRunning(after[0]?.pid ?? 0)], [false, true]);
  assertEquals(live.of("skill.registry_error").map((e) => e.code), ["server-down"]);
  await live.session.close();
  assertEquals(isRunning(after[0]?.pid ?? 0), false);
});

test("a required server that cannot be had leaves everything as it was", async () => {
  live = await openLive(site, [says("x")]);
  const before = toolsOf(live);
  const next = policy(
    `  b: {command: ${command}, tools: [do]}\n  c: {command: [no-such], tools: [x], required: true}`,
  );
  assertEquals(await adopt(live, next), ["server-down"]);
  assertEquals([toolsOf(live), live.of("policy.changed").length], [before, 0]);
  assertEquals(before.map((t) => isRunning(t.pid)), [true]);
});

test("a policy that is refused once its servers run leaves everything as it was, and nothing of its own", async () => {
  site.put(
    "home/.config/writ/skills/huge/SKILL.md",
    skillText("huge", "Too long", "", "word ".repeat(200_000)),
  );
  live = await openLive(site, [says("x")]);
  const before = toolsOf(live);
  const pidFile = join(site.top, "pid");
  const started = `[sh, -c, 'echo $$ > "${pidFile}"; exec "$@"', sh, ${command.slice(1)}`;
  const next = policy(
    `  b: {command: ${started}, tools: [do]}`,
    "skills: {forced: [{skill: huge, when: session}]}",
  );
  assertEquals(await adopt(live, next), ["forced-skill-unavailable"]);
  assertEquals(isRunning(Number(readFileSync(pidFile, "utf8"))), false);
  assertEquals([toolsOf(live), live.of("policy.changed").length], [before, 0]);
  assertEquals(before.map((t) => isRunning(t.pid)), [true]);
  assertEquals(await live.turn("still here?"), "x");
});
