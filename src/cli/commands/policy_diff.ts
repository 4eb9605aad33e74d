// `writ policy diff OLD NEW`: which calls, of past sessions or of the examples, would be decided otherwise.
import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { inspectOffline } from "../../agent/inspect.ts";
import { LogFailure } from "../../agent/ports.ts";
import { standingOf } from "../../agent/standing.ts";
import { decide } from "../../core/decide.ts";
import type { Verdict } from "../../core/decision.ts";
import type { Event } from "../../core/event.ts";
import { explain, type Explanation } from "../../core/explain.ts";
import type { Args } from "../../core/message.ts";
import { exitCodes } from "../../core/outcome.ts";
import { canonicalJson, escapeLine } from "../../core/text.ts";
import { compileAllowedTool } from "../../load/allowed_tool.ts";
import { sessionsFolder } from "../../load/locate.ts";
import { checkChain } from "../../store/chain.ts";
import { logPath, readLog } from "../../store/session_files.ts";
import { checkArguments } from "../../tools/arguments.ts";
import { mainArgument } from "../../core/tool_names.ts";
import { builtinTools } from "../../tools/registry.ts";
import { placeOf } from "../../session/agent_parts.ts";
import { collect, type Context, type PolicyOptions, withPolicyOptions } from "../command.ts";
import { exampleCalls, type PastCall, recordedCalls } from "../recorded_calls.ts";
import { reportProblems, resultVersion } from "../result.ts";
import type { Settings } from "../../session/settings.ts";
import { loadSettings } from "../settings.ts";
import { toJsonLine } from "../json_line.ts";

type DiffOptions = PolicyOptions & { readonly against?: readonly string[]; readonly dir?: string };
/** One call that is decided otherwise; `times` is how often it was met. */
type Change = {
  readonly tool: string;
  readonly args: Args;
  readonly from: string;
  readonly times: number;
  readonly old: Explanation;
  readonly new: Explanation;
};

export function defineDiff(command: Command, context: Context, done: (code: number) => void): void {
  withPolicyOptions(command.command("diff <old> <new>"))
    .description("which calls of past sessions, or of the examples, would be decided otherwise")
    .option("--against <log>", "a session, by id or file, whose calls are decided (repeatable)", collect)
    .option("--dir <folder>", "folder of the sessions (audit.dir)")
    .action(async (old: string, next: string, options: DiffOptions) =>
      done(await diff(context, old, next, options))
    );
}

async function diff(context: Context, old: string, next: string, options: DiffOptions): Promise<number> {
  const { output } = context;
  const json = options.json === true;
  const sides: Settings[] = [];
  for (const file of [old, next]) {
    // Comparing starts nothing of what it reads, so it needs no trust.
    const loaded = await loadSettings(
      context,
      { ...options, policy: [file], trust: options.untrusted !== true },
      undefined,
      "silent",
    );
    if (!loaded.ok) return reportProblems(output, loaded.problems, json);
    sides.push(loaded.value);
  }
  const [before, after] = sides;
  if (before === undefined || after === undefined) return exitCodes.bug;
  let calls: readonly PastCall[];
  try {
    calls = callsOf(context, before, after, options);
  } catch (error) {
    if (!(error instanceof LogFailure)) throw error;
    return reportProblems(output, [{ code: error.code, severity: "error", message: error.message }], json);
  }
  const known = calls.filter((call) => canDecide(call));
  const changes = changesOf(known, before, after);
  const skipped = calls.length - known.length;
  if (json) {
    output.result(
      toJsonLine({ resultVersion, ok: true, calls: known.length, skipped, changed: changes }),
    );
  } else report(context, changes, known.length, skipped);
  return changes.length === 0 ? exitCodes.done : exitCodes.differs;
}

function callsOf(
  context: Context,
  before: Settings,
  after: Settings,
  options: DiffOptions,
): readonly PastCall[] {
  const { against } = options;
  if (against === undefined) return exampleCalls([...before.examples, ...after.examples]);
  return against.flatMap((log) => {
    const path = findLog(context, after, options, log);
    const { events, damage } = checkChain(readLog(path));
    if (damage !== undefined) {
      context.output.note(
        context.output.safe(`note: ${path}:${damage.line}: ${damage.message}; what follows is left out`),
      );
    }
    noteWorkspace(context, after, events, path);
    return recordedCalls(events);
  });
}

