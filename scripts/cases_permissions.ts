// Runs a file of neutral permission cases through the project's own deciding: each case's policy becomes layers, its call
// becomes facts, its workspace a file system in memory. Nothing is executed.
import { bounds } from "../src/core/bound.ts";
import { decide } from "../src/core/decide.ts";
import { type Effect, type LayerName, type Risk, risks, type Verdict } from "../src/core/decision.ts";
import type { Facts, Subject } from "../src/core/facts.ts";
import type { DefaultEffects, Layer } from "../src/core/policy.ts";
import type { Args } from "../src/core/message.ts";
import type { Rule } from "../src/core/rule.ts";
import type { Matcher } from "../src/core/tool_names.ts";
import { compileText, matchersOf, pathPattern } from "../src/load/policy_matchers.ts";
import { shellFacts } from "../src/shell/shell_facts.ts";
import { hostFact } from "../src/tools/host_fact.ts";
import { type FilePort, pathFact } from "../src/tools/path_fact.ts";
import { type CaseReport, idOf, lacking, readCases } from "./case_report.ts";

type CaseRule = {
  readonly effect: Effect;
  readonly tool: string;
  readonly command?: string;
  readonly path?: string;
  readonly host?: string;
};
type CaseWorkspace = {
  readonly root: string;
  readonly home: string;
  readonly files?: readonly string[];
  readonly symlinks?: { readonly [path: string]: string };
  readonly caseInsensitive?: boolean;
  readonly unicodeNormalizing?: boolean;
  readonly protected?: readonly string[];
};
export type PermissionCase = {
  readonly id: string;
  readonly policy: {
    readonly mode?: "interactive" | "unattended";
    readonly rules?: readonly CaseRule[];
    readonly default?: Effect;
    readonly layers?: readonly {
      readonly name: string;
      readonly rules: readonly CaseRule[];
      readonly default?: Effect;
    }[];
    readonly skills?: { readonly [name: string]: { readonly allowed_tools?: readonly string[] } };
  };
  readonly workspace?: CaseWorkspace;
  readonly call: { readonly tool: string; readonly args: Args; readonly sourcedBy?: readonly string[] };
  readonly expect: Effect;
  readonly expectNot?: Effect;
};

/** Runs every case of a JSON file with a `cases` list. Throws when the file cannot be read. */
export function runPermissionCases(file: string): CaseReport {
  return checkPermissionCases(readCases(file));
}

export function checkPermissionCases(cases: readonly PermissionCase[]): CaseReport {
  const failed: { id: string; message: string }[] = [];
  for (const [index, c] of cases.entries()) {
    const fault = lacking(c, ["policy", "call", "expect"]);
    if (fault !== undefined) {
      failed.push({ id: idOf(c, index), message: fault });
      continue;
    }
    const { effect, why } = answer(c);
    if (effect === c.expect || (c.expectNot !== undefined && effect !== c.expectNot)) continue;
    const wanted = c.expectNot === undefined ? c.expect : `${c.expect}, or at least not ${c.expectNot}`;
    failed.push({ id: c.id, message: `expected ${wanted}, got ${effect}: ${why}` });
  }
  return { passed: cases.length - failed.length, failed };
}

/** The verdict on one case; in unattended mode an ask stays an ask here. */
export function judge(c: PermissionCase): Verdict {
  const space = workspaceOf(c.workspace);
  const skills = c.policy.skills ?? {};
  const sources = (c.call.sourcedBy ?? []).map((s) => s.replace(/^skill:/, ""));
  const known = sources.filter((name) => Object.hasOwn(skills, name));
  const bounding = known.map((name) => ({
    name,
    trigger: "explicit" as const,
    allowed: skills[name]?.allowed_tools?.map((tool) => ({ shown: tool, matchers: { tools: [tool] } })),
  }));
  return decide(layersOf(c, space), factsOf(c, space), {
    root: space.root,
    active: Object.keys(skills),
    bounds: bounds(bounding, { undeclaredTools: "read_only", combineBounds: "intersection" }),
    blocks: [],
  });
}

function answer(c: PermissionCase): { readonly effect: Effect; readonly why: string } {
  const { effect, causes } = judge(c);
  const why = JSON.stringify(causes);
  return { effect: effect === "ask" && c.policy.mode === "unattended" ? "deny" : effect, why };
}

const layerNames: readonly LayerName[] = ["machine", "user", "project"];

function layersOf(c: PermissionCase, space: Space): readonly Layer[] {
  const { policy } = c;
  const own = {
    rules: policy.rules ?? [],
    ...(policy.default === undefined ? {} : { default: policy.default }),
  };
  const written = policy.layers ?? [];
  const first = written[0];
  const given = first === undefined ? [{ name: "machine", ...own }] : [
    {
      ...first,
      rules: [...own.rules, ...first.rules],
      ...(own.default === undefined ? {} : { default: own.default }),
    },
    ...written.slice(1),
  ];
  return given.map((layer, i): Layer => {
    const name = layerNames.find((n) => n === layer.name) ?? layerNames[Math.min(i, 2)] ?? "project";
    return {
      name,
      rules: layer.rules.map((rule, r) => ruleOf(rule, name, r, space)),
      defaults: layer.default === undefined ? {} : sameForAll(layer.default),
      delegates: [],
    };
  });
}

const nowhere = { file: "(case)", line: 1, col: 1 };

function sameForAll(effect: Effect): DefaultEffects {
  return Object.fromEntries(risks.map((risk) => [risk, { effect, at: nowhere }]));
}

