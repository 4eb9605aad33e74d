// What a running session has of a skill's folder: the bytes that count where it is pinned, its command tools, their secrets.
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import type { Tool } from "../agent/ports.ts";
import type { SkillSecret } from "../core/policy.ts";
import { showPosition } from "../core/problem.ts";
import type { Skill } from "../core/skill.ts";
import { escapeLine } from "../core/text.ts";
import { hashFolder } from "../load/folder_hash.ts";
import type { WorkspaceContent } from "../load/trust.ts";
import { openSnapshot, snapshotFolder } from "../load/snapshot.ts";
import { shortestSecret } from "../load/redactor.ts";
import { describeSource, readSecret } from "../load/secret.ts";
import { run } from "../sandbox/subprocess.ts";
import { commandTool, type RunFolder, type SecretValues } from "../tools/command_tool.ts";

export type SkillSite = {
  /** Where private copies of pinned skills lie. */
  readonly state: string;
  /** In which the skill's command tools run. */
  readonly box?: string;
  readonly secrets: readonly SkillSecret[];
  /** What the workspace held when it was trusted, where that was asked. */
  readonly trustedContent?: Pick<WorkspaceContent, "hashes">;
  readonly env: { readonly [name: string]: string | undefined };
  /** Told of each secret before a child gets it. */
  onSecret(value: string): void;
};

export type PlacedSkill =
  | { readonly ok: true; readonly skill: Skill }
  | { readonly ok: false; readonly code: string; readonly message: string };

/** The skill as it is read: at its own place, or at that of its verified copy. */
export function placedSkill(skill: Skill, state: string, purpose: "load" | "use"): PlacedSkill {
  if (skill.pin === undefined) return { ok: true, skill };
  const opened = openSnapshot(state, { folder: skill.folder, pin: skill.pin }, purpose);
  if (!opened.ok) return opened;
  return {
    ok: true,
    skill: { ...skill, folder: opened.folder, file: join(opened.folder, basename(skill.file)) },
  };
}

export function commandTools(skill: Skill, site: SkillSite): readonly Tool[] {
  const copy = skill.pin === undefined ? undefined : snapshotFolder(site.state, skill.pin);
  const side = {
    name: skill.name,
    ...(site.box === undefined ? {} : { box: site.box }),
    folder: copy !== undefined && existsSync(copy) ? copy : skill.folder,
    runFolder: async () => runFolder(skill, site),
    secrets: () => secretsOf(skill, site),
  };
  return skill.tools.map((spec) => commandTool(spec, side));
}

function runFolder(skill: Skill, site: SkillSite): RunFolder {
  const changed = skill.tier === "project" && site.trustedContent !== undefined
    ? changedSince(site.trustedContent, skill.folder)
    : undefined;
  if (changed !== undefined) return { ok: false, code: "skill_changed", message: changed };
  const placed = placedSkill(skill, site.state, "use");
  return placed.ok ? { ok: true, folder: placed.skill.folder } : placed;
}

// A command may read any file beside it, so none may be new or different.
function changedSince(content: Pick<WorkspaceContent, "hashes">, folder: string): string | undefined {
  const hashed = hashFolder(folder);
  if (!hashed.ok) return hashed.message;
  const other = hashed.files.find(({ path, sha256 }) =>
    !/(?:^|\/)\.git\//.test(path) && content.hashes.get(join(folder, path)) !== sha256
  );
  return other === undefined
    ? undefined
    : `\`${
      escapeLine(join(folder, other.path))
    }\` has changed since its workspace was trusted; nothing was run`;
}

async function secretsOf(skill: Skill, site: SkillSite): Promise<SecretValues> {
  const env: Record<string, string> = {};
  for (const secret of site.secrets.filter((s) => s.skill === skill.name)) {
    const read = await readSecret(secret.source, { env: site.env, run });
    const value = read.ok ? read.text : "";
    const fault = read.ok ? secretFault(value) : read.found;
    if (fault !== undefined) {
      const message =
        `the secret \`${secret.variable}\` of the skill \`${skill.name}\` is missing, so nothing was run: ${
          describeSource(secret.source)
        } ${fault} (skills.secrets at ${showPosition(secret.at)})`;
      return { ok: false, message };
    }
    for (const part of new Set([value, ...value.split(/\r?\n/)])) site.onSecret(part);
    env[secret.variable] = value;
  }
  return { ok: true, env };
}

function secretFault(value: string): string | undefined {
  if (value.includes("\0")) return "holds a byte that no variable can hold";
  // Such a value could not be told from ordinary text, and so not kept out of the log.
  return value.length < shortestSecret ? `holds fewer than ${shortestSecret} characters` : undefined;
}
