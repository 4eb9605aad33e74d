// What the causes of a decision say, word for word; that the decision is right is for decide.test.ts.
import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { allowingFacts, decide, type Standing, votesBySubject } from "../../src/core/decide.ts";
import type { Facts, Subject } from "../../src/core/facts.ts";
import type { Layer } from "../../src/core/policy.ts";
import { callOf, commandSubject, hostSubject, pathSubject } from "../support/calls.ts";
import { type Entries, layerOf } from "../support/rules.ts";

const standing: Standing = { root: "/ws", active: [], bounds: [], blocks: [] };
const call: Subject = { kind: "call" };
const everything = layerOf("user", { allow: ["shell", "read_file", "write_file", "fetch_url", "mcp.x"] });

function causesOf(layers: readonly Layer[], facts: Facts, more: Partial<Standing> = {}) {
  return decide(layers, facts, { ...standing, ...more }).causes.filter((c) => c.effect !== "allow");
}

describe("coverage says what no allow rule covers", () => {
  const gap = (why: string, subject?: string) => [
    { by: "coverage", effect: "ask", why, ...(subject === undefined ? {} : { subject }) },
  ];
  const write = (path: Subject) => callOf("write_file", [path], { risk: "write" });
  const rows: readonly (readonly [name: string, facts: Facts, causes: readonly unknown[]])[] = [
    ["a box", callOf("mcp.x", [call], { box: "b" }), gap("it would run in box `b`")],
    [
      "a command that hides something",
      callOf("shell", [commandSubject("time ls", { notUnderstood: "runs another command", nameable: true })]),
      gap("runs another command", "time ls"),
    ],
    [
      "a path that leads nowhere",
      write({
        kind: "path",
        tool: "write_file",
        path: { written: "a", absolute: "/ws/a", inWorkspace: true },
        operand: false,
      }),
      gap("the path `a` cannot be resolved", "a"),
    ],
    [
      "a protected path",
      write(pathSubject("write_file", "/ws/.git/config", { protectedBy: ".git" })),
      gap("`/ws/.git/config` is protected (.git)", "/ws/.git/config"),
    ],
    [
      "a path elsewhere",
      write(pathSubject("write_file", "/etc/x", { inWorkspace: false })),
      gap("`/etc/x` lies outside the workspace", "/etc/x"),
    ],
    ["nothing of a path in the workspace", write(pathSubject("write_file", "/ws/a")), []],
  ];
  for (const [name, facts, causes] of rows) {
    test(
      name,
      () => assertEquals(causesOf([everything], facts).filter((c) => c.by === "coverage"), causes as never),
    );
  }
});

describe("too many files to look at are asked about where a rule could forbid one of them", () => {
  const folder: Subject = { ...pathSubject("write_file", "/ws/src"), below: { paths: [], cut: true } };
  const rows: readonly (readonly [name: string, entries: Entries, asked: boolean])[] = [
    ["a rule about paths of this tool", { deny: ["write_file(src/a)"] }, true],
    ["by one of its tools", { ask: [{ tool: ["read_file", "write_*"], path: "a" }] }, true],
    ["a rule about paths of the call's tool", { deny: [{ tool: "shell", command: "x" }] }, false],
    ["a rule about paths of another tool", { deny: ["read_file(src/a)"] }, false],
    ["a rule about all that the tool does", { ask: [{ tool: "write_file", box: "other" }] }, false],
    ["a rule that allows", { allow: ["write_file(a)"] }, false],
  ];
  for (const [name, entries, asked] of rows) {
    test(name, () => {
      const causes = causesOf([everything, layerOf("project", entries)], callOf("shell", [folder]));
      assertEquals(
        causes.filter((c) => c.by === "coverage"),
        (asked
          ? [{
            by: "coverage",
            effect: "ask",
            why: "`/ws/src` holds more files than are looked at",
            subject: "/ws/src",
          }]
          : []) as never,
      );
    });
  }
});

test("that another path of the call could be forbidden is no matter of the folder", () => {
  const folder: Subject = { ...pathSubject("write_file", "/ws/src"), below: { paths: [], cut: true } };
  const facts = callOf("write_file", [folder, pathSubject("read_file", "/ws/a")]);
  assertEquals(causesOf([everything, layerOf("project", { deny: ["read_file(x)"] })], facts), []);
});

