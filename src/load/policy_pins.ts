// Pins and secrets of skills in a policy: which hash a skill must have, and what its command tools alone get to see.
import type { KeySource, Pin, SkillSecret } from "../core/policy.ts";
import { showPosition } from "../core/problem.ts";
import { escapeLine } from "../core/text.ts";
import { resolvePath } from "./locate.ts";
import type { PolicyFile } from "./policy_file.ts";
import type { PolicyData } from "./policy_schema.ts";
import { type Settings, setTwice } from "./policy_settings.ts";

/** One of each skill, in the order of the files. Pins of one skill that differ are a Problem, whoever wrote them. */
export function compilePins(settings: Settings): readonly Pin[] {
  const pins = new Map<string, Pin>();
  for (const file of settings.files) {
    for (const [skill, hash] of Object.entries(file.data.skills?.pins ?? {})) {
      const at = file.keyAt(["skills", "pins", skill]);
      const before = pins.get(skill);
      if (before === undefined) {
        pins.set(skill, { skill, hash, layer: file.layer, at });
        settings.origin.push({ key: `skills.pins.${skill}`, value: hash, layer: file.layer, at });
      } else if (before.hash !== hash) {
        settings.problems.push({
          code: "pins-differ",
          severity: "error",
          message: `the skill \`${escapeLine(skill)}\` is pinned to two hashes, at ${
            showPosition(before.at)
          } and at ${showPosition(at)}`,
          at,
          hint: "a folder has one hash: keep the pin of what was looked at",
        });
      }
    }
  }
  return [...pins.values()];
}

/** Of one variable of a skill the upper layer's source; what a lower layer says is told to have no effect. */
export function compileSecrets(settings: Settings, home: string): readonly SkillSecret[] {
  const found = new Map<string, SkillSecret & { readonly layer: PolicyFile["layer"] }>();
  for (const file of settings.files) {
    for (const [skill, variables] of Object.entries(file.data.skills?.secrets ?? {})) {
      for (const [variable, written] of Object.entries(variables)) {
        const at = file.keyAt(["skills", "secrets", skill, variable]);
        const source = placedSource(written, { file: file.path, home });
        const key = `skills.secrets.${skill}.${variable}`;
        const before = found.get(key);
        if (source === undefined) continue;
        if (before === undefined) {
          found.set(key, { skill, variable, source, at, layer: file.layer });
          settings.origin.push({ key, value: showSource(source), layer: file.layer, at });
        } else if (before.layer === file.layer) setTwice(settings, key, before, { at });
        else {
          settings.problems.push({
            code: "no-effect",
            severity: "warning",
            message: `\`${variable}\` of \`${
              escapeLine(skill)
            }\` in the ${file.layer} layer has no effect: the ${before.layer} layer decides, at ${
              showPosition(before.at)
            }`,
            at,
          });
        }
      }
    }
  }
  return [...found.values()].map(({ layer: _, ...secret }) => secret);
}

type Written = NonNullable<NonNullable<PolicyData["model"]>["api_key"]>;

/** A place for a secret with its path made absolute; undefined where none is named. */
export function placedSource(
  written: Written,
  base: { readonly file: string; readonly home: string },
): KeySource | undefined {
  if (written.file !== undefined) return { file: resolvePath(written.file, base) };
  if (written.command !== undefined) return { command: written.command };
  return written.env === undefined ? undefined : { env: written.env };
}

function showSource(source: KeySource): string {
  if ("env" in source) return `env ${source.env}`;
  return "file" in source ? `file ${source.file}` : `command ${source.command.join(" ")}`;
}
