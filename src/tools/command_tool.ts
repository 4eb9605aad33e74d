// A tool of a skill: one fixed command, run without a shell in the skill's folder, its arguments as JSON on standard input.
import { lstatSync, readdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import type { Inspection, Place, Tool, ToolOutcome } from "../agent/ports.ts";
import { defaultBox } from "../core/box.ts";
import { type CommandTool, toolIdentity } from "../core/command_tool.ts";
import { strongest } from "../core/command_risk.ts";
import type { Subject } from "../core/facts.ts";
import { canonicalJson } from "../core/text.ts";
import { isBelow, isWithin } from "../core/path.ts";
import { messageOf } from "../core/thrown.ts";
import { findProgram } from "../sandbox/program.ts";
import { run, type RunResult, throughPipes } from "../sandbox/subprocess.ts";
import { argvText } from "../shell/argv_text.ts";
import { shellFacts } from "../shell/shell_facts.ts";
import { boxFault, enterBox, withBoxNotes } from "./boxed_call.ts";
import { pathFact } from "./path_fact.ts";
import { type BadEnd, badEnd, endedBadly, exitData } from "./program_end.ts";
import { done, failed, failedMidway } from "./tool_outcome.ts";

/** What a tool has of its skill. */
export type SkillSide = {
  readonly name: string;
  /** Real path of the folder as it was found: what the command is judged in. */
  readonly folder: string;
  /** The box that its commands run in; absent: the default one. */
  readonly box?: string;
  /** The folder to run in; right before each run, since it may have changed. */
  runFolder(): Promise<RunFolder>;
  /** What only this skill's commands get to see, read at each run. */
  secrets(): Promise<SecretValues>;
};
export type RunFolder =
  | { readonly ok: true; readonly folder: string }
  | { readonly ok: false; readonly code: string; readonly message: string };
export type SecretValues =
  | { readonly ok: true; readonly env: { readonly [name: string]: string } }
  | { readonly ok: false; readonly message: string };

export function commandTool(spec: CommandTool, skill: SkillSide): Tool {
  return {
    name: spec.name,
    identity: toolIdentity(skill.name, spec.name),
    description: spec.description,
    inputSchema: spec.inputSchema,
    inspect: (_args, place) => inspect(spec, skill, place),
    async run(args, at) {
      const fault = boxFault(skill.box, at);
      if (fault !== undefined) return failed(fault.code, fault.message);
      const folder = await skill.runFolder();
      if (!folder.ok) return failed(folder.code, folder.message);
      const misled = programFault(spec, folder.folder);
      if (misled !== undefined) return failed("program_outside", misled);
      const secrets = await skill.secrets();
      if (!secrets.ok) return failed("secret_missing", secrets.message);
      const box = skill.box ?? defaultBox;
      // The whole of it, wherever it lies: its own files are what it is there for.
      const entered = enterBox(at.shell, box, [folder.folder]);
      if (!entered.ok) return failed(entered.code, entered.message);
      const timeoutMs = Math.min(spec.timeoutMs ?? at.shell.timeoutMs, at.shell.maxTimeoutMs);
      const where = {
        cwd: folder.folder,
        env: {
          ...entered.env,
          // A program that leaves its cache beside itself would change the folder that the next run is checked against.
          PYTHONDONTWRITEBYTECODE: "1",
          SKILL_WORKSPACE: at.root,
          ...secrets.env,
        },
      };
      const program = findProgram(spec.command[0], where);
      if (typeof program !== "string") return notStarted(spec, program, folder.folder);
      // Arguments come by standard input, which many programs open by its name.
      const piped = typeof findProgram("bash", where) === "string";
      const result = await run(piped ? throughPipes(spec.command) : spec.command, {
        ...where,
        ...(entered.box === undefined ? {} : { box: entered.box }),
        stdin: `${canonicalJson(args)}\n`,
        timeoutMs,
        maxOutput: at.shell.maxOutput,
        signal: at.signal,
      });
      return withBoxNotes(outcome(spec, result, timeoutMs, folder.folder), result, box, at);
    },
  };
}

// The call itself, then its command as a part of a shell text: rules that restrict `shell` meet it at any depth.
function inspect(spec: CommandTool, skill: SkillSide, place: Place): Inspection {
  const facts = shellFacts(argvText(spec.command), {
    root: place.root,
    home: place.home,
    cwd: skill.folder,
    pathFact: (written, from) => pathFact(written, place, from),
    list: (folder) => readdirSync(folder),
    exists: (path) => lstatSync(path, { throwIfNoEntry: false }) !== undefined,
  });
  const refused = boxFault(skill.box, place);
  const misled = programFault(spec, skill.folder);
  return {
    risk: strongest(strongest("execute", spec.risk ?? "execute"), facts.risk),
    ...(skill.box === undefined ? {} : { box: skill.box }),
    subjects: [{ kind: "call" }, ...facts.subjects.flatMap((subject) => ofSkill(subject, skill.folder))],
    errors: [
      ...(refused === undefined ? [] : [refused]),
      ...facts.errors,
      ...(misled === undefined ? [] : [{ code: "program_outside", message: misled }]),
    ],
  };
}

// To read its own files is what a skill's command is there for; rules over these paths still hold.
function ofSkill(subject: Subject, folder: string): readonly Subject[] {
  if (subject.kind === "call") return [];
  if (subject.kind === "part") return [{ ...subject, tool: "shell" }];
  if (subject.kind !== "path" || subject.tool !== "read_file") return [subject];
  const { resolved } = subject.path;
  if (resolved === undefined || !isWithin(resolved, folder)) return [subject];
  const { protectedBy: _, ...path } = subject.path;
  return [{ ...subject, path: { ...path, inWorkspace: true } }];
}

// A link may have been put in the program's place, or in that of the folder, since the file was read.
function programFault({ command: [program] }: CommandTool, folder: string): string | undefined {
  try {
    if (realpathSync(folder) !== folder) return `the skill's folder \`${folder}\` leads somewhere else now`;
    if (!program.includes("/") || isBelow(realpathSync(join(folder, program)), folder)) return undefined;
    return `the program \`${program}\` leads out of the skill's folder`;
  } catch (error) {
    return `the program \`${program}\` cannot be had: ${messageOf(error)}`;
  }
}

/** Characters of standard error that a failed call shows: the end says why. */
const shownErrors = 4000;

function outcome(spec: CommandTool, result: RunResult, timeoutMs: number, folder: string): ToolOutcome {
  if (result.failure !== undefined) return notStarted(spec, result.failure, folder);
  const end = endOf(result, timeoutMs);
  if (end === undefined) {
    const partial = result.cut || result.stdout.trim() === "";
    return done(result.stdout === "" ? "[no output]" : result.stdout, {
      data: exitData(result),
      ...(partial ? { partial } : {}),
    });
  }
  const said = result.stderr.trim() === "" ? result.stdout : result.stderr;
  const last = said.length > shownErrors ? `[…]${said.slice(-shownErrors).toWellFormed()}` : said;
  return endedBadly(end, last, result);
}

function notStarted(
  { command: [program] }: CommandTool,
  failure: { readonly code: string; readonly message: string },
  folder: string,
): ToolOutcome {
  const own = failure.code === "not_found" && !program.includes("/") &&
    lstatSync(join(folder, program), { throwIfNoEntry: false }) !== undefined;
  return failed(
    failure.code,
    own
      ? `${failure.message}; a file of the skill's folder is written \`./${program}\` in its tools.json`
      : failure.message,
  );
}

function endOf(result: RunResult, timeoutMs: number): BadEnd | undefined {
  const end = badEnd(result, timeoutMs);
  // What is no text is no result: a replaced character would pass for what the command said.
  return end === undefined && result.stdout.includes("\ufffd")
    ? { fail: failedMidway, code: "not_text", note: "its output is not UTF-8" }
    : end;
}
