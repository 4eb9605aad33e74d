// When a policy warns that the skill of a gate keeps evidence of that gate from being gathered, and when it does not.
import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { mergeCatalog } from "../../src/core/catalog.ts";
import { boundedEvidence, boundedText, type Bounding } from "../../src/core/gate_bound.ts";
import { isError } from "../../src/core/problem.ts";
import type { Skill } from "../../src/core/skill.ts";
import { compileAllowedTool } from "../../src/load/allowed_tool.ts";
import { loadPolicyFile } from "../../src/load/policy_file.ts";
import { mergePolicy } from "../../src/load/policy_merge.ts";
import { makeSkill, word } from "./skills.ts";

const place = { root: "/ws", home: "/home/u" };

function found(yaml: string, skill: Partial<Skill>) {
  const loaded = loadPolicyFile(`version: 1\n${yaml}\n`, "/p.yaml", "user", "0.1.0");
  const merged = mergePolicy({
    files: loaded.ok ? [loaded.value] : [],
    revision: "r",
    ...place,
    protect: { skillFolders: [], gitFolders: [], own: [] },
  });
  assertEquals([...loaded.problems, ...merged.problems].filter(isError), []);
  const { policy } = merged.ok ? merged.value : merged.rest;
  const { catalog } = mergeCatalog([makeSkill({ name: "g", ...skill })], policy.skills);
  return boundedEvidence({
    policy,
    home: place.home,
    catalog,
    allowedTool: (declared) => compileAllowedTool(declared, place),
    boundAt: ({ file }) => ({ file, line: 4, col: 1 }),
  });
}

const gate = (evidence: string, more = "", skills = "") =>
  `skills:\n  forced:\n    - {skill: g, id: m, before: ["shell(git merge *)"], evidence: [${evidence}]${more}}\n${skills}`;
const tests = gate('git_diff, "shell(bun test *)"', ", verdict: [PASS]");
const reads = { allowedTools: ["read_file", "git_diff"] };
const hidden = { modelInvocable: false, userInvocable: false };

describe("evidence is bounded by the skill of its gate", () => {
  const any = "once `/skill` or the model has loaded it, this evidence cannot be had until the skill ends";
  type Row = readonly [name: string, yaml: string, skill: Partial<Skill>, why: string];
  const rows: readonly Row[] = [
    ["when the whole tool is absent", tests, reads, any],
    ["when a specifier leaves the command out", tests, { allowedTools: ["Bash(git:*)", "git_diff"] }, any],
    ["when a specifier says another command", tests, { allowedTools: ["shell(bun build)", "git_diff"] }, any],
    [
      "when a specifier says less than the evidence",
      gate('"shell(bun test all)"'),
      { allowedTools: ["shell(bun test)"] },
      any,
    ],
    ["when an entry cannot be read", tests, { allowedTools: ["shell($x)", "git_diff"] }, any],
    ["when nothing is declared, which allows reads", tests, {}, any],
    ["when `*` is declared, which allows reads", tests, { allowedTools: ["*"] }, any],
    [
      "when an unlisted message can load it",
      tests,
      { ...reads, ...hidden, patterns: [word("review")] },
      "once a message has loaded it, this evidence cannot be had until the skill ends",
    ],
    [
      "when a pattern of the policy can load it",
      `${tests}  triggers: {g: {patterns: [review]}}`,
      { ...reads, ...hidden },
      "once a message has loaded it, this evidence cannot be had until the skill ends",
    ],
    [
      "when the model has no choice",
      `${tests}  model_choice: false`,
      reads,
      "once `/skill` has loaded it, this evidence cannot be had until the skill ends",
    ],
    [
      "when its gate bounds",
      gate('"shell(bun test)"', ", bounding: true"),
      { ...reads, ...hidden },
      "once its gate has refused something, this evidence cannot be had until the skill ends",
    ],
    [
      "when it bounds from the start",
      `${tests}    - {skill: g, when: session, bounding: true}`,
      { ...reads, ...hidden },
      "it bounds the whole session, so that the gate never opens",
    ],
    [
      "when it runs as a fork and sees nothing else",
      tests,
      { ...reads, ...hidden, mode: "fork", history: "summary" },
      "it runs as a fork, and only what it has gathered itself counts for its verdict, so that the gate never opens",
    ],
    ["when another server's tool is wanted", gate("mcp.ci.status"), { allowedTools: ["mcp.ci.log"] }, any],
    ["when another skill's tool is wanted", gate("skill.h.check"), {}, any],
  ];
  for (const [name, yaml, skill, why] of rows) {
    test(name, () => {
      const [first, ...others] = found(yaml, skill);
      const text = /waits for (`.*?`)/.exec(first?.message ?? "")?.[1];
      assertEquals([first?.code, first?.severity, first?.at?.line, others], ["gate-bound", "warning", 4, []]);
      assertEquals(
        first?.message,
        `the gate \`m\` waits for ${text}, which its skill \`g\` does not allow (\`allowed_tools\` at /user/g/SKILL.md:4:1): ${why}`,
      );
    });
  }

  test("or by that of another gate on the same calls", () => {
    const yaml = `skills:
  forced:
    - {skill: g, id: a, before: ["shell(git merge *)"], evidence: [git_diff], verdict: [PASS]}
    - {id: b, before: ["shell(git push *)", "shell(git merge main)"], evidence: ["shell(bun test)"]}
    - {id: c, before: ["shell(git push *)"], evidence: ["shell(bun test)"]}`;
    assertEquals(found(yaml, reads).map((p) => [p.at?.line, p.at?.col, p.message.split(" (")[0]]), [[
      5,
      82,
      "the gate `b` waits for `shell(bun test)`, which `g`, the skill of another gate on the same calls, does not allow",
    ]]);
  });

  test("with what to do about it", () => {
    const hints = [reads, { ...reads, tier: "builtin" as const }].map((skill) =>
      found(tests, skill)[0]?.hint
    );
    const gather = "or gather it before, in a turn that does not load the skill (`writ help gates`)";
    assertEquals(hints, [
      `add \`shell(bun test *)\` to those \`allowed_tools\`; ${gather}`,
      `let the gate name a skill of your own that has \`shell(bun test *)\` in its \`allowed_tools\`; ${gather}`,
    ]);
  });
});

