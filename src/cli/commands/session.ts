// `writ session list|show|verify`: the record of past runs, read without changing it.
import { resolve } from "node:path";
import type { Command } from "commander";
import { LogFailure } from "../../agent/ports.ts";
import { replay } from "../../agent/open.ts";
import type { Event } from "../../core/event.ts";
import { exitCodes } from "../../core/outcome.ts";
import { plural } from "../../core/plural.ts";
import { escapeLine, escapeTerminal } from "../../core/text.ts";
import { sessionsFolder } from "../../load/locate.ts";
import { type ChainReport, checkChain } from "../../store/chain.ts";
import { forksOf, linkFaults } from "../../store/fork_links.ts";
import { listSessions, logPath, readFirstEvent, readLog } from "../../store/session_files.ts";
import {
  type CommandModule,
  type Context,
  type PolicyOptions,
  positiveInteger,
  withPolicyOptions,
} from "../command.ts";
import { renderEvent } from "../render.ts";
import { loadSettings } from "../settings.ts";
import { toJsonLine } from "../json_line.ts";

export const session: CommandModule = {
  define(command, context, done) {
    command.description("read and check the record of past runs");
    withDir(command.command("list")).description("sessions, the newest first")
      .option("--limit <n>", "at most so many", positiveInteger, 50)
      .option("--forks", "also the forks of sessions")
      .action(async (options) => done(await guarded(context, options, (dir) => list(context, dir, options))));
    withDir(command.command("show <id>")).description("what happened in a session")
      .option("--events", "every event as its log line")
      .action(async (id, options) =>
        done(await guarded(context, options, (dir) => show(context, dir, id, options)))
      );
    withDir(command.command("verify [id]")).description(
      "check the hash chain of one session and its forks, or of all",
    )
      .action(async (id, options) =>
        done(await guarded(context, options, (dir) => verify(context, dir, id, options)))
      );
  },
};

type DirOptions = PolicyOptions & { readonly dir?: string };

function withDir(command: Command): Command {
  return withPolicyOptions(command).option(
    "--dir <folder>",
    "folder of the sessions, in the place of the policy's",
  );
}

// The record must be readable when the policy is not: then it is looked for where it is kept by default.
async function folder(context: Context, options: DirOptions): Promise<string> {
  if (options.dir !== undefined) return resolve(context.host.cwd, options.dir);
  const settings = await loadSettings(
    context,
    { ...options, untrusted: options.trust !== true },
    undefined,
    "silent",
  );
  if (settings.ok) return sessionsFolder(settings.value.surroundings, settings.value.policy.auditDir);
  const fallback = sessionsFolder(context.host, undefined);
  if (settings.problems.some((p) => p.code !== "no-workspace")) {
    context.output.note(
      context.output.safe(`note: the policy does not load (writ policy check); looking in ${fallback}`),
    );
  }
  return fallback;
}

async function guarded(
  context: Context,
  options: DirOptions,
  work: (dir: string) => number,
): Promise<number> {
  try {
    return work(await folder(context, options));
  } catch (error) {
    if (!(error instanceof LogFailure)) throw error;
    context.output.note(context.output.safe(`error: ${error.message}`));
    return error.code === "no_session" ? exitCodes.usage : exitCodes.audit;
  }
}

// One log that cannot be read is a finding, and must not hide the others.
function checkLog(path: string): ChainReport {
  try {
    return checkChain(readLog(path));
  } catch (error) {
    if (!(error instanceof LogFailure)) throw error;
    return { events: [], goodBytes: 0, tornBytes: 0, damage: { line: 1, message: error.message } };
  }
}

// One that does not begin soundly may be anything: it is listed.
function isFork(path: string): boolean {
  try {
    const first = readFirstEvent(path);
    return first?.type === "session.started" && first.data.parent !== undefined;
  } catch (error) {
    if (error instanceof LogFailure) return false;
    throw error;
  }
}

function list(
  context: Context,
  dir: string,
  options: DirOptions & { readonly limit: number; readonly forks?: boolean },
): number {
  const listed = listSessions(dir).filter((s) => options.forks === true || !isFork(s.path));
  const rows = listed.slice(0, options.limit).map((s) => {
    const { events, damage } = checkLog(s.path);
    const first = events.find((e) => e.type === "user.message");
    const state = replay(events);
    return {
      id: s.id,
      startedAt: state.startedAt,
      turns: state.turn.number,
      events: events.length,
      open: state.turn.open,
      damaged: damage !== undefined,
      workspace: state.facts?.workspace ?? "",
      message: first?.type === "user.message" ? first.data.content : "",
      ...(state.facts?.parent === undefined ? {} : { parent: state.facts.parent }),
      forks: forksOf(events),
      log: s.path,
    };
  });
  if (options.json === true) {
    context.output.result(toJsonLine({ sessions: rows }));
    return exitCodes.done;
  }
  if (rows.length === 0) context.output.note(`no sessions in ${dir}`);
  for (const row of rows) {
    const state = (row.damaged ? " DAMAGED" : row.open ? " open" : "") +
      (row.parent === undefined ? "" : ` fork of ${escapeLine(row.parent.session)}`);
    const message = escapeLine(row.message);
    context.output.result(
      `${row.id}  ${row.startedAt}  ${plural(row.turns, "turn")}  ${plural(row.events, "event")}${state}  ${
        message.length > 60 ? `${message.slice(0, 59)}…` : message
      }\n`,
    );
  }
  return exitCodes.done;
}

