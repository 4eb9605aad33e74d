// argv → verb → exit code. Only what the verb needs is loaded; faults of Writ itself end here with a trace.
import type { Command } from "commander";
import { exitCodes } from "../core/outcome.ts";
import { nearest } from "../core/problem.ts";
import type { CommandModule, Context } from "./command.ts";
import { environmentFaults, readHost } from "./host.ts";
import { Interrupted } from "./interrupt.ts";
import { createOutput } from "./output.ts";
import { hiddenVerbs, verbs } from "./verbs.ts";
import { version } from "../session/version.ts";

export async function runCli(): Promise<number> {
  const host = readHost();
  const color = !host.env["NO_COLOR"] && host.env["TERM"] !== "dumb";
  const output = createOutput({
    results: color && host.stdoutIsTerminal,
    notes: color && host.stderrIsTerminal,
  });
  const code = await runCommand({ host, output });
  const fault = await output.flush();
  if (fault === undefined) return code;
  output.note(`error: cannot write to standard output: ${fault}`);
  await output.flush();
  return code === exitCodes.done ? exitCodes.bug : code;
}

/** What the arguments of the host ask for, to its end, and the exit code. Throws nothing. */
export async function runCommand(context: Context): Promise<number> {
  const { host, output } = context;
  try {
    for (const fault of environmentFaults(host.env)) {
      output.note(`error: ${fault}`);
      return exitCodes.usage;
    }
    return await dispatch(context);
  } catch (error) {
    if (error instanceof Interrupted) return exitCodes.interrupted;
    output.note(output.safe(error instanceof Error ? error.stack ?? error.message : String(error)));
    output.note("this is an error in writ itself; please report it with the lines above");
    return exitCodes.bug;
  }
}

async function dispatch(context: Context): Promise<number> {
  const [first, ...rest] = context.host.args;
  if (first === "--version" || first === "-V" || (first === "version" && rest.length === 0)) {
    context.output.result(`writ ${version}\n`);
    return exitCodes.done;
  }
  if (first === undefined || first === "--help" || first === "-h") {
    context.output.result(overview());
    return first === undefined ? exitCodes.usage : exitCodes.done;
  }
  const verb = [...verbs, ...hiddenVerbs].find((v) => v.name === first);
  if (verb === undefined) {
    const near = nearest(first, verbs.map((v) => v.name));
    const hint = first.includes(" ")
      ? 'to run a prompt: writ run "…"'
      : near === undefined
      ? "writ --help lists the commands"
      : `did you mean \`writ ${near}\`?`;
    context.output.note(context.output.safe(`error: no command \`${first}\`; ${hint}`));
    return exitCodes.usage;
  }
  return await runVerb(await verb.load(), verb.name, rest, context);
}

async function runVerb(
  module: CommandModule,
  name: string,
  args: readonly string[],
  context: Context,
): Promise<number> {
  const { Command, CommanderError } = await import("commander");
  let code: number = exitCodes.done;
  const command: Command = new Command(`writ ${name}`);
  command.exitOverride().showSuggestionAfterError(true).allowExcessArguments(false);
  command.configureOutput({
    writeOut: (text) => context.output.result(text),
    writeErr: (text) => context.output.note(context.output.safe(text.trimEnd())),
  });
  module.define(command, context, (result) => {
    code = result;
  });
  inheritSettings(command);
  try {
    await command.parseAsync(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
  }
  return code;
}

function inheritSettings(command: Command): void {
  for (const child of command.commands) {
    child.copyInheritedSettings(command).allowExcessArguments(false);
    inheritSettings(child);
  }
}

function overview(): string {
  const width = Math.max(...verbs.map((v) => v.usage.length));
  const lines = verbs.map((v) => `  ${v.usage.padEnd(width)}  ${v.summary}`);
  return `writ ${version}: runs an LLM agent under a written policy

Usage: writ <command> [options]

${lines.join("\n")}

Every command takes --help, all but chat --json. Topics: writ help
Results go to standard output, everything else to standard error. Exit codes: writ help exit-codes
`;
}
