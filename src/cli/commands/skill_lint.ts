// `writ skill lint`: every fault of skills at once, by the reader that loads them; no policy is needed.
import type { Command } from "commander";
import { resolve } from "node:path";
import { exitCodes } from "../../core/outcome.ts";
import { plural } from "../../core/plural.ts";
import { isError, showProblem } from "../../core/problem.ts";
import { lintSkills } from "../../load/skill_lint.ts";
import type { Context } from "../command.ts";
import { toJsonLine } from "../json_line.ts";
import { resultVersion } from "../result.ts";
import { collectSecrets } from "../../session/secrets.ts";

type LintOptions = { readonly json?: boolean; readonly strict?: boolean };

export function defineSkillLint(command: Command, context: Context, done: (code: number) => void): void {
  command.command("lint <paths...>")
    .description("find every fault in these SKILL.md files and folders")
    .option("--json", "print the result as JSON")
    .option("--strict", "exit with 2 when anything is found")
    .action((paths: string[], options: LintOptions) => done(lint(context, paths, options)));
}

function lint(context: Context, paths: readonly string[], options: LintOptions): number {
  const { output, host } = context;
  const { redact } = collectSecrets(host.env, []);
  const { files, loaded, problems } = lintSkills(paths.map((path) => resolve(host.cwd, path)));
  const wrong = problems.some(isError) || (options.strict === true && problems.length > 0);
  const code = wrong ? exitCodes.usage : exitCodes.done;
  if (options.json === true) {
    output.result(redact(toJsonLine({ resultVersion, ok: !wrong, files, loaded, findings: problems })));
    return code;
  }
  for (const problem of problems) output.result(`${output.safe(redact(showProblem(problem)))}\n`);
  output.note(`${plural(files, "file")}, ${loaded} would load, ${plural(problems.length, "finding")}`);
  return code;
}
