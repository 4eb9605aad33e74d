// MCP servers of a policy through the executable: started, judged, redacted, refused, and gone afterwards.
import { describe, test } from "bun:test";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { eventsOf, eventually, isRunning, type Machine, soundLog, withMachine } from "../support/machine.ts";
import { withMessagesServer } from "../support/messages_server.ts";
import { startHttpServer } from "../support/mcp/http_server.ts";
import { binary, root } from "../support/runtimes.ts";
import { withoutBubblewrap } from "../support/sandbox.ts";

const bun = join(root, "node_modules/.bin/bun");
const real = join(root, "test/support/mcp/real_server.ts");
const odd = join(root, "test/support/mcp/odd_server.ts");
const token = "tok-0123456789abcdef";

/** The arguments that put the policy (without `version`) and the replies in force. */
function args(m: Machine, policy: string, replies: string): readonly string[] {
  m.write("replies.yaml", replies);
  const head = 'version: 1\nmodel: {provider: script, script: replies.yaml}\nsandbox: {mode: "off"}\n';
  return ["--policy", m.write("policy.yaml", head + policy)];
}

const realServer = (tools: string, more = "") =>
  `mcp_servers:\n  real:\n    command: [${bun}, ${real}]\n    tools: {${tools}}\n${more}`;

