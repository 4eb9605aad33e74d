// Neighbours of the hostile cases: the same kinds with other values. Each stands beside a sound skill, policy or call that must go
// on as if it were not there.
import { describe, test } from "bun:test";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { Buffer } from "node:buffer";
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { eventsOf, type Machine, soundLog, withMachine } from "../support/machine.ts";
import { play } from "../support/play.ts";

const script = "model: {provider: script, script: replies.yaml}\n";
const noBox = 'sandbox: {mode: "off"}';
const raw = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/;
const good = "---\nname: good\ndescription: Says hello.\n---\nSay hello.\n";

function policyOf(m: Machine, rest = ""): readonly string[] {
  m.write("replies.yaml", "- text: done\n");
  return ["--policy", m.write("policy.yaml", `version: 1\n${script}${rest}`)];
}

/** The faults of the skills of a machine; `good` is listed and loads. */
async function faultsBeside(
  m: Machine,
): Promise<readonly { readonly path: string; readonly message: string }[]> {
  m.write("config/writ/skills/good/SKILL.md", good);
  const policy = policyOf(m);
  const list = await m.writ(["skill", "list", ...policy]);
  assertEquals(list.code, 0, list.stderr);
  assertMatch(list.stdout, /^good\s+Says hello\.$/m);
  const ran = await m.writ(["run", ...policy, "/skill good"]);
  assertEquals([ran.code, ran.stdout], [0, "done\n"], ran.stderr);
  for (const text of [list.stdout, list.stderr, ran.stderr]) {
    assertEquals(raw.test(text), false, JSON.stringify(text));
  }
  const events = await soundLog(m);
  assertEquals(eventsOf(events, "skill.loaded").map((e) => e.data.name), ["good"]);
  return eventsOf(events, "skill.registry_error").map((e) => e.data);
}

/** A folder for each entry, `bad0` and on; what each is called → its SKILL.md, which `make` makes. */
function plantAll<T>(
  m: Machine,
  entries: readonly (readonly [what: string, T])[],
  make: (entry: readonly [what: string, T], path: string) => void,
): ReadonlyMap<string, string> {
  return new Map(entries.map((entry, i) => {
    const folder = join(m.top, `config/writ/skills/bad${i}`);
    mkdirSync(folder, { recursive: true });
    make(entry, join(folder, "SKILL.md"));
    return [entry[0], join(folder, "SKILL.md")];
  }));
}

/** What was refused of them, by what it is called. */
async function refusedIn(m: Machine, paths: ReadonlyMap<string, string>): Promise<ReadonlySet<string>> {
  const faults = await faultsBeside(m);
  return new Set([...paths].filter(([, path]) => faults.some((f) => f.path === path)).map(([what]) => what));
}

describe("neighbours of h-sk-01 and h-sk-03: front matter without a name that is one", () => {
  const fronts: { readonly [what: string]: string } = {
    "no description": "name: bad",
    "an empty name": 'name: ""\ndescription: x',
    "a name of blanks": 'name: "  "\ndescription: x',
    "a list": "name: [bad]\ndescription: x",
    "null": "name: ~\ndescription: x",
    "dots": "name: ..\ndescription: x",
    "a path within": "name: a/b\ndescription: x",
    "a backslash": "name: a\\b\ndescription: x",
    "NUL": 'name: "bad\\0"\ndescription: x',
    "a line end": 'name: "bad\\nx"\ndescription: x',
  };
  test("each is refused with its file, beside one that is sound", async () => {
    await withMachine(async (m) => {
      const paths = plantAll(m, Object.entries(fronts), ([, front], path) => {
        writeFileSync(path, `---\n${front}\n---\nbody\n`);
      });
      assertEquals(await refusedIn(m, paths), new Set(Object.keys(fronts)));
    });
  });
});

