import { assert, assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import fc from "fast-check";
import { covering, isInner, isOperand } from "../../src/core/covering.ts";
import { decide, type Standing } from "../../src/core/decide.ts";
import type { Facts, Part, Subject } from "../../src/core/facts.ts";
import { grantFor } from "../../src/core/grant.ts";
import {
  commandText,
  grantEntry,
  type GrantRule,
  grantRules,
  rulesAnswer,
  showGrantRule,
} from "../../src/core/grant_rule.ts";
import type { Rule } from "../../src/core/rule.ts";
import { matchesSubject } from "../../src/core/rule.ts";
import { parseYaml } from "../../src/load/yaml.ts";
import type { RuleEntry } from "../../src/load/policy_schema.ts";
import { layerOf, ruleOf } from "../support/rules.ts";
import { callOf, pathSubject } from "../support/calls.ts";
import { type Family, part, questionOf, tries } from "./decide_generators.ts";

const root = "/ws";
const standing: Standing = { root, active: [], bounds: [], blocks: [] };

function command(argv: readonly string[], more: Partial<Part> = {}): Facts {
  return callOf("shell", [{ kind: "part", part: part(argv.join(" "), more, [...argv]) }]);
}

function file(tool: string, path: string): Facts {
  const fact = { written: path, absolute: path, resolved: path, inWorkspace: true };
  return callOf(tool, [{ kind: "path", tool, path: fact, operand: false }]);
}

function host(name: string): Facts {
  return callOf("fetch_url", [{ kind: "host", host: { written: name, host: name, private: false } }]);
}

/** What is shown, read as the entry of a policy file that it claims to be. */
function readBack(rule: GrantRule): Rule {
  const parsed = parseYaml(JSON.stringify([grantEntry(rule)]), "rule.yaml", 1 << 20);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const shown = showGrantRule(rule);
  if (shown.startsWith("{")) {
    const flow = parseYaml(shown, "rule.yaml", 1 << 20);
    assert(flow.ok);
    assertEquals(flow.value.value, grantEntry(rule));
  } else assertEquals(shown, grantEntry(rule));
  return ruleOf((parsed.value.value as RuleEntry[])[0]!, "allow");
}

function matches(rule: Rule, call: Facts, at = root): boolean {
  return call.subjects.some((s) => matchesSubject(rule, call, s, "allow", at));
}

/** Calls that differ from the approved one in one thing. */
function neighbours(call: Facts): readonly (readonly [name: string, call: Facts])[] {
  const [subject] = call.subjects;
  const others: (readonly [string, Facts])[] = [
    ["another box", { ...call, box: "other" }],
    ["another tool", {
      ...call,
      tool: "other",
      subjects: subject.kind === "path" ? [{ ...subject, tool: "other" }] : call.subjects,
    }],
  ];
  if (subject.kind === "part") {
    const { argv } = subject.part;
    others.push(
      ["one word more", command([...argv, "x"])],
      ["an empty word more", command([...argv, ""])],
      ["one word less", command(argv.slice(0, -1))],
      ["another word", command([...argv.slice(0, -1), `${argv.at(-1)}x`])],
      ["the words as one", command([argv.join(" "), ""])],
      ["a program elsewhere", command([`./${argv[0]}`, ...argv.slice(1)])],
      ["an assignment", command(argv, { assignments: ["A=1"] })],
      ["inside another command", command(argv, { level: "inner" })],
      ["not understood", command(argv, { notUnderstood: "hides something" })],
    );
  } else if (subject.kind === "path") {
    const path = subject.path.resolved ?? "";
    others.push(
      ["below it", file(subject.tool, `${path}/x`)],
      ["a longer name", file(subject.tool, `${path}x`)],
      ["a shorter name", file(subject.tool, path.slice(0, -1))],
      ["its folder", file(subject.tool, path.slice(0, path.lastIndexOf("/")))],
      ["a neighbour", file(subject.tool, `${path.slice(0, path.lastIndexOf("/"))}/other`)],
    );
  } else if (subject.kind === "host") {
    const { host: name } = subject.host;
    others.push(["below it", host(`x.${name}`)], ["a longer name", host(`x${name}`)], [
      "above it",
      host("com"),
    ]);
  }
  return others;
}

describe("grantRules() says each thing once", () => {
  const inner = { level: "inner" } as const;
  const at = (tool: string, path: string, more = {}, operand = false): Subject => ({
    kind: "path",
    tool,
    path: { written: path, absolute: path, resolved: path, inWorkspace: true, ...more },
    operand,
  });
  const ls: Subject = { kind: "part", part: part("ls") };
  const rule = (tool: string, kind: GrantRule["kind"], text: string): GrantRule => ({
    tool,
    kind,
    text,
    box: "default",
  });
  const rows: readonly (readonly [name: string, facts: Facts, rules: readonly GrantRule[] | undefined])[] = [
    ["a command twice", callOf("shell", [ls, ls]), [rule("shell", "command", "ls")]],
    ["a file of two tools", callOf("shell", [at("write_file", "/ws/a"), at("read_file", "/ws/a")]), [
      rule("write_file", "path", "/ws/a"),
      rule("read_file", "path", "/ws/a"),
    ]],
    ["no operand", callOf("shell", [ls, at("read_file", "/ws/a", {}, true)]), [
      rule("shell", "command", "ls"),
    ]],
    ["no command inside", callOf("shell", [ls, { kind: "part", part: part("date", inner) }]), [
      rule("shell", "command", "ls"),
    ]],
    ["a host", host("a.b"), [rule("fetch_url", "host", "a.b")]],
    ["nothing of a call as a whole", callOf("mcp.x", [{ kind: "call" }]), undefined],
    ["nothing of what hides something", command(["time", "ls"], { notUnderstood: "x" }), undefined],
    ["nothing of an assignment alone", command([], { notUnderstood: "x" }), undefined],
    ["nothing of no words", callOf("shell", [{ kind: "part", part: part("", {}, []) }]), undefined],
    [
      "nothing of words that are not known",
      command(["ls", "*"], { blurs: [{ at: 1, pieces: ["", ""], many: true, glob: true }] }),
      undefined,
    ],
    [
      "nothing of a protected path",
      callOf("write_file", [at("write_file", "/ws/a", { protectedBy: ".git" })]),
      undefined,
    ],
  ];
  for (const [name, call, rules] of rows) test(name, () => assertEquals(grantRules(call), rules));
});

test("commandText() quotes what would be read otherwise", () => {
  const rows: readonly (readonly [words: readonly string[], text: string])[] = [
    [["ls", "-l", "a.ts"], "ls -l a.ts"],
    [["ls", "a b", "x*"], "ls 'a b' 'x*'"],
    [["ls", "", "é", "*x"], "ls '' 'é' '*x'"],
    [["ls", "it's", "it's \"\\"], 'ls "it\'s" "it\'s \\"\\\\"'],
    [["A=1", "A=1", "@s"], "'A=1' A=1 '@s'".replace("'@s'", "@s")],
    [["@s", "x"], "'@s' x"],
    [["AB1+=x"], "'AB1+=x'"],
    [["-A=1"], "-A=1"],
    [["1A=1"], "1A=1"],
    [["x@s"], "x@s"],
  ];
  for (const [words, text] of rows) assertEquals(commandText(words), text);
});

test("grantEntry() names what is not the default", () => {
  const rule: GrantRule = { tool: "shell", kind: "command", text: "ls", box: "default" };
  const rows = [
    grantEntry(rule),
    grantEntry({ ...rule, box: "b" }),
    grantEntry(rule, "/ws"),
    grantEntry({ ...rule, kind: "path", text: " a" }),
    showGrantRule({ ...rule, box: "b" }),
  ];
  assertEquals(rows, [
    "shell(ls)",
    { tool: "shell", command: "ls", box: "b" },
    { tool: "shell", command: "ls", workspace: "/ws" },
    { tool: "shell", path: " a" },
    '{tool: "shell", command: "ls", box: "b"}',
  ]);
});

describe("rulesAnswer() is whether nothing more would be asked", () => {
  const asking = { execute: { effect: "ask", at: { file: "/p.yaml", line: 1, col: 1 } } } as const;
  const rules = (call: Facts) => grantRules(call) ?? [];
  const ls = command(["ls"]);
  const kept = file("write_file", "/ws/[a]");
  const rows: readonly (readonly [
    name: string,
    layers: Parameters<typeof rulesAnswer>[0],
    call: Facts,
    rules: readonly GrantRule[],
    answer: boolean,
  ])[] = [
    ["a command", [], ls, rules(ls), true],
    ["a command in a box", [], { ...ls, box: "b" }, rules({ ...ls, box: "b" }), true],
    ["a command in another box", [], { ...ls, box: "c" }, rules({ ...ls, box: "b" }), false],
    ["a file", [], kept, rules(kept), true],
    ["another file", [], file("write_file", "/ws/a"), rules(kept), false],
    ["a host", [], host("a.b"), rules(host("a.b")), true],
    ["another host", [], host("b.a"), rules(host("a.b")), false],
    ["no rule", [], command(["make"]), [], false],
    ["a rule that cannot be read", [], ls, [...rules(ls), {
      tool: "shell",
      kind: "command",
      text: "'",
      box: "default",
    }], false],
    [
      "the user's own default",
      [layerOf("user", {}, { defaults: asking })],
      command(["make"]),
      rules(command(["make"])),
      true,
    ],
    [
      "the default of a machine",
      [layerOf("machine", {}, { defaults: asking })],
      command(["make"]),
      rules(command(["make"])),
      false,
    ],
    [
      "the user's own ask",
      [layerOf("user", { ask: ["shell(make)"] })],
      command(["make"]),
      rules(command(["make"])),
      false,
    ],
    [
      "what the user's policy allows already",
      [layerOf("user", { allow: ["shell(make)"] })],
      command(["make"]),
      [],
      true,
    ],
    [
      "the default of a project",
      [layerOf("project", {}, { defaults: asking }), layerOf("user", {})],
      command(["make"]),
      rules(command(["make"])),
      false,
    ],
  ];
  for (const [name, layers, call, added, answer] of rows) {
    test(name, () => assertEquals(rulesAnswer(layers, call, standing, added), answer));
  }
});

const word = fc.oneof(
  fc.constantFrom(
    "a",
    "-b",
    "--c=d",
    "*",
    "a b",
    "",
    "it's",
    '"',
    "\\",
    "$x",
    "`x`",
    "A=1",
    "@s",
    "~",
    "#",
    "é",
    "a\nb",
    "(",
    ")",
  ),
  fc.string({ maxLength: 6 }),
);
const program = word.filter((w) => w !== "");
const name = fc.oneof(
  fc.constantFrom("a", "a.ts", "[a]", "*", "{a,b}", "a b", "!a", "~a", "@(a)", "\\", " a", "a ", "é", "a\nb"),
  fc.string({ minLength: 1, maxLength: 6 }).filter((n) => !/[/\0]/.test(n) && n !== "." && n !== ".."),
);
const label = fc.stringMatching(/^[a-z][a-z0-9]{0,5}$/);
const approved: fc.Arbitrary<Facts> = fc.oneof(
  fc.tuple(program, fc.array(word, { maxLength: 4 })).map(([first, rest]) => command([first, ...rest])),
  fc.tuple(
    fc.constantFrom("read_file", "write_file", "edit_file"),
    fc.array(name, { minLength: 1, maxLength: 3 }),
  ).map((
    [tool, names],
  ) => file(tool, `/${names.join("/")}`)),
  fc.array(label, { minLength: 1, maxLength: 3 }).map((labels) => host(labels.join("."))),
).chain((call) => fc.constantFrom("default", "push").map((box) => ({ ...call, box })));

describe("the rule of a grant", () => {
  test("reads back as a rule that matches what was approved, and nothing near it", () => {
    fc.assert(
      fc.property(approved, (call) => {
        const rules = grantRules(call);
        assertEquals(rules?.length, 1);
        const rule = readBack(rules![0]!);
        assert(matches(rule, call), `${showGrantRule(rules![0]!)} does not match`);
        for (const [name, other] of neighbours(call)) {
          const boxed = name === "another box" ? other : { ...other, box: call.box };
          assert(!matches(rule, boxed), `${showGrantRule(rules![0]!)} matches ${name}`);
        }
      }),
      tries(2_000),
    );
  }, 60_000);

  test("counts in its workspace only", () => {
    for (const call of [command(["git", "push"]), file("edit_file", "/ws/a"), host("a.example")]) {
      const rule = ruleOf(grantEntry(grantRules(call)![0]!, root) as RuleEntry, "allow");
      assertEquals([matches(rule, call), matches(rule, call, "/other")], [true, false]);
    }
  });

  const families: readonly Family[] = ["shell", "file", "host", "plain"];
  const question = fc.constantFrom(...families).chain((f) => questionOf(f));

  test("covers every subject of every call that may be granted", () => {
    let covered = 0;
    fc.assert(
      fc.property(question, ({ facts: call }) => {
        const rules = grantRules(call);
        if (grantFor(call) === undefined || rules === undefined) return;
        covered++;
        const compiled = rules.map(readBack);
        for (const subject of call.subjects.filter((s) => !isOperand(s))) {
          assert(covering(compiled, call, subject, root).length > 0);
        }
        for (const rule of compiled) {
          assert(call.subjects.some((s) => !isInner(s) && matchesSubject(rule, call, s, "allow", root)));
        }
      }),
      tries(3_000),
    );
    assert(covered > 300, `only ${covered} grants were looked at`);
  }, 60_000);

  test("answers a call just when the call is decided so with the rule in the user's policy", () => {
    fc.assert(
      fc.property(question, ({ layers, facts: call }) => {
        const rules = grantRules(call);
        if (rules === undefined) return;
        const added = rules.map((rule, i) => ({
          ...ruleOf(grantEntry(rule, root) as RuleEntry, "allow"),
          id: `added-${i}`,
        }));
        const user = layers.map((l) => (l.name === "user" ? { ...l, rules: [...l.rules, ...added] } : l));
        if (!layers.some((l) => l.name === "user")) return;
        assertEquals(
          rulesAnswer(layers, call, standing, rules),
          decide(user, call, standing).effect === "allow",
        );
      }),
      tries(2_000),
    );
  }, 60_000);
});

describe("grantRules()", () => {
  const rows: readonly (readonly [name: string, call: Facts, shown: readonly string[] | undefined])[] = [
    [
      "every command once",
      callOf("shell", [
        { kind: "part", part: part("git push") },
        { kind: "part", part: part("git push") },
        { kind: "part", part: part("ls") },
      ]),
      ["shell(git push)", "shell(ls)"],
    ],
    ["a path with blanks at its ends", file("write_file", "/ws/ a "), [
      `{tool: "write_file", path: "/ws/ a "}`,
    ]],
    ["the tool that writes", {
      ...command(["ls"]),
      subjects: [{ kind: "part", part: part("ls") }, ...file("write_file", "/ws/out").subjects],
    }, ["shell(ls)", "write_file(/ws/out)"]],
    ["none for a call as a whole", callOf("mcp.gh.merge", [{ kind: "call" }]), undefined],
    [
      "none for a command of which nothing is known",
      command([], { notUnderstood: "leads somewhere" }),
      undefined,
    ],
  ];
  for (const [name, call, shown] of rows) {
    test(name, () => assertEquals(grantRules(call)?.map(showGrantRule), shown));
  }
});

describe("rulesAnswer()", () => {
  const push = command(["git", "push"]);
  const rules = grantRules(push)!;
  const rows: readonly (readonly [string, Parameters<typeof rulesAnswer>[0], boolean])[] = [
    ["with nothing in the way", [], true],
    ["with a user layer", [layerOf("user", { allow: ["read_file"] })], true],
    ["with a project layer", [layerOf("project", {})], true],
    ["not against an ask rule", [layerOf("user", { ask: ["shell(git push *)"] })], false],
    ["not against a deny rule of the project", [layerOf("project", { deny: ["shell(git push *)"] })], false],
    [
      "not against the machine's default",
      [layerOf("machine", {}, {
        defaults: {
          execute: { effect: "ask", at: { file: "/m", line: 1, col: 1 } },
          network: { effect: "ask", at: { file: "/m", line: 1, col: 1 } },
        },
      })],
      false,
    ],
  ];
  const floor = { write: { effect: "ask", at: { file: "/m", line: 1, col: 1 } } } as const;
  const out: GrantRule = { tool: "write_file", kind: "path", text: "/ws/out", box: "default" };
  const files: readonly (readonly [string, Facts, Parameters<typeof rulesAnswer>[0], boolean])[] = [
    ["for a file", file("write_file", "/ws/out"), [], true],
    [
      "for a protected file that is named",
      {
        ...callOf("write_file", [pathSubject("write_file", "/ws/out", { protectedBy: "out" })], {
          risk: "write",
        }),
      },
      [],
      true,
    ],
    [
      "not against the machine's default, with a user layer beside it",
      { ...file("write_file", "/ws/out"), risk: "write" },
      [layerOf("machine", {}, { defaults: floor }), layerOf("user", {})],
      false,
    ],
  ];
  for (const [name, layers, answers] of rows) {
    test(name, () => assertEquals(rulesAnswer(layers, push, standing, rules), answers));
  }
  for (const [name, call, layers, answers] of files) {
    test(name, () => assertEquals(rulesAnswer(layers, call, standing, [out]), answers));
  }
});