describe("a server that is a program", () => {
  test("is called under rules and bounds, and its secret stands nowhere", () =>
    withMachine(async (m) => {
      m.write(
        "config/writ/skills/reader/SKILL.md",
        "---\nname: reader\ndescription: Reads.\nallowed-tools: mcp__real__echo\n---\nRead.\n",
      );
      const policy = realServer(
        "echo: read, add: execute, env: read, fail: read",
        "    env: {SERVER_TOKEN: {env: MY_LOGIN}}\npermissions:\n  allow: [mcp.real.add]\n" +
          '  deny: [{id: no-secrets, tool: "mcp.real.*", arg: {text: "*secret*"}}]\n',
      );
      const replies = [
        "- calls: [{mcp.real.echo: {text: hi}}, {mcp.real.add: {a: 1, b: 2}}, {mcp.real.env: {}}, {mcp.real.fail: {}}]",
        "- calls: [{mcp.real.echo: {text: a secret}}, {mcp.real.echo: {txt: x}}, {load_skill: {name: reader}}]",
        "- calls: [{mcp.real.add: {a: 1, b: 2}}, {mcp.real.echo: {text: within}}]",
        "- text: done\n",
      ].join("\n");
      const ran = await m.writ(["run", ...args(m, policy, replies), "go"], { env: { MY_LOGIN: token } });
      assertEquals([ran.code, ran.stdout], [0, "done\n"], ran.stderr);
      const events = await soundLog(m);
      const done = eventsOf(events, "tool.completed").map((
        { data },
      ) => [data.tool, data.ok, data.code ?? data.result]);
      assertEquals(done.filter(([tool]) => tool !== "mcp.real.env" && tool !== "load_skill"), [
        ["mcp.real.echo", true, "hi"],
        ["mcp.real.add", true, '{"sum":3}'],
        ["mcp.real.fail", false, "tool_error"],
        ["mcp.real.echo", false, "denied"],
        ["mcp.real.echo", false, "invalid_arguments"],
        ["mcp.real.add", false, "denied"],
        ["mcp.real.echo", true, "within"],
      ]);
      const [, , env] = eventsOf(events, "tool.completed");
      const [names, shown, folder] = (env?.data.result ?? "").split("\n");
      assertEquals([shown, folder], ["[redacted:key]", m.top]);
      assert(
        names?.includes("MCP_WORKSPACE") && !names.includes("MY_LOGIN") && !names.includes("XDG_"),
        names,
      );
      assert(!readFileSync(m.logPath(), "utf8").includes(token) && !ran.stderr.includes(token));
      const denied = eventsOf(events, "permission.resolved").filter((e) => e.data.decision === "deny");
      assertEquals(denied.map((e) => e.data.causes[0]?.by), ["rule", "bound"]);
    }));

  test("is offered to the model by a name that the API takes", () =>
    withMachine((m) =>
      withMessagesServer([
        { blocks: [{ tool: "mcp__real__echo", input: { text: "over the wire" } }], stop: "tool_use" },
        { blocks: [{ text: "done" }] },
      ], async (server) => {
        const policy = m.write(
          "policy.yaml",
          `version: 1\nmodel: {name: m, base_url: "${server.url}"}\nsandbox: {mode: "off"}\n${
            realServer("echo: read")
          }`,
        );
        const ran = await m.writ(["run", "--policy", policy, "go"], {
          env: { ANTHROPIC_API_KEY: "sk-test-1" },
        });
        assertEquals([ran.code, ran.stdout], [0, "done\n"], ran.stderr);
        const [first, second] = server.requests.map((r) => JSON.parse(r.body));
        assertEquals(first.tools.filter((t: { name: string }) => t.name.startsWith("mcp")), [{
          name: "mcp__real__echo",
          description: "Say it again",
          input_schema: {
            type: "object",
            properties: { text: { type: "string", description: "what to say" } },
            required: ["text"],
            additionalProperties: false,
          },
          cache_control: { type: "ephemeral" },
        }]);
        assertEquals(second.messages.at(-1).content[0].content, "over the wire");
      })
    ));

  test("that is required and cannot be had refuses the start, with the place of each fault", () =>
    withMachine(async (m) => {
      const policy = [
        "mcp_servers:",
        "  gone: {command: [no-such-server], tools: [x], required: true}",
        `  real: {command: [${bun}, ${real}], tools: [echo, missing], required: true}`,
        "  keyed: {url: http://127.0.0.1:1/, headers: {X: {env: NOT_SET}}, tools: [x], required: true}",
        "  spare: {command: [no-such-server], tools: [x]}\n",
      ].join("\n");
      const ran = await m.writ(["run", ...args(m, policy, "- text: done\n"), "go"]);
      const file = join(m.top, "policy.yaml");
      assertEquals([ran.code, ran.stdout, m.ids()], [2, "", []]);
      for (
        const line of [
          `${file}:5:3: error: the required server \`gone\` is not available: no program \`no-such-server\`: it is on no folder of PATH [server-down]`,
          `${file}:7:3: error: the required server \`keyed\` is not available: \`X\` cannot be had: the environment variable \`NOT_SET\` is not set [server-down]`,
        ]
      ) assertStringIncludes(ran.stderr, line);
      assertMatch(
        ran.stderr,
        /policy\.yaml:6:\d+: error: the tool `mcp\.real\.missing` is not available: the server has no such tool; it has `add`, .*\[server-tool-absent\]/,
      );
      assert(!ran.stderr.includes("spare"), ran.stderr);
    }));

  test("is not started where a sandbox is required and none can be had, as no command is", () =>
    withMachine(async (m) => {
      const text = `version: 1\nmodel: {provider: script, script: replies.yaml}\nsandbox: {backend: bwrap}\n${
        realServer("echo: read", "    required: true\n")
      }`;
      m.write("replies.yaml", "- text: done\n");
      const policy = ["--policy", m.write("policy.yaml", text)];
      const ran = await m.program(withoutBubblewrap([binary, "run", ...policy, "go"]));
      assertEquals(ran.code, 2);
      assertStringIncludes(
        ran.stderr,
        "policy.yaml:5:3: error: the required server `real` is not available: it is a program, and there is no sandbox on this machine (bubblewrap: it is not installed); install bubblewrap",
      );
      const checked = await m.program(withoutBubblewrap([binary, "policy", "check", ...policy]));
      assertEquals(checked.code, 0);
      assertStringIncludes(checked.stderr, "policy.yaml:5:3: warning: the server `real` is a program");
    }));

  test("that will not end is gone when the run is over, also when the run is killed politely", () =>
    withMachine(async (m) => {
      const policy = `mcp_servers:\n  odd: {command: [${bun}, ${odd}, stubborn], tools: {do: read}}\n`;
      const once = args(m, policy, "- call: {mcp.odd.do: {}}\n- text: done\n");
      const ran = await m.writ(["run", ...once, "go"]);
      assertEquals([ran.code, ran.stdout], [0, "done\n"], ran.stderr);
      assertEquals(serversOf(m), []);
      m.write("replies.yaml", "- call: {shell: {command: touch there; sleep 300}}\n- text: done\n");
      const open = policy + "permissions: {allow: [shell]}\n";
      const running = m.start([
        "run",
        ...args(m, open, "- call: {shell: {command: touch there && sleep 300}}\n"),
        "go",
      ]);
      await eventually(() => existsSync(join(m.repo, "there")));
      const pids = serversOf(m);
      assertEquals(pids.length, 1);
      running.kill("SIGTERM");
      assertEquals((await running.ended).code, 143);
      assertEquals(pids.filter(isRunning), []);
    }));
});

