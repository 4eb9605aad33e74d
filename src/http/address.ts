// Where a server may listen: what a written address means, and the place of a unix socket made safe.
import { chmodSync, existsSync, lstatSync, mkdirSync, rmSync, statSync } from "node:fs";
import { connect, isIP } from "node:net";
import { dirname } from "node:path";
import process from "node:process";
import { codeOf } from "../core/thrown.ts";
import { listenWords, parseAddress } from "../load/policy_server.ts";

export type Address =
  | { readonly kind: "unix"; readonly path: string }
  | { readonly kind: "tcp"; readonly address: string; readonly port: number };

export type Allowed = {
  /** `server.token_file` is set. */
  readonly tokenFile: boolean;
  readonly allowRemote: boolean;
};

/** The address, or why it is not listened at. */
export function readAddress(written: string, allowed: Allowed): Address | string {
  if (written.startsWith("unix:/")) return { kind: "unix", path: written.slice(5) };
  const parsed = parseAddress(written);
  if (parsed === undefined) return `cannot listen at \`${written}\`; expected ${listenWords}`;
  // A name would be looked up, and could lead anywhere.
  const address = parsed.address === "localhost" ? "127.0.0.1" : parsed.address;
  if (isIP(address) === 0) return `\`${address}\` is no IP address; expected ${listenWords}`;
  if (!isLoopback(address) && !(allowed.tokenFile && allowed.allowRemote)) {
    return `\`${written}\` can be reached from other machines; set \`server.token_file\` and \`server.allow_remote: true\` if that is meant, and put TLS in front of it`;
  }
  return { kind: "tcp", address, port: parsed.port };
}

export function isLoopback(address: string): boolean {
  return /^127\.\d+\.\d+\.\d+$/.test(address) || address === "::1";
}

/** Values of `Host` that mean this address, in lower case. */
export function ownHosts(address: Address, port: number): readonly string[] {
  if (address.kind === "unix") return ["localhost"];
  const shown = isIP(address.address) === 6 ? `[${address.address}]` : address.address;
  const names = isLoopback(address.address) ? ["localhost", "127.0.0.1", "[::1]", shown] : [shown];
  return [...new Set(names)].map((name) => `${name}:${port}`);
}

/**
 * Makes the place for a socket: its folder is there and nobody else may write to it, and a socket that nobody answers at is
 * removed. Resolves to why that cannot be; what is no socket is never removed.
 */
export async function prepareSocket(path: string): Promise<string | undefined> {
  const folder = dirname(path);
  // 104 with the final zero on macOS, 108 on Linux; a longer path fails with a message that does not say why.
  if (Buffer.byteLength(path) > 103) return `the path of the socket \`${path}\` is longer than 103 bytes`;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { mode, uid } = statSync(folder);
  if ((mode & 0o022) !== 0) {
    return `others may write to \`${folder}\`, so a socket there can be replaced; use a folder of your own (\`chmod 700\`)`;
  }
  const own = process.getuid?.();
  if (own !== undefined && uid !== own && uid !== 0) {
    return `\`${folder}\` belongs to another user; use a folder of your own`;
  }
  const old = lstatSync(path, { throwIfNoEntry: false });
  if (old === undefined) return undefined;
  if (!old.isSocket()) return `\`${path}\` is no socket; remove it, or listen elsewhere`;
  if (await isAnswered(path)) return `another server answers at \`${path}\``;
  rmSync(path, { force: true });
  return undefined;
}

function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    const end = (answered: boolean) => {
      socket.destroy();
      resolve(answered);
    };
    socket.once("connect", () => end(true));
    // Only a refusal says that nobody is there.
    socket.once("error", (error) => end(codeOf(error) !== "ECONNREFUSED" && codeOf(error) !== "ENOENT"));
    socket.setTimeout(2000, () => end(true));
  });
}

/** Runs `bind` so that the socket it makes is this user's alone from its first moment on. */
export function withOwnSocket<T>(address: Address, bind: () => T): T {
  if (address.kind === "tcp") return bind();
  const before = process.umask(0o177);
  try {
    const bound = bind();
    if (existsSync(address.path)) chmodSync(address.path, 0o600);
    return bound;
  } finally {
    process.umask(before);
  }
}
