// `writ session prune`: clears away sessions that nobody needs any more. Nothing else removes any.
import { InvalidArgumentError } from "commander";
import { LogFailure } from "../../agent/ports.ts";
import { exitCodes } from "../../core/outcome.ts";
import { plural } from "../../core/plural.ts";
import { parseRetention, retentionWords } from "../../load/duration.ts";
import { checkChain } from "../../store/chain.ts";
import { removeSession } from "../../store/remove.ts";
import { listSessions, readLog, type SessionSummary, startOf } from "../../store/session_files.ts";
import type { Context } from "../command.ts";
import { lockOptions } from "../../session/file_lock.ts";
import { toJsonLine } from "../json_line.ts";
import { reportSlip } from "../result.ts";
import type { DirOptions, Site } from "./session.ts";

const dayMs = 24 * 60 * 60 * 1000;

export function olderThan(text: string): number {
  const days = parseRetention(text);
  if (days === undefined) throw new InvalidArgumentError(`expected ${retentionWords}`);
  return days;
}

type Family = {
  readonly id: string;
  readonly members: readonly SessionSummary[];
  readonly changedMs: number;
};

export async function prune(
  context: Context,
  { dir, audit }: Site,
  options: DirOptions & { readonly olderThan?: number; readonly yes?: boolean },
): Promise<number> {
  const { output } = context;
  const days = options.olderThan ?? audit.keepDays;
  if (days === undefined) {
    return reportSlip(
      output,
      "no age: the policy sets no `audit.keep`; give one with `--older-than 90d`",
      options.json === true,
    );
  }
  const before = Date.now() - days * dayMs;
  const old = families(dir).filter((f) => f.changedMs < before);
  const lock = await lockOptions();
  const removed: string[] = [];
  const kept: { id: string; why: string }[] = [];
  for (const family of old) {
    const why = whyKept(family) ??
      (options.yes === true ? removeFamily(dir, family, lock) : undefined);
    if (why === undefined) removed.push(family.id);
    else kept.push({ id: family.id, why });
  }
  const verb = options.yes === true ? "removed" : "would remove";
  if (options.json === true) {
    output.result(
      toJsonLine({
        olderThanDays: days,
        dryRun: options.yes !== true,
        [options.yes === true ? "removed" : "wouldRemove"]: removed,
        kept,
      }),
    );
  } else {
    for (const id of removed) output.result(`${verb} ${id}\n`);
    for (const { id, why } of kept) output.note(output.safe(`kept ${id}: ${why}`));
    const more = options.yes === true || removed.length === 0 ? "" : "; --yes removes them";
    output.note(
      `${verb} ${plural(removed.length, "session")} older than ${plural(days, "day")} in ${dir}${more}`,
    );
  }
  return kept.some((k) => k.why.startsWith("cannot")) ? exitCodes.audit : exitCodes.done;
}

// A session and its forks are one record: they go together, and count as young as the youngest.
function families(dir: string): readonly Family[] {
  const all = listSessions(dir);
  const ids = new Set(all.map((s) => s.id));
  const byHead = Map.groupBy(all, (s) => {
    const parent = startOf(s.path)?.parent?.session;
    return parent !== undefined && ids.has(parent) ? parent : s.id;
  });
  return [...byHead].map(([id, members]) => ({
    id,
    members,
    changedMs: Math.max(...members.map((m) => m.changedMs)),
  }));
}

// A record that does not hold is what somebody may have to look at.
function whyKept({ members }: Family): string | undefined {
  for (const { id, path } of members) {
    try {
      const { damage } = checkChain(readLog(path));
      if (damage !== undefined) return `damaged (writ session verify ${id}); remove its folder by hand`;
    } catch (error) {
      if (!(error instanceof LogFailure)) throw error;
      return error.message;
    }
  }
  return undefined;
}

function removeFamily(
  dir: string,
  { id, members }: Family,
  options: Parameters<typeof removeSession>[0],
): string | undefined {
  // The session first: while it is held, none of its forks is in use.
  const order = [...members].sort((a, b) => Number(b.id === id) - Number(a.id === id));
  try {
    for (const member of order) removeSession(options, dir, member.id);
    return undefined;
  } catch (error) {
    if (error instanceof LogFailure) return error.message;
    throw error;
  }
}
