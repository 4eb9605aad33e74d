// `writ session …`: the record of past runs. This file holds the table of its commands and where the record lies.
import { resolve } from "node:path";
import type { Command } from "commander";
import { LogFailure } from "../../agent/ports.ts";
import { exitCodes } from "../../core/outcome.ts";
import type { Policy } from "../../core/policy.ts";
import { sessionsFolder } from "../../load/locate.ts";
import {
  type CommandModule,
  type Context,
  type PolicyOptions,
  positiveInteger,
  withPolicyOptions,
} from "../command.ts";
import { type RunOptions, withAnswerOptions, withTurnOptions } from "../session_options.ts";
import { loadSettings } from "../settings.ts";
import { exportSession } from "./session_export.ts";
import { list } from "./session_list.ts";
import { olderThan, prune } from "./session_prune.ts";
import { repair } from "./session_repair.ts";
import { show } from "./session_show.ts";
import { verify } from "./session_verify.ts";

export const session: CommandModule = {
  define(command, context, done) {
    command.description("read, check, mend and clear away the record of past runs");
    const at = <O extends DirOptions>(
      options: O,
      work: (site: Site, options: O) => number | Promise<number>,
    ) => guarded(context, options, (site) => work(site, options)).then(done);
    withDir(command.command("list")).description("sessions, the newest first")
      .option("--limit <n>", "at most so many", positiveInteger, 50)
      .option("--forks", "also the forks of sessions")
      .action((options) => at(options, (site) => list(context, site, options)));
    withDir(command.command("show <id>")).description("what happened in a session")
      .option("--events", "every event as its log line")
      .action((id, options) => at(options, (site) => show(context, site, id, options)));
    withAnswerOptions(withTurnOptions(command.command("resume <id> [prompt...]")))
      .description("go on with a session: one turn with a prompt, else as a chat")
      .action((id, words, options) => resume(context, id, words, options).then(done));
    withDir(command.command("verify [id]"))
      .description("check the hash chain of one session and its forks, or of all")
      .option("--heads <file>", "what was shipped of audit.heads, in the place of the policy's file")
      .option("--key <file>", "file of the key that signs, in the place of the policy's")
      .option("--anchored", "fail unless every session is anchored")
      .action((id, options) => at(options, (site) => verify(context, site, id, options)));
    withDir(command.command("repair <id>"))
      .description("mend a log that does not hold; the damaged file stays beside it")
      .option("--dry-run", "only say what would be done")
      .action((id, options) => at(options, (site) => repair(context, site, id, options)));
    withDir(command.command("export <id>"))
      .description("the log as it is, byte by byte, on standard output")
      .option("--to <folder>", "a new folder with the log, its head, its forks and what files held before")
      .action((id, options) => at(options, (site) => exportSession(context, site, id, options)));
    withDir(command.command("prune"))
      .description("say which sessions are older than audit.keep; with --yes, remove them")
      .option("--older-than <age>", "days such as 90d, in the place of audit.keep", olderThan)
      .option("--yes", "remove them")
      .action((options) => at(options, (site) => prune(context, site, options)));
  },
};

async function resume(
  context: Context,
  id: string,
  words: readonly string[],
  options: RunOptions,
): Promise<number> {
  const alone = words.length === 0 && options.skill === undefined && context.host.stdinIsTerminal;
  // Both bring the whole loop with them, which no other command here needs.
  if (alone) return await (await import("./chat.ts")).talk(context, { ...options, resume: id });
  return await (await import("./run.ts")).runOnce(context, words, { ...options, resume: id });
}

export type DirOptions = PolicyOptions & { readonly dir?: string };

/** Where the record lies, and what the policy says of it; no policy where it does not load. */
export type Site = { readonly dir: string; readonly audit: Policy["audit"] };

function withDir(command: Command): Command {
  return withPolicyOptions(command).option(
    "--dir <folder>",
    "folder of the sessions, in the place of the policy's",
  );
}

// The record must be readable when the policy is not: then it is looked for where it is kept by default.
async function siteOf(context: Context, options: DirOptions): Promise<Site> {
  const given = options.dir === undefined ? undefined : resolve(context.host.cwd, options.dir);
  const settings = await loadSettings(
    context,
    { ...options, untrusted: options.trust !== true },
    undefined,
    "silent",
  );
  if (settings.ok) {
    const { surroundings, policy } = settings.value;
    return { dir: given ?? sessionsFolder(surroundings, policy.auditDir), audit: policy.audit };
  }
  const dir = given ?? sessionsFolder(context.host, undefined);
  if (settings.problems.some((p) => p.code !== "no-workspace")) {
    context.output.note(
      context.output.safe(`note: the policy does not load (writ policy check); looking in ${dir}`),
    );
  }
  return { dir, audit: {} };
}

async function guarded(
  context: Context,
  options: DirOptions,
  work: (site: Site) => number | Promise<number>,
): Promise<number> {
  try {
    return await work(await siteOf(context, options));
  } catch (error) {
    if (!(error instanceof LogFailure)) throw error;
    context.output.note(context.output.safe(`error: ${error.message}`));
    return error.code === "no_session" || error.code === "session_busy" ? exitCodes.usage : exitCodes.audit;
  }
}
