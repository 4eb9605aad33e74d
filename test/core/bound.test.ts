import { assert, assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import fc from "fast-check";
import {
  type AllowedTool,
  type Bound,
  type BoundingSkill,
  bounds,
  boundVotes,
} from "../../src/core/bound.ts";
import type { Facts, Part, Subject } from "../../src/core/facts.ts";
import type { SkillSettings } from "../../src/core/policy.ts";
import { engineTools } from "../../src/core/tool_names.ts";
import { callOf } from "../support/calls.ts";
import { boundingSkill, command, part, pathGlob, questionOf, root, tries } from "./decide_generators.ts";

type Settings = Pick<SkillSettings, "undeclaredTools" | "combineBounds">;
const intersecting: Settings = { undeclaredTools: "read_only", combineBounds: "intersection" };
const uniting: Settings = { undeclaredTools: "read_only", combineBounds: "union" };

const tool = (shown: string): AllowedTool => ({ shown, matchers: { tools: [shown] } });
const shell = (text: string): AllowedTool => ({
  shown: `shell(${text})`,
  matchers: { tools: ["shell"], command: [command(text)] },
});
const file = (name: string, glob: string): AllowedTool => ({
  shown: `${name}(${glob})`,
  matchers: { tools: [name], path: [pathGlob(glob)] },
});
const unreadable: AllowedTool = { shown: "Bash(((" };

function skill(
  name: string,
  allowed?: readonly AllowedTool[],
  trigger: BoundingSkill["trigger"] = "explicit",
) {
  return { name, trigger, allowed };
}

describe("bounds()", () => {
  const [a, b] = [[tool("read_file")], [tool("shell")]];
  const reads: AllowedTool = { shown: "calls of risk read", matchers: { tools: ["*"], risk: ["read"] } };
  const rows: readonly (readonly [
    name: string,
    active: readonly BoundingSkill[],
    settings: Settings,
    want: readonly Bound[],
  ])[] = [
    ["none without skills", [], intersecting, []],
    ["one for each skill", [skill("a", a), skill("b", b)], intersecting, [
      { skill: "a", allowed: a },
      { skill: "b", allowed: b },
    ]],
    ["an empty list is a bound", [skill("a", [])], intersecting, [{ skill: "a", allowed: [] }]],
    ["an undeclared skill may read", [skill("a")], intersecting, [{ skill: "a", allowed: "read_only" }]],
    ["reject never widens", [skill("a")], { ...intersecting, undeclaredTools: "reject" }, [
      { skill: "a", allowed: "read_only" },
    ]],
    [
      "unbounded is no bound",
      [skill("a"), skill("b", b)],
      { ...intersecting, undeclaredTools: "unbounded" },
      [
        { skill: "b", allowed: b },
      ],
    ],
    ["union joins what the message loaded", [skill("a", a), skill("b", b, "pattern")], uniting, [
      { skill: "a + b", allowed: [...a, ...b], united: ["a", "b"] },
    ]],
    ["what the model loads only narrows", [skill("a", a), skill("b", b, "model")], uniting, [
      { skill: "a", allowed: a },
      { skill: "b", allowed: b },
    ]],
    ["what policy loads only narrows", [skill("a", a), skill("b", b), skill("c", b, "policy")], uniting, [
      { skill: "a + b", allowed: [...a, ...b], united: ["a", "b"] },
      { skill: "c", allowed: b },
    ]],
    ["a union keeps the reading of an undeclared skill", [skill("a"), skill("b", b)], uniting, [
      { skill: "a + b", allowed: [reads, ...b], united: ["a", "b"] },
    ]],
    ["a skill without a bound lifts no other one", [skill("a"), skill("b", b)], {
      ...uniting,
      undeclaredTools: "unbounded",
    }, [{ skill: "b", allowed: b }]],
  ];
  for (const [name, active, settings, want] of rows) {
    test(name, () => assertEquals(bounds(active, settings), want));
  }
});

const inner = { level: "inner" } as const;
const wrapped = { notUnderstood: "runs another command", nameable: true } as const;

function facts(name: string, more: Partial<Facts>): Facts {
  return callOf(name, [{ kind: "call" }], more);
}

function shellFacts(parts: readonly Part[], ...more: readonly Subject[]): Facts {
  return facts("shell", {
    subjects: [...parts.map((p): Subject => ({ kind: "part", part: p })), ...more] as never,
  });
}

function pathSubject(name: string, path: string, operand = false): Subject {
  return {
    kind: "path",
    tool: name,
    operand,
    path: { written: path, absolute: path, resolved: path, inWorkspace: true },
  };
}

describe("boundVotes()", () => {
  const git = shellFacts([part("git status")]);
  const uv = shellFacts([part("uv run pytest"), part("pytest", inner)]);
  const timeout = shellFacts([part("timeout 5 bun test", wrapped), part("bun test", inner)]);
  const rows: readonly (readonly [name: string, allowed: Bound["allowed"], asked: Facts, fits: boolean])[] = [
    ["a listed tool", [tool("read_file")], facts("read_file", {}), true],
    ["another tool", [tool("read_file")], facts("write_file", {}), false],
    ["names are told apart by case", [tool("read_file")], facts("Read_File", {}), false],
    ["a glob over names", [tool("mcp.gh.*")], facts("mcp.gh.list", {}), true],
    ["an empty list allows nothing", [], facts("read_file", { risk: "read" }), false],
    ["an entry that cannot be read allows nothing", [unreadable], facts("shell", {}), false],
    ["a skill's own tool", [tool("read_file")], facts("skill.review.check", {}), true],
    ["the tool of another skill", [tool("read_file")], facts("skill.b.check", {}), false],
    ["a tool whose name only begins so", [tool("read_file")], facts("skill.review", {}), false],
    ["read_only, reading", "read_only", facts("mcp.gh.list", { risk: "read" }), true],
    ["read_only, writing", "read_only", facts("write_file", { risk: "write" }), false],
    ["a specifier that fits", [shell("git *")], git, true],
    ["a specifier that does not", [shell("bun *")], git, false],
    ["every command must fit", [shell("git *")], shellFacts([part("git status"), part("bun test")]), false],
    [
      "each by any entry",
      [shell("git *"), shell("bun test")],
      shellFacts([part("git status"), part("bun test")]),
      true,
    ],
    ["what a listed command runs", [shell("uv run *")], uv, true],
    ["what hides inside a listed prefix", [shell("timeout *")], timeout, false],
    ["… or inside listed words", [shell("timeout 5 bun test")], timeout, true],
    ["a listed command that only runs inside another", [shell("pytest")], uv, false],
    [
      "a redirection needs write_file",
      [shell("git *")],
      shellFacts([part("git status")], pathSubject("write_file", "/ws/a")),
      false,
    ],
    [
      "… which may be listed",
      [shell("git *"), file("write_file", "a")],
      shellFacts([part("git status")], pathSubject("write_file", "/ws/a")),
      true,
    ],
    [
      "… unless the whole shell is listed",
      [tool("shell")],
      shellFacts([part("git status")], pathSubject("write_file", "/ws/a")),
      true,
    ],
    [
      "an operand is no use of another tool",
      [shell("git *")],
      shellFacts([part("git status")], pathSubject("read_file", "/ws/a", true)),
      true,
    ],
    [
      "a path that fits",
      [file("write_file", "docs/**")],
      facts("write_file", {
        subjects: [pathSubject("write_file", "/ws/docs/a")],
      }),
      true,
    ],
    [
      "a path that does not",
      [file("write_file", "docs/**")],
      facts("write_file", {
        subjects: [pathSubject("write_file", "/ws/src/a")],
      }),
      false,
    ],
    ["a box is for the policy to allow", [shell("git *")], { ...git, box: "push" }, true],
  ];
  for (const [name, allowed, asked, fits] of rows) {
    test(name, () => {
      const votes = boundVotes([{ skill: "review", allowed }], asked, root);
      const shown = allowed === "read_only" ? ["calls of risk read"] : allowed.map((a) => a.shown);
      assertEquals(
        votes,
        fits ? [] : [{ by: "bound", effect: "deny", skill: "review", allowed: shown }],
      );
    });
  }

  for (const name of engineTools) {
    test(`${name} stands outside every bound`, () => {
      assertEquals(boundVotes([{ skill: "review", allowed: [] }], facts(name, { risk: "read" }), root), []);
    });
  }

  test("each bound that is not met votes for itself", () => {
    const all: readonly Bound[] = [
      { skill: "a", allowed: [tool("read_file")] },
      { skill: "b", allowed: [tool("shell")] },
      { skill: "c", allowed: "read_only" },
    ];
    const votes = boundVotes(all, git, root);
    assertEquals(votes.map((v) => (v.by === "bound" ? v.skill : "")), ["a", "c"]);
  });
});

describe("laws of bounds", () => {
  const skills = fc.tuple(boundingSkill("a"), boundingSkill("b"), boundingSkill("c"));
  const asked = fc.oneof(questionOf("shell"), questionOf("file")).map((q) => q.facts);
  const undeclaredTools = fc.constantFrom<Settings["undeclaredTools"]>("reject", "read_only", "unbounded");
  const refuses = (active: readonly BoundingSkill[], settings: Settings, f: Facts) =>
    boundVotes(bounds(active, settings), f, root).length > 0;

  test("a further skill never opens what a bound refuses, where bounds intersect", () => {
    fc.assert(
      fc.property(skills, asked, undeclaredTools, ([a, b, c], f, undeclaredTools) => {
        const settings = { ...intersecting, undeclaredTools };
        if (refuses([a, b], settings, f)) assert(refuses([a, b, c], settings, f));
      }),
      tries(1_500),
    );
  }, 60_000);

  test("a union refuses nothing that one of its declared skills takes alone", () => {
    fc.assert(
      fc.property(skills, asked, ([a, b, c], f) => {
        const active = [a, b, c].map((s) => ({ ...s, trigger: "explicit" as const }));
        if (refuses(active, uniting, f)) {
          for (const one of active) assert(refuses([one], uniting, f));
        }
      }),
      tries(1_500),
    );
  }, 60_000);

  test("the order of skills does not matter", () => {
    fc.assert(
      fc.property(skills, asked, fc.constantFrom(intersecting, uniting), ([a, b, c], f, settings) => {
        assertEquals(refuses([a, b, c], settings, f), refuses([c, a, b], settings, f));
      }),
      tries(1_000),
    );
  }, 60_000);
});
