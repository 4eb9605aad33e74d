// Everything that can be wrong with what a run is given: one clear message, the right exit code, an intact log or none.
import { describe, test } from "bun:test";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { execFileSync } from "node:child_process";
import { Buffer } from "node:buffer";
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { eventsOf, type Machine, soundLog, withMachine } from "../support/machine.ts";
import { binary } from "../support/runtimes.ts";

const script = "model: {provider: script, script: replies.yaml}\n";

/** Replies and the rest of a policy; the arguments that name it. */
function scripted(m: Machine, replies: string, rest = ""): readonly string[] {
  m.write("replies.yaml", replies);
  return ["--policy", m.write("policy.yaml", `version: 1\n${script}${rest}`)];
}

const done = "- text: done\n";

/** What is refused before anything ran: exit code, every line that must stand on stderr, and nothing on disk. */
async function refused(
  m: Machine,
  args: readonly string[],
  lines: readonly (string | RegExp)[],
  code = 2,
): Promise<void> {
  const ran = await m.writ(args);
  assertEquals([ran.code, ran.stdout], [code, ""], ran.stderr);
  for (const line of lines) {
    if (typeof line === "string") assertStringIncludes(ran.stderr, line);
    else assertMatch(ran.stderr, line);
  }
  assertEquals(/^\s+at /m.test(ran.stderr), false, `a trace:\n${ran.stderr}`);
  assertEquals(m.ids(), []);
}

