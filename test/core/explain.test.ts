import { assertEquals, assertMatch } from "@std/assert";
import { describe, test } from "bun:test";
import { decide, type Standing } from "../../src/core/decide.ts";
import { explain, explainParts, refusalText } from "../../src/core/explain.ts";
import type { Facts, Subject } from "../../src/core/facts.ts";
import { layerOf } from "../support/rules.ts";
import { part } from "./decide_generators.ts";

const standing: Standing = { root: "/ws", active: [], bounds: [], blocks: [] };
const layers = [
  layerOf("machine", { ask: ["shell(git push *)"] }),
  layerOf("user", {
    deny: [{ id: "secrets", tool: "*", path: "/**/.env", reason: "credentials" }],
    allow: ["shell(git *)", "read_file"],
  }),
];

function shell(...texts: readonly string[]): Facts {
  const subjects = texts.map((text): Subject => ({ kind: "part", part: part(text) }));
  return {
    tool: "shell",
    args: { command: texts.join("; ") },
    risk: "network",
    subjects: subjects as unknown as Facts["subjects"],
    box: "default",
    sourcedBy: [],
    mode: "interactive",
    errors: [],
  };
}

const env: Subject = {
  kind: "path",
  tool: "read_file",
  operand: true,
  path: { written: ".env", absolute: "/ws/.env", resolved: "/ws/.env", inWorkspace: true },
};
const pushRule = {
  rule: "machine.ask[11]",
  effect: "ask",
  layer: "machine",
  at: { file: "/machine.yaml", line: 11, col: 3 },
  text: "shell(git push *)",
} as const;
const gitRule = {
  rule: "user.allow[21]",
  effect: "allow",
  layer: "user",
  at: { file: "/user.yaml", line: 21, col: 3 },
  text: "shell(git *)",
} as const;
const envRule = {
  rule: "secrets",
  effect: "deny",
  layer: "user",
  at: { file: "/user.yaml", line: 1, col: 3 },
  text: "* path /**/.env",
} as const;

describe("explain()", () => {
  test("is what is recorded, printed and told", () => {
    const facts = shell("git push");
    const verdict = decide(layers, facts, standing);
    assertEquals(explain(facts, verdict), {
      tool: "shell",
      risk: "network",
      effect: "ask",
      causes: [
        { by: "rule", ...pushRule, subject: "git push" },
        { by: "rule", ...gitRule, subject: "git push" },
      ],
      reason: "ask by rule machine.ask[11] (shell(git push *)) at /machine.yaml:11:3",
    });
    assertEquals(explain(facts, verdict, "no; not on a Friday").reason, "no; not on a Friday");
  });
});

describe("the reason of a call that is allowed", () => {
  const allowing = [
    layerOf("user", {
      allow: [
        "shell(git *)",
        "shell(tee *)",
        "shell(jq *)",
        "shell(make test)",
        "write_file(/ws/out/**)",
        "mcp.x",
        "mcp.*",
      ],
    }, { defaults: { write: { effect: "allow", at: { file: "/user.yaml", line: 1, col: 3 } } } }),
  ];
  const rule = (index: number, text: string) =>
    `allow by rule user.allow[${20 + index}] (${text}) at /user.yaml:${20 + index}:3`;
  const written = (path: string): Subject => ({
    kind: "path",
    tool: "write_file",
    operand: false,
    path: { written: path, absolute: path, resolved: path, inWorkspace: true },
  });
  const reads = (...texts: readonly string[]) => ({ ...shell(...texts), risk: "read" }) as const;
  const rows: readonly (readonly [name: string, call: Facts, reason: string])[] = [
    ["that only reads", reads("ls", "cat a"), "allow by the builtin default for risk read"],
    [
      "names the redirection that had to be allowed, not the command that did not",
      {
        ...shell("echo x >> out/a"),
        subjects: [...shell("echo x >> out/a").subjects, written("/ws/out/a")] as never,
      },
      `${rule(5, "write_file(/ws/out/**)")} [/ws/out/a]`,
    ],
    [
      "names each rule once, rules before defaults",
      {
        ...shell("cat a"),
        subjects: [written("/ws/b"), ...shell("git push", "git pull", "jq a").subjects] as never,
      },
      `${rule(1, "shell(git *)")} [git push]; ${rule(3, "shell(jq *)")} [jq a]; ` +
      "allow by the user default for risk write at /user.yaml:1:3 [/ws/b]",
    ],
    [
      "stops after three",
      shell("git push", "tee a", "jq a", "make test"),
      `${rule(1, "shell(git *)")} [git push]; ${rule(2, "shell(tee *)")} [tee a]; ` +
      `${rule(3, "shell(jq *)")} [jq a]; and 1 more`,
    ],
    [
      "gives one rule for one subject",
      { ...shell(), tool: "mcp.x", subjects: [{ kind: "call" }] },
      rule(6, "mcp.x"),
    ],
  ];
  for (const [name, call, reason] of rows) {
    test(name, () => assertEquals(explain(call, decide(allowing, call, standing)).reason, reason));
  }
});

