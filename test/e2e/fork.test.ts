// Skills that run as forks, and the choice of models, through the executable.
import { describe, test } from "bun:test";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { appendFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Event } from "../../src/core/event.ts";
import {
  assertChain,
  type Ended,
  eventsOf,
  eventually,
  type Machine,
  soundLog,
  withMachine,
} from "../support/machine.ts";
import { type MessagesServer, type Plan, withMessagesServer } from "../support/messages_server.ts";

const withKey = { ANTHROPIC_API_KEY: "sk-test-4f5a6b7c8d9e0f1a" };
const prices = "{input: 1000, output: 10000, cache_read: 0, cache_write: 0}";

function skill(m: Machine, name: string, head: string, body = "Do it."): void {
  m.write(
    `skills/${name}/SKILL.md`,
    `---\nname: ${name}\ndescription: Text of ${name}.\n${head}---\n${body}\n`,
  );
}

function policy(m: Machine, model: string, rest = ""): string {
  const sources = "skills:\n  sources: [{path: skills}]\n";
  return m.write(
    "policy.yaml",
    `version: 1\nmodel: ${model}\n${rest.includes("skills:") ? "" : sources}${rest}`,
  );
}

/** A run with these replies. */
async function scripted(
  m: Machine,
  replies: string,
  options: { readonly rest?: string; readonly args?: readonly string[] } = {},
): Promise<Ended> {
  m.write("replies.yaml", replies);
  const file = policy(m, "{provider: script, script: replies.yaml}", options.rest);
  return await m.writ(["run", "--policy", file, ...options.args ?? ["go"]]);
}

/** The session that is nobody's fork, and its forks in order. */
function logs(m: Machine): { readonly root: string; readonly forks: readonly string[] } {
  const ids = [...m.ids()].sort();
  const root = ids.find((id) => !/-f\d+$/.test(id)) ?? "none";
  return { root, forks: ids.filter((id) => id !== root) };
}

const types = (events: readonly Event[]) => events.map((e) => e.type);

