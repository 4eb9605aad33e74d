// What the causes of a decision say, word for word; that the decision is right is for decide.test.ts.
import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { allowingFacts, decide, type Standing, votesOn } from "../../src/core/decide.ts";
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
  const votes = votesOn([layer], callOf("mcp.x", [call]), standing, call);
  assertEquals(votes.map((v) => v.by === "rule" ? v.rule : v.by), ["user.deny[1]"]);
});

test("causes of a call as a whole name no subject", () => {
  const votes = votesOn([], callOf("mcp.x", [call]), standing, call);
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
