// A scripted model that tries to merge without its guardian, in every way that we know of: refused each time, allowed once all
// is in place, and the log tells the story.
import { afterAll, beforeAll, describe, test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Event } from "../../src/core/event.ts";
import {
  type Call,
  openStage,
  type Played,
  refusals,
  type Reply,
  type Stage,
  story,
} from "../support/stage.ts";

let stage: Stage;
let top = "";
beforeAll(() => {
  stage = openStage();
  top = stage.top;
  // Tests that fail where the workspace says so.
  stage.program("bun", '[ "$1" = test ] || exit 9\necho ran >> cache.ignored\n[ ! -e broken ]');
});
afterAll(() => stage.close());

const sh = (command: string, more: object = {}): Call => ({ shell: { command, ...more } });
const edit = (from: string, to: string): Call => ({ edit_file: { path: "a.txt", old: from, new: to } });
const verdict = (outcome: string): Call => ({
  complete_skill: { name: "mainline-guardian", outcome, summary: "read" },
});
const diff: Call = { git_diff: {} };
const tests = sh("bun test");
const merge = sh("gh pr merge 1");
const change: readonly Reply[] = [[{ read_file: { path: "a.txt" } }], [edit("one", "two")]];
/** All that the gate asks for, in order. */
const proper: readonly Reply[] = [[diff], [tests], [verdict("PASS")], [merge]];

const gate = `
    - skill: mainline-guardian
      id: merge
      before: ["shell(gh pr merge *)", "shell(git merge *)"]
      evidence: [git_diff, "shell(bun test *)"]
      verdict: [PASS]`;

function play(
  replies: readonly Reply[],
  more: {
    readonly forced?: string;
    readonly user?: readonly string[];
    readonly files?: { readonly [path: string]: string };
    readonly git?: boolean;
  } = {},
): Played {
  return stage.play(replies, {
    policy: `skills:\n  forced:${more.forced ?? gate}\n`,
    user: more.user ?? ["merge it"],
    git: more.git ?? true,
    files: { "a.txt": "one\n", ".gitignore": "*.ignored\n", ...more.files },
  });
}

const noDiff = "evidence missing: git_diff";
const noTests = "evidence missing: shell(bun test *)";
const noVerdict =
  "verdict missing: complete_skill mainline-guardian with outcome PASS, in a reply after the one that asked for the evidence";
const compound = "gate_compound: the gated command must be the only one in its text";
const near = (call: string, why: string) => ` (call ${call} is none: ${why})`;
const stale = (call: string) =>
  ` (call ${call} is stale: files, HEAD, branches or tags are not as they were; fetch and commit first, then gather)`;

/** The first attempt, which loads the guardian. */
const first: Reply = [merge];

test("refused, then all in place: allowed, once", () => {
  const played = play([...change, first, ...proper, [merge], "done"]);
  assertEquals(played.merged, ["gh pr merge 1"]);
  assertEquals(story(played.events), [
    "read_file: ok",
    "edit_file: ok",
    `shell gh pr merge 1: denied (${noDiff})`,
    "git_diff: ok",
    "shell bun test: ok",
    "complete_skill PASS: ok",
    "shell gh pr merge 1: ok",
    "shell gh pr merge 1: denied (evidence missing: git_diff (call call_4_1 was used up))",
  ]);
  const types = played.events.map((e) => e.type);
  // The first refusal loads the skill, before the model is asked again.
  assert(types.indexOf("gate.blocked") < types.indexOf("skill.loaded"));
  const trees = played.events.flatMap((e) => "tree" in e.data ? [e.data.tree] : []);
  assertEquals([trees.length, new Set(trees).size], [3, 1]);
});

