import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { decide } from "../../src/core/decide.ts";
import type { Facts, Part, Subject } from "../../src/core/facts.ts";
import { splitLayer } from "../../src/core/layer_split.ts";
import { matchesSubject, type Rule } from "../../src/core/rule.ts";
import { layerOf } from "../support/rules.ts";

function part(argv: readonly string[], more: Partial<Part> = {}): Part {
  return { argv, text: argv.join(" "), assignments: [], level: "top", ...more };
}

function callOf(subject: Subject): Facts {
  return {
    tool: "shell",
    args: {},
    risk: "execute",
    subjects: [subject],
    box: "default",
    sourcedBy: [],
    mode: "interactive",
    errors: [],
  };
}

const patterns = [
  "git push *",
  "git-push *",
  "/usr/bin/git push *",
  "rm *",
  "*",
  "TZ=UTC",
  "TZ=UTC date",
  "env *",
];
const entries = [
  ...patterns.map((p) => `shell(${p})`),
  "shell",
  "sh*",
  "read_file(**)",
  { tool: "shell", command: "*", except: "git push *" },
];
const layer = layerOf("user", { deny: entries, allow: entries });
const whole = { pieces: ["", ""], many: true };

const parts: readonly (readonly [name: string, part: Part])[] = [
  ["a program", part(["git", "push", "x"])],
  ["a program by its path", part(["/usr/bin/git", "push"])],
  ["a program in another case", part(["GIT.EXE", "push"])],
  ["a program of git", part(["git-push", "x"])],
  ["a program of git by its path", part(["/usr/lib/git-core/git-push"])],
  ["an alias of git", part(["git", "frobnicate"])],
  ["another program", part(["ls"])],
  ["a program that is not known", part(["$X", "push"], { blurs: [{ at: 0, ...whole }], notUnderstood: "x" })],
  ["a known program with unknown words", part(["rm", "$X"], { blurs: [{ at: 1, ...whole }] })],
  ["an assignment", part([], { assignments: ["TZ=UTC"] })],
  ["an assignment and a program", part(["date"], { assignments: ["TZ=UTC"] })],
  ["no program", part([], { notUnderstood: "x" })],
];

describe("splitLayer() leaves out no rule that matches", () => {
  for (const [name, one] of parts) {
    test(name, () => {
      const subject: Subject = { kind: "part", part: one };
      const facts = callOf(subject);
      const about = splitLayer(layer, ["shell"]).about(subject);
      const matching = (effect: "allow" | "restrict") => (rules: typeof layer.rules) =>
        rules.filter((r) => (r.effect === "allow") === (effect === "allow"))
          .filter((r) => matchesSubject(r, facts, subject, effect, "/ws")).map((r) => r.id);
      assertEquals(matching("allow")(about.allow), matching("allow")(layer.rules));
      assertEquals(matching("restrict")(about.restrict), matching("restrict")(layer.rules));
    });
  }
});

describe("splitLayer()", () => {
  test("keeps the order of the rules, and leaves out those over other tools and programs", () => {
    const { about, allow } = splitLayer(
      layerOf("user", { allow: ["shell", "read_file", "shell(a)", "shell(b)"] }),
      [
        "shell",
      ],
    );
    assertEquals(allow.map((r) => r.text), ["shell", "shell(a)", "shell(b)"]);
    assertEquals(about({ kind: "part", part: part(["b"]) }).allow.map((r) => r.text), ["shell", "shell(b)"]);
    assertEquals(about({ kind: "call" }).allow.map((r) => r.text), ["shell"]);
  });

  test("is the same for the same tools of a layer, and another one for others", () => {
    const one = layerOf("user", { allow: ["mcp.a", "mcp.b", "mcp.amcp.b"] });
    const texts = (tools: readonly string[]) => splitLayer(one, tools).allow.map((r) => r.text);
    assertEquals(splitLayer(one, ["mcp.a"]) === splitLayer(one, ["mcp.a"]), true);
    assertEquals([texts(["mcp.a", "mcp.b"]), texts(["mcp.amcp.b"]), texts(["mcp.a"])], [["mcp.a", "mcp.b"], [
      "mcp.amcp.b",
    ], ["mcp.a"]]);
    const about = (program: string) =>
      splitLayer(one, ["mcp.a"]).about({ kind: "part", part: part([program]) });
    assertEquals(about("x") === about("x"), true);
    const first = about("x");
    for (let i = 0; i < 499; i++) about(`p${i}`);
    assertEquals(about("x") === first, true);
    about("one more");
    assertEquals(about("x") === first, false);
  });

  test("keeps apart the allow rules with a matcher for commands, and those with one for boxes", () => {
    const { commanded, boxed } = splitLayer(
      layerOf("user", { allow: ["shell", "shell(a)", { tool: "shell", box: "b" }], deny: ["shell(c)"] }),
      ["shell"],
    );
    const texts = (rules: readonly Rule[]) => rules.map((r) => r.id);
    assertEquals([texts(commanded), texts(boxed)], [["user.allow[22]"], ["user.allow[23]"]]);
  });

  test("leaves out rules that restrict other programs, and keeps those of which one command is about it", () => {
    const { about } = splitLayer(
      layerOf("user", {
        deny: ["shell(a)", { tool: "shell", command: ["a", "b"] }],
        ask: ["shell(b)", "shell"],
      }),
      ["shell"],
    );
    const ids = about({ kind: "part", part: part(["b"]) }).restrict.map((r) => r.id);
    assertEquals(ids, ["user.deny[2]", "user.ask[11]", "user.ask[12]"]);
  });

  test("an allow rule for a program of git covers it", () => {
    const subject: Subject = { kind: "part", part: part(["git-push", "x"]) };
    const verdict = decide([layerOf("user", { allow: ["shell(git-push *)"] })], callOf(subject), {
      root: "/ws",
      active: [],
      bounds: [],
      blocks: [],
    });
    assertEquals(verdict.effect, "allow");
  });
});
