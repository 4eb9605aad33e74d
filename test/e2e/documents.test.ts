// The documents say what is true: every command in them runs, every policy in them loads, every example works.
import { describe, test } from "bun:test";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { exitCodes, exitMeanings, type ExitName, stopTable } from "../../src/core/outcome.ts";
import { helpTopics } from "../../src/cli/help_topics.ts";
import { verbs } from "../../src/cli/verbs.ts";
import { openTokens, readTokens } from "../../src/http/tokens.ts";
import { type Ended, eventsOf, type Machine, soundLog, withMachine } from "../support/machine.ts";
import { binary, root } from "../support/runtimes.ts";

const documents = [
  "README.md",
  "CONTRIBUTING.md",
  "ARCHITECTURE.md",
  "SECURITY.md",
  "config/README.md",
  ...readdirSync(join(root, "src/cli/help")).map((name) => `src/cli/help/${name}`),
];
const textOf = (name: string) => readFileSync(join(root, name), "utf8");

type Fence = { readonly document: string; readonly language: string; readonly text: string };
const fences: readonly Fence[] = documents.flatMap((document) =>
  [...textOf(document).matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map((match) => ({
    document,
    language: match[1] ?? "",
    text: match[2] ?? "",
  }))
);

/** What a document shows as a command: lines of shell blocks, and code spans that begin with `writ`, `sh` or `bun`. */
const commands: readonly string[] = [
  ...new Set([
    ...fences.filter((f) => f.language === "sh").flatMap((f) => f.text.trim().split("\n")),
    ...documents.flatMap((document) =>
      [
        ...textOf(document).replace(/^```[\s\S]*?^```$/gm, "").matchAll(
          /`((?:writ |(?:sh|bun) scripts\/)[^`]+)`/g,
        ),
      ].map((m) => (m[1] ?? "").replace(/\s+/g, " ").replaceAll("\\|", "|"))
    ),
  ]),
];

const laptop = ["--policy", join(root, "config/examples/laptop.yaml")];
const review = ["--script", join(root, "config/examples/review.script.yaml")];

type How =
  | { readonly run: (m: Machine) => Promise<Ended>; readonly code?: number; readonly says?: string }
  | { readonly why: string };

/** How each command of the documents is run here, or why it is not. A command that is not in the table fails. */
const table: { readonly [command: string]: How } = {
  "sh scripts/quickstart": {
    why: "installs packages and builds; its two parts are run by the gate: the build, and `writ demo` below",
  },
  "sh scripts/test": { why: "is the gate that runs this" },
  "sh scripts/test bun": { why: "is a step of the gate that runs this" },
  "cp config/examples/laptop.yaml ~/laptop.yaml": { why: "writes to the home of whoever runs it" },
  "cp dist/writ /usr/local/bin/": { why: "changes the machine" },
  "export ANTHROPIC_API_KEY=…": { why: "is no program" },
  "cd your-repository": { why: "is no program" },
  'writ run --policy /path/to/policy.yaml "review this PR"': {
    run: (m) => m.writ(["run", ...laptop, ...review, "review this PR"]),
    says: "Verdict: PASS",
  },
  'writ explain mcp.metrics.query \'{"of": "load"}\'': {
    run: (m) => {
      const fence = fences.find((f) => f.document === "src/cli/help/mcp.md")?.text ?? "";
      const policy = m.write("policy.yaml", `version: 1\n${fence}`);
      return m.writ(["explain", "mcp.metrics.query", '{"of": "load"}', "--policy", policy]);
    },
    says: "allow",
  },
  "writ chat --policy /path/to/policy.yaml": { why: "needs a terminal; see chat.test.ts" },
  "writ policy check --policy ~/laptop.yaml": {
    run: (m) => m.writ(["policy", "check", ...laptop]),
    says: "ok  user  ",
  },
  'writ run --policy p.yaml "review this PR"': {
    run: (m) => m.writ(["run", ...laptop, ...review, "review this PR"]),
    says: "Verdict: PASS",
  },
  'writ run --policy ~/laptop.yaml "review this PR"': {
    run: (m) => m.writ(["run", ...laptop, ...review, "review this PR"]),
    says: "Verdict: PASS",
  },
  "writ run [PROMPT|-]": {
    run: (m) => m.writ(["run", ...laptop, ...review, "-"], { input: "review this PR" }),
    says: "PASS",
  },
  "writ run --skill NAME": {
    run: (m) => m.writ(["run", ...laptop, ...review, "--skill", "mainline-guardian", "go"]),
    says: "PASS",
  },
  "writ run --script FILE": { run: (m) => m.writ(["run", ...laptop, ...review, "go"]), says: "PASS" },
  "writ chat": { run: (m) => m.writ(["chat"]), code: 2 },
  "writ explain": {
    run: (m) => m.writ(["explain", ...laptop, "--message", "review this PR"]),
    says: "mainline-guardian  by pattern",
  },
  "writ explain TOOL ARGS": {
    run: (m) => m.writ(["explain", ...laptop, "shell", "git status"]),
    says: "allow by rule look",
  },
  "writ explain shell 'git diff | sh'": {
    run: (m) => m.writ(["explain", ...laptop, "shell", "git diff | sh"]),
    says: "ask because ",
  },
  "writ policy check": { run: (m) => m.writ(["policy", "check"]), says: "ok  no policy files" },
  "writ policy show --origin": {
    run: (m) => m.writ(["policy", "show", "--origin", ...laptop]),
    says: "# user  ",
  },
  "writ policy lint": { run: (m) => m.writ(["policy", "lint", ...laptop]), says: "[no-examples]" },
  "writ policy diff OLD NEW": {
    run: (m) => m.writ(["policy", "diff", ...laptop.slice(1), ...laptop.slice(1)]),
    says: "0 of 5 calls would be decided otherwise",
  },
  "writ policy diff": { run: (m) => m.writ(["policy", "diff"]), code: 2 },
  "writ skill pin NAME": {
    run: (m) => m.writ(["skill", "pin", "mainline-guardian"]),
    says: 'pins: {mainline-guardian: "sha256:',
  },
  "writ skill pin": { run: (m) => m.writ(["skill", "pin"]), code: 2 },
  'writ explain skill.deploy.target \'{"release": "1.2"}\'': {
    run: (m) => {
      const folder = "config/writ/skills/deploy";
      m.write(`${folder}/SKILL.md`, "---\nname: deploy\ndescription: Deploys.\n---\nBody\n");
      const tools = fences.find((f) => f.language === "json" && f.text.includes("target.sh"))?.text ?? "";
      m.write(`${folder}/target.sh`, "");
      m.write(`${folder}/tools.json`, tools);
      return m.writ(["explain", "skill.deploy.target", '{"release": "1.2"}']);
    },
    says: "ask by the builtin default for risk network",
  },
  "writ skill find WORDS": { run: (m) => m.writ(["skill", "find", "commit"]), says: "commit  " },
  'writ skill trigger "MESSAGE"': {
    run: (m) => m.writ(["skill", "trigger", "hello"]),
    says: "no skill would be loaded before the first request",
  },
  "writ explain --message": { run: (m) => m.writ(["explain", "--message"]), code: 2 },
  "writ skill lint PATH…": {
    run: (m) => m.writ(["skill", "lint", m.write("s/SKILL.md", "---\nname: s\ndescription: d\n---\nBody\n")]),
    code: 0,
  },
  "writ skill lint": { run: (m) => m.writ(["skill", "lint"]), code: 2 },
  "writ skill list": { run: (m) => m.writ(["skill", "list"]), says: "mainline-guardian" },
  "writ run": {
    run: (m) => m.writ(["run", ...laptop, ...review], { input: "review this PR" }),
    says: "PASS",
  },
  "writ session verify": {
    run: async (m) => await afterRun(m, () => m.writ(["session", "verify"])),
    says: "consistent",
  },
  "writ session list": { run: (m) => m.writ(["session", "list"]) },
  "writ session list --forks": { run: (m) => m.writ(["session", "list", "--forks"]) },
  "writ session show ID": {
    run: async (m) => await afterRun(m, (id) => m.writ(["session", "show", id])),
    says: "turn ended: final",
  },
  "writ session show ID --events": {
    run: async (m) => await afterRun(m, (id) => m.writ(["session", "show", id, "--events"])),
    says: '"session.started"',
  },
  "writ session resume ID": {
    run: async (m) =>
      await afterRun(m, (id) => m.writ(["session", "resume", id, ...laptop, ...review, "again"])),
    says: "PASS",
  },
  "writ run --resume ID": {
    run: async (m) =>
      await afterRun(m, (id) => m.writ(["run", "--resume", id, ...laptop, ...review, "again"])),
    says: "PASS",
  },
  "writ session repair ID": {
    run: async (m) => await afterRun(m, (id) => m.writ(["session", "repair", id])),
    says: "holds; nothing was done",
  },
  "writ session export ID": {
    run: async (m) => await afterRun(m, (id) => m.writ(["session", "export", id])),
    says: '"session.started"',
  },
  "writ session verify --dir FOLDER": {
    run: async (m) => await afterRun(m, () => m.writ(["session", "verify", "--dir", m.sessions])),
    says: "consistent",
  },
  "writ session prune": {
    run: async (m) => await afterRun(m, () => m.writ(["session", "prune", "--older-than", "90d"])),
  },
  "writ session prune --yes": {
    run: async (m) => await afterRun(m, () => m.writ(["session", "prune", "--yes", "--older-than", "90d"])),
  },
  "writ demo": { run: (m) => m.writ(["demo"]), says: "log verified: consistent" },
  "writ __sandbox": { why: "is how Writ starts itself; see sandbox.test.ts" },
  "bun scripts/bench/sandbox.ts": { why: "measures, which takes a quiet machine" },
  ...Object.fromEntries(
    ["", " kill", " disk", " clock", " fuzz", " pattern", " chaos", " simulation", " soak"].map((part) => [
      `sh scripts/faults${part}`,
      { why: "is the last step of the gate that runs this, or a part of it" },
    ]),
  ),
  "writ __scenario FILE": {
    run: (m) => m.writ(["__scenario", join(root, "test/golden/forced/scenario.yaml")]),
    says: '"session.started"',
  },
  ...Object.fromEntries(httpCommands().map((c) => [c, { why: "is a step of the session over HTTP below" }])),
  "writ policy show --json": { run: (m) => m.writ(["policy", "show", "--json"]), says: '"revision"' },
  "writ serve": { why: "ends only when it is told to; see the session over HTTP below" },
  "writ help [TOPIC]": { run: (m) => m.writ(["help"]), says: "Topics (writ help TOPIC):" },
  ...Object.fromEntries(
    helpTopics.map((
      { name },
    ) => [`writ help ${name}`, { run: (m: Machine) => m.writ(["help", name]), says: "# " }]),
  ),
};

function httpCommands(): readonly string[] {
  return fences.filter((f) => f.document === "src/cli/help/http.md" && f.language === "sh")
    .flatMap((f) => f.text.trim().split("\n"));
}

async function afterRun(m: Machine, use: (id: string) => Promise<Ended>): Promise<Ended> {
  assertEquals((await m.writ(["run", ...laptop, ...review, "review this PR"])).code, 0);
  return await use(m.ids()[0] ?? "");
}

describe("a command in the documents", () => {
  for (const command of commands) {
    const how = table[command];
    if (how !== undefined && "why" in how) continue;
    test(`\`${command}\` does what it should`, async () => {
      if (how === undefined) {
        throw new Error(`\`${command}\` stands in no table: add how it is run, or why it is not`);
      }
      await withMachine(async (m) => {
        const ran = await how.run(m);
        assertEquals(ran.code, how.code ?? 0, ran.stderr);
        assertStringIncludes(ran.stdout, how.says ?? "");
      });
    });
  }

  test("stands in the table only as long as it stands in a document", () => {
    assertEquals(Object.keys(table).filter((c) => !commands.includes(c) && !c.startsWith("writ help ")), []);
  });

  test("names a file of tests that there is", () => {
    const named = [...textOf("SECURITY.md").matchAll(/\btest\/[\w/]+\.test\.ts\b/g)].map(([path]) => path);
    assertEquals([named.length > 20, named.filter((path) => !existsSync(join(root, path)))], [true, []]);
  });

  test("names a verb and an option that there are, in messages of the program as well", async () => {
    const names = verbs.map((v) => v.name);
    const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).filter((f) =>
      f.endsWith(".ts") || f.endsWith(".md")
    );
    const named = [...documents, ...sources.map((f) => `src/${f}`)].flatMap((document) =>
      [...textOf(document).matchAll(/`writ ([a-z]+)\b/g)].map((m) => ({
        document,
        verb: m[1] ?? "",
      }))
    );
    assert(named.length > 20);
    assertEquals(named.filter(({ verb }) => !names.includes(verb)), []);
    await withMachine(async (m) => {
      const help = (await m.writ(["run", "--help"])).stdout;
      const options = documents.flatMap((d) =>
        [...textOf(d).matchAll(/`writ run (--[a-z-]+)/g)].map((o) => o[1] ?? "")
      );
      assertEquals(options.filter((o) => !help.includes(o)), []);
    });
  });
});