function ruleOf(rule: CaseRule, layer: LayerName, index: number, space: Space): Rule {
  const compiled = (["command", "path", "host"] as const).flatMap((kind) => {
    const text = rule[kind];
    return text === undefined ? [] : [matcherOf(kind, text, space)];
  });
  return {
    id: `${layer}.${rule.effect}[${index}]`,
    effect: rule.effect,
    layer,
    at: nowhere,
    text: `${rule.tool}(${rule.command ?? rule.path ?? rule.host ?? ""})`,
    tools: [rule.tool],
    ...Object.assign({}, ...compiled),
  };
}

function matcherOf(kind: Matcher, text: string, space: Space): Partial<Rule> {
  const compiled = compileText(kind, text, {
    root: space.root,
    home: space.home,
    sets: new Map(),
    risky: [],
  });
  if ("message" in compiled) throw new Error(compiled.message);
  return matchersOf(compiled, undefined);
}

const risksOfTools: Readonly<Record<string, Risk>> = {
  read_file: "read",
  write_file: "write",
  delete_file: "write",
  search_text: "read",
  list_files: "read",
  git_diff: "read",
  fetch: "network",
};

type Seen = Pick<Facts, "risk" | "subjects" | "errors">;

function factsOf(c: PermissionCase, space: Space): Facts {
  const { tool, args } = c.call;
  const seen = tool === "shell"
    ? shellSeen(args, space)
    : tool === "fetch"
    ? hostSeen(args)
    : pathSeen(tool, args, space);
  return {
    tool,
    args,
    ...seen,
    box: "default",
    sourcedBy: c.call.sourcedBy ?? [],
    mode: c.policy.mode ?? "interactive",
  };
}

function shellSeen(args: Args, space: Space): Seen {
  return shellFacts(String(args["command"] ?? ""), {
    root: space.root,
    home: space.home,
    pathFact: (written, cwd) => pathFact(written, space, cwd, space.files),
    list: (folder) => space.files.list?.(folder) ?? [],
    exists: (path) => space.files.lstat(path) !== undefined,
    isFolder: (path) => space.files.lstat(path) === "dir",
  });
}

function hostSeen(args: Args): Seen {
  const hops = [String(args["url"] ?? ""), ...(args["redirects"] as readonly string[] | undefined ?? [])];
  const addresses = args["resolvesTo"] as readonly string[] | undefined;
  const found = hops.map((url) => hostFact(url, addresses));
  const errors = found.filter((f) => "code" in f);
  const hosts = found.flatMap((f): Subject[] => "code" in f ? [] : [{ kind: "host", host: f }]);
  const [first, ...others] = hosts;
  return { risk: "network", subjects: first === undefined ? [{ kind: "call" }] : [first, ...others], errors };
}

function pathSeen(tool: string, args: Args, space: Space): Seen {
  const risk = (Object.hasOwn(risksOfTools, tool) ? risksOfTools[tool] : undefined) ?? "execute";
  if (!/^(read|write|delete)_file$/.test(tool)) return { risk, subjects: [{ kind: "call" }], errors: [] };
  const path = pathFact(String(args["path"] ?? ""), space, space.root, space.files);
  const errors = path.resolved === undefined
    ? [{ code: "unresolved_path", message: "the path cannot be resolved" }]
    : [];
  return { risk, subjects: [{ kind: "path", tool, path, operand: false }], errors };
}

type Space = {
  readonly root: string;
  readonly home: string;
  readonly files: FilePort;
  protectedBy(path: string): string | undefined;
};

function workspaceOf(given: CaseWorkspace = { root: "/ws", home: "/home/u" }): Space {
  const { root, home } = given;
  const absolute = (path: string) =>
    path.startsWith("/") ? path : path.startsWith("~/") ? home + path.slice(1) : `${root}/${path}`;
  const kinds = new Map<string, "file" | "dir" | "link">([["/", "dir"]]);
  const links = new Map<string, string>();
  const place = (path: string, kind: "file" | "dir" | "link") => {
    const names = absolute(path).split("/").slice(1);
    names.forEach((_, i) => {
      const at = `/${names.slice(0, i + 1).join("/")}`;
      if (i + 1 === names.length) kinds.set(at, kind);
      else if (!kinds.has(at)) kinds.set(at, "dir");
    });
  };
  for (const path of [root, home]) place(path, "dir");
  for (const path of given.files ?? []) place(path, "file");
  for (const [path, target] of Object.entries(given.symlinks ?? {})) {
    place(path, "link");
    links.set(absolute(path), target);
  }
  const guards = (given.protected ?? []).flatMap((glob) => {
    const pattern = pathPattern(glob, given);
    return "error" in pattern ? [] : [{ glob, pattern }];
  });
  return {
    root,
    home,
    files: {
      lstat: (path) => kinds.get(path),
      readlink: (path) => links.get(path) ?? "",
      list: (folder) => namesBelow(kinds.keys(), folder),
      caseInsensitive: given.caseInsensitive === true,
      unicodeNormalizing: given.unicodeNormalizing === true,
    },
    protectedBy: (path) => guards.find((g) => g.pattern.pattern.test(path))?.glob,
  };
}

function namesBelow(paths: Iterable<string>, folder: string): readonly string[] {
  const start = folder.endsWith("/") ? folder : `${folder}/`;
  return [...paths].filter((p) =>
    p.startsWith(start) && p.length > start.length && !p.slice(start.length).includes("/")
  )
    .map((p) => p.slice(start.length));
}