describe("explainParts()", () => {
  test("gives each part its words, the rules of every layer that match, and the votes, the winner first", () => {
    const facts: Facts = { ...shell("git push", "ls"), risk: "network" };
    const call = { ...facts, subjects: [...facts.subjects, env] as unknown as Facts["subjects"] };
    assertEquals(explainParts(layers, call, standing), [
      {
        kind: "part",
        shown: "git push",
        argv: ["git", "push"],
        risk: "network",
        effect: "ask",
        matches: [{ ...pushRule, counts: true }, { ...gitRule, counts: true }],
        causes: [
          { by: "rule", ...pushRule, subject: "git push" },
          { by: "rule", ...gitRule, subject: "git push" },
        ],
      },
      {
        kind: "part",
        shown: "ls",
        argv: ["ls"],
        risk: "read",
        effect: "allow",
        matches: [],
        causes: [{ by: "default", effect: "allow", layer: "builtin", risk: "read", subject: "ls" }],
      },
      {
        kind: "path",
        shown: "/ws/.env",
        tool: "read_file",
        written: ".env",
        resolved: "/ws/.env",
        operand: true,
        risk: "read",
        effect: "deny",
        matches: [{ ...envRule, counts: true }],
        causes: [{ by: "rule", ...envRule, reason: "credentials", subject: "/ws/.env" }],
      },
    ]);
  });

  test("says which rule matches and is silent, and where nothing speaks of an operand", () => {
    const call: Facts = {
      ...shell(),
      tool: "read_file",
      risk: "read",
      subjects: [{ ...env, operand: false }, {
        ...env,
        path: { ...env.path, resolved: "/ws/a", absolute: "/ws/a" },
      }],
    };
    const [file, operand] = explainParts(layers, call, standing);
    assertEquals(file?.matches.map((m) => [m.rule, m.counts]), [["secrets", true], [
      "user.allow[22]",
      false,
    ]]);
    assertEquals([operand?.effect, operand?.causes], [undefined, []]);
  });

  test("finds the risk floor on the part that it is about", () => {
    const call = { ...shell("git status", "rm -rf x"), risk: "destructive" } as const;
    const floors = explainParts(layers, call, standing).map((p) =>
      p.causes.filter((c) => c.by === "risk_floor").length
    );
    assertEquals(floors, [0, 1]);
  });
});

describe("refusalText()", () => {
  const said = (facts: Facts, more: Partial<Parameters<typeof refusalText>[1]> = {}) =>
    refusalText(explain(facts, decide(layers, facts, standing)), {
      unattended: false,
      allowed: [],
      nearMisses: [],
      ...more,
    });
  const push = "ask by rule machine.ask[11] (shell(git push *)) at /machine.yaml:11:3";

  test("says one cause once", () => assertEquals(said(shell("git push")), `denied: ${push}`));

  test("lists several, each with its part", () => {
    assertEquals(
      said(shell("git push a", "git push b"), { unattended: true, allowed: ["shell(git *)"] }),
      [
        `denied: ${push}`,
        `- ${push} [git push a]`,
        `- ${push} [git push b]`,
        "nobody can be asked: this run is unattended",
        "allowed without asking: shell(git *)",
      ].join("\n"),
    );
  });

  test("tells how a gate is met", () => {
    const facts = shell("git push");
    const gate = { id: "g", layer: "user", at: envRule.at, before: [], evidence: [] } as const;
    const blocked = decide(layers, facts, {
      ...standing,
      blocks: [{ gate, missing: [{ kind: "compound" }] }],
    });
    assertMatch(
      refusalText(explain(facts, blocked), { unattended: false, allowed: [], nearMisses: [] }),
      /^denied: gate: g at \/user\.yaml:1:3: gate_compound: [^\n]*\nGather what is missing, in this order, [^\n]*$/,
    );
  });
});
