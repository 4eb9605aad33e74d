// `writ session repair`: makes a log that does not hold one that does, and says what that cost.
import { exitCodes } from "../../core/outcome.ts";
import { plural } from "../../core/plural.ts";
import { repairLog } from "../../store/salvage.ts";
import type { Context } from "../command.ts";
import { lockOptions } from "../../session/file_lock.ts";
import { toJsonLine } from "../json_line.ts";
import type { DirOptions, Site } from "./session.ts";

export async function repair(
  context: Context,
  { dir }: Site,
  id: string,
  options: DirOptions & { readonly dryRun?: boolean },
): Promise<number> {
  const look = options.dryRun === true;
  const ts = new Date().toISOString();
  const done = repairLog({ dir, ts, look, ...await lockOptions() }, id);
  if (options.json === true) {
    context.output.result(
      toJsonLine({ id, ...(done === undefined ? { repaired: false } : { repaired: !look, ...done }) }),
    );
    return exitCodes.done;
  }
  if (done === undefined) {
    context.output.result(`${id}: holds; nothing was done\n`);
    return exitCodes.done;
  }
  const lost = done.lost === 0 ? "none is known to be lost" : `${plural(done.lost, "event")} lost`;
  context.output.result(
    context.output.safe(
      `${id}: ${look ? "would keep" : "kept"} ${
        plural(done.kept, "event")
      }, ${lost}; ${done.bytes} bytes are no event of it; the log as it was ${
        look ? "would stay as" : "is"
      } ${done.savedAs}\n`,
    ),
  );
  return exitCodes.done;
}
