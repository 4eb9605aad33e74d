// Who may call: the file of tokens, read again whenever it changes. Secrets themselves are never kept: a line holds a hash.
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { Caller, Role } from "../server/host.ts";
import { codeOf } from "../core/thrown.ts";
import { writeNew } from "../disk/whole_file.ts";

export const roles: readonly Role[] = ["read", "run", "approve", "admin"];

/** A caller and the hash that stands for the token; two lines with one name are two tokens. */
export type Credential = { readonly caller: Caller; readonly hash: string };

export type Tokens = {
  /** The credential of a presented secret, in a time that does not depend on which one it is. */
  find(secret: string): Credential | undefined;
  /** Whether what `find` once gave is still in the file, with the same rights. */
  holds(credential: Credential): boolean;
};

export type TokenProblem = { readonly line: number; readonly message: string };

/**
 * The tokens of the file as it is at each call, or was within `fresh.forMs` before it. A file that is gone or that others may write holds no tokens; lines that cannot
 * be read do not count; `note` is told once for each change.
 */
export function openTokens(
  file: string,
  note: (line: string) => void,
  fresh: { readonly forMs: number; readonly now: () => number } = { forMs: 0, now: () => 0 },
): Tokens {
  let stamp = "";
  let lookedAt = -Infinity;
  let credentials: readonly Credential[] = [];
  const digests = new WeakMap<Credential, Uint8Array>();
  const current = (): readonly Credential[] => {
    const at = fresh.now();
    if (at - lookedAt < fresh.forMs) return credentials;
    lookedAt = at;
    const now = stampOf(file);
    if (now === stamp) return credentials;
    stamp = now;
    const read = readTokens(file);
    for (const { line, message } of read.problems) {
      note(line === 0 ? message : `\`${file}\` line ${line}: ${message}`);
    }
    for (const credential of read.credentials) digests.set(credential, Buffer.from(credential.hash, "hex"));
    return credentials = read.credentials;
  };
  current();
  return {
    find(secret) {
      const digest = createHash("sha256").update(secret).digest();
      let found: Credential | undefined;
      for (const credential of current()) {
        if (timingSafeEqual(digests.get(credential) ?? nothing, digest)) found ??= credential;
      }
      return found;
    },
    holds: ({ caller, hash }) =>
      current().some((c) => c.hash === hash && JSON.stringify(c.caller) === JSON.stringify(caller)),
  };
}

/** Every line of the file as credentials, and what keeps a line from being one. */
export function readTokens(
  file: string,
): { readonly credentials: readonly Credential[]; readonly problems: readonly TokenProblem[] } {
  const nothing = (message: string) => ({ credentials: [], problems: [{ line: 0, message }] });
  let text: string;
  try {
    const { mode } = statSync(file);
    if ((mode & 0o022) !== 0) {
      return nothing(`others may write \`${file}\`, so none of its tokens count; \`chmod go-w\` it`);
    }
    text = readFileSync(file, "utf8");
    // The one kind of line that is a secret itself must be nobody else's to read.
    if ((mode & 0o077) !== 0 && text.split("\n").some((line) => secretLine.test(line))) {
      return nothing(
        `others may read the token in \`${file}\`, so it does not count; remove the file to get a new one`,
      );
    }
  } catch (error) {
    return nothing(`\`${file}\` cannot be read (${codeOf(error) ?? "unknown"}), so there are no tokens`);
  }
  const problems: TokenProblem[] = [];
  const credentials = text.split("\n").flatMap((line, index): Credential[] => {
    if (line.trim() === "" || line.startsWith("#")) return [];
    const read = parseLine(line);
    if (typeof read !== "string") return [read];
    problems.push({ line: index + 1, message: read });
    return [];
  });
  return { credentials, problems };
}

const secretLine = /^[A-Za-z0-9_-]{43}\s*$/;
const lineWords = "`NAME ROLE[,ROLE] sha256:HEX [profiles=NAME,…] [sessions=own|all]`";

function parseLine(line: string): Credential | string {
  // The token that was made at the first start belongs to who owns the machine's account: it may do everything.
  if (secretLine.test(line)) {
    return { caller: { name: "local", roles, profiles: "all", sessions: "all" }, hash: hashOf(line.trim()) };
  }
  const [name = "", written = "", hash = "", ...more] = line.trim().split(/\s+/);
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name)) return `no name was found; expected ${lineWords}`;
  const named = written.split(",");
  const unknown = named.find((r) => !roles.includes(r as Role));
  if (unknown !== undefined) return `no role \`${unknown}\`; roles are ${roles.join(", ")}`;
  const hex = /^sha256:([0-9a-f]{64})$/.exec(hash)?.[1];
  if (hex === undefined) return `no hash of the token was found; expected ${lineWords}`;
  let profiles: Caller["profiles"] = "all";
  let sessions: "own" | "all" = "own";
  for (const word of more) {
    const [, key, value = ""] = /^(profiles|sessions)=(\S+)$/.exec(word) ?? [];
    if (key === "profiles") profiles = value.split(",");
    else if (key === "sessions" && (value === "own" || value === "all")) sessions = value;
    else return `\`${word}\` is not known; expected ${lineWords}`;
  }
  return { caller: { name, roles: roles.filter((r) => named.includes(r)), profiles, sessions }, hash: hex };
}

/** Makes a file with one new token, for this user alone, in a folder that is made where there is none; false when the file was there. */
export function makeToken(file: string): boolean {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  try {
    return writeNew(file, new TextEncoder().encode(`${randomBytes(32).toString("base64url")}\n`), 0o600);
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

function stampOf(file: string): string {
  try {
    const { mtimeMs, ctimeMs, size, ino, mode } = statSync(file);
    return [mtimeMs, ctimeMs, size, ino, mode].join(" ");
  } catch (error) {
    return codeOf(error) ?? "unknown";
  }
}

function hashOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** No digest: compared where there is none, which does not happen. */
const nothing = new Uint8Array(32);
