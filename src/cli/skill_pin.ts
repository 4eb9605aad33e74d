// `writ skill pin`: the hash of a skill's whole folder, as the line that a policy needs.
import { realpathSync, statSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import type { Catalog } from "../core/catalog.ts";
import { exitCodes } from "../core/outcome.ts";
import { escapeLine } from "../core/text.ts";
import { noSuchSkill } from "../core/trigger.ts";
import { messageOf } from "../core/thrown.ts";
import { hashFolder } from "../load/folder_hash.ts";
import { scanSkills } from "../load/skill_dir.ts";
import { loadCatalog } from "../session/catalog.ts";
import type { Context, PolicyOptions } from "./command.ts";
import { toJsonLine } from "./json_line.ts";
import { reportProblems, reportSlip } from "./result.ts";
import { loadSettings } from "./settings.ts";

type Found = { readonly name: string; readonly folder: string };

/** Skills by their names in the catalog, refused ones too, since a changed one is pinned again; or by a path, without any policy. */
export async function pinSkills(
  context: Context,
  targets: readonly string[],
  options: PolicyOptions,
): Promise<number> {
  const { output } = context;
  const json = options.json === true;
  let catalog: Catalog | undefined;
  const pins: { skill: string; hash: string; folder: string; files: number; bytes: number }[] = [];
  for (const target of targets) {
    let found: Found | string;
    if (isPath(target)) found = atPath(resolve(context.host.cwd, target));
    else {
      if (catalog === undefined) {
        const settings = await loadSettings(context, options, undefined);
        if (!settings.ok) return reportProblems(output, settings.problems, json);
        catalog = loadCatalog(settings.value).catalog;
      }
      found = byName(catalog, target);
    }
    if (typeof found === "string") return reportSlip(output, found, json);
    const hashed = hashFolder(found.folder);
    if (!hashed.ok) return reportSlip(output, hashed.message, json);
    pins.push({
      skill: found.name,
      hash: hashed.hash,
      folder: found.folder,
      files: hashed.files.length,
      bytes: hashed.files.reduce((sum, f) => sum + f.bytes.length, 0),
    });
  }
  if (json) output.result(toJsonLine({ pins }));
  else {
    const entries = pins.map((p) => `${keyText(p.skill)}: "${p.hash}"`);
    output.result(escapeLine(`pins: {${entries.join(", ")}}`) + "\n");
  }
  return exitCodes.done;
}

function isPath(target: string): boolean {
  return /[/\\]|^\.{1,2}$/.test(target);
}

function atPath(path: string): Found | string {
  try {
    const real = realpathSync(path);
    const folder = statSync(real).isDirectory() ? real : dirname(real);
    const { skills, problems } = scanSkills(folder, "user", { depth: 0, folders: 1 });
    const [skill] = skills;
    if (skill !== undefined) return { name: skill.name, folder };
    const why = problems.find((p) => p.severity === "error");
    return `\`${path}\` is no skill${why === undefined ? ": it holds no SKILL.md" : `: ${why.message}`}`;
  } catch (error) {
    return `\`${path}\` cannot be read: ${messageOf(error)}`;
  }
}

function byName(catalog: Catalog, name: string): Found | string {
  const skill = catalog.get(name);
  if (skill !== undefined) return { name, folder: skill.folder };
  const refused = catalog.absent.filter((a) => a.name === name);
  const [only, other] = refused;
  if (only !== undefined && other === undefined) return { name, folder: dirname(only.file) };
  if (only === undefined) {
    return `${noSuchSkill(name, catalog, "user")}; a path has a slash: \`./${basename(name)}\``;
  }
  const files = refused.map((a) => `\`${a.file}\``).join(" and ");
  return `there are several skills \`${name}\`, none of which is available: name ${files} by its path`;
}

// As a key in YAML flow style.
function keyText(name: string): string {
  return /^[A-Za-z][\w-]*$/.test(name) ? name : JSON.stringify(name);
}