describe("`writ help http`", () => {
  const [
    start = "",
    define = "",
    create = "",
    submit = "",
    events = "",
    list = "",
    answer = "",
    secret = "",
    line = "",
  ] = httpCommands();
  // Paths in the document are those of somebody who has set nothing.
  const env = { XDG_STATE_HOME: "" };

  test("takes a newcomer with curl through a session with an approval", async () => {
    await withMachine(async (m) => {
      m.write(
        "replies.yaml",
        '- {text: one folder}\n- call: {write_file: {path: new.txt, content: "x"}}\n- {text: written}\n',
      );
      m.write("home/policy.yaml", "version: 1\nmodel: {provider: script, script: ../replies.yaml}\n");
      const server = m.start(start.replace("~", m.home).split(" ").slice(1), { env });
      await server.until("stderr", "listening at ");
      const sh = (text: string) => m.startProgram(["bash", "-c", `${define}\n${text}`], { env });
      const json = async (text: string) => JSON.parse((await sh(text).ended).stdout);
      const { id, workspace } = await json(create);
      const first = await json(submit.replace("ID", id));
      assertEquals([first.status, first.output], ["completed", { text: "one folder" }]);
      const second = sh(submit.replace("ID", id));
      let items: { id: string; tool: string }[] = [];
      while (items.length === 0) ({ items } = await json(list));
      assertEquals(items.map((p) => p.tool), ["write_file"]);
      const answered = await json(answer.replace("ID", id).replace("/P ", `/${items[0]?.id} `));
      assertEquals([answered.status, answered.decision], ["resolved", "allow"]);
      assertEquals(JSON.parse((await second.ended).stdout).output, { text: "written" });
      assertEquals(readFileSync(join(workspace, "new.txt"), "utf8"), "x");
      const stream = sh(events.replace("ID", id));
      await stream.until("stdout", /event: turn\.completed[\s\S]*event: turn\.completed/);
      server.kill("SIGTERM");
      assertEquals((await server.ended).code, 0);
      assertStringIncludes((await stream.ended).stdout, "event: writ.draining");
    });
  });

  test("shows how a line of the token file is made", async () => {
    await withMachine(async (m) => {
      const made = await m.program(["bash", "-c", `${secret}\n${line}\nprintf %s "$secret" >secret`]);
      const file = m.write("tokens", made.stdout);
      const { credentials, problems } = readTokens(file);
      assertEquals([problems, credentials.length, credentials[0]?.caller.name], [[], 1, "ci"]);
      const found = openTokens(file, () => {}).find(readFileSync(join(m.repo, "secret"), "utf8"));
      assertEquals(found, credentials[0]);
    });
  });
});

