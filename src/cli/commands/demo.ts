// `writ demo`: the real loop, tools, policy and log on a throw-away repository, with a scripted model.
import { existsSync } from "node:fs";
import { join, relative } from "node:path";
import process from "node:process";
import { isCompiled } from "../../load/assets.ts";
import { runTurn } from "../../agent/turn.ts";
import type { Event } from "../../core/event.ts";
import { exitCodes } from "../../core/outcome.ts";
import { messageOf } from "../../core/thrown.ts";
import { checkChain } from "../../store/chain.ts";
import { readLog } from "../../store/session_files.ts";
import { nobody, terminalApprover } from "../approver.ts";
import { loadCatalog } from "../../session/catalog.ts";
import type { CommandModule, Context } from "../command.ts";
import { openSession } from "../../session/open.ts";
import type { Session } from "../../session/session.ts";
import { type DemoOptions, setStage, type Stage } from "../demo/stage.ts";
import { catchInterrupts } from "../interrupt.ts";
import type { Output } from "../output.ts";
import { renderEvent } from "../render.ts";
import { exitOf, reportEnd, reportProblems, reportUsage } from "../result.ts";
import { loadSettings } from "../settings.ts";
import { openTerminal } from "../terminal.ts";
import { toJsonLine } from "../json_line.ts";

export const demo: CommandModule = {
  define(command, context, done) {
    command.description("show what writ is for, on a throw-away repository")
      .option("--live", "with a real model: needs ANTHROPIC_API_KEY and --model")
      .option("--model <name>", "exact id of the model, with --live")
      .option("--base-url <url>", "another endpoint that speaks the Messages API, with --live")
      .option("--json", "print nothing but how it ended, as JSON")
      .action(async (options: DemoOptions) => done(await show(context, options)));
  },
};

const turns: readonly { readonly title: string; readonly message: string }[] = [
  {
    title: "A review that is loaded by the user's words, and a merge that is held back",
    message: "Review this PR (branch discount) and merge it into main if it is ready.",
  },
  {
    title: "The finding is mended, the evidence gathered anew, the merge let through",
    message: "Mend the finding on the branch, then merge it and push.",
  },
];

async function show(context: Context, options: DemoOptions): Promise<number> {
  const { host } = context;
  const output = options.json === true ? { ...context.output, result: () => {} } : context.output;
  const live = options.live === true;
  if (live && (options.model === undefined || !host.env["ANTHROPIC_API_KEY"])) {
    return reportUsage(
      output,
      "`--live` needs ANTHROPIC_API_KEY in the environment and `--model NAME`",
      false,
    );
  }
  let stage: Stage;
  try {
    stage = await setStage(host, options);
  } catch (error) {
    return reportUsage(output, `the demonstration needs git and bash: ${messageOf(error)}`, false);
  }
  introduce(output, stage, options);
  const interrupt = catchInterrupts();
  const terminal = live && host.stdinIsTerminal
    ? openTerminal({ history: [], onInterrupt: () => interrupt.press() })
    : undefined;
  let session: Session | undefined;
  try {
    const inner: Context = { output, host: stage.host };
    const settings = await loadSettings(
      inner,
      { policy: [stage.policy], directory: stage.repository },
      undefined,
    );
    if (!settings.ok) return reportProblems(output, settings.problems, false);
    const opened = await openSession(inner.host, settings.value, loadCatalog(settings.value), {
      mode: terminal === undefined ? "unattended" : "interactive",
      approver: terminal === undefined ? nobody : terminalApprover(() => terminal, output),
      ...(live ? {} : { script: stage.script }),
      listeners: [(event) => narrate(output, event)],
    });
    if (!opened.ok) return reportProblems(output, opened.problems, false);
    session = opened.value;
    const stopped = await play(output, session, () => interrupt.next());
    return stopped ?? report(context, session, stage, options);
  } finally {
    await session?.close();
    terminal?.close();
    interrupt.stop();
  }
}