describe("a policy", () => {
  const files: readonly {
    readonly name: string;
    readonly text: string | Uint8Array;
    readonly says: readonly string[];
  }[] = [
    { name: "that is empty", text: "", says: ["policy.yaml:1:1: error: the policy file is empty"] },
    {
      name: "that is not YAML",
      text: "version: 1\npermissions: {allow: [read_file\n",
      says: ["policy.yaml:3:1: error: ", "[invalid-yaml]"],
    },
    {
      name: "that is not text",
      text: new Uint8Array([0xff, 0xfe, 0, 1]),
      says: ["policy.yaml:1:1: error: the policy file is not UTF-8 text"],
    },
    { name: "that is a list", text: "- version: 1\n", says: ["policy.yaml:1:1: error: "] },
    {
      name: "that is too large",
      text: `version: 1\nname: ${"x".repeat(300_000)}\n`,
      says: ["policy.yaml:1:1: error: the policy file has 300", "expected at most 262144"],
    },
    { name: "without a version", text: script, says: ["policy.yaml:1:1: error: ", "`version`"] },
    {
      name: "from a newer version, of which nothing else is judged",
      text: `version: 2\n${script}tomorrow: true\n`,
      says: ["policy.yaml:1:10: error: `version` is `2`; expected `1`", "use a newer one"],
    },
    {
      name: "that needs a newer binary",
      text: `version: 1\nmin_version: 99.0.0\n${script}`,
      says: ["policy.yaml:2:14: error: `min_version` is `99.0.0`"],
    },
    {
      name: "with an unknown key: the nearest is named",
      text: `version: 1\n${script}permisions: {allow: [read_file]}\nlimtis: {}\n`,
      says: [
        "policy.yaml:3:1: error: unknown key `permisions`; did you mean `permissions`?",
        "policy.yaml:4:1: error: unknown key `limtis`; did you mean `limits`?",
      ],
    },
    {
      name: "with a key of a later version",
      text: `version: 1\n${script}output: {}\n`,
      says: ["policy.yaml:3:1: error: `output` is not in this version of writ"],
    },
    {
      name: "with several faults: all at once, each with its place",
      text: `version: 1
${script}limits: {iterations: many, tool_cals: 3}
permissions:
  deny: [{tool: read_file, path: "a", effekt: deny}]
  allow:
    - shell(git *
    - no_such_tool
sandbox: {mode: maybe}
`,
      says: [
        "policy.yaml:3:22: error: `limits.iterations` is `many`; expected a whole number above zero",
        "policy.yaml:3:28: error: unknown key `limits.tool_cals`; did you mean `tool_calls`?",
        "policy.yaml:5:39: error: ",
        "policy.yaml:9:17: error: `sandbox.mode` is `maybe`",
      ],
    },
    {
      name: "whose rules are wrong",
      text: `version: 1
${script}permissions:
  allow:
    - no_such_tool
    - shell(git *
`,
      says: ["policy.yaml:5:7: error: no tool `no_such_tool`", "policy.yaml:6:7: error: "],
    },
    {
      name: "whose rule does not fit its own examples",
      text: `version: 1
${script}permissions:
  allow:
    - {tool: shell, command: ["git status"], match: ["rm -rf x"]}
sandbox: {mode: "off"}
`,
      says: ["policy.yaml:5:", "rm -rf x"],
    },
    {
      name: "with a forced skill that is nowhere",
      text: `version: 1\n${script}skills: {forced: [{skill: nowhere, when: session}]}\n`,
      says: ["policy.yaml:3:27: error: the forced skill `nowhere` is not available"],
    },
    { name: "without a model", text: "version: 1\n", says: ["error: the policy names no model"] },
    {
      name: "with a script that is not there",
      text: "version: 1\nmodel: {provider: script, script: none.yaml}\n",
      says: ["error: there is no script `", "none.yaml`; "],
    },
  ];
  for (const { name, text, says } of files) {
    test(`${name} is refused`, async () => {
      await withMachine(async (m) => {
        m.write("replies.yaml", done);
        await refused(m, ["run", "--policy", m.write("policy.yaml", text), "go"], [
          ...says,
          "refused to start; nothing ran",
        ]);
      });
    });
  }

  const places: readonly (readonly [string, (m: Machine) => string, string])[] = [
    ["that is missing", (m) => join(m.top, "none.yaml"), "there is no policy file `"],
    ["that is a folder", (m) => m.top, "` is a folder; expected a policy file"],
    ["that is a pipe", (m) => {
      execFileSync("mkfifo", [join(m.top, "pipe.yaml")]);
      return join(m.top, "pipe.yaml");
    }, "` is not a regular file"],
    ["behind a link that leads nowhere", (m) => {
      symlinkSync("gone", join(m.top, "link.yaml"));
      return join(m.top, "link.yaml");
    }, "link.yaml` leads nowhere"],
    ["that cannot be read", (m) => {
      symlinkSync("loop.yaml", join(m.top, "loop.yaml"));
      return join(m.top, "loop.yaml");
    }, "loop.yaml` cannot be read (ELOOP)"],
  ];
  for (const [name, place, says] of places) {
    test(`${name} is refused, as an option and as a variable`, async () => {
      await withMachine(async (m) => {
        const path = place(m);
        await refused(m, ["run", "--policy", path, "go"], [says, "refused to start; nothing ran"]);
        const ran = await m.writ(["run", "go"], { env: { WRIT_POLICY: path } });
        assertEquals(ran.code, 2);
        assertStringIncludes(ran.stderr, says);
      });
    });
  }

  test.skipIf(process.getuid?.() === 0)("without the right to read it is refused", async () => {
    await withMachine(async (m) => {
      const path = m.write("policy.yaml", "version: 1\n");
      chmodSync(path, 0);
      await refused(m, ["run", "--policy", path, "go"], ["cannot be read (EACCES)"]);
    });
  });

  test("--json gives the same problems with their places", async () => {
    await withMachine(async (m) => {
      const file = m.write("policy.yaml", `version: 1\n${script}modl: 1\nlimits: {iterations: 0}\n`);
      const ran = await m.writ(["run", "--policy", file, "--json", "go"]);
      assertEquals([ran.code, ran.stderr], [2, ""]);
      const { resultVersion, ok, exit, reason, problems } = JSON.parse(ran.stdout);
      assertEquals({ resultVersion, ok, exit, reason }, {
        resultVersion: 1,
        ok: false,
        exit: 2,
        reason: "invalid",
      });
      const places = problems.map((p: { code: string; at: unknown }) => [p.code, p.at]);
      assertEquals(places, [
        ["unknown-key", { file, line: 3, col: 1 }],
        ["wrong-value", { file, line: 4, col: 22 }],
      ]);
    });
  });

  test("`writ policy check` finds the same and counts it", async () => {
    await withMachine(async (m) => {
      const file = m.write("policy.yaml", `version: 1\n${script}modl: 1\nlimits: {iterations: 0}\n`);
      const ran = await m.writ(["policy", "check", file]);
      assertEquals([ran.code, ran.stdout], [2, ""]);
      assertMatch(ran.stderr, /policy\.yaml:3:1: error: .*\n.*policy\.yaml:4:22: error: .*\n2 problems\n$/);
    });
  });
});