describe("effects of a call that runs the command of a skill's tool", () => {
  const hiding = { notUnderstood: "runs another command", nameable: true } as const;
  const command = (text: string, more = {}): Subject => ({ ...commandSubject(text, more), tool: "shell" });
  const rows: readonly (readonly [
    name: string,
    entries: Entries,
    subject: Subject,
    effect: string,
    more?: Partial<Facts>,
  ])[] = [
    ["its tool by name", { allow: ["mcp.x"] }, command("time ls", hiding), "allow"],
    ["its tool by a star", { allow: ["mcp.*"] }, command("time ls", hiding), "ask"],
    ["its tool by a star, where nothing is hidden", { allow: ["mcp.*"] }, command("ls"), "allow"],
    [
      "shell, which does not allow it",
      { allow: ["mcp.x", "shell(time ls)"], deny: ["shell(time *)"] },
      command("time ls", hiding),
      "deny",
    ],
    ["shell alone", { allow: ["shell(ls)"] }, command("ls"), "ask"],
    ["something destructive, by name", { allow: ["mcp.x"] }, command("rm -rf x"), "ask", {
      risk: "destructive",
    }],
    [
      "something destructive, by all of its arguments",
      { allow: [{ tool: "mcp.x", arg: { a: "1" } }] },
      command("rm -rf x"),
      "allow",
      { risk: "destructive", args: { a: "1" } },
    ],
    [
      "something destructive, by one of its arguments",
      { allow: [{ tool: "mcp.x", arg: { a: "1" } }] },
      command("rm -rf x"),
      "ask",
      { risk: "destructive", args: { a: "1", b: "2" } },
    ],
  ];
  for (const [name, entries, subject, effect, more] of rows) {
    test(name, () => {
      const facts = callOf("mcp.x", [call, subject], more);
      assertEquals(decide([layerOf("user", entries)], facts, standing).effect, effect as never);
    });
  }
  const elsewhere: Subject = {
    ...pathSubject("read_file", "/etc/x", { inWorkspace: false }),
    operand: true,
  };
  const operands: readonly (readonly [name: string, entries: Entries, effect: string])[] = [
    ["a path elsewhere, by name", { allow: ["mcp.x"] }, "allow"],
    ["a path elsewhere, by a star", { allow: ["mcp.*"] }, "ask"],
  ];
  for (const [name, entries, effect] of operands) {
    test(name, () => {
      const facts = callOf("mcp.x", [call, command("cat /etc/x"), elsewhere]);
      assertEquals(decide([layerOf("user", entries)], facts, standing).effect, effect as never);
    });
  }
});

