// The keys of `audit` → how a session is recorded.
import type { AuditSettings } from "../core/policy.ts";
import { parseRetention } from "./duration.ts";
import { placedSource } from "./policy_pins.ts";
import { firstOf, perLayer, placedPath, type Settings } from "./policy_settings.ts";

export function mergeAudit(settings: Settings, home: string): AuditSettings {
  const keep = firstOf(settings, "audit.keep");
  const keepDays = keep === undefined ? undefined : parseRetention(keep);
  const heads = placedPath(settings, "audit.heads", home);
  const file = perLayer(settings, "audit.key")[0]?.at.file ?? "";
  const source = firstOf(settings, "audit.key");
  const key = source === undefined ? undefined : placedSource(source, { file, home });
  return {
    ...(keepDays === undefined ? {} : { keepDays }),
    ...(heads === undefined ? {} : { heads }),
    ...(key === undefined ? {} : { key }),
  };
}