describe("nothing is said", () => {
  const rows: readonly (readonly [name: string, yaml: string, skill: Partial<Skill>])[] = [
    ["when the tool is there", tests, { allowedTools: ["git_diff", "shell"] }],
    ["when the command is there", tests, { allowedTools: ["git_diff", "Bash(bun test:*)"] }],
    ["when some of the commands are there", tests, { allowedTools: ["git_diff", "shell(bun test src)"] }],
    [
      "when one of several commands is there",
      gate("{tool: shell, command: [bun test, make check]}"),
      { allowedTools: ["shell(make *)"] },
    ],
    ["when only the gate can load it", tests, { ...reads, ...hidden }],
    ["when only the gate can load it, by `model_choice`", `${tests}  model_choice: false`, {
      ...reads,
      userInvocable: false,
    }],
    ["when it is forced and does not bound", `${tests}    - {skill: g, when: session}`, {
      ...reads,
      ...hidden,
    }],
    ["when skills without bounds are let be", `${tests}  undeclared_tools: unbounded`, {}],
    ["when the evidence is a read and nothing is declared", gate('git_diff, "shell(git diff *)"'), {}],
    ["when its fork sees all that was said", tests, { ...reads, mode: "fork", history: "full" }],
    ["when its fork gives no verdict", gate('"shell(bun test)"'), { ...reads, mode: "fork" }],
    ["of its own tools", gate("skill.g.check"), reads],
    ["of what no bound speaks of", gate('"load_skill(g)"'), reads],
    ["of a whole server", gate('"mcp.ci.*"'), { allowedTools: ["mcp.*"] }],
    ["when paths decide", gate('"read_file(src/**)"'), { allowedTools: ["read_file(docs/**)"] }],
  ];
  for (const [name, yaml, skill] of rows) {
    test(name, () => assertEquals(found(yaml, skill).map((p) => p.message), []));
  }
});

describe("the model is told how to go on", () => {
  const start = (skills: string) =>
    `This call would be evidence for the gate \`m\`. Only the bound of the skill ${skills} refuses it; neither \`complete_skill\` nor another spelling of the call lifts that.`;
  const rows: readonly (readonly [name: string, by: readonly Bounding[], skills: string, next: string])[] = [
    ["in the next turn", [{ skill: "g", lasts: "turn" }], "`g`", "It lasts until this turn ends: end it"],
    [
      "when the person has cleared it",
      [{ skill: "h", lasts: "turn" }, { skill: "g", lasts: "session" }],
      "`h` and `g`",
      "It lasts until the person writes `/skill clear g`: ask for that",
    ],
    ["around a fork", [{ skill: "g", lasts: "fork" }], "`g`", "It lasts as long as this fork"],
    [
      "not at all",
      [{ skill: "h", lasts: "turn" }, { skill: "g", lasts: "policy" }],
      "`h` and `g`",
      "The policy keeps it in force for the whole session",
    ],
  ];
  for (const [name, by, skills, next] of rows) {
    test(name, () => {
      const text = boundedText(["m"], by);
      assertEquals(text.slice(0, start(skills).length + 1 + next.length), `${start(skills)} ${next}`);
    });
  }
});
