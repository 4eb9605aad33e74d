// shell: one command by bash, exactly the text that was judged, in a shell of its own with nothing left behind.
import { lstatSync, readdirSync } from "node:fs";
import type { Inspection, Place, Tool, ToolContext, ToolOutcome } from "../agent/ports.ts";
import { defaultBox } from "../core/box.ts";
import type { Args } from "../core/message.ts";
import { isWithin } from "../core/path.ts";
import { capText, longestCutMark } from "../core/text.ts";
import { shellFacts } from "../shell/shell_facts.ts";
import { bashCall } from "../sandbox/bash.ts";
import { run, type RunResult } from "../sandbox/subprocess.ts";
import { numberArg, textArg } from "./arguments.ts";
import { boxFault, enterBox, withBoxNotes } from "./boxed_call.ts";
import { inspectPath, judgedPath } from "./judged_path.ts";
import { lookedAtOnce, pathFact, realFiles } from "./path_fact.ts";
import { badEnd, endedBadly, exitData } from "./program_end.ts";
import { done, failed, showName, showPath } from "./tool_outcome.ts";

export const shell: Tool = {
  name: "shell",
  description:
    "Run a bash command. Every call is a fresh shell: no cd, variable or background process survives. No terminal, no input.",
  inputSchema: {
    type: "object",
    properties: {
      command: { type: "string" },
      cwd: { type: "string", description: "folder in the workspace" },
      timeout: {
        type: "integer",
        minimum: 1,
        description: "time limit, in seconds",
      },
      box: { type: "string", description: "named sandbox setting" },
    },
    required: ["command"],
    additionalProperties: false,
  },
  inspect,
  async run(args, at) {
    const box = textArg(args, "box") ?? defaultBox;
    const fault = boxFault(box, at);
    if (fault !== undefined) return failed(fault.code, fault.message);
    const entered = enterBox(at.shell, box);
    if (!entered.ok) return failed(entered.code, entered.message);
    const cwd = judgedPath(args, textArg(args, "cwd") ?? at.root, at);
    if (!cwd.ok) return cwd;
    if (!isWithin(cwd.path, at.root)) return failed("cwd_outside", cwdOutside(args, at));
    const asked = numberArg(args, "timeout");
    const timeoutMs = Math.min(
      asked === undefined ? at.shell.timeoutMs : asked * 1000,
      at.shell.maxTimeoutMs,
    );
    const result = await run(bashCall(textArg(args, "command") ?? ""), {
      cwd: cwd.path,
      env: entered.env,
      ...(entered.box === undefined ? {} : { box: entered.box }),
      timeoutMs,
      maxOutput: at.shell.maxOutput,
      signal: at.signal,
    });
    return withBoxNotes(outcome(result, timeoutMs, at), result, box, at);
  },
};

function inspect(args: Args, place: Place): Inspection {
  const box = textArg(args, "box");
  // Judged like the path of a file tool, so that a folder which was swapped since is noticed when the call runs.
  const cwd =
    inspectPath("shell", "execute", args, textArg(args, "cwd") ?? place.root, place).subjects[0].path;
  const outside = cwd.inWorkspace ? [] : [{ code: "cwd_outside", message: cwdOutside(args, place) }];
  const files = lookedAtOnce(realFiles);
  const facts = shellFacts(textArg(args, "command") ?? "", {
    root: place.root,
    home: place.home,
    cwd: cwd.resolved ?? place.root,
    pathFact: (written, from) => pathFact(written, place, from, files),
    list: (folder) => readdirSync(folder),
    exists: (path) => lstatSync(path, { throwIfNoEntry: false }) !== undefined,
    isFolder,
  });
  const refused = boxFault(box, place);
  return {
    risk: facts.risk,
    subjects: facts.subjects,
    ...(box === undefined ? {} : { box }),
    errors: [...(refused === undefined ? [] : [refused]), ...outside, ...facts.errors],
  };
}

function isFolder(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch {
    return false;
  }
}

function cwdOutside(args: Args, place: Place): string {
  return `cwd \`${showName(textArg(args, "cwd") ?? "")}\` is no folder of the workspace \`${place.root}\``;
}

function outcome(result: RunResult, timeoutMs: number, at: ToolContext): ToolOutcome {
  if (result.failure !== undefined) return notStarted(result.failure, at);
  const output = joined(result, at.shell.maxOutput);
  const end = badEnd(result, timeoutMs, advice);
  if (end !== undefined) return endedBadly(end, output, result);
  const partial = result.cut || output.trim() === "";
  return done(output === "" ? "[no output]" : output, {
    data: exitData(result),
    ...(partial ? { partial } : {}),
  });
}

function notStarted(
  failure: { readonly code: string; readonly message: string },
  at: ToolContext,
): ToolOutcome {
  if (failure.code === "not_found") {
    return failed("bash_missing", "no `bash` on PATH: install bash; Writ runs commands with nothing else");
  }
  return failed(
    failure.code,
    failure.code === "no_folder"
      ? `${failure.message}; the workspace is ${showPath(at.root, at)}`
      : failure.message,
  );
}

const advice = {
  timeout: "; give a longer timeout or do less at once",
  output: ": filter its output, or send it to a file",
};

// One after the other, not mixed: which of two pipes was read first is chance, and the record should not hold chance. What the
// collector has cut already is not to be cut once more, so there is room for its mark.
function joined(result: RunResult, cap: number): string {
  const { stdout, stderr } = result;
  if (stderr === "") return capText(stdout, cap + longestCutMark).text;
  const errors = capText(stderr, Math.max(Math.floor(cap / 2), cap - stdout.length) + longestCutMark).text;
  if (stdout === "") return `[stderr]\n${errors}`;
  const output = capText(stdout, Math.max(cap - errors.length, Math.floor(cap / 2)) + longestCutMark).text;
  return `${output}${output.endsWith("\n") ? "" : "\n"}[stderr]\n${errors}`;
}
