import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { countsByStatus, evidenceClaims, type EvidenceSite } from "../../src/core/evidence.ts";
import type { Facts, Part, Subject } from "../../src/core/facts.ts";
import type { Gate } from "../../src/core/policy.ts";
import type { Matchers } from "../../src/core/rule.ts";
import { callOf } from "../support/calls.ts";
import { command, part, pathGlob, root, rule } from "./decide_generators.ts";

const inner = { level: "inner" } as const;
const wrapped = { notUnderstood: "runs another command", nameable: true } as const;
const shell = (text: string): Matchers => ({ tools: ["shell"], command: [command(text)] });
const named = (...tools: readonly string[]): Matchers => ({ tools });

function facts(tool: string, more: Partial<Facts> = {}): Facts {
  return callOf(tool, [{ kind: "call" }], more);
}

function run(parts: readonly Part[], more: Partial<Facts> = {}, ...others: readonly Subject[]): Facts {
  const subjects = [...parts.map((p): Subject => ({ kind: "part", part: p })), ...others];
  return facts("shell", { ...more, subjects: subjects as never });
}

const file = (tool: string, operand: boolean): Subject => ({
  kind: "path",
  tool,
  operand,
  path: { written: "out", absolute: "/ws/out", resolved: "/ws/out", inWorkspace: true },
});

/** Written as one path, and another one. */
const led: Subject = {
  kind: "path",
  tool: "read_file",
  operand: false,
  path: { written: "out", absolute: "/ws/out", resolved: "/ws/other", inWorkspace: true },
};

function gate(evidence: readonly Matchers[], id = "g"): Gate {
  return {
    id,
    layer: "user",
    at: { file: "policy.yaml", line: 1, col: 1 },
    before: [],
    evidence: evidence.map((m, n) => rule("user", `evidence[${n}]`, "allow", m)),
  };
}

const only = "it must be the only command in its text";
const status = "its exit status must be that of the text: no `&`, `!`, `||`, `&&`, branch or loop";
const hidden = "it must stand at the top level of the text, not inside another command";
const exactly = "it must be exactly as `evidence[0]` says";
const redirected = "its output must not go to a file";
const writable = "its program lies where commands may write";
const place = "it must run in the workspace root";
const idle = (word: string) =>
  `\`${word}\` may keep it from checking everything, and the pattern does not name it`;
const option = (word: string) => `\`${word}\` could become an option`;

