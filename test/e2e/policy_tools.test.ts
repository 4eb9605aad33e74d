// `writ policy lint` and `writ policy diff` through the executable.
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { describe, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { type Machine, withMachine } from "../support/machine.ts";

const head = 'version: 1\nmodel: {provider: script, script: replies.yaml}\nsandbox: {mode: "off"}\n';

describe("writ policy lint", () => {
  const linted = `${head}permissions:
  deny:
    - {id: no-push, tool: shell, command: "git push *", match: [git push], no_match: [git pull]}
  allow:
    - {id: push, tool: shell, command: git push origin}
    - {id: any, tool: shell, command: "python3 *", match: [python3 x]}
    - {id: web, tool: fetch_url, host: a.example}
    - {id: docs, tool: edit_file, path: "docs/**"}
`;

  test("says what seldom is meant, with a code and a place, and ends with 0", async () => {
    await withMachine(async (m) => {
      const file = m.write("policy.yaml", linted);
      const ran = await m.writ(["policy", "lint", file]);
      assertEquals([ran.code, ran.stderr], [0, "4 findings\n"]);
      const lines = ran.stdout.trimEnd().split("\n");
      assertEquals(lines.map((l) => [/:(\d+:\d+): warning: /.exec(l)?.[1], /\[([a-z-]+)\]$/.exec(l)?.[1]]), [
        ["8:7", "shadowed-rule"],
        ["9:7", "broad-rule"],
        ["10:7", "dead-rule"],
        ["11:7", "no-examples"],
      ]);
      assertStringIncludes(
        lines[0] ?? "",
        `${file}:8:7: warning: allow rule \`shell(git push origin)\` (push) never counts: `,
      );
      assertStringIncludes(
        lines[0] ?? "",
        `deny rule \`shell(git push *)\` (no-push) at ${file}:6:7 covers all of it`,
      );
    });
  });

  test("ends with 2 under --strict, and gives JSON", async () => {
    await withMachine(async (m) => {
      const file = m.write("policy.yaml", linted);
      const strict = await m.writ(["policy", "lint", "--strict", "--json", file]);
      const result = JSON.parse(strict.stdout) as { ok: boolean; findings: { code: string; at: object }[] };
      assertEquals([strict.code, strict.stderr, result.ok], [2, "", false]);
      assertEquals(result.findings.map((f) => f.code), [
        "shadowed-rule",
        "broad-rule",
        "dead-rule",
        "no-examples",
      ]);
      assertEquals(result.findings[0]?.at, { file, line: 8, col: 7 });
      const clean = m.write("clean.yaml", `${head}permissions: {allow: [read_file, shell(git status)]}\n`);
      const none = await m.writ(["policy", "lint", "--strict", clean]);
      assertEquals([none.code, none.stdout, none.stderr], [0, "", "0 findings\n"]);
    });
  });

  test("looks at all layers that are in force, a wrapper's table and the project's rules", async () => {
    await withMachine(async (m) => {
      m.write("config/writ/policy.yaml", 'version: 1\npermissions: {delegate: ["shell(npm run *)"]}\n');
      m.write(
        "repo/.writ/policy.yaml",
        'version: 1\npermissions: {allow: ["shell(npm run build)", "shell(make)", "shell(timeout 5 *)"]}\n',
      );
      const ran = await m.writ(["policy", "lint"]);
      assertEquals(ran.code, 0);
      assertEquals(
        [...ran.stdout.matchAll(/\((project\.allow\[\d\])\).*\[([a-z-]+)\]$/gm)].map((x) => [x[1], x[2]]),
        [
          ["project.allow[1]", "not-delegated"],
          ["project.allow[2]", "not-delegated"],
        ],
      );
      const wide = m.write(
        "wide.yaml",
        'version: 1\npermissions: {allow: ["shell(timeout 5 *)", "shell(timeout *)"]}\n',
      );
      const broad = await m.writ(["policy", "lint", "--untrusted", wide]);
      assertMatch(broad.stdout, /`timeout \*` lets `timeout` run any other command/);
      assertMatch(broad.stdout, /\(user\.allow\[0\]\) is covered by .*\[redundant-rule\]/);
    });
  });

  test("is no way around the checks of a load", async () => {
    await withMachine(async (m) => {
      const ran = await m.writ(["policy", "lint", m.write("bad.yaml", "version: 1\nallow: []\n")]);
      assertEquals([ran.code, ran.stdout], [2, ""]);
      assertMatch(ran.stderr, /bad\.yaml:2:1: error: .*\[unknown-key\]/);
    });
  });
});

describe("writ policy diff", () => {
  const old = `${head}permissions:
  default: {network: ask}
  allow:
    - {id: git, tool: shell, command: "git *", match: [git status, git push], no_match: [git -c a=b push]}
    - write_file(src/**)
`;
  const next = old.replace(
    "  allow:\n",
    '  deny: [{id: no-push, tool: shell, command: "git push *"}]\n  allow:\n',
  )
    .replace("match: [git status, git push]", "match: [git status]")
    .replace("write_file(src/**)", "write_file(src/b.txt)");

  async function setup(m: Machine) {
    return [m.write("old.yaml", old), m.write("new.yaml", next)] as const;
  }

  test("decides the examples of both, and ends with 1 when one changes", async () => {
    await withMachine(async (m) => {
      const [a, b] = await setup(m);
      const ran = await m.writ(["policy", "diff", a, b]);
      assertEquals([ran.code, ran.stderr], [1, ""]);
      assertEquals(
        ran.stdout,
        [
          "shell git push",
          `  was  allow by rule git (shell(git *)) at ${a}:7:7`,
          `  now  deny by rule no-push (shell(git push *)) at ${b}:6:10`,
          `  from match at ${a}:7:68`,
          "shell git -c a=b push",
          "  was  ask by the user default for risk network at " + a + ":5:22",
          `  now  deny by rule no-push (shell(git push *)) at ${b}:6:10`,
          `  from no_match at ${a}:7:90`,
          "2 of 3 calls would be decided otherwise",
          "",
        ].join("\n"),
      );
      const same = await m.writ(["policy", "diff", a, a]);
      assertEquals([same.code, same.stdout], [0, "0 of 3 calls would be decided otherwise\n"]);
    });
  });

  test("decides the calls of a session, with what the session knew", async () => {
    await withMachine(async (m) => {
      const [a, b] = await setup(m);
      m.write(
        "replies.yaml",
        `- calls:
    - {write_file: {path: src/c.txt, content: x}}
    - {write_file: {path: src/c.txt, content: x}}
    - {write_file: {path: src/b.txt, content: x}}
    - {shell: {command: git status}}
    - {shell: {command: "git status; git push"}}
    - {nothing: {}}
- text: done
`,
      );
      await m.writ(["run", "--policy", a, "go"]);
      const id = m.ids()[0] ?? "";
      const ran = await m.writ(["policy", "diff", a, b, "--against", id, "--json"]);
      assertEquals([ran.code, ran.stderr], [1, ""]);
      type Side = { readonly effect: string; readonly reason: string };
      const result = JSON.parse(ran.stdout) as {
        readonly calls: number;
        readonly skipped: number;
        readonly changed: readonly { args: object; times: number; from: string; old: Side; new: Side }[];
      };
      assertEquals([result.calls, result.skipped], [5, 0]);
      assertEquals(result.changed.map((c) => [c.args, c.times, c.old.effect, c.new.effect]), [
        [{ path: "src/c.txt", content: "x" }, 2, "allow", "ask"],
        [{ command: "git status; git push" }, 1, "allow", "deny"],
      ]);
      assertMatch(result.changed[0]?.from ?? "", new RegExp(`^session ${id}, event \\d+$`));
      assertStringIncludes(result.changed[1]?.new.reason ?? "", "deny by rule no-push");
      // By file as well, and from a folder of one's own.
      const byFile = await m.writ(["policy", "diff", a, b, "--against", m.logPath(id)]);
      assertEquals([byFile.code, byFile.stdout.split("\n").at(-2)], [
        1,
        "2 of 5 calls would be decided otherwise",
      ]);
      const byDir = await m.writ(["policy", "diff", a, a, "--against", id, "--dir", m.sessions]);
      assertEquals([byDir.code, byDir.stdout], [0, "0 of 5 calls would be decided otherwise\n"]);
    });
  });

  test("a gate that was open in the session is open, a new one is shut", async () => {
    await withMachine(async (m) => {
      const gate = (id: string, evidence: string) =>
        `skills: {forced: [{id: ${id}, before: ["shell(git push *)"], evidence: [${evidence}]}]}\n`;
      const open = `${head}permissions: {allow: ["shell(git *)"]}\n`;
      const a = m.write("old.yaml", open + gate("g", "read_file"));
      const b = m.write("new.yaml", open + gate("h", "read_file"));
      m.write(
        "replies.yaml",
        "- call: {shell: {command: git push}}\n- call: {read_file: {path: src/a.txt}}\n- call: {shell: {command: git push}}\n- text: done\n",
      );
      await m.writ(["run", "--policy", a, "go"]);
      const id = m.ids()[0] ?? "";
      const same = await m.writ(["policy", "diff", a, a, "--against", id]);
      assertEquals([same.code, same.stdout], [0, "0 of 3 calls would be decided otherwise\n"]);
      const other = await m.writ(["policy", "diff", a, b, "--against", id]);
      assertEquals(other.code, 1);
      assertMatch(other.stdout, /^ {2}was {2}allow by rule /m);
      assertMatch(other.stdout, /^ {2}now {2}deny: gate: h at /m);
      assertMatch(other.stdout, /^1 of 3 calls/m);
    });
  });

  test("a tool that is no longer offered is a deny", async () => {
    await withMachine(async (m) => {
      const a = m.write(
        "old.yaml",
        `${head}permissions: {allow: [{tool: shell, command: ls, match: [ls]}]}\n`,
      );
      const b = m.write("new.yaml", `${head}tools: {enabled: [read_file]}\n`);
      const ran = await m.writ(["policy", "diff", a, b]);
      assertEquals(ran.code, 1);
      assertMatch(ran.stdout, /now {2}deny: unknown_tool: `shell` is not in `tools\.enabled`/);
    });
  });

  const refusals:
    readonly (readonly [name: string, args: (m: Machine) => readonly string[], says: RegExp])[] = [
      ["a policy with faults", (m) => ["old.yaml", m.write("bad.yaml", "version: 2\n")], /newer-version/],
      ["a policy that is not there", () => ["old.yaml", "gone.yaml"], /there is no policy file/],
      [
        "a session that is not there",
        () => ["old.yaml", "new.yaml", "--against", "gone"],
        /no session `gone`/,
      ],
    ];
  for (const [name, args, says] of refusals) {
    test(`refuses ${name} with exit code 2`, async () => {
      await withMachine(async (m) => {
        await setup(m);
        const ran = await m.writ(["policy", "diff", "-C", m.repo, ...args(m)], { cwd: m.top });
        assertEquals([ran.code, ran.stdout], [2, ""]);
        assertMatch(ran.stderr, says);
      });
    });
  }

  test("says so when there is nothing to decide, or a log is damaged or of elsewhere", async () => {
    await withMachine(async (m) => {
      const [a] = await setup(m);
      const bare = m.write("bare.yaml", head);
      const none = await m.writ(["policy", "diff", bare, bare]);
      assertEquals([none.code, none.stdout], [0, "0 of 0 calls would be decided otherwise\n"]);
      assertStringIncludes(none.stderr, "give a session with --against");
      m.write("replies.yaml", "- call: {shell: {command: git status}}\n- text: done\n");
      await m.writ(["run", "--policy", a, "go"]);
      const log = m.logPath();
      const whole = await m.writ(["policy", "diff", a, a, "--against", log, "-C", m.top]);
      assertMatch(whole.stderr, /is of the workspace .*\/repo; its calls are decided as if made in /);
      writeFileSync(log, "{}\n", { flag: "a" });
      const damaged = await m.writ(["policy", "diff", a, a, "--against", log]);
      assertEquals(damaged.code, 0);
      assertMatch(damaged.stderr, /log\.jsonl:\d+: .*; what follows is left out/);
      assert(damaged.stdout.startsWith("0 of 1 calls"));
    });
  });
});
