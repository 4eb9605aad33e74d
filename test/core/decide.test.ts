import { assert, assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import fc from "fast-check";
import { type AllowedTool, bounds } from "../../src/core/bound.ts";
import { commandRisk, strongest } from "../../src/core/command_risk.ts";
import { decide } from "../../src/core/decide.ts";
import type { Cause, Effect, LayerName, Verdict } from "../../src/core/decision.ts";
import type { Facts, HostFact, Part, PathFact, Subject } from "../../src/core/facts.ts";
import { gateBlocks } from "../../src/core/gate.ts";
import type { Layer } from "../../src/core/policy.ts";
import type { Matchers, Rule } from "../../src/core/rule.ts";
import { callOf } from "../support/calls.ts";
import {
  boundingSkill,
  command,
  families,
  type Family,
  gate,
  matchers,
  part,
  pathGlob,
  projectLayer,
  question,
  questionOf,
  root,
  rule,
  rules,
  snippets,
  tries,
} from "./decide_generators.ts";
import { causeKey, oracle, type OracleVerdict, type Question } from "./decide_oracle.ts";

const patience = 120_000;

function verdictOf(q: Question): Verdict {
  return decide(q.layers, q.facts, {
    root: q.root,
    active: q.active,
    vouched: q.vouched,
    bounds: bounds(q.bounding, q.settings),
    blocks: gateBlocks(q.gates, q.gateState, q.facts, q.root, q.tree),
  });
}

function keysOf(causes: readonly Cause[]): readonly string[] {
  return [...new Set(causes.map(causeKey))].sort();
}

function summary(verdict: Verdict): OracleVerdict {
  const { effect, causes } = verdict;
  return { effect, strictest: keysOf(causes.filter((c) => c.effect === effect)) };
}

const strictness: Readonly<Record<Effect, number>> = { allow: 0, ask: 1, deny: 2 };

function assertNotLooser(after: Question, before: Question): void {
  const [a, b] = [verdictOf(after), verdictOf(before)];
  assert(
    strictness[a.effect] >= strictness[b.effect],
    `${b.effect} ${keysOf(b.causes)} became ${a.effect} ${keysOf(a.causes)}`,
  );
}

describe("decide() agrees with the naive implementation", () => {
  const rows: readonly (readonly [family: Family, cases: number])[] = [
    ["shell", 10_000],
    ["file", 4_000],
    ["host", 3_000],
    ["plain", 3_000],
  ];
  for (const [family, cases] of rows) {
    test(`${family}: ${cases} cases`, () => {
      const seen = new Set<Effect>();
      fc.assert(
        fc.property(questionOf(family), (q) => {
          const verdict = verdictOf(q);
          seen.add(verdict.effect);
          assertEquals(summary(verdict), oracle(q));
        }),
        tries(cases),
      );
      assertEquals([...seen].sort(), ["allow", "ask", "deny"]);
    }, patience);
  }
});

// ---- laws ---------------------------------------------------------------------------------------------------------

function law(name: string, property: fc.IPropertyWithHooks<never>, cases = 1_500): void {
  test(name, () => fc.assert(property as fc.IPropertyWithHooks<unknown>, tries(cases)), patience);
}

/** A question and something more of its own family. */
function with2<T>(more: (family: Family) => fc.Arbitrary<T>): fc.Arbitrary<readonly [Question, T]> {
  return fc.constantFrom(...families).chain((family) => fc.tuple(questionOf(family), more(family)));
}

function ofLaw<T>(made: fc.Arbitrary<T>, check: (value: T) => void): fc.IPropertyWithHooks<never> {
  return fc.property(made, check) as unknown as fc.IPropertyWithHooks<never>;
}

function addRules(q: Question, name: LayerName, more: readonly Rule[]): Question {
  return {
    ...q,
    layers: q.layers.map((l) => (l.name === name ? { ...l, rules: [...l.rules, ...more] } : l)),
  };
}

const layerName = fc.constantFrom<LayerName>("machine", "user", "project");

function moreRules(
  family: Family,
  effects: readonly Effect[],
): fc.Arbitrary<readonly [LayerName, readonly Rule[]]> {
  return layerName.chain((name) =>
    fc.tuple(
      fc.constant(name),
      fc.array(fc.tuple(fc.constantFrom(...effects), matchers(family)), { minLength: 1, maxLength: 2 }).map(
        (all) => all.map(([effect, m], n) => rule(name, `new[${n}]`, effect, m)),
      ),
    )
  );
}

function withoutDelegates(q: Question): Question {
  return { ...q, layers: q.layers.map((l) => ({ ...l, delegates: [] })) };
}

function withoutSourced(q: Question): Question {
  const keep = (r: Rule) => r.effect !== "allow" || r.sourcedBy === undefined;
  return { ...q, layers: q.layers.map((l) => ({ ...l, rules: l.rules.filter(keep) })) };
}

function withProject(q: Question, project: Layer): Question {
  return { ...q, layers: q.layers.map((l) => (l.name === "project" ? project : l)) };
}

const emptyProject: Layer = { name: "project", rules: [], defaults: {}, delegates: [] };

describe("what never loosens a decision", () => {
  law(
    "a deny rule in any layer",
    ofLaw(with2((f) => moreRules(f, ["deny"])), ([q, [name, more]]) => {
      assertNotLooser(addRules(q, name, more), q);
    }),
  );
  law(
    "an ask rule, in a layer that has no default: deny",
    ofLaw(with2((f) => moreRules(f, ["ask"])), ([q, [name, more]]) => {
      const layer = q.layers.find((l) => l.name === name);
      const denies = Object.values(layer?.defaults ?? {}).some((d) => d.effect === "deny");
      const softened = denies
        ? { ...q, layers: q.layers.map((l) => (l.name === name ? { ...l, defaults: {} } : l)) }
        : q;
      assertNotLooser(addRules(softened, name, more), softened);
    }),
  );
  law(
    "a gate",
    ofLaw(
      with2((f) => gate(f, "new")),
      ([q, more]) => assertNotLooser({ ...q, gates: [...q.gates, more] }, q),
    ),
  );
  law(
    "an error",
    ofLaw(question, (q) => {
      const failed = { ...q, facts: { ...q.facts, errors: [{ code: "link_loop", message: "" }] } };
      assertEquals(verdictOf(failed).effect, "deny");
    }),
    500,
  );
  law(
    "an active skill with its bound, where bounds intersect",
    ofLaw(with2(() => boundingSkill("new")), ([made, skill]) => {
      const q = withoutSourced({ ...made, settings: { ...made.settings, combineBounds: "intersection" } });
      const more = {
        ...q,
        active: [...q.active, skill.name],
        vouched: [...q.vouched, skill.name],
        bounding: [...q.bounding, skill],
        facts: { ...q.facts, sourcedBy: [...q.facts.sourcedBy, `skill:${skill.name}`] },
      };
      assertNotLooser(more, q);
    }),
  );
  law(
    "a skill that the model loads, also where bounds unite",
    ofLaw(with2(() => boundingSkill("new")), ([q, skill]) => {
      const united = { ...q, settings: { ...q.settings, combineBounds: "union" as const } };
      const more = { ...united, bounding: [...united.bounding, { ...skill, trigger: "model" as const }] };
      assertNotLooser(more, united);
    }),
  );
  law(
    "a source that nobody vouches for",
    ofLaw(question, (q) => assertNotLooser({ ...q, vouched: [] }, q)),
  );
  law(
    "anything at all in the project layer, where nothing is delegated",
    ofLaw(with2((f) => projectLayer(f)), ([made, project]) => {
      const q = withoutDelegates(made);
      assertNotLooser(withProject(q, project), withProject(q, emptyProject));
    }),
  );
  law(
    "what restricts in the project layer, whatever is delegated",
    ofLaw(with2((f) => moreRules(f, ["ask", "deny"])), ([q, [, more]]) => {
      assertNotLooser(addRules(q, "project", more.map((r) => ({ ...r, layer: "project" }))), q);
    }),
  );
  law(
    "another command in the same text",
    ofLaw(fc.tuple(questionOf("shell"), fc.constantFrom(...snippets)), ([made, more]) => {
      // An allow rule with `risk` speaks of the whole call, so it may begin to match when a riskier part is added.
      const q = {
        ...made,
        layers: made.layers.map((l) => ({
          ...l,
          rules: l.rules.filter((r) => r.effect !== "allow" || r.risk === undefined),
          delegates: l.delegates.filter((d) => d.risk === undefined),
        })),
      };
      const added: readonly Subject[] = more.map((p) => ({ kind: "part", part: p }));
      const risk = more.map(commandRisk).reduce(strongest, q.facts.risk);
      assertNotLooser({
        ...q,
        facts: { ...q.facts, risk, subjects: [...q.facts.subjects, ...added] as never },
      }, q);
    }),
  );
});

describe("what changes nothing", () => {
  law(
    "the order of rules, gates, bounds and subjects",
    ofLaw(
      question.chain((q) =>
        fc.record({
          q: fc.constant(q),
          layers: fc.tuple(
            ...q.layers.map((l) => shuffled(l.rules).map((r): Layer => ({ ...l, rules: r }))),
          ),
          gates: shuffled(q.gates),
          bounding: shuffled(q.bounding),
          subjects: shuffled(q.facts.subjects),
        })
      ),
      ({ q, subjects, ...others }) => {
        const other = { ...q, ...others, facts: { ...q.facts, subjects: subjects as Facts["subjects"] } };
        assertEquals(orderless(summary(verdictOf(other))), orderless(summary(verdictOf(q))));
      },
    ),
  );
  law(
    "rules written twice",
    ofLaw(question, (q) => {
      const twice = { ...q, layers: q.layers.map((l) => ({ ...l, rules: [...l.rules, ...l.rules] })) };
      assertEquals(summary(verdictOf(twice)), summary(verdictOf(q)));
    }),
  );
  law(
    "a project's allow rules, where nothing is delegated",
    ofLaw(with2((f) => rules(f, "project", 4, fc.constant("allow"))), ([made, more]) => {
      const q = withoutDelegates(made);
      assertEquals(verdictOf(addRules(q, "project", more)), verdictOf(q));
    }),
  );
});

function shuffled<T>(list: readonly T[]): fc.Arbitrary<readonly T[]> {
  return fc.shuffledSubarray([...list], { minLength: list.length });
}

// A united bound is named after its skills in the order in which they were loaded.
function orderless(verdict: OracleVerdict): OracleVerdict {
  const sorted = (key: string) => key.split(" ").filter((w) => w !== "+").sort().join(" ");
  return { ...verdict, strictest: verdict.strictest.map(sorted).sort() };
}

describe("what holds of every decision", () => {
  law(
    "a deny by a rule, bound, gate or error stands whatever rules, defaults and delegations are added",
    ofLaw(
      with2((f) => fc.tuple(moreRules(f, ["allow", "ask", "deny"]), moreRules(f, ["allow"]), matchers(f))),
      ([q, [one, other, delegate]]) => {
        const before = verdictOf(q);
        const final = before.causes.some((c) =>
          c.effect === "deny" && c.by !== "default" && !(c.by === "rule" && c.layer === "builtin")
        );
        if (!final) return;
        const more = addRules(addRules(q, ...one), ...other);
        const loose = { effect: "allow", at: { file: "new", line: 1, col: 1 } } as const;
        const defaults = { read: loose, write: loose, execute: loose, network: loose, destructive: loose };
        const layers = more.layers.map((l) =>
          l.name === "project" ? l : { ...l, defaults, delegates: [...l.delegates, delegate] }
        );
        assertEquals(verdictOf({ ...more, layers, vouched: more.active }).effect, "deny");
      },
    ),
    3_000,
  );
  law(
    "there is a cause, the first one has the effect, and they come strictest first",
    ofLaw(question, (q) => {
      const { effect, causes } = verdictOf(q);
      assert(causes.length > 0);
      assertEquals(causes[0].effect, effect);
      const order = causes.map((c) => strictness[c.effect]);
      assertEquals(order, [...order].sort((a, b) => b - a));
    }),
  );
  law(
    "destructive is allowed only by machine and user rules without a wildcard",
    ofLaw(fc.oneof(questionOf("shell"), questionOf("plain")), (q) => {
      const saysArguments = (r: Rule) =>
        Object.values(r.args ?? {}).flat().every((glob) => !glob.includes("*"));
      const vague = (r: Rule): Rule[] => {
        if (r.effect !== "allow") return [r];
        if (r.command !== undefined) return [{ ...r, command: r.command.filter((c) => c.rest) }];
        return r.args !== undefined && saysArguments(r) ? [] : [r];
      };
      const layers = q.layers.map((l) => l.name === "project" ? l : { ...l, rules: l.rules.flatMap(vague) });
      const asked = { ...q, layers, facts: { ...q.facts, risk: "destructive" as const } };
      assert(verdictOf(asked).effect !== "allow");
    }),
    3_000,
  );
});

// ---- single cases -------------------------------------------------------------------------------------------------

const inner = { level: "inner" } as const;
const wrapped = { notUnderstood: "runs another command", nameable: true } as const;
const timeoutTest = [part("timeout 5 bun test", wrapped), part("bun test", inner)];
const uvPytest = [part("uv run pytest"), part("pytest", inner)];

function shellFacts(parts: readonly Part[], ...more: readonly Subject[]): Facts {
  return facts("shell", {
    risk: parts.map(commandRisk).reduce(strongest, "read"),
    subjects: [...parts.map((p): Subject => ({ kind: "part", part: p })), ...more] as never,
  });
}

function facts(tool: string, more: Partial<Facts>): Facts {
  return callOf(tool, [{ kind: "call" }], more);
}

function fileFacts(tool: "read_file" | "write_file", path: Partial<PathFact>): Facts {
  const fact = { written: "a.txt", absolute: "/ws/a.txt", resolved: "/ws/a.txt", inWorkspace: true, ...path };
  return facts(tool, {
    risk: tool === "read_file" ? "read" : "write",
    subjects: [{ kind: "path", tool, path: fact, operand: false }],
  });
}

function hostFacts(...hosts: readonly Partial<HostFact>[]): Facts {
  return facts("fetch_url", {
    risk: "network",
    subjects: hosts.map((h) => ({
      kind: "host",
      host: { written: "", host: "example.com", private: false, ...h },
    })) as never,
  });
}

const write = (path: Partial<PathFact>): Subject => ({
  kind: "path",
  tool: "write_file",
  operand: false,
  path: { written: "", absolute: "/ws/a.txt", resolved: "/ws/a.txt", inWorkspace: true, ...path },
});
const operand = (path: Partial<PathFact>): Subject =>
  ({ ...write(path), tool: "read_file", operand: true }) as Subject;

type Written = Partial<Record<Effect, readonly (Matchers | string)[]>> & {
  readonly default?: Effect;
  readonly delegate?: readonly string[];
};

const shell = (text: string): Matchers => ({ tools: ["shell"], command: [command(text)] });
const at = { file: "p", line: 1, col: 1 };

function layer(name: LayerName, written: Written): Layer {
  const effects = ["allow", "ask", "deny"] as const;
  const made = effects.flatMap((effect) =>
    (written[effect] ?? []).map((m, n) =>
      rule(name, `${name}.${effect}[${n}]`, effect, typeof m === "string" ? shell(m) : m)
    )
  );
  const effect = written.default;
  const defaults = effect === undefined ? {} : {
    read: { effect, at },
    write: { effect, at },
    execute: { effect, at },
    network: { effect, at },
    destructive: { effect, at },
  };
  return { name, rules: made, defaults, delegates: (written.delegate ?? []).map(shell) };
}

type Row = readonly [
  name: string,
  layers: Partial<Record<LayerName, Written>>,
  facts: Facts,
  effect: Effect,
  strictest: readonly string[],
];

describe("decide() in single cases", () => {
  const rows: readonly Row[] = [
    ["reading is allowed where nobody says anything", {}, fileFacts("read_file", {}), "allow", [
      "default builtin read",
    ]],
    ["writing is asked about", {}, fileFacts("write_file", {}), "ask", ["default builtin write"]],
    [
      "an upper default is a floor for the layers below",
      { machine: { default: "ask" }, user: { allow: ["bun test"] } },
      shellFacts([part("bun test")]),
      "ask",
      ["default machine execute"],
    ],
    [
      "an ask rule softens its own layer's default",
      { user: { default: "deny", ask: ["bun *"] } },
      shellFacts([part("bun test")]),
      "ask",
      ["rule user user.ask[0]"],
    ],
    [
      "the strictest part decides",
      { user: { allow: ["ls *", "git status"], deny: ["git push *"] } },
      shellFacts([part("ls -l"), part("git push origin"), part("git status")]),
      "deny",
      ["rule user user.deny[0]"],
    ],
    [
      "a redirection is a write of its own",
      { user: { allow: ["ls *"] } },
      shellFacts([part("ls -l")], write({})),
      "ask",
      ["default builtin write"],
    ],
    [
      "a rule for a wrapper that hides nothing covers what it runs",
      { user: { allow: ["uv run *"] } },
      shellFacts(uvPytest),
      "allow",
      ["rule user user.allow[0]"],
    ],
    [
      "a wrapper that hides what it runs is covered by its exact words",
      { user: { allow: ["timeout 5 bun test"] } },
      shellFacts(timeoutTest),
      "allow",
      ["rule user user.allow[0]"],
    ],
    [
      "a wrapper with a wildcard leaves what it runs to the default",
      { user: { allow: ["timeout *"] } },
      shellFacts(timeoutTest),
      "ask",
      ["default builtin execute"],
    ],
    [
      "another command beside it is no part of what is written out",
      { user: { allow: ["timeout 5 bun test"] } },
      shellFacts([...timeoutTest, part("touch a")]),
      "ask",
      ["default builtin execute", "default builtin write"],
    ],
    [
      "a lower layer's rule for a wrapper does not lift an upper default from what it runs",
      { machine: { default: "deny", allow: ["timeout *"] }, user: { allow: ["timeout 5 bun test"] } },
      shellFacts(timeoutTest),
      "deny",
      ["default machine execute"],
    ],
    [
      "what runs inside meets deny rules",
      { user: { allow: ["uv run *"], deny: ["pytest *"] } },
      shellFacts(uvPytest),
      "deny",
      ["rule user user.deny[0]"],
    ],
    [
      "a destructive command inside needs the whole text written out",
      { user: { allow: ["uv run *"] } },
      shellFacts([part("uv run rm -rf x"), part("rm -rf x", inner)]),
      "ask",
      ["risk_floor"],
    ],
    [
      "… and is allowed when it is",
      { user: { allow: ["uv run rm -rf x"] } },
      shellFacts([part("uv run rm -rf x"), part("rm -rf x", inner)]),
      "allow",
      ["rule user user.allow[0]"],
    ],
    [
      "a riskier neighbour does not hide a command from a rule about its risk",
      { user: { allow: ["bun test", "rm -rf x"], deny: [{ tools: ["shell"], risk: ["execute"] }] } },
      shellFacts([part("bun test"), part("rm -rf x")]),
      "deny",
      ["rule user user.deny[0]"],
    ],
    [
      "a bare tool rule does not cover what is not understood",
      { user: { allow: [{ tools: ["shell"] }] } },
      shellFacts([part("echo $(id)", { notUnderstood: "holds a substitution" }), part("id", inner)]),
      "ask",
      ["coverage"],
    ],
    [
      "naming one argument of a destructive call is not naming the call",
      { user: { allow: [{ tools: ["mcp.gh.wipe"], args: { id: ["5"] } }] } },
      facts("mcp.gh.wipe", { risk: "destructive", args: { id: 5, force: true } }),
      "ask",
      ["risk_floor"],
    ],
    [
      "naming all of them is",
      { user: { allow: [{ tools: ["mcp.gh.wipe"], args: { id: ["5"], force: ["true"] } }] } },
      facts("mcp.gh.wipe", { risk: "destructive", args: { id: 5, force: true } }),
      "allow",
      ["rule user user.allow[0]"],
    ],
    [
      "a project does not lift the floor, even where it is delegated",
      {
        machine: { delegate: ["rm *"] },
        project: { allow: ["rm -rf x"] },
      },
      shellFacts([part("rm -rf x")]),
      "ask",
      ["risk_floor"],
    ],
    [
      "a delegated project allow replaces the default",
      { machine: { default: "deny", delegate: ["bun *"] }, project: { allow: ["bun test"] } },
      shellFacts([part("bun test")]),
      "allow",
      ["rule project project.allow[0]"],
    ],
    [
      "… never a rule",
      { machine: { ask: ["bun *"], delegate: ["bun *"] }, project: { allow: ["bun test"] } },
      shellFacts([part("bun test")]),
      "ask",
      ["rule machine machine.ask[0]"],
    ],
    [
      "… nor another layer's default",
      { machine: { delegate: ["bun *"] }, user: { default: "deny" }, project: { allow: ["bun test"] } },
      shellFacts([part("bun test")]),
      "deny",
      ["default user execute"],
    ],
    [
      "a protected path needs a rule that spells it out",
      { user: { allow: [{ tools: ["write_file"], path: [pathGlob(".writ/**")] }] } },
      fileFacts("write_file", { resolved: "/ws/.writ/policy.yaml", protectedBy: ".writ/**" }),
      "ask",
      ["coverage"],
    ],
    [
      "… and is allowed by one",
      { user: { allow: [{ tools: ["write_file"], path: [pathGlob(".writ/policy.yaml")] }] } },
      fileFacts("write_file", { resolved: "/ws/.writ/policy.yaml", protectedBy: ".writ/**" }),
      "allow",
      ["rule user user.allow[0]"],
    ],
    [
      "an allow looks where a link leads, a deny also where it stands",
      {
        user: {
          allow: [{ tools: ["read_file"], path: [pathGlob("**")] }],
          deny: [{ tools: ["read_file"], path: [pathGlob("link")] }],
        },
      },
      fileFacts("read_file", { absolute: "/ws/link", resolved: "/ws/a.txt" }),
      "deny",
      ["rule user user.deny[0]"],
    ],
    [
      "a bare rule does not open the world outside",
      { user: { allow: [{ tools: ["read_file"] }] } },
      fileFacts("read_file", { absolute: "/etc/hosts", resolved: "/etc/hosts", inWorkspace: false }),
      "ask",
      ["coverage"],
    ],
    [
      "an operand meets protection",
      { user: { allow: ["ls *"] } },
      shellFacts([part("ls -l")], operand({ resolved: "/ws/.git/config", protectedBy: ".git/config" })),
      "ask",
      ["coverage"],
    ],
    [
      "a private host is refused, any host or not",
      { user: { allow: [{ tools: ["fetch_url"], host: [{ kind: "any" }] }] } },
      hostFacts({ host: "127.0.0.1", private: true }),
      "deny",
      ["rule builtin builtin.private"],
    ],
    [
      "… and allowed by its name",
      { user: { allow: [{ tools: ["fetch_url"], host: [{ kind: "exact", host: "127.0.0.1" }] }] } },
      hostFacts({ host: "127.0.0.1", private: true }),
      "allow",
      ["rule user user.allow[0]"],
    ],
    [
      "every hop is judged",
      { user: { allow: [{ tools: ["fetch_url"], host: [{ kind: "under", domain: "example.com" }] }] } },
      hostFacts({ host: "a.example.com" }, { host: "aexample.com" }),
      "ask",
      ["default builtin network"],
    ],
    [
      "a boxed call needs a rule that names the box",
      { user: { allow: ["bun test"] } },
      { ...shellFacts([part("bun test")]), box: "push" },
      "ask",
      ["coverage", "default builtin execute"],
    ],
    [
      "… and a deny rule without a box reaches it",
      { user: { allow: [{ ...shell("bun test"), box: ["push"] }], deny: ["bun *"] } },
      { ...shellFacts([part("bun test")]), box: "push" },
      "deny",
      ["rule user user.deny[0]"],
    ],
    [
      "a destructive call in a box is named only with the box",
      { user: { allow: ["rm -rf x"] } },
      { ...shellFacts([part("rm -rf x")]), box: "push" },
      "ask",
      ["coverage", "default builtin destructive", "risk_floor"],
    ],
    [
      "what runs inside a command that nobody saw is named by nothing",
      { user: { allow: ["rm -rf x", { tools: ["shell"] }] } },
      shellFacts([part("rm -rf x", { ...inner, ...wrapped })]),
      "ask",
      ["coverage", "risk_floor"],
    ],
  ];
  for (const [name, written, asked, effect, strictest] of rows) {
    test(name, () => {
      const names: readonly LayerName[] = ["machine", "user", "project"];
      const verdict = decide(names.map((n) => layer(n, written[n] ?? {})), asked, {
        root,
        active: [],
        bounds: [],
        blocks: [],
      });
      assertEquals(summary(verdict), { effect, strictest });
    });
  }

  const sourced = layer("user", {
    default: "ask",
    allow: [{ tools: ["git_diff"], sourcedBy: ["skill:review"] }],
  });
  const reading = facts("git_diff", { risk: "read", sourcedBy: ["skill:review"] });
  const standing = { root, active: ["review"], bounds: [], blocks: [] };

  test("sourced_by lifts only for a skill that somebody vouched for", () => {
    assertEquals(decide([sourced], reading, standing).effect, "ask");
    assertEquals(decide([sourced], reading, { ...standing, vouched: ["review"] }).effect, "allow");
    assertEquals(decide([sourced], reading, { ...standing, vouched: ["other"] }).effect, "ask");
  });

  test("an unknown source is an error of its own", () => {
    const verdict = decide([], { ...reading, sourcedBy: ["skill:ghost"] }, standing);
    assertEquals(verdict.causes[0], {
      by: "error",
      effect: "deny",
      code: "unknown_source",
      message: "no active skill `ghost`",
    });
  });

  test("the causes hold every vote, with its place and its subject", () => {
    const allowed: readonly AllowedTool[] = [{ shown: "read_file", matchers: { tools: ["read_file"] } }];
    const verdict = decide(
      [layer("user", { allow: ["ls *"], default: "ask" })],
      shellFacts([part("ls -l"), part("bun test")]),
      { ...standing, bounds: [{ skill: "review", allowed }] },
    );
    assertEquals(verdict, {
      effect: "deny",
      causes: [
        { by: "bound", effect: "deny", skill: "review", allowed: ["read_file"] },
        { by: "default", effect: "ask", layer: "user", risk: "execute", at, subject: "bun test" },
        {
          by: "rule",
          effect: "allow",
          rule: "user.allow[0]",
          layer: "user",
          at: { file: "policy.yaml", line: 1, col: 1 },
          text: "user.allow[0]",
          subject: "ls -l",
        },
      ],
    });
  });
});
