// `writ skill list|find|show|trigger|pin|lint|run`: what skills there are, what one says, and running one.
import { unavailable } from "../../core/catalog.ts";
import { exitCodes } from "../../core/outcome.ts";
import { showPosition } from "../../core/problem.ts";
import { searchSkills } from "../../core/skill_search.ts";
import { escapeLine, escapeTerminal } from "../../core/text.ts";
import { noSuchSkill } from "../../core/trigger.ts";
import { readSkillBody } from "../../load/skill_body.ts";
import { loadCatalog, unlisted } from "../../session/catalog.ts";
import { type CommandModule, type Context, type PolicyOptions, withPolicyOptions } from "../command.ts";
import { reportProblems, reportSlip } from "../result.ts";
import { withoutSecrets } from "../redacted_output.ts";
import type { RunOptions } from "../session_options.ts";
import { loadSettings } from "../settings.ts";
import { findSkills, freshView, listSkills, skillFacts } from "../../session/skill_list.ts";
import { pinSkills } from "../skill_pin.ts";
import { explainMessage } from "./explain.ts";
import { defineSkillLint } from "./skill_lint.ts";
import { runOnce, withRunOptions } from "./run.ts";
import { toJsonLine } from "../json_line.ts";

export const skill: CommandModule = {
  define(command, context, done) {
    command.description("see and use skills");
    withPolicyOptions(command.command("list")).description(
      "skills, where they come from, and why one is not available",
    )
      .action(async (options: PolicyOptions) => done(await list(context, options)));
    withPolicyOptions(command.command("find <words...>")).description(
      "skills that are about these words, best first",
    )
      .action(async (words: string[], options: PolicyOptions) => done(await find(context, words, options)));
    withPolicyOptions(command.command("show <name>")).description("one skill: its facts and its body")
      .action(async (name: string, options: PolicyOptions) => done(await show(context, name, options)));
    withPolicyOptions(command.command("pin <skills...>")).description(
      "the hash of a skill's folder, as a policy pins it; a skill is a name or a path",
    )
      .action(async (skills: string[], options: PolicyOptions) =>
        done(await pinSkills(context, skills, options))
      );
    withPolicyOptions(command.command("trigger <message...>"))
      .description("which skills a message would load, and why")
      .action(async (words: string[], options: PolicyOptions) =>
        done(await trigger(context, words, options))
      );
    defineSkillLint(command, context, done);
    withRunOptions(command.command("run <name> [arguments...]")).description("one turn with this skill")
      .action(async (name: string, words: string[], options: RunOptions) =>
        done(await runOnce(context, ["/skill", "run", name, ...words], options))
      );
  },
};

async function list(context: Context, options: PolicyOptions): Promise<number> {
  const settings = await loadSettings(context, options, undefined);
  if (!settings.ok) return reportProblems(context.output, settings.problems, options.json === true);
  const output = withoutSecrets(context, settings.value.policy);
  const loaded = loadCatalog(settings.value);
  const { catalog, warnings } = loaded;
  const errors = [
    ...unlisted(loaded),
    ...unavailable(catalog, settings.value.policy, unlisted(loaded)).map(({ at, code, message }) => ({
      path: at === undefined ? "" : showPosition(at),
      code,
      message,
    })),
  ];
  const view = freshView(settings.value.policy, loaded);
  if (options.json === true) {
    const shown = view.shown();
    const skills = catalog.items.map((s) => skillFacts(s, view, shown));
    output.result(
      toJsonLine({
        skills,
        absent: catalog.absent.map(({ patterns: _, ...rest }) => rest),
        errors,
        warnings,
      }),
    );
    return exitCodes.done;
  }
  output.result(`${listSkills(view)}\n`);
  for (const e of errors) {
    output.note(output.paint.yellow(escapeLine(`error: ${e.path}: ${e.message} [${e.code}]`)));
  }
  for (const w of warnings) {
    output.note(output.paint.yellow(escapeLine(`warning: ${w.path}: ${w.message} [${w.code}]`)));
  }
  return exitCodes.done;
}

async function find(context: Context, words: readonly string[], options: PolicyOptions): Promise<number> {
  const json = options.json === true;
  const settings = await loadSettings(context, options, undefined);
  if (!settings.ok) return reportProblems(context.output, settings.problems, json);
  const output = withoutSecrets(context, settings.value.policy);
  const { catalog } = loadCatalog(settings.value);
  const query = words.join(" ");
  if (json) {
    const { found, total } = searchSkills(catalog.items, query);
    const skills = found.map(({ name, description, tier, file }) => ({ name, description, tier, file }));
    output.result(toJsonLine({ query, total, skills }));
  } else output.result(`${findSkills(catalog, query)}\n`);
  return exitCodes.done;
}

async function trigger(context: Context, words: readonly string[], options: PolicyOptions): Promise<number> {
  const settings = await loadSettings(context, options, undefined);
  if (!settings.ok) return reportProblems(context.output, settings.problems, options.json === true);
  return await explainMessage(context, settings.value, words.join(" "), options.json === true);
}

async function show(context: Context, name: string, options: PolicyOptions): Promise<number> {
  const json = options.json === true;
  const settings = await loadSettings(context, options, undefined);
  if (!settings.ok) return reportProblems(context.output, settings.problems, json);
  const output = withoutSecrets(context, settings.value.policy);
  const { catalog } = loadCatalog(settings.value);
  const found = catalog.get(name);
  if (found === undefined) {
    return reportSlip(output, noSuchSkill(name, catalog, "user"), json);
  }
  const read = readSkillBody(found);
  if (!read.ok) return reportSlip(output, read.message, json);
  if (json) {
    const { patterns, ...rest } = found;
    output.result(toJsonLine({ ...rest, patterns: patterns.map((p) => p.source), ...read.body }));
    return exitCodes.done;
  }
  const facts: readonly (readonly [string, string])[] = [
    ["name", found.name],
    ["description", found.description],
    ["version", found.version ?? "-"],
    ["source", `${found.tier}: ${found.file}`],
    ["sha256", read.body.sha256],
    ...(found.mode === "fork" ? [["mode", `fork, history ${found.history ?? "none"}`] as const] : []),
    ...(found.model === undefined ? [] : [["model", found.model] as const]),
    ["allowed tools", found.allowedTools?.join(", ") ?? "none declared"],
    ["patterns", found.patterns.map((p) => p.source).join("  ") || "-"],
    ...settings.value.policy.skills.triggers.flatMap(({ skill, pattern, at }): [string, string][] =>
      skill === found.name && at !== undefined
        ? [["by policy", `${pattern.source}  at ${showPosition(at)}`]]
        : []
    ),
    ["files", read.body.files.join(", ") || "-"],
    ...found.shadows.map((s): [string, string] => ["stands before", `${s.tier}: ${s.file}`]),
  ];
  for (const [label, value] of facts) output.result(`${label.padEnd(14)} ${escapeLine(value)}\n`);
  output.result(`\n${escapeTerminal(read.body.body.trim())}\n`);
  return exitCodes.done;
}
