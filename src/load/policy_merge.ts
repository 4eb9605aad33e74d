// Files of all layers → one compiled Policy. Layers combine in the one way that tightens; a project can only add to it.
import { createHash } from "node:crypto";
import { uniqueBy } from "../core/collection.ts";
import { globSource } from "../core/glob.ts";
import { listedToolNames } from "../core/mcp.ts";
import type { KeySource, Limits, ModelSettings, Policy, SkillSource } from "../core/policy.ts";
import { isError, type Loaded, type Position, type Problem, showPosition } from "../core/problem.ts";
import { protectedEntries, type ProtectedFacts } from "../core/protected.ts";
import { isWithin } from "../core/path.ts";
import type { Pattern } from "../core/text.ts";
import { builtins, enableableTools } from "../core/tool_names.ts";
import { milliseconds, showDuration } from "./duration.ts";
import { realOr, resolvePath } from "./locate.ts";
import { lazyPattern } from "./pattern.ts";
import { mergeAudit } from "./policy_audit.ts";
import type { PolicyFile } from "./policy_file.ts";
import { unreachableEvidence } from "./gate_evidence.ts";
import { compileForced, type ForcedParts, unreachableVerdicts } from "./policy_forced.ts";
import { compileServers } from "./policy_mcp.ts";
import { namedPaths } from "./policy_paths.ts";
import { compileLayers, duplicateIds, ruleContexts, undelegated } from "./policy_layers.ts";
import { pathPattern } from "./policy_matchers.ts";
import { mergeChoices, pricesOf, unpriced } from "./policy_models.ts";
import type { RuleExample } from "./policy_rules.ts";
import {
  firstOf,
  intersectionOf,
  leastOf,
  mapOf,
  type Origin,
  perLayer,
  placedPath,
  policyLayers,
  type Settings,
  strictestOf,
  unionOf,
} from "./policy_settings.ts";
import { compilePins, compileSecrets, placedSource } from "./policy_pins.ts";
import { mergeSandbox, mergeSkillBoxes, undefinedBoxes } from "./policy_sandbox.ts";
import { mergeServer } from "./policy_server.ts";
import { compileDisabled, compileSources, compileTriggers, policyPattern } from "./policy_skills.ts";

export type MergeInput = {
  /** Within a layer in the order in which they are read. */
  readonly files: readonly PolicyFile[];
  readonly revision: string;
  /** Real paths. */
  readonly root: string;
  readonly home: string;
  /** What is protected beside the policy's own files and instruction files. */
  readonly protect: Pick<ProtectedFacts, "skillFolders" | "gitFolders" | "own">;
};
export type Merged = {
  readonly policy: Policy;
  readonly origin: readonly Origin[];
  readonly examples: readonly RuleExample[];
};

export type MergeResult =
  | Extract<Loaded<Merged>, { readonly ok: true }>
  /** `rest` lacks what is faulty: only to find further faults. */
  | { readonly ok: false; readonly problems: readonly Problem[]; readonly rest: Merged };

