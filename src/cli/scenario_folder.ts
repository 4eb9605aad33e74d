// A scenario laid out on disk: a throw-away folder with workspace, policy, skills, home and state of its own.
import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { run } from "../sandbox/subprocess.ts";
import type { Scenario } from "./scenario_file.ts";

export type ScenarioFolder = {
  /** Real path of the whole. */
  readonly top: string;
  readonly workspace: string;
  readonly policy: string;
  readonly env: { readonly [name: string]: string };
};

export async function layOut(scenario: Scenario, path: string | undefined): Promise<ScenarioFolder> {
  const top = realpathSync(mkdtempSync(join(tmpdir(), "writ-scenario-")));
  const workspace = join(top, "workspace");
  write(join(top, "policy.yaml"), scenario.policy);
  // `NAME` is a skill, `NAME/FILE` another file of its folder.
  for (const [name, content] of Object.entries(scenario.skills ?? {})) {
    write(join(top, "config", "writ", "skills", name.includes("/") ? name : join(name, "SKILL.md")), content);
  }
  mkdirSync(workspace, { recursive: true });
  for (const [name, content] of Object.entries(scenario.workspace?.files ?? {})) {
    write(join(workspace, name), content);
  }
  if (scenario.project_policy !== undefined) {
    write(join(workspace, ".writ", "policy.yaml"), scenario.project_policy);
  }
  const env = {
    PATH: path ?? "/usr/bin:/bin",
    HOME: join(top, "home"),
    XDG_CONFIG_HOME: join(top, "config"),
    XDG_STATE_HOME: join(top, "state"),
    GIT_CONFIG_NOSYSTEM: "1",
  };
  mkdirSync(env.HOME, { recursive: true });
  if (scenario.workspace?.git === true) await commitAll(workspace, env);
  return { top, workspace, policy: join(top, "policy.yaml"), env };
}

// Names and dates are fixed, so that the commit has the same id everywhere.
async function commitAll(folder: string, env: { readonly [name: string]: string }): Promise<void> {
  const date = "2026-01-01T00:00:00Z";
  const fixed = {
    ...env,
    GIT_AUTHOR_DATE: date,
    GIT_COMMITTER_DATE: date,
    GIT_AUTHOR_NAME: "Writ",
    GIT_AUTHOR_EMAIL: "writ@localhost",
    GIT_COMMITTER_NAME: "Writ",
    GIT_COMMITTER_EMAIL: "writ@localhost",
  };
  for (
    const args of [["init", "--quiet", "--initial-branch=main"], ["add", "--all"], [
      "commit",
      "--quiet",
      "--allow-empty",
      "-m",
      "start",
    ]]
  ) {
    const result = await run(["git", ...args], {
      cwd: folder,
      env: fixed,
      timeoutMs: 30_000,
      maxOutput: 4096,
    });
    if (result.exit !== 0) throw new Error(`git ${args[0]} failed: ${result.stderr}`);
  }
}

function write(path: string, content: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}
