// The MCP servers of a session: their secrets read, the programs and addresses reached, and what is not to be had told.
import { resolve } from "node:path";
import type { Tool } from "../agent/ports.ts";
import { defaultBox } from "../core/box.ts";
import type { BoxPlan } from "../core/box_plan.ts";
import type { CatalogError } from "../core/catalog.ts";
import { type McpServer, serverToolName, type ServerValues } from "../core/mcp.ts";
import { isWithin } from "../core/path.ts";
import type { Loaded, Problem } from "../core/problem.ts";
import { lstat, realOr } from "../load/locate.ts";
import { describeSource, readSecret } from "../load/secret.ts";
import type { Reach } from "../mcp/connection.ts";
import { type Lack, startServers } from "../mcp/servers.ts";
import { run } from "../sandbox/subprocess.ts";
import { schemaFault } from "../tools/arguments.ts";
import type { SessionBoxes } from "./boxes.ts";
import type { Host } from "./host.ts";
import type { Settings } from "./settings.ts";
import { version } from "./version.ts";

export type SessionServers = {
  readonly tools: readonly Tool[];
  /** Listed tools that are not to be had, by their full names, and why: for skills that need them. */
  readonly lacking: ReadonlyMap<string, string>;
  /** Each a `skill.registry_error`. */
  readonly faults: readonly CatalogError[];
  /** Whether the other settings describe the same servers, reached in the same way. */
  fits(other: Settings): boolean;
  close(): Promise<void>;
};

export type ServerSite = {
  /** Takes every secret that goes to a server. */
  onKey(key: string): void;
  redact(text: string): string;
  readonly boxes: SessionBoxes;
};

/**
 * Starts the servers that the policy describes. Problems, each at its place, mean that one which is required, or a tool of
 * it, is not to be had; nothing is left running then.
 */
export async function openServers(
  host: Host,
  settings: Settings,
  site: ServerSite,
): Promise<Loaded<SessionServers>> {
  const { policy } = settings;
  const started = await startServers(policy.mcpServers, {
    reach: (server) => reachOf(server, host, settings, site),
    schemaFault,
    maxOutput: policy.tools.shell.maxOutput,
    version,
  });
  const lacks = started.lacks.map((lack) => told(lack, site));
  const problems = lacks.filter((l) => l.server.required).map((l) => l.problem);
  if (problems.length > 0) {
    await started.close();
    return { ok: false, problems };
  }
  const key = keyOf(settings);
  return {
    ok: true,
    problems: [],
    value: {
      tools: started.tools,
      lacking: new Map(lacks.flatMap((l) => l.tools.map((tool) => [tool, l.problem.message]))),
      faults: lacks.map(({ problem: { at, code, message } }) => ({ path: at.file, code, message })),
      fits: (other) => keyOf(other) === key,
      close: started.close,
    },
  };
}

// What a server is started with; which tools are listed, and with what risk, is part of it.
function keyOf({ policy }: Settings): string {
  const servers = policy.mcpServers.map(({ at: _, layer: __, ...rest }) => ({
    ...rest,
    tools: rest.tools.map(({ name, risk }) => ({ name, risk })),
  }));
  return JSON.stringify([servers, policy.sandbox, policy.shellEnv, policy.tools.shell.maxOutput]);
}

type Told = {
  readonly server: McpServer;
  readonly problem: Problem & { readonly at: NonNullable<Problem["at"]> };
  readonly tools: readonly string[];
};

function told({ server, absent, reason }: Lack, site: ServerSite): Told {
  const severity = "error";
  const required = server.required ? "the required server" : "the server";
  if (absent === undefined) {
    return {
      server,
      problem: {
        code: "server-down",
        severity,
        message: site.redact(`${required} \`${server.name}\` is not available: ${reason}`),
        at: server.at,
      },
      tools: server.tools.map((tool) => serverToolName(server.name, tool.name)),
    };
  }
  const name = serverToolName(server.name, absent.tool.name);
  return {
    server,
    problem: {
      code: "server-tool-absent",
      severity,
      message: site.redact(`the tool \`${name}\` is not available: ${absent.reason}`),
      at: absent.tool.at,
    },
    tools: [name],
  };
}

async function reachOf(
  server: McpServer,
  host: Host,
  settings: Settings,
  site: ServerSite,
): Promise<Reach | { readonly refused: string }> {
  const { reach } = server;
  if (reach.kind === "url") {
    const headers = await readValues(reach.headers, host, site);
    return "refused" in headers ? headers : { ...reach, headers: headers.values };
  }
  const entered = site.boxes.at(settings).shell.boxes?.enter(server.box ?? defaultBox, filesNamed(reach));
  if (entered === undefined || !entered.ok) {
    return { refused: `it is a program, and ${entered?.message ?? "there is no box"}` };
  }
  const { box } = entered;
  const env = await readValues(reach.env, host, site);
  if ("refused" in env) return env;
  return {
    ...reach,
    // The folder of the policy file may hold anything; what a server needs of it is named by its arguments or its box. A name
    // that leads nowhere must not come to mean a file of the workspace.
    ...(box === undefined || isSeen(reach.cwd, box.plan) ? {} : { argv: placed(reach), cwd: "/" }),
    ...(box === undefined ? {} : { box }),
    env: { ...entered.env, MCP_WORKSPACE: settings.policy.root, ...env.values },
  };
}

type Program = Extract<McpServer["reach"], { readonly kind: "command" }>;

// Files that the command names, such as a script for an interpreter.
function filesNamed({ argv, cwd }: Program): readonly string[] {
  return argv.filter((word) => namesFile(word, cwd)).map((word) => resolve(cwd, word)).flatMap((path) => [
    path,
    realOr(path),
  ]);
}

// A bare word is as a rule no file, and never a folder: that would open all that lies beside the policy.
function namesFile(word: string, cwd: string): boolean {
  const found = word === "" ? undefined : lstat(resolve(cwd, word));
  return found !== undefined && (word.includes("/") || found.isFile());
}

// Named from where they are, since the program starts in another folder.
function placed({ argv: [program, ...args], cwd }: Program): Program["argv"] {
  const whole = (word: string) => /^\.\.?\//.test(word) || namesFile(word, cwd) ? resolve(cwd, word) : word;
  return [program.includes("/") ? resolve(cwd, program) : program, ...args.map(whole)];
}

function isSeen(path: string, { read, write, hide }: BoxPlan): boolean {
  const within = (roots: readonly string[]) => roots.some((root) => isWithin(path, root));
  return within([...read, ...write]) && !within(hide);
}

type Values = { readonly values: { readonly [name: string]: string } };

async function readValues(
  written: ServerValues,
  { env }: Host,
  site: ServerSite,
): Promise<Values | { readonly refused: string }> {
  const values: Record<string, string> = {};
  for (const [name, value] of Object.entries(written)) {
    let whole: string;
    if ("text" in value) whole = value.text;
    else {
      const read = await readSecret(value, { env, run });
      if (!read.ok) return { refused: `\`${name}\` cannot be had: ${describeSource(value)} ${read.found}` };
      const secret = read.text.trim();
      site.onKey(secret);
      whole = value.prefix + secret;
    }
    if (/[\0\r\n]/.test(whole)) return { refused: `\`${name}\` cannot be had: it holds several lines` };
    values[name] = whole;
  }
  return { values };
}