describe("two kinds of evidence", () => {
  const orders: readonly (readonly [string, readonly Reply[]])[] = [
    ["the diff first", [[diff], [tests]]],
    ["the tests first", [[tests], [diff]]],
    ["both in one reply", [[tests, diff]]],
  ];
  for (const [name, evidence] of orders) {
    test(`${name}: allowed`, () => {
      const played = play([...change, first, ...evidence, [verdict("PASS")], [merge], "done"]);
      assertEquals([played.merged, refusals(played.events).length], [["gh pr merge 1"], 1]);
    });
  }

  for (const [name, evidence] of orders) {
    test(`${name}, without git: allowed, by order`, () => {
      const forced = gate.replace("[git_diff,", "[read_file,");
      const look: Call = { read_file: { path: "a.txt" } };
      const asked = evidence.map((reply) =>
        typeof reply === "string" ? reply : reply.map((call) => call === diff ? look : call)
      );
      const played = play([...change, first, ...asked, [verdict("PASS")], [merge], "done"], {
        forced,
        git: false,
      });
      assertEquals([played.merged, refusals(played.events).length], [["gh pr merge 1"], 1]);
      assertEquals(played.events.filter((e) => "tree" in e.data), []);
    });
  }
});

describe("refused, and allowed once all is in place", () => {
  /** The replies up to the attempt; `missing`: why that was refused. The guardian is loaded before. */
  type Row = readonly [name: string, replies: readonly Reply[], missing: readonly string[]];
  const forged = (command: string, why: string, more: object = {}): Row => [
    `forged evidence: ${command}${"cwd" in more ? ` in ${more.cwd}` : ""}`,
    [[diff], [sh(command, more)], [merge]],
    [`${noTests}${why === "" ? "" : near("call_5_1", why)}`, noVerdict],
  ];
  const only = "it must be the only command in its text";
  const status = "its exit status must be that of the text: no `&`, `!`, `||`, `&&`, branch or loop";
  const inside = "it must stand at the top level of the text, not inside another command";
  const exactly = "it must be exactly as `shell(bun test *)` says";
  const idle = (word: string) =>
    `\`${word}\` may keep it from checking everything, and the pattern does not name it`;
  const rows: readonly Row[] = [
    ["without evidence", [[verdict("PASS")], [merge]], [noDiff, noTests, noVerdict]],
    ["without a verdict", [[diff], [tests], [merge]], [noVerdict]],
    ["a verdict in the same reply as its evidence", [[diff, tests, verdict("PASS"), merge]], [noVerdict]],
    ["a verdict beside the last of its evidence", [[diff], [tests, verdict("PASS")], [merge]], [noVerdict]],
    [
      "another verdict",
      [[diff], [tests], [verdict("FAIL")], [merge]],
      [
        `${noDiff} (call call_4_1 was voided by the verdict after it)`,
        `${noTests} (call call_5_1 was voided by the verdict after it)`,
        noVerdict,
      ],
    ],
    [
      "a better verdict for the same evidence",
      [[diff], [tests], [verdict("FAIL")], [verdict("PASS")], [merge]],
      [
        `${noDiff} (call call_4_1 was voided by the verdict after it)`,
        `${noTests} (call call_5_1 was voided by the verdict after it)`,
        noVerdict,
      ],
    ],
    [
      "evidence of another content",
      [[diff], [tests], [verdict("PASS")], [edit("two", "three")], [merge]],
      [`${noDiff}${stale("call_4_1")}`, `${noTests}${stale("call_5_1")}`, noVerdict],
    ],
    [
      "a commit after the evidence",
      [[diff], [tests], [verdict("PASS")], [sh("git -c user.name=a -c user.email=a@b.test commit -qam x")], [
        merge,
      ], [
        sh("git reset -q --soft HEAD~1"),
      ]],
      [`${noDiff}${stale("call_4_1")}`, `${noTests}${stale("call_5_1")}`, noVerdict],
    ],
    [
      "a new file after the evidence",
      [[diff], [tests], [verdict("PASS")], [{ write_file: { path: "new.txt", content: "x" } }], [merge]],
      [`${noDiff}${stale("call_4_1")}`, `${noTests}${stale("call_5_1")}`, noVerdict],
    ],
    [
      "a new file that is staged after the evidence",
      [[diff], [tests], [verdict("PASS")], [sh("touch new.txt")], [sh("git add new.txt")], [merge]],
      [`${noDiff}${stale("call_4_1")}`, `${noTests}${stale("call_5_1")}`, noVerdict],
    ],
    [
      "a change of a file that the index calls unchanged",
      [
        [sh("git update-index --assume-unchanged .gitignore")],
        [diff],
        [tests],
        [verdict("PASS")],
        [sh("echo '# more' >> .gitignore")],
        [merge],
      ],
      [`${noDiff}${stale("call_5_1")}`, `${noTests}${stale("call_6_1")}`, noVerdict],
    ],
    ["in a compound line", [[diff], [tests], [verdict("PASS")], [sh("true && gh pr merge 1")]], [compound]],
    ["before another command", [[diff], [tests], [verdict("PASS")], [sh("gh pr merge 1; true")]], [compound]],
    ["in a pipe", [[diff], [tests], [verdict("PASS")], [sh("gh pr merge 1 | cat")]], [compound]],
    ["by bash -c, all in place", [[diff], [tests], [verdict("PASS")], [sh('bash -c "gh pr merge 1"')]], [
      compound,
    ]],
    ["by bash -c", [[sh('bash -c "gh pr merge 1"')]], [noDiff, noTests, noVerdict, compound]],
    ["by eval", [[sh("eval 'gh pr merge 1'")]], [noDiff, noTests, noVerdict, compound]],
    ["by env", [[sh("env X=1 gh pr merge 1")]], [noDiff, noTests, noVerdict, compound]],
    ["by xargs", [[sh("echo 1 | xargs gh pr merge")]], [noDiff, noTests, noVerdict, compound]],
    ["in a substitution", [[sh("echo $(gh pr merge 1)")]], [noDiff, noTests, noVerdict, compound]],
    ["in a function", [[sh("m() { gh pr merge 1; }; m")]], [noDiff, noTests, noVerdict, compound]],
    ["with options before", [[sh("gh -R a/b pr merge 1")]], [noDiff, noTests, noVerdict]],
    ["by the program's path", [[sh("/usr/bin/gh pr merge 1")]], [noDiff, noTests, noVerdict]],
    ["by git -C . merge", [[sh("git -C . merge topic")]], [noDiff, noTests, noVerdict]],
    ["by an alias given with it", [[sh("git -c alias.m=merge m topic")]], [noDiff, noTests, noVerdict]],
    ["by setting an alias", [[sh("git config alias.m merge")]], [noDiff, noTests, noVerdict, compound]],
    ["by an alias that may be there", [[sh("git m topic")]], [noDiff, noTests, noVerdict]],
    [
      "an empty diff",
      [[edit("two", "one")], [diff], [tests], [merge]],
      [
        `${noDiff}${
          near(
            "call_5_1",
            "its result was empty or cut: ask for something that is there, and for less at once",
          )
        }`,
        noVerdict,
      ],
    ],
    ["the tests of a failed run", [[sh("touch broken")], [diff], [tests], [merge]], [
      `${noTests}${near("call_6_1", "it failed (exit)")}`,
      noVerdict,
    ]],
    forged("bun test --help", idle("--help")),
    forged("bun test -t nothing", idle("-t")),
    forged("bun test --pass-with-no-tests x", idle("--pass-with-no-tests")),
    forged("bun test --bail 0", idle("--bail")),
    forged("bun test || true", only),
    forged("bun test; true", only),
    forged("bun test &", status),
    forged("! bun build", ""),
    forged("! bun test", status),
    forged("bun test | cat", only),
    forged("bun() { true; }; bun test", only),
    forged("if false; then bun test; fi", only),
    forged("for x in; do bun test; done", status),
    forged("case x in y) bun test;; esac", status),
    forged("[[ a == b ]] || bun test", status),
    forged("true || bun test", only),
    forged("echo bun test", ""),
    forged("sh -c 'bun test'", inside),
    forged("time bun test", inside),
    forged("PATH=/nowhere bun test", exactly),
    forged("BUN_OPTIONS=--help bun test", exactly),
    forged("./bun test", exactly),
    forged("bun test > out.ignored", "its output must not go to a file"),
    forged("bun test", "it must run in the workspace root", { cwd: "sub" }),
  ];
  for (const [name, replies, missing] of rows) {
    test(name, () => {
      const files = { "sub/a.txt": "", bun: "#!/bin/sh\n" };
      const restore: readonly Reply[] = [[sh("rm -f broken")], [sh("echo more >> a.txt")]];
      const played = play([...change, first, ...replies, ...restore, ...proper, "done"], { files });
      const refused = refusals(played.events);
      assertEquals(refused, [[noDiff, noTests, noVerdict], missing]);
      assertEquals(played.merged, ["gh pr merge 1"]);
    });
  }
});