describe("a fork", () => {
  const loads = "- call: {load_skill: {name: look, arguments: at it}}\n";
  const inside = "- call: {read_file: {path: src/a.txt}}\n- text: two lines\n";

  test("has a log of its own, linked both ways, and answers the call that asked for it", async () => {
    await withMachine(async (m) => {
      skill(m, "look", "mode: fork\n");
      const ran = await scripted(m, `${loads}${inside}- text: it has two\n`);
      assertEquals([ran.code, ran.stdout], [0, "it has two\n"], ran.stderr);
      const { root, forks } = logs(m);
      assertEquals(forks, [`${root}-f1`]);
      const outer = await soundLog(m, root);
      const inner = await soundLog(m, forks[0]);
      assertChain(outer, [
        "tool.started",
        "fork.started",
        "fork.completed",
        "tool.completed",
        "turn.completed",
      ]);
      assertEquals(types(inner), [
        "session.started",
        "user.message",
        "skill.loaded",
        "context.built",
        "model.completed",
        "model.tool_call_requested",
        "permission.requested",
        "permission.resolved",
        "tool.started",
        "tool.completed",
        "context.built",
        "model.delta",
        "model.completed",
        "skill.completed",
        "skill.unloaded",
        "turn.completed",
      ]);
      const [started] = eventsOf(outer, "fork.started");
      assertEquals(eventsOf(inner, "session.started")[0]?.data.parent, {
        session: root,
        hash: started?.hash ?? "",
        skill: "look",
      });
      const [ended] = eventsOf(outer, "fork.completed");
      assertEquals(ended?.data.hash, inner.at(-1)?.hash);
      assertEquals(eventsOf(inner, "user.message")[0]?.data.content, "at it");
      assertEquals(eventsOf(outer, "tool.completed")[0]?.data.result, "two lines");
    });
  });

  test("stands beside its session in list, show and verify", async () => {
    await withMachine(async (m) => {
      skill(m, "look", "mode: fork\n");
      assertEquals((await scripted(m, `${loads}${inside}- text: it has two\n`)).code, 0);
      const { root, forks: [fork = ""] } = logs(m);
      const rowsOf = async (...args: readonly string[]) => {
        const listed = await m.writ(["session", "list", ...args, "--json"]);
        return JSON.parse(listed.stdout).sessions.map((s: { id: string }) => s.id).sort();
      };
      assertEquals(await rowsOf(), [root]);
      assertEquals(await rowsOf("--forks"), [root, fork]);
      assertStringIncludes((await m.writ(["session", "list", "--forks"])).stdout, `fork of ${root}`);
      assertStringIncludes((await m.writ(["session", "show", root])).stdout, `session ${fork}`);
      assertStringIncludes((await m.writ(["session", "show", fork])).stdout, `fork of ${root}`);
      const resumed = await scripted(m, "- text: x\n", { args: ["--resume", fork, "go on"] });
      assertEquals(resumed.code, 2);
      assertStringIncludes(resumed.stderr, `the session is a fork of \`${root}\``);
      const continued = await scripted(m, "- text: on\n", { args: ["--continue", "go on"] });
      assertEquals([continued.code, continued.stdout], [0, "on\n"], continued.stderr);
      assertEquals((await m.writ(["session", "verify", root])).stdout.trimEnd().split("\n").length, 2);

      const log = m.logPath(fork);
      const whole = readFileSync(log, "utf8");
      writeFileSync(log, whole.split("\n").slice(0, -2).map((l) => `${l}\n`).join(""));
      const cut = await m.writ(["session", "verify", root]);
      assertEquals(cut.code, 8);
      assertStringIncludes(cut.stdout, `the log of its fork ${fork} does not end as it was recorded`);
      rmSync(dirname(log), { recursive: true });
      const gone = await m.writ(["session", "verify", root]);
      assertEquals(gone.code, 8);
      assertStringIncludes(gone.stdout, `the log of its fork ${fork} is not there`);
    });
  });

  test("that is asked for by name runs before the first request", async () => {
    await withMachine(async (m) => {
      skill(m, "look", "mode: fork\n");
      const ran = await scripted(m, "- text: two lines\n- text: it has two\n", {
        args: ["--skill", "look", "--json", "how long is it?"],
      });
      const result = JSON.parse(ran.stdout);
      assertEquals([ran.code, result.result, result.skills], [0, "it has two", ["look"]], ran.stderr);
      const { root, forks: [fork] } = logs(m);
      const outer = await soundLog(m, root);
      assertChain(outer, ["user.message", "fork.started", "fork.completed", "context.built"]);
      assertEquals(eventsOf(m.events(fork), "user.message")[0]?.data.content, "how long is it?");
      assertStringIncludes(eventsOf(outer, "fork.completed")[0]?.data.text ?? "", "two lines");
    });
  });

  test("shares the calls of the turn", async () => {
    await withMachine(async (m) => {
      skill(m, "look", "mode: fork\n");
      const many =
        '- calls: [{read_file: {path: src/a.txt}}, {read_file: {path: "."}}, {read_file: {path: x}}]\n';
      const ran = await scripted(m, `${loads}${many}- text: done\n`, { rest: "limits: {tool_calls: 3}\n" });
      const { root, forks: [fork] } = logs(m);
      // The call that asked for it is one of the three.
      assertEquals(eventsOf(m.events(fork), "limit.reached").map((e) => e.data), [
        { limit: "tool_calls", value: 4, cap: 3 },
      ]);
      assertEquals(ran.code, 0, ran.stderr);
      const [result] = eventsOf(m.events(root), "tool.completed");
      assertEquals([result?.data.ok, result?.data.code], [false, "fork_failed"]);
    });
  });

  test("in which a call is denied ends a strict run, and an unanswered ask decides its exit code", async () => {
    await withMachine(async (m) => {
      skill(m, "look", "mode: fork\nallowed_tools: [read_file, write_file]\n");
      const writes = "- call: {write_file: {path: b.txt, content: x}}\n- text: tried\n";
      const strict = await scripted(m, `${loads}${writes}- text: done\n`, { args: ["--strict", "go"] });
      assertEquals(strict.code, 5, strict.stderr);
      assertEquals(eventsOf(m.events(logs(m).root), "model.completed").length, 1);
      const lax = await scripted(m, `${loads}${writes}- text: done\n`);
      assertEquals([lax.code, lax.stdout], [5, "done\n"]);
    });
  });

  test("in every request is a problem with its place", async () => {
    await withMachine(async (m) => {
      skill(m, "look", "mode: fork\n");
      const rest = "skills:\n  sources: [{path: skills}]\n  forced:\n    - {skill: look, when: session}\n";
      const ran = await scripted(m, "- text: x\n", { rest });
      assertEquals(ran.code, 2);
      assertMatch(ran.stderr, /policy\.yaml:6:7: error: the skill `look` runs as a fork/);
      assertEquals(m.ids(), []);
    });
  });

  test("that was cut by a crash leaves a session that goes on", async () => {
    await withMachine(async (m) => {
      skill(m, "look", "mode: fork\nallowed_tools: [shell]\n");
      const rest = 'sandbox: {mode: "off"}\npermissions: {allow: ["shell(sleep *)"]}\n';
      m.write("replies.yaml", `${loads}- call: {shell: {command: sleep 30}}\n`);
      const file = policy(m, "{provider: script, script: replies.yaml}", rest);
      const running = m.start(["run", "--policy", file, "go"]);
      await running.until("stderr", "→ shell");
      await eventually(() =>
        logs(m).forks.length > 0 && types(m.events(logs(m).forks[0])).includes("tool.started")
      );
      running.kill("SIGKILL");
      await running.ended;
      const { root, forks: [fork = ""] } = logs(m);
      // A write that was cut off in the fork's log as well.
      appendFileSync(m.logPath(fork), '{"seq":');
      const resumed = await scripted(m, "- text: still here\n", {
        rest,
        args: ["--resume", root, "and now?"],
      });
      assertEquals([resumed.code, resumed.stdout], [0, "still here\n"], resumed.stderr);
      const outer = await soundLog(m, root);
      assertEquals(
        eventsOf(outer, "fork.completed").map((e) => [e.data.session, e.data.outcome]),
        [[fork, "interrupted"]],
      );
      assertEquals(eventsOf(m.events(fork), "turn.completed").map((e) => e.data.stopReason), ["interrupted"]);
      assertChain(m.events(fork), [
        "tool.started",
        "session.recovered",
        "tool.interrupted",
        "turn.completed",
      ]);
    });
  }, 60_000);

  test("whose log cannot be made ends the run, and the session goes on later", async () => {
    await withMachine(async (m) => {
      skill(m, "look", "mode: fork\n");
      assertEquals((await scripted(m, "- text: first\n")).code, 0);
      const { root } = logs(m);
      const inTheWay = m.write(`state/writ/sessions/${root}-f1/log.jsonl`, "no log\n");
      const failed = await scripted(m, `${loads}${inside}- text: x\n`, { args: ["--resume", root, "go"] });
      assertEquals([failed.code, failed.stdout], [8, ""]);
      assertStringIncludes(failed.stderr, inTheWay);
      rmSync(dirname(inTheWay), { recursive: true });
      const later = await scripted(m, `${loads}${inside}- text: done\n`, { args: ["--resume", root, "go"] });
      assertEquals([later.code, later.stdout], [0, "done\n"], later.stderr);
      const events = m.events(root);
      assertEquals(eventsOf(events, "fork.completed").map((e) => [e.data.session, e.data.outcome]), [
        [`${root}-f1`, "interrupted"],
        [`${root}-f2`, "unreported"],
      ]);
      assertEquals((await m.writ(["session", "verify", root])).code, 0);
    });
  });

  test("ends with the turn when somebody presses Ctrl-C", async () => {
    await withMachine(async (m) => {
      skill(m, "look", "mode: fork\nallowed_tools: [shell]\n");
      const rest = 'sandbox: {mode: "off"}\npermissions: {allow: ["shell(sleep *)"]}\n';
      m.write("replies.yaml", `${loads}- call: {shell: {command: sleep 30}}\n`);
      const file = policy(m, "{provider: script, script: replies.yaml}", rest);
      const running = m.start(["run", "--policy", file, "go"]);
      await running.until("stderr", "→ shell");
      running.kill("SIGINT");
      assertEquals((await running.ended).code, 130);
      const { root, forks: [fork] } = logs(m);
      await soundLog(m, root);
      for (const id of [root, fork]) {
        assertEquals(eventsOf(m.events(id), "turn.completed").map((e) => e.data.stopReason), ["cancelled"]);
      }
    });
  }, 60_000);
});

