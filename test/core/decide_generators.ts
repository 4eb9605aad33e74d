// Small worlds for the decision: few tools, commands, paths and hosts, so that rules meet calls most of the time.
// What a loader would refuse (defaults in a project layer, unknown tools) is not made here.
import fc from "fast-check";
import process from "node:process";
import type { AllowedTool, BoundingSkill } from "../../src/core/bound.ts";
import { type CommandPattern, parseCommandPattern } from "../../src/core/command.ts";
import { commandRisk, strongest } from "../../src/core/command_risk.ts";
import type { Effect, LayerName, Risk } from "../../src/core/decision.ts";
import type { Facts, HostFact, Part, PathFact, Subject } from "../../src/core/facts.ts";
import type { GateState } from "../../src/core/gate_state.ts";
import type { DefaultEffects, Gate, Layer } from "../../src/core/policy.ts";
import type { Args } from "../../src/core/message.ts";
import type { HostPattern, Matchers, PathPattern, Rule } from "../../src/core/rule.ts";
import { absoluteGlob, globSource } from "../../src/core/glob.ts";
import { lazyPattern } from "../../src/load/pattern.ts";
import type { Question } from "./decide_oracle.ts";

export const root = "/ws";

/**
 * How often a property is tried: always the same cases here; `WRIT_CASES=50` tries fifty times as many, other ones at
 * each run.
 */
export function tries(count: number): fc.Parameters<unknown> {
  const factor = Number(process.env["WRIT_CASES"] ?? "1");
  return { numRuns: Math.ceil(count * factor), ...(factor === 1 ? { seed: 20_000 } : {}) };
}

const base = { root, home: "/home/u" };
export type Family = "shell" | "file" | "host" | "plain";

// ---- calls --------------------------------------------------------------------------------------------------------

type PartMore = Partial<
  Pick<Part, "notUnderstood" | "nameable" | "level" | "assignments" | "blurs" | "statusHidden">
>;

export function part(text: string, more: PartMore = {}, argv = text.split(" ")): Part {
  return { argv, text, assignments: [], level: "top", ...more };
}

const wrapped = { notUnderstood: "runs another command", nameable: true } as const;
const inner = { level: "inner" } as const;

/** Commands as the shell adapter describes them: a top-level part and, after it, what it runs inside. */
export const snippets: readonly (readonly Part[])[] = [
  [part("ls -l")],
  [part("git status")],
  [part("git push origin")],
  [part("git -C sub push origin")],
  [part("bun test")],
  [part("touch a.txt")],
  [part("rm -rf x")],
  [part("curl https://example.com")],
  [part("./git status")],
  [part("bun test", { assignments: ["CI=1"], ...wrapped })],
  [part("bun test", { statusHidden: true })],
  [part("uv run pytest"), part("pytest", inner)],
  [part("uv run rm -rf x"), part("rm -rf x", inner)],
  [part("npx sh -c ls"), part("sh -c ls", { ...inner, ...wrapped }), part("ls", inner)],
  [part("timeout 5 bun test", wrapped), part("bun test", inner)],
  [part("timeout 5 rm -rf x", wrapped), part("rm -rf x", inner)],
  [part("sh -c git push", wrapped, ["sh", "-c", "git push"]), part("git push", inner)],
  [part("echo $(git push)", { notUnderstood: "holds a substitution" }), part("git push", inner)],
  [part("git $x", { notUnderstood: "$x is not known", blurs: [{ at: 1, pieces: ["", ""], many: true }] })],
];

const paths: readonly PathFact[] = [
  { written: "a.txt", absolute: "/ws/a.txt", resolved: "/ws/a.txt", inWorkspace: true },
  { written: "src/b.ts", absolute: "/ws/src/b.ts", resolved: "/ws/src/b.ts", inWorkspace: true },
  { written: "/etc/passwd", absolute: "/etc/passwd", resolved: "/etc/passwd", inWorkspace: false },
  { written: "link", absolute: "/ws/link", resolved: "/etc/passwd", inWorkspace: false },
  { written: "link.ts", absolute: "/ws/src/link.ts", resolved: "/ws/a.txt", inWorkspace: true },
  { written: "loop", absolute: "/ws/loop", inWorkspace: true },
  {
    written: ".writ/policy.yaml",
    absolute: "/ws/.writ/policy.yaml",
    resolved: "/ws/.writ/policy.yaml",
    inWorkspace: true,
    protectedBy: ".writ/**",
  },
];