/** Every fault of every file at once; warnings come with the value. */
export function mergePolicy(input: MergeInput): MergeResult {
  const files = policyLayers.flatMap((layer) => input.files.filter((f) => f.layer === layer));
  const settings: Settings = { files, problems: [], origin: [] };
  const name = firstOf(settings, "name");
  perLayer(settings, "min_version");
  firstOf(settings, "workspace.root", "auto");
  firstOf(settings, "permissions.non_interactive", "deny");
  firstOf(settings, "audit.on_failure", "stop");
  const model = mergeModel(settings, input.home);
  const limits = mergeLimits(settings);
  unpriced(settings, model, limits);
  const instructions = firstOf(settings, "workspace.instructions", ["AGENTS.md"]);
  const mcpServers = compileServers(settings, input.home);
  const sandbox = mergeSandbox(settings, input.home);
  const contextOf = ruleContexts(settings, {
    ...input,
    serverTools: listedToolNames(mcpServers),
    boxes: sandbox.boxes.map((b) => b.name),
  });
  const { layers, examples } = compileLayers(settings, contextOf);
  const forced = compileForced(settings, contextOf);
  const tools = mergeTools(settings);
  settings.problems.push(
    ...unreachableVerdicts(forced.gates, layers, input.root),
    ...unreachableEvidence(forced.gates, { layers, root: input.root, enabled: tools.enabled }),
    ...duplicateIds(layers, forced.gates),
    ...undelegated(layers),
  );
  const skills = mergeSkills(settings, forced, model, input.home);
  settings.problems.push(...undefinedBoxes(sandbox, [
    ...skills.boxes,
    ...mcpServers.flatMap(({ name, box, at }) =>
      box === undefined ? [] : [{ box, at: boxPlace(files, name, at) }]
    ),
  ]));
  const auditDir = placedPath(settings, "audit.dir", input.home);
  const audit = mergeAudit(settings, input.home);
  const policy: Policy = {
    ...(name === undefined ? {} : { name }),
    revision: input.revision,
    files: files.map(({ layer, path }) => ({ layer, path })),
    root: input.root,
    model,
    limits,
    skills,
    layers,
    gates: forced.gates,
    protect: mergeProtect(settings, input, skills.sources),
    instructions,
    trust: trustSetting(settings),
    sandbox,
    shellEnv: mergeEnv(settings),
    tools,
    mcpServers,
    askTimeoutMs: leastOf(settings, "permissions.ask_timeout", "5m", milliseconds) ?? 0,
    redact: mergeRedact(settings),
    ...(auditDir === undefined ? {} : { auditDir }),
    audit,
    server: mergeServer(settings, input.home),
  };
  const problems = inOrder(settings.problems, files);
  const merged: Merged = {
    policy,
    origin: settings.origin,
    examples: [...examples, ...forced.examples],
  };
  return problems.some(isError)
    ? { ok: false, problems, rest: merged }
    : { ok: true, value: merged, problems };
}

function boxPlace(files: readonly PolicyFile[], server: string, at: Position): Position {
  return files.find((f) => f.path === at.file)?.at(["mcp_servers", server, "box"]) ?? at;
}

/** The strictest word of the machine and user layer. */
export function trustSetting(settings: Settings): Policy["trust"] {
  return strictestOf(settings, "workspace.trust", ["untrusted", "ask", "trusted"], "ask").value;
}

/** Changes with every byte, layer and path of the files. */
export function policyRevision(
  files: readonly { readonly layer: string; readonly path: string; readonly bytes: Uint8Array }[],
): string {
  const hash = createHash("sha256");
  for (const { layer, path, bytes } of files) {
    hash.update(`${JSON.stringify([layer, path, bytes.length])}\n`).update(bytes);
  }
  return hash.digest("hex");
}

function mergeModel(settings: Settings, home: string): ModelSettings {
  const provider = firstOf(settings, "model.provider", "anthropic");
  const baseUrl = firstOf(settings, "model.base_url");
  const script = placedPath(settings, "model.script", home);
  const [maxOutputTokens, contextTokens] = modelTokens(settings);
  if (script !== undefined && provider !== "script") {
    settings.problems.push({
      code: "no-effect",
      severity: "warning",
      message: `\`model.script\` has no effect with provider \`${provider}\``,
      ...placeOf(settings, "model.script"),
      hint: "set `model.provider: script`, or remove it",
    });
  }
  return {
    provider: provider === "script" ? "script" : "anthropic",
    name: firstOf(settings, "model.name") ?? "",
    ...(baseUrl === undefined ? {} : { baseUrl }),
    apiKey: keySource(settings, home),
    headers: valuesOf(mapOf(settings, "model.headers")) as ModelSettings["headers"],
    request: valuesOf(mapOf(settings, "model.request")) as ModelSettings["request"],
    maxOutputTokens,
    contextTokens,
    timeoutMs: milliseconds(firstOf(settings, "model.timeout", "10m")),
    idleTimeoutMs: milliseconds(firstOf(settings, "model.idle_timeout", "120s")),
    retries: firstOf(settings, "model.retries", 4),
    ...(script === undefined ? {} : { script }),
    ...pricesOf(firstOf(settings, "model.prices")),
    ...mergeChoices(settings, maxOutputTokens),
  };
}

