// Names in a policy that stand for nothing here, each with the one that was meant.
import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { mergeCatalog } from "../../src/core/catalog.ts";
import type { CommandTool } from "../../src/core/command_tool.ts";
import type { Policy } from "../../src/core/policy.ts";
import { isError, showProblem } from "../../src/core/problem.ts";
import { misspeltVerdicts, unknownNames } from "../../src/core/unknown_names.ts";
import { loadPolicyFile } from "../../src/load/policy_file.ts";
import { mergePolicy } from "../../src/load/policy_merge.ts";
import { makeSkill } from "./skills.ts";

function policyOf(yaml: string): Policy {
  const loaded = loadPolicyFile(`version: 1\n${yaml}\n`, "/p.yaml", "user", "0.1.0");
  const merged = mergePolicy({
    files: loaded.ok ? [loaded.value] : [],
    revision: "r",
    root: "/ws",
    home: "/home/u",
    protect: { skillFolders: [], gitFolders: [], own: [] },
  });
  assertEquals([...loaded.problems, ...merged.problems].filter(isError), []);
  return (merged.ok ? merged.value : merged.rest).policy;
}

const tool = (name: string): CommandTool => ({
  name,
  description: "d",
  inputSchema: { type: "object" },
  command: ["jq"],
});
const skills = [
  makeSkill({ name: "deploy", tools: [tool("merge"), tool("target")] }),
  makeSkill({ name: "guardian" }),
  makeSkill({ name: "off" }),
];

const hash = `sha256:${"0".repeat(64)}`;
const look = "`writ skill list` shows what is there";

const rows: readonly (readonly [name: string, yaml: string, says: readonly string[]])[] = [
  ["names that are there", 'skills: {triggers: {deploy: {patterns: [go]}}, disabled: ["x-*"]}', []],
  ["a pin", `skills: {pins: {deplyo: "${hash}"}}`, [
    "2:17 `skills.pins` pins `deplyo`, and there is no such skill; did you mean `deploy`?",
  ]],
  ["a pin of what nothing resembles", `skills: {pins: {zzz: "${hash}"}}`, [
    `2:17 \`skills.pins\` pins \`zzz\`, and there is no such skill; ${look}`,
  ]],
  ["a pin that does not fit", `skills: {pins: {deploy: "${hash}"}}`, [
    `2:17 \`skills.pins\` pins \`deploy\`, which is not available: /user/deploy/SKILL.md: its folder was not hashed; ` +
    `\`${hash}\` is pinned at /p.yaml:2:17: look at what changed, then pin it again with \`writ skill pin\``,
  ]],
  ["secrets", "skills: {secrets: {deplo: {KEY_ONE: {env: KEY_ONE}}}}", [
    "2:28 `skills.secrets` is for `deplo`, and there is no such skill; did you mean `deploy`?",
  ]],
  ["boxes", "skills: {boxes: {gardian: out}}\nsandbox: {boxes: {out: {network: all}}}", [
    "2:27 `skills.boxes` is for `gardian`, and there is no such skill; did you mean `guardian`?",
  ]],
  ["triggers, once", "skills: {triggers: {gardian: {patterns: [go, on]}}}", [
    "2:42 `skills.triggers` is for `gardian`, and there is no such skill; did you mean `guardian`?",
  ]],
  ["what is disabled", "skills: {disabled: [offf, off, none-*]}", [
    "2:21 `skills.disabled` names `offf`, and there is no such skill; " + look,
  ]],
  ["a rule about loading", 'permissions: {deny: ["load_skill(gardian)", "load_skill(x-*)"]}', [
    "2:22 the rule `load_skill(gardian)` is about `gardian`, and there is no such skill; did you mean `guardian`?",
  ]],
  ["a source of calls", 'permissions: {deny: [{tool: shell, sourced_by: "skill:gardian"}]}', [
    "2:22 the rule `shell sourced_by skill:gardian` is about `gardian`, and there is no such skill; did you mean `guardian`?",
  ]],
  [
    "tools of skills",
    'permissions: {deny: ["skill.deploy.merge", "skill.deploy.*", "skill.*", "skill.*.target"]}',
    [],
  ],
  ["a tool that its skill does not bring", "permissions: {deny: [skill.deploy.merg]}", [
    "2:22 `skill.deploy.merg` names no tool: the skill `deploy` brings `skill.deploy.merge`, `skill.deploy.target`; " +
    "did you mean `skill.deploy.merge`?",
  ]],
  ["a tool of a skill without any", "permissions: {deny: [skill.guardian.look]}", [
    "2:22 `skill.guardian.look` names no tool: the skill `guardian` brings no tools; the rule has no effect",
  ]],
  ["a tool of a skill that there is not", 'permissions: {deny: ["skill.nosuch.*"]}', [
    "2:22 `skill.nosuch.*` names no tool: there is no skill `nosuch`; the rule has no effect",
  ]],
  ["a tool of any skill", 'permissions: {deny: ["skill.*.drop"]}', [
    "2:22 `skill.*.drop` names no tool: no skill brings such a tool; the rule has no effect",
  ]],
  [
    "evidence of a gate",
    "skills: {forced: [{before: [skill.deploy.merge], evidence: [skill.deploy.traget]}]}",
    [
      "2:61 `skill.deploy.traget` names no tool: the skill `deploy` brings `skill.deploy.merge`, `skill.deploy.target`; " +
      "did you mean `skill.deploy.target`?",
    ],
  ],
];

describe("names that stand for nothing", () => {
  for (const [name, yaml, says] of rows) {
    test(name, () => {
      const policy = policyOf(yaml);
      const { catalog } = mergeCatalog(skills, policy.skills);
      const shown = unknownNames(policy, catalog).map((p) =>
        showProblem(p).replace(/^\/p\.yaml:(\d+:\d+): warning:/, "$1").replace(/ \[[a-z-]+\]$/, "")
      );
      assertEquals(shown, says);
    });
  }
});

describe("verdicts that the skill writes otherwise", () => {
  const verdicts:
    readonly (readonly [name: string, body: string, verdict: string, near: readonly string[]])[] = [
      ["the same word", "End with PASS or FAIL.", "[PASS, FAIL]", []],
      ["a misspelt word", "End with PASS or FAIL.", "[PASS, FIAL]", ["FAIL"]],
      ["the beginning of a word", "End with PASS or FAIL.", "[PAS]", ["PASS"]],
      ["another case, in quotes", "Report `pass` or `fail`.", "[PASS]", ["pass"]],
      ["a word of plain text is no outcome", "See that the tests pass.", "[PASS]", []],
      ["nothing near", "End with PASS or FAIL.", "[APPROVED]", []],
      ["a text without outcomes", "Look at it.", "[PASS]", []],
    ];
  for (const [name, body, verdict, near] of verdicts) {
    test(name, () => {
      const policy = policyOf(
        `skills: {forced: [{skill: guardian, before: ["shell(git merge *)"], evidence: [git_diff], verdict: ${verdict}}]}`,
      );
      const found = misspeltVerdicts(policy.gates, (skill) => skill === "guardian" ? body : undefined);
      const said = found.map((p) => /says `([^`]+)`/.exec(p.message)?.[1]);
      assertEquals(said, [...near]);
      assertEquals(misspeltVerdicts(policy.gates, () => undefined), []);
    });
  }
});
