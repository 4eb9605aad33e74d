// What a session stands on besides its log: what holds its commands, its servers, and the skills that can be had with them.
import { unavailable } from "../core/catalog.ts";
import type { Loaded } from "../core/problem.ts";
import { isSameWalls, openBoxes, type SessionBoxes } from "./boxes.ts";
import { loadCatalog, type LoadedCatalog, unlisted } from "./catalog.ts";
import type { Host } from "./host.ts";
import { openServers, type SessionServers } from "./mcp_servers.ts";
import type { Secrets } from "./secrets.ts";
import type { Settings } from "./settings.ts";

export type Ground = {
  readonly settings: Settings;
  readonly boxes: SessionBoxes;
  readonly servers: SessionServers;
  readonly catalog: LoadedCatalog;
};

type Site = { readonly host: Host; readonly secrets: Secrets };

/**
 * `before`: what fits of it is used again, and stays open whatever comes of this. `found`: the catalog of these settings, read
 * already, which holds unless a server lacks a tool. Problems mean that nothing new is left open.
 */
export async function layGround(
  { host, secrets }: Site,
  settings: Settings,
  { before, found }: { readonly before?: Ground; readonly found?: LoadedCatalog },
): Promise<Loaded<Ground>> {
  const sameWalls = before !== undefined && isSameWalls(settings, before.settings);
  const boxes = sameWalls ? before.boxes : await openBoxes(settings);
  let servers: SessionServers | undefined;
  let laid: Loaded<Ground> | undefined;
  try {
    boxes.renew();
    const site = { onKey: secrets.add, redact: secrets.under(settings.policy), boxes };
    const reached = before?.servers.fits(settings) === true
      ? { ok: true as const, value: before.servers }
      : await openServers(host, settings, site);
    if (!reached.ok) return reached;
    servers = reached.value;
    laid = withCatalog({ settings, boxes, servers }, found);
    return laid;
  } finally {
    if (laid?.ok !== true) await leaveGround({ boxes, servers }, before);
  }
}

function withCatalog(ground: Omit<Ground, "catalog">, found: LoadedCatalog | undefined): Loaded<Ground> {
  const { settings, servers: { lacking } } = ground;
  const catalog = found !== undefined && lacking.size === 0 ? found : loadCatalog(settings, lacking);
  const missing = unavailable(catalog.catalog, settings.policy, unlisted(catalog));
  return missing.length > 0
    ? { ok: false, problems: missing }
    : { ok: true, value: { ...ground, catalog }, problems: [] };
}

type Opened = { readonly boxes: SessionBoxes; readonly servers: SessionServers | undefined };

/** Ends what was opened for it, save what `kept` stands on as well. */
export async function leaveGround({ servers, boxes }: Opened, kept?: Opened): Promise<void> {
  try {
    if (servers !== kept?.servers) await servers?.close();
  } finally {
    if (boxes !== kept?.boxes) boxes.close();
  }
}