const hosts: readonly HostFact[] = [
  { written: "https://example.com", host: "example.com", private: false },
  { written: "https://docs.example.com", host: "docs.example.com", private: false },
  { written: "https://notexample.com", host: "notexample.com", private: false },
  { written: "http://127.0.0.1", host: "127.0.0.1", private: true },
  { written: "http://db.corp", host: "db.corp", private: true },
];

const path = fc.constantFrom(...paths.slice(0, 2), ...paths);

type Call = Pick<Facts, "tool" | "args" | "risk" | "subjects">;

const shellCall: fc.Arbitrary<Call> = fc.record({
  snippets: fc.array(fc.constantFrom(...snippets), { minLength: 1, maxLength: 2 }),
  writes: seldom<readonly PathFact[]>([], path.map((p) => [p]), 3),
  operands: seldom<readonly (readonly [tool: string, path: PathFact])[]>(
    [],
    fc.array(fc.tuple(fc.constantFrom("read_file", "write_file"), path), { minLength: 1, maxLength: 2 }),
    3,
  ),
}).map(({ snippets, writes, operands }) => {
  const parts = snippets.flat();
  const risk = parts.map(commandRisk).reduce(strongest, writes.length > 0 ? "write" : "read");
  return {
    tool: "shell",
    args: { command: parts.filter((p) => p.level === "top").map((p) => p.text).join("; ") },
    risk,
    subjects: [
      ...parts.map((p): Subject => ({ kind: "part", part: p })),
      ...writes.map((p): Subject => ({ kind: "path", tool: "write_file", path: p, operand: false })),
      ...operands.map(([tool, p]): Subject => ({ kind: "path", tool, path: p, operand: true })),
    ] as unknown as Call["subjects"],
  };
});

const fileCall: fc.Arbitrary<Call> = fc.record({
  tool: fc.constantFrom("read_file", "write_file"),
  path,
  // A tree walk asks about each file that it meets as if it were an operand.
  operand: fc.oneof({ weight: 6, arbitrary: fc.constant(false) }, fc.constant(true)),
}).map(({ tool, path, operand }) => ({
  tool,
  args: { path: path.written },
  risk: tool === "read_file" ? "read" : "write",
  subjects: [{ kind: "path", tool, path, operand: operand && tool === "read_file" }],
}));

const hostCall: fc.Arbitrary<Call> = fc.array(fc.constantFrom(...hosts.slice(0, 2), ...hosts), {
  minLength: 1,
  maxLength: 2,
}).map(
  (hops) => ({
    tool: "fetch_url",
    args: { url: hops[0]?.written ?? "" },
    risk: "network",
    subjects: hops.map((host): Subject => ({ kind: "host", host })) as unknown as Call["subjects"],
  }),
);

const plainCalls: readonly (readonly [tool: string, risk: Risk, args: Args])[] = [
  ["mcp.gh.list", "read", {}],
  ["mcp.gh.list", "read", { repo: "a" }],
  ["mcp.gh.merge", "execute", { id: 5, repo: "a" }],
  ["mcp.gh.merge", "execute", { id: 6 }],
  ["mcp.gh.wipe", "destructive", { id: 5, repo: "a" }],
  ["mcp.gh.wipe", "destructive", { id: 5 }],
  ["mcp.gh.wipe", "destructive", {}],
  ["load_skill", "read", { name: "review" }],
  ["load_skill", "read", { name: "helper" }],
  ["complete_skill", "read", { name: "review", outcome: "PASS", summary: "" }],
];
const plainCall: fc.Arbitrary<Call> = fc.constantFrom(...plainCalls).map(([tool, risk, args]) => ({
  tool,
  args,
  risk,
  subjects: [{ kind: "call" }],
}));

const calls: Readonly<Record<Family, fc.Arbitrary<Call>>> = {
  shell: shellCall,
  file: fileCall,
  host: hostCall,
  plain: plainCall,
};

/** Mostly `usual`, now and then something else. */
function seldom<T>(usual: T, odd: fc.Arbitrary<T>, weight = 6): fc.Arbitrary<T> {
  return fc.oneof({ weight, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: odd });
}

// ---- matchers -----------------------------------------------------------------------------------------------------

export function command(text: string): CommandPattern {
  const made = parseCommandPattern(text);
  if ("error" in made) throw new Error(`${text}: ${made.error}`);
  return made;
}

export function pathGlob(text: string): PathPattern {
  const made = absoluteGlob(text, base);
  if ("error" in made) throw new Error(`${text}: ${made.error}`);
  return { source: text, literal: made.literal, pattern: lazyPattern(globSource(made.glob)) };
}