function skillNamed(name: string): string {
  return fences.find((f) => f.text.startsWith(`---\nname: ${name}\n`))?.text ?? "";
}

describe("a policy in the documents", () => {
  const policies = fences.filter((f) => f.language === "yaml" && /^version: 1$/m.test(f.text));
  const others = fences.filter((f) => f.language === "yaml" && !policies.includes(f));

  test("is found", () => assertEquals([policies.length > 1, others.length > 1], [true, true]));

  for (const { document, text } of policies) {
    test(`of ${document} loads without a warning`, async () => {
      await withMachine(async (m) => {
        m.write("skills/release-notes/SKILL.md", skillNamed("release-notes"));
        const ran = await m.writ(["policy", "check", m.write("policy.yaml", text)]);
        assertEquals([ran.code, ran.stderr], [0, ""]);
      });
    });
  }

  for (const { document, text } of others) {
    test(`in part, of ${document}, loads in its place`, async () => {
      await withMachine(async (m) => {
        if (/^- (text|calls?):/m.test(text)) {
          m.write("repo/a.txt", "a\n");
          m.write("repo/b.txt", "b\n");
          const ran = await m.writ(["run", ...laptop, "--script", m.write("replies.yaml", text), "go"]);
          assertEquals([ran.code, ran.stdout], [0, "Done.\n"], ran.stderr);
          return;
        }
        const part = /^- /.test(text) ? `permissions:\n  deny:\n${text.replace(/^(?=.)/gm, "    ")}` : text;
        m.write("config/writ/skills/merge-review/SKILL.md", skillNamed("merge-review"));
        const policy = m.write("policy.yaml", `version: 1\nsandbox: {mode: "off"}\n${part}`);
        const ran = await m.writ(["policy", "check", policy]);
        // A part speaks of skills that its reader has.
        const told = ran.stderr.split("\n").filter((line) => !/ \[(unknown-skill|absent-tool)\]$/.test(line));
        assertEquals([ran.code, told], [0, [""]]);
      });
    });
  }

  test("names keys of which none is unknown", async () => {
    const keys = [...textOf("src/cli/help/policy.md").matchAll(/^\| `([a-z_.]+)` \|/gm)].map((k) =>
      k[1] ?? ""
    );
    assert(keys.length > 50);
    const checked = await withMachine(async (m) => {
      const unknown: string[] = [];
      for (const key of keys.filter((k) => k !== "version")) {
        const path = key.split(".");
        const text = path.map((part, depth) => `${"  ".repeat(depth)}${part}:`).join("\n");
        const ran = await m.writ(["policy", "check", m.write("policy.yaml", `version: 1\n${text} 0\n`)]);
        if (ran.stderr.includes("[unknown-key]")) unknown.push(key);
      }
      return unknown;
    });
    assertEquals(checked, []);
  });
});

