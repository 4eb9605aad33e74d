// `writ session list`: sessions by the beginning and the end of their logs; what lies between is not read.
import { dirname } from "node:path";
import { LogFailure } from "../../agent/ports.ts";
import type { Event } from "../../core/event.ts";
import { exitCodes } from "../../core/outcome.ts";
import { plural } from "../../core/plural.ts";
import { escapeLine } from "../../core/text.ts";
import { readHead } from "../../store/head_file.ts";
import { listSessions, readEnd, readStart, type SessionSummary, startOf } from "../../store/session_files.ts";
import type { Context } from "../command.ts";
import { toJsonLine } from "../json_line.ts";
import type { DirOptions, Site } from "./session.ts";

type Row = {
  readonly id: string;
  readonly startedAt: string;
  readonly turns: number;
  readonly events: number;
  /** The last turn has not ended: it runs, or a crash left it. */
  readonly open: boolean;
  /** As far as beginning and end show. */
  readonly damaged: boolean;
  readonly workspace: string;
  readonly message: string;
  readonly parent?: NonNullable<Extract<Event, { type: "session.started" }>["data"]["parent"]>;
  readonly forks: readonly string[];
  readonly log: string;
};

export function list(
  context: Context,
  { dir }: Site,
  options: DirOptions & { readonly limit: number; readonly forks?: boolean },
): number {
  const all = listSessions(dir);
  // One that does not begin soundly may be anything: it is listed.
  const listed = all.filter((s) => options.forks === true || startOf(s.path)?.parent === undefined);
  const rows = listed.slice(0, options.limit).map((s) => rowOf(s, all));
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

function rowOf({ id, path }: SessionSummary, all: readonly SessionSummary[]): Row {
  const { start, end } = look(path);
  const [first] = start;
  const facts = first?.type === "session.started" ? first.data : undefined;
  const message = start.find((e) => e.type === "user.message");
  const { last } = end;
  const named = readHead(dirname(path))?.seq ?? 0;
  return {
    id,
    startedAt: first?.ts ?? "",
    turns: end.inTurn?.turn ?? 0,
    events: last?.seq ?? 0,
    open: last?.turn !== undefined && last.type !== "turn.completed",
    damaged: end.size > end.tornBytes && (first === undefined || last === undefined) ||
      end.tornBytes === 0 && (last?.seq ?? 0) < named,
    workspace: facts?.workspace ?? "",
    message: message?.type === "user.message" ? message.data.content : "",
    ...(facts?.parent === undefined ? {} : { parent: facts.parent }),
    forks: all.map((s) => s.id).filter((other) =>
      other.startsWith(`${id}-f`) && /^\d+$/.test(other.slice(id.length + 2))
    )
      .sort((a, b) => a.length - b.length || (a < b ? -1 : 1)),
    log: path,
  };
}

// One log that cannot be read must not hide the others.
function look(path: string) {
  try {
    return { start: readStart(path, (e) => e.type === "user.message"), end: readEnd(path) };
  } catch (error) {
    if (!(error instanceof LogFailure)) throw error;
    return { start: [], end: { size: 1, tornBytes: 0, last: undefined, inTurn: undefined } };
  }
}
