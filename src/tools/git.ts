// Writ's own git calls: no hook, filter, pager, helper or transport that a checkout could bring runs in them.
import type { Entered, ToolContext, ToolOutcome } from "../agent/ports.ts";
import type { Box } from "../core/box_plan.ts";
import { isWithin } from "../core/path.ts";
import { run, type RunResult } from "../sandbox/subprocess.ts";
import { failed, failedMidway } from "./tool_outcome.ts";

const settings = [
  "core.fsmonitor=false",
  "core.quotePath=false",
  "core.pager=cat",
  "core.hooksPath=/dev/null",
  // A submodule has settings of its own, which nothing here reaches: git must not start another git in it.
  "diff.submodule=short",
  "diff.ignoreSubmodules=dirty",
  "submodule.recurse=false",
  // Else a diff writes the index when only times have changed.
  "diff.autoRefreshIndex=false",
  "color.ui=false",
  "protocol.allow=never",
  // A checkout that belongs to somebody else is common in containers; nothing in it is run here.
  "safe.directory=*",
].flatMap((setting) => ["-c", setting]);

const timeoutMs = 60_000;

export type Git = {
  (args: readonly string[]): Promise<RunResult>;
};

/** A git that runs in the workspace root, or why there is none. `not_git`: the root is in no working tree. */
export async function openGit(
  at: ToolContext,
): Promise<{ readonly ok: true; readonly git: Git; readonly top: string } | Failed> {
  const entered = at.shell.boxes?.look() ?? { ok: true, env: at.shell.env };
  if (!entered.ok) return failed(entered.code, entered.message);
  const plain = gitWith(at, entered, {});
  const found = await plain(["rev-parse", "--show-toplevel"]);
  if (found.failure?.code === "not_found") {
    return failed("git_missing", "no `git` on PATH: install git, or read the files");
  }
  if (found.exit !== 0) return isNoRepository(found) ? notGit(at) : gitFailed(found);
  const top = found.stdout.replace(/\r?\n$/, "");
  // A setting in the repository can name any folder as its working tree; only one around the root is meant.
  if (!isWithin(at.root, top)) return notGit(at);
  const filters = await plain([
    "config",
    "-z",
    "--name-only",
    "--get-regexp",
    "^filter\\..*\\.(clean|smudge|process|required)$",
  ]);
  // A filter that is not known here would run: no diff without the whole list.
  if (filters.cut) {
    return failed("git_failed", "git was not asked: the repository's settings name too many filters");
  }
  const none = filters.exit === 1 && filters.stdout === "" && filters.stderr === "";
  if (filters.exit !== 0 && !none) return gitFailed(filters);
  const names = filters.stdout.split("\0").filter((name) => name !== "");
  return { ok: true, git: gitWith(at, entered, filtersOff(names)), top };
}

type Failed = ToolOutcome & { readonly ok: false };

// Filters of the repository's configuration are programs, and a diff with the working tree would run them.
function filtersOff(names: readonly string[]): { readonly [name: string]: string } {
  const env: Record<string, string> = { GIT_CONFIG_COUNT: String(names.length) };
  names.forEach((name, i) => {
    env[`GIT_CONFIG_KEY_${i}`] = name;
    env[`GIT_CONFIG_VALUE_${i}`] = name.endsWith(".required") ? "false" : "";
  });
  return env;
}

type In = Extract<Entered, { readonly ok: true }>;

function gitWith(at: ToolContext, { env, box }: In, extra: { readonly [name: string]: string }): Git {
  return plainGit({
    root: at.root,
    env: { ...env, ...extra },
    ...(box === undefined ? {} : { box }),
    maxOutput: 4 * at.shell.maxOutput,
    signal: at.signal,
  });
}

/** Git in that folder, for questions about which no filter of the repository has a say. `maxOutput` as in run(). */
export function plainGit(at: {
  readonly root: string;
  readonly env: ToolContext["shell"]["env"];
  readonly box?: Box;
  readonly maxOutput: number;
  readonly signal: AbortSignal;
}): Git {
  const env = {
    ...at.env,
    LC_ALL: "C.UTF-8",
    GIT_OPTIONAL_LOCKS: "0",
    GIT_NO_LAZY_FETCH: "1",
    // Older versions know only this one, and no setting of the repository outdoes it.
    GIT_ALLOW_PROTOCOL: "none",
    // The home is one that commands write to.
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_TRACE2: "0",
    GIT_TRACE2_EVENT: "0",
    GIT_TRACE2_PERF: "0",
    GIT_TERMINAL_PROMPT: "0",
  };
  return (args) =>
    run(["git", "--no-pager", ...settings, ...args], {
      cwd: at.root,
      env,
      ...(at.box === undefined ? {} : { box: at.box }),
      timeoutMs,
      maxOutput: at.maxOutput,
      signal: at.signal,
    });
}

function isNoRepository(result: RunResult): boolean {
  return result.exit === 128 && /not a git repository|must be run in a work tree/.test(result.stderr);
}

function notGit(at: ToolContext): Failed {
  return failed(
    "not_git",
    `\`${at.root}\` is in no git working tree: there is nothing to compare with; read the files instead`,
  );
}

/** Why a git call gave nothing to work with. */
export function gitFailed(result: RunResult): Failed {
  if (result.cancelled) return failedMidway("cancelled", "cancelled");
  if (result.timedOut) {
    return failedMidway("timeout", `git took longer than ${timeoutMs / 1000} s: narrow the path`);
  }
  const said = result.failure?.message ?? result.stderr.trim().split("\n").slice(-5).join("\n");
  return failed("git_failed", `git failed: ${said}`);
}
