// `writ run`: one turn, the answer on standard output, the exit code says how it ended.
import type { Command } from "commander";
import { runTurn } from "../../agent/turn.ts";
import { exitCodes } from "../../core/outcome.ts";
import { neutralText } from "../../core/text.ts";
import { answerKeeper } from "../answer_keeper.ts";
import { nobody, terminalApprover } from "../approver.ts";
import { loadCatalog } from "../../session/catalog.ts";
import type { CommandModule, Context } from "../command.ts";
import { sayWarnings } from "../doubts.ts";
import { catchInterrupts } from "../interrupt.ts";
import { liveView } from "../live_view.ts";
import { readPrompt } from "../prompt.ts";
import { answerJson, exitOf, reportEnd, reportProblems, reportUsage, resultJson } from "../result.ts";
import { openSession } from "../../session/open.ts";
import type { Session } from "../../session/session.ts";
import { type RunOptions, withAnswerOptions, withSessionOptions } from "../session_options.ts";
import { loadSettings } from "../settings.ts";
import { freshView } from "../../session/skill_list.ts";
import { askSkills } from "../../session/skill_words.ts";
import type { Terminal } from "../terminal.ts";

export const run: CommandModule = {
  define(command, context, done) {
    withRunOptions(command.argument("[prompt...]", "what to do; `-` reads standard input"))
      .description("run one turn and print the answer")
      .action(async (words: string[], options: RunOptions) => done(await runOnce(context, words, options)));
  },
};

export function withRunOptions(command: Command): Command {
  return withAnswerOptions(withSessionOptions(command));
}

export async function runOnce(
  context: Context,
  words: readonly string[],
  options: RunOptions,
): Promise<number> {
  const { output, host } = context;
  const json = options.json === true;
  const prompt = await readPrompt(words);
  if (!prompt.ok && options.skill === undefined) return reportUsage(output, prompt.message, json);
  if (prompt.ok && prompt.note !== undefined) output.note(output.paint.dim(prompt.note));
  const interactive = options.unattended !== true && host.stdinIsTerminal && host.stderrIsTerminal;
  const interrupt = catchInterrupts();
  let terminal: Terminal | undefined;
  // Reading lines costs start-up time that a run without a person need not pay.
  const lines = interactive ? await import("../terminal.ts") : undefined;
  const openOnce = lines &&
    (() => terminal ??= lines.openTerminal({ history: [], onInterrupt: () => interrupt.press() }));
  let session: Session | undefined;
  try {
    const settings = await loadSettings(
      context,
      options,
      openOnce && { terminal: openOnce, signal: interrupt.signal },
    );
    if (!settings.ok) return reportProblems(output, settings.problems, json);
    const catalog = loadCatalog(settings.value);
    const asked = askSkills(
      freshView(settings.value.policy, catalog),
      prompt.ok ? prompt.text : "",
      options.skill ?? [],
    );
    if (asked.kind === "answer") {
      output.result(json ? answerJson(asked.text) : `${asked.text}\n`);
      return exitCodes.done;
    }
    if (asked.kind === "fault") return reportUsage(output, asked.message, json);
    if (asked.kind !== "turn") {
      return reportUsage(output, `\`/skill ${asked.kind}\` is for \`writ chat\``, json);
    }
    const opened = await openSession(context.host, settings.value, catalog, {
      ...options,
      mode: interactive ? "interactive" : "unattended",
      approver: openOnce === undefined ? nobody : terminalApprover(openOnce, output),
      ...(interactive ? { keeper: (settings) => answerKeeper(settings, output) } : {}),
      skills: asked.skills,
      listeners: options.quiet === true || json ? [] : [liveView(context)],
    });
    if (!opened.ok) return reportProblems(output, opened.problems, json);
    session = opened.value;
    if (options.quiet !== true) {
      const { shellRefused } = session.agent.place;
      sayWarnings(context, settings.value, settings.problems, catalog, shellRefused);
    }
    const end = await runTurn(session.agent, {
      message: asked.message,
      actor: host.user,
      skills: asked.skills,
      signal: interrupt.signal,
    });
    if (json) output.result(resultJson(end, session.ref()));
    else {
      if (!host.stdoutIsTerminal || options.quiet === true) {
        // What a script gets ends on a terminal all too often: it has all that belongs to words, and nothing that a terminal
        // obeys. The exact text is in `--json`.
        const shown = host.stdoutIsTerminal ? output.safe(end.text) : neutralText(end.text);
        output.result(shown === "" ? "" : `${shown}\n`);
      }
      reportEnd(output, end);
    }
    return exitCodes[exitOf(end)];
  } finally {
    await session?.close();
    terminal?.close();
    interrupt.stop();
  }
}
