// The environment of a child process: what the operator named, minus what could steer a program or carry a secret.
import { realpathSync } from "node:fs";
import { delimiter, isAbsolute, normalize } from "node:path";
import { isNeverPassed } from "../core/env_names.ts";
import { isWithin } from "../core/path.ts";

export type Environment = { readonly [name: string]: string };

export type EnvironmentPlan = {
  /** Names of the caller's variables that may pass. */
  readonly allow: readonly string[];
  readonly home: string;
  readonly tmp: string;
  /** Folders that a command may write to: a program found there is not one that the operator installed. */
  readonly writable: readonly string[];
};

const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * What a child sees: the allowed variables of `source`, a PATH without relative folders and without those inside a
 * writable one, a home and a folder for temporary files, and answers that keep programs from waiting for a person.
 */
export function childEnvironment(
  source: { readonly [name: string]: string | undefined },
  plan: EnvironmentPlan,
): Environment {
  const env: Record<string, string> = {};
  for (const name of plan.allow) {
    const value = source[name];
    // Old exported functions are recognised by their value.
    if (value === undefined || isNeverPassed(name) || value.startsWith("() {") || value.includes("\0")) {
      continue;
    }
    env[name] = value;
  }
  env["PATH"] = safePath(plan.allow.includes("PATH") ? source["PATH"] ?? "" : "", plan.writable);
  return {
    ...env,
    HOME: plan.home,
    TMPDIR: plan.tmp,
    TERM: "dumb",
    PAGER: "cat",
    GIT_PAGER: "cat",
    GIT_EDITOR: "false",
    GIT_TERMINAL_PROMPT: "0",
  };
}

// A folder that does not exist is left out: it could be made later, and through a link land in a writable one.
function safePath(path: string, writable: readonly string[]): string {
  const roots = writable.flatMap((root) => [normalize(root), realPath(root) ?? normalize(root)]);
  const kept = path.split(delimiter).filter((folder) => {
    const real = isAbsolute(folder) ? realPath(folder) : undefined;
    return real !== undefined &&
      ![normalize(folder), real].some((f) => roots.some((root) => isWithin(f, root)));
  });
  return kept.length === 0 ? systemPath : kept.join(delimiter);
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
