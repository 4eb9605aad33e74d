// What `writ demo` plays on: a throw-away folder with a repository, a policy, a skill, a script and a state of its own.
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { childEnvironment } from "../../sandbox/environment.ts";
import { findWalls } from "../../sandbox/backend.ts";
import { selfCommand } from "../../sandbox/self.ts";
import { run } from "../../sandbox/subprocess.ts";
import type { Host } from "../host.ts";
import houseRules from "./house-rules.md" with { type: "text" };
import demoPolicy from "./policy.yaml" with { type: "text" };
import { makeRepository } from "./repository.ts";
import demoScript from "./script.yaml" with { type: "text" };

export type DemoOptions = {
  readonly live?: boolean;
  readonly model?: string;
  readonly baseUrl?: string;
  readonly json?: boolean;
};
export type Stage = {
  readonly folder: string;
  readonly repository: string;
  readonly policy: string;
  readonly script: string;
  /** The machine as the demonstration sees it: its own current folder, configuration and state. */
  readonly host: Host;
};

/** Throws an Error that says what this machine lacks. */
export async function setStage(host: Host, options: DemoOptions): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), "writ-demo-"));
  const repository = join(folder, "repository");
  const env = childEnvironment(host.env, {
    allow: ["PATH", "LANG"],
    home: folder,
    tmp: folder,
    writable: [repository],
  });
  const bash = await run(["bash", "--version"], { cwd: folder, env, timeoutMs: 10_000, maxOutput: 1000 });
  if (bash.exit !== 0) throw new Error("bash was not found; Writ runs commands with nothing else");
  await makeRepository(repository, env);
  const walls = await findWalls({
    backend: "bwrap",
    folder: join(folder, "filters"),
    self: selfCommand(),
    writable: [repository],
  });
  return {
    folder,
    repository,
    ...writeFiles(folder, options, walls.ok),
    host: {
      ...host,
      cwd: repository,
      env: {
        ...host.env,
        XDG_STATE_HOME: join(folder, "state"),
        XDG_CONFIG_HOME: join(folder, "config"),
        WRIT_POLICY: undefined,
      },
    },
  };
}

function writeFiles(folder: string, options: DemoOptions, boxed: boolean): Pick<Stage, "policy" | "script"> {
  mkdirSync(join(folder, "skills", "house-rules"), { recursive: true });
  writeFileSync(join(folder, "skills", "house-rules", "SKILL.md"), houseRules);
  const script = join(folder, "script.yaml");
  writeFileSync(script, demoScript);
  const policy = join(folder, "policy.yaml");
  const text = options.live === true ? livePolicy(options) : demoPolicy;
  writeFileSync(policy, boxed ? text.replace(/^ {2}mode: "off".*$/m, inBox) : text);
  return { policy, script };
}

const inBox =
  "  mode: required # commands run in a box: no network, nothing of this machine but the repository is written";

// The same policy with a model in the place of the script.
function livePolicy(options: DemoOptions): string {
  const endpoint = options.baseUrl === undefined ? "" : `\n  base_url: ${JSON.stringify(options.baseUrl)}`;
  return demoPolicy.replace(
    /^ {2}provider: script.*\n {2}name: scripted$/m,
    `  provider: anthropic\n  name: ${JSON.stringify(options.model)}${endpoint}`,
  );
}
