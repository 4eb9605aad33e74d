// `writ chat`: turns at the terminal. Ctrl-C cancels a turn; at the prompt, or twice, it ends the chat.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { compact, contextOf, showTokens } from "../../agent/compact.ts";
import { clearSkills } from "../../agent/activate.ts";
import { stopFor } from "../../agent/stop.ts";
import { requestedFault } from "../../agent/triggers.ts";
import { runTurn, type TurnEnd } from "../../agent/turn.ts";
import { contextRoom } from "../../core/budget.ts";
import type { StopReason } from "../../core/event.ts";
import { choiceNames, chooseModel } from "../../core/model_choice.ts";
import { exitCodes } from "../../core/outcome.ts";
import { plural } from "../../core/plural.ts";
import { nearest, showProblems } from "../../core/problem.ts";
import { stateFolder } from "../../load/locate.ts";
import { answerKeeper } from "../answer_keeper.ts";
import { terminalApprover } from "../approver.ts";
import type { CommandModule, Context } from "../command.ts";
import { loadCatalog } from "../../session/catalog.ts";
import { liveView } from "../live_view.ts";
import { withChosenModel } from "../../session/model.ts";
import { openSession } from "../../session/open.ts";
import type { Session } from "../../session/session.ts";
import { sayWarnings } from "../doubts.ts";
import { catchInterrupts, type Interrupt, Interrupted } from "../interrupt.ts";
import { exitOf, reportEnd, reportProblems, reportUsage } from "../result.ts";
import { type TurnOptions, withSessionOptions } from "../session_options.ts";
import { loadSettings } from "../settings.ts";
import { listSkills, viewOf } from "../../session/skill_list.ts";
import { askSkills } from "../../session/skill_words.ts";
import { openTerminal, type Terminal } from "../terminal.ts";

export const chat: CommandModule = {
  define(command, context, done) {
    withSessionOptions(command).description("talk at the terminal, approve at the prompt")
      .action(async (options: TurnOptions) => done(await talk(context, options)));
  },
};

type Chat = {
  readonly context: Context;
  readonly options: TurnOptions;
  readonly session: Session;
  readonly terminal: Terminal;
  readonly interrupt: Interrupt;
  /** What /model or --model asked for. */
  model: string | undefined;
};

export async function talk(context: Context, options: TurnOptions): Promise<number> {
  const { output, host } = context;
  // Questions go to standard error: who cannot see them cannot answer.
  if (!host.stdinIsTerminal || !host.stderrIsTerminal) {
    return reportUsage(
      output,
      "`writ chat` needs a terminal, also for standard error; `writ run` takes a prompt",
      false,
    );
  }
  const historyFile = join(stateFolder(host), "history");
  const interrupt = catchInterrupts();
  const terminal = openTerminal({ history: readHistory(historyFile), onInterrupt: () => interrupt.press() });
  let session: Session | undefined;
  try {
    const loaded = await loadSettings(context, options, {
      terminal: () => terminal,
      signal: interrupt.signal,
    });
    if (!loaded.ok) return reportProblems(output, loaded.problems, false);
    const settings = withChosenModel(loaded.value, options.model);
    if (!settings.ok) return reportProblems(output, settings.problems, false);
    const catalog = loadCatalog(settings.value);
    const opened = await openSession(context.host, settings.value, catalog, {
      ...options,
      mode: "interactive",
      approver: terminalApprover(() => terminal, output),
      keeper: (settings) => answerKeeper(settings, output),
      listeners: [liveView(context)],
    });
    if (!opened.ok) return reportProblems(output, opened.problems, false);
    session = opened.value;
    sayWarnings(context, settings.value, loaded.problems, catalog, session.agent.place.shellRefused);
    output.note(output.paint.dim(output.safe(`session ${session.id}; /help lists the commands`)));
    return await loop({ context, options, session, terminal, interrupt, model: options.model });
  } finally {
    writeHistory(historyFile, terminal.history);
    await session?.close();
    terminal.close();
    interrupt.stop();
  }
}

