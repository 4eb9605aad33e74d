import { assert, assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import fc from "fast-check";
import type { Facts, HostFact, Part, PathFact, Subject } from "../../src/core/facts.ts";
import { coveringGrant, type Grant, grantFor } from "../../src/core/grant.ts";
import { callOf } from "../support/calls.ts";
import { part, questionOf, tries } from "./decide_generators.ts";

const inner = { level: "inner" } as const;
const wrapped = { notUnderstood: "runs another command", nameable: true } as const;

function shell(...parts: readonly Part[]): Facts {
  return callOf("shell", parts.map((p): Subject => ({ kind: "part", part: p })));
}

function path(tool: string, more: Partial<PathFact> = {}, operand = false): Subject {
  const fact = { written: "a", absolute: "/ws/a", resolved: "/ws/a", inWorkspace: true, ...more };
  return { kind: "path", tool, path: fact, operand };
}

function host(more: Partial<HostFact>): Subject {
  return { kind: "host", host: { written: "", host: "example.com", private: false, ...more } };
}

const unresolved: PathFact = { written: "a", absolute: "/ws/a", inWorkspace: true };

describe("grantFor()", () => {
  const rows: readonly (readonly [name: string, asked: Facts, want: Grant | undefined])[] = [
    ["the words of every command", shell(part("bun test"), part("git status")), {
      rule: "shell(bun test), shell(git status)",
      tool: "shell",
      box: "default",
      keys: ['["bun","test"]', '["git","status"]'],
    }],
    ["a command and where it writes", {
      ...shell(part("ls")),
      subjects: [
        { kind: "part", part: part("ls") },
        path("write_file"),
      ],
    }, {
      rule: "shell(ls), write_file(/ws/a)",
      tool: "shell",
      box: "default",
      keys: ['["ls"]', "write_file /ws/a"],
    }],
    ["the file, where it leads", callOf("write_file", [path("write_file", { absolute: "/ws/link" })]), {
      rule: "write_file(/ws/a)",
      tool: "write_file",
      box: "default",
      keys: ["write_file /ws/a"],
    }],
    ["every host", callOf("fetch_url", [host({}), host({ host: "a.example.com" })]), {
      rule: "fetch_url(example.com), fetch_url(a.example.com)",
      tool: "fetch_url",
      box: "default",
      keys: ["example.com", "a.example.com"],
    }],
    ["exactly these arguments", callOf("mcp.gh.merge", [{ kind: "call" }], { args: { b: 1, a: "x" } }), {
      rule: "mcp.gh.merge with exactly these arguments",
      tool: "mcp.gh.merge",
      box: "default",
      keys: ['{"a":"x","b":1}'],
    }],
    [
      "exactly these arguments, beside what a command only names",
      callOf("mcp.x", [{ kind: "call" }, path("write_file", {}, true)]),
      {
        rule: "mcp.x with exactly these arguments",
        tool: "mcp.x",
        box: "default",
        keys: ["{}", "operand write_file /ws/a"],
      },
    ],
    ["what a command runs, with the command", shell(part("xargs ls"), part("ls", inner)), {
      rule: "shell(xargs ls)",
      tool: "shell",
      box: "default",
      keys: ['["xargs","ls"]', 'inside ["ls"]'],
    }],
    [
      "exactly these arguments, of a skill's tool with the command behind it",
      callOf("mcp.x", [
        { kind: "call" },
        { kind: "part", part: part("time ls", wrapped), tool: "shell" },
      ]),
      {
        rule: "mcp.x with exactly these arguments",
        tool: "mcp.x",
        box: "default",
        keys: ["{}", '["time","ls"]'],
      },
    ],
    ["none for a call beside its command", {
      ...shell(part("ls")),
      subjects: [{ kind: "call" }, ...shell(part("ls")).subjects],
    }, undefined],
    [
      "none for words that are not known",
      shell(part("ls *", { blurs: [{ at: 1, pieces: ["", ""], many: true, glob: true }] })),
      undefined,
    ],
    [
      "none for what hides something inside",
      shell(part("xargs ls"), part("ls", { ...inner, notUnderstood: "x" })),
      undefined,
    ],
    ["none beside an operand that leads nowhere", {
      ...shell(part("ls")),
      subjects: [...shell(part("ls")).subjects, {
        kind: "path",
        tool: "read_file",
        path: unresolved,
        operand: true,
      }],
    }, undefined],
    ["none for what is destructive", { ...shell(part("rm -rf x")), risk: "destructive" }, undefined],
    ["none for what is not understood", shell(part("sh -c x", wrapped), part("x", inner)), undefined],
    ["none for an assignment", shell(part("bun test", { assignments: ["CI=1"] })), undefined],
    [
      "none for a protected file",
      callOf("write_file", [path("write_file", { protectedBy: ".git" })]),
      undefined,
    ],
    [
      "none for a path that leads nowhere",
      callOf("write_file", [{
        kind: "path",
        tool: "write_file",
        path: unresolved,
        operand: false,
      }]),
      undefined,
    ],
  ];
  for (const [name, asked, want] of rows) test(name, () => assertEquals(grantFor(asked), want));
});

test("grantFor() keeps the box", () => {
  assertEquals(grantFor({ ...shell(part("git push")), box: "push" })?.box, "push");
});

describe("coveringGrant()", () => {
  const approved = shell(part("bun test"), part("git status"));
  const grant = grantFor(approved)!;
  const rows: readonly (readonly [name: string, asked: Facts, covered: boolean])[] = [
    ["the same call", approved, true],
    ["a part of it", shell(part("git status")), true],
    ["what it runs, by itself", shell(part("git status", inner)), false],
    ["one command more", shell(part("bun test"), part("git status"), part("ls")), false],
    ["one word more", shell(part("bun test core")), false],
    ["the same letters in other words", shell(part("bun test", {}, ["bun test"])), false],
    ["another spelling of the program", shell(part("./bun test")), false],
    ["an assignment before it", shell(part("bun test", { assignments: ["CI=1"] })), false],
    ["another box", { ...approved, box: "push" }, false],
    ["another tool", { ...approved, tool: "mcp.sh.run" }, false],
    ["a redirection", { ...approved, subjects: [...approved.subjects, path("write_file")] as never }, false],
    ["when it has become destructive", { ...approved, risk: "destructive" }, false],
  ];
  for (const [name, asked, covered] of rows) {
    test(name, () => assertEquals(coveringGrant([grant], asked), covered ? grant : undefined));
  }

  test("the same words where an operand leads elsewhere since, or has become protected", () => {
    const tee = (at: Partial<PathFact>) =>
      ({
        ...shell(part("tee x")),
        subjects: [...shell(part("tee x")).subjects, path("write_file", at, true)],
      }) as Facts;
    const kept = grantFor(tee({ resolved: "/ws/x" }));
    assertEquals(coveringGrant([kept!], tee({ resolved: "/ws/x" })), kept);
    assertEquals(coveringGrant([kept!], tee({ resolved: "/ws/y" })), undefined);
    assertEquals(coveringGrant([kept!], tee({ resolved: "/ws/x", protectedBy: "x" })), undefined);
    assertEquals(grantFor(tee({ resolved: "/ws/x", protectedBy: "x" })), undefined);
  });

  test("the first of those that cover it", () => {
    const [one, two] = [grant, { ...grant, rule: "another" }];
    assertEquals([coveringGrant([one, two], approved), coveringGrant([two, one], approved)], [one, two]);
  });

  test("two grants do not add up", () => {
    const grants = [grantFor(shell(part("bun test")))!, grantFor(shell(part("git status")))!];
    assertEquals(coveringGrant(grants, approved), undefined);
  });
});

// What was approved, in terms of its own: nothing here knows how a grant is kept.
function sameSubject(a: Subject, b: Subject, one: Facts, other: Facts): boolean {
  switch (a.kind) {
    case "call":
      return b.kind === "call" && JSON.stringify(one.args) === JSON.stringify(other.args);
    case "part":
      return b.kind === "part" && JSON.stringify(a.part.argv) === JSON.stringify(b.part.argv) &&
        [a, b].every((s) => s.part.notUnderstood === undefined && s.part.assignments.length === 0);
    case "path":
      return b.kind === "path" && a.tool === b.tool && a.path.resolved === b.path.resolved &&
        [a, b].every((s) => s.path.resolved !== undefined && s.path.protectedBy === undefined);
    case "host":
      return b.kind === "host" && a.host.host === b.host.host;
  }
}

describe("laws of grants", () => {
  const families = ["shell", "file", "host", "plain"] as const;
  const pair = fc.constantFrom(...families).chain((f) =>
    fc.tuple(questionOf(f), questionOf(f)).map(([a, b]) => [a.facts, b.facts] as const)
  );

  test("a grant covers no call with a subject that was not approved", () => {
    let covered = 0;
    fc.assert(
      fc.property(pair, ([approved, asked]) => {
        const grant = grantFor(approved);
        if (grant === undefined || coveringGrant([grant], asked) === undefined) return;
        covered++;
        assertEquals([asked.tool, asked.box], [approved.tool, approved.box]);
        assert(asked.risk !== "destructive");
        for (const subject of asked.subjects) {
          assert(approved.subjects.some((s) => sameSubject(subject, s, asked, approved)));
        }
      }),
      tries(6_000),
    );
    assert(covered > 100, `only ${covered} covered calls were tried`);
  }, 60_000);

  test("what may be kept covers the same call again", () => {
    fc.assert(
      fc.property(pair, ([asked, other]) => {
        const grant = grantFor(asked);
        const another = grantFor(other);
        const kept = [another, grant].filter((g) => g !== undefined);
        assertEquals(coveringGrant(kept, asked) !== undefined, grant !== undefined);
      }),
      tries(1_500),
    );
  }, 60_000);
});
