// `writ chat`: turns at the terminal. Ctrl-C cancels a turn; at the prompt, or twice, it ends the chat.
import { join } from "node:path";
import { clearSkills } from "../../agent/activate.ts";
import { requestedFault } from "../../agent/triggers.ts";
import { runTurn, type TurnEnd } from "../../agent/turn.ts";
import { exitCodes } from "../../core/outcome.ts";
import { showProblems } from "../../core/problem.ts";
import { stateFolder } from "../../load/locate.ts";
import { answerKeeper } from "../answer_keeper.ts";
import { terminalApprover } from "../approver.ts";
import { answerCommand, type Chat } from "../chat_commands.ts";
import type { CommandModule, Context } from "../command.ts";
import { loadCatalog } from "../../session/catalog.ts";
import { readHistory, writeHistory } from "../history.ts";
import { liveView } from "../live_view.ts";
import { openSession } from "../../session/open.ts";
import type { Session } from "../../session/session.ts";
import { sayWarnings } from "../doubts.ts";
import { catchInterrupts, Interrupted } from "../interrupt.ts";
import { exitOf, reportEnd, reportProblems, reportUsage } from "../result.ts";
import { type TurnOptions, withSessionOptions } from "../session_options.ts";
import { loadSettings } from "../settings.ts";
import { listSkills, viewOf } from "../../session/skill_list.ts";
import { askSkills } from "../../session/skill_words.ts";
import { openTerminal } from "../terminal.ts";

export const chat: CommandModule = {
  define(command, context, done) {
    withSessionOptions(command).description("talk at the terminal, approve at the prompt")
      .action(async (options: TurnOptions) => done(await talk(context, options)));
  },
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
    const settings = await loadSettings(context, options, {
      terminal: () => terminal,
      signal: interrupt.signal,
    });
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
    sayWarnings(context, settings.value, settings.problems, catalog, session.agent.place.shellRefused);
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
    const command = await answerCommand(chat, text.trim());
    if (command === "quit") return endOf(chat, last);
    if (command === "answered") continue;
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

// Policy files and skills that changed are read at the start of a turn; what does not load leaves the old ones in force.
async function reload(chat: Chat): Promise<void> {
  const { output } = chat.context;
  const asking = { terminal: () => chat.terminal, signal: chat.interrupt.signal };
  const options = { ...chat.options, model: chat.model };
  const settings = await loadSettings(chat.context, options, asking, "silent");
  const problems = settings.ok ? await chat.session.adopt(settings.value) : settings.problems;
  if (problems.length === 0) return;
  for (const line of showProblems(problems)) output.note(output.paint.yellow(output.safe(line)));
  output.note(output.paint.yellow("the changed policy was not taken; the one before stays in force"));
}