describe("effects of what a command names and hides", () => {
  const hiding = { notUnderstood: "runs another command", nameable: true } as const;
  const inside = { level: "inner", notUnderstood: "hides something" } as const;
  const outside: Subject = { ...pathSubject("read_file", "/etc/x", { inWorkspace: false }), operand: true };
  const guarded = pathSubject("write_file", "/ws/.git/config", { protectedBy: ".git" });
  const sudo = commandSubject("sudo ls", hiding);
  const rows: readonly (readonly [
    name: string,
    entries: Entries,
    subjects: readonly Subject[],
    effect: string,
    more?: Partial<Facts>,
  ])[] = [
    ["a path elsewhere, with the command named", { allow: ["shell(cat *)"] }, [
      commandSubject("cat /etc/x"),
      outside,
    ], "allow"],
    [
      "a path elsewhere, with the tool named",
      { allow: ["shell"] },
      [commandSubject("cat /etc/x"), outside],
      "ask",
    ],
    ["a path elsewhere of no command", { allow: ["shell"] }, [call, outside], "allow"],
    ["a path elsewhere, not as an operand", { allow: ["write_file"] }, [
      pathSubject("write_file", "/etc/x", { inWorkspace: false }),
    ], "ask"],
    ["a path elsewhere, named", { allow: ["write_file(/etc/*)"] }, [
      pathSubject("write_file", "/etc/x", { inWorkspace: false }),
    ], "allow"],
    ["what is inside, said", { allow: ["shell(sudo ls)"] }, [sudo, commandSubject("ls", inside)], "allow"],
    [
      "what is inside, under a star",
      { allow: ["shell(sudo *)"] },
      [sudo, commandSubject("ls", inside)],
      "ask",
    ],
    [
      "a protected path, named",
      { allow: [{ tool: "write_file", path: ["a", ".git/config"] }] },
      [guarded],
      "allow",
    ],
    [
      "a protected path, under a star beside another name",
      { allow: [{ tool: "write_file", path: ["a", "**"] }] },
      [guarded],
      "ask",
    ],
    [
      "a box, named, with an operand",
      { allow: [{ tool: "shell", box: "b", command: "cat a" }] },
      [
        commandSubject("cat a"),
        { ...pathSubject("read_file", "/ws/a"), operand: true },
      ],
      "allow",
      { box: "b" },
    ],
    [
      "something destructive, word for word",
      { allow: ["shell(rm -rf x)"] },
      [commandSubject("rm -rf x")],
      "allow",
      {
        risk: "destructive",
        args: { command: "rm -rf x" },
      },
    ],
    [
      "something destructive, under a star",
      { allow: ["shell(rm *)"] },
      [commandSubject("rm -rf x")],
      "ask",
      {
        risk: "destructive",
      },
    ],
  ];
  for (const [name, entries, subjects, effect, more] of rows) {
    test(name, () => {
      const verdict = decide([layerOf("user", entries)], callOf("shell", subjects, more), standing);
      assertEquals(verdict.effect, effect as never, JSON.stringify(verdict.causes));
    });
  }

  test("what is inside, where one command around it is not said", () => {
    const subjects = [sudo, commandSubject("date", hiding), commandSubject("ls", inside)];
    const facts = callOf("shell", subjects);
    const votes = votesBySubject([layerOf("user", { allow: ["shell(sudo ls)"] })], facts, standing)(
      subjects[2]!,
    );
    assertEquals(votes.filter((v) => v.by === "coverage").length, 1);
  });

  test("the floor is about what is judged, where nothing of it is destructive by itself", () => {
    const operand: Subject = { ...pathSubject("read_file", "/ws/a"), operand: true };
    const facts = callOf("shell", [commandSubject("ls a"), operand], { risk: "destructive" });
    const causes = decide([everything], facts, standing).causes.filter((c) => c.by === "risk_floor");
    assertEquals(causes, [{ by: "risk_floor", effect: "ask", risk: "destructive", subject: "ls a" }]);
  });
});

describe("a default gives way to what a project allows where its own layer delegates that", () => {
  const denying = { read: { effect: "deny", at: { file: "/p.yaml", line: 1, col: 1 } } } as const;
  const upper = layerOf("machine", {}, { delegate: ["mcp.x"], defaults: denying });
  const allowing = { allow: ["mcp.x"] } as const;
  const rows: readonly (readonly [name: string, layers: readonly Layer[], effect: string])[] = [
    ["the project allows it", [upper, layerOf("project", allowing)], "allow"],
    ["the project says nothing of it", [upper, layerOf("project", {})], "deny"],
    ["only the user allows it", [upper, layerOf("user", allowing)], "deny"],
    ["a project above", [layerOf("project", allowing), upper], "deny"],
    ["another layer delegates it", [
      layerOf("machine", {}, { defaults: denying }),
      layerOf("user", {}, { delegate: ["mcp.x"] }),
      layerOf("project", allowing),
    ], "deny"],
  ];
  for (const [name, layers, effect] of rows) {
    test(name, () => {
      assertEquals(
        decide(layers, callOf("mcp.x", [call], { risk: "read" }), standing).effect,
        effect as never,
      );
    });
  }
});

test("an error of the call is a deny of its own", () => {
  const facts = callOf("mcp.x", [call], { errors: [{ code: "unresolved_path", message: "no such path" }] });
  assertEquals(causesOf([everything], facts), [
    { by: "error", effect: "deny", code: "unresolved_path", message: "no such path" },
  ]);
});

