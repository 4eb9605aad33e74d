// Where "always" goes: `policy.d/approved.yaml` of the user's own policy, written by one process at a time.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { AnswerKeeper } from "../agent/ports.ts";
import { grantEntry, type GrantRule } from "../core/grant_rule.ts";
import { isWithin } from "../core/path.ts";
import { messageOf } from "../core/thrown.ts";
import { type ApprovedEntry, approvedName, firstFault, storeApproved } from "../load/approved_file.ts";
import { realOr, userFolder } from "../load/locate.ts";
import { takeLock } from "../store/lock.ts";
import type { Output } from "./output.ts";
import type { Settings } from "../session/settings.ts";
import { version } from "../session/version.ts";

/** For a person at the terminal. Rules count in the workspace of these settings only. */
export function answerKeeper(settings: Settings, output: Output): AnswerKeeper {
  const folder = join(userFolder(settings.surroundings), "policy.d");
  const refused = refusal(settings, folder);
  const kept: GrantRule[] = [];
  return {
    kept,
    ...(refused === undefined ? {} : { refused }),
    async keep(rules) {
      const fault = refused ?? await store(folder, settings.policy.root, rules);
      const file = join(folder, approvedName);
      if (fault === undefined) kept.push(...rules);
      output.note(
        fault === undefined
          ? output.paint.dim(output.safe(`  kept in ${file}`))
          : output.paint.yellow(output.safe(`  not kept for good: ${fault}`)),
      );
      return fault === undefined ? { ok: true } : { ok: false, message: fault };
    },
  };
}

function refusal({ replacedBy, policy }: Settings, folder: string): string | undefined {
  if (replacedBy !== undefined) return `your own policy is replaced by ${replacedBy} in this run`;
  return isWithin(realOr(folder), policy.root)
    ? `your own policy lies in the workspace, where it counts only as far as the workspace is trusted`
    : undefined;
}

/** Undefined when the rules are in the file. */
async function store(
  folder: string,
  workspace: string,
  rules: readonly GrantRule[],
): Promise<string | undefined> {
  const entries = rules.map((rule) => grantEntry(rule, workspace) as ApprovedEntry);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const lock = await lockWithin(join(folder, ".approved.lock"));
    if ("heldBy" in lock) return `${lock.heldBy} is writing ${join(folder, approvedName)}`;
    try {
      const stored = storeApproved(folder, entries, version);
      return stored.ok ? undefined : firstFault(stored.problems);
    } finally {
      lock.release();
    }
  } catch (error) {
    return messageOf(error);
  }
}

// Another process holds it for the time of one small write.
async function lockWithin(path: string): Promise<ReturnType<typeof takeLock>> {
  let lock = takeLock(path);
  for (let attempt = 0; attempt < 50 && "heldBy" in lock; attempt++) {
    await sleep(20);
    lock = takeLock(path);
  }
  return lock;
}