function findLog(context: Context, settings: Settings, options: DiffOptions, log: string): string {
  const path = resolve(context.host.cwd, log);
  if (existsSync(path)) return statSync(path).isDirectory() ? join(path, "log.jsonl") : path;
  const { policy, surroundings } = settings;
  return logPath(options.dir ?? sessionsFolder(surroundings, policy.auditDir), log);
}

// Relative paths lead elsewhere there.
function noteWorkspace(context: Context, settings: Settings, events: readonly Event[], path: string): void {
  const [first] = events;
  if (first?.type !== "session.started" || first.data.workspace === settings.policy.root) return;
  context.output.note(
    context.output.safe(
      `note: ${path} is of the workspace ${first.data.workspace}; its calls are decided as if made in ${settings.policy.root}`,
    ),
  );
}

function canDecide(call: PastCall): boolean {
  const tool = builtinTools.find((t) => t.name === call.tool);
  if (tool === undefined) return false;
  // An example gives the main argument alone.
  const name = mainArgument(call.tool);
  return Object.keys(call.args).join() === name || checkArguments(tool.inputSchema, call.args).length === 0;
}

function changesOf(calls: readonly PastCall[], before: Settings, after: Settings): readonly Change[] {
  const changes = new Map<string, Change>();
  for (const call of calls) {
    const [old, now] = [decideAgain(before, call), decideAgain(after, call)];
    if (old.effect === now.effect) continue;
    const key = canonicalJson([call.tool, call.args, old.reason, now.reason]);
    const seen = changes.get(key);
    changes.set(key, {
      tool: call.tool,
      args: call.args,
      from: seen?.from ?? call.from,
      times: (seen?.times ?? 0) + 1,
      old,
      new: now,
    });
  }
  return [...changes.values()];
}

function decideAgain(settings: Settings, call: PastCall): Explanation {
  const { policy } = settings;
  const tool = builtinTools.find((t) => t.name === call.tool);
  if (tool === undefined) throw new Error(`no tool ${call.tool}`);
  const place = placeOf(settings);
  const sourcedBy = call.active.map((s) => `skill:${s.name}`);
  const facts = inspectOffline(tool, call.args, { place, mode: call.mode, sourcedBy });
  if (tool.engine !== true && !policy.tools.enabled.includes(tool.name)) {
    return explain(facts, notOffered(tool.name));
  }
  const standing = standingOf({
    policy,
    active: call.active,
    gates: call.gates,
    allowedTool: (declared) => compileAllowedTool(declared, place),
  }, facts);
  return explain(facts, decide(policy.layers, facts, standing));
}

function notOffered(tool: string): Verdict {
  const message = `\`${tool}\` is not in \`tools.enabled\``;
  return { effect: "deny", causes: [{ by: "error", effect: "deny", code: "unknown_tool", message }] };
}

function report(context: Context, changes: readonly Change[], calls: number, skipped: number): void {
  const { output } = context;
  for (const change of changes) {
    const times = change.times === 1 ? "" : `, ${change.times} times`;
    const lines = [
      `${change.tool} ${shownArgs(change)}`,
      `  was  ${said(change.old)}`,
      `  now  ${said(change.new)}`,
      `  from ${change.from}${times}`,
    ];
    output.result(`${output.safe(lines.map(escapeLine).join("\n"))}\n`);
  }
  if (skipped > 0) {
    output.note(`${skipped} calls left out: their tool is not built in, or their arguments are incomplete`);
  }
  if (calls === 0) {
    output.note("no calls to decide: the rules have no `match` or `no_match`; give a session with --against");
  }
  output.result(`${changes.length} of ${calls} calls would be decided otherwise\n`);
}

function shownArgs({ tool, args }: Change): string {
  const main = args[mainArgument(tool) ?? ""];
  return typeof main === "string" && Object.keys(args).length === 1 ? main : JSON.stringify(args);
}

function said({ effect, reason }: Explanation): string {
  return reason.startsWith(`${effect} `) ? reason : `${effect}: ${reason}`;
}