describe("neighbours of h-sk-02: names and descriptions that are read, and shown as what they are", () => {
  const fronts: { readonly [what: string]: string } = {
    "a mark that turns text around": 'name: "bad\\u202e"\ndescription: x',
    "a mark without width": 'name: "b\\u200bad"\ndescription: x',
    "C1 control characters": 'name: bad\ndescription: "a\\x9b31mb\\x9dc\\x9c"',
    "a link of a terminal": 'name: bad\ndescription: "a\\e]8;;http://x\\e\\\\b"',
    "a text of a device": 'name: bad\ndescription: "a\\eP1$r\\e\\\\b"',
    "isolates": 'name: bad\ndescription: "a\\u2066b\\u2069"',
    "line and paragraph ends": 'name: bad\ndescription: "a\\u2028b\\u2029c\\x85d"',
    "backspaces": 'name: bad\ndescription: "safe\\b\\b\\b\\bevil"',
    "a carriage return": 'name: bad\ndescription: "safe\\revil"',
    "an option": "name: --help\ndescription: x",
    "300 letters": `name: ${"b".repeat(300)}\ndescription: x`,
  };
  test("no line that is printed of them holds a character that steers or hides", async () => {
    await withMachine(async (m) => {
      const paths = plantAll(m, Object.entries(fronts), ([, front], path) => {
        writeFileSync(path, `---\n${front}\n---\nbody\n`);
      });
      await faultsBeside(m);
      const policy = policyOf(m);
      const commands = [
        ["skill", "list", "--json", ...policy],
        ["skill", "find", "bad", ...policy],
        ["doctor", ...policy],
        ...[...paths.values()].map((path) => ["skill", "lint", join(path, "..")]),
      ];
      for (const args of commands) {
        const said = await m.writ(args);
        assertEquals([raw.test(said.stdout), raw.test(said.stderr)], [false, false], JSON.stringify(said));
      }
    });
  });
});

describe("neighbours of h-sk-08, h-sk-09 and h-sk-11: what is no front matter, and no file", () => {
  const texts: { readonly [what: string]: string | Uint8Array } = {
    "a merge key": "---\nname: bad\ndescription: x\na: &a {k: 1}\nb: {<<: *a}\n---\n",
    "an anchor that nobody uses": "---\nname: bad\ndescription: &a x\n---\n",
    "a tag": "---\nname: bad\ndescription: !!binary aGk=\n---\n",
    "lists in lists in blocks": `---\nname: bad\ndescription: x\nm:\n  ${"- ".repeat(7000)}x\n---\n`,
    "keys without end": `---\nname: bad\ndescription: x\nm: ${"? ".repeat(7000)}x\n---\n`,
    "braces without end": `---\nname: bad\ndescription: x\nm: ${"{a: ".repeat(3000)}\n---\n`,
    "no end of the front matter": `---\nname: bad\ndescription: x\n${"k: v\n".repeat(10)}`,
    "more front matter than is read": `---\nname: bad\ndescription: x\nm: ${"x".repeat(16 * 1024)}\n---\n`,
    "UTF-16": Buffer.from("\ufeff---\nname: bad\ndescription: x\n---\n", "utf16le"),
    "no UTF-8": Buffer.concat([
      Buffer.from("---\nname: bad\ndescription: "),
      Buffer.from([0xff, 0xfe, 0x0a]),
      Buffer.from("---\n"),
    ]),
    "nothing": "",
    "NUL alone": new Uint8Array(4096),
  };
  test("each text is refused with its file, beside one that is sound", async () => {
    await withMachine(async (m) => {
      const paths = plantAll(m, Object.entries(texts), ([, text], path) => writeFileSync(path, text));
      assertEquals(await refusedIn(m, paths), new Set(Object.keys(texts)));
    });
  });

  const things: { readonly [what: string]: (path: string) => void } = {
    "a folder": (path) => mkdirSync(path),
    "a link to nothing": (path) => symlinkSync("nothing", path),
    "a link to itself": (path) => symlinkSync("SKILL.md", path),
    "a link to a device": (path) => symlinkSync("/dev/zero", path),
    "a link to a pipe": (path) => {
      execFileSync("mkfifo", [`${path}.pipe`]);
      symlinkSync("SKILL.md.pipe", path);
    },
    "a socket": (path) =>
      void execFileSync("python3", [
        "-c",
        `import socket,sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])`,
        path,
      ]),
  };
  test("nothing but a file is opened", async () => {
    await withMachine(async (m) => {
      const paths = plantAll(m, Object.entries(things), ([, make], path) => make(path));
      assertEquals(await refusedIn(m, paths), new Set(Object.keys(things)));
    });
  });
});