function modelTokens(settings: Settings): readonly [number, number] {
  const output = firstOf(settings, "model.max_output_tokens", 8192);
  const context = firstOf(settings, "model.context_tokens", 200_000);
  if (output >= context) {
    settings.problems.push({
      code: "wrong-value",
      severity: "error",
      message:
        `\`model.max_output_tokens\` (${output}) leaves nothing of \`model.context_tokens\` (${context})`,
      ...(placeOf(settings, "model.max_output_tokens") ?? placeOf(settings, "model.context_tokens")),
      hint: "raise the one or lower the other",
    });
  }
  return [output, context];
}

function placeOf(
  settings: Settings,
  key: "model.script" | "model.max_output_tokens" | "model.context_tokens",
) {
  const at = perLayer(settings, key)[0]?.at;
  return at === undefined ? undefined : { at };
}

function keySource(settings: Settings, home: string): KeySource {
  const source = firstOf(settings, "model.api_key", { env: "ANTHROPIC_API_KEY" });
  const file = perLayer(settings, "model.api_key")[0]?.at.file ?? "";
  return placedSource(source, { file, home }) ?? { env: "ANTHROPIC_API_KEY" };
}

function valuesOf(
  map: ReadonlyMap<string, { readonly value: unknown }>,
): { readonly [name: string]: unknown } {
  return Object.fromEntries([...map].map(([name, placed]) => [name, placed.value]));
}

function mergeLimits(settings: Settings): Limits {
  const same = (n: number) => n;
  const tokens = leastOf(settings, "limits.tokens", undefined, same);
  const costUsd = leastOf(settings, "limits.cost_usd", undefined, same);
  return {
    iterations: leastOf(settings, "limits.iterations", 50, same) ?? 0,
    toolCalls: leastOf(settings, "limits.tool_calls", 200, same) ?? 0,
    wallTimeMs: leastOf(settings, "limits.wall_time", "30m", milliseconds) ?? 0,
    sameCall: leastOf(settings, "limits.same_call", 3, same) ?? 0,
    ...(tokens === undefined ? {} : { tokens }),
    ...(costUsd === undefined ? {} : { costUsd }),
  };
}

function mergeSkills(
  settings: Settings,
  forced: ForcedParts,
  model: ModelSettings,
  home: string,
): Policy["skills"] {
  const same = (n: number) => n;
  return {
    sources: compileSources(settings, (path, file) => resolvePath(path, { file, home })),
    scope: firstOf(settings, "skills.scope", "turn"),
    forced: forced.forced,
    triggers: compileTriggers(settings),
    disabled: compileDisabled(settings, forced.forced),
    modelChoice: strictestOf(settings, "skills.model_choice", [false, true], true).value,
    undeclaredTools:
      strictestOf(settings, "skills.undeclared_tools", ["reject", "read_only", "unbounded"], "read_only")
        .value,
    combineBounds:
      strictestOf(settings, "skills.combine_bounds", ["intersection", "union"], "intersection").value,
    listingTokens: leastOf(settings, "skills.listing_tokens", 8000, same) ?? 0,
    activeTokens: leastOf(settings, "skills.active_tokens", Math.floor(model.contextTokens / 4), same) ?? 0,
    pins: compilePins(settings),
    requirePins: strictestOf(settings, "skills.require_pins", [true, false], false).value,
    secrets: compileSecrets(settings, home),
    boxes: mergeSkillBoxes(settings),
  };
}

const defaultEnv: readonly string[] = ["PATH", "LANG", "LC_ALL", "TZ", "TERM"];

function mergeEnv(settings: Settings): readonly string[] {
  const kept = intersectionOf(
    settings,
    "sandbox.env",
    defaultEnv,
    ({ value }, upper) => upper.includes(value),
  );
  return kept === undefined ? defaultEnv : kept.map((v) => v.value);
}

