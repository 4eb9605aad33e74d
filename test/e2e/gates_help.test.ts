// The gates of `writ help gates`, as they stand there: the honest way through each, in one run, however its skill was loaded; and
// what a model may try instead.
import { afterAll, beforeAll, describe, test } from "bun:test";
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { withMachine } from "../support/machine.ts";
import { root } from "../support/runtimes.ts";
import {
  type Call,
  openStage,
  type Played,
  refusals,
  type Reply,
  type Stage,
  story,
} from "../support/stage.ts";

const help = readFileSync(join(root, "src/cli/help/gates.md"), "utf8");
const fences = [...help.matchAll(/^```(yaml|markdown)\n([^]*?)^```$/gm)].map((m) => m[2] ?? "");

/** The example that holds a gate of this id. */
function example(id: string): string {
  const [found, ...others] = fences.filter((text) => text.includes(`- id: ${id}\n`));
  assertEquals([found === undefined, others], [false, []]);
  return found ?? "";
}

let stage: Stage;
beforeAll(() => {
  stage = openStage();
  stage.program("bun", '[ "$1" = test ] || exit 9\n[ ! -e broken ]');
});
afterAll(() => stage.close());

const sh = (command: string): Call => ({ shell: { command } });
const diff = (ref?: string): Call => ({ git_diff: ref === undefined ? {} : { ref } });
const tests = sh("bun test");
const merge = sh("gh pr merge 1");
const load = (name: string): Call => ({ load_skill: { name } });
const verdict = (name: string, outcome = "PASS"): Call => ({
  complete_skill: { name, outcome, summary: "read" },
});
const commit = "git -c user.name=a -c user.email=a@b.test commit -qam change";
/** A branch with a change, and a bare repository to push to. */
const topic: readonly Reply[] = [
  [sh("git init -q --bare ../origin.git")],
  [sh("git remote add origin ../origin.git")],
  [tests],
  [sh("git push -q -u origin main")],
  [sh("git switch -q -c topic")],
  [sh("echo two > a.txt")],
  [sh(commit)],
];

function play(
  id: string,
  replies: readonly Reply[],
  more: { readonly user?: readonly string[]; readonly entry?: string; readonly dirty?: boolean } = {},
): Played {
  const skills = {
    "merge-review": fences.find((text) => text.startsWith("---\nname: merge-review\n")) ?? "",
  };
  const [policy, entry] = [example(id), more.entry === undefined ? "" : `    - ${more.entry}\n`];
  // Whatever an example does not speak of is allowed.
  return stage.play(replies, {
    policy: policy.replace("  forced:\n", `  forced:\n${entry}`).replace(
      "permissions:\n",
      "permissions:\n  default: allow\n",
    ),
    user: more.user ?? ["go"],
    git: true,
    files: { "a.txt": "one\n", "b.txt": "b\n" },
    skills,
  });
}

/** A change that is not committed. */
const change: Reply = [sh("echo two > a.txt")];

type Way = readonly [way: string, user: string, first: readonly Reply[], entry?: string];
const ways = (name: string): readonly Way[] => [
  ["its gate alone", "merge it", [[merge]]],
  ["the model", "merge it", [[load(name)]]],
  ["/skill", `/skill ${name} and merge it`, []],
  ["policy, from the start", "merge it", [], `{skill: ${name}, when: session}`],
  ...(name === "mainline-guardian" ? [["a pattern", "review this PR and merge it", []] as const] : []),
];

describe("the honest way, with the skill loaded by", () => {
  const skills = [["review", "mainline-guardian", []], ["merge", "merge-review", [[tests]]]] as const;
  for (const [id, name, more] of skills) {
    for (const [way, user, first, entry] of ways(name)) {
      test(`${way}: ${name}`, () => {
        const honest: readonly Reply[] = [[diff("main")], ...more, [verdict(name)], [merge], "merged"];
        const played = play(id, [change, "changed", ...first, ...honest], {
          user: ["change it", user],
          ...(entry === undefined ? {} : { entry }),
        });
        assertEquals([played.code, played.merged], [0, ["gh pr merge 1"]], story(played.events).join("\n"));
        assertEquals(refusals(played.events).length, first.length > 0 && way === "its gate alone" ? 1 : 0);
      });
    }
  }
});

