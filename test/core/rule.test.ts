import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import type { Facts, Subject } from "../../src/core/facts.ts";
import { matchesSubject, namesExactly, type Reach } from "../../src/core/rule.ts";
import type { RuleEntry } from "../../src/load/policy_schema.ts";
import { callOf, commandSubject, hostSubject, pathSubject } from "../support/calls.ts";
import { ruleOf } from "../support/rules.ts";

const call: Subject = { kind: "call" };
const unresolved: Subject = {
  kind: "path",
  tool: "write_file",
  path: { written: "a", absolute: "/ws/a", inWorkspace: true },
  operand: false,
};
const folder: Subject = {
  ...pathSubject("write_file", "/ws/src"),
  below: { paths: ["/ws/src/a", "/ws/src/b"], cut: false },
};

type Row = readonly [
  name: string,
  entry: RuleEntry,
  call: readonly [tool: string, subject: Subject, more?: Partial<Facts>],
  allow: boolean,
  restrict: boolean,
];

describe("matchesSubject() of a rule that allows, and of one that restricts", () => {
  const rows: readonly Row[] = [
    ["the words of a command", "shell(git push *)", ["shell", commandSubject("git push x")], true, true],
    ["the program by its path", "shell(git push *)", ["shell", commandSubject("/bin/git push")], false, true],
    [
      "one of several commands",
      { tool: "shell", command: ["ls", "date"] },
      ["shell", commandSubject("date")],
      true,
      true,
    ],
    ["a command and a call as a whole", "shell(git *)", ["shell", call], false, false],
    [
      "what an exception names",
      { tool: "shell", command: "git *", except: "git push *" },
      ["shell", commandSubject("git push")],
      false,
      false,
    ],
    [
      "what an exception does not name",
      { tool: "shell", command: "git *", except: "git push *" },
      ["shell", commandSubject("git log")],
      true,
      true,
    ],
    // An exception loosens a rule that restricts: there it looks narrowly.
    [
      "another spelling of an exception",
      { tool: "shell", command: "*", except: "git push *" },
      ["shell", commandSubject("/bin/git push")],
      false,
      true,
    ],
    ["a path", "write_file(src/*)", ["write_file", pathSubject("write_file", "/ws/src/a")], true, true],
    [
      "a link, by where it leads",
      "write_file(src/*)",
      ["write_file", pathSubject("write_file", "/ws/l", { resolved: "/ws/src/a" })],
      true,
      true,
    ],
    [
      "a link, by where it stands",
      "write_file(src/*)",
      ["write_file", pathSubject("write_file", "/ws/src/a", { resolved: "/x" })],
      false,
      true,
    ],
    ["a path that leads nowhere", "write_file(a)", ["write_file", unresolved], false, true],
    [
      "one of several paths",
      { tool: "write_file", path: ["b", "a"] },
      ["write_file", pathSubject("write_file", "/ws/a")],
      true,
      true,
    ],
    ["a path and a call as a whole", "write_file(src/*)", ["write_file", call], false, false],
    ["another path", "write_file(src/*)", ["write_file", pathSubject("write_file", "/ws/a")], false, false],
    ["what lies in the folder", "write_file(src/b)", ["write_file", folder], false, true],
    ["a folder in which nothing is meant", "write_file(src/c)", ["write_file", folder], false, false],
    [
      "an exception among paths",
      { tool: "write_file", path: "**", except: ["x", "a"] },
      ["write_file", pathSubject("write_file", "/ws/a")],
      false,
      false,
    ],
    [
      "no exception among paths",
      { tool: "write_file", path: "**", except: "a" },
      ["write_file", pathSubject("write_file", "/ws/b")],
      true,
      true,
    ],
    [
      "a link in the place of an exception",
      { tool: "write_file", path: "/**", except: "a" },
      ["write_file", pathSubject("write_file", "/ws/a", { resolved: "/x" })],
      false,
      true,
    ],
    [
      "the tool that a redirection stands for",
      "write_file",
      ["shell", pathSubject("write_file", "/ws/a")],
      true,
      true,
    ],
    [
      "a redirection and another tool",
      "edit_file",
      ["shell", pathSubject("write_file", "/ws/a")],
      false,
      false,
    ],
    [
      "shell, of a tool that runs a command",
      "shell(ls)",
      ["mcp.x", { ...commandSubject("ls"), tool: "shell" }],
      false,
      true,
    ],
    ["that tool", "mcp.x", ["mcp.x", { ...commandSubject("ls"), tool: "shell" }], true, true],
    [
      "another tool than both",
      "write_file",
      ["mcp.x", { ...commandSubject("ls"), tool: "shell" }],
      false,
      false,
    ],
    ["shell, of a tool that runs none", "shell", ["mcp.x", call], false, false],
    ["a star over tools", "mcp.*", ["mcp.x", call], true, true],
    ["a star over other tools", "mcp.*", ["write_file", call], false, false],
    ["the tool with the redirection", "shell", ["shell", pathSubject("write_file", "/ws/a")], false, true],
    ["a host", "fetch_url(example.com)", ["fetch_url", hostSubject("example.com")], true, true],
    ["a host below", "fetch_url(*.example.com)", ["fetch_url", hostSubject("a.example.com")], true, true],
    [
      "a host of another name",
      "fetch_url(*.example.com)",
      ["fetch_url", hostSubject("aexample.com")],
      false,
      false,
    ],
    ["a private host", "fetch_url(@private)", ["fetch_url", hostSubject("localhost", true)], true, true],
    ["a public host", "fetch_url(@private)", ["fetch_url", hostSubject("example.com")], false, false],
    [
      "one of several hosts",
      { tool: "fetch_url", host: ["a.b", "c.d"] },
      ["fetch_url", hostSubject("c.d")],
      true,
      true,
    ],
    ["a host and a call as a whole", "fetch_url(*)", ["fetch_url", call], false, false],
    [
      "an exception among hosts",
      { tool: "fetch_url", host: "*", except: ["x.y", "a.b"] },
      ["fetch_url", hostSubject("a.b")],
      false,
      false,
    ],
    [
      "no exception among hosts",
      { tool: "fetch_url", host: "*", except: "a.b" },
      ["fetch_url", hostSubject("b.a")],
      true,
      true,
    ],
    [
      "a skill by its name",
      "load_skill(review-*)",
      ["load_skill", call, { args: { name: "review-pr" } }],
      true,
      true,
    ],
    [
      "a skill of a tool",
      "load_skill(review-*)",
      ["load_skill", call, { args: { skill: "review-pr" } }],
      true,
      true,
    ],
    [
      "what is asked of find_skill",
      "find_skill(review*)",
      ["find_skill", call, { args: { query: "review" } }],
      true,
      true,
    ],
    ["another skill", "load_skill(review-*)", ["load_skill", call, { args: { name: "a" } }], false, false],
    ["a skill that is no text", "load_skill(*)", ["load_skill", call, { args: { name: 5 } }], false, false],
    [
      "an argument",
      { tool: "mcp.x", arg: { a: ["2", "1*"] } },
      ["mcp.x", call, { args: { a: "12" } }],
      true,
      true,
    ],
    [
      "an argument that is no text",
      { tool: "mcp.x", arg: { a: "[1,*" } },
      ["mcp.x", call, { args: { a: [1, 2] } }],
      true,
      true,
    ],
    ["an argument that is not there", { tool: "mcp.x", arg: { a: "*" } }, ["mcp.x", call], false, false],
    [
      "one of two arguments",
      { tool: "mcp.x", arg: { a: "1", b: "2" } },
      ["mcp.x", call, { args: { a: "1", b: "3" } }],
      false,
      false,
    ],
    ["a box that is not named", "mcp.x", ["mcp.x", call, { box: "b" }], false, true],
    ["a box that is named", { tool: "mcp.x", box: ["a", "b"] }, ["mcp.x", call, { box: "b" }], true, true],
    ["another box than named", { tool: "mcp.x", box: "a" }, ["mcp.x", call, { box: "b" }], false, false],
    ["a risk", { tool: "mcp.x", risk: ["read", "execute"] }, ["mcp.x", call], true, true],
    ["another risk", { tool: "mcp.x", risk: "read" }, ["mcp.x", call], false, false],
    ["a mode", { tool: "mcp.x", mode: "unattended" }, ["mcp.x", call, { mode: "unattended" }], true, true],
    ["another mode", { tool: "mcp.x", mode: "unattended" }, ["mcp.x", call], false, false],
    ["a workspace", { tool: "mcp.x", workspace: "/ws" }, ["mcp.x", call], true, true],
    ["another workspace", { tool: "mcp.x", workspace: "/other" }, ["mcp.x", call], false, false],
    [
      "a skill that asks",
      { tool: "mcp.x", sourced_by: ["skill:b", "skill:a*"] },
      ["mcp.x", call, { risk: "read", sourcedBy: ["skill:c", "skill:ab"] }],
      true,
      true,
    ],
    [
      "another skill that asks",
      { tool: "mcp.x", sourced_by: "skill:a*" },
      ["mcp.x", call, { risk: "read", sourcedBy: ["skill:c"] }],
      false,
      false,
    ],
  ];
  for (const [name, entry, [tool, subject, more], allow, restrict] of rows) {
    test(name, () => {
      const facts = callOf(tool, [subject], more);
      const matches = (reach: Reach) =>
        matchesSubject(ruleOf(entry, reach === "allow" ? "allow" : "deny"), facts, subject, reach, "/ws");
      assertEquals([matches("allow"), matches("restrict")], [allow, restrict]);
    });
  }
});