async function loop(chat: Chat): Promise<number> {
  let last: TurnEnd | undefined;
  for (;;) {
    const signal = chat.interrupt.next();
    let text: string | undefined;
    try {
      text = await chat.terminal.ask("> ", signal);
    } catch {
      text = undefined;
    }
    if (text === undefined) return endOf(chat, last);
    if (text.trim() === "") continue;
    const command = chatCommand(chat, text.trim());
    if (command === "quit") return endOf(chat, last);
    if (command === "handled") continue;
    if (command === "compact") {
      await compactNow(chat);
      continue;
    }
    try {
      await reload(chat);
      last = await take(chat, text) ?? last;
    } catch (error) {
      // Broken off at a question before the turn: the next message may come.
      if (!(error instanceof Interrupted)) throw error;
    }
    // Ctrl-C ends a turn, but who asks the process to end means the chat.
    if (chat.interrupt.received === "SIGTERM") return endOf(chat, last);
  }
}

// A log that could not be written ends a turn, not the chat: there may be room for the next. But a chat whose last turn it
// ended has not ended well.
function endOf({ interrupt }: Chat, last: TurnEnd | undefined): number {
  if (last?.stop === "audit_error") return exitCodes[exitOf(last)];
  return interrupt.received === "SIGTERM" ? exitCodes.terminated : exitCodes.done;
}

async function take(chat: Chat, text: string): Promise<TurnEnd | undefined> {
  const { output, host } = chat.context;
  const { agent } = chat.session;
  const asked = askSkills(viewOf(agent), text, []);
  switch (asked.kind) {
    case "answer":
      output.result(`${asked.text}\n`);
      return undefined;
    case "fault":
      output.note(output.safe(`error: ${asked.message}`));
      return undefined;
    case "clear": {
      const ended = clearSkills(agent, asked.name);
      output.note(output.safe(ended.length === 0 ? "no such skill is loaded" : `ended: ${ended.join(", ")}`));
      return undefined;
    }
    case "reload":
      // Done: skills are looked for before every message.
      output.result(`${listSkills(viewOf(agent))}\n`);
      return undefined;
    case "turn": {
      const fault = await requestedFault(agent, asked.skills);
      if (fault !== undefined) {
        output.note(output.safe(`error: ${fault}`));
        return undefined;
      }
      const end = await runTurn(agent, {
        message: asked.message,
        actor: host.user,
        skills: asked.skills,
        signal: chat.interrupt.signal,
      });
      reportEnd(output, end);
      return end;
    }
  }
}

const commands: readonly { readonly name: string; readonly help: string }[] = [
  { name: "/help", help: "this list" },
  { name: "/status", help: "session, policy, skills, tokens" },
  { name: "/model", help: "/model NAME answers with another of the policy's models; /model lists them" },
  { name: "/compact", help: "cut old results, and have the earlier part of the conversation summed up" },
  {
    name: "/skill",
    help:
      "/skill NAME [arguments] loads one; /skill list, /skill find WORDS, /skill clear [NAME], /skill reload",
  },
  { name: "/grants", help: "answers that were kept for this session" },
  { name: "/quit", help: "end the chat" },
];

// A word with a slash that nobody knows is a slip, not a message for the model.
function chatCommand(chat: Chat, text: string): "quit" | "handled" | "compact" | "message" {
  const { output } = chat.context;
  const word = /^\/[\p{L}\p{N}_-]+(?=\s|$)/u.exec(text)?.[0];
  if (word === undefined || word === "/skill" || word === "/discover-skills") return "message";
  if (word === "/quit" || word === "/exit") return "quit";
  if (word === "/compact") return "compact";
  if (word === "/help") {
    for (const c of commands) output.result(`${c.name.padEnd(8)} ${c.help}\n`);
  } else if (word === "/status") {
    for (const line of statusLines(chat)) output.result(`${output.safe(line)}\n`);
  } else if (word === "/model") {
    chooseModelNow(chat, text.slice(word.length).trim());
  } else if (word === "/grants") {
    const { grants } = chat.session.agent;
    if (grants.length === 0) output.note("no kept answers");
    for (const grant of grants) output.result(`${output.safe(grant.rule)}\n`);
  } else {
    const near = nearest(word, commands.map((c) => c.name));
    output.note(
      output.safe(
        `error: no command ${word}${near === undefined ? "; /help lists them" : `; did you mean ${near}?`}`,
      ),
    );
  }
  return "handled";
}

