// `writ explain`: what the policy decides on a call and why, or which skills a message would load. Nothing runs.
import { sessionForced } from "../../core/policy.ts";
import type { Args } from "../../core/message.ts";
import { exitCodes } from "../../core/outcome.ts";
import { isObject } from "../../core/text.ts";
import { selectByPattern } from "../../core/trigger.ts";
import { systemNetwork } from "../../runtime/network.ts";
import { listedTools } from "../../mcp/server_tools.ts";
import { checkArguments } from "../../tools/arguments.ts";
import { mainArgument } from "../../core/tool_names.ts";
import { builtinTools, toolNames } from "../../tools/registry.ts";
import { identityOf } from "../../agent/offered.ts";
import type { Tool } from "../../agent/ports.ts";
import type { Skill } from "../../core/skill.ts";
import { listing } from "../agent_parts.ts";
import { stateFolder } from "../../load/locate.ts";
import { commandTools } from "../skill_side.ts";
import { loadCatalog } from "../catalog.ts";
import { type CommandModule, type Context, type PolicyOptions, withPolicyOptions } from "../command.ts";
import { explainCall, explanationLines } from "../explain_call.ts";
import { reportProblems, reportSlip } from "../result.ts";
import { loadSettings, type Settings } from "../settings.ts";
import { freshView } from "../skill_list.ts";
import { askSkills } from "../skill_words.ts";
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
  if (options.message !== undefined) return explainMessage(context, settings.value, options.message, json);
  if (tool === undefined) return reportSlip(output, "name a tool, or give --message", json);
  const named = findTool(settings.value, tool);
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

type Named = { readonly tool: Tool; readonly owner?: Skill };

// A built-in tool or one that the policy lists of a server by its name, a skill's tool by its identity; or why there is none.
function findTool(settings: Settings, name: string): Named | string {
  const builtin = builtinTools.find((t) => t.name === name);
  if (builtin !== undefined) return { tool: builtin };
  const servers = listedTools(settings.policy.mcpServers);
  const listed = servers.find((t) => t.name === name);
  if (listed !== undefined) return { tool: listed };
  const skills = /^skill\./.test(name) ? loadCatalog(settings).catalog.items : [];
  const { policy, surroundings } = settings;
  const { env } = surroundings;
  // Nothing runs, so nothing secret is read.
  const site = { state: stateFolder(surroundings), secrets: policy.skills.secrets, env, onSecret: () => {} };
  const all = skills.flatMap((owner) => commandTools(owner, site).map((tool) => ({ tool, owner })));
  const found = all.find((t) => identityOf(t.tool) === name);
  if (found !== undefined) return found;
  const known = all.length === 0
    ? `${
      [...toolNames, ...servers.map((t) => t.name)].join(", ")
    }, and those of skills as \`skill.NAME.TOOL\``
    : all.map((t) => identityOf(t.tool)).join(", ");
  return `no tool \`${name}\`; tools: ${known}`;
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

function explainMessage(context: Context, settings: Settings, message: string, json: boolean): number {
  const { output } = context;
  const { policy } = settings;
  const loaded = loadCatalog(settings);
  const asked = askSkills(freshView(policy, loaded), message, []);
  if (asked.kind === "fault") return reportSlip(output, asked.message, json);
  const forced = sessionForced(policy.skills).map((f) => ({
    skill: f.skill,
    by: "policy",
    at: f.at,
  }));
  const hits = selectByPattern(message, policy.skills.triggers, loaded.catalog, new Map())
    .map((h) => ({ skill: h.skill.name, by: "pattern", pattern: h.pattern, span: h.span }));
  const { tokens } = listing(policy, loaded);
  if (json) {
    output.result(
      toJsonLine({
        message,
        skills: [...forced, ...hits],
        catalogTokens: tokens,
        tools: policy.tools.enabled,
      }),
    );
    return exitCodes.done;
  }
  for (const f of forced) {
    output.result(output.safe(`${f.skill}  forced by policy at ${f.at.file}:${f.at.line}:${f.at.col}\n`));
  }
  for (const h of hits) {
    output.result(output.safe(`${h.skill}  by pattern "${h.pattern}" at ${h.span[0]}..${h.span[1]}\n`));
  }
  if (forced.length + hits.length === 0) output.result("no skill would be loaded before the first request\n");
  output.result(`catalog: ${loaded.catalog.items.length} skills, about ${tokens} tokens\n`);
  return exitCodes.done;
}