describe("evidence that stays fresh", () => {
  const rows: readonly (readonly [name: string, between: readonly Reply[]])[] = [
    ["when something is written that git ignores", [[sh("echo x > y.ignored")]]],
    ["when a command changes nothing", [[sh("ls")]]],
    ["when a change is taken back", [[edit("two", "three")], [edit("three", "two")]]],
    ["when only the index changes", [[sh("git add a.txt")]]],
    ["when a verdict in the same reply as its evidence comes again", [[verdict("PASS")]]],
  ];
  for (const [name, between] of rows) {
    test(name, () => {
      const played = play([
        ...change,
        first,
        [diff],
        [tests],
        [verdict("PASS")],
        ...between,
        [merge],
        "done",
      ]);
      assertEquals([played.merged, refusals(played.events).length], [["gh pr merge 1"], 1]);
    });
  }
});

test("a verdict of a skill that is not active is none", () => {
  const played = play([...change, [diff], [tests], [verdict("PASS")], [merge], "done"]);
  assertEquals(story(played.events).slice(4), [
    "complete_skill PASS: not_active",
    `shell gh pr merge 1: denied (${noVerdict})`,
  ]);
  assertEquals(played.merged, []);
});

describe("a gate that is not used up", () => {
  test("lets the call through again while nothing changed", () => {
    const played = play([...change, first, ...proper, [merge], [edit("two", "three")], [merge], "done"], {
      forced: `${gate}\n      reuse: true`,
    });
    assertEquals(played.merged, ["gh pr merge 1", "gh pr merge 1"]);
    assertEquals(refusals(played.events).length, 2);
  });

  test("that failed with a status keeps its evidence, one that was cut off does not", () => {
    const failing = sh("gh pr merge 2 && false");
    const fails = sh("gh pr merge --fail");
    stage.program(
      "gh",
      '[ "$3" = --fail ] && exit 1\n[ "$3" = --hang ] && sleep 60\necho "gh $*" >> "$(dirname "$0")/../merged"',
    );
    const hang = sh("gh pr merge --hang", { timeout: 1 });
    const played = play([...change, first, [diff], [tests], [verdict("PASS")], [failing], [fails], [hang], [
      merge,
    ], "done"]);
    assertEquals(story(played.events).slice(6), [
      `shell gh pr merge 2 && false: denied (${compound})`,
      "shell gh pr merge --fail: exit",
      "shell gh pr merge --hang: timeout",
      "shell gh pr merge 1: denied (evidence missing: git_diff (call call_4_1 was used up))",
    ]);
    assertEquals(played.merged, []);
  });
});