const commandTexts = [
  "*",
  "ls *",
  "ls -l",
  "git *",
  "git status",
  "git push *",
  "git push origin",
  "git push",
  "bun *",
  "bun test",
  "CI=1 bun test",
  "rm *",
  "rm -rf x",
  "touch *",
  "curl *",
  "uv run *",
  "uv run pytest",
  "uv run rm -rf x",
  "npx *",
  "npx sh -c ls",
  "pytest",
  "timeout *",
  "timeout 5 bun test",
  "timeout 5 rm -rf x",
  "sh -c 'git push'",
  "sh *",
];
const commandPatterns = commandTexts.map(command);
const pathPatterns = [
  "**",
  "src/**",
  "*.txt",
  "a.txt",
  "link",
  "/etc/passwd",
  "/etc/**",
  ".writ/policy.yaml",
  ".writ/**",
  "/ws/loop",
  "src/link.ts",
].map(pathGlob);
const hostPatterns: readonly HostPattern[] = [
  { kind: "exact", host: "example.com" },
  { kind: "exact", host: "127.0.0.1" },
  { kind: "exact", host: "db.corp" },
  { kind: "under", domain: "example.com" },
  { kind: "under", domain: "corp" },
  { kind: "any" },
  { kind: "private" },
];

function some<T>(from: readonly T[], most = 2): fc.Arbitrary<readonly T[]> {
  return fc.array(fc.constantFrom(...from), { minLength: 1, maxLength: most });
}

/** A rule's own matcher, one or none, with an exception now and then. */
const mainMatcher: Readonly<Record<Family, fc.Arbitrary<Matchers>>> = {
  shell: fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        tools: fc.constantFrom(["shell"], ["shell"], ["*"]),
        command: some(commandPatterns),
        exceptCommand: seldom<readonly CommandPattern[] | undefined>(undefined, some(commandPatterns, 1)),
      }).map(withoutUndefined<Matchers>),
    },
    { weight: 1, arbitrary: fc.constant({ tools: ["shell"] }) },
    {
      weight: 1,
      arbitrary: fc.record({
        tools: fc.constantFrom(["write_file"], ["shell"], ["*"], ["read_file"]),
        path: some(pathPatterns),
      }),
    },
  ),
  file: fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        tools: fc.constantFrom(["read_file"], ["write_file"], ["*"], ["*_file"]),
        path: some(pathPatterns),
        exceptPath: seldom<readonly PathPattern[] | undefined>(undefined, some(pathPatterns, 1)),
      }).map(withoutUndefined<Matchers>),
    },
    {
      weight: 2,
      arbitrary: fc.constantFrom({ tools: ["read_file"] }, { tools: ["write_file", "read_file"] }),
    },
  ),
  host: fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        tools: fc.constantFrom(["fetch_url"], ["fetch_url"], ["fetch_*"]),
        host: some(hostPatterns),
        exceptHost: seldom<readonly HostPattern[] | undefined>(undefined, some(hostPatterns, 1)),
      }).map(withoutUndefined<Matchers>),
    },
    { weight: 1, arbitrary: fc.constant({ tools: ["fetch_url"] }) },
  ),
  plain: fc.oneof(
    fc.constantFrom<Matchers>(
      { tools: ["mcp.gh.*"] },
      { tools: ["mcp.*"] },
      { tools: ["mcp.gh.merge"] },
      { tools: ["mcp.gh.wipe"] },
      { tools: ["load_skill"] },
      { tools: ["*"] },
    ),
    fc.record({
      tools: fc.constantFrom(["mcp.gh.merge"], ["mcp.gh.wipe"], ["mcp.gh.wipe"], ["mcp.gh.*"]),
      args: fc.constantFrom(
        { id: ["5"] },
        { id: ["*"] },
        { id: ["5"], repo: ["a"] },
        { id: ["6", "5"], repo: ["a*"] },
        { repo: ["b", "a"] },
      ),
    }),
    fc.record({ tools: fc.constant(["load_skill"]), skill: some(["review", "re*", "helper", "*"]) }),
  ),
};

function withoutUndefined<T>(value: { readonly [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined)) as T;
}

const everyRisk: readonly Risk[] = ["read", "write", "execute", "network", "destructive"];
const narrowing = fc.record({
  box: seldom<readonly string[] | undefined>(undefined, some(["default", "push"]), 3),
  risk: seldom<readonly Risk[] | undefined>(undefined, some(everyRisk)),
  sourcedBy: seldom<readonly string[] | undefined>(
    undefined,
    some(["skill:review", "skill:*", "skill:helper"]),
  ),
  mode: seldom<Matchers["mode"] | undefined>(undefined, fc.constantFrom("interactive", "unattended"), 12),
  workspace: seldom<string | undefined>(undefined, fc.constantFrom(root, "/elsewhere"), 12),
}).map(withoutUndefined<Omit<Matchers, "tools">>);

