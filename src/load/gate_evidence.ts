// Evidence that no call can ever be under the rest of the policy: its tool is switched off, or every such call is denied.
import { decide } from "../core/decide.ts";
import type { Cause, Risk } from "../core/decision.ts";
import { commandRisk } from "../core/command_risk.ts";
import type { CommandPattern } from "../core/command.ts";
import type { Facts, Mode, Subject } from "../core/facts.ts";
import type { Gate, Layer } from "../core/policy.ts";
import { type Problem, showPosition } from "../core/problem.ts";
import { namesTool, type Rule } from "../core/rule.ts";
import { escapeLine } from "../core/text.ts";
import {
  builtinsOf,
  type BuiltinTool,
  builtinTool,
  enableableTools,
  mayNameOutsideTool,
} from "../core/tool_names.ts";

type Site = {
  readonly layers: readonly Layer[];
  readonly root: string;
  /** `tools.enabled`. */
  readonly enabled: readonly string[];
};

/** A warning for each, where that is sure; in the order of gates and evidence. What such a gate guards stays shut. */
export function unreachableEvidence(gates: readonly Gate[], site: Site): readonly Problem[] {
  return gates.flatMap((gate) =>
    gate.evidence.flatMap((rule): Problem[] => {
      const why = whyOff(rule, site) ?? whyDenied(rule, site);
      return why === undefined ? [] : [{
        code: "evidence-unreachable",
        severity: "warning",
        message: `the gate \`${gate.id}\` waits for \`${escapeLine(rule.text)}\`, and ${why.why}`,
        at: rule.at,
        hint: `${why.hint}, or ask for other evidence`,
      }];
    })
  );
}

type Why = { readonly why: string; readonly hint: string };

function whyOff(rule: Rule, { enabled }: Site): Why | undefined {
  if (rule.tools.some(mayNameOutsideTool)) return undefined;
  // A redirection of a command is judged as one of these two.
  const offered = enabled.includes("shell") ? [...enabled, "read_file", "write_file"] : enabled;
  const tools = rule.tools.flatMap(builtinsOf);
  const off = tools.filter((tool) => enableableTools.includes(tool) && !offered.includes(tool));
  if (off.length === 0 || off.length < tools.length) return undefined;
  const names = off.map((tool) => `\`${tool}\``).join(", ");
  return {
    why: `${names} ${off.length === 1 ? "is" : "are"} not in \`tools.enabled\``,
    hint: `enable ${off.length === 1 ? "it" : "them"}`,
  };
}

// Only of a pattern that leaves nothing open it is known how its calls are decided.
function whyDenied(rule: Rule, { layers, root }: Site): Why | undefined {
  const [tool, ...others] = rule.tools;
  const builtin = tool === undefined ? undefined : builtinTool(tool);
  if (builtin === undefined || others.length > 0 || rule.args !== undefined || rule.risk !== undefined) {
    return undefined;
  }
  // Who is active then is not known.
  if (layers.some((l) => l.rules.some((r) => r.sourcedBy !== undefined))) return undefined;
  const modes = (["interactive", "unattended"] as const).filter((m) =>
    rule.mode === undefined || rule.mode === m
  );
  const standing = { root, active: [], vouched: [], bounds: [], blocks: [] };
  const decided = (builtin.name === "shell" ? commandCalls(rule) : plainCalls(builtin, layers)).flatMap((
    call,
  ) =>
    modes.flatMap((mode) =>
      (rule.box ?? ["default"]).map((box) => decide(layers, factsOf(builtin.name, call, mode, box), standing))
    )
  );
  const [first] = decided;
  if (first === undefined || decided.some((d) => d.effect !== "deny")) return undefined;
  return { why: `every such call is denied${placeOf(first.causes[0])}`, hint: "allow it there" };
}

type Call = { readonly subject: Subject; readonly risk: Risk; readonly args: Facts["args"] };

function commandCalls(rule: Rule): readonly Call[] {
  const commands = rule.command ?? [];
  if (rule.exceptCommand !== undefined || commands.some((c) => c.rest)) return [];
  return commands.map(commandCall);
}

function commandCall({ words, assignments, source }: CommandPattern): Call {
  const part = { argv: words, text: source, assignments, level: "top" } as const;
  return { subject: { kind: "part", part }, risk: commandRisk(part), args: { command: source } };
}

// Of these it depends on a path or the like, save where no rule allows any of them.
function plainCalls(
  { name, reads, matcher, engine }: BuiltinTool,
  layers: readonly Layer[],
): readonly Call[] {
  const allowing = layers.flatMap((l) => [...l.rules.filter((r) => r.effect === "allow"), ...l.delegates]);
  if (engine || allowing.some((r) => namesTool(r, name))) return [];
  const risk = reads ? "read" : matcher === "path" ? "write" : "network";
  return [{ subject: { kind: "call" }, risk, args: {} }];
}

function factsOf(tool: string, { subject, risk, args }: Call, mode: Mode, box: string): Facts {
  return { tool, args, risk, subjects: [subject], box, sourcedBy: [], mode, errors: [] };
}

function placeOf(cause: Cause): string {
  return "at" in cause && cause.at !== undefined ? ` at ${showPosition(cause.at)}` : "";
}