describe("the end of a turn", () => {
  const finish = (more = "") => `
    - {skill: mainline-guardian, id: review, before: finish, evidence: [git_diff], verdict: [PASS, FAIL]${more}}`;
  const ends = (events: readonly Event[]) =>
    events.flatMap((e) => e.type === "turn.completed" ? [[e.data.stopReason, e.data.gates ?? []]] : []);

  test("is sent back until the gate is met, with what is missing", () => {
    const played = play([...change, "done", [diff], [verdict("PASS")], "done"], { forced: finish() });
    const wanted =
      "verdict missing: complete_skill mainline-guardian with outcome PASS or FAIL, in a reply after the one that asked for the evidence";
    assertEquals([played.code, refusals(played.events)], [0, [[noDiff, wanted]]]);
    assertEquals(played.events.filter((e) => e.type === "gate.blocked").map((e) => e.data), [{
      gate: "review",
      missing: [noDiff, wanted],
    }]);
    assertEquals(ends(played.events), [["final", ["review"]]]);
  });

  test("is another exit code when the verdict is FAIL", () => {
    const played = play([...change, "done", [diff], [verdict("FAIL")], "done"], { forced: finish() });
    assertEquals([played.code, ends(played.events)], [10, [["final", ["review"]]]]);
  });

  const tries: readonly (readonly [name: string, more: string, sentBack: number])[] = [
    ["three times", "", 3],
    ["once, where the policy says so", ", gate_retries: 1", 1],
    ["never, where the policy says so", ", gate_retries: 0", 0],
  ];
  for (const [name, more, sentBack] of tries) {
    test(`is sent back ${name}, then the gate is unmet`, () => {
      const replies = Array.from({ length: sentBack + 1 }, () => "done");
      const played = play(replies, { forced: finish(more) });
      assertEquals([played.code, refusals(played.events).length, ends(played.events)], [6, sentBack, [[
        "gate_unmet",
        [],
      ]]]);
    });
  }

  test("wants the same again in the next turn, unless it is kept", () => {
    const turns = { user: ["review it", "and again"] };
    const replies: readonly Reply[] = [...change, "done", [diff], [verdict("PASS")], "done"];
    const again = play([...replies, "done", [diff], [verdict("PASS")], "done"], {
      ...turns,
      forced: finish(),
    });
    assertEquals([again.code, refusals(again.events).length, ends(again.events)], [0, 2, [["final", [
      "review",
    ]], [
      "final",
      ["review"],
    ]]]);
    const kept = play([...replies, "done"], { ...turns, forced: finish(", reuse: true") });
    assertEquals([kept.code, refusals(kept.events).length, ends(kept.events)], [0, 1, [["final", []], [
      "final",
      [],
    ]]]);
  });

  test("is held back by a gate without a skill as well, beside calls", () => {
    const forced = `
    - {id: both, before: [finish, "shell(gh pr merge *)"], evidence: [git_diff]}`;
    const played = play([...change, [merge], "done", [diff], [merge], "done", [diff], "done"], { forced });
    const used = `${noDiff} (call call_5_1 was used up)`;
    assertEquals(refusals(played.events), [[noDiff], [noDiff], [used]]);
    assertEquals([played.code, played.merged], [0, ["gh pr merge 1"]]);
  });
});

