// `writ explain`: what the policy decides on a call and why, or which skills a message would load. Nothing runs.
import type { Args } from "../../core/message.ts";
import { exitCodes } from "../../core/outcome.ts";
import { escapeLine, isObject } from "../../core/text.ts";
import { systemNetwork } from "../../runtime/network.ts";
import { checkArguments } from "../../tools/arguments.ts";
import { mainArgument } from "../../core/tool_names.ts";
import { loadCatalog } from "../../session/catalog.ts";
import { type CommandModule, type Context, type PolicyOptions, withPolicyOptions } from "../command.ts";
import { explanationLines } from "../explain_call.ts";
import { explainCall, toolToExplain } from "../../session/explain_call.ts";
import { reportProblems, reportSlip } from "../result.ts";
import type { Settings } from "../../session/settings.ts";
import { loadSettings } from "../settings.ts";
import { collectSecrets } from "../../session/secrets.ts";
import { withoutSecrets } from "../redacted_output.ts";
import { freshView } from "../../session/skill_list.ts";
import { askSkills } from "../../session/skill_words.ts";
import { reportLines, triggerReport } from "../../session/trigger_report.ts";
import { toJsonLine } from "../json_line.ts";

type ExplainOptions = PolicyOptions & { readonly message?: string; readonly unattended?: boolean };

export const explain: CommandModule = {
  define(command, context, done) {
    withPolicyOptions(
      command.argument("[tool]", "a tool").argument(
        "[argument]",
        "its main argument, or all of them as a JSON object",
      ),
    )
      .description("say what the policy decides on a call, and why")
      .option("--message <text>", "which skills this message would load")
      .option("--unattended", "as if nobody could be asked")
      .action(async (tool: string | undefined, argument: string | undefined, options: ExplainOptions) =>
        done(await explainOne(context, tool, argument, options))
      );
  },
};

async function explainOne(
  context: Context,
  tool: string | undefined,
  argument: string | undefined,
  options: ExplainOptions,
): Promise<number> {
  const { output } = context;
  const json = options.json === true;
  const settings = await loadSettings(context, options, undefined);
  if (!settings.ok) return reportProblems(output, settings.problems, json);
  if (options.message !== undefined) {
    return await explainMessage(context, settings.value, options.message, json);
  }
  if (tool === undefined) return reportSlip(output, "name a tool, or give --message", json);
  const named = toolToExplain(settings.value, tool);
  if (typeof named === "string") return reportSlip(output, named, json);
  const { tool: found, owner } = named;
  const args = readArguments(found.name, argument ?? "");
  if (args === undefined) {
    return reportSlip(output, "the arguments start with `{` but are not a JSON object", json);
  }
  const faults = checkArguments(found.inputSchema, args);
  const missing = faults.length > 0 && !(argument ?? "").trim().startsWith("{") ? [] : faults;
  if (missing.length > 0) {
    return reportSlip(output, `arguments of ${found.name} do not fit: ${missing.join("; ")}`, json);
  }
  const mode = options.unattended === true ? "unattended" : "interactive";
  const network = systemNetwork(context.host.env);
  const call = await explainCall(settings.value, found, args, mode, network, owner);
  if (json) output.result(toJsonLine(call));
  else output.result(`${explanationLines(call).join("\n")}\n`);
  return exitCodes.done;
}

function readArguments(tool: string, text: string): Args | undefined {
  if (!text.trim().startsWith("{")) {
    const name = mainArgument(tool);
    return name === undefined || text === "" ? {} : { [name]: text };
  }
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Also `writ skill trigger`. */
export async function explainMessage(
  context: Context,
  settings: Settings,
  message: string,
  json: boolean,
): Promise<number> {
  const secrets = collectSecrets(context.host.env, []);
  secrets.use(settings.policy);
  const output = withoutSecrets(context, settings.policy);
  const text = secrets.redact(message);
  const loaded = loadCatalog(settings);
  const asked = askSkills(freshView(settings.policy, loaded), text, []);
  if (asked.kind === "fault") return reportSlip(output, asked.message, json);
  const report = await triggerReport(settings, loaded, text, asked);
  if (json) output.result(toJsonLine({ message: text, ...report }));
  else for (const line of reportLines(report)) output.result(`${escapeLine(line)}\n`);
  return report.refused === undefined ? exitCodes.done : exitCodes.usage;
}
