// `writ run`: one turn, the answer on standard output, the exit code says how it ended.
import type { Command } from "commander";
import { runTurn } from "../../agent/turn.ts";
import type { Event } from "../../core/event.ts";
import { exitCodes } from "../../core/outcome.ts";
import { nobody, terminalApprover } from "../approver.ts";
import { loadCatalog } from "../catalog.ts";
import {
  collect,
  type CommandModule,
  type Context,
  type PolicyOptions,
  withPolicyOptions,
} from "../command.ts";
import { catchInterrupts } from "../interrupt.ts";
import { readPrompt } from "../prompt.ts";
import { renderEvent } from "../render.ts";
import { answerJson, exitOf, reportEnd, reportProblems, reportUsage, resultJson } from "../result.ts";
import { openSession, type Session } from "../compose.ts";
import { loadSettings } from "../settings.ts";
import { askSkills } from "../skill_words.ts";
import type { Terminal } from "../terminal.ts";

export type RunOptions = PolicyOptions & {
  readonly skill?: readonly string[];
  readonly script?: string;
  readonly resume?: string;
  readonly continue?: boolean;
  readonly unattended?: boolean;
  readonly strict?: boolean;
  readonly quiet?: boolean;
};

export const run: CommandModule = {
  define(command, context, done) {
    withRunOptions(command.argument("[prompt...]", "what to do; `-` reads standard input"))
      .description("run one turn and print the answer")
      .action(async (words: string[], options: RunOptions) => done(await runOnce(context, words, options)));
  },
};

export function withRunOptions(command: Command): Command {
  return withPolicyOptions(command)
    .option("--skill <name>", "load this skill first (repeatable)", collect)
    .option("--script <file>", "replies from this file instead of a model")
    .option("--resume <id>", "go on with this session")
    .option("--continue", "go on with the newest session of this workspace")
    .option("--unattended", "ask nobody: what would be asked is denied")
    .option("--strict", "a denied call ends the run with exit code 5")
    .option("-q, --quiet", "only the answer");
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
    const asked = askSkills(catalog.catalog, prompt.ok ? prompt.text : "", options.skill ?? []);
    if (asked.kind === "answer") {
      output.result(json ? answerJson(asked.text) : `${asked.text}\n`);
      return exitCodes.done;
    }
    if (asked.kind === "fault") return reportUsage(output, asked.message, json);
    if (asked.kind !== "turn") {
      return reportUsage(output, `\`/skill ${asked.kind}\` is for \`writ chat\``, json);
    }
    const opened = await openSession(context, settings.value, catalog, {
      ...options,
      mode: interactive ? "interactive" : "unattended",
      approver: openOnce === undefined ? nobody : terminalApprover(openOnce(), output),
      keepsAnswers: interactive,
      listeners: options.quiet === true || json ? [] : [liveView(context)],
    });
    if (!opened.ok) return reportProblems(output, opened.problems, json);
    session = opened.value;
    const end = await runTurn(session.agent, {
      message: asked.message,
      actor: host.user,
      skills: asked.skills,
      signal: interrupt.signal,
    });
    if (json) output.result(resultJson(end, session.ref()));
    else {
      if (!host.stdoutIsTerminal || options.quiet === true) {
        output.result(end.text === "" ? "" : `${end.text}\n`);
      }
      reportEnd(output, end);
    }
    return exitCodes[exitOf(end)];
  } finally {
    session?.close();
    terminal?.close();
    interrupt.stop();
  }
}

/** Events as lines on stderr; the model's words stream to stdout when a person looks at it. */
export function liveView(context: Context): (event: Event) => void {
  const { output, host } = context;
  let midLine = false;
  return (event) => {
    if (event.type === "model.delta") {
      if (!host.stdoutIsTerminal) return;
      output.result(output.safe(event.data.text));
      midLine = !event.data.text.endsWith("\n");
      return;
    }
    if (midLine && (event.type === "model.completed" || event.type === "model.failed")) {
      output.result("\n");
      midLine = false;
    }
    for (const line of renderEvent(event, output.paint)) output.note(line);
  };
}