describe("neighbours of h-sk-04 and h-sk-05: programs of a skill that are not its own", () => {
  const programs: { readonly [what: string]: readonly [command: string, plant?: (folder: string) => void] } =
    {
      "up from below": ["./a/../../x"],
      "a folder": ["./a", (f) => mkdirSync(join(f, "a"))],
      "not there": ["./gone"],
      "NUL": ["./run\u0000"],
      "a link to a link that leads out": ["./run", (f) => {
        symlinkSync("inner", join(f, "run"));
        symlinkSync("/bin/sh", join(f, "inner"));
      }],
      "below a link to the root": ["./root/bin/sh", (f) => symlinkSync("/", join(f, "root"))],
      "below a link upwards": ["./up/x", (f) => symlinkSync("..", join(f, "up"))],
      "a link to itself": ["./run", (f) => symlinkSync("run", join(f, "run"))],
      "a pipe": ["./run", (f) => void execFileSync("mkfifo", [join(f, "run")])],
      "empty": [""],
      "a dot": ["./"],
    };
  test("none is ever run", async () => {
    await withMachine(async (m) => {
      const all = Object.entries(programs);
      plantAll(m, all, ([, [command, make]], path) => {
        const folder = join(path, "..");
        writeFileSync(path, `---\nname: ${basename(folder)}\ndescription: x\n---\nb\n`);
        const tool = {
          name: "t",
          description: "d",
          input_schema: { type: "object" },
          command: [command, "-c", "id"],
        };
        writeFileSync(join(folder, "tools.json"), JSON.stringify([tool]));
        make?.(folder);
      });
      await faultsBeside(m);
      const names = all.map((_, i) => `bad${i}`);
      const { results } = await play(m, {
        policy: [noBox],
        calls: names.flatMap((name) => [{ load_skill: { name } }, { [`skill.${name}.t`]: {} }]),
        allow: ["load_skill", ...names.map((name) => `skill.${name}.t`)],
      });
      const ran = all.map((
        [what],
        i,
      ) => [what, results[2 * i + 1]?.ok, /uid=/.test(results[2 * i + 1]?.text ?? "")]);
      assertEquals(ran, all.map(([what]) => [what, false, false]));
    });
  });
});

describe("neighbours of h-sk-06: bounds that bound nothing", () => {
  const bounds = [
    '["**"]',
    '"*"',
    '["?*"]',
    '["*", read_file]',
    '["w*"]',
    '["*_file"]',
    '["shell(*)", "*"]',
    "[]",
    "['mcp.*']",
    "{write_file: true}",
  ];
  test("none lets a file be written that policy allows to be written", async () => {
    await withMachine(async (m) => {
      plantAll(m, bounds.map((bound) => [bound, bound] as const), ([, bound], path) => {
        const name = basename(join(path, ".."));
        writeFileSync(path, `---\nname: ${name}\ndescription: x\nallowed_tools: ${bound}\n---\nb\n`);
      });
      for (const [i, bound] of bounds.entries()) {
        // One that is refused is not loaded, and bounds nothing.
        const { results } = await play(m, {
          policy: [noBox],
          calls: [{ load_skill: { name: `bad${i}` } }, { write_file: { path: "b.txt", content: "x" } }],
          allow: ["load_skill", "write_file"],
        });
        const [loaded, wrote] = results;
        assert(loaded?.ok !== true || wrote?.ok === false, `${bound}: ${JSON.stringify(results)}`);
        rmSync(join(m.repo, "b.txt"), { force: true });
      }
    });
  });
});

