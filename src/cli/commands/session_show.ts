// `writ session show`: what happened in a session.
import type { Event } from "../../core/event.ts";
import { exitCodes } from "../../core/outcome.ts";
import { escapeLine, escapeTerminal } from "../../core/text.ts";
import { checkChain } from "../../store/chain.ts";
import { logPath, readLog } from "../../store/session_files.ts";
import type { Context } from "../command.ts";
import { toJsonLine } from "../json_line.ts";
import { renderEvent } from "../render.ts";
import type { DirOptions, Site } from "./session.ts";

export function show(
  context: Context,
  { dir }: Site,
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
