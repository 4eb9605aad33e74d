// Secrets in every place that Writ could come across, plain, in base64 and in hexadecimal: none reaches the log, the model, or
// what is printed.
import { test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { Buffer } from "node:buffer";
import { chmodSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { type Ended, eventsOf, type Machine, soundLog, withMachine } from "../support/machine.ts";
import { type PlannedResponse, withMessagesServer } from "../support/messages_server.ts";
import { root } from "../support/runtimes.ts";

/** By where it is planted. Those of files have a shape that is known; the others are known by their place. */
const canaries = {
  key: "model-key-c4n4ry-0001",
  environment: "env-c4n4ry-0002 with blanks",
  named: "named-c4n4ry-0003",
  keyfile: "file-c4n4ry-0004",
  home: "ghp_c4n4ry0005abcdefghijklmnopqrstuvwxyz",
  output: "sk-ant-c4n4ry0006-abcdefghijklmnop",
  skillFolder: "xoxb-c4n4ry0007-abcdefgh",
  skillSecret: "skill-c4n4ry-0008",
  header: "header-c4n4ry-0009",
  netrc: "netrc-c4n4ry-0010",
} as const;

function forms(value: string): readonly string[] {
  const bytes = Buffer.from(value);
  return [value, bytes.toString("base64"), bytes.toString("hex")];
}

// Without the end of base64, which depends on what follows.
function hits(where: string, text: string): readonly string[] {
  return Object.entries(canaries).flatMap(([name, value]) =>
    forms(value).some((form) => text.toLowerCase().includes(form.toLowerCase().replace(/.?=*$/, "")))
      ? [`${name} in ${where}`]
      : []
  );
}

function written(m: Machine): readonly string[] {
  const state = join(m.top, "state");
  assert(existsSync(state));
  return readdirSync(state, { recursive: true, withFileTypes: true }).filter((f) => f.isFile())
    .map((f) => join(f.parentPath, f.name))
    // What was replaced is kept as it was: DESIGN §8.
    .filter((file) => !file.includes("/before/"))
    .flatMap((file) => hits(file, readFileSync(file, "latin1")));
}

test("no canary in the log, in what the model was sent, or in what was printed", async () => {
  await withMachine(async (m) => {
    plantAll(m);
    const call = (tool: string, input: object, id: string): PlannedResponse => ({
      blocks: [
        {
          text: `I know ${canaries.environment} and ${Buffer.from(canaries.key).toString("base64")}.`,
          pieces: 9,
        },
        { tool, input: input as never, id },
      ],
    });
    const plan: readonly PlannedResponse[] = [
      call("shell", { command: "env" }, "t1"),
      call("shell", { command: "cat everything.txt" }, "t2"),
      call("read_file", { path: "everything.txt" }, "t3"),
      call("search_text", { pattern: "c4n4ry" }, "t4"),
      call("load_skill", { name: "keeper", arguments: canaries.named }, "t5"),
      call("read_skill_file", { skill: "keeper", path: "notes.txt" }, "t6"),
      call("show", {}, "t7"),
      call("mcp.odd.echo", { text: canaries.header }, "t8"),
      call("write_file", { path: "copy.txt", content: `x ${canaries.environment}` }, "t9"),
      call("write_file", { path: "copy.txt", content: "x [redacted:PLANTED_TOKEN]" }, "t10"),
      call("git_diff", {}, "t11"),
      call("shell", { command: "cat long.txt" }, "t12"),
      {
        status: 400,
        body: { type: "error", error: { type: "invalid_request_error", message: canaries.key } },
      },
      {
        blocks: [{ text: `Done: ${Object.values(canaries).filter((c) => c !== canaries.netrc).join(", ")}` }],
      },
    ];
    const said: Ended[] = [];
    await withMessagesServer(plan, async (server) => {
      const policy = m.write(
        "policy.yaml",
        `version: 1
model: {name: m, base_url: "${server.url}", retries: 0}
sandbox: {mode: "off"}
skills: {undeclared_tools: unbounded, secrets: {keeper: {PLAIN_NAME: {file: ${m.top}/skill-secret}}}}
secrets: {redact: {env: [PLANTED]}}
permissions:
  default: {read: allow, write: allow, execute: ask}
  allow: ["shell(env)", "shell(cat *)", "skill.keeper.show", "mcp.odd.*"]
mcp_servers:
  odd: {command: [${process.execPath}, ${root}/test/support/mcp/real_server.ts], tools: {echo: read}, required: false}
`,
      );
      const env = {
        ANTHROPIC_API_KEY: canaries.key,
        PLANTED_TOKEN: canaries.environment,
        PLANTED: canaries.named,
        HEADER_TOKEN: canaries.header,
        KEYFILE_PASSWORD: canaries.keyfile,
        SKILL_SECRET: canaries.skillSecret,
      };
      const run = async (...args: readonly string[]) => {
        const ran = await m.writ(args, { env });
        said.push(ran);
        return ran;
      };
      await run(
        "run",
        "--policy",
        policy,
        "--trust",
        `with ${canaries.environment} and ${canaries.named}, go`,
      );
      await run(
        "run",
        "--policy",
        policy,
        "--trust",
        "--json",
        "--continue",
        `once more with ${canaries.output}`,
      );
      const events = await soundLog(m);
      // It did what it was asked to: every tool that could tell was there.
      assertEquals(
        eventsOf(events, "tool.completed").filter((e) => e.data.ok).map((e) => e.data.tool).filter((t) =>
          !t.startsWith("mcp.")
        ),
        [
          "shell",
          "shell",
          "read_file",
          "search_text",
          "load_skill",
          "read_skill_file",
          "skill.keeper.show",
          "write_file",
          "git_diff",
          "shell",
        ],
        JSON.stringify(
          eventsOf(events, "tool.completed").map((
            e,
          ) => [e.data.tool, e.data.ok, e.data.result.slice(0, 200)]),
        ),
      );
      const id = m.ids()[0] ?? "";
      for (const args of [["show", id], ["show", id, "--events"], ["list"], ["export", id]]) {
        await run("session", ...args);
      }
      await run("skill", "show", "keeper", "--policy", policy);
      await run("skill", "lint", join(m.top, "config/writ/skills/keeper"));
      await run("policy", "show", "--policy", policy);
      await run("explain", "--policy", policy, "--message", `say ${canaries.environment}`);
      // Of the requests all but the header that carries the key.
      const bodies = server.requests.map((r) =>
        JSON.stringify({ ...r, headers: r.headers.filter(([name]) => name !== "authorization") })
      );
      assertEquals(bodies.flatMap((text, i) => hits(`request ${i}`, text)), []);
      assert(server.requests.length >= 13);
    });
    assertEquals(
      said.flatMap((s, i) => [...hits(`stdout ${i}`, s.stdout), ...hits(`stderr ${i}`, s.stderr)]),
      [],
    );
    assertEquals(written(m), []);
  });
});

function plantAll(m: Machine): void {
  const { home, output, netrc, environment, named, key, keyfile, header, skillSecret, skillFolder } =
    canaries;
  const encoded = [environment, named, key, keyfile, header].flatMap((value) => forms(value));
  m.write("home/.netrc", `machine example.com login me password ${netrc}\n`);
  m.write("home/.token", home);
  m.write("skill-secret", skillSecret);
  m.write(
    "repo/everything.txt",
    `${
      encoded.join("\n")
    }\nc4n4ry ${home}\n${output}\n${skillFolder}\nmachine example.com login me password ${netrc}\n`,
  );
  const filler = "some words ".repeat(20_000);
  m.write("repo/long.txt", `${filler}${environment} ${filler}${output} ${filler}`);
  m.write("repo/src/a.txt", `one\n${environment}\n${output}\n`);
  m.write(
    "config/writ/skills/keeper/SKILL.md",
    `---\nname: keeper\ndescription: Keeps ${skillFolder}.\n---\nUse ${skillFolder} and ${environment}: $ARGUMENTS\n`,
  );
  m.write("config/writ/skills/keeper/notes.txt", `${skillFolder}\n${output}\n`);
  m.write(
    "config/writ/skills/keeper/tools.json",
    JSON.stringify([{
      name: "show",
      description: `Shows ${skillFolder}.`,
      input_schema: { type: "object" },
      command: ["./show.sh"],
    }]),
  );
  const show =
    'env; printf %s "$PLAIN_NAME" | base64; printf %s "$PLAIN_NAME" | od -An -v -tx1 | tr -d \' \\n\'';
  chmodSync(m.write("config/writ/skills/keeper/show.sh", `#!/bin/sh\n${show}\n`), 0o755);
}
