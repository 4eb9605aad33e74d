import { afterEach, beforeEach, describe, test } from "bun:test";
import { assertEquals } from "@std/assert";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import type { Approver } from "../../src/agent/ports.ts";
import { runTurn } from "../../src/agent/turn.ts";
import type { Event } from "../../src/core/event.ts";
import { showProblem } from "../../src/core/problem.ts";
import type { ScriptReply } from "../../src/provider/script.ts";
import { loadCatalog } from "../../src/session/catalog.ts";
import type { Host } from "../../src/session/host.ts";
import { openSession } from "../../src/session/open.ts";
import type { Session } from "../../src/session/session.ts";
import { readSettings, type Settings } from "../../src/session/settings.ts";
import { checkChain } from "../../src/store/chain.ts";
import { makeSite, says, type Site, skillText } from "../support/skill_session.ts";

const policy = (more = "") =>
  `version: 1
model: {provider: script}
sandbox: {mode: "off"}
workspace: {trust: trusted}
permissions: {allow: ["shell(sleep *)", "shell(pwd)"], ask: ["write_file(*)"]}
${more}`;

let site: Site;
let open: Session[];
beforeEach(() => {
  site = makeSite(policy());
  site.put("home/.config/writ/skills/note/SKILL.md", skillText("note"));
  open = [];
});
afterEach(async () => {
  for (const session of open) await session.close();
  site.remove();
});

/** One user and one state folder, as in a process that serves many; each session in a workspace of its own. */
type Member = {
  readonly mark: string;
  readonly session: Session;
  readonly events: readonly Event[];
  readonly asked: readonly string[];
};

async function settingsIn(name: string, file = "policy.yaml"): Promise<Settings> {
  const cwd = join(site.top, "workspaces", name);
  mkdirSync(join(cwd, ".git"), { recursive: true });
  const host: Host = { ...site.context.host, cwd };
  const settings = await readSettings(host, { policy: [join(site.top, file)] });
  if (!settings.ok) throw new Error(settings.problems.map(showProblem).join("\n"));
  return settings.value;
}

async function enter(
  mark: string,
  settings: Settings,
  replies: readonly ScriptReply[],
  resume?: string,
): Promise<Member> {
  const events: Event[] = [];
  const asked: string[] = [];
  const approver: Approver = {
    async ask({ facts }) {
      asked.push(JSON.stringify(facts.args));
      return { allow: true, answer: { by: "user", scope: "once" } };
    },
  };
  const opened = await openSession(site.context.host, settings, loadCatalog(settings), {
    mode: "interactive",
    approver,
    listeners: [(event) => events.push(event)],
    replies,
    ...(resume === undefined ? {} : { resume }),
  });
  if (!opened.ok) throw new Error(opened.problems.map(showProblem).join("\n"));
  open.push(opened.value);
  return { mark, session: opened.value, events, asked };
}

async function say({ session, mark }: Member, message: string): Promise<string> {
  const { text, stop } = await runTurn(session.agent, {
    message,
    actor: mark,
    skills: [],
    signal: new AbortController().signal,
  });
  return stop === "final" ? text : stop;
}

function call(tool: string, args: { readonly [name: string]: string }): ScriptReply {
  return { text: "", calls: [{ tool, args }], stop: "tool_use" };
}

const marks = Array.from({ length: 20 }, (_, n) => `mark${String.fromCharCode(97 + n)}`);
const repliesOf = (mark: string) => [
  call("shell", { command: "sleep 0.05" }),
  call("shell", { command: "pwd" }),
  call("write_file", { path: "own.txt", content: `${mark}\n` }),
  call("load_skill", { name: "note" }),
  says(`first ${mark}`),
  says(`second ${mark}`),
];

/** Which of the marks are in a text. */
const marksIn = (text: string) => marks.filter((mark) => text.includes(mark));

function signalHandlers(): readonly number[] {
  return ["SIGINT", "SIGTERM", "SIGHUP", "uncaughtException", "unhandledRejection"].map((name) =>
    process.listenerCount(name)
  );
}