describe("neighbours of h-sk-07: patterns that take long elsewhere", () => {
  const patterns = [
    "(x+x+)+y",
    "(a|a)*$",
    "^(.*?,){25}P",
    "(?:\\\\s*\\\\w+\\\\s*)*;",
    "(a*)*b",
    "(.*a){20}",
    "((a{1,60}){1,60}){1,60}$",
    "a{1000}{1000}",
  ];
  test("each is refused, or a message of 50,000 characters is matched all the same", async () => {
    await withMachine(async (m) => {
      plantAll(m, patterns.map((p) => [p, p] as const), ([, pattern], path) => {
        const name = basename(join(path, ".."));
        writeFileSync(
          path,
          `---\nname: ${name}\ndescription: x\ntrigger:\n  patterns: ["${pattern}"]\n---\nb\n`,
        );
      });
      const ran = await m.writ(["run", ...policyOf(m), "-"], { input: `${"a".repeat(50_000)}!` });
      assertEquals([ran.code, ran.stdout], [0, "done\n"], ran.stderr);
    });
  });
});

describe("neighbours of h-po-01 to h-po-03: what a project must not set", () => {
  const keys = [
    "model: {name: x}",
    "audit: {dir: /tmp/x}",
    "audit: {on_failure: continue}",
    "mcp_servers: {x: {command: [/bin/sh]}}",
    "tools: {enabled: [shell]}",
    "secrets: {redact: {builtin: false}}",
    "workspace: {trust: trusted}",
    "permissions: {default: allow}",
    "permissions: {delegate: ['shell(*)']}",
    "permissions: {sets: {secrets: []}}",
    "sandbox: {network: all}",
    "sandbox: {boxes: {x: {mode: 'off'}}}",
    "sandbox: {write: [/]}",
    "sandbox: {env: [ANTHROPIC_API_KEY]}",
    "skills: {sources: [/tmp]}",
    "skills: {undeclared_tools: unbounded}",
    "skills: {pins: {}}",
    "skills: {secrets: {x: {Y: {env: HOME}}}}",
    "output: {verdict_field: x}",
    "server: {listen: 'unix:/tmp/x'}",
    "name: x",
    "min_version: 0.0.1",
  ];
  test("each is refused with its line, and nothing runs", async () => {
    await withMachine(async (m) => {
      for (const key of keys) {
        m.write("repo/.writ/policy.yaml", `version: 1\n${key}\n`);
        const ran = await m.writ(["run", ...policyOf(m), "--trust", "go"]);
        assertEquals([ran.code, ran.stdout, m.ids()], [2, "", []], `${key}: ${ran.stderr}`);
        assertMatch(ran.stderr, /\.writ\/policy\.yaml:2:\d+: error: /, key);
      }
    });
  });
  test("a limit that is higher does not count", async () => {
    await withMachine(async (m) => {
      m.write("repo/.writ/policy.yaml", "version: 1\nlimits: {tool_calls: 100000}\n");
      const shown = await m.writ(["policy", "show", ...policyOf(m, "limits: {tool_calls: 3}\n"), "--trust"]);
      assertStringIncludes(shown.stdout, "tool_calls: 3", shown.stderr);
    });
  });
});