function mergeTools(settings: Settings): Policy["tools"] {
  const standard = builtins.filter((t) => !t.engine && t.enabledByDefault).map((t) => t.name);
  const kept = intersectionOf(
    settings,
    "tools.enabled",
    standard,
    ({ value }, upper) => upper.includes(value),
  );
  const names: readonly string[] = kept === undefined ? standard : kept.map((v) => v.value);
  const timeoutMs = leastOf(settings, "tools.shell.timeout", "120s", milliseconds) ?? 0;
  const maxTimeoutMs = leastOf(settings, "tools.shell.max_timeout", "30m", milliseconds) ?? 0;
  const [written] = perLayer(settings, "tools.shell.timeout").filter((p) =>
    milliseconds(p.value) > maxTimeoutMs
  );
  if (written !== undefined) {
    const most = perLayer(settings, "tools.shell.max_timeout").length > 0;
    settings.problems.push({
      code: most ? "no-effect" : "wrong-value",
      severity: most ? "warning" : "error",
      message: `\`tools.shell.timeout\` as \`${written.value}\` is above \`tools.shell.max_timeout\` (${
        showDuration(maxTimeoutMs)
      })`,
      at: written.at,
      hint: "raise the one or lower the other",
    });
  }
  return {
    // One order whatever the files say: equal sets of tools give equal requests.
    enabled: enableableTools.filter((tool) => names.includes(tool)),
    shell: {
      timeoutMs: Math.min(timeoutMs, maxTimeoutMs),
      maxTimeoutMs,
      maxOutput: leastOf(settings, "tools.shell.max_output", 65_536, (n) => n) ?? 0,
    },
  };
}

function mergeRedact(settings: Settings): Policy["redact"] {
  const patterns = unionOf(settings, "secrets.redact.patterns").flatMap((p): Pattern[] => {
    const pattern = policyPattern(p.value, p.at, settings.problems, { ignoreCase: false });
    return pattern === undefined ? [] : [pattern];
  });
  firstOf(settings, "secrets.redact.builtin", true);
  return {
    builtin: true,
    env: [...new Set(unionOf(settings, "secrets.redact.env").map((e) => e.value))],
    patterns,
  };
}

function mergeProtect(
  settings: Settings,
  input: MergeInput,
  sources: readonly SkillSource[],
): Policy["protect"] {
  // Programs of the machine are no business of the workspace: everybody calls them.
  const named = settings.files.flatMap((file) => namedPaths(file, input.home))
    .filter((p) => p.role !== "program" || isWithin(realOr(p.path), input.root));
  const embedded = protectedEntries({
    ...input.protect,
    root: input.root,
    skillFolders: [
      ...input.protect.skillFolders,
      ...sources.flatMap((s) => (s.kind === "path" ? [s.path] : [])),
    ],
    policyFiles: settings.files.map((f) => f.path),
    instructions: [...perLayer(settings, "workspace.instructions").flatMap((p) => p.value), "AGENTS.md"],
    own: [...input.protect.own, ...named.map((p) => p.path)],
  }).map(({ glob, shown, holds }): Policy["protect"][number] => {
    const inner = lazyPattern(`(?i)${globSource(glob)}`);
    const test = (path: string) => path.toLowerCase().includes(holds) && inner.test(path);
    return {
      source: glob,
      literal: false,
      shown,
      pattern: { source: inner.source, test, find: (path) => test(path) ? [0, path.length] : undefined },
    };
  });
  const own = unionOf(settings, "workspace.protect").flatMap((p): Policy["protect"][number][] => {
    const made = pathPattern(p.value, input);
    if (!("error" in made)) return [{ ...made, shown: p.value }];
    settings.problems.push({
      code: "bad-pattern",
      severity: "error",
      message: `\`${p.value}\` is no path glob: ${made.error}`,
      at: p.at,
    });
    return [];
  });
  return [...embedded, ...own];
}

/** In the order of the files, each from the top, and each once: one key may be read for its value and for its place. */
export function inOrder(
  problems: readonly Problem[],
  files: readonly { readonly path: string }[],
): readonly Problem[] {
  const once = uniqueBy(
    problems,
    (p) => `${p.code} ${p.at === undefined ? "" : showPosition(p.at)} ${p.message}`,
  );
  const place = (p: Problem) => files.findIndex((f) => f.path === p.at?.file);
  return once.sort((a, b) =>
    place(a) - place(b) || (a.at?.line ?? 0) - (b.at?.line ?? 0) || (a.at?.col ?? 0) - (b.at?.col ?? 0)
  );
}