function chooseModelNow(chat: Chat, name: string): void {
  const { output } = chat.context;
  const { model } = chat.session.agent.policy;
  const chosen = name === "" ? undefined : chooseModel(model, name);
  if (chosen !== undefined) {
    chat.session.useModel(chosen);
    chat.model = name;
    output.note(output.safe(`model ${chosen.name}`));
    return;
  }
  if (name !== "") output.note(output.safe(`error: \`${name}\` is no model of this policy`));
  for (const choice of choiceNames(model)) {
    const settings = chooseModel(model, choice);
    const mark = settings?.name === model.name ? "*" : " ";
    output.result(output.safe(`${mark} ${choice.padEnd(12)} ${settings?.name ?? ""}\n`));
  }
}

// What it did is told by its event.
async function compactNow({ context, session, interrupt }: Chat): Promise<StopReason | undefined> {
  const { output } = context;
  const { agent } = session;
  try {
    const done = await compact(agent, interrupt.signal, true);
    if (!done.ok) output.note(output.safe(`not compacted: ${done.why}`));
    await agent.recorder.sync();
    return undefined;
  } catch (error) {
    const never = new AbortController().signal;
    const stop = stopFor(error, { user: interrupt.signal, deadline: never, policy: agent.policy });
    output.note(output.safe(`not compacted: ${stop.message ?? stop.stop}`));
    return stop.stop;
  }
}

function costLines(costUsd: number | undefined, cap: number | undefined): readonly string[] {
  if (costUsd === undefined && cap === undefined) return [];
  return [`cost     ${costUsd ?? 0} USD${cap === undefined ? "" : ` of ${cap}`}`];
}

function statusLines(chat: Chat): readonly string[] {
  const { agent } = chat.session;
  const { state } = agent.recorder;
  const { tokens, total } = contextOf(agent).report;
  const skills = state.active.map((s) => `${s.name} (${s.trigger}, ${s.scope})`).join(", ");
  return [
    `session  ${chat.session.id}, ${plural(state.turn.number, "turn")}, ${plural(state.seq, "event")}`,
    `policy   ${agent.policy.name ?? "(unnamed)"} ${agent.policy.revision.slice(0, 12)}`,
    `model    ${agent.model.provider}/${agent.policy.model.name || agent.model.provider}`,
    `skills   ${skills === "" ? "none active" : skills}`,
    `tokens   ${state.usage.input} in, ${state.usage.output} out, ${state.usage.cacheRead} from cache`,
    ...costLines(state.costUsd, agent.policy.limits.costUsd),
    `context  ${total} of ${contextRoom(agent.policy.model)} tokens: ${showTokens(tokens)}`,
    `log      ${chat.session.logPath}`,
  ];
}

// Policy files and skills that changed are read at the start of a turn; what does not load leaves the old ones in force.
async function reload(chat: Chat): Promise<void> {
  const { output } = chat.context;
  const asking = { terminal: () => chat.terminal, signal: chat.interrupt.signal };
  const settings = await loadSettings(chat.context, chat.options, asking, "silent");
  const chosen = settings.ok ? withChosenModel(settings.value, chat.model) : settings;
  const problems = chosen.ok ? await chat.session.adopt(chosen.value) : chosen.problems;
  if (problems.length === 0) return;
  for (const line of showProblems(problems)) output.note(output.paint.yellow(output.safe(line)));
  output.note(output.paint.yellow("the changed policy was not taken; the one before stays in force"));
}

function readHistory(file: string): readonly string[] {
  try {
    return existsSync(file) ? readFileSync(file, "utf8").split("\n").flatMap(historyLine).slice(-500) : [];
  } catch {
    return [];
  }
}

// One line that was damaged must not cost the others.
function historyLine(line: string): readonly string[] {
  try {
    const text: unknown = JSON.parse(line);
    return typeof text === "string" ? [text] : [];
  } catch {
    return [];
  }
}

function writeHistory(file: string, history: readonly string[]): void {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(file, history.slice(-500).map((t) => `${JSON.stringify(t)}\n`).join(""), { mode: 0o600 });
  } catch {
    // History is a convenience: a chat that ended well does not fail for it.
  }
}
