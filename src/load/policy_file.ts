// One policy file: text → typed data that knows where every value stands, or every fault in it at once.
import * as v from "valibot";
import type { LayerName } from "../core/decision.ts";
import type { Loaded, Position, Problem } from "../core/problem.ts";
import { isObject } from "../core/text.ts";
import { checkValue, showPath } from "./check_value.ts";
import { allowedInProject, inThisVersion, keyMatches, notInThisVersion } from "./policy_keys.ts";
import { type PolicyData, policySchema } from "./policy_schema.ts";
import { checkKey } from "./policy_values.ts";
import { soundPart } from "./sound_part.ts";
import { parseYaml, type YamlDocument, type YamlPath } from "./yaml.ts";

/** Bytes of a policy file that are read at most. */
export const policyCap = 256 * 1024;

export type PolicyLayer = Exclude<LayerName, "builtin">;
export type PolicyFile = {
  readonly layer: PolicyLayer;
  /** Absolute; also the file of every position. */
  readonly path: string;
  readonly data: PolicyData;
  at(path: YamlPath): Position;
  keyAt(path: YamlPath): Position;
};

/** `rest`: what is sound of a file with faults of shape, only to find further faults; `taken` is what it lacks. */
export type LoadedFile =
  | Extract<Loaded<PolicyFile>, { readonly ok: true }>
  | {
    readonly ok: false;
    readonly problems: readonly Problem[];
    readonly rest?: { readonly file: PolicyFile; readonly taken: readonly YamlPath[] };
  };

/**
 * `file` is the absolute path, `version` that of this binary (`1.2.3`, a suffix does not count). Problems come in the order
 * of the document. A file for a newer version is refused with just that, since nothing else about it can be judged.
 */
export function loadPolicyFile(
  text: string,
  file: string,
  layer: PolicyLayer,
  version: string,
): LoadedFile {
  const parsed = parseYaml(text, file, policyCap);
  if (!parsed.ok) return { ok: false, problems: explained(parsed.problems) };
  const document = parsed.value;
  const early = emptyFile(document) ?? tooNew(document, version);
  if (early !== undefined) return { ok: false, problems: [early] };
  const refused: YamlPath[] = [];
  const problems = check(document, layer, refused);
  if (problems.length === 0) {
    return { ok: true, value: asFile(document, file, layer), problems: [] };
  }
  const sound = soundPart(document, refused);
  // What was taken out must be all that was wrong.
  if (sound === undefined || check(sound.document, layer, []).length > 0) return { ok: false, problems };
  return {
    ok: false,
    problems,
    rest: { file: asFile(sound.document, file, layer), taken: sound.taken },
  };
}

function asFile(document: YamlDocument, path: string, layer: PolicyLayer): PolicyFile {
  const data = v.parse(policySchema, document.value);
  return { layer, path, data, at: document.at, keyAt: document.keyAt };
}

function check(document: YamlDocument, layer: PolicyLayer, refused: YamlPath[]): readonly Problem[] {
  return checkValue(policySchema, document, {
    visit: (path, value) => {
      const problem = visitKey(document, layer, path, value);
      if (problem !== undefined) refused.push(path);
      return problem;
    },
    secret: (path) =>
      path[0] === "model" && (path[1] === "api_key" || path[1] === "headers") ||
      path[0] === "skills" && path[1] === "secrets" && path.length > 3 ||
      path[0] === "mcp_servers" && (path[2] === "env" || path[2] === "headers"),
    offered: (path, value) => inThisVersion(path, value) && (layer !== "project" || allowedInProject(path)),
  });
}

function emptyFile(document: YamlDocument): Problem | undefined {
  if (document.value !== null && document.value !== undefined) return undefined;
  return {
    code: "empty-file",
    severity: "error",
    message: "the policy file is empty",
    at: document.at([]),
    expected: "at least `version: 1`",
    hint: "write it, or remove the file",
  };
}

function tooNew(document: YamlDocument, version: string): Problem | undefined {
  if (!isObject(document.value)) return undefined;
  const { version: format, min_version: least } = document.value;
  if (typeof format === "number" && format > 1) {
    return {
      code: "newer-version",
      severity: "error",
      message: `\`version\` is \`${format}\``,
      at: document.at(["version"]),
      expected: "`1`",
      hint: `this is writ ${version}; use a newer one for this file`,
    };
  }
  if (typeof least !== "string" || !isNewer(least, version)) return undefined;
  return {
    code: "min-version",
    severity: "error",
    message: `\`min_version\` is \`${least}\`, this is writ ${version}`,
    at: document.at(["min_version"]),
    hint: `use writ ${least} or newer for this file`,
  };
}

function isNewer(wanted: string, have: string): boolean {
  const numbers = (text: string) => /^(\d+)\.(\d+)\.(\d+)/.exec(text)?.slice(1).map(Number) ?? [];
  const [a, b] = [numbers(wanted), numbers(have)];
  const differs = a.findIndex((n, i) => n !== b[i]);
  return differs >= 0 && (a[differs] ?? 0) > (b[differs] ?? 0);
}

function visitKey(
  document: YamlDocument,
  layer: PolicyLayer,
  path: YamlPath,
  value: unknown,
): Problem | undefined {
  if (layer === "project" && !allowedInProject(path)) {
    return {
      code: "not-allowed-in-project",
      severity: "error",
      message: `${showPath(path)} may not be set in a project policy`,
      at: document.keyAt(path),
      hint: "set it in the user or machine layer",
    };
  }
  const later = notInThisVersion.find((k) =>
    keyMatches(k.path, path) && (k.when === undefined || k.when(value))
  );
  if (later !== undefined) {
    return {
      code: "not-in-this-version",
      severity: "error",
      message: later.when === undefined
        ? `${showPath(path)} is not in this version of writ`
        : `${showPath(path)} as \`${String(value)}\` is not in this version of writ`,
      at: later.when === undefined ? document.keyAt(path) : document.at(path),
      hint: "remove it; writ does not start with a setting that it cannot keep",
    };
  }
  const fault = checkKey(path, value);
  if (fault === undefined) return undefined;
  const { place, ...said } = fault;
  return { severity: "error", at: place === "key" ? document.keyAt(path) : document.at(path), ...said };
}

function explained(problems: readonly Problem[]): readonly Problem[] {
  const place = (p: Problem) => `${p.at?.line}:${p.at?.col}`;
  const aliases = new Set(problems.filter((p) => p.code === "yaml-alias").map(place));
  return problems.filter((p) => p.code !== "invalid-yaml" || !aliases.has(place(p))).map((p) =>
    p.code === "yaml-alias"
      ? { ...p, hint: "put quotes around a text that starts with `*` or `&`, or write the value out" }
      : p
  );
}