describe("evidenceClaims() takes one plain command whose exit status counts", () => {
  /** `true`: evidence; `undefined`: it speaks of something else; a text: why it is none. */
  type Row = readonly [
    name: string,
    evidence: Matchers,
    asked: Facts,
    result: true | undefined | string,
    site?: Partial<EvidenceSite>,
  ];
  const rows: readonly Row[] = [
    ["a tool", named("git_diff"), facts("git_diff", { risk: "read" }), true],
    ["another tool", named("git_diff"), facts("read_file", { risk: "read" }), undefined],
    ["a tool of a skill that is named like it", named("git_diff"), facts("skill.x.git_diff"), undefined],
    ["a tool of a skill by its identity", named("skill.x.check"), facts("skill.x.check"), true],
    [
      "a file, with its path",
      { tools: ["read_file"], path: [pathGlob("out")] },
      facts("read_file", { risk: "read", subjects: [file("read_file", false)] }),
      true,
    ],
    [
      "a file that leads elsewhere",
      { tools: ["read_file"], path: [pathGlob("out")] },
      facts("read_file", { risk: "read", subjects: [led] }),
      exactly,
    ],
    [
      "a command that reads the file",
      { tools: ["read_file"], path: [pathGlob("out")] },
      run([part("cat out")], {}, file("read_file", true)),
      undefined,
    ],
    ["the command", shell("bun test"), run([part("bun test")]), true],
    [
      "another spelling, into a file",
      shell("bun test"),
      run([part("./bun test")], {}, file("write_file", false)),
      exactly,
    ],
    ["nothing but what is inside", shell("bun test"), run([part("bun test", inner)]), hidden],
    [
      "two words that are not named",
      shell("bun test *"),
      run([part("bun test --help --dry-run")]),
      idle("--help"),
    ],
    [
      "a word that another pattern of the rule names",
      { tools: ["shell"], command: [command("bun test *"), command("bun lint -t *")] },
      run([part("bun test -t x")]),
      idle("-t"),
    ],
    [
      "a word that one of its patterns names",
      { tools: ["shell"], command: [command("bun test *"), command("bun test -t *")] },
      run([part("bun test -t x")]),
      true,
    ],
    [
      "one of several whole texts",
      { tools: ["shell"], args: { command: ["bun lint", "bun test -t x"] } },
      run([part("bun test -t x")], { args: { command: "bun test -t x" } }),
      true,
    ],
    [
      "two wildcards that could become options",
      shell("bun test *"),
      run([part("bun test * -*", {
        blurs: [
          { at: 2, pieces: ["", ""], many: true, glob: true },
          { at: 3, pieces: ["-", ""], many: true, glob: true },
        ],
      })]),
      option("*"),
    ],
    [
      "a wildcard with a dash within",
      shell("bun test *"),
      run([part("bun test a-b/*", { blurs: [{ at: 2, pieces: ["a-b/", ""], many: true, glob: true }] })]),
      true,
    ],
    ["in no folder", shell("bun test"), run([part("bun test")], { args: { cwd: "" } }), true],
    [
      "in the root, with many strokes",
      shell("bun test"),
      run([part("bun test")], { args: { cwd: ".//" } }),
      true,
    ],
    [
      "in the root, by name with many",
      shell("bun test"),
      run([part("bun test")], { args: { cwd: `${root}//` } }),
      true,
    ],
    ["in a hidden folder", shell("bun test"), run([part("bun test")], { args: { cwd: ".x" } }), place],
    ["a wildcard", shell("bun test *"), run([part("bun test core")]), true],
    ["any command", named("shell"), run([part("bun test")]), true],
    ["another command", shell("bun test"), run([part("bun lint")]), undefined],
    ["more words than the pattern has", shell("bun test"), run([part("bun test core")]), undefined],
    ["another spelling", shell("bun test"), run([part("./bun test")]), exactly],
    ["beside another command", shell("bun test"), run([part("bun test"), part("ls")]), only],
    ["after another one", shell("bun test"), run([part("cd sub"), part("bun test")]), only],
    ["its status hidden", shell("bun test"), run([part("bun test", { statusHidden: true })]), status],
    ["into a file", shell("bun test"), run([part("bun test")], {}, file("write_file", false)), redirected],
    ["from a file", shell("bun test"), run([part("bun test")], {}, file("read_file", true)), true],
    ["inside another", shell("bun test"), run([part("sh -c x", wrapped), part("bun test", inner)]), hidden],
    [
      "a wrapper that hides its command, word for word",
      shell("timeout 5 bun test"),
      run([part("timeout 5 bun test", wrapped), part("bun test", inner)]),
      hidden,
    ],
    [
      "a command that runs another",
      shell("uv run pytest"),
      run([part("uv run pytest"), part("pytest", inner)]),
      true,
    ],
    ["what a command runs", shell("pytest"), run([part("uv run pytest"), part("pytest", inner)]), exactly],
    ["a box that it does not name", shell("bun test"), run([part("bun test")], { box: "push" }), exactly],
    [
      "not understood, under a bare tool",
      named("shell"),
      run([part("bun test", { notUnderstood: "hides" })]),
      "hides",
    ],
    [
      "an assignment that the pattern does not name",
      shell("bun test"),
      run([part("bun test", { ...wrapped, assignments: ["PATH=."] })]),
      exactly,
    ],
    [
      "an assignment that the pattern names",
      shell("CI=1 bun test"),
      run([part("bun test", { ...wrapped, assignments: ["CI=1"] })]),
      true,
    ],
    ["a program from the workspace", shell("bun test"), run([part("bun test")]), writable, {
      writableProgram: true,
    }],
    ["help under a wildcard", shell("bun test *"), run([part("bun test --help")]), idle("--help")],
    ["help under a bare tool", named("shell"), run([part("bun test --help")]), idle("--help")],
    ["a filter that is named", shell("bun test -t core *"), run([part("bun test -t core --coverage")]), true],
    [
      "a second filter after one that is named",
      shell("bun test -t core *"),
      run([part("bun test -t core -t none")]),
      idle("-t"),
    ],
    [
      "the whole text as an argument",
      { tools: ["shell"], args: { command: ["bun test -t core"] } },
      run([part("bun test -t core")], { args: { command: "bun test -t core" } }),
      true,
    ],
    [
      "a text with a wildcard as an argument",
      { tools: ["shell"], args: { command: ["bun test *"] } },
      run([part("bun test -t core")], { args: { command: "bun test -t core" } }),
      idle("-t"),
    ],
    [
      "a word that is not known",
      shell("bun test *"),
      run([part("bun test $x", { blurs: [{ at: 2, pieces: ["", ""], many: true }] })]),
      exactly,
    ],
    [
      "a wildcard that could become an option",
      shell("bun test *"),
      run([part("bun test *", { blurs: [{ at: 2, pieces: ["", ""], many: true, glob: true }] })]),
      option("*"),
    ],
    [
      "a wildcard that is an option",
      shell("bun test *"),
      run([part("bun test -*", { blurs: [{ at: 2, pieces: ["-", ""], many: true, glob: true }] })]),
      option("-*"),
    ],
    [
      "a wildcard that names files",
      shell("bun test *"),
      run([part("bun test core/*", { blurs: [{ at: 2, pieces: ["core/", ""], many: true, glob: true }] })]),
      true,
    ],
    [
      "a word that is not known, under a bare tool",
      named("shell"),
      run([part("bun test $x", { blurs: [{ at: 2, pieces: ["x", ""], many: true }] })]),
      option("$x"),
    ],
    ["in another folder", shell("bun test"), run([part("bun test")], { args: { cwd: "sub" } }), place],
    ["in the root, by name", shell("bun test"), run([part("bun test")], { args: { cwd: `${root}/` } }), true],
    ["in the root, as a dot", shell("bun test"), run([part("bun test")], { args: { cwd: "./" } }), true],
    ["below the root", shell("bun test"), run([part("bun test")], { args: { cwd: `${root}/x` } }), place],
    [
      "in a folder that the pattern names",
      { ...shell("bun test"), args: { cwd: ["sub"] } },
      run([part("bun test")], { args: { cwd: "sub" } }),
      true,
    ],
    [
      "in another folder than the pattern names",
      { ...shell("bun test"), args: { cwd: ["sub"] } },
      run([part("bun test")], { args: { cwd: "other" } }),
      undefined,
    ],
    ["what a tool of a skill runs", named("skill.x.check"), {
      ...run([part("bun test -t x")]),
      tool: "skill.x.check",
    }, true],
    [
      "a tool of a skill whose program may be written",
      named("skill.x.check"),
      { ...run([part("./check")]), tool: "skill.x.check" },
      writable,
      { writableProgram: true },
    ],
  ];
  for (const [name, evidence, asked, result, site] of rows) {
    test(name, () => {
      assertEquals(
        evidenceClaims([gate([evidence])], asked, { root, writableProgram: false, ...site }),
        {
          marks: result === true ? ["g#0"] : [],
          nearly: typeof result === "string" ? { "g#0": result } : {},
        },
      );
    });
  }

  test("for every pattern of every gate", () => {
    const gates = [gate([named("git_diff"), shell("bun test")], "a"), gate([shell("bun *")], "b")];
    assertEquals(evidenceClaims(gates, run([part("bun test")]), { root, writableProgram: false }), {
      marks: ["a#1", "b#0"],
      nearly: {},
    });
  });
});

test("countsByStatus() holds for what starts a command, and of one that reads for what the rule says whole", () => {
  const whole = rule("user", "r", "allow", shell("git diff --exit-code"));
  const wide = rule("user", "r", "allow", shell("git diff *"));
  const read = run([part("git diff --exit-code")], { risk: "read" });
  const silenced = run([{ ...part("git diff --exit-code"), text: "git diff --exit-code > /dev/null" }], {
    risk: "read",
  });
  assertEquals(
    [
      countsByStatus(run([part("bun test")]), [wide]),
      countsByStatus(facts("git_diff"), [whole]),
      countsByStatus(read, [whole]),
      countsByStatus(read, [whole, wide]),
      countsByStatus(silenced, [whole]),
    ],
    [true, false, true, false, false],
  );
});