function show(
  context: Context,
  dir: string,
  id: string,
  options: DirOptions & { readonly events?: boolean },
): number {
  const path = logPath(dir, id);
  const { events, damage, tornBytes } = checkChain(readLog(path));
  if (options.events === true || options.json === true) {
    for (const event of events) context.output.result(toJsonLine(event));
  } else {
    for (const event of events) {
      for (const line of describe(context, event)) context.output.result(`${line}\n`);
    }
  }
  if (damage !== undefined) {
    context.output.note(`error: ${path}:${damage.line}: ${damage.message}; what follows is not shown`);
    return exitCodes.audit;
  }
  if (tornBytes > 0) context.output.note(`the last ${tornBytes} bytes are a write that was cut off`);
  return exitCodes.done;
}

function describe(context: Context, event: Event): readonly string[] {
  const paint = context.output.paintResult;
  switch (event.type) {
    case "session.started":
    case "session.resumed": {
      const { policy, model, provider, workspace, parent } = event.data;
      const name = escapeLine(policy.name ?? "(unnamed policy)");
      return [
        paint.bold(`${event.type === "session.started" ? "started" : "resumed"} ${event.ts}`),
        `  policy ${name} ${policy.revision.slice(0, 12)}, model ${
          escapeLine(`${provider}/${model}`)
        }, workspace ${escapeLine(workspace)}`,
        ...(parent === undefined
          ? []
          : [`  fork of ${escapeLine(parent.session)} for the skill ${escapeLine(parent.skill)}`]),
      ];
    }
    case "user.message":
      return ["", ...escapeTerminal(event.data.content).split("\n").map((l) => paint.bold(`> ${l}`))];
    case "model.completed":
      if (event.data.purpose !== undefined) return [];
      return event.data.content.flatMap((b) => (b.type === "text" ? escapeTerminal(b.text).split("\n") : []));
    case "turn.completed":
      return [
        paint.dim(
          `turn ended: ${event.data.stopReason}${
            event.data.message === undefined ? "" : ` (${escapeLine(event.data.message)})`
          }`,
        ),
      ];
    default:
      return renderEvent(event, paint);
  }
}

function withForks(dir: string, id: string): readonly { readonly id: string; readonly path: string }[] {
  const path = logPath(dir, id);
  const forks = forksOf(checkLog(path).events).flatMap((fork) => {
    try {
      return [{ id: fork, path: logPath(dir, fork) }];
    } catch (error) {
      // One that is not there shows in the links of the session.
      if (error instanceof LogFailure) return [];
      throw error;
    }
  });
  return [{ id, path }, ...forks];
}

function verify(context: Context, dir: string, id: string | undefined, options: DirOptions): number {
  const paths = id === undefined
    ? listSessions(dir).map((s) => ({ id: s.id, path: s.path }))
    : withForks(dir, id);
  const reports = paths.map(({ id, path }) => {
    const report = checkLog(path);
    const torn = report.tornBytes > 0 ? `torn: ${report.tornBytes} bytes after the last event` : undefined;
    const [link] = report.damage === undefined ? linkFaults(dir, report.events) : [];
    const fault = report.damage === undefined
      ? torn ?? link
      : `line ${report.damage.line}: ${report.damage.message}`;
    return {
      id,
      path,
      result: fault === undefined ? "consistent" as const : "damaged" as const,
      events: report.events.length,
      head: report.events.at(-1)?.hash ?? null,
      ...(fault === undefined ? {} : { fault }),
    };
  });
  for (const r of reports) {
    const shown = `${r.id}: ${r.result}, ${r.events} events, head ${r.head?.slice(0, 16) ?? "-"}${
      r.fault === undefined ? "" : `; ${r.fault}`
    }`;
    if (options.json !== true) context.output.result(`${shown}\n`);
  }
  if (options.json === true) context.output.result(toJsonLine({ sessions: reports }));
  if (reports.length === 0) context.output.note(`no sessions in ${dir}`);
  return reports.every((r) => r.result === "consistent") ? exitCodes.done : exitCodes.audit;
}
