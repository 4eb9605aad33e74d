// The machine as the command line sees it. Everything ambient that commands act on is read here, once, and passed on
// as a value; what belongs to the system itself, such as the folder for temporary files, is asked for where it is needed.
import { homedir, userInfo } from "node:os";
import { isAbsolute } from "node:path";
import process from "node:process";
import { fstatSync } from "node:fs";
import type { Host as SessionHost } from "../session/host.ts";

export type Host = SessionHost & {
  readonly args: readonly string[];
  readonly stdinIsTerminal: boolean;
  readonly stdoutIsTerminal: boolean;
  readonly stderrIsTerminal: boolean;
};

export function readHost(): Host {
  return {
    args: process.argv.slice(2),
    env: process.env,
    cwd: process.cwd(),
    home: homeFolder(),
    user: userName(),
    platform: `${process.platform}-${process.arch}`,
    stdinIsTerminal: process.stdin.isTTY === true,
    stdoutIsTerminal: process.stdout.isTTY === true,
    stderrIsTerminal: process.stderr.isTTY === true,
  };
}

// An empty or relative HOME names no folder; taken as it is, it would stand for the current one.
function homeFolder(): string {
  const named = process.env["HOME"] ?? homedir();
  if (isAbsolute(named)) return named;
  try {
    return userInfo().homedir;
  } catch {
    return "/nonexistent";
  }
}

function userName(): string {
  const named = process.env["USER"] ?? process.env["LOGNAME"];
  if (named !== undefined && named !== "") return named;
  try {
    const { username, uid } = userInfo();
    // Bun says `unknown` where no variable names the user.
    return username === "unknown" || username === "" ? `uid ${uid}` : username;
  } catch {
    return "unknown";
  }
}

/** What stands behind standard input: a pipe may be silent for ever, a file ends. */
export function stdinKind(): "terminal" | "pipe" | "file" | "none" {
  if (process.stdin.isTTY === true) return "terminal";
  try {
    const stat = fstatSync(0);
    if (stat.isFIFO() || stat.isSocket()) return "pipe";
    return stat.isFile() ? "file" : "none";
  } catch {
    return "none";
  }
}

/** Environment that lets code into this process, some of it before this is looked at: refused at start. */
export function environmentFaults(env: Host["env"]): readonly string[] {
  const faults: string[] = [];
  for (const name of ["BUN_OPTIONS", "BUN_BE_BUN", "BUN_INSPECT"]) {
    if (env[name] !== undefined && env[name] !== "") {
      faults.push(`the environment variable ${name} is set; unset it`);
    }
  }
  if (env["NODE_TLS_REJECT_UNAUTHORIZED"] === "0") {
    faults.push(
      "NODE_TLS_REJECT_UNAUTHORIZED=0 turns certificate checks off; unset it (NODE_EXTRA_CA_CERTS adds a CA)",
    );
  }
  return faults;
}