describe("through a skill", () => {
  const skill = (name: string, files: { readonly [file: string]: string }) => {
    mkdirSync(join(top, "skills", name), { recursive: true });
    for (const [file, text] of Object.entries(files)) writeFileSync(join(top, "skills", name, file), text);
  };
  const head = (name: string, more = "") => `---\nname: ${name}\ndescription: ${name}\n${more}---\nDo it.\n`;
  const tool = (name: string, ...command: readonly string[]) => ({
    name,
    description: name,
    input_schema: { type: "object" },
    command,
  });
  beforeAll(() => {
    const tools = [
      tool("ship", "gh", "pr", "merge", "1"),
      tool("wrapped_ship", "sh", "-c", "gh pr merge 1"),
      tool("bun_test", "bun", "test"),
    ];
    skill("shipper", { "SKILL.md": head("shipper"), "tools.json": JSON.stringify(tools) });
    skill("errand", { "SKILL.md": head("errand", "mode: fork\n") });
    skill("judge", { "SKILL.md": head("judge", "mode: fork\n") });
  });
  const options = (forced = gate) => ({
    forced: `${forced}\n  sources: [builtin, {path: ${
      JSON.stringify(join(top, "skills"))
    }}]\n  undeclared_tools: unbounded`,
  });
  const load = (name: string): Call => ({ load_skill: { name } });

  const rows: readonly (readonly [name: string, replies: readonly Reply[], missing: readonly string[]])[] = [
    ["its tool runs the gated command", [[{ ship: {} }]], [noDiff, noTests, noVerdict]],
    ["its tool runs the gated command in a shell", [[{ wrapped_ship: {} }]], [
      noDiff,
      noTests,
      noVerdict,
      compound,
    ]],
    ["its tool is named like the evidence and runs it", [[diff], [{ bun_test: {} }], [merge]], [
      `${noTests}${near("call_6_1", "it must be exactly as `shell(bun test *)` says")}`,
      noVerdict,
    ]],
  ];
  for (const [name, replies, missing] of rows) {
    test(`${name}: refused, and allowed once all is in place`, () => {
      const played = play([...change, first, [load("shipper")], ...replies, ...proper, "done"], options());
      assertEquals(refusals(played.events), [[noDiff, noTests, noVerdict], missing]);
      assertEquals(played.merged, ["gh pr merge 1"]);
    });
  }

  test("a fork is held back as well, and what it changes makes evidence stale", () => {
    const replies: readonly Reply[] = [
      ...change,
      first,
      [diff],
      [tests],
      [verdict("PASS")],
      [load("errand")],
      [sh("git reset -q")],
      [sh("echo x > other.txt")],
      [merge],
      "errand done",
      [merge],
      ...proper,
      "done",
    ];
    const played = play(replies, options());
    const forks = played.events.flatMap((e) => e.type === "fork.completed" ? [e.data] : []);
    assertEquals(forks.map((f) => f.denied.map((d) => d.reason.startsWith("gate: merge"))), [[true]]);
    assertEquals(refusals(played.events).at(-1), [
      `${noDiff}${stale("call_4_1")}`,
      `${noTests}${stale("call_5_1")}`,
      noVerdict,
    ]);
    assertEquals(played.merged, ["gh pr merge 1"]);
  });

  test("a gate that takes the verdict of a fork alone", () => {
    const forced = gate.replace("mainline-guardian", "judge") + "\n      by: fork";
    const judged: Call = { complete_skill: { name: "judge", outcome: "PASS", summary: "read" } };
    const played = play([
      ...change,
      first,
      // The fork that the refusal starts.
      [diff],
      [tests],
      [judged],
      "judged",
      // Here again.
      [judged],
      [merge],
      [merge],
      "done",
      "done",
      "done",
    ], options(forced));
    assertEquals(played.merged, ["gh pr merge 1"]);
    assertEquals(
      played.events.flatMap((e) => e.type === "skill.completed" ? [[e.data.name, e.data.outcome]] : []),
      [[
        "judge",
        "PASS",
      ]],
    );
    const story2 = story(played.events).slice(2, 6).map((s) => s.replace(/ \(.*/, ""));
    assertEquals(story2, [
      "shell gh pr merge 1: denied",
      "complete_skill PASS: not_active",
      "shell gh pr merge 1: ok",
      "shell gh pr merge 1: denied",
    ]);
  });
});

test("evidence of its own reply counts for a gate that wants no verdict", () => {
  const forced = `
    - {id: seen, before: ["shell(gh pr merge *)"], evidence: [git_diff]}`;
  const played = play([...change, [merge, diff, merge], "done"], { forced });
  assertEquals(story(played.events).slice(2), [
    `shell gh pr merge 1: denied (${noDiff})`,
    "git_diff: ok",
    "shell gh pr merge 1: ok",
  ]);
});
