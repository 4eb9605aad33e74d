// `writ session export`: the record as it is, to be kept or checked elsewhere.
import { cpSync, existsSync, mkdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { exitCodes } from "../../core/outcome.ts";
import { plural } from "../../core/plural.ts";
import { checkChain } from "../../store/chain.ts";
import { forksOf } from "../../store/fork_links.ts";
import { cannot, findLog, logPath, readLog } from "../../store/session_files.ts";
import type { Context } from "../command.ts";
import { reportSlip } from "../result.ts";
import type { DirOptions, Site } from "./session.ts";

export function exportSession(
  context: Context,
  { dir }: Site,
  id: string,
  options: DirOptions & { readonly to?: string },
): number {
  const { output, host } = context;
  const path = logPath(dir, id);
  const bytes = readLog(path);
  const { events, damage } = checkChain(bytes);
  if (options.to === undefined) {
    // Its lines are for machines: a terminal would obey what is in them.
    if (host.stdoutIsTerminal) {
      return reportSlip(
        output,
        "the log goes to a pipe or a file, or with `--to FOLDER` into a folder",
        false,
      );
    }
    output.result(new TextDecoder().decode(bytes));
  } else {
    const to = resolve(host.cwd, options.to);
    if (existsSync(to)) return reportSlip(output, `\`${to}\` is there already; name a new folder`, false);
    const copied = copyTo(dir, to, [id, ...forksOf(events)]);
    output.note(
      output.safe(`${plural(copied, "session")} in ${to}; writ session verify --dir ${to} checks them`),
    );
  }
  if (damage === undefined) return exitCodes.done;
  output.note(output.safe(`error: ${path}:${damage.line}: ${damage.message}; it was exported as it is`));
  return exitCodes.audit;
}

function copyTo(dir: string, to: string, ids: readonly string[]): number {
  let copied = 0;
  try {
    mkdirSync(to, { recursive: true, mode: 0o700 });
    for (const id of ids) {
      const log = findLog(dir, id);
      if (log === undefined) continue;
      // Locks are of the place; links are nobody's in there.
      cpSync(dirname(log), join(to, id), {
        recursive: true,
        filter: (path) => !/[\\/]lock\.[\d-]+$/.test(path),
      });
      copied++;
    }
  } catch (error) {
    throw cannot("export to", to, error);
  }
  return copied;
}
