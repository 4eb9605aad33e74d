import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { covering, isGuess, isOperand, restricts, riskOf, saysAll } from "../../src/core/covering.ts";
import type { Facts, Subject } from "../../src/core/facts.ts";
import type { RuleEntry } from "../../src/load/policy_schema.ts";
import { callOf, commandSubject, hostSubject, pathSubject } from "../support/calls.ts";
import { ruleOf } from "../support/rules.ts";

const wrapped = { notUnderstood: "runs another command", nameable: true } as const;
const inner = { level: "inner" } as const;
const call: Subject = { kind: "call" };

test("riskOf() is the subject's own, and that of the call where it has none", () => {
  const rows: readonly (readonly [facts: Facts, risk: string])[] = [
    [callOf("shell", [commandSubject("ls")]), "read"],
    [callOf("shell", [pathSubject("read_file", "/ws/a")]), "read"],
    [callOf("shell", [pathSubject("write_file", "/ws/a")]), "write"],
    [callOf("write_file", [pathSubject("write_file", "/ws/a")]), "execute"],
    [callOf("read_file", [pathSubject("read_file", "/ws/a")], { risk: "network" }), "network"],
    [callOf("fetch_url", [hostSubject("a.b")], { risk: "network" }), "network"],
    [callOf("mcp.x", [call]), "execute"],
    [callOf("shell", [commandSubject("rm -rf x", { level: "guessed" })], { risk: "read" }), "read"],
  ];
  for (const [facts, risk] of rows) assertEquals(riskOf(facts, facts.subjects[0]), risk);
});

test("restricts() goes by the risk of the call or by that of the subject", () => {
  const subject = commandSubject("ls");
  const facts = callOf("shell", [subject]);
  const reached = (entry: RuleEntry) => restricts(ruleOf(entry, "deny"), facts, subject, "/ws");
  const rows: readonly (readonly [entry: RuleEntry, reached: boolean])[] = [
    ["shell", true],
    ["read_file", false],
    [{ tool: "shell", risk: "execute" }, true],
    [{ tool: "shell", risk: "read" }, true],
    [{ tool: "shell", risk: "write" }, false],
    [{ tool: "shell", command: "/bin/ls", risk: "read" }, true],
  ];
  for (const [entry, want] of rows) assertEquals([entry, reached(entry)], [entry, want]);
});

test("isOperand() is what only rules that restrict speak of, isGuess() the words among them", () => {
  const operand: Subject = { ...pathSubject("read_file", "/ws/a"), operand: true };
  const rows: readonly (readonly [subject: Subject, operand: boolean, guess: boolean])[] = [
    [call, false, false],
    [commandSubject("ls"), false, false],
    [commandSubject("ls", inner), false, false],
    [commandSubject("ls", { level: "guessed" }), true, true],
    [pathSubject("read_file", "/ws/a"), false, false],
    [operand, true, false],
  ];
  for (const row of rows) {
    const [subject] = row;
    assertEquals([subject, isOperand(subject), isGuess(subject)], [...row]);
  }
});

test("saysAll() is about the words as written", () => {
  const rows: readonly (readonly [entry: RuleEntry, text: string, says: boolean])[] = [
    ["shell(sudo ls)", "sudo ls", true],
    ["shell(sudo ls)", "/usr/bin/sudo ls", false],
    ["shell(sudo *)", "sudo ls", false],
    ["shell", "sudo ls", false],
  ];
  for (const [entry, text, says] of rows) {
    assertEquals([entry, text, saysAll(ruleOf(entry, "allow"), commandSubject(text).part)], [
      entry,
      text,
      says,
    ]);
  }
});

describe("covering()", () => {
  const rows: readonly (readonly [
    name: string,
    entries: readonly RuleEntry[],
    texts: readonly Subject[],
    ids: readonly number[],
  ])[] = [
    ["all that match", ["shell(ls)", "shell(date)", "shell"], [commandSubject("ls")], [0, 2]],
    ["none of what is written otherwise", ["shell(ls)"], [commandSubject("/bin/ls")], []],
    [
      "what a command runs inside, by the rules for every command around",
      ["shell(sudo ls)", "shell(ls)", "shell(date)"],
      [commandSubject("ls", inner), commandSubject("sudo ls", wrapped), commandSubject("date")],
      [0, 2],
    ],
    [
      "nothing inside where the command around is written otherwise",
      ["shell(ls *)"],
      [commandSubject("date", inner), commandSubject("/bin/ls -l")],
      [],
    ],
    [
      "nothing inside where one command around is left open",
      ["shell(sudo ls)"],
      [commandSubject("ls", inner), commandSubject("sudo ls", wrapped), commandSubject("date")],
      [],
    ],
    [
      "nothing inside by a rule that does not say the whole of it",
      ["shell(sudo *)"],
      [commandSubject("ls", inner), commandSubject("sudo ls", wrapped)],
      [],
    ],
    [
      "nothing inside of another spelling",
      ["shell(sudo ls)"],
      [commandSubject("ls", inner), commandSubject("/bin/sudo ls", wrapped)],
      [],
    ],
    [
      "what is inside a command that hides nothing, by any rule for that",
      ["shell(find *)", "shell(sudo ls)"],
      [commandSubject("ls", inner), commandSubject("find .")],
      [0],
    ],
    [
      "what is inside, by one of several commands of a rule",
      [{ tool: "shell", command: ["date", "sudo ls"] }],
      [commandSubject("ls", inner), commandSubject("sudo ls", wrapped)],
      [0],
    ],
    [
      "nothing inside of a command that a rule does not say word for word",
      ["shell(date)", "shell"],
      [commandSubject("ls", inner), commandSubject("sudo ls", wrapped)],
      [1],
    ],
    ["nothing inside of nothing", ["shell(sudo ls)"], [commandSubject("ls", inner)], []],
  ];
  for (const [name, entries, subjects, ids] of rows) {
    test(name, () => {
      const rules = entries.map((entry) => ruleOf(entry));
      const facts = callOf("shell", subjects);
      const [first] = facts.subjects;
      assertEquals(covering(rules, facts, first, "/ws").map((r) => rules.indexOf(r)), ids);
    });
  }

  test("answers anew for other facts and another root", () => {
    const rules = [ruleOf({ tool: "shell", command: "sudo ls", workspace: "/ws" })];
    const subject = commandSubject("ls", inner);
    const facts = callOf("shell", [subject, commandSubject("sudo ls", wrapped)]);
    const count = (f: Facts, root: string) => covering(rules, f, subject, root).length;
    assertEquals(
      [
        count(facts, "/ws"),
        count(facts, "/other"),
        count({ ...facts, box: "b" }, "/ws"),
        count(facts, "/ws"),
      ],
      [1, 0, 0, 1],
    );
    const open = callOf("shell", [subject, commandSubject("sudo date", wrapped)]);
    assertEquals([count(facts, "/ws"), count(open, "/ws")], [1, 0]);
  });
});

test("isOperand() is about paths that a command only names", () => {
  const path = pathSubject("write_file", "/ws/a");
  assertEquals([call, path, { ...path, operand: true }].map(isOperand), [false, false, true]);
});