test("the skills in the documents load", async () => {
  const found = fences.filter((f) => f.language === "markdown" && f.text.startsWith("---\n"));
  assertEquals(found.map((f) => f.document).sort(), [
    "src/cli/help/gates.md",
    "src/cli/help/skills.md",
    "src/cli/help/skills.md",
  ]);
  await withMachine(async (m) => {
    m.write("config/writ/skills/release-notes/SKILL.md", skillNamed("release-notes"));
    const ran = await m.writ(["skill", "show", "release-notes"]);
    assertEquals([ran.code, ran.stderr], [0, ""]);
    m.write("config/writ/skills/second-opinion/SKILL.md", skillNamed("second-opinion"));
    const fork = JSON.parse((await m.writ(["skill", "show", "second-opinion", "--json"])).stdout);
    assertEquals([fork.mode, fork.history, fork.model], ["fork", "summary", "fast"]);
    const hit = await m.writ(["explain", "--message", "write the release notes"]);
    assertStringIncludes(hit.stdout, "release-notes  by pattern");
  });
});

describe("an example policy", () => {
  const folder = join(root, "config/examples");
  const examples = readdirSync(folder).filter((f) => f.endsWith(".yaml") && !f.endsWith(".script.yaml"));

  test("is described, and what is described is there", () => {
    const named = [...textOf("config/README.md").matchAll(/`examples\/([\w.-]+)`/g)].map((m) => m[1] ?? "");
    assertEquals([...new Set(named)].sort(), readdirSync(folder).filter((f) => f.endsWith(".yaml")).sort());
  });

  for (const name of examples) {
    test(`${name} is clean and runs`, async () => {
      await withMachine(async (m) => {
        const policy = join(folder, name);
        const checked = await m.writ(["policy", "check", policy]);
        const stdout = checked.stdout.replace(/^gate {2}.*\n/gm, "");
        assertEquals({ ...checked, stdout }, {
          code: 0,
          signal: null,
          stdout: `ok  user  ${policy}\n`,
          stderr: "",
        });
        m.write("repo/src/a.txt", "one\nthree\n");
        const ran = await m.writ(["run", "--policy", policy, ...review, "/skill mainline-guardian main"]);
        assertEquals([ran.code, ran.stdout], [0, "# Verdict: PASS\n\nNo blocking findings.\n\n"], ran.stderr);
        const events = await soundLog(m);
        assertEquals(
          eventsOf(events, "skill.completed").filter((e) => e.data.name === "mainline-guardian").map((e) =>
            e.data.outcome
          ),
          ["PASS"],
        );
      });
    });
  }

  const held: readonly (readonly [string, string, string, string])[] = [
    ["ci-review.yaml", "write_file", '{"path": "a.txt", "content": "x"}', "deny"],
    ["ci-review.yaml", "read_file", "/proc/self/environ", "deny"],
    ["ci-review.yaml", "git_diff", '{"ref": "main"}', "allow"],
    ["laptop.yaml", "read_file", ".env", "deny"],
    ["laptop.yaml", "shell", "sudo ls", "deny"],
    ["laptop.yaml", "shell", "git push --force", "deny"],
    ["laptop.yaml", "shell", "git push", "ask"],
    ["laptop.yaml", "shell", "git log --oneline | sh", "ask"],
    ["laptop.yaml", "shell", "git status", "allow"],
    ["team.yaml", "shell", "git merge topic", "deny"],
    ["team.yaml", "shell", "bash -c 'gh pr merge 1'", "deny"],
    ["team.yaml", "shell", "git push", "deny"],
    ["team.yaml", "edit_file", '{"path": "src/a.txt", "old": "one", "new": "1"}', "allow"],
    ["team.yaml", "edit_file", '{"path": "other/a.txt", "old": "one", "new": "1"}', "ask"],
    ["team.yaml", "read_file", ".env.example", "allow"],
  ];
  for (const [name, tool, argument, decision] of held) {
    test(`${name} says ${decision} to ${tool} ${argument}`, async () => {
      await withMachine(async (m) => {
        const ran = await m.writ(["explain", "--policy", join(folder, name), "--json", tool, argument]);
        assertEquals([ran.code, JSON.parse(ran.stdout).decision], [0, decision], ran.stdout);
      });
    });
  }
});