describe("a script", () => {
  const cases: readonly (readonly [string, string, readonly string[]])[] = [
    ["not a list", "text: hi\n", ["replies.yaml:1:1: error: "]],
    ["wrong keys", "- txt: hi\n- call: {a: 1, b: 2}\n", [
      "replies.yaml:1:3: error: ",
      "did you mean `text`?",
      "replies.yaml:2:",
    ]],
    ["not YAML", "- {text: hi\n", ["replies.yaml:2:1: error: "]],
  ];
  for (const [name, text, says] of cases) {
    test(`that is ${name} is refused with its place`, async () => {
      await withMachine(async (m) => await refused(m, ["run", ...scripted(m, text), "go"], says));
    });
  }
});

describe("a skill", () => {
  const good = "---\nname: good\ndescription: Is good.\n---\nDo good.\n";
  const broken = "---\nname: broken\ndescription: [\n---\nDo bad.\n";

  test("that is broken is an event and a warning; its neighbour works", async () => {
    await withMachine(async (m) => {
      m.write("config/writ/skills/good/SKILL.md", good);
      const path = m.write("config/writ/skills/broken/SKILL.md", broken);
      const args = scripted(m, "- call: {load_skill: {name: broken}}\n- text: done\n");
      const ran = await m.writ(["run", ...args, "/skill good"]);
      assertEquals([ran.code, ran.stdout], [0, "done\n"], ran.stderr);
      assertStringIncludes(ran.stderr, `skill not available: ${path}`);
      const events = await soundLog(m);
      assertEquals(eventsOf(events, "skill.registry_error").map((e) => e.data.path), [path]);
      assertEquals(eventsOf(events, "skill.loaded").map((e) => e.data.name), ["good"]);
      const [result] = eventsOf(events, "tool.completed");
      assertEquals([result?.data.ok, result?.data.code], [false, "unknown_skill"]);
      assertStringIncludes(
        result?.data.result ?? "",
        "available: commit, explain-code, good, mainline-guardian",
      );
      const list = await m.writ(["skill", "list", ...args]);
      assertEquals(list.code, 0);
      assertMatch(list.stdout, /^good +Is good\.\n +\(user, /m);
      assertStringIncludes(list.stderr, `error: ${path}: `);
    });
  });

  for (const [name, text] of [["missing", undefined], ["broken", broken]] as const) {
    test(`that is forced and ${name} refuses the start; \`/skill list\` still says why`, async () => {
      await withMachine(async (m) => {
        if (text !== undefined) m.write("config/writ/skills/broken/SKILL.md", text);
        const args = scripted(m, done, "skills: {forced: [{skill: broken, when: session}]}\n");
        const says = ["policy.yaml:3:27: error: the forced skill `broken` is not available"];
        if (text !== undefined) says.push("SKILL.md");
        await refused(m, ["run", ...args, "go"], says);
        await refused(m, ["policy", "check", ...args], says);
        const list = await m.writ(["skill", "list", ...args]);
        assertEquals([list.code, list.stderr.includes("broken/SKILL.md: ")], [0, text !== undefined]);
      });
    });
  }

  test("that is forced and too large refuses the start", async () => {
    await withMachine(async (m) => {
      m.write(
        "config/writ/skills/large/SKILL.md",
        `---\nname: large\ndescription: Is large.\n---\n${"many words ".repeat(2000)}\n`,
      );
      const args = scripted(
        m,
        done,
        "skills: {active_tokens: 100, forced: [{skill: large, when: session}]}\n",
      );
      await refused(m, ["run", ...args, "go"], [
        "policy.yaml:3:39: error: skill `large` has ",
        "skills.active_tokens",
      ]);
    });
  });

  const words: readonly (readonly [string, readonly string[], readonly string[]])[] = [
    ["/skill with a slip", ["/skill mainlin-guardian main"], [
      "no skill `mainlin-guardian`; did you mean mainline-guardian?",
    ]],
    ["/skill with an unknown name", ["/skill nope"], [
      "no skill `nope`; available: commit, explain-code, mainline-guardian",
    ]],
    ["--skill with an unknown name", ["--skill", "nope", "go"], ["no skill `nope`; available: "]],
    ["/skill clear", ["/skill clear"], ["`/skill clear` is for `writ chat`"]],
  ];
  for (const [name, args, says] of words) {
    test(`${name} is refused`, async () => {
      await withMachine(async (m) => await refused(m, ["run", ...scripted(m, done), ...args], says));
    });
  }

  test("`writ skill show` and `run` with an unknown name are refused", async () => {
    await withMachine(async (m) => {
      for (const verb of ["show", "run"]) {
        await refused(m, ["skill", verb, ...scripted(m, done), "nope"], ["no skill `nope`; available: "]);
      }
    });
  });
});

describe("a workspace", () => {
  const cases: readonly (readonly [string, (m: Machine) => string, string])[] = [
    [
      "that does not exist",
      (m) => join(m.top, "nowhere"),
      "nowhere` is no folder; give an existing one with -C",
    ],
    ["that is a file", (m) => m.write("file", ""), "file` is no folder"],
    ["that is home", (m) => m.home, "cannot be a workspace: too much lies in it"],
    ["that is the whole disk", () => "/", "`/` cannot be a workspace"],
  ];
  for (const [name, place, says] of cases) {
    test(`${name} is refused`, async () => {
      await withMachine(async (m) =>
        await refused(m, ["run", ...scripted(m, done), "-C", place(m), "go"], [says])
      );
    });
  }

  test("that is no git repository gives git_diff a clear result", async () => {
    await withMachine(async (m) => {
      mkdirSync(join(m.top, "plain"));
      m.write("plain/a.txt", "one\n");
      const args = scripted(m, "- calls: [{git_diff: {}}, {read_file: {path: a.txt}}]\n- text: done\n");
      const ran = await m.writ(["run", ...args, "-C", join(m.top, "plain"), "go"]);
      assertEquals([ran.code, ran.stdout], [0, "done\n"], ran.stderr);
      const results = eventsOf(await soundLog(m), "tool.completed").map((e) => [e.data.tool, e.data.code]);
      assertEquals(results, [["git_diff", "not_git"], ["read_file", undefined]]);
    });
  });

  test("that brings a policy needs an answer about trust", async () => {
    await withMachine(async (m) => {
      m.write("repo/.writ/policy.yaml", 'version: 1\npermissions: {deny: ["read_file(src/**)"]}\n');
      const args = scripted(m, "- call: {read_file: {path: src/a.txt}}\n- text: done\n");
      await refused(m, ["run", ...args, "go"], [
        "brings a policy",
        "pass `--trust` to apply it or `--untrusted`",
      ]);
      const codes = [];
      for (const answer of ["--trust", "--untrusted"]) {
        const ran = await m.writ(["run", ...args, answer, "go"]);
        assertEquals([ran.code, ran.stdout], [0, "done\n"], ran.stderr);
        codes.push(eventsOf(await soundLog(m), "tool.completed").map((e) => e.data.code));
      }
      assertEquals(codes, [["denied"], [undefined]]);
      await refusedFlags(m, args);
    });
  });
});

async function refusedFlags(m: Machine, args: readonly string[]): Promise<void> {
  const ran = await m.writ(["run", ...args, "--trust", "--untrusted", "go"]);
  assertEquals(ran.code, 2);
  assertStringIncludes(ran.stderr, "`--trust` and `--untrusted` exclude each other");
}

describe("a command line", () => {
  const cases: readonly (readonly [readonly string[], readonly string[]])[] = [
    [["runn", "go"], ["error: no command `runn`; did you mean `writ run`?"]],
    [["rnu", "go"], ["error: no command `rnu`; did you mean `writ run`?"]],
    [["frobnicate"], ["error: no command `frobnicate`; writ --help lists the commands"]],
    [["review this PR"], ['error: no command `review this PR`; to run a prompt: writ run "…"']],
    [["run", "--polcy", "x", "go"], ["error: unknown option '--polcy'", "--policy"]],
    [["run", "--policy"], ["error: option '--policy <file>' argument missing"]],
    [["session"], ["Usage: writ session"]],
    [["session", "lst"], ["unknown command 'lst'", "list"]],
    [["session", "show"], ["missing required argument 'id'"]],
    [["session", "show", "a", "b"], ["too many arguments"]],
    [["session", "show", "nope"], ["no session `nope` in "]],
    [["session", "show", "../../etc"], ["no session `../../etc` in "]],
    [["session", "verify", "nope"], ["no session `nope` in "]],
    [["session", "list", "--limit", "0"], ["expected a whole number above zero"]],
    [["policy", "chek"], ["unknown command 'chek'", "check"]],
    [["help", "polcy"], ["no topic `polcy`; did you mean `policy`?"]],
    [["help", "nothing"], ["no topic `nothing`; topics: policy, decisions, "]],
    [["explain"], ["name a tool, or give --message"]],
    [["explain", "shel", "ls"], ["no tool `shel`; tools: read_file, "]],
    [["explain", "read_file", "{path: a}"], ["start with `{` but are not a JSON object"]],
    [["explain", "read_file", '{"pth": "a"}'], ["arguments of read_file do not fit: "]],
    [["chat"], ["`writ chat` needs a terminal, also for standard error; `writ run` takes a prompt"]],
    [["demo", "--live"], ["`--live` needs ANTHROPIC_API_KEY in the environment and `--model NAME`"]],
    [["version", "now"], ["too many arguments"]],
  ];
  for (const [args, says] of cases) {
    test(`\`writ ${args.join(" ")}\` is refused`, async () => {
      await withMachine(async (m) => await refused(m, args, says));
    });
  }

  test("`writ` alone shows the commands and is no success", async () => {
    await withMachine(async (m) => {
      const [bare, help] = [await m.writ([]), await m.writ(["--help"])];
      assertEquals([bare.code, bare.stderr, help.code, help.stderr], [2, "", 0, ""]);
      assertEquals(bare.stdout, help.stdout);
      assertMatch(help.stdout, /^Usage: writ <command>/m);
    });
  });

  test("a session that is not there cannot be resumed or continued", async () => {
    await withMachine(async (m) => {
      const args = scripted(m, done);
      await refused(m, ["run", ...args, "--resume", "nope", "go"], ["no session `nope` in "]);
      await refused(m, ["run", ...args, "--continue", "go"], ["no session of "]);
      await refused(m, ["run", ...args, "--continue", "--resume", "x", "go"], [
        "option '--resume <id>' cannot be used with option '--continue'",
      ]);
    });
  });
});

describe("an environment", () => {
  test("without HOME, or with one that names no folder, leaves nothing in the current one", async () => {
    await withMachine(async (m) => {
      const args = scripted(m, done);
      for (const home of ["", "relative"]) {
        const ran = await m.writ(["run", ...args, "go"], { env: { HOME: home } });
        assertEquals([ran.code, ran.stdout], [0, "done\n"], ran.stderr);
      }
      const state = { XDG_STATE_HOME: join(m.top, "state") };
      const bare = await m.program([
        "env",
        "-i",
        `XDG_STATE_HOME=${state.XDG_STATE_HOME}`,
        binary,
        "run",
        ...args,
        "go",
      ]);
      assertEquals([bare.code, bare.stdout], [0, "done\n"], bare.stderr);
      assertEquals(m.git("status", "--short"), "");
    });
  });

  test("with WRIT_POLICY set to nothing is refused", async () => {
    await withMachine(async (m) => {
      const ran = await m.writ(["run", "go"], { env: { WRIT_POLICY: "" } });
      assertEquals([ran.code, m.ids()], [2, []]);
      assertStringIncludes(ran.stderr, "the environment variable `WRIT_POLICY` is set but empty");
    });
  });
});

describe("tool calls", () => {
  /** Results of the calls of one reply, after a run that must end well. */
  async function resultsOf(m: Machine, replies: string, rest = "", code = 0) {
    const ran = await m.writ(["run", ...scripted(m, replies, rest), "go"]);
    assertEquals([ran.code, ran.stdout], [code, "done\n"], ran.stderr);
    return eventsOf(await soundLog(m), "tool.completed").map((e) => e.data);
  }
  const allowFiles = 'permissions: {allow: ["edit_file(**)", "write_file(**)"]}\n';

  test("with arguments that do not fit, or to a tool that is not there, come back with what would", async () => {
    await withMachine(async (m) => {
      const results = await resultsOf(
        m,
        `
- calls:
    - {rm_rf: {path: /}}
    - {read_file: {}}
    - {read_file: {path: 3}}
    - {read_file: {path: src/a.txt, pth: x}}
    - {read_file: {path: src/none.txt}}
    - {read_file: {path: src}}
    - {edit_file: {path: src/a.txt, old: "nine", new: "ten"}}
    - {edit_file: {path: src/a.txt, old: "o", new: "0"}}
    - {complete_skill: {name: commit, outcome: PASS, summary: not loaded}}
    - {read_file: {path: src/a.txt}}
- text: done
`,
        allowFiles,
      );
      assertEquals(results.map((r) => [r.tool, r.code]), [
        ["rm_rf", "unknown_tool"],
        ["read_file", "invalid_arguments"],
        ["read_file", "invalid_arguments"],
        ["read_file", "invalid_arguments"],
        ["read_file", "not_found"],
        ["read_file", "is_folder"],
        ["edit_file", "no_match"],
        ["edit_file", "not_unique"],
        ["complete_skill", "not_active"],
        ["read_file", undefined],
      ]);
      assertStringIncludes(results[0]?.result ?? "", "no tool `rm_rf`; available: read_file, list_files, ");
      assertEquals(results[1]?.result, "arguments of read_file do not fit: `path` is missing");
      assertStringIncludes(results[3]?.result ?? "", "known: path, offset, limit");
      assertEquals(readFileSync(join(m.repo, "src/a.txt"), "utf8"), "one\ntwo\n");
    });
  });

  const odd = [
    "with blank.txt",
    "quo'te\".txt",
    "new\nline.txt",
    "ünï 日本語.txt",
    "-rf",
    "$(touch x)",
    "*.txt",
    "tab\t.txt",
  ];

  test("on names with blanks, quotes, newlines and Unicode read, find, change and show the right file", async () => {
    await withMachine(async (m) => {
      for (const name of odd) m.write(`repo/odd/${name}`, "the old word\n");
      m.git("add", "--all");
      m.git("commit", "--quiet", "-m", "odd");
      const calls = odd.flatMap((name) => [
        { read_file: { path: `odd/${name}` } },
        { edit_file: { path: `odd/${name}`, old: "old", new: "new" } },
      ]);
      const replies = JSON.stringify([
        { calls: [{ list_files: { path: "odd" } }, { search_text: { pattern: "old word" } }, ...calls] },
        { calls: [{ git_diff: {} }, { write_file: { path: 'odd/more/ö "\n.txt', content: "x" } }] },
        { text: "done" },
      ]);
      const results = await resultsOf(m, replies, allowFiles);
      assertEquals(results.filter((r) => !r.ok), []);
      const [list, found, ...rest] = results;
      assertEquals(list?.result.split("\n").length, odd.length);
      assertEquals(found?.result.split("\n").length, odd.length);
      const diff = rest.at(-2)?.result ?? "";
      assertEquals(diff.match(/^-the old word$/gm)?.length, odd.length);
      assertEquals(diff.match(/^\+the new word$/gm)?.length, odd.length);
      for (const name of odd) {
        assertEquals(readFileSync(join(m.repo, "odd", name), "utf8"), "the new word\n", name);
      }
      assertEquals(readFileSync(join(m.repo, 'odd/more/ö "\n.txt'), "utf8"), "x");
    });
  });

  test("to git_diff do not pass over a change in a file whose name is not UTF-8, and it is no evidence", async () => {
    await withMachine(async (m) => {
      const odd = Buffer.concat([Buffer.from(`${m.repo}/odd`), Buffer.from([0xff]), Buffer.from(".sh")]);
      writeFileSync(odd, "echo good\n");
      m.git("add", "--all");
      m.git("commit", "--quiet", "-m", "odd");
      writeFileSync(odd, "echo bad\n");
      const rest =
        "skills: {forced: [{id: g, before: [write_file], evidence: [git_diff]}]}\npermissions: {allow: [write_file]}\n";
      const replies =
        "- call: {git_diff: {}}\n- call: {write_file: {path: b.txt, content: x}}\n- text: done\n";
      for (const others of [0, 1]) {
        if (others > 0) m.write("repo/src/a.txt", "one\nthree\n");
        const [diff, write] = await resultsOf(m, replies, rest);
        assertStringIncludes(
          diff?.result ?? "",
          "changed but not shown, since their names are not UTF-8: odd\ufffd.sh; rename them to see them",
        );
        assertEquals([diff?.partial, diff?.result.includes("+three"), write?.code], [
          true,
          others > 0,
          "denied",
        ]);
      }
    });
  });

  test("on binary files, CRLF and a missing final newline keep what they do not change", async () => {
    await withMachine(async (m) => {
      m.write("repo/crlf.txt", "one\r\ntwo\r\n");
      m.write("repo/open.txt", "one\ntwo");
      m.write("repo/mark.txt", "\ufeffone\ntwo\n");
      m.write("repo/data.bin", new Uint8Array([0, 1, 2, 0x61]));
      m.write("repo/latin.txt", new Uint8Array([0x63, 0x61, 0x66, 0xe9, 0x0a]));
      const names = ["crlf.txt", "open.txt", "mark.txt", "data.bin", "latin.txt"];
      const replies = JSON.stringify([
        { calls: names.map((path) => ({ read_file: { path } })) },
        {
          calls: [
            ...names.slice(0, 3).map((path) => ({ edit_file: { path, old: "one\ntwo", new: "1\n2\n3" } })),
            { edit_file: { path: "data.bin", old: "a", new: "b" } },
            { edit_file: { path: "latin.txt", old: "caf", new: "b" } },
            { git_diff: {} },
            { search_text: { pattern: "a" } },
          ],
        },
        { text: "done" },
      ]);
      const results = await resultsOf(m, replies, allowFiles);
      assertEquals(results.map((r) => r.code ?? "ok"), [
        "ok",
        "ok",
        "ok",
        "binary",
        "ok",
        "ok",
        "ok",
        "ok",
        "binary",
        "not_utf8",
        "ok",
        "ok",
      ]);
      assertEquals(readFileSync(join(m.repo, "crlf.txt"), "utf8"), "1\r\n2\r\n3\r\n");
      assertEquals(readFileSync(join(m.repo, "open.txt"), "utf8"), "1\n2\n3");
      assertEquals(readFileSync(join(m.repo, "mark.txt"), "utf8"), "\ufeff1\n2\n3\n");
      assertEquals([...readFileSync(join(m.repo, "data.bin"))], [0, 1, 2, 0x61]);
    });
  });

  test("that lead out of the workspace are not made", async () => {
    await withMachine(async (m) => {
      m.write("outside.txt", "not yours\n");
      symlinkSync(m.top, join(m.repo, "out"));
      symlinkSync("loop", join(m.repo, "loop"));
      const replies = JSON.stringify([
        {
          calls: [
            { write_file: { path: "../outside.txt", content: "x" } },
            { write_file: { path: "out/outside.txt", content: "x" } },
            { write_file: { path: "", content: "x" } },
            { read_file: { path: "loop" } },
            { read_file: { path: "a\u0000b" } },
            { write_file: { path: ".git/hooks/pre-commit", content: "x" } },
          ],
        },
        { text: "done" },
      ]);
      const results = await resultsOf(m, replies, allowFiles, 5);
      assertEquals(results.map((r) => r.code), Array(6).fill("denied"));
      assertEquals(readFileSync(join(m.top, "outside.txt"), "utf8"), "not yours\n");
      assert(!m.git("status", "--short").includes("pre-commit"));
    });
  });

  test("that print control characters are shown harmless and returned as they are", async () => {
    await withMachine(async (m) => {
      const text = "red \u001b[31m, back \u202e, bell \u0007";
      m.write("repo/evil.txt", text);
      const replies = JSON.stringify([
        { text, calls: [{ read_file: { path: `evil.txt\u001b[2J` } }, { read_file: { path: "evil.txt" } }] },
        { text: "done" },
      ]);
      const ran = await m.writ(["run", ...scripted(m, replies), "go"]);
      assertEquals(ran.code, 0);
      assertEquals(/[\u001b\u202e\u0007]/.test(ran.stderr), false, JSON.stringify(ran.stderr));
      const results = eventsOf(await soundLog(m), "tool.completed");
      assertEquals(results[1]?.data.result, text);
      const shown = await m.writ(["session", "show", m.ids()[0] ?? ""]);
      assertEquals(/[\u001b\u202e\u0007]/.test(shown.stdout), false, JSON.stringify(shown.stdout));
    });
  });
});
