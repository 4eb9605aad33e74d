// Where secrets come from, the model's key among them: a variable, a file or a command. None stands in a message.
import { Buffer } from "node:buffer";
import { spawn } from "node:child_process";
import { isAbsolute } from "node:path";
import process from "node:process";
import { NotRegular, readWhole } from "../load/file_head.ts";
import { ModelFailure } from "../agent/ports.ts";
import type { KeySource } from "../core/policy.ts";
import { codeOf } from "../core/thrown.ts";
import { describeKeySource } from "./failure.ts";

/** The key; `again` runs a command anew. Throws ModelFailure `no_key`. */
export type KeyReader = (how?: "again") => Promise<string>;

type Env = { readonly [name: string]: string | undefined };

const longestKey = 65_536;
const unknown = "unknown error";
const usualPath = "/usr/local/bin:/usr/bin:/bin";

export type SecretRead =
  | { readonly ok: true; readonly text: string }
  /** `found` follows the name of the source in a sentence. */
  | { readonly ok: false; readonly found: string };

/** What the source holds now, as it is; the empty text of a variable that is not set. Never rejects. */
export async function readSecret(
  source: KeySource,
  { env, limitMs = 10_000 }: { readonly env: Env; readonly limitMs?: number },
): Promise<SecretRead> {
  if ("env" in source) return { ok: true, text: env[source.env] ?? "" };
  return "file" in source ? readKeyFile(source) : await runCommand(source, env, limitMs);
}

/**
 * A variable and a file are read at each call, a command is run once. `env` is where the variable is looked up; a
 * command sees its PATH and nothing else, and has `limitMs` [10 s] to answer.
 */
export function keyReader(
  source: KeySource,
  site: { readonly env: Env; readonly limitMs?: number },
): KeyReader {
  const read = async () => {
    const secret = await readSecret(source, site);
    if (!secret.ok) throw noKey(source, secret.found);
    return usable(secret.text, source);
  };
  if (!("command" in source)) return read;
  let known: Promise<string> | undefined;
  return (how) => {
    if (known === undefined || how === "again") {
      const asked = known = read();
      // A failure is not kept.
      asked.catch(() => known === asked && (known = undefined));
    }
    return known;
  };
}

// Read at each request: it is small, and a change within one tick of the clock would not show in its times.
function readKeyFile(source: { readonly file: string }): SecretRead {
  try {
    const whole = readWhole(source.file, longestKey);
    if (!whole.ok) return missing(`holds more than ${longestKey} bytes`);
    return { ok: true, text: new TextDecoder().decode(whole.bytes) };
  } catch (error) {
    if (error instanceof NotRegular) return missing("is not a regular file");
    return missing(`could not be read (${codeOf(error) ?? unknown})`);
  }
}

function missing(found: string): SecretRead {
  return { ok: false, found };
}

// Resolves when the program has closed its output or the time is over, whichever comes first; its whole process group
// is ended in the second case, so that a child that kept the output open does not stay.
async function runCommand(
  source: { readonly command: readonly string[] },
  env: Env,
  limitMs: number,
): Promise<SecretRead> {
  const [program, ...args] = source.command;
  if (program === undefined || !isAbsolute(program)) {
    return missing("cannot be had: the command is not an absolute path");
  }
  const child = start(program, args, env);
  if (typeof child === "string") return missing(child);
  return await new Promise((resolve) => {
    const pieces: Uint8Array[] = [];
    let size = 0;
    const stop = (reason: string) => {
      clearTimeout(timer);
      child.stdout.destroy();
      endGroup(child.pid);
      resolve(missing(reason));
    };
    const timer = setTimeout(() => stop(`was not there after ${limitMs} ms`), limitMs);
    child.stdout.on("data", (piece: Uint8Array) => {
      pieces.push(piece);
      size += piece.byteLength;
      if (size > longestKey) stop(`holds more than ${longestKey} bytes`);
    });
    child.on("error", (error) => stop(notHad(error)));
    child.on("close", (status, signal) => {
      clearTimeout(timer);
      if (status === 0) resolve({ ok: true, text: Buffer.concat(pieces).toString("utf8") });
      else resolve(missing(`could not be had: the command ended with ${signal ?? `status ${status}`}`));
    });
  });
}

// The child, or what became of it.
function start(program: string, args: readonly string[], env: Env) {
  try {
    return spawn(program, args, {
      env: { PATH: env.PATH ?? usualPath },
      cwd: "/",
      stdio: ["ignore", "pipe", "ignore"],
      detached: true,
    });
  } catch (error) {
    return notHad(error);
  }
}

function notHad(error: unknown): string {
  return `could not be had (${codeOf(error) ?? unknown})`;
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Gone already.
  }
}

function usable(text: string, source: KeySource): string {
  const key = text.trim();
  if (key === "") throw noKey(source, "env" in source ? "is not set" : "is empty");
  if (!/^[\x21-\x7e]+$/.test(key)) throw noKey(source, "holds several lines or characters that no key has");
  return key;
}

function noKey(source: KeySource, found: string): ModelFailure {
  const hint = "env" in source
    ? `set \`${source.env}\` to the key, or name another place in \`model.api_key\``
    : "file" in source
    ? `put the key, and nothing else, into \`${source.file}\`, or name another place in \`model.api_key\``
    : "the command must print the key, and nothing else, and end with status 0; it sees only PATH";
  return new ModelFailure("no_key", `no key for the model: ${describeKeySource(source)} ${found}`, { hint });
}
