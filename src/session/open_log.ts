// Which log a session is recorded in: a new one, or one to go on with.
import { randomBytes } from "node:crypto";
import { LogFailure } from "../agent/ports.ts";
import type { SessionFacts } from "../core/event.ts";
import type { Problem } from "../core/problem.ts";
import { listSessions, startOf } from "../store/session_files.ts";
import { createLog, type Opened, resumeLog } from "../store/session_log.ts";
import type { SessionOptions } from "./session.ts";
import type { SessionStore } from "./session_store.ts";
import type { Settings } from "./settings.ts";

export type OpenedLog = Opened & { readonly id: string; readonly at: SessionStore };

/** A new log, or the one that the options go on with. Throws LogFailure. */
export async function openLog(
  at: SessionStore,
  settings: Settings,
  options: SessionOptions,
): Promise<OpenedLog> {
  const id = options.resume ??
    (options.continue === true ? newestOf(at.dir, settings.policy.root) : undefined);
  if (id !== undefined) return { ...await resumeLog(at.store, id, at.anchor), id, at };
  const fresh = options.fixed?.session ?? newSessionId();
  return { ...await createLog(at.store, fresh, at.anchor), id: fresh, at };
}

function newestOf(dir: string, root: string): string {
  const found = listSessions(dir).find((s) => workspaceOf(s.path) === root);
  if (found === undefined) throw new LogFailure("no_session", `no session of ${root} to continue in ${dir}`);
  return found.id;
}

function workspaceOf(path: string): string | undefined {
  const start = startOf(path);
  // A fork goes on with the session that it belongs to, not by itself.
  return start?.parent === undefined ? start?.workspace : undefined;
}

// Sorts by time; the random part keeps two that start together apart.
function newSessionId(): string {
  const stamp = new Date().toISOString().replace(/[-:T]/g, "").slice(0, 14);
  return `${stamp.slice(0, 8)}-${stamp.slice(8)}-${randomBytes(4).toString("hex")}`;
}

/** Why this user may not go on with a session here. `root` is the workspace as logs name it, redacted. */
export function resumedElsewhere(
  settings: Settings,
  root: string,
  user: string,
  facts: SessionFacts | undefined,
): Problem | undefined {
  if (facts === undefined) return undefined;
  if (facts.parent !== undefined) {
    return {
      code: "fork",
      severity: "error",
      message: `the session is a fork of \`${facts.parent.session}\``,
      hint: "resume that one: a fork does not go on by itself",
    };
  }
  if (facts.workspace !== root) {
    return {
      code: "other-workspace",
      severity: "error",
      message:
        `the session belongs to the workspace \`${facts.workspace}\`, this is \`${settings.policy.root}\``,
      hint: "resume it from there",
    };
  }
  if (facts.actor === user) return undefined;
  return {
    code: "other-user",
    severity: "error",
    message: `the session belongs to the user \`${facts.actor}\`, this is \`${user}\``,
    hint: "a session is resumed by who started it",
  };
}
