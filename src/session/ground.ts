// What a session stands on besides its log: what holds its commands, its servers, and the skills that can be had with them.
import { unavailable } from "../core/catalog.ts";
import type { Loaded } from "../core/problem.ts";
import { isSameGround, openBoxes, type SessionBoxes } from "./boxes.ts";
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
  const sameWalls = before !== undefined && isSameGround(settings, before.settings);
  const boxes = sameWalls ? before.boxes : await openBoxes(settings);
  boxes.renew();
  const leaveBoxes = () => sameWalls ? undefined : boxes.close();
  const site = { onKey: secrets.add, redact: secrets.under(settings.policy), boxes };
  const servers = before?.servers.fits(settings) === true
    ? { ok: true as const, value: before.servers }
    : await openServers(host, settings, site);
  if (!servers.ok) {
    leaveBoxes();
    return servers;
  }
  const { lacking } = servers.value;
  const catalog = found !== undefined && lacking.size === 0 ? found : loadCatalog(settings, lacking);
  const ground = { settings, boxes, servers: servers.value, catalog };
  const missing = unavailable(catalog.catalog, settings.policy, unlisted(catalog));
  if (missing.length === 0) return { ok: true, value: ground, problems: [] };
  await leaveGround(ground, before);
  return { ok: false, problems: missing };
}

/** Ends what was opened for it, save what `kept` stands on as well. */
export async function leaveGround({ servers, boxes }: Ground, kept?: Ground): Promise<void> {
  try {
    if (servers !== kept?.servers) await servers.close();
  } finally {
    if (boxes !== kept?.boxes) boxes.close();
  }
}
