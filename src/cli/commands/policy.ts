// `writ policy check|show`: is it right, and what is in force, with the place where each value is written. What else can be
// done with a policy is in files of its own.
import { unavailable } from "../../core/catalog.ts";
import { plural } from "../../core/plural.ts";
import { resolve } from "node:path";
import { gateLabel } from "../../core/gate_label.ts";
import { type McpServer, serverToolName } from "../../core/mcp.ts";
import { exitCodes } from "../../core/outcome.ts";
import { isError, type Problem, showPosition, showProblems } from "../../core/problem.ts";
import {
  collect,
  type CommandModule,
  type Context,
  type PolicyOptions,
  withPolicyOptions,
} from "../command.ts";
import { sandboxFault } from "../../session/boxes.ts";
import { loadCatalog, unlisted } from "../../session/catalog.ts";
import { findRoot, projectPolicy, realOr } from "../../load/locate.ts";
import { inOrder } from "../../load/policy_merge.ts";
import { noPolicyFiles } from "../../session/model.ts";
import { doubts } from "../doubts.ts";
import type { Output } from "../output.ts";
import { reportProblems } from "../result.ts";
import { loadSettings } from "../settings.ts";
import { defineDiff } from "./policy_diff.ts";
import { defineLint } from "./policy_lint.ts";
import { toJsonLine } from "../json_line.ts";

export const policy: CommandModule = {
  define(command, context, done) {
    command.description("check policy files, show what is in force, lint them, compare two");
    withPolicyOptions(command.command("check [files...]"))
      .description("find every fault in the policy files (those given, or those in force)")
      .action(async (files: string[], options: PolicyOptions) => done(await check(context, files, options)));
    withPolicyOptions(command.command("show")).description("the effective policy")
      .option("--origin", "with file:line:col of every value")
      .action(async (options: ShowOptions) => done(await show(context, options)));
    defineLint(command, context, done);
    defineDiff(command, context, done);
  },
};

type ShowOptions = PolicyOptions & { readonly origin?: boolean };

async function check(context: Context, files: readonly string[], options: PolicyOptions): Promise<number> {
  const { output } = context;
  const json = options.json === true;
  const named = files.reduce<readonly string[]>((all, file) => collect(file, all), options.policy ?? []);
  // The workspace's own file is read as that of the project in any case, and is no user's beside it.
  const policies = named.filter((file) => !isOwn(context, file, options));
  const given = policies.length > 0 ? { policy: policies } : {};
  // Checking starts nothing of what it reads, so it needs no trust.
  const settings = await loadSettings(
    context,
    { ...options, ...given, trust: options.untrusted !== true },
    undefined,
    "silent",
  );
  if (!settings.ok) return listFaults(output, settings.problems, json);
  const { policy } = settings.value;
  const loaded = loadCatalog(settings.value);
  const found = inOrder(
    [
      ...settings.problems,
      ...unavailable(loaded.catalog, policy, unlisted(loaded)),
      ...doubts(settings.value, loaded, await sandboxFault(settings.value)),
    ],
    policy.files,
  );
  if (found.some(isError)) return listFaults(output, found, json);
  if (json) {
    output.result(
      toJsonLine({
        ok: true,
        files: policy.files,
        revision: policy.revision,
        gates: policy.gates.map((gate) => ({ gate: gate.id, at: gate.at, ...gateLabel(gate, policy) })),
        servers: policy.mcpServers.map(({ name, at, required, tools }) => ({
          name,
          at,
          required,
          tools: Object.fromEntries(tools.map((t) => [serverToolName(name, t.name), t.risk])),
        })),
        warnings: found,
      }),
    );
    return exitCodes.done;
  }
  for (const line of showProblems(found)) output.note(output.safe(line));
  for (const file of policy.files) output.result(`${output.safe(`ok  ${file.layer}  ${file.path}`)}\n`);
  for (const gate of policy.gates) {
    const { label, reason } = gateLabel(gate, policy);
    output.result(`${output.safe(`gate  ${gate.id}  ${label}  ${showPosition(gate.at)}  ${reason}`)}\n`);
  }
  for (const server of policy.mcpServers) output.result(`${output.safe(serverLine(server))}\n`);
  if (policy.files.length === 0) {
    const looked = noPolicyFiles(policy.root, settings.value.surroundings);
    output.result(`${output.safe(`ok  no policy files: ${looked}; the embedded values are in force`)}\n`);
  }
  return exitCodes.done;
}

function serverLine({ name, tools, required, at }: McpServer): string {
  const listed = tools.map((t) => `${serverToolName(name, t.name)} (${t.risk})`).join(", ");
  return `server  ${name}  ${required ? "required" : "optional"}  ${showPosition(at)}  ${listed}`;
}

function isOwn({ host }: Context, file: string, options: PolicyOptions): boolean {
  const root = findRoot(resolve(host.cwd, options.directory ?? "."), realOr(host.home));
  return root.ok && realOr(resolve(host.cwd, file)) === realOr(projectPolicy(root.value));
}

function listFaults(output: Output, problems: readonly Problem[], json: boolean): number {
  if (json) return reportProblems(output, problems, true);
  for (const line of showProblems(problems)) output.note(output.safe(line));
  output.note(plural(problems.length, "problem"));
  return exitCodes.usage;
}

async function show(context: Context, options: ShowOptions): Promise<number> {
  const { output } = context;
  const settings = await loadSettings(context, options, undefined);
  if (!settings.ok) return reportProblems(output, settings.problems, options.json === true);
  const { origin, policy } = settings.value;
  if (options.json === true) {
    output.result(
      toJsonLine({ revision: policy.revision, files: policy.files, root: policy.root, values: origin }),
    );
    return exitCodes.done;
  }
  const width = Math.min(
    60,
    Math.max(0, ...origin.map((o) => `${o.key}: ${JSON.stringify(o.value)}`.length)),
  );
  for (const { key, value, layer, at } of origin) {
    const line = `${key}: ${JSON.stringify(value)}`;
    const place = at === "default" ? "default" : `${layer}  ${showPosition(at)}`;
    output.result(`${output.safe(options.origin === true ? `${line.padEnd(width)}  # ${place}` : line)}\n`);
  }
  return exitCodes.done;
}