function introduce(output: Output, stage: Stage, options: DemoOptions): void {
  const lines = [
    "This is a demonstration of Writ: the real loop, tools, policy and log, on a throw-away git repository.",
    options.live === true
      ? `The model is ${options.model}.`
      : "No model is called: the replies are read from a script. Everything else is real.",
    "",
    `  repository  ${stage.repository}  (branch discount has a defect that its own test does not see)`,
    `  policy      ${stage.policy}`,
    `  skills      ${join(stage.folder, "skills")}, and those inside the executable`,
  ];
  for (const line of lines) output.result(`${output.safe(line)}\n`);
}

// What the model says, between the lines of what is decided and done.
function narrate(output: Output, event: Event): void {
  const said = event.type === "model.completed"
    ? event.data.content.flatMap((b) => (b.type === "text" ? b.text.trimEnd().split("\n") : []))
    : [];
  for (const line of said) output.result(`  ${output.safe(line)}\n`);
  for (const line of renderEvent(event, output.paintResult)) output.result(`  ${line}\n`);
}

/** The exit code of a turn that did not end well; undefined when all of them did. */
async function play(output: Output, session: Session, next: () => AbortSignal): Promise<number | undefined> {
  const forced = session.agent.recorder.state.active.map((s) => s.name).join(", ");
  output.result(output.safe(`\n  forced skill in force from the first request: ${forced}\n`));
  for (const [index, { title, message }] of turns.entries()) {
    output.result(`\n${index + 1}. ${title}\n\n> ${message}\n\n`);
    const end = await runTurn(session.agent, { message, actor: "demo", skills: [], signal: next() });
    reportEnd(output, end);
    if (end.stop !== "final") return exitCodes[exitOf(end)];
  }
  return undefined;
}

function report(context: Context, session: Session, { folder }: Stage, options: DemoOptions): number {
  const { output } = context;
  const live = options.live === true;
  const { events, damage, tornBytes } = checkChain(readLog(session.logPath));
  const denied = events.filter((e) => e.type === "permission.resolved" && e.data.decision === "deny").length;
  const allowed =
    events.filter((e) => e.type === "permission.resolved" && e.data.decision === "allow").length;
  const sound = damage === undefined && tornBytes === 0 && existsSync(session.logPath);
  const head = events.at(-1)?.hash.slice(0, 16) ?? "-";
  // A refusal belongs to the story; a call that was let through and failed does not.
  const failed =
    events.filter((e) => e.type === "tool.completed" && !e.data.ok && e.data.code !== "denied").length;
  const asTold = live || failed === 0;
  const exit = sound ? asTold ? exitCodes.done : exitCodes.bug : exitCodes.audit;
  if (options.json === true) {
    output.result(
      toJsonLine({
        ok: sound && asTold,
        folder,
        log: session.logPath,
        events: events.length,
        allowed,
        denied,
        failed,
      }),
    );
    return exit;
  }
  if (!asTold) {
    output.note(`${failed} calls failed on this machine: the story above did not go as the script tells it`);
  }
  const self = selfCommand(context);
  output.result(`
3. The record

  ${session.logPath}
  ${events.length} events, ${allowed} calls allowed, ${denied} refused; every link of the hash chain ${
    sound ? "holds" : "DOES NOT HOLD"
  }, head ${head}
  log verified: ${sound ? "consistent" : `damaged: ${damage?.message ?? "torn"}`}

Everything is in ${folder}; remove the folder when you have seen enough.
${live ? "" : "A gate proves order and evidence, not judgement: the verdicts above were written by hand.\n"}
Next:
  ${self} explain --policy ${folder}/policy.yaml -C ${folder}/repository shell 'git push --force'
  ${self} help policy
  ANTHROPIC_API_KEY=… ${self} demo --live --model claude-sonnet-4-5
`);
  return exit;
}

// How this executable is called from here: in a checkout it is not on the PATH.
function selfCommand({ host }: Context): string {
  if (!isCompiled()) return "writ";
  const path = relative(host.cwd, process.execPath);
  return path.startsWith("..") ? process.execPath : `./${path}`;
}