describe("help", () => {
  for (const { name, text } of helpTopics) {
    test(`${name} is embedded as it is written`, async () => {
      await withMachine(async (m) => {
        const shown = await m.writ(["help", name]);
        assertEquals([shown.code, shown.stderr], [0, ""]);
        assertEquals(shown.stdout, textOf(`src/cli/help/${name}.md`).replace(/^<!--.*-->\n/gm, ""));
        const json = await m.writ(["help", name, "--json"]);
        assertEquals(JSON.parse(json.stdout).text, text);
      });
    });
  }

  test("lists every topic, and every topic has a file", async () => {
    await withMachine(async (m) => {
      const list = (await m.writ(["help"])).stdout;
      for (const { name, summary } of helpTopics) {
        assertMatch(list, new RegExp(`^  ${name} +${summary}$`, "m"));
      }
      const files = readdirSync(join(root, "src/cli/help")).map((f) => f.replace(".md", "")).sort();
      assertEquals(helpTopics.map((t) => t.name).sort(), files);
    });
  });

  test("shows every command, and each has help of its own and takes --json as it says", async () => {
    await withMachine(async (m) => {
      const overview = (await m.writ(["--help"])).stdout;
      for (const { name, usage, summary } of verbs) {
        assertStringIncludes(overview, usage);
        assertStringIncludes(overview, summary);
        const own = await m.writ([name, "--help"]);
        assertEquals([own.code, own.stderr], [0, ""]);
        assertStringIncludes(own.stdout, `Usage: writ ${name}`);
        const actions = [...own.stdout.matchAll(/^ {2}([a-z]+) (?:\[|<)/gm)].map((a) => a[1] ?? "").filter((
          a,
        ) => a !== "help");
        for (const action of actions.length > 0 ? actions : [undefined]) {
          const help = await m.writ([name, ...(action === undefined ? [] : [action]), "--help"]);
          // A chat has no result that a script could want.
          const json = name !== "chat";
          assertEquals([help.code, help.stdout.includes("--json")], [0, json], `${name} ${action ?? ""}`);
        }
      }
    });
  });

  test("is right about --json: it gives one line of JSON, in a good and in a bad case", async () => {
    await withMachine(async (m) => {
      assertEquals((await m.writ(["run", ...laptop, ...review, "go"])).code, 0);
      const id = m.ids()[0] ?? "";
      const good = [
        ["run", ...laptop, ...review, "go"],
        ["run", ...laptop, "/skill list"],
        ["skill", "list"],
        ["skill", "show", "commit"],
        ["skill", "run", ...laptop, ...review, "explain-code"],
        ["policy", "check", ...laptop],
        ["policy", "show", ...laptop],
        ["explain", ...laptop, "shell", "git status"],
        ["explain", ...laptop, "--message", "review this PR"],
        ["session", "list"],
        ["session", "verify", id],
        ["session", "repair", id],
        ["session", "prune", "--older-than", "90d"],
        ["demo"],
        ["help"],
        ["help", "policy"],
        ["version"],
      ];
      const bad = [
        ["run", "--policy", "none.yaml", "go"],
        ["run", ...laptop],
        ["run", ...laptop, "/skill nope"],
        ["skill", "list", "--policy", "none.yaml"],
        ["skill", "show", "nope"],
        ["policy", "check", "none.yaml"],
        ["policy", "show", "--policy", "none.yaml"],
        ["explain", "nope"],
      ];
      for (const [commands, code] of [[good, 0], [bad, 2]] as const) {
        for (const command of commands) {
          const ran = await m.writ([...command, "--json"]);
          assertEquals([command.join(" "), ran.code, ran.stderr], [command.join(" "), code, ""]);
          const lines = ran.stdout.split("\n");
          assertEquals([lines.length, lines[1]], [2, ""], command.join(" "));
          const value = JSON.parse(lines[0] ?? "");
          if (code !== 0) assertEquals([value.ok, value.exit, value.problems.length > 0], [false, 2, true]);
        }
      }
    });
  });

  test("exit-codes holds the codes and stop reasons of the program", () => {
    const text = textOf("src/cli/help/exit-codes.md");
    const codes = [...text.matchAll(/^\| (\d+) \| (.+) \|$/gm)].map((row) => [Number(row[1]), row[2]]);
    assertEquals(
      codes,
      (Object.keys(exitCodes) as ExitName[]).map((name) => [exitCodes[name], exitMeanings[name]]),
    );
    const stops = [...text.matchAll(/^\| `([a-z_]+)` \| (\d+) \|$/gm)].map((row) => ({
      stop: row[1],
      code: Number(row[2]),
    }));
    assertEquals(stops, stopTable().map(({ stop, code }) => ({ stop: stop as string, code })));
  });
});

describe("the demonstration", () => {
  test("shows what it says it shows and ends with a verified log", async () => {
    await withMachine(async (m) => {
      const ran = await m.writ(["demo"]);
      assertEquals(ran.code, 0, ran.stderr);
      const inOrder = [
        "No model is called",
        "forced skill in force from the first request: house-rules",
        "skill mainline-guardian by pattern",
        "denied: ",
        "gate merge-gate",
        "git_diff",
        "FAIL",
        "PASS",
        "git merge discount",
        "allowed",
        "log verified: consistent",
        "Next:",
      ];
      let at = 0;
      for (const text of inOrder) {
        const found = ran.stdout.indexOf(text, at);
        assert(found >= at, `${text} is not behind what comes before it:\n${ran.stdout}`);
        at = found + text.length;
      }
      assertMatch(ran.stdout, /policy\.yaml:\d+:\d+/);
      const json = await m.writ(["demo", "--json"]);
      const { ok, denied } = JSON.parse(json.stdout);
      assertEquals([json.code, json.stderr, ok, denied > 0], [0, "", true, true]);
      // What it says to try next works: the first needs no key.
      const next = [...ran.stdout.slice(at).matchAll(/^ {2}(\S.*)$/gm)].map((line) => line[1] ?? "");
      assertEquals(next.length, 3);
      const explained = await m.program(["bash", "-c", (next[0] ?? "").replace(/^\S+/, `"${binary}"`)]);
      assertEquals(explained.code, 0, explained.stderr);
      assertMatch(explained.stdout, /^deny by rule no-push /);
      assertEquals(existsSync(join(m.top, "state")), false);
    });
  });
});