export function matchers(family: Family): fc.Arbitrary<Matchers> {
  const main = fc.oneof(
    { weight: 6, arbitrary: mainMatcher[family] },
    { weight: 1, arbitrary: fc.oneof(...Object.values(mainMatcher)) },
  );
  return fc.tuple(main, seldom<Omit<Matchers, "tools">>({}, narrowing, 2)).map(([a, b]) => ({ ...a, ...b }));
}

// ---- layers -------------------------------------------------------------------------------------------------------

const anEffect = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Effect>("allow") },
  { weight: 2, arbitrary: fc.constant<Effect>("ask") },
  { weight: 1, arbitrary: fc.constant<Effect>("deny") },
);
const at = { file: "policy.yaml", line: 1, col: 1 };

/** As the loader makes them: an allow rule with `sourced_by` is for reading only. */
export function rule(layer: LayerName, id: string, effect: Effect, m: Matchers): Rule {
  const reading = effect === "allow" && m.sourcedBy !== undefined ? { risk: ["read"] as const } : {};
  return { ...m, ...reading, id, effect, layer, at, text: id };
}

export function rules(family: Family, layer: LayerName, most: number, effect = anEffect) {
  return fc.array(fc.tuple(effect, matchers(family)), { maxLength: most }).map((all) =>
    all.map(([effect, m], n) => rule(layer, `${layer}.${effect}[${n}]`, effect, m))
  );
}

const defaults: fc.Arbitrary<DefaultEffects> = fc.oneof(
  { weight: 4, arbitrary: fc.constant({}) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Effect>("allow", "allow", "ask", "deny").map((effect) =>
      Object.fromEntries(everyRisk.map((r) => [r, { effect, at }])) as DefaultEffects
    ),
  },
  {
    weight: 1,
    arbitrary: fc.dictionary(
      fc.constantFrom(...everyRisk),
      fc.constantFrom<Effect>("allow", "ask", "deny").map((effect) => ({ effect, at })),
      { noNullPrototype: true },
    ) as fc.Arbitrary<DefaultEffects>,
  },
);

function upperLayer(family: Family, name: LayerName): fc.Arbitrary<Layer> {
  return fc.record({
    name: fc.constant(name),
    rules: rules(family, name, 5),
    defaults,
    delegates: seldom<readonly Matchers[]>([], fc.array(matchers(family), { minLength: 1, maxLength: 2 }), 1),
  });
}

export function projectLayer(family: Family, effect = anEffect): fc.Arbitrary<Layer> {
  return rules(family, "project", 4, effect).map((made) => ({
    name: "project",
    rules: made,
    defaults: {},
    delegates: [],
  }));
}

export function layers(family: Family): fc.Arbitrary<readonly Layer[]> {
  return fc.tuple(upperLayer(family, "machine"), upperLayer(family, "user"), projectLayer(family));
}

// ---- skills and gates ---------------------------------------------------------------------------------------------

const allowedTools: readonly AllowedTool[] = [
  { shown: "*_file", matchers: { tools: ["*_file"] } },
  { shown: "shell", matchers: { tools: ["shell"] } },
  { shown: "read_file", matchers: { tools: ["read_file"] } },
  { shown: "shell(git *)", matchers: { tools: ["shell"], command: [command("git *")] } },
  { shown: "shell(uv *)", matchers: { tools: ["shell"], command: [command("uv *")] } },
  { shown: "shell(bun test)", matchers: { tools: ["shell"], command: [command("bun test")] } },
  { shown: "write_file(a.txt)", matchers: { tools: ["write_file"], path: [pathGlob("a.txt")] } },
  {
    shown: "fetch_url(example.com)",
    matchers: { tools: ["fetch_url"], host: [{ kind: "exact", host: "example.com" }] },
  },
  { shown: "mcp.gh.*", matchers: { tools: ["mcp.gh.*"] } },
  { shown: "Bash(((" },
];

export function boundingSkill(name: string): fc.Arbitrary<BoundingSkill> {
  return fc.record({
    name: fc.constant(name),
    trigger: fc.constantFrom("explicit", "pattern", "model", "policy"),
    allowed: fc.oneof(
      { weight: 1, arbitrary: fc.constant(undefined) },
      {
        weight: 4,
        arbitrary: fc.uniqueArray(fc.constantFrom(...allowedTools), { minLength: 3, maxLength: 7 }),
      },
    ),
  });
}

