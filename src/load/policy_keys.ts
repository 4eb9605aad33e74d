// Tables over the keys of a policy file: which wait for a later version, and which a project may set.
import type { YamlPath } from "./yaml.ts";

/** A key by its path, `*` for any list index or name; `when` narrows it to some values. */
type KeyPattern = { readonly path: string; readonly when?: (value: unknown) => boolean };

/** Known keys whose capability is still to come: refused when set. One line each; a capability that arrives removes its lines. */
export const notInThisVersion: readonly KeyPattern[] = [
  { path: "model.provider", when: (value) => value === "replay" },
  { path: "model.cassette" },
  { path: "output" },
  { path: "server.inspector", when: (value) => value === true },
];

/** What a project policy may set; whole subtrees. */
const projectKeys: readonly string[] = [
  "version",
  "limits",
  "permissions.deny",
  "permissions.ask",
  "permissions.allow",
  "skills.forced",
  "skills.triggers",
  "skills.disabled",
  "sandbox.hide",
  "workspace.protect",
  "secrets.redact.env",
];

/** Whether the pattern stands for exactly this key. */
export function keyMatches(pattern: string, path: YamlPath): boolean {
  const steps = pattern.split(".");
  return steps.length === path.length && steps.every((step, i) => step === "*" || step === path[i]);
}

/** Whether the key at `path` is in this version, or that value of it; steps may be `*`. */
export function inThisVersion(path: YamlPath, value?: unknown): boolean {
  return !notInThisVersion.some(({ path: later, when }) =>
    when === undefined
      ? path.some((_, i) => keyMatches(later, path.slice(0, i + 1)))
      : value !== undefined && keyMatches(later, path) && when(value)
  );
}

/** Whether a project may set the key at `path`, or something in it. */
export function allowedInProject(path: YamlPath): boolean {
  return projectKeys.some((known) => {
    const steps = known.split(".");
    return steps.slice(0, path.length).every((step, i) => step === path[i]);
  });
}
