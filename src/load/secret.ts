// Where secrets come from: a variable, a file or a command. None stands in a message.
import { isAbsolute } from "node:path";
import { NotRegular, readWhole } from "./file_head.ts";
import type { KeySource } from "../core/policy.ts";
import { byteLength } from "../core/text.ts";
import { codeOf } from "../core/thrown.ts";

export type SecretRead =
  /** Not blank; as it is, without the end of its last line. */
  | { readonly ok: true; readonly text: string }
  /** `found` follows the name of the source in a sentence. */
  | { readonly ok: false; readonly found: string };

/** Runs a program to its end and never rejects, as `run` of sandbox/subprocess.ts does. */
export type RunProgram = (
  argv: readonly [string, ...string[]],
  options: {
    readonly cwd: string;
    readonly env: { readonly [name: string]: string };
    readonly timeoutMs: number;
    /** Characters of output that are kept. */
    readonly maxOutput: number;
    /** Bytes after which it is stopped. */
    readonly maxRead: number;
    readonly killGraceMs: number;
  },
) => Promise<{
  readonly exit: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly timedOut: boolean;
  readonly flooded: boolean;
  readonly cut: boolean;
  /** Set when it never started. */
  readonly failure?: { readonly code: string };
}>;

export type SecretSite = {
  /** Where a variable is looked up; a command sees its PATH and nothing else of it. */
  readonly env: { readonly [name: string]: string | undefined };
  readonly run: RunProgram;
  /** Time for a command; 10 s unless said otherwise. */
  readonly limitMs?: number;
};

const longestSecret = 65_536;
const mostRead = 1024 * 1024;
const usualPath = "/usr/local/bin:/usr/bin:/bin";

/** What the source holds now. Never rejects. */
export async function readSecret(source: KeySource, site: SecretSite): Promise<SecretRead> {
  if ("env" in source) return usable(site.env[source.env] ?? "", "is not set");
  return "file" in source ? readSecretFile(source.file) : await runCommand(source.command, site);
}

/** Where a secret comes from, for messages; never the secret. */
export function describeSource(source: KeySource): string {
  if ("env" in source) return `the environment variable \`${source.env}\``;
  if ("file" in source) return `the file \`${source.file}\``;
  return `the output of \`${source.command[0] ?? ""}\``;
}

// Read at each use: it is small, and a change within one tick of the clock would not show in its times.
function readSecretFile(file: string): SecretRead {
  try {
    const whole = readWhole(file, longestSecret);
    return whole.ok ? usable(new TextDecoder().decode(whole.bytes), "is empty") : tooLong;
  } catch (error) {
    if (error instanceof NotRegular) return missing("is not a regular file");
    return missing(`could not be read (${codeOf(error) ?? "unknown error"})`);
  }
}

async function runCommand(command: readonly string[], site: SecretSite): Promise<SecretRead> {
  const [program, ...args] = command;
  if (program === undefined || !isAbsolute(program)) {
    return missing("cannot be had: the command is not an absolute path");
  }
  const limitMs = site.limitMs ?? 10_000;
  const ended = await site.run([program, ...args], {
    cwd: "/",
    env: { PATH: site.env["PATH"] ?? usualPath },
    timeoutMs: limitMs,
    maxOutput: longestSecret,
    maxRead: mostRead,
    killGraceMs: 0,
  });
  if (ended.failure !== undefined) return missing(`could not be had (${systemCode(ended.failure.code)})`);
  if (ended.timedOut) return missing(`was not there after ${limitMs} ms`);
  if (ended.flooded || ended.cut || byteLength(ended.stdout) > longestSecret) return tooLong;
  if (ended.exit === 0) return usable(ended.stdout, "is empty");
  return missing(`could not be had: the command ended with ${ended.signal ?? `status ${ended.exit}`}`);
}

// Said as for a file that cannot be read.
function systemCode(code: string): string {
  return code === "not_found" ? "ENOENT" : code === "not_executable" ? "EACCES" : code;
}

function usable(text: string, otherwise: string): SecretRead {
  return text.trim() === "" ? missing(otherwise) : { ok: true, text: text.replace(/\r?\n$/, "") };
}

function missing(found: string): { readonly ok: false; readonly found: string } {
  return { ok: false, found };
}

const tooLong = missing(`holds more than ${longestSecret} bytes`);