describe("neighbours of h-po-04 to h-po-06, h-po-09 and h-po-10: a policy that says nothing sound", () => {
  const files: { readonly [what: string]: string | Uint8Array } = {
    "a letter that only looks alike": `version: 1\n${script}p\u0435rmissions: {deny: [shell]}\n`,
    "a capital letter": `version: 1\n${script}Permissions: {deny: [shell]}\n`,
    "a misspelt inner key": `version: 1\n${script}permissions: {denny: [shell]}\n`,
    "a misspelt key of a rule": `version: 1\n${script}permissions: {deny: [{tol: shell}]}\n`,
    "a misspelt tool": `version: 1\n${script}permissions: {deny: [shel]}\n`,
    "comments alone": "# nothing\n",
    "a document mark alone": "---\n",
    "null": "null\n",
    "an empty mapping": "{}\n",
    "blanks": "  \n\n",
    "a byte-order mark alone": "\ufeff",
    "NUL": new Uint8Array(100),
    "a key twice, once in quotes": `version: 1\n${script}permissions:\n  deny: [shell]\n  "deny": []\n`,
    "a key twice at the top":
      `version: 1\n${script}permissions: {deny: [shell]}\npermissions: {allow: [shell]}\n`,
    "a key twice in a flow": `version: 1\n${script}permissions: {deny: [shell], deny: []}\n`,
    "two documents": `version: 1\n${script}permissions: {deny: [shell]}\n---\nversion: 1\n${script}`,
    "a tag": `version: 1\n${script}permissions: !x {deny: [shell]}\n`,
    "an alias": `version: 1\n${script}permissions: {deny: &a [shell], ask: *a}\n`,
    "a prototype among sets": `version: 1\n${script}permissions: {sets: {__proto__: [a]}}\n`,
    "a prototype in a rule":
      `version: 1\n${script}permissions: {deny: [{tool: shell, __proto__: {effect: allow}}]}\n`,
    "a prototype among boxes": `version: 1\n${script}sandbox: {boxes: {__proto__: {mode: "off"}}}\n`,
    "a look-around":
      `version: 1\n${script}permissions: {deny: [{tool: shell, arg: {command: {regex: "(?=a)b"}}}]}\n`,
    "a reference backwards":
      `version: 1\n${script}permissions: {deny: [{tool: shell, arg: {command: {regex: "(a)\\\\1"}}}]}\n`,
    "another version": `version: 2\n${script}`,
    "a version in words": `version: "1"\n${script}`,
    "a number that is none": `version: 1\n${script}limits: {tool_calls: .nan}\n`,
    "a limit below nothing": `version: 1\n${script}limits: {tool_calls: -1}\n`,
    "a limit without end": `version: 1\n${script}limits: {tool_calls: .inf}\n`,
    "more bytes than are read": `version: 1\n${script}# ${"x".repeat(256 * 1024)}\n`,
    "no UTF-8": Buffer.concat([
      Buffer.from(`version: 1\n${script}name: "`),
      Buffer.from([0xff]),
      Buffer.from('"\n'),
    ]),
  };
  test("none starts anything, and each is named", async () => {
    await withMachine(async (m) => {
      m.write("replies.yaml", "- text: done\n");
      for (const [what, text] of Object.entries(files)) {
        const ran = await m.writ(["run", "--policy", m.write("policy.yaml", text), "go"]);
        assertEquals([ran.code, ran.stdout, m.ids()], [2, "", []], `${what}: ${ran.stderr}`);
        assertStringIncludes(ran.stderr, "policy.yaml", what);
        assertEquals(raw.test(ran.stderr), false, JSON.stringify(ran.stderr));
      }
    });
  });
  const things: { readonly [what: string]: (path: string) => void } = {
    "a folder": (path) => mkdirSync(path),
    "a device": (path) => symlinkSync("/dev/zero", path),
    "a pipe": (path) => void execFileSync("mkfifo", [path]),
    "a link to itself": (path) => symlinkSync("policy.yaml", path),
  };
  test("nothing but a file is read", async () => {
    await withMachine(async (m) => {
      for (const [what, make] of Object.entries(things)) {
        const path = join(m.top, "policy.yaml");
        rmSync(path, { force: true, recursive: true });
        make(path);
        const ran = await m.writ(["run", "--policy", path, "go"]);
        assertEquals([ran.code, ran.stdout, m.ids()], [2, "", []], `${what}: ${ran.stderr}`);
      }
    });
  });
});