describe("a branch goes out", () => {
  const tail = (played: Played) =>
    story(played.events).slice(topic.length).map((line) =>
      line.replace(
        /: denied \(evidence missing: (.*?)( \(call .* is stale: .*)?\)$/,
        (_, what, stale) => `: denied, ${stale === undefined ? "without" : "stale"}: ${what}`,
      )
    );

  test("by a merge that was reviewed and a push of what was tested", () => {
    const played = play("review", [
      ...topic,
      [tests],
      [sh("git switch -q main")],
      [sh("git merge -q topic")],
      [diff("main...topic")],
      [verdict("mainline-guardian")],
      [sh("git merge -q topic")],
      [sh("git push -q")],
      [tests],
      [sh("git push -q")],
      "out",
    ]);
    assertEquals(tail(played), [
      "shell bun test: ok",
      "shell git switch -q main: ok",
      "shell git merge -q topic: denied, without: git_diff",
      "git_diff: ok",
      "complete_skill PASS: ok",
      "shell git merge -q topic: ok",
      // The tests of the branch are none of what the merge made of it.
      "shell git push -q: denied, stale: shell(bun test)",
      "shell bun test: ok",
      "shell git push -q: ok",
    ]);
  });

  test("by a pull request whose tests ran on what was pushed", () => {
    const played = play("pr", [
      ...topic,
      [tests],
      [sh("git push -q -u origin topic")],
      [diff("main")],
      [merge],
      [diff("origin/main...HEAD")],
      [tests],
      [sh("git switch -q main")],
      [merge],
      [sh("git switch -q topic")],
      [merge],
      "out",
    ]);
    assertEquals(tail(played), [
      "shell bun test: ok",
      "shell git push -q -u origin topic: ok",
      "git_diff: ok",
      "shell gh pr merge 1: denied, without: git_diff arg ref=origin/main...HEAD",
      "git_diff: ok",
      "shell bun test: ok",
      "shell git switch -q main: ok",
      "shell gh pr merge 1: denied, stale: git_diff arg ref=origin/main...HEAD",
      "shell git switch -q topic: ok",
      "shell gh pr merge 1: ok",
    ]);
    assertEquals(played.merged, ["gh pr merge 1"]);
  });

  test("under its name alone, where the policy says both names", () => {
    const others = ["HEAD@{1}", "FETCH_HEAD", "topic~0", "origin/next", "-s ours next", "--no-ff topic"];
    const played = play("next", [
      ...topic,
      [sh("git branch next")],
      [sh("git fetch -q origin")],
      [sh("git switch -q main")],
      [diff("main...topic")],
      [sh("git merge next")],
      [diff("main...next")],
      ...others.map((name): Reply => [sh(`git merge ${name}`)]),
      [sh("git pull -q origin topic")],
      [sh("git merge next")],
      "out",
    ]);
    const codes = story(played.events).slice(topic.length + 3).map((line) => line.replace(/ \(.*/, ""));
    assertEquals(codes, [
      "git_diff: ok",
      "shell git merge next: denied",
      "git_diff: ok",
      ...others.map((name) => `shell git merge ${name}: denied`),
      "shell git pull -q origin topic: denied",
      "shell git merge next: ok",
    ]);
  });
});

test("a turn ends once it was reviewed", () => {
  const played = play("finish", [change, "done", [diff()], [verdict("mainline-guardian")], "done"]);
  assertEquals([played.code, refusals(played.events).length], [0, 1]);
});

describe("evidence that the skill of its gate does not allow", () => {
  const trap = example("merge").replace("merge-review", "mainline-guardian");
  const results = (played: Played) =>
    played.events.flatMap((e) =>
      e.type === "tool.completed" && e.data.code === "denied" ? [e.data.result] : []
    );
  const proper: readonly Reply[] = [
    [tests],
    [diff()],
    [merge],
    [verdict("mainline-guardian")],
    [merge],
    "merged",
  ];
  const scene = (policy: string, user: readonly string[]) => ({
    policy,
    user,
    git: true,
    files: { "a.txt": "one\n" },
  });

  const ways: readonly (readonly [name: string, first: readonly Reply[], user: string])[] = [
    ["a pattern", [], "review this PR and merge it"],
    ["the model", [[load("mainline-guardian")]], "merge it"],
    ["/skill", [], "/skill mainline-guardian merge it"],
  ];
  for (const [name, first, user] of ways) {
    test(`is refused with the way to go on, and had in the next turn: loaded by ${name}`, () => {
      const replies = [change, "changed", ...first, [tests], "later", ...proper];
      const played = stage.play(replies, scene(trap, ["change it", user, "run the tests and merge"]));
      const [refused, gated, ...others] = results(played);
      assertStringIncludes(refused ?? "", "This call would be evidence for the gate `merge`.");
      assertStringIncludes(refused ?? "", "It lasts until this turn ends: end it");
      assertStringIncludes(gated ?? "", "verdict missing");
      assertEquals([others, played.merged], [[], ["gh pr merge 1"]]);
    });
  }

  const session = trap.replace("  forced:\n", "  scope: session\n  forced:\n");
  const bounding = trap.replace(
    "  forced:\n",
    "  forced:\n    - {skill: mainline-guardian, when: session, bounding: true}\n",
  );
  const lasting: readonly (readonly [
    name: string,
    policy: string,
    user: string,
    replies: readonly Reply[],
    says: string,
  ])[] = [
    [
      "skills stay",
      session,
      "review this PR",
      [[tests]],
      "until the person writes `/skill clear mainline-guardian`",
    ],
    [
      "policy bounds the session",
      bounding,
      "go",
      [[tests]],
      "The policy keeps it in force for the whole session",
    ],
    [
      "a forced skill is loaded besides",
      trap.replace("  forced:\n", "  forced:\n    - {skill: mainline-guardian, when: session}\n"),
      "review this PR",
      [[tests]],
      "It lasts until this turn ends: end it",
    ],
  ];
  for (const [name, policy, user, replies, says] of lasting) {
    test(`is refused with how long that lasts: ${name}`, () => {
      const [refused] = results(stage.play([...replies, "no"], scene(policy, [user])));
      assertStringIncludes(refused ?? "", says);
    });
  }

  test("is not spoken of where the call is no evidence, or something else refuses it", () => {
    const calls = [[sh("bun test --help")], [sh("bun build")], [tests]];
    const policy = `${trap}permissions: {default: allow, deny: ["shell(bun test)"]}\n`;
    const [help, build] = results(stage.play([...calls, "no"], scene(trap, ["review this PR"])));
    const [, , denied] = results(stage.play([...calls, "no"], scene(policy, ["review this PR"])));
    assertEquals([help, build, denied].map((text) => text?.includes("would be evidence")), [
      false,
      false,
      false,
    ]);
  });

  test("is warned of by `policy check` and by a run, with both places", async () => {
    await withMachine(async (m) => {
      const replies = m.write("replies.yaml", "- text: Done.\n");
      const policy = m.write(
        "policy.yaml",
        `version: 1\nmodel: {provider: script, script: ${replies}}\n${trap}`,
      );
      const wanted =
        /policy\.yaml:8:\d+: warning: the gate `merge` waits for `shell\(bun test\)`, which its skill `mainline-guardian` does not allow \(`allowed_tools` at .*mainline-guardian\/SKILL\.md:\d+:1\): .* \[gate-bound\]\n/;
      for (const args of [["policy", "check", policy], ["run", "--policy", policy, "go"]]) {
        const ran = await m.writ(args);
        assertEquals(ran.code, 0);
        assertMatch(ran.stderr, wanted);
      }
    });
  });
});

describe("refused, and allowed once all is in place", () => {
  const skill = "merge-review";
  const start: readonly Reply[] = [change, [load(skill)]];
  const honest: readonly Reply[] = [[diff()], [tests], [verdict(skill)], [merge], "merged"];
  const seen: readonly Reply[] = [[diff()], [tests], [verdict(skill)]];
  const forgeries = [
    "bun test --help",
    "bun test || true",
    "bun() { true; }; bun test",
    "if false; then bun test; fi",
    "echo bun test",
  ];
  // The last call of each is the attempt.
  const rows: readonly (readonly [name: string, attempt: readonly Reply[]])[] = [
    ["without anything", [[merge]]],
    ["a verdict without evidence", [[verdict(skill)], [merge]]],
    ["evidence without a verdict", [[diff()], [tests], [merge]]],
    ["a verdict beside its evidence", [[diff(), tests, verdict(skill)], [merge]]],
    ["a verdict beside the merge and the evidence", [[diff(), tests, verdict(skill), merge]]],
    ["another verdict", [[diff()], [tests], [verdict(skill, "FAIL")], [merge]]],
    ...forgeries.map((text) => [text, [[diff()], [sh(text)], [verdict(skill)], [merge]]] as const),
    ["a diff of nothing", [[diff("HEAD..HEAD")], [tests], [verdict(skill)], [merge]]],
    ["in a compound line", [...seen, [sh("true && gh pr merge 1")]]],
    ["by bash -c", [...seen, [sh('bash -c "gh pr merge 1"')]]],
    ["by a function", [...seen, [sh("m() { gh pr merge 1; }; m")]]],
    ["by xargs", [...seen, [sh("echo 1 | xargs gh pr merge")]]],
  ];
  const changing: typeof rows = [
    ["after a change", [...seen, [sh("echo three > a.txt")], [merge]]],
    ["after a file is hidden", [...seen, [sh("echo '*' > .gitignore && touch new.txt")], [merge]]],
  ];
  for (const bounding of [true, false]) {
    // Within the bound no file can be changed.
    for (const [name, attempt] of bounding ? rows : [...rows, ...changing]) {
      test(`${name}, ${bounding ? "within the bound of the skill" : "with the skill loaded by its gate"}`, () => {
        const first = bounding ? start : [change, [merge]];
        const played = play("merge", [...first, ...attempt, ...honest]);
        const lines = story(played.events);
        const at = lines.length - honest.length;
        assertMatch(lines[at] ?? "", /: denied/);
        assertEquals(played.merged, ["gh pr merge 1"], lines.join("\n"));
      });
    }
  }
});
