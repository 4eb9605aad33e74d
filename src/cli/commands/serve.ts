// `writ serve`: many sessions behind the HTTP API, until a signal, a request or the end of its parent takes it down.
import { join, resolve } from "node:path";
import process from "node:process";
import { exitCodes } from "../../core/outcome.ts";
import type { Loaded } from "../../core/problem.ts";
import { codeOf } from "../../core/thrown.ts";
import { readAddress } from "../../http/address.ts";
import { type Server, startServer } from "../../http/server.ts";
import { openHost } from "../../server/open_host.ts";
import { makeToken, openTokens, readTokens } from "../../http/tokens.ts";
import { stateFolder } from "../../load/locate.ts";
import { fault } from "../../session/fault.ts";
import type { Settings } from "../../session/settings.ts";
import { version } from "../../session/version.ts";
import { type CommandModule, type Context, type PolicyOptions, withPolicyOptions } from "../command.ts";
import { toJsonLine } from "../json_line.ts";
import { reportProblems } from "../result.ts";
import { loadSettings } from "../settings.ts";

type ServeOptions = PolicyOptions & {
  readonly listen?: string;
  readonly script?: string;
  readonly parentPid?: string;
  readonly untilStdinCloses?: boolean;
};

export const serve: CommandModule = {
  define(command, context, done) {
    withPolicyOptions(command)
      .description("serve the HTTP API")
      .option("--listen <address>", "`unix:PATH` or `ADDRESS:PORT`, in the place of server.listen")
      .option("--script <file>", "replies from this file instead of a model")
      .option("--parent-pid <pid>", "go down when this process has ended")
      .option("--until-stdin-closes", "go down when standard input is closed")
      .action(async (options: ServeOptions) => done(await serveUntilDown(context, options)));
  },
};

async function serveUntilDown(context: Context, options: ServeOptions): Promise<number> {
  const { output } = context;
  const json = options.json === true;
  const settings = await loadSettings(context, options, undefined);
  if (!settings.ok) return reportProblems(output, settings.problems, json);
  const parent = parentOf(options);
  if (!parent.ok) return reportProblems(output, parent.problems, json);
  const tokens = tokensOf(settings.value);
  if (!tokens.ok) return reportProblems(output, tokens.problems, json);
  const written = options.listen ?? settings.value.policy.server.listen ??
    `unix:${stateFile(settings.value, "writ.sock")}`;
  const { tokenFile, allowRemote } = settings.value.policy.server;
  const address = readAddress(written, { tokenFile: tokenFile !== undefined, allowRemote });
  if (typeof address === "string") return reportProblems(output, fault("usage", address).problems, json);
  const say = (line: string) => output.note(output.safe(line));
  const host = await openHost({
    machine: context.host,
    choice: options,
    note: say,
    ...(options.script === undefined ? {} : { model: scriptedBy(resolve(context.host.cwd, options.script)) }),
  });
  if (!host.ok) return reportProblems(output, host.problems, json);
  const server = await startServer({
    host: host.value,
    settings: settings.value.policy.server,
    address,
    tokens: openTokens(tokens.value.file, (line) => say(`note: ${line}`), {
      forMs: 200,
      now: () => performance.now(),
    }),
    version,
    onFault: (error, request) =>
      say(`error: request ${request}: ${error instanceof Error ? error.stack : error}`),
  });
  if ("fault" in server) {
    await host.value.drain({ graceMs: 0 });
    return reportProblems(output, fault("cannot-listen", server.fault).problems, json);
  }
  announce(context, server, tokens.value, json);
  const stop = watchEnds(server, parent.value, options.untilStdinCloses === true);
  await server.down;
  stop();
  return exitCodes.done;
}

function scriptedBy(script: string): () => { readonly script: string } {
  return () => ({ script });
}

type TokenPlace = { readonly file: string; readonly made: boolean };

function tokensOf(settings: Settings): Loaded<TokenPlace> {
  const { tokenFile } = settings.policy.server;
  const file = tokenFile ?? stateFile(settings, "token");
  try {
    const made = tokenFile === undefined && makeToken(file);
    const { credentials, problems } = readTokens(file);
    const [first] = problems;
    if (first !== undefined) {
      return fault(
        "token-file",
        first.line === 0 ? first.message : `\`${file}\` line ${first.line}: ${first.message}`,
      );
    }
    if (credentials.length === 0) {
      return fault(
        "token-file",
        `\`${file}\` holds no token`,
        "`writ help http` says how its lines are made",
      );
    }
    return { ok: true, value: { file, made }, problems: [] };
  } catch (error) {
    return fault("token-file", `the token cannot be kept in \`${file}\` (${codeOf(error) ?? "unknown"})`);
  }
}

function stateFile({ surroundings }: Settings, name: string): string {
  return join(stateFolder(surroundings), name);
}

function announce({ output }: Context, server: Server, tokens: TokenPlace, json: boolean): void {
  if (json) {
    output.result(toJsonLine({ listening: server.shown, tokenFile: tokens.file, pid: process.pid, version }));
    return;
  }
  output.note(output.safe(`listening at ${server.shown}`));
  output.note(output.safe(`${tokens.made ? "made a token in" : "tokens are in"} ${tokens.file}`));
}

function parentOf({ parentPid }: ServeOptions): Loaded<number | undefined> {
  if (parentPid === undefined) return { ok: true, value: undefined, problems: [] };
  const pid = Number(parentPid);
  if (Number.isInteger(pid) && pid > 1) return { ok: true, value: pid, problems: [] };
  return fault("usage", `\`--parent-pid ${parentPid}\` names no process`, "give the number of one");
}

/** The first signal begins to go down, the second one leaves no more time, the third ends the process. */
function watchEnds(server: Server, parent: number | undefined, stdin: boolean): () => void {
  let signals = 0;
  const onSignal = () => {
    signals++;
    if (signals > 2) process.exit(exitCodes.terminated);
    server.goDown(signals === 1 ? undefined : 0);
  };
  const names = ["SIGTERM", "SIGINT", "SIGHUP"] as const;
  for (const name of names) process.on(name, onSignal);
  const timer = parent === undefined ? undefined : setInterval(() => {
    if (!isAlive(parent)) server.goDown();
  }, 1000);
  const onClose = () => server.goDown();
  if (stdin) {
    process.stdin.on("end", onClose).on("close", onClose).on("error", onClose);
    process.stdin.resume();
  }
  return () => {
    clearInterval(timer);
    for (const name of names) process.off(name, onSignal);
    if (stdin) process.stdin.off("end", onClose).off("close", onClose);
  };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) !== "ESRCH";
  }
}
