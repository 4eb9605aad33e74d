// All that is wrong with the files of a policy is said at once: faults of shape, of rules, of examples, and skills that are
// missing; and nothing that only follows from a part that was left out.
import { assertEquals } from "@std/assert";
import { afterEach, beforeEach, describe, test } from "bun:test";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { loadPolicy } from "../../src/load/load_policy.ts";

let top = "";
beforeEach(() => {
  top = realpathSync(mkdtempSync(join(tmpdir(), "writ-sound-")));
  for (const folder of ["etc", "home", "ws/.git"]) {
    mkdirSync(join(top, folder), { recursive: true, mode: 0o755 });
  }
});
afterEach(() => rmSync(top, { recursive: true, force: true }));

type Row = {
  readonly name: string;
  readonly yaml: string;
  /** A second file of the same layer. */
  readonly more?: string;
  /** Of the workspace, which is trusted. */
  readonly project?: string;
  /** `code line:col`, `ws` before those of the project's file. */
  readonly problems: readonly string[];
};

const rows: readonly Row[] = [
  {
    name: "faults of shape, of rules and of examples",
    yaml: `nmae: x
skills: {forced: [{skil: a, when: session}, {skill: gone, when: session}]}
permissions:
  allow: [read_fle, {tool: shell, comand: [x]}, "shell(git statu*s)"]
  deny: [{tool: shell, command: ["git *"], match: [ls]}]
`,
    problems: [
      "unknown-key 2:1",
      "unknown-key 3:20",
      "forced-skill-missing 3:45",
      "unknown-tool 5:11",
      "unknown-key 5:35",
      "bad-pattern 5:49",
      "example-fails 6:52",
    ],
  },
  {
    name: "places of what stands behind an entry that is left out",
    yaml: `permissions:
  deny:
    - {tool: shell, x: 1}
    - read_fle
    - {tool: 5}
    - write_fle
`,
    problems: ["unknown-key 4:21", "unknown-tool 5:7", "wrong-type 6:14", "unknown-tool 7:7"],
  },
  {
    name: "no set is missed where sets are faulty",
    yaml: `permissions:
  sets: {ours: 5}
  allow: ["shell(@ours)", read_fle]
`,
    problems: ["wrong-type 3:16", "unknown-tool 4:27"],
  },
  {
    name: "no set is missed where one is no set",
    yaml: `permissions:
  sets: {ours: ["@secrets"]}
  allow: ["shell(@ours)", read_fle]
`,
    problems: ["wrong-value 3:17", "unknown-tool 4:27"],
  },
  {
    name: "no skill is missed where sources are faulty",
    yaml: `skills: {sources: [{pth: /x}], forced: [{skill: gone, when: session}]}
`,
    problems: ["missing-key 2:20", "unknown-key 2:21"],
  },
  {
    name: "no example fails for options that are faulty",
    yaml: `permissions:
  risky_options: [5]
  allow: [{tool: shell, command: ["tool *"], no_match: [tool --exec]}, read_fle]
`,
    problems: ["wrong-type 3:19", "unknown-tool 4:72"],
  },
  {
    name: "settings that are judged against each other are left out together",
    yaml: `model: {context_tokens: many, max_output_tokens: 300000}
tools: {shell: {timeout: 2h, max_timeout: long}}
secrets: {redact: {patterns: ["("]}}
`,
    problems: ["wrong-type 2:25", "wrong-value 3:43", "bad-pattern 4:31"],
  },
  {
    name: "a gate that may be opened by a faulty rule",
    yaml: `skills: {forced: [{skill: here, before: [shell], verdict: [PASS]}]}
permissions:
  default: {read: deny}
  allow: [{tol: complete_skill}]
`,
    problems: ["missing-key 5:11", "unknown-key 5:12"],
  },
  {
    name: "no skill is missed in a workspace that may be another one",
    yaml: `workspace: {rot: /x}
permissions: {allow: [read_fle]}
skills: {forced: [{skill: gone, when: session}]}
`,
    problems: ["unknown-key 2:13", "unknown-tool 3:23"],
  },
  {
    name: "what is wrong once a faulty part is gone goes with it, and hides nothing else",
    yaml: `mcp_servers: {m: {command: [/bin/cat], tools: {query: reed}}}
limits: {cost_usd: 1}
model: {prices: {input: 3, output: 15}}
sandbox: {boxes: {push: {network: al}}}
skills: {boxes: {a: push, b: pusch}}
permissions:
  deny: [{tool: mcp.m.query, box: push}]
  allow: [read_fle]
`,
    problems: [
      "wrong-value 2:55",
      "missing-key 4:17",
      "missing-key 4:17",
      "wrong-value 5:35",
      "unknown-tool 9:11",
    ],
  },
  {
    name:
      "one file that is no YAML does not hide what is wrong with another, and nobody knows which skills it would bring",
    yaml: `permissions: {allow: [read_fle, "shell(@theirs)"]}
skills: {forced: [{skill: gone, when: session}]}
`,
    more: "limits: {",
    problems: ["invalid-yaml 2:10", "unknown-tool 2:23"],
  },
  {
    name: "faults of the user's policy do not hide those of a trusted project",
    yaml: `permisions: {}
`,
    project: `permissions: {allow: [read_fle]}
`,
    problems: ["unknown-key 2:1", "ws unknown-tool 2:23"],
  },
  {
    name: "nor does a project count that the policy never trusts",
    yaml: `workspace: {trust: untrusted}
permisions: {}
`,
    project: `permissions: {allow: [read_fle]}
`,
    problems: ["unknown-key 3:1"],
  },
  {
    name: "a project is told of all its faults, and of none that follow",
    yaml: `permissions: {delegate: ["shell(npm *)"], sets: {ours: [npm test]}}
`,
    project: `permissions: {alow: [], allow: ["shell(@ours)", read_fle]}
limits: {iterations: 999}
model: {name: x}
`,
    problems: ["ws unknown-key 2:15", "ws unknown-tool 2:49", "ws not-allowed-in-project 4:1"],
  },
];

describe("everything that is wrong is said at once", () => {
  for (const { name, yaml, more, project, problems } of rows) {
    test(name, async () => {
      const write = (path: string, text: string) => {
        mkdirSync(dirname(join(top, path)), { recursive: true });
        writeFileSync(join(top, path), `version: 1\n${text}`);
      };
      write("home/.config/writ/policy.yaml", yaml);
      if (more !== undefined) write("home/.config/writ/policy.d/more.yaml", more);
      if (project !== undefined) write("ws/.writ/policy.yaml", project);
      const loaded = await loadPolicy({
        at: {
          env: {},
          platform: "linux-x64",
          cwd: join(top, "ws"),
          home: join(top, "home"),
          machineFolder: join(top, "etc"),
          machineOwner: { uid: process.getuid?.() ?? 0, top },
        },
        version: "0.1.0",
        policies: [],
        trustFlag: "trusted",
        matchesExample: () => (rule, example) =>
          (rule.command ?? []).length > 0 && /^(git|tool) /.test(example),
        further: (policy) =>
          policy.skills.forced.filter((f) => f.skill === "gone").map((f) => ({
            code: "forced-skill-missing",
            severity: "error",
            message: "gone",
            at: f.at,
          })),
      });
      assertEquals(loaded.ok, false);
      const shown = loaded.problems.map(({ code, at }) =>
        `${at?.file.startsWith(join(top, "ws")) ? "ws " : ""}${code} ${at?.line}:${at?.col}`
      );
      assertEquals(shown, problems);
    });
  }
});
