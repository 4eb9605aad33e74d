// What active skills bound, through the real loop: an upper limit, for as long as their bodies are in force.
import { afterAll, beforeAll, describe, test } from "bun:test";
import { assertEquals } from "@std/assert";
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Event } from "../../src/core/event.ts";
import { checkChain } from "../../src/store/chain.ts";
import { binary, runWith } from "../support/runtimes.ts";

let top = "";
beforeAll(() => {
  top = realpathSync(mkdtempSync(join(tmpdir(), "writ-bounds-")));
});
afterAll(() => rmSync(top, { recursive: true, force: true }));

type Call = { readonly [tool: string]: { readonly [argument: string]: unknown } };
const read: Call = { read_file: { path: "a.txt" } };
const list: Call = { list_files: {} };
const status: Call = { shell: { command: "git status" } };
const show: Call = { shell: { command: "git log" } };
const load = (name: string): Call => ({ load_skill: { name } });

const skill = (name: string, ...lines: readonly string[]) =>
  `---\nname: ${name}\ndescription: does ${name}\n${
    lines.map((l) => `${l}\n`).join("")
  }---\nBody of ${name}.\n`;
const skills = {
  reads: skill("reads", "allowed_tools: [read_file, list_files]"),
  lists: skill("lists", 'allowed_tools: [list_files, "shell(git status)"]'),
  gits: skill("gits", 'allowed-tools: "Bash(git:*)"'),
  open: skill("open"),
  patterned: skill("patterned", "allowed_tools: [read_file]", "trigger: {patterns: [please read]}"),
};

type Play = {
  readonly replies: readonly (readonly Call[] | string)[];
  readonly load?: readonly string[];
  readonly user?: readonly string[];
  readonly policy?: string;
};

function play({ replies, load = [], user = ["go"], policy = "" }: Play): readonly Event[] {
  const file = join(top, "scenario.yaml");
  writeFileSync(
    file,
    JSON.stringify({
      workspace: { git: true, files: { "a.txt": "one\n" } },
      policy: `version: 1
model: {provider: script}
sandbox: {mode: "off"}
permissions: {default: allow}
skills:
  sources: [builtin, machine, user]
${policy}`,
      skills,
      user,
      load,
      model: replies.map((reply) => typeof reply === "string" ? { text: reply } : { calls: reply }),
    }),
  );
  const ran = runWith([binary], ["__scenario", file]);
  const { events, damage } = checkChain(Buffer.from(ran.stdout));
  assertEquals([ran.stderr, damage], ["", undefined]);
  return events;
}

/** Each decision in order: `allow`, or the skills whose bounds refused it. */
function decisions(events: readonly Event[]): readonly string[] {
  return events.flatMap((event) => {
    if (event.type !== "permission.resolved") return [];
    const { decision, reason, causes } = event.data;
    if (decision === "allow") return ["allow"];
    const by = causes.flatMap((c) => c.by === "bound" ? [c.skill] : []);
    assertEquals(reason, "tool not in skill.allowed_tools");
    return [by.join(", ")];
  });
}

describe("bounds", () => {
  type Row = readonly [name: string, setup: Play, want: readonly string[]];
  const rows: readonly Row[] = [
    ["one skill", { load: ["reads"], replies: [[read, list, status], "done"] }, ["allow", "allow", "reads"]],
    [
      "several skills: only what all allow",
      { load: ["reads", "lists"], replies: [[read, list, status], "done"] },
      ["lists", "allow", "reads"],
    ],
    [
      "a union of what the message loaded",
      {
        load: ["reads", "lists"],
        replies: [[read, list, status, show], "done"],
        policy: "  combine_bounds: union\n",
      },
      ["allow", "allow", "allow", "reads + lists"],
    ],
    [
      "a union with what a pattern loaded",
      {
        load: ["lists"],
        user: ["please read"],
        replies: [[read, list, show], "done"],
        policy: "  combine_bounds: union\n",
      },
      ["allow", "allow", "lists + patterned"],
    ],
    [
      "what the model loads narrows a union",
      {
        load: ["reads"],
        replies: [[load("lists")], [read, list], "done"],
        policy: "  combine_bounds: union\n",
      },
      ["allow", "lists", "allow"],
    ],
    ["a specifier", { load: ["lists"], replies: [[status, show], "done"] }, ["allow", "lists"]],
    ["a specifier of another agent", { load: ["gits"], replies: [[status, show, list], "done"] }, [
      "allow",
      "allow",
      "gits",
    ]],
    [
      "a skill that declares none may read",
      { load: ["open"], replies: [[read, status, { shell: { command: "touch x" } }], "done"] },
      ["allow", "allow", "open"],
    ],
    [
      "the tools that are about skills are outside",
      {
        load: ["reads"],
        replies: [
          [load("open"), { complete_skill: { name: "reads", outcome: "OK", summary: "" } }],
          "done",
        ],
      },
      ["allow", "allow"],
    ],
    [
      "a skill that policy forces does not bound",
      { replies: [[status], "done"], policy: "  forced: [{skill: reads, when: session}]\n" },
      ["allow"],
    ],
    [
      "unless the policy says so",
      { replies: [[status], "done"], policy: "  forced: [{skill: reads, when: session, bounding: true}]\n" },
      ["reads"],
    ],
    [
      "a forced skill that the message names bounds until the turn ends",
      {
        user: ["/skill reads now", "and now"],
        replies: [[status], "done", [status], "done"],
        policy: "  forced: [{skill: reads, when: session}]\n",
      },
      ["reads", "allow"],
    ],
    [
      "a loaded skill bounds until the turn ends",
      { user: ["/skill reads now", "and now"], replies: [[status], "done", [status], "done"] },
      ["reads", "allow"],
    ],
    [
      "a skill of session scope bounds on",
      {
        user: ["/skill reads now", "and now"],
        replies: [[status], "done", [status], "done"],
        policy: "  scope: session\n",
      },
      ["reads", "reads"],
    ],
    [
      "a skill that the model loads bounds from then on",
      { replies: [[status], [load("reads"), status], [status], "done"] },
      ["allow", "allow", "reads", "reads"],
    ],
    [
      "a gate's own skill does not bound what it guards, and bounds the rest when it is loaded",
      {
        load: ["reads"],
        replies: [[read], [status, show], "done"],
        policy: '  forced: [{skill: reads, before: ["shell(git status)"], evidence: [read_file]}]\n',
      },
      ["allow", "allow", "reads"],
    ],
  ];
  for (const [name, setup, want] of rows) test(name, () => assertEquals(decisions(play(setup)), want));

  test("the refusal says what the skill allows", () => {
    const events = play({ load: ["reads"], replies: [[status], "done"] });
    const said = events.flatMap((e) => e.type === "tool.completed" ? [e.data.result] : []);
    assertEquals(said, [
      "denied: tool not in skill.allowed_tools\n- tool not in skill.allowed_tools (skill reads allows read_file, list_files)",
    ]);
  });

  test("a body is in the conversation exactly while its bound is in force", () => {
    const events = play({
      user: ["/skill reads now", "and now"],
      replies: [[status], "done", [status], "done"],
    });
    const unloaded = events.findIndex((e) => e.type === "skill.unloaded");
    const second = events.findLastIndex((e) => e.type === "user.message");
    const first = events.findIndex((e) => e.type === "turn.completed");
    assertEquals([unloaded < first, first < second], [true, true]);
    const tokens = events.flatMap((e) => e.type === "context.built" ? [e.data.tokens.skills > 0] : []);
    assertEquals(tokens, [true, true, false, false]);
  });
});
