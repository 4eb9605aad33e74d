// The keys of `server` → what `writ serve` opens, and to whom.
import type { ServerSettings } from "../core/policy.ts";
import type { Position } from "../core/problem.ts";
import { milliseconds } from "./duration.ts";
import { resolvePath } from "./locate.ts";
import { firstOf, mapOf, perLayer, placedPath, type Settings } from "./policy_settings.ts";

/** Of single values the upper layer's; lists of addresses and folders are those of one layer, so that no lower one widens them. */
export function mergeServer(settings: Settings, home: string): ServerSettings {
  const listen = listenOf(settings, home);
  const tokenFile = placedPath(settings, "server.token_file", home);
  const origins = firstOf(settings, "server.origins", []);
  const at = perLayer(settings, "server.origins")[0]?.at;
  for (const origin of origins) if (!isOrigin(origin)) wrongOrigin(settings, origin, at);
  const folders = perLayer(settings, "server.workspaces")[0]?.at.file ?? "";
  return {
    ...(listen === undefined ? {} : { listen }),
    ...(tokenFile === undefined ? {} : { tokenFile }),
    allowRemote: firstOf(settings, "server.allow_remote", false),
    hosts: firstOf(settings, "server.hosts", []),
    origins,
    inspector: firstOf(settings, "server.inspector", false),
    drainGraceMs: milliseconds(firstOf(settings, "server.drain_grace", "25s")),
    maxSessions: firstOf(settings, "server.max_sessions", 1000),
    maxConcurrentTurns: firstOf(settings, "server.max_concurrent_turns", 16),
    idleUnloadMs: milliseconds(firstOf(settings, "server.idle_unload", "15m")),
    workspaces: firstOf(settings, "server.workspaces", []).map((f) =>
      resolvePath(f, { file: folders, home })
    ),
    profiles: Object.fromEntries(
      [...mapOf(settings, "server.profiles")].map(([name, { value, at }]) => [
        name,
        resolvePath(value, { file: at.file, home }),
      ]),
    ),
  };
}

function listenOf(settings: Settings, home: string): string | undefined {
  const listen = firstOf(settings, "server.listen");
  const at = perLayer(settings, "server.listen")[0]?.at;
  if (listen === undefined) return undefined;
  if (listen.startsWith("unix:") && listen.length > 5) {
    return `unix:${resolvePath(listen.slice(5), { file: at?.file ?? "", home })}`;
  }
  if (parseAddress(listen) === undefined) {
    settings.problems.push({
      code: "wrong-value",
      severity: "error",
      message: `\`server.listen\` is \`${listen}\``,
      expected: listenWords,
      ...(at === undefined ? {} : { at }),
    });
  }
  return listen;
}

export const listenWords =
  "`unix:PATH`, or an IP address and a port such as `127.0.0.1:7777` or `[::1]:7777`";

/** The two halves of `ADDRESS:PORT`, an IPv6 address without its brackets; undefined for anything else. A port of 0 is any. */
export function parseAddress(text: string): { readonly address: string; readonly port: number } | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+|localhost)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  const address = match?.[1] ?? match?.[2];
  return address === undefined || port > 65_535 ? undefined : { address, port };
}

// A browser sends scheme, host and port and nothing behind them: what is written otherwise would never be met.
function isOrigin(text: string): boolean {
  try {
    return new URL(text).origin === text;
  } catch {
    return false;
  }
}

function wrongOrigin(settings: Settings, origin: string, at: Position | undefined): void {
  settings.problems.push({
    code: "wrong-value",
    severity: "error",
    message: `\`server.origins\` holds \`${origin}\``,
    expected: "an origin as a browser sends it, such as `https://tools.example` or `http://localhost:5173`",
    ...(at === undefined ? {} : { at }),
  });
}