describe("twenty sessions in one process, side by side", () => {
  test("each has its own answers, files, questions and log, and leaves nothing open", async () => {
    const before = { handlers: signalHandlers(), cwd: process.cwd() };
    const members = await Promise.all(
      marks.map(async (mark) => enter(mark, await settingsIn(mark), repliesOf(mark))),
    );
    const said = await Promise.all(members.map(async (member) => {
      const first = await say(member, `one for ${member.mark}`);
      assertEquals(await member.session.adopt(await settingsIn(member.mark)), []);
      return [first, await say(member, `two for ${member.mark}`)];
    }));
    assertEquals(said, marks.map((mark) => [`first ${mark}`, `second ${mark}`]));
    await Promise.all(open.splice(0).map((session) => session.close()));

    for (const { mark, session, events, asked } of members) {
      const bytes = readFileSync(session.logPath);
      const { events: logged, damage, tornBytes } = checkChain(bytes);
      assertEquals({ damage, tornBytes }, { damage: undefined, tornBytes: 0 });
      assertEquals(logged, events);
      assertEquals([...new Set(logged.map((e) => e.session))], [session.id]);
      assertEquals(marksIn(bytes.toString("utf8")), [mark]);
      assertEquals(asked, [JSON.stringify({ path: "own.txt", content: `${mark}\n` })]);
      const workspace = join(site.top, "workspaces", mark);
      assertEquals(readFileSync(join(workspace, "own.txt"), "utf8"), `${mark}\n`);
      assertEquals(
        readdirSync(dirname(session.logPath)).filter((name) => name.startsWith("lock")),
        [],
      );
    }
    assertEquals(new Set(members.map((m) => m.session.id)).size, marks.length);
    assertEquals({ handlers: signalHandlers(), cwd: process.cwd() }, before);
  });
});

describe("sessions that share settings and catalog", () => {
  test("a policy that one takes is not the policy of the other", async () => {
    const settings = await settingsIn("shared");
    const [a, b] = [
      await enter("marka", settings, [says("x"), says("code-1")]),
      await enter("markb", settings, [says("x"), says("code-1")]),
    ];
    await Promise.all([say(a, "one"), say(b, "one")]);
    writeFileSync(
      join(site.top, "next.yaml"),
      policy(`secrets: {redact: {patterns: ["code-[0-9]"]}}\nlimits: {iterations: 2}`),
    );
    assertEquals(await a.session.adopt(await settingsIn("shared", "next.yaml")), []);
    assertEquals(await Promise.all([say(a, "code-2"), say(b, "code-2")]), ["[redacted:policy]", "code-1"]);
    assertEquals(
      [a, b].map(({ events }) => events.flatMap((e) => e.type === "user.message" ? [e.data.content] : [])),
      [["one", "[redacted:policy]"], ["one", "code-2"]],
    );
    assertEquals([a, b].map(({ events }) => events.some((e) => e.type === "policy.changed")), [true, false]);
  });

  test("the end of one is not the end of the other", async () => {
    const settings = await settingsIn("shared");
    const a = await enter("marka", settings, [says("a")]);
    const b = await enter("markb", settings, repliesOf("markb"));
    const running = say(b, "go");
    await say(a, "go");
    await a.session.close();
    assertEquals(await running, "first markb");
  });

  test("one that is open here is not opened again, and goes on", async () => {
    const settings = await settingsIn("shared");
    const a = await enter("marka", settings, [says("a"), says("b")]);
    await say(a, "go");
    const again = await enter("marka", settings, [says("c")], a.session.id).catch((e: Error) => e.message);
    assertEquals(
      again,
      `error: session \`${a.session.id}\` is open in process ${process.pid}; end that first [session_busy]`,
    );
    assertEquals(await say(a, "more"), "b");
  });

  test("one that was closed is gone on with in the same process", async () => {
    const settings = await settingsIn("shared");
    const a = await enter("marka", settings, [says("a")]);
    await say(a, "go");
    await a.session.close();
    const again = await enter("marka", settings, [says("b")], a.session.id);
    assertEquals(await say(again, "more"), "b");
    assertEquals(again.session.agent.recorder.state.turn.number, 2);
  });
});
