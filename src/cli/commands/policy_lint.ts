// `writ policy lint`: what is legal in a policy and yet seldom meant.
import type { Command } from "commander";
import { commandText } from "../../core/grant_rule.ts";
import { lintPolicy } from "../../core/lint.ts";
import { exitCodes } from "../../core/outcome.ts";
import { showProblem } from "../../core/problem.ts";
import { parseShell } from "../../shell/parse.ts";
import { collect, type Context, type PolicyOptions, withPolicyOptions } from "../command.ts";
import { reportProblems, resultVersion } from "../result.ts";
import { loadSettings } from "../settings.ts";
import { toJsonLine } from "../json_line.ts";

type LintOptions = PolicyOptions & { readonly strict?: boolean };

export function defineLint(command: Command, context: Context, done: (code: number) => void): void {
  withPolicyOptions(command.command("lint [files...]"))
    .description("find rules that never count, give away too much, or were never tried")
    .option("--strict", "exit with 2 when anything is found")
    .action(async (files: string[], options: LintOptions) => done(await lint(context, files, options)));
}

async function lint(context: Context, files: readonly string[], options: LintOptions): Promise<number> {
  const { output } = context;
  const json = options.json === true;
  const policies = files.reduce<readonly string[]>((all, file) => collect(file, all), options.policy ?? []);
  const settings = await loadSettings(
    context,
    // Linting starts nothing of what it reads, so it needs no trust.
    { ...options, ...(policies.length > 0 ? { policy: policies } : {}), trust: options.untrusted !== true },
    undefined,
    "silent",
  );
  if (!settings.ok) return reportProblems(output, settings.problems, json);
  const { policy, examples, surroundings } = settings.value;
  const findings = [
    ...settings.problems,
    ...lintPolicy({
      policy,
      home: surroundings.home,
      tried: new Set(examples.map((e) => e.rule.id)),
      runsOthers,
    }).filter((found) => !settings.problems.some((p) => p.code === found.code && p.at === found.at)),
  ];
  const code = options.strict === true && findings.length > 0 ? exitCodes.usage : exitCodes.done;
  if (json) {
    output.result(toJsonLine({ resultVersion, ok: code === exitCodes.done, findings }));
    return code;
  }
  for (const finding of findings) output.result(`${output.safe(showProblem(finding))}\n`);
  output.note(findings.length === 1 ? "1 finding" : `${findings.length} findings`);
  return code;
}

// Words that no program takes for options stand for what follows.
function runsOthers(words: readonly string[]): boolean {
  return parseShell(`${commandText(words)} one two`).parts.some((part) =>
    part.level === "inner" || part.notUnderstood !== undefined
  );
}
