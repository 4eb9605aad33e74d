// The rules of each layer: lists of all its files compiled in order, defaults per risk, and checks across rules.
import { type Effect, type Risk, risks } from "../core/decision.ts";
import type { Gate, Layer } from "../core/policy.ts";
import { type Position, type Problem, showPosition } from "../core/problem.ts";
import { parseRiskyOption, type RiskyOption } from "../core/risky_options.ts";
import type { Rule } from "../core/rule.ts";
import { shippedSets } from "../core/shipped_sets.ts";
import { resolvePath } from "./locate.ts";
import type { PolicyFile, PolicyLayer } from "./policy_file.ts";
import { compileRule, type RuleContext, type RuleExample } from "./policy_rules.ts";
import { policyLayers, type Settings, setTwice, unionOf } from "./policy_settings.ts";
import type { YamlPath } from "./yaml.ts";

/** What the rules of a file are read against: the sets of its own layer and of those above it. */
export function ruleContexts(
  settings: Settings,
  base: Pick<RuleContext, "root" | "home" | "serverTools" | "boxes">,
): (file: PolicyFile) => RuleContext {
  const risky = riskyOptions(settings);
  const sets = new Map<PolicyLayer, ReadonlyMap<string, readonly string[]>>();
  let upper: ReadonlyMap<string, readonly string[]> = new Map();
  for (const layer of policyLayers) {
    upper = new Map([...upper, ...layerSets(settings, layer)]);
    sets.set(layer, upper);
  }
  return (file) => ({
    root: base.root,
    home: base.home,
    serverTools: base.serverTools,
    ...(base.boxes === undefined ? {} : { boxes: base.boxes }),
    risky,
    sets: sets.get(file.layer) ?? new Map(),
    resolve: (path) => resolvePath(path, { file: file.path, home: base.home }),
  });
}

function layerSets(settings: Settings, layer: PolicyLayer): ReadonlyMap<string, readonly string[]> {
  const sets = new Map<string, { readonly entries: readonly string[]; readonly at: Position }>();
  for (const file of settings.files.filter((f) => f.layer === layer)) {
    for (const [name, entries] of Object.entries(file.data.permissions?.sets ?? {})) {
      const path = ["permissions", "sets", name];
      const at = file.keyAt(path);
      const before = sets.get(name);
      if (before !== undefined) setTwice(settings, path.join("."), before, { at });
      const nested = entries.findIndex((e) => e.startsWith("@"));
      if (Object.hasOwn(shippedSets, name)) {
        report(
          settings,
          at,
          "wrong-value",
          `the set \`@${name}\` is shipped with writ`,
          "choose another name",
        );
      } else if (nested >= 0) {
        report(
          settings,
          file.at([...path, nested]),
          "wrong-value",
          `\`${entries[nested]}\` is a set within a set`,
          "write its entries out",
        );
      } else {
        sets.set(name, { entries, at });
        settings.origin.push({ key: path.join("."), value: entries, layer, at });
      }
    }
  }
  return new Map([...sets].map(([name, set]) => [name, set.entries]));
}

function riskyOptions(settings: Settings): readonly RiskyOption[] {
  return unionOf(settings, "permissions.risky_options").flatMap(({ value, at }): RiskyOption[] => {
    const option = parseRiskyOption(value);
    if (!("error" in option)) return [option];
    report(settings, at, "wrong-value", option.error, option.hint);
    return [];
  });
}

/** Layers that have files, most trusted first. */
export function compileLayers(
  settings: Settings,
  contextOf: (file: PolicyFile) => RuleContext,
): { readonly layers: readonly Layer[]; readonly examples: readonly RuleExample[] } {
  const examples: RuleExample[] = [];
  const layers = policyLayers.flatMap((name): Layer[] => {
    const files = settings.files.filter((f) => f.layer === name);
    if (files.length === 0) return [];
    const list = (key: ListKey) => compileList(settings, files, key, contextOf, examples);
    return [{
      name,
      rules: [...list("deny"), ...list("ask"), ...list("allow")],
      defaults: layerDefaults(settings, files),
      delegates: list("delegate"),
    }];
  });
  return { layers, examples };
}

type ListKey = "deny" | "ask" | "allow" | "delegate";

// Numbers run on through the files of a layer, so that a default id is met once.
function compileList(
  settings: Settings,
  files: readonly PolicyFile[],
  key: ListKey,
  contextOf: (file: PolicyFile) => RuleContext,
  examples: RuleExample[],
): readonly Rule[] {
  let next = 0;
  return files.flatMap((file) =>
    (file.data.permissions?.[key] ?? []).flatMap((entry, index) => {
      const at = (path: YamlPath) => file.at(["permissions", key, index, ...path]);
      const made = compileRule(entry, {
        layer: file.layer,
        effect: key === "delegate" ? "allow" : key,
        list: key === "delegate" ? "delegate" : "rules",
        defaultId: `${file.layer}.${key}[${next++}]`,
        at,
      }, contextOf(file));
      settings.problems.push(...made.problems);
      if (!made.ok) return [];
      const { rule } = made.value;
      examples.push(...made.value.examples);
      settings.origin.push({
        key: `permissions.${key}`,
        value: `${rule.id}: ${rule.text}`,
        layer: file.layer,
        at: at([]),
      });
      return [rule];
    })
  );
}

function layerDefaults(settings: Settings, files: readonly PolicyFile[]): Layer["defaults"] {
  const defaults: { [R in Risk]?: { readonly effect: Effect; readonly at: Position } } = {};
  for (const file of files) {
    const written = file.data.permissions?.default;
    if (written === undefined) continue;
    for (const risk of risks) {
      const effect = typeof written === "string" ? written : written[risk];
      if (effect === undefined) continue;
      const at = file.at(["permissions", "default", ...(typeof written === "string" ? [] : [risk])]);
      const before = defaults[risk];
      if (before !== undefined) {
        setTwice(settings, `permissions.default.${risk}`, before, { at });
        continue;
      }
      defaults[risk] = { effect, at };
      settings.origin.push({ key: `permissions.default.${risk}`, value: effect, layer: file.layer, at });
    }
  }
  return defaults;
}

/** Ids stand in the log and answer for one rule or gate each. */
export function duplicateIds(layers: readonly Layer[], gates: readonly Gate[]): readonly Problem[] {
  const seen = new Map<string, Position>();
  const all = [
    ...layers.flatMap((l) => l.rules),
    ...gates.flatMap((g) => [g, ...g.before, ...g.evidence]),
  ];
  return all.flatMap(({ id, at }): Problem[] => {
    const first = seen.get(id);
    if (first === undefined) {
      seen.set(id, at);
      return [];
    }
    return [{
      code: "duplicate-id",
      severity: "error",
      message: `the id \`${id}\` is already that of ${showPosition(first)}`,
      at,
      hint: "choose another; an id names one rule in every log",
    }];
  });
}

/** A project's allow rules without anything delegated to them. */
export function undelegated(layers: readonly Layer[]): readonly Problem[] {
  if (layers.some((l) => l.delegates.length > 0)) return [];
  const rules = layers.filter((l) => l.name === "project").flatMap((l) => l.rules);
  return rules.filter((r) => r.effect === "allow").map((r) => ({
    code: "not-delegated",
    severity: "warning",
    message: `the project's allow rule \`${r.text}\` has no effect: no upper layer delegates to the project`,
    at: r.at,
    hint: "add `permissions.delegate` to the user or machine policy",
  }));
}

function report(settings: Settings, at: Position, code: string, message: string, hint: string): void {
  settings.problems.push({ code, severity: "error", message, at, hint });
}
