// Command tools, pins and secrets in a session: what the loop offers, what runs, and what comes of a folder that changed.
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { afterEach, beforeEach, describe, test } from "bun:test";
import { chmodSync, existsSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { offeredTools } from "../../src/agent/offered.ts";
import { loadCatalog } from "../../src/session/catalog.ts";
import { hashFolder } from "../../src/load/folder_hash.ts";
import {
  calls,
  type Live,
  makeSite,
  openLive,
  says,
  type Site,
  skillText,
} from "../support/skill_session.ts";

const folder = "home/.config/writ/skills/deploy";
const base = 'version: 1\nmodel: {provider: script}\nsandbox: {mode: "off"}\n';
const allowed = "permissions: {allow: [skill.deploy.show]}\n";
let site: Site;
let live: Live | undefined;
beforeEach(() => {
  site = makeSite(base + allowed);
  site.put(`${folder}/SKILL.md`, skillText("deploy", "Deploys.", "", "Version one.\n"));
  tools([tool("show", 'cat ./data.txt; echo "[$TOKEN]"')]);
  site.put(`${folder}/data.txt`, "data one\n");
});
afterEach(() => {
  live?.session.close();
  live = undefined;
  site.remove();
});

function tool(name: string, script: string) {
  return { name, description: "d", input_schema: { type: "object" }, command: ["sh", "-c", script] };
}

function tools(all: readonly object[]): void {
  site.put(`${folder}/tools.json`, JSON.stringify(all));
}

function hash(): string {
  const hashed = hashFolder(join(site.top, folder));
  if (!hashed.ok) throw new Error(hashed.message);
  return hashed.hash;
}

function policy(more: string): void {
  site.put("policy.yaml", base + more);
}

function env(variables: { readonly [name: string]: string }): void {
  site = { ...site, context: { ...site.context, host: { ...site.context.host, env: variables } } };
}

async function adopt(): Promise<readonly string[]> {
  return (await live?.session.adopt(await site.settings()) ?? []).map((p) => p.message);
}

const offered = () => live === undefined ? [] : offeredTools(live.session.agent).map((t) => t.name).slice(-1);
const results = () => (live?.of("tool.completed") ?? []).map((r) => r.result);

describe("command tools in a session", () => {
  test("come with the skill, stay while it is active and go with it", async () => {
    policy(`skills: {scope: session}\n${allowed}`);
    live = await openLive(site, [
      calls("load_skill", { name: "deploy" }),
      calls("show", {}),
      says("a"),
      says("b"),
    ]);
    await live.turn("go");
    assertEquals(results(), ['loaded skill "deploy" (1 specialized tools registered)', "data one\n[]\n"]);
    assertEquals(live.of("skill.loaded").map((s) => s.tools), [["skill.deploy.show"]]);
    assertEquals(offered(), ["show"]);
  });

  test("are what they were when the skill was loaded, until it is loaded again", async () => {
    policy(`skills: {scope: session}\n${allowed}`);
    const load = calls("load_skill", { name: "deploy" });
    live = await openLive(site, [load, says("a"), calls("show", {}), says("b"), load, says("c")]);
    await live.turn("one");
    tools([tool("list", "true")]);
    assertEquals(await adopt(), []);
    assertEquals(offered(), ["show"]);
    await live.turn("two");
    assertEquals(results().at(-1), "data one\n[]\n");
    await live.turn("three");
    assertEquals(offered(), ["list"]);
    assertEquals(live.of("skill.loaded").map((s) => s.tools), [["skill.deploy.show"], ["skill.deploy.list"]]);
  });

  test("are there after a resume, as long as the skill is", async () => {
    policy(`skills: {scope: session}\n${allowed}`);
    live = await openLive(site, [calls("load_skill", { name: "deploy" }), says("a")]);
    await live.turn("one");
    const { id } = live.session;
    live.session.close();
    live = await openLive(site, [calls("show", {}), says("b")], { resume: id });
    assertEquals(offered(), ["show"]);
    await live.turn("two");
    assertEquals(results(), ["data one\n[]\n"]);
  });

  test("of a forced skill are there from the first request on", async () => {
    policy(`skills: {forced: [{skill: deploy, when: session}]}\n${allowed}`);
    live = await openLive(site, [calls("show", {}), says("a")]);
    await live.turn("one");
    assertEquals(results(), ["data one\n[]\n"]);
  });

  test("fit the bound of their own skill and not that of another", async () => {
    site.put(
      "home/.config/writ/skills/other/SKILL.md",
      skillText("other", "Other.", "allowed_tools: [read_file]\n"),
    );
    policy(allowed);
    const replies = [calls("show", {}), says("a")];
    live = await openLive(site, [...replies, ...replies]);
    await live.turn("one", ["deploy"]);
    await live.turn("two", ["deploy", "other"]);
    assertEquals(live.of("permission.resolved").map((p) => [p.tool, p.decision, p.reason.slice(0, 31)]), [
      ["skill.deploy.show", "allow", "allow by rule user.allow[0] (sk"],
      ["skill.deploy.show", "deny", "tool not in skill.allowed_tools"],
    ]);
  });

  test("of a skill that runs as a fork are offered in the fork", async () => {
    site.put(`${folder}/SKILL.md`, skillText("deploy", "Deploys.", "mode: fork\n"));
    live = await openLive(site, [
      calls("load_skill", { name: "deploy" }),
      calls("show", {}),
      says("from the fork"),
      calls("show", {}),
      says("a"),
    ]);
    await live.turn("one");
    assertEquals(results().map((r) => r.slice(0, 14)), ["data one\n[]\n", "from the fork", "no tool `show`"]);
  });

  test("of a project are not run once a file beside them has changed since the workspace was trusted", async () => {
    site.drop(folder);
    const inside = "ws/.writ/skills/deploy";
    site.put(`${inside}/SKILL.md`, skillText("deploy"));
    site.put(`${inside}/tools.json`, JSON.stringify([tool("show", "cat ./data.txt")]));
    site.put(`${inside}/data.txt`, "data one\n");
    await site.trust();
    live = await openLive(site, [calls("show", {}), says("a"), calls("show", {}), says("b")]);
    await live.turn("one", ["deploy"]);
    site.put(`${inside}/data.txt`, "data two\n");
    await live.turn("two", ["deploy"]);
    const [first, second] = results();
    assertEquals(first, "data one\n");
    assertStringIncludes(second ?? "", "has changed since its workspace was trusted");
  });

  test("say where they come from when they are called too early", async () => {
    live = await openLive(site, [calls("show", {}), says("a")]);
    await live.turn("one");
    assertStringIncludes(results()[0] ?? "", "no tool `show`: it comes with the skill `deploy`");
  });
});

describe("a pinned skill", () => {
  const pinned = (more = "") =>
    policy(`skills: {scope: session, pins: {deploy: "${hash()}"}${more}}\n${allowed}`);
  const load = calls("load_skill", { name: "deploy" });

  test("is rendered, read and run from a private copy of the bytes that were hashed", async () => {
    pinned();
    site.put(`${folder}/notes.md`, "notes one\n");
    pinned();
    live = await openLive(site, [
      load,
      calls("show", {}),
      calls("read_skill_file", { skill: "deploy", path: "notes.md" }),
      says("a"),
    ]);
    await live.turn("one");
    assertEquals(results().slice(1), ["data one\n[]\n", "notes one\n"]);
    assertEquals(live.of("skill.loaded").map((s) => s.pin), [hash()]);
    assertEquals(readdirSync(join(site.top, "home/.local/state/writ/pinned")), [hash().slice(7)]);
  });

  test("that changed is not loaded again, and the session goes on with what was loaded", async () => {
    pinned();
    const before = hash();
    live = await openLive(site, [
      load,
      says("a"),
      load,
      calls("show", {}),
      calls("read_skill_file", { skill: "deploy", path: "data.txt" }),
      says("b"),
      load,
      calls("show", {}),
      says("c"),
    ]);
    await live.turn("one");
    site.put(`${folder}/SKILL.md`, skillText("deploy", "Deploys.", "", "Version two.\n"));
    site.put(`${folder}/data.txt`, "data two\n");
    await live.turn("two");
    const [, refused, shown, read] = results();
    for (const said of [before, hash(), "look at what changed"]) assertStringIncludes(refused ?? "", said);
    assertEquals([shown, read], ["data one\n[]\n", "data one\n"]);
    // Seen anew between turns, it leaves the catalog, and what was loaded still stands.
    assertEquals(await adopt(), []);
    assertEquals(live.session.agent.catalog.absent.map((a) => [a.name, a.code]), [[
      "deploy",
      "pin-mismatch",
    ]]);
    await live.turn("three");
    assertEquals(results().slice(-2).map((r) => r.slice(0, 10)), ["the skill ", "data one\n["]);
    assertStringIncludes(JSON.stringify(live.request().messages), "Version one.");
  });

  test("whose copy was changed is run from the folder's bytes again, if they still have the hash", async () => {
    pinned();
    live = await openLive(site, [load, calls("show", {}), says("a"), calls("show", {}), says("b")]);
    await live.turn("one");
    const copy = join(site.top, "home/.local/state/writ/pinned", hash().slice(7), "data.txt");
    chmodSync(copy, 0o600);
    site.put(copy.slice(site.top.length), "data three\n");
    await live.turn("two");
    assertEquals(results().slice(1), ["data one\n[]\n", "data one\n[]\n"]);
  });

  test("that does not have its hash is not in the catalog, and a forced one refuses the start", async () => {
    pinned();
    site.put(`${folder}/data.txt`, "data two\n");
    const settings = await site.settings();
    assertEquals(loadCatalog(settings).errors.map((e) => e.code), ["pin-mismatch"]);
    const text = readFileSync(join(site.top, "policy.yaml"), "utf8");
    site.put("policy.yaml", text.replace("scope: session", "forced: [{skill: deploy, when: session}]"));
    const error = await assertRejects(() => openLive(site, [says("a")]), Error);
    for (const said of ["the forced skill `deploy` is not available", hash(), "is pinned at"]) {
      assertStringIncludes((error as Error).message, said);
    }
  });

  test("with a link in its folder has no hash", async () => {
    pinned();
    symlinkSync("/etc/passwd", join(site.top, folder, "link"));
    const [error] = loadCatalog(await site.settings()).errors;
    assertStringIncludes(error?.message ?? "", "`link` is a link; a pinned folder holds files only");
  });

  test("leaves nothing behind where none is pinned", async () => {
    live = await openLive(site, [load, says("a")]);
    await live.turn("one");
    assertEquals(existsSync(join(site.top, "home/.local/state/writ/pinned")), false);
  });
});

describe("secrets of a skill", () => {
  const token = "a-secret-of-some-length";
  const secret = (source: string) => policy(`skills: {secrets: {deploy: {TOKEN: ${source}}}}\n${allowed}`);
  const replies = [calls("show", {}), calls("shell", { command: "printenv" }), says("a")];

  async function log(): Promise<string> {
    live = await openLive(site, replies);
    await live.turn("one", ["deploy"]);
    return readFileSync(live.session.logPath, "utf8");
  }

  const sources: readonly (readonly [string, string, () => void])[] = [
    ["the environment", "{env: DEPLOY_TOKEN}", () => env({ DEPLOY_TOKEN: token, TOKEN: "of-the-parent" })],
    ["a file", "{file: token}", () => site.put("token", `${token}\n`)],
    ["a command", `{command: [/bin/sh, -c, "echo ${token}"]}`, () => {}],
  ];
  for (const [name, source, make] of sources) {
    test(`from ${name} reaches its command tools, and no log`, async () => {
      make();
      secret(source);
      const text = await log();
      assertEquals(results()[0]?.replace("DEPLOY_TOKEN", "key"), "data one\n[[redacted:key]]\n");
      assert(!text.includes(token));
      assert(!JSON.stringify(live?.request()).includes(token));
    });
  }

  test("reaches no other skill and no shell", async () => {
    env({ DEPLOY_TOKEN: token, PATH: "/usr/bin:/bin" });
    policy(
      `skills: {secrets: {other: {TOKEN: {env: DEPLOY_TOKEN}}}}\npermissions: {allow: [skill.deploy.show, shell(printenv)]}\n`,
    );
    site.put(`${folder}/SKILL.md`, skillText("deploy", "Deploys.", "allowed_tools: [shell]\n"));
    await log();
    assertEquals(results()[0], "data one\n[]\n");
    assertEquals(/^HOME=/m.test(results()[1] ?? ""), true);
    assertEquals(/TOKEN/.test(results()[1] ?? ""), false);
  });

  const missing: readonly (readonly [string, string, string])[] = [
    [
      "a variable that is not set",
      "{env: DEPLOY_TOKEN}",
      "the environment variable `DEPLOY_TOKEN` is not set",
    ],
    ["a file that is missing", "{file: token}", "could not be read (ENOENT)"],
    ["a command that fails", "{command: [/bin/false]}", "the command ended with status 1"],
    [
      "a value that is too short to be kept out of the log",
      "{command: [/bin/echo, short]}",
      "fewer than 8 characters",
    ],
  ];
  for (const [name, source, said] of missing) {
    test(`from ${name} fails the call and not the start`, async () => {
      secret(source);
      await log();
      const [first] = live?.of("tool.completed") ?? [];
      assertEquals([first?.ok, first?.code], [false, "secret_missing"]);
      assertStringIncludes(first?.result ?? "", "the secret `TOKEN` of the skill `deploy` is missing");
      assertStringIncludes(first?.result ?? "", said);
    });
  }
});

test("what looks like a credential in a SKILL.md is said when it is loaded, and not shown", async () => {
  const leaked = `ghp_${"a".repeat(36)}`;
  site.put(`${folder}/SKILL.md`, skillText("deploy", "Deploys.", "", `Use ${leaked}.\n`));
  live = await openLive(site, [says("a")]);
  await live.turn("one", ["deploy"]);
  assertEquals(live.of("skill.registry_error").map((e) => [e.code, e.message.slice(0, 45)]), [
    ["credential", "line 5 holds what looks like a github-token: "],
  ]);
  assert(!readFileSync(live.session.logPath, "utf8").includes(leaked));
});
