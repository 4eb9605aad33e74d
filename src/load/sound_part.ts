// What is left of a faulty policy file when everything that a fault touches is taken out: enough to find what else is wrong,
// never to start with. Also tells the problems that are there only because something was taken out.
import * as v from "valibot";
import { type Position, type Problem, showPosition } from "../core/problem.ts";
import { isObject } from "../core/text.ts";
import type { PolicyFile } from "./policy_file.ts";
import { policySchema } from "./policy_schema.ts";
import type { YamlDocument, YamlPath } from "./yaml.ts";

/** The sound part of a document, with the places of the whole, and what was taken out. */
export type SoundPart = { readonly document: YamlDocument; readonly taken: readonly YamlPath[] };

/** With more faults than these, what else may be wrong is of no use yet, and would take long to find. */
const mostFaults = 200;
const mostRounds = 8;

/**
 * `refused` are paths of faults beyond the schema. Undefined when nothing useful is left. An entry of which a part is wrong
 * goes as a whole, and so do settings that are judged against each other; so does what is wrong without the part that went.
 */
export function soundPart(document: YamlDocument, refused: readonly YamlPath[]): SoundPart | undefined {
  if (!isObject(document.value)) return undefined;
  if (refused.length > mostFaults) return undefined;
  let taken = refused.map(unitOf);
  for (let round = 0; round < mostRounds; round++) {
    const kept = new Map<string, readonly number[]>();
    const value = { ...without(document.value, [], taken, kept) as object, version: 1 };
    const { issues = [] } = v.safeParse(policySchema, value);
    if (issues.length > mostFaults) return undefined;
    const faults = issues.map((issue) => issue.path?.map((step) => step.key as string | number) ?? [])
      .filter((path) => path.length > 0 && path[0] !== "version");
    if (faults.length === 0 && issues.length > 0) return undefined;
    if (faults.length === 0) return { taken, document: withoutTaken(document, value, kept) };
    taken = [...taken, ...faults.map((path) => unitOf(original(existing(path, value), kept)))];
  }
  return undefined;
}

// What is missing cannot go: what misses it goes.
function existing(path: YamlPath, value: unknown): YamlPath {
  const missing = path.slice(0, -1).reduce<unknown>((v, step) => (v as Steps | undefined)?.[step], value);
  const has = (isObject(missing) || Array.isArray(missing)) && Object.hasOwn(missing, path.at(-1) ?? "");
  return has || path.length < 2 ? path : path.slice(0, -1);
}

type Steps = { readonly [step: string | number]: unknown };

function withoutTaken(
  document: YamlDocument,
  value: unknown,
  kept: ReadonlyMap<string, readonly number[]>,
): YamlDocument {
  return {
    value,
    at: (path) => document.at(original(path, kept)),
    keyAt: (path) => document.keyAt(original(path, kept)),
    scalar: (path) => document.scalar(original(path, kept)),
  };
}

const units: readonly { readonly below: YamlPath; readonly steps: number }[] = [
  { below: ["model"], steps: 1 },
  { below: ["tools"], steps: 1 },
  { below: ["skills", "sources"], steps: 2 },
  { below: ["skills", "forced"], steps: 3 },
  { below: ["skills", "triggers"], steps: 3 },
  { below: ["permissions"], steps: 3 },
];

function unitOf(path: YamlPath): YamlPath {
  const unit = units.find(({ below }) => startsWith(path, below));
  return unit === undefined ? path : path.slice(0, unit.steps);
}

function without(
  value: unknown,
  path: YamlPath,
  taken: readonly YamlPath[],
  kept: Map<string, readonly number[]>,
): unknown {
  const inside = taken.filter((t) => startsWith(t, path));
  if (inside.length === 0) return value;
  const stays = (step: string | number) =>
    !inside.some((t) => t.length === path.length + 1 && t.at(-1) === step);
  if (Array.isArray(value)) {
    const indexes = value.map((_, index) => index).filter(stays);
    kept.set(JSON.stringify(path), indexes);
    return indexes.map((index) => without(value[index], [...path, index], taken, kept));
  }
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).filter(([key]) => stays(key)).map((
      [key, member],
    ) => [key, without(member, [...path, key], taken, kept)]),
  );
}

// Entries behind one that was taken out have moved up.
function original(path: YamlPath, kept: ReadonlyMap<string, readonly number[]>): YamlPath {
  return path.reduce<YamlPath>((whole, step) => {
    const indexes = kept.get(JSON.stringify(whole));
    return [...whole, typeof step === "number" ? indexes?.[step] ?? step : step];
  }, []);
}

function startsWith(path: YamlPath, start: YamlPath): boolean {
  return start.every((step, i) => step === path[i]);
}

const judging = ["allow", "ask", "delegate", "default"].map((key) => ["permissions", key]);

// What each kind of problem may be a consequence of.
const causes: { readonly [code: string]: readonly YamlPath[] } = {
  "unknown-set": [["permissions", "sets"]],
  "wrong-set": [["permissions", "sets"]],
  "not-delegated": [["permissions", "delegate"]],
  "gate-unreachable": judging,
  "evidence-unreachable": [...judging, ["tools", "enabled"]],
  "example-fails": [["permissions", "risky_options"]],
  "forced-skill-missing": [["skills", "sources"]],
  "unknown-skill": [["skills", "sources"]],
  "unknown-box": [["sandbox"]],
  "absent-tool": [["mcp_servers"]],
  "prices-missing": [["model"]],
};

/** Of the problems found in what is left those that would be there without anything taken out. */
export function withoutConsequences(
  problems: readonly Problem[],
  taken: readonly YamlPath[],
  files: readonly PolicyFile[],
): readonly Problem[] {
  const known = new Map<YamlPath, boolean>();
  const touched = (key: YamlPath) => {
    const found = known.get(key) ??
      (taken.some((t) => startsWith(t, key) || startsWith(key, t)) || faultyEntry(problems, files, key));
    known.set(key, found);
    return found;
  };
  return problems.filter((problem) => {
    // Which layer's word has an effect is not known before all of them are.
    if (problem.code === "no-effect") return taken.length === 0;
    return !(causes[problem.code] ?? []).some(touched);
  });
}

// An entry of the list or mapping at `key` that fits the schema and is wrong all the same.
function faultyEntry(problems: readonly Problem[], files: readonly PolicyFile[], key: YamlPath): boolean {
  if (key.length < 2) return false;
  const places = new Set(files.flatMap((file) => entriesAt(file, key).map((at) => showPosition(at))));
  return problems.some((p) => p.severity === "error" && p.at !== undefined && places.has(showPosition(p.at)));
}

function entriesAt(file: PolicyFile, key: YamlPath): readonly Position[] {
  const value = key.reduce<unknown>((v, step) => isObject(v) ? v[step] : undefined, file.data);
  const below = (inner: unknown, path: YamlPath): readonly Position[] => {
    const steps = Array.isArray(inner) ? [...inner.keys()] : isObject(inner) ? Object.keys(inner) : [];
    return steps.flatMap((step) => {
      const at = [...path, step];
      return [file.at(at), file.keyAt(at), ...below((inner as { readonly [k: string]: unknown })[step], at)];
    });
  };
  return below(value, key);
}