describe("namesExactly()", () => {
  const a = pathSubject("write_file", "/ws/a");
  const rows: readonly (readonly [name: string, entry: RuleEntry, subject: Subject, exact: boolean])[] = [
    ["the words", "shell(ls -l)", commandSubject("ls -l"), true],
    ["the words, among others", { tool: "shell", command: ["date", "ls"] }, commandSubject("ls"), true],
    ["words and what may follow", "shell(ls *)", commandSubject("ls"), false],
    ["other words", "shell(ls -l)", commandSubject("ls"), false],
    ["the program by its path", "shell(ls)", commandSubject("/bin/ls"), false],
    ["no command", "shell", commandSubject("ls"), false],
    ["a tool with a star", { tool: ["shell", "sh*"], command: "ls" }, commandSubject("ls"), false],
    ["the path", "write_file(a)", a, true],
    ["the path, among others", { tool: "write_file", path: ["b", "a"] }, a, true],
    ["a path with a star", "write_file(*)", a, false],
    ["another path", "write_file(b)", a, false],
    ["where a link stands", "write_file(a)", pathSubject("write_file", "/ws/a", { resolved: "/x" }), false],
    ["no path", "write_file", a, false],
    ["the host", "fetch_url(a.b)", hostSubject("a.b"), true],
    ["the host, among others", { tool: "fetch_url", host: ["c.d", "a.b"] }, hostSubject("a.b"), true],
    ["a host below", "fetch_url(*.b)", hostSubject("a.b"), false],
    ["another host", "fetch_url(c.d)", hostSubject("a.b"), false],
    ["no host", "fetch_url", hostSubject("a.b"), false],
    ["arguments", { tool: "mcp.x", arg: { a: "1", b: ["2", "3"] } }, { kind: "call" }, true],
    ["arguments with a star", { tool: "mcp.x", arg: { a: "1", b: ["2", "3*"] } }, { kind: "call" }, false],
    ["no arguments", "mcp.x", { kind: "call" }, false],
  ];
  for (const [name, entry, subject, exact] of rows) {
    test(name, () => assertEquals(namesExactly(ruleOf(entry), subject), exact));
  }
});