describe("a private host is denied unless a machine or user rule names it", () => {
  const denied = (reason: string) => [{
    by: "rule",
    effect: "deny",
    rule: "builtin.private",
    layer: "builtin",
    text: "fetch_url(@private)",
    reason,
    subject: "localhost",
  }];
  const plain = denied("a private or loopback address");
  const host = hostSubject("localhost", true);
  const leading: Subject = { kind: "host", host: { ...host.host, leadsTo: "127.0.0.1" } };
  const rows: readonly (readonly [
    name: string,
    layers: readonly Layer[],
    subject: Subject,
    causes: readonly unknown[],
  ])[] = [
    ["by its address", [everything], host, plain],
    [
      "by where it leads",
      [everything],
      leading,
      denied("the name leads to 127.0.0.1, a private or loopback address"),
    ],
    ["named", [layerOf("user", { allow: ["fetch_url(localhost)"] })], host, []],
    [
      "named among others",
      [layerOf("machine", { allow: [{ tool: "fetch_url", host: ["a.b", "localhost"] }] })],
      host,
      [],
    ],
    ["named by kind", [layerOf("user", { allow: ["fetch_url(@private)"] })], host, []],
    ["covered by a star", [layerOf("user", { allow: ["fetch_url(*)"] })], host, plain],
    [
      "named by the project, to which it is delegated",
      [
        layerOf("user", { allow: ["fetch_url"] }, { delegate: ["fetch_url(localhost)"] }),
        layerOf("project", { allow: ["fetch_url(localhost)"] }),
      ],
      host,
      plain,
    ],
    [
      "covered by a star beside another name",
      [
        layerOf("user", { allow: [{ tool: "fetch_url", host: ["a.b", "*"] }] }),
      ],
      host,
      plain,
    ],
    [
      "named by the project",
      [everything, layerOf("project", { allow: ["fetch_url(localhost)"] })],
      host,
      plain,
    ],
  ];
  for (const [name, layers, subject, causes] of rows) {
    test(name, () => {
      const facts = callOf("fetch_url", [subject], { risk: "network" });
      assertEquals(causesOf(layers, facts).filter((c) => c.by === "rule"), causes as never);
    });
  }
});

test("only the strictest rules of a layer vote", () => {
  const layer = layerOf("user", { deny: ["mcp.x"], ask: ["mcp.*"], allow: ["mcp.x"] });
  const votes = votesBySubject([layer], callOf("mcp.x", [call]), standing)(call);
  assertEquals(votes.map((v) => v.by === "rule" ? v.rule : v.by), ["user.deny[1]"]);
});

test("a private address that is named has no cause but the rule that names it", () => {
  const facts = callOf("fetch_url", [hostSubject("10.0.0.1", true)], { risk: "network" });
  const causes = decide([layerOf("user", { allow: ["fetch_url(@private)"] })], facts, standing).causes;
  assertEquals(causes.map((c) => c.by === "rule" ? [c.rule, c.effect] : c), [["user.allow[21]", "allow"]]);
});

test("causes of a call as a whole name no subject", () => {
  const votes = votesBySubject([], callOf("mcp.x", [call]), standing)(call);
  assertEquals(votes, [{ by: "default", effect: "ask", layer: "builtin", risk: "execute" }]);
});

describe("skills that ask", () => {
  test("must be active, by their whole name", () => {
    const facts = callOf("mcp.x", [call], { sourcedBy: ["skill:a", "xskill:b", "skill:skill:c"] });
    const causes = causesOf([everything], facts, { active: ["a", "xb", "c"] });
    assertEquals(causes, [
      { by: "error", effect: "deny", code: "unknown_source", message: "no active skill `xskill:b`" },
      { by: "error", effect: "deny", code: "unknown_source", message: "no active skill `skill:c`" },
    ]);
  });

  test("help an allow rule only where they are vouched for", () => {
    const facts = callOf("mcp.x", [call], { sourcedBy: ["skill:a", "skill:mutant", "xskill:b"] });
    assertEquals(
      [allowingFacts(facts).sourcedBy, allowingFacts(facts, ["a", "xb"]).sourcedBy],
      [[], ["skill:a"]],
    );
  });
});

test("a project's allow rule counts for what a layer above it delegates", () => {
  const project = layerOf("project", { allow: ["mcp.x"] });
  const ruled = (layers: readonly Layer[]) => decide(layers, callOf("mcp.x", [call]), standing).effect;
  const upper = layerOf("user", {}, { delegate: ["mcp.x"] });
  assertEquals([ruled([upper, project]), ruled([project]), ruled([project, upper])], ["allow", "ask", "ask"]);
});