export function gate(family: Family, id: string): fc.Arbitrary<Gate> {
  return fc.record({
    before: fc.array(matchers(family), { minLength: 1, maxLength: 2 }),
    evidence: fc.array(matchers("shell"), { maxLength: 2 }),
    verdict: fc.constantFrom<readonly string[] | undefined>(undefined, ["PASS"], ["PASS", "FAIL"]),
    by: seldom<"fork" | undefined>(undefined, fc.constant("fork" as const), 3),
  }).map(({ before, evidence, verdict, by }) => ({
    id,
    layer: "machine",
    at,
    before: before.map((m, n) => rule("machine", `${id}.before[${n}]`, "deny", m)),
    evidence: evidence.map((m, n) => rule("machine", `${id}.evidence[${n}]`, "allow", m)),
    ...(verdict === undefined ? {} : { skill: "review", verdict, ...(by === undefined ? {} : { by }) }),
  }));
}

const seq = fc.integer({ min: 1, max: 12 });
/** Contents of the workspace. */
const tree = fc.constantFrom(undefined, undefined, "t1", "t1", "t2");
const withTree = <T>(made: T, tree: string | undefined) => tree === undefined ? made : { ...made, tree };
export const gateState: fc.Arbitrary<GateState> = fc.record({
  marks: fc.dictionary(
    fc.constantFrom("g0#0", "g0#1", "g1#0", "g1#1"),
    fc.tuple(seq, tree).map(([n, tree]) => withTree({ call: `c${n}`, seq: n }, tree)),
    { noNullPrototype: true },
  ),
  nearly: fc.constant({}),
  verdicts: fc.uniqueArray(
    fc.record({
      seq,
      outcome: fc.constantFrom("PASS", "PASS", "FAIL", "OTHER"),
      tree,
      fork: fc.boolean(),
      gates: seldom<readonly string[]>(["g0", "g1"], fc.constant(["g1"]), 4),
    }),
    { selector: (v) => v.seq, maxLength: 3 },
  ).map((all) => ({
    review: all.sort((a, b) => a.seq - b.seq).map(({ tree, ...given }) => withTree(given, tree)),
  })),
  voidUpTo: seldom(0, seq, 6),
  staleUpTo: fc.oneof(fc.constant(0), seq),
  spared: fc.oneof(fc.constant({}), fc.record({ at: seq, floor: seq }).map((g0) => ({ g0 }))),
  usedUpTo: fc.oneof(fc.constant({}), seq.map((n) => ({ g0: n }))),
  passing: fc.constant({}),
});

// ---- whole questions ----------------------------------------------------------------------------------------------

export const families: readonly Family[] = ["shell", "shell", "shell", "file", "host", "plain"];
export const skillNames = ["review", "helper"];

export const question: fc.Arbitrary<Question> = fc.constantFrom(...families).chain(questionOf);

export function questionOf(family: Family): fc.Arbitrary<Question> {
  return fc.record({
    layers: layers(family),
    call: calls[family],
    box: seldom("default", fc.constant("push")),
    mode: fc.constantFrom("interactive", "unattended"),
    errors: seldom<Facts["errors"]>([], fc.constant([{ code: "syntax_error", message: "" }]), 20),
    active: fc.subarray(skillNames),
    vouched: fc.subarray(skillNames),
    ghost: seldom(false, fc.constant(true), 20),
    bounding: seldom<readonly BoundingSkill[]>([], fc.tuple(...skillNames.map(boundingSkill)), 3),
    undeclaredTools: fc.constantFrom("reject", "read_only", "unbounded"),
    combineBounds: fc.constantFrom("intersection", "union"),
    gates: seldom<readonly Gate[]>([], fc.tuple(gate(family, "g0"), gate(family, "g1")), 5),
    gateState,
    tree,
  }).map((q): Question => ({
    layers: q.layers,
    facts: {
      ...q.call,
      box: q.box,
      mode: q.mode,
      errors: q.errors,
      sourcedBy: [...q.active, ...(q.ghost ? ["ghost"] : [])].map((name) => `skill:${name}`),
    },
    root,
    active: q.active,
    vouched: q.vouched,
    bounding: q.bounding.filter((b) => q.active.includes(b.name)),
    settings: { undeclaredTools: q.undeclaredTools, combineBounds: q.combineBounds },
    gates: q.gates,
    gateState: q.gateState,
    tree: q.tree,
  }));
}