type Body = {
  readonly model: string;
  readonly messages: readonly {
    readonly role: string;
    readonly content: readonly { readonly text?: string }[];
  }[];
};
const bodies = (server: MessagesServer): readonly Body[] => server.requests.map((r) => JSON.parse(r.body));
const plainOf = (text: string) => text.replaceAll(',"cache_control":{"type":"ephemeral"}', "");

describe("models", () => {
  const load = {
    blocks: [{ tool: "load_skill", input: { name: "look", arguments: "here" }, id: "toolu_1" }],
  };
  const say = (text: string) => ({ blocks: [{ text }] });
  const choices = `choices: {fast: {name: small-1, prices: ${prices}}}`;

  async function against(
    plan: Plan,
    args: readonly string[],
    head: string,
    rest: string,
    check: (ran: Ended, m: Machine, server: MessagesServer) => Promise<void> | void,
  ): Promise<void> {
    await withMachine(async (m) => {
      skill(m, "look", head);
      await withMessagesServer(plan, async (server) => {
        const file = policy(
          m,
          `{name: big-1, base_url: "${server.url}", prices: ${prices}, ${choices}}`,
          rest,
        );
        await check(await m.writ(["run", "--policy", file, ...args], { env: withKey }), m, server);
      });
    });
  }

  test("a fork asks the model that its skill names, sees all that was said, and counts in the session", async () => {
    const plan = [say("first"), load, say("from the fork"), say("second")];
    const head = "mode: fork\nhistory: full\nmodel: fast\n";
    await withMachine(async (m) => {
      skill(m, "look", head);
      await withMessagesServer(plan, async (server) => {
        const file = policy(m, `{name: big-1, base_url: "${server.url}", prices: ${prices}, ${choices}}`);
        const one = await m.writ(["run", "--policy", file, "one"], { env: withKey });
        const two = await m.writ(["run", "--policy", file, "--continue", "--json", "two"], { env: withKey });
        assertEquals([one.code, two.code], [0, 0], one.stderr + two.stderr);
        assertEquals(bodies(server).map((b) => b.model), ["big-1", "big-1", "small-1", "big-1"]);
        // Each request costs 10 tokens in and 20 out.
        assertEquals(JSON.parse(two.stdout).costUsd, 3 * 0.21);
        assertEquals(JSON.parse(two.stdout).usage, { input: 30, output: 60, cacheRead: 0, cacheWrite: 0 });
        const [, asking, inFork] = bodies(server);
        const shared = asking?.messages.slice(0, -1) ?? [];
        assertEquals(
          plainOf(JSON.stringify(inFork?.messages.slice(0, shared.length))),
          plainOf(JSON.stringify(shared)),
        );
        const last = inFork?.messages.at(-1)?.content.map((b) => b.text ?? "").join("\n") ?? "";
        assertStringIncludes(last, "two\n");
        assertStringIncludes(last, "model anthropic/small-1");
        assertStringIncludes(last, '<skill name="look">');
        const { root, forks: [fork] } = logs(m);
        const [ended] = eventsOf(await soundLog(m, root), "fork.completed");
        assertEquals([ended?.data.costUsd, ended?.data.toolCalls], [0.21, 0]);
        assertEquals(eventsOf(m.events(fork), "session.started")[0]?.data.model, "small-1");
      });
    });
  });

  test("an inline skill's model answers while the skill is active", async () => {
    const plan = [load, say("done")];
    await against(plan, ["go"], "model: fast\n", "", async (ran, m, server) => {
      assertEquals([ran.code, ran.stdout], [0, "done\n"], ran.stderr);
      assertEquals(bodies(server).map((b) => b.model), ["big-1", "small-1"]);
      assertEquals(eventsOf(await soundLog(m), "model.completed").map((e) => e.data.model), [
        undefined,
        "small-1",
      ]);
    });
  });

  test("a model that is none of the choices is the session's, with a warning", async () => {
    await against([load, say("done")], ["go"], "model: opus\n", "", (ran, _m, server) => {
      assertEquals(bodies(server).map((b) => b.model), ["big-1", "big-1"]);
      assertStringIncludes(
        ran.stderr,
        "1 skill asks for a model that is none of model.choices: `look` (`opus`)",
      );
    });
  });

  test("--model takes a choice, and nothing else", async () => {
    await against([say("done")], ["--model", "fast", "go"], "", "", async (ran, m, server) => {
      assertEquals([ran.code, bodies(server).map((b) => b.model)], [0, ["small-1"]], ran.stderr);
      assertEquals(eventsOf(await soundLog(m), "session.started")[0]?.data.model, "small-1");
    });
    await against([], ["--model", "small-1", "go"], "", "", (ran, m, server) => {
      assertEquals([ran.code, server.requests.length, m.ids()], [2, 0, []]);
      assertStringIncludes(ran.stderr, "`small-1` is no model of this policy, which has `default`, `fast`");
    });
  });

  test("the limit on costs counts what forks cost", async () => {
    const plan = [load, say("from the fork"), say("never asked")];
    const rest = "limits: {cost_usd: 0.4}\n";
    await against(plan, ["--json", "go"], "mode: fork\n", rest, async (ran, m, server) => {
      assertEquals([ran.code, server.requests.length], [4, 2], ran.stderr);
      const result = JSON.parse(ran.stdout);
      assertEquals([result.reason, result.costUsd], ["limit", 0.42]);
      const { root } = logs(m);
      assertEquals(eventsOf(await soundLog(m, root), "limit.reached").map((e) => e.data), [
        { limit: "cost_usd", value: 0.42, cap: 0.4 },
      ]);
    });
  });

  test("a limit on costs needs the prices of every model", async () => {
    await withMachine(async (m) => {
      const file = policy(m, "{name: big-1}", "limits: {cost_usd: 1}\n");
      const ran = await m.writ(["run", "--policy", file, "go"]);
      assert(ran.code === 2 && ran.stderr.includes("`limits.cost_usd` needs `model.prices`"), ran.stderr);
    });
  });
});
