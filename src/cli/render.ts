// One event → what a person at a terminal sees of it. Everything that is not ours is escaped.
import { showCause } from "../core/decision.ts";
import type { Event, EventData, Trigger } from "../core/event.ts";
import { plural } from "../core/plural.ts";
import { showPosition } from "../core/problem.ts";
import { isObject } from "../core/text.ts";
import { escapeLine } from "../core/text.ts";
import type { Output } from "./output.ts";

/** Lines for stderr; an event without lines is of no interest to somebody who watches. */
export function renderEvent(event: Event, paint: Output["paint"]): readonly string[] {
  switch (event.type) {
    case "skill.loaded": {
      const bound = event.data.bounding
        ? `, bounds: ${event.data.allowedTools?.join(", ") ?? "reads only"}`
        : "";
      return [
        paint.cyan(`● skill ${line(event.data.name)}`) +
        paint.dim(
          ` ${showTrigger(event.data.trigger)}, ${event.data.contextTokensAdded} tokens${line(bound)}`,
        ),
      ];
    }
    case "skill.skipped":
      return [paint.yellow(`● skill ${line(event.data.name)} skipped: ${line(event.data.reason)}`)];
    case "skill.registry_error": {
      const { path, code, message } = event.data;
      // A fault of a server speaks for itself; that of a skill says what is wrong with the file.
      const server = code.startsWith("server-") && !path.endsWith("SKILL.md");
      const told = server
        ? `● ${line(message)} (${line(path)})`
        : `● skill not available: ${line(path)}: ${line(message)}`;
      return [paint.yellow(`${told} [${code}]`)];
    }
    case "fork.started":
      return [
        paint.cyan(`● skill ${line(event.data.skill)} as a fork`) +
        paint.dim(` ${showTrigger(event.data.trigger)}, session ${line(event.data.session)}`),
      ];
    case "fork.completed": {
      const { skill, outcome, toolCalls, costUsd } = event.data;
      const cost = costUsd === undefined ? "" : `, ${costUsd} USD`;
      return [
        paint.cyan(`● fork of ${line(skill)} ended: ${line(outcome)}`) +
        paint.dim(` ${plural(toolCalls, "call")}${cost}`),
      ];
    }
    case "model.changed":
      return [paint.dim(`◇ model ${line(event.data.from)} → ${line(event.data.to)}`)];
    case "skill.completed":
      // What was reported in a fork has been shown there.
      if (event.data.fork !== undefined || event.data.within !== undefined) return [];
      return [
        paint.cyan(`● skill ${line(event.data.name)}: ${line(event.data.outcome)}`) +
        paint.dim(event.data.summary === "" ? "" : ` ${line(event.data.summary)}`),
      ];
    case "model.tool_call_requested":
      return [`→ ${paint.bold(line(event.data.tool))} ${paint.dim(showArgs(event.data.args))}`];
    case "permission.resolved": {
      const answered = event.data.answer === undefined ? "" : ` (answered by ${line(event.data.answer.by)})`;
      return event.data.decision === "deny"
        ? [paint.red(`  ✗ denied: ${line(shownReason(event.data))}${answered}`)]
        : [paint.dim(`  ✓ allowed: ${line(event.data.reason)}${answered}`)];
    }
    case "gate.blocked":
      return event.data.missing.map((m) => paint.yellow(`  ◇ gate ${line(event.data.gate)}: ${line(m)}`));
    case "tool.completed":
      return event.data.ok
        ? [
          paint.dim(
            `  ✓ ${
              line(event.data.tool)
            }: a result of ${event.data.bytes} bytes in ${event.data.durationMs} ms`,
          ),
        ]
        : event.data.code === "denied"
        ? []
        : [paint.red(`  ✗ ${line(event.data.tool)}: ${line(shownFailure(event.data))}`)];
    case "tool.interrupted":
      return [
        paint.yellow(
          `  ◇ ${line(event.data.tool)} interrupted${event.data.started ? ", outcome unknown" : ""}`,
        ),
      ];
    case "context.compacted": {
      const { tokensBefore, tokensAfter, summary, cut } = event.data;
      const what = [
        ...(cut === undefined ? [] : [plural(cut.results.length, "result") + " cut"]),
        ...(summary === "" ? [] : ["the earlier part summed up"]),
      ];
      return [
        paint.yellow(`◇ context compacted: ${tokensBefore} → ${tokensAfter} tokens; ${what.join(", ")}`),
      ];
    }
    case "model.failed": {
      const retry = event.data.retryInMs === undefined ? "" : `; again in ${event.data.retryInMs} ms`;
      return [paint.yellow(`◇ model: ${line(event.data.code)}: ${line(event.data.message)}${retry}`)];
    }
    case "limit.reached":
      return [paint.yellow(`◇ limit ${line(event.data.limit)}: ${event.data.value} of ${event.data.cap}`)];
    case "session.recovered":
      return [paint.yellow(recoveredLine(event.data))];
    default:
      return [];
  }
}

function showTrigger(trigger: Trigger): string {
  switch (trigger.kind) {
    case "policy":
      return trigger.gate === undefined ? "forced by policy" : `loaded by gate ${line(trigger.gate)}`;
    case "explicit":
      return "asked for by name";
    case "pattern":
      return `by pattern "${line(trigger.pattern ?? "")}" at ${trigger.span?.[0]}..${trigger.span?.[1]}`;
    case "model":
      return "chosen by the model";
  }
}

function recoveredLine({ bytes, savedAs, lost }: EventData["session.recovered"]): string {
  const gone = lost === undefined
    ? ""
    : `; ${plural(lost, "event")} that had been recorded ${lost === 1 ? "is" : "are"} gone`;
  return `◇ the log was mended: ${bytes} bytes were saved as ${line(savedAs)}${gone}`;
}

function showArgs(args: unknown): string {
  if (!isObject(args)) return "";
  const shown = Object.entries(args).map(([k, v]) => `${k}=${typeof v === "string" ? v : JSON.stringify(v)}`);
  const text = line(shown.join(" "));
  return text.length > 160 ? `${text.slice(0, 157)}…` : text;
}

// The log keeps the reason of a bound short and fixed; a person also wants to know whose bound it is. What a gate waits for is
// shown as the gate says it, right after.
function shownReason({ causes, reason }: EventData["permission.resolved"]): string {
  const [first] = causes;
  if (first?.by === "gate") return `gate: ${first.gate} at ${showPosition(first.at)}`;
  return first?.by === "bound" ? showCause(first) : reason;
}

// Of a command that failed, the status and the first thing that it complained of.
function shownFailure({ code, result, data }: EventData["tool.completed"]): string {
  const status = isObject(data) && typeof data["exit"] === "number"
    ? `exit ${data["exit"]}`
    : code ?? "failed";
  const errors = result.split("[stderr]\n")[1] ?? result;
  const first = errors.split("\n").find((l) => l.trim() !== "") ?? "";
  return `${status}: ${first}`;
}

function line(text: string): string {
  return escapeLine(text);
}