/** The servers that have this machine's workspace in their environment. */
function serversOf(m: Machine): readonly number[] {
  const found = execFileSync("sh", [
    "-c",
    `grep -lz "^MCP_WORKSPACE=${m.repo}$" /proc/[0-9]*/environ 2>/dev/null || true`,
  ], { encoding: "utf8" });
  return found.split("\n").flatMap((line) => /\/proc\/(\d+)\//.exec(line)?.[1] ?? []).map(Number)
    .filter((pid) => isRunning(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("odd_server"));
}

describe("what the policy lists", () => {
  const servers = "mcp_servers:\n" +
    "  metrics: {command: [no-such-server], tools: {query: read, wipe: destructive}, required: true}\n" +
    "  plain: {url: https://h.example/mcp, tools: [go]}\n" +
    'permissions: {allow: [{tool: mcp.metrics.query, arg: {of: "load*"}}], ask: ["mcp.metrics.query"]}\n';

  test("is shown by check and show, without starting anything", () =>
    withMachine(async (m) => {
      const policy = args(m, servers, "- text: x\n");
      const checked = await m.writ(["policy", "check", ...policy]);
      assertEquals([checked.code, checked.stderr], [0, ""]);
      const file = join(m.top, "policy.yaml");
      assertStringIncludes(
        checked.stdout,
        `server  metrics  required  ${file}:5:3  mcp.metrics.query (read), mcp.metrics.wipe (destructive)\n` +
          `server  plain  optional  ${file}:6:3  mcp.plain.go (execute)\n`,
      );
      const json = JSON.parse((await m.writ(["policy", "check", "--json", ...policy])).stdout);
      assertEquals(json.servers[1], {
        name: "plain",
        at: { file, line: 6, col: 3 },
        required: false,
        tools: { "mcp.plain.go": "execute" },
      });
      const shown = await m.writ(["policy", "show", ...policy]);
      assertMatch(shown.stdout, /^mcp_servers\.metrics\.tools\.wipe: "destructive"$/m);
    }));

  test("is explained with the policy's risk", () =>
    withMachine(async (m) => {
      const policy = args(m, servers, "- text: x\n");
      const explain = async (tool: string, text: string) => {
        const ran = await m.writ(["explain", tool, text, "--json", ...policy]);
        const { effect, risk } = JSON.parse(ran.stdout);
        return [effect, risk];
      };
      assertEquals(await explain("mcp.metrics.query", '{"of": "load of a"}'), ["ask", "read"]);
      assertEquals(await explain("mcp.metrics.wipe", "{}"), ["ask", "destructive"]);
      assertEquals(await explain("mcp.plain.go", "{}"), ["ask", "execute"]);
      const unknown = await m.writ(["explain", "mcp.metrics.other", ...policy]);
      assertEquals(unknown.code, 2);
      assertStringIncludes(unknown.stderr, "mcp.metrics.query, mcp.metrics.wipe, mcp.plain.go");
    }));
});

test("a server over HTTP gets its header from a file, and one that is down takes the skill that needs it along", () =>
  withMachine(async (m) => {
    const http = await startHttpServer("sessions");
    try {
      m.write("key", `${token}\n`);
      m.write(
        "config/writ/skills/needs/SKILL.md",
        "---\nname: needs\ndescription: Needs it.\ntools: [mcp.gone.x]\n---\nUse it.\n",
      );
      const policy = [
        "mcp_servers:",
        `  web: {url: "${http.url}", headers: {Authorization: {file: key, prefix: "Bearer "}}, tools: {echo: read}}`,
        "  gone: {url: http://127.0.0.1:1/mcp, tools: {x: read}}\n",
      ].join("\n");
      const replies =
        `- calls: [{mcp.web.echo: {text: "it is ${token}"}}, {load_skill: {name: needs}}]\n- text: done\n`;
      const ran = await m.writ(["run", ...args(m, policy, replies), "go"]);
      assertEquals([ran.code, ran.stdout], [0, "done\n"], ran.stderr);
      assert(http.requests.every((r) => r.headers["authorization"] === `Bearer ${token}`));
      assertEquals(http.requests.at(-1)?.method, "DELETE");
      const events = await soundLog(m);
      assertEquals(eventsOf(events, "skill.registry_error").map((e) => e.data.code), [
        "server-down",
        "server-down",
      ]);
      assertEquals(eventsOf(events, "tool.completed").map((e) => e.data.code ?? e.data.result), [
        "it is [redacted:key]",
        "unknown_skill",
      ]);
      assertMatch(ran.stderr, /● the server `gone` is not available: .* \[server-down\]/);
    } finally {
      await http.close();
    }
  }));
