// `writ demo`: the real loop, tools, policy and log on a throw-away repository, with a scripted model.
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import process from "node:process";
import { runTurn } from "../../agent/turn.ts";
import { exitCodes } from "../../core/outcome.ts";
import { messageOf } from "../../core/thrown.ts";
import { childEnvironment } from "../../sandbox/environment.ts";
import { checkChain } from "../../store/chain.ts";
import { readLog } from "../../store/session_log.ts";
import { nobody, terminalApprover } from "../approver.ts";
import type { CommandModule, Context } from "../command.ts";
import { loadCatalog } from "../catalog.ts";
import { openSession, type Session } from "../compose.ts";
import houseRules from "../demo/house-rules.md" with { type: "text" };
import demoPolicy from "../demo/policy.yaml" with { type: "text" };
import { makeRepository } from "../demo/repository.ts";
import demoScript from "../demo/script.yaml" with { type: "text" };
import { catchInterrupts } from "../interrupt.ts";
import { renderEvent } from "../render.ts";
import { exitOf, reportEnd, reportProblems, reportUsage } from "../result.ts";
import { loadSettings } from "../settings.ts";
import { askSkills } from "../skill_words.ts";
import { openTerminal, type Terminal } from "../terminal.ts";

type DemoOptions = {
  readonly live?: boolean;
  readonly model?: string;
  readonly baseUrl?: string;
  readonly json?: boolean;
};

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
  const folder = mkdtempSync(join(tmpdir(), "writ-demo-"));
  const say = (text: string) => output.result(`${output.safe(text)}\n`);
  const repository = join(folder, "repository");
  const state = join(folder, "state");
  const env = childEnvironment(host.env, {
    allow: ["PATH", "LANG"],
    home: folder,
    tmp: folder,
    writable: [repository],
  });
  try {
    await makeRepository(repository, env);
  } catch (error) {
    return reportUsage(
      output,
      `the demonstration needs git: ${messageOf(error)}`,
      false,
    );
  }
  const policyFile = writeFiles(folder, options);
  say(
    "This is a demonstration of Writ: the real loop, tools, policy and log, on a throw-away git repository.",
  );
  say(
    live
      ? `The model is ${options.model}.`
      : "No model is called: the replies are read from a script. Everything else is real.",
  );
  say(`\n  repository  ${repository}  (branch discount has a defect that its own test does not see)`);
  say(`  policy      ${policyFile}`);
  say(`  skills      ${join(folder, "skills")}, and those inside the executable`);
  const interrupt = catchInterrupts();
  let terminal: Terminal | undefined;
  let session: Session | undefined;
  try {
    const demoContext: Context = {
      output,
      host: {
        ...host,
        cwd: repository,
        env: {
          ...host.env,
          XDG_STATE_HOME: state,
          XDG_CONFIG_HOME: join(folder, "config"),
          WRIT_POLICY: undefined,
        },
      },
    };
    const settings = await loadSettings(
      demoContext,
      { policy: [policyFile], directory: repository },
      undefined,
    );
    if (!settings.ok) return reportProblems(output, settings.problems, false);
    terminal = live && host.stdinIsTerminal
      ? openTerminal({ history: [], onInterrupt: () => interrupt.press() })
      : undefined;
    const opened = await openSession(demoContext, settings.value, loadCatalog(settings.value), {
      mode: terminal === undefined ? "unattended" : "interactive",
      approver: terminal === undefined ? nobody : terminalApprover(terminal, output),
      ...(live ? {} : { script: join(folder, "script.yaml") }),
      listeners: [(event) => {
        const said = event.type === "model.completed"
          ? event.data.content.flatMap((b) => (b.type === "text" ? b.text.trimEnd().split("\n") : []))
          : [];
        for (const line of said) say(`  ${line}`);
        for (const line of renderEvent(event, output.paintResult)) output.result(`  ${line}\n`);
      }],
    });
    if (!opened.ok) return reportProblems(output, opened.problems, false);
    session = opened.value;
    say(
      `\n  forced skill in force from the first request: ${
        session.agent.recorder.state.active.map((s) => s.name).join(", ")
      }`,
    );
    for (const [index, turn] of turns.entries()) {
      say(`\n${index + 1}. ${turn.title}\n`);
      say(`> ${turn.message}\n`);
      const asked = askSkills(session.agent.catalog, turn.message, []);
      const end = await runTurn(session.agent, {
        message: turn.message,
        actor: host.user,
        skills: asked.kind === "turn" ? asked.skills : [],
        signal: interrupt.next(),
      });
      reportEnd(output, end);
      if (end.stop !== "final") return exitCodes[exitOf(end)];
    }
    return verify(context, session, folder, options);
  } finally {
    session?.close();
    terminal?.close();
    interrupt.stop();
  }
}

function writeFiles(folder: string, options: DemoOptions): string {
  mkdirSync(join(folder, "skills", "house-rules"), { recursive: true });
  writeFileSync(join(folder, "skills", "house-rules", "SKILL.md"), houseRules);
  writeFileSync(join(folder, "script.yaml"), demoScript);
  const policyFile = join(folder, "policy.yaml");
  writeFileSync(policyFile, options.live === true ? livePolicy(options) : demoPolicy);
  return policyFile;
}

// The same policy with a model in the place of the script.
function livePolicy(options: DemoOptions): string {
  const endpoint = options.baseUrl === undefined ? "" : `\n  base_url: ${JSON.stringify(options.baseUrl)}`;
  return demoPolicy.replace(
    /^ {2}provider: script.*\n {2}name: scripted$/m,
    `  provider: anthropic\n  name: ${JSON.stringify(options.model)}${endpoint}`,
  );
}

function verify(context: Context, session: Session, folder: string, options: DemoOptions): number {
  const { output } = context;
  const live = options.live === true;
  const { events, damage, tornBytes } = checkChain(readLog(session.logPath));
  const denied = events.filter((e) => e.type === "permission.resolved" && e.data.decision === "deny").length;
  const allowed =
    events.filter((e) => e.type === "permission.resolved" && e.data.decision === "allow").length;
  const sound = damage === undefined && tornBytes === 0 && existsSync(session.logPath);
  const head = events.at(-1)?.hash.slice(0, 16) ?? "-";
  if (options.json === true) {
    output.result(
      `${
        JSON.stringify({ ok: sound, folder, log: session.logPath, events: events.length, allowed, denied })
      }\n`,
    );
    return sound ? exitCodes.done : exitCodes.audit;
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
  return sound ? exitCodes.done : exitCodes.audit;
}

// How this executable is called from here: in a checkout it is not on the PATH.
function selfCommand({ host }: Context): string {
  const compiled = import.meta.url.includes("$bunfs");
  if (!compiled) return "writ";
  const path = relative(host.cwd, process.execPath);
  return path.startsWith("..") ? process.execPath : `./${path}`;
}
