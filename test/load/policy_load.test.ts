import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { afterEach, beforeEach, describe, test } from "bun:test";
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { showProblem } from "../../src/core/problem.ts";
import { type LoadedPolicy, type LoadInput, loadPolicy } from "../../src/load/load_policy.ts";
import type { TrustAnswer } from "../../src/load/trust.ts";

let top = "";
beforeEach(() => {
  top = realpathSync(mkdtempSync(join(tmpdir(), "writ-policy-")));
  for (const folder of ["etc", "home", "ws/.git"]) {
    mkdirSync(join(top, folder), { recursive: true, mode: 0o755 });
  }
});
afterEach(() => rmSync(top, { recursive: true, force: true }));

function write(path: string, text: string): string {
  const full = join(top, path);
  mkdirSync(dirname(full), { recursive: true, mode: 0o755 });
  writeFileSync(full, text, { mode: 0o644 });
  return full;
}
const policy = (yaml = "") => `version: 1\n${yaml}`;

type Options = Partial<Pick<LoadInput, "policies" | "trustFlag" | "askTrust" | "matchesExample">> & {
  readonly cwd?: string;
  readonly home?: string;
  readonly env?: { readonly [name: string]: string };
};
async function load(options: Options = {}) {
  const { cwd = "ws", home = "home", env = {}, ...rest } = options;
  return await loadPolicy({
    at: {
      env,
      platform: "linux-x64",
      cwd: cwd.startsWith("/") ? cwd : join(top, cwd),
      home: join(top, home),
      machineFolder: join(top, "etc"),
      machineOwner: { uid: process.getuid?.() ?? 0, top },
    },
    version: "0.1.0",
    policies: [],
    ...rest,
  });
}
async function value(options: Options = {}): Promise<LoadedPolicy> {
  const loaded = await load(options);
  if (!loaded.ok) throw new Error(loaded.problems.map(showProblem).join("\n"));
  return loaded.value;
}
/** Problems, with the temporary folder written as `TOP`. */
async function problems(options: Options = {}): Promise<readonly string[]> {
  return (await load(options)).problems.map((p) => showProblem(p).replaceAll(top, "TOP"));
}
async function codes(options: Options = {}): Promise<readonly string[]> {
  return (await load(options)).problems.map((p) => p.code);
}

describe("layers and files", () => {
  test("machine and user layer, policy.yaml before policy.d in order", async () => {
    write("etc/policy.d/20-b.yaml", policy());
    write("etc/policy.d/10-a.yaml", policy());
    write("etc/policy.d/README", "not read");
    write("etc/policy.yaml", policy());
    write("home/.config/writ/policy.d/approved.yaml", policy());
    write("home/.config/writ/policy.yaml", policy());
    const loaded = await value();
    assertEquals(loaded.policy.files.map((f) => [f.layer, f.path.replace(top, "")]), [
      ["machine", "/etc/policy.yaml"],
      ["machine", "/etc/policy.d/10-a.yaml"],
      ["machine", "/etc/policy.d/20-b.yaml"],
      ["user", "/home/.config/writ/policy.yaml"],
      ["user", "/home/.config/writ/policy.d/approved.yaml"],
    ]);
    assertEquals([loaded.policy.root, loaded.trust, loaded.notices], [join(top, "ws"), "untrusted", []]);
  });

  test("no file at all is fine", async () => {
    assertEquals((await value()).policy.files, []);
  });

  test("XDG_CONFIG_HOME moves the user layer, a relative one does not", async () => {
    write("conf/writ/policy.yaml", policy("name: moved"));
    write("home/.config/writ/policy.yaml", policy("name: home"));
    assertEquals((await value({ env: { XDG_CONFIG_HOME: join(top, "conf") } })).policy.name, "moved");
    assertEquals((await value({ env: { XDG_CONFIG_HOME: "conf" } })).policy.name, "home");
  });

  test("--policy takes the user layer's place, else WRIT_POLICY does", async () => {
    write("home/.config/writ/policy.yaml", policy("name: home"));
    const [a, b] = [write("a.yaml", policy("name: a")), write("b.yaml", policy("limits: {iterations: 7}"))];
    const both = await value({ policies: [a, b], env: { WRIT_POLICY: "/nowhere" } });
    assertEquals([both.policy.name, both.policy.limits.iterations, both.policy.files.length], ["a", 7, 2]);
    assertEquals((await value({ env: { WRIT_POLICY: a } })).policy.name, "a");
    assertEquals((await value({ policies: ["../a.yaml"] })).policy.name, "a");
  });

  const refused: readonly (readonly [name: string, set: () => Options, says: readonly string[]])[] = [
    ["a named file that is missing", () => ({ policies: ["no.yaml"] }), [
      "error: there is no policy file `TOP/ws/no.yaml`; check the path given by `--policy` or `WRIT_POLICY`; `writ help policy` shows a first policy [file-missing]",
    ]],
    ["a folder in place of a file", () => ({ env: { WRIT_POLICY: join(top, "etc") } }), [
      "error: `TOP/etc` is a folder; expected a policy file; name the file in it, such as `TOP/etc/policy.yaml` [not-a-file]",
    ]],
    ["an empty variable", () => ({ env: { WRIT_POLICY: "" } }), [
      "error: the environment variable `WRIT_POLICY` is set but empty; unset it, or let it name a policy file [empty-variable]",
    ]],
    ["a named empty file", () => ({ policies: [write("e.yaml", "")] }), [
      "TOP/e.yaml:1:1: error: the policy file is empty; expected at least `version: 1`; write it, or remove the file [empty-file]",
    ]],
    ["a file over the cap", () => ({ policies: [write("big.yaml", "#".repeat(262_145))] }), [
      "TOP/big.yaml:1:1: error: the policy file has 262145 bytes; expected at most 262144 [too-large]",
    ]],
    ["bytes that are not UTF-8", () => {
      writeFileSync(join(top, "bin.yaml"), new Uint8Array([0x76, 0xff, 0xfe]));
      return { policies: [join(top, "bin.yaml")] };
    }, ["TOP/bin.yaml:1:1: error: the policy file is not UTF-8 text; save it as UTF-8 [not-utf8]"]],
    ["a link that leads nowhere, in a place that need not be filled", () => {
      mkdirSync(join(top, "home/.config/writ"), { recursive: true });
      symlinkSync("gone", join(top, "home/.config/writ/policy.yaml"));
      return {};
    }, [
      "error: the link `TOP/home/.config/writ/policy.yaml` leads nowhere; check the path given by `--policy` or `WRIT_POLICY`; `writ help policy` shows a first policy [file-missing]",
    ]],
    ["a name that would not be read", () => {
      write("etc/policy.d/deny.yml", policy());
      return {};
    }, [
      "error: `TOP/etc/policy.d/deny.yml` would not be read; rename it to end in `.yaml`, or remove it [wrong-name]",
    ]],
    ["faults of all files at once", () => {
      write("etc/policy.yaml", "version: 1\nlimts: {}\n");
      write("home/.config/writ/policy.yaml", "version: 1\nlimits: {iterations: x}\n");
      return {};
    }, [
      "TOP/etc/policy.yaml:2:1: error: unknown key `limts`; did you mean `limits`? [unknown-key]",
      "TOP/home/.config/writ/policy.yaml:2:22: error: `limits.iterations` is `x`; expected a whole number above zero [wrong-type]",
    ]],
  ];
  for (const [name, set, says] of refused) test(name, async () => assertEquals(await problems(set()), says));

  test("a pipe is not waited for", async () => {
    execFileSync("mkfifo", [join(top, "pipe")]);
    assertEquals(await codes({ policies: [join(top, "pipe")] }), ["not-a-file"]);
  });

  test.skipIf(process.getuid?.() === 0)("what may not be read is not passed over", async () => {
    chmodSync(write("home/.config/writ/policy.yaml", policy()), 0);
    assertEquals(await codes(), ["unreadable"]);
  });
});

describe("machine files belong to the machine", () => {
  test("a file that others may write", async () => {
    chmodSync(write("etc/policy.yaml", policy()), 0o664);
    assertEquals(await problems(), [
      "error: `TOP/etc/policy.yaml` can be written by others (mode 664), so the machine policy `TOP/etc/policy.yaml` is not the machine's alone; expected an owner root and no write permission for group and others; chown root `TOP/etc/policy.yaml` and chmod go-w it [machine-file-writable]",
    ]);
  });

  test("a folder above it that others may write, also when the file is not there", async () => {
    chmodSync(join(top, "etc"), 0o777);
    assertEquals(await codes(), ["machine-file-writable"]);
  });

  test("what a link leads to", async () => {
    write("open/policy.yaml", policy());
    chmodSync(join(top, "open"), 0o777);
    symlinkSync(join(top, "open/policy.yaml"), join(top, "etc/policy.yaml"));
    assertEquals(await codes(), ["machine-file-writable"]);
  });

  test("another owner", async () => {
    write("etc/policy.yaml", policy());
    const loaded = await loadPolicy({
      at: {
        env: {},
        platform: "linux",
        cwd: join(top, "ws"),
        home: join(top, "home"),
        machineFolder: join(top, "etc"),
        machineOwner: { uid: 54321, top },
      },
      version: "0.1.0",
      policies: [],
    });
    assertEquals(loaded.problems.map((p) => p.code), ["machine-file-writable"]);
  });

  test("user files are the user's business", async () => {
    chmodSync(write("home/.config/writ/policy.yaml", policy("name: x")), 0o666);
    assertEquals((await value()).policy.name, "x");
  });
});

describe("the workspace root", () => {
  const rows: readonly (readonly [name: string, set: () => Options, root: string])[] = [
    [
      "nearest .git above",
      () => (mkdirSync(join(top, "ws/a/b"), { recursive: true }), { cwd: "ws/a/b" }),
      "ws",
    ],
    [
      "nearest .writ above",
      () => (mkdirSync(join(top, "ws/a/.writ"), { recursive: true }), { cwd: "ws/a" }),
      "ws/a",
    ],
    ["a linked worktree has a .git file", () => (write("wt/.git", "gitdir: /x\n"), { cwd: "wt" }), "wt"],
    [
      "the current folder when there is neither",
      () => (mkdirSync(join(top, "plain")), { cwd: "plain" }),
      "plain",
    ],
    [
      "a folder below home whose home has .git",
      () => (mkdirSync(join(top, "home/.git")), mkdirSync(join(top, "home/p")), { cwd: "home/p" }),
      "home/p",
    ],
    ["the policy's own words, relative to the file", () => {
      mkdirSync(join(top, "else"));
      return { policies: [write("p.yaml", policy("workspace: {root: else}"))] };
    }, "else"],
    ["the real path", () => (symlinkSync(join(top, "ws"), join(top, "link")), { cwd: "link" }), "ws"],
  ];
  for (const [name, set, root] of rows) {
    test(name, async () => assertEquals((await value(set())).policy.root, join(top, root)));
  }

  test("never home, never the top", async () => {
    assertEquals(await codes({ cwd: "home" }), ["no-workspace"]);
    assertEquals(await codes({ cwd: "/" }), ["no-workspace"]);
    assertEquals(await codes({ policies: [write("r.yaml", policy("workspace: {root: /}"))] }), [
      "no-workspace",
    ]);
    assertEquals(await problems({ policies: [write("p.yaml", policy("workspace: {root: home}"))] }), [
      "TOP/p.yaml:2:19: error: `TOP/home` cannot be a workspace: too much lies in it; go into the folder that you want to work in, or set `workspace.root` [no-workspace]",
    ]);
  });

  test("a root that is no folder", async () => {
    assertEquals(await problems({ policies: [write("p.yaml", policy("workspace: {root: gone}"))] }), [
      "TOP/p.yaml:2:19: error: `workspace.root` names `TOP/gone`, which is no folder [no-workspace]",
    ]);
  });

  test("git folders with other names are protected too", async () => {
    write("ws2/.git", `gitdir: ${join(top, "store/wt")}\n`);
    write("store/wt/commondir", "../main\n");
    const { policy } = await value({ cwd: "ws2" });
    const by = (path: string) => policy.protect.some((p) => p.pattern.test(join(top, path)));
    assertEquals([by("store/wt/commondir"), by("store/main/hooks/x"), by("store/main/HEAD")], [
      true,
      true,
      false,
    ]);
  });
});

describe("trust", () => {
  const project = () => write("ws/.writ/policy.yaml", policy("permissions: {deny: [shell]}"));
  const skill = (text = "x") => write("ws/.claude/skills/s/SKILL.md", text);
  const user = (yaml: string) => write("home/.config/writ/policy.yaml", policy(yaml));
  const layers = (l: LoadedPolicy) => l.policy.layers.map((x) => x.name);
  const ask = (answer: TrustAnswer, asked: string[]): Options => ({
    askTrust: (root, content) => {
      asked.push(
        `${root.replace(top, "")} ${content.items.map((i) => `${i.kind} ${i.path} ${i.files}`).join(", ")}`,
      );
      return Promise.resolve(answer);
    },
  });

  test("unattended with a project policy: refused", async () => {
    project();
    assertEquals(await problems(), [
      "error: the workspace `TOP/ws` brings a policy, `TOP/ws/.writ/policy.yaml`, and nobody has said whether it is trusted; pass `--trust` to apply it or `--untrusted` to leave it out, or set `workspace.trust` [trust-needed]",
    ]);
  });

  test("unattended with a project policy that cannot be read: refused", async () => {
    mkdirSync(join(top, "ws/.writ/policy.yaml"), { recursive: true });
    assertEquals(await codes(), ["trust-needed"]);
    assertEquals(await codes({ trustFlag: "trusted" }), ["not-a-file"]);
    assertEquals(await codes({ trustFlag: "untrusted" }), []);
  });

  test("no byte of a project policy is interpreted before", async () => {
    write("ws/.writ/policy.yaml", "nonsense: [");
    assertEquals(await codes(), ["trust-needed"]);
    assertEquals(await codes({ trustFlag: "untrusted" }), []);
    assertEquals(await codes({ trustFlag: "trusted" }), ["invalid-yaml"]);
  });

  test("unattended without one: goes on without skills and instructions, and says so", async () => {
    skill();
    write("ws/AGENTS.md", "hello");
    user("skills: {sources: [builtin, user, project, {path: " + join(top, "ws/own") + "}]}");
    const loaded = await value();
    assertEquals([loaded.trust, loaded.policy.instructions, loaded.notices], ["untrusted", [], [
      "the workspace is not trusted; left out: .claude/skills, AGENTS.md",
    ]]);
    assertEquals(loaded.policy.skills.sources, [{ kind: "tier", tier: "builtin" }, {
      kind: "tier",
      tier: "user",
    }]);
    assert(loaded.policy.protect.some((p) => p.pattern.test(join(top, "ws/AGENTS.md"))));
  });

  test("--trust and --untrusted answer for one run", async () => {
    project();
    assertEquals(layers(await value({ trustFlag: "trusted" })), ["project"]);
    const without = await value({ trustFlag: "untrusted" });
    assertEquals([layers(without), without.notices], [[], [
      "the workspace is not trusted; left out: .writ/policy.yaml",
    ]]);
    assertEquals(await codes(), ["trust-needed"]);
  });

  test("a terminal is asked once per content", async () => {
    project();
    skill();
    const asked: string[] = [];
    assertEquals(layers(await value(ask("trusted", asked))), ["project"]);
    assertEquals(layers(await value(ask("untrusted", asked))), ["project"]);
    assertEquals(layers(await value()), ["project"]);
    assertEquals(asked, ["/ws skills .claude/skills 1, policy .writ/policy.yaml 1"]);
    skill("changed");
    assertEquals(await codes(), ["trust-needed"]);
    assertEquals(layers(await value(ask("untrusted", asked))), []);
    assertEquals(asked.length, 2);
    assertEquals(layers(await value()), []);
    const store = JSON.parse(readFileSync(join(top, "home/.local/state/writ/trust.json"), "utf8"));
    assertEquals(store.answers.map((a: { root: string; answer: string }) => [a.root, a.answer]), [
      [join(top, "ws"), "trusted"],
      [join(top, "ws"), "untrusted"],
    ]);
  });

  test("nothing there: nothing to ask", async () => {
    const asked: string[] = [];
    const loaded = await value(ask("trusted", asked));
    assertEquals([asked, loaded.trust, loaded.notices, loaded.content.items], [[], "untrusted", [], []]);
  });

  test("settings decide without a question; the stricter one of two", async () => {
    project();
    user("workspace: {trust: trusted}");
    assertEquals(layers(await value()), ["user", "project"]);
    write("etc/policy.yaml", policy("workspace: {trust: untrusted}"));
    const loaded = await value({ trustFlag: "trusted" });
    assertEquals([layers(loaded), loaded.notices[0]], [
      ["machine", "user"],
      "--trust has no effect: the policy says that no workspace is trusted",
    ]);
  });

  test("a --policy in the workspace counts only when it is trusted", async () => {
    const path = write("ws/ci/p.yaml", policy("name: inside\npermissions: {deny: [shell]}"));
    assertEquals(await problems({ policies: [path] }), [
      "error: the policy `TOP/ws/ci/p.yaml` lies in the workspace `TOP/ws`, which is not trusted; answer at a terminal, or pass `--trust` or `--untrusted` [in-untrusted-workspace]",
    ]);
    assertEquals(await codes({ policies: [path], trustFlag: "untrusted" }), ["in-untrusted-workspace"]);
    assertEquals((await value({ policies: [path], trustFlag: "trusted" })).policy.name, "inside");
    symlinkSync(path, join(top, "link.yaml"));
    assertEquals(await codes({ policies: [join(top, "link.yaml")] }), ["in-untrusted-workspace"]);
  });

  test("it decides neither where the workspace is nor whether it is trusted", async () => {
    const path = write("ws/p.yaml", policy("workspace: {root: sub, trust: trusted}"));
    assertEquals(await codes({ policies: [path] }), ["in-untrusted-workspace"]);
    assertEquals(await codes({ policies: [path], trustFlag: "trusted" }), [
      "not-allowed-in-workspace",
      "not-allowed-in-workspace",
    ]);
  });

  test("where the workspace is elsewhere, it is a file like any other", async () => {
    mkdirSync(join(top, "else"));
    write("etc/policy.yaml", policy(`workspace: {root: ${join(top, "else")}}`));
    const path = write("ws/p.yaml", policy("name: near"));
    const loaded = await value({ policies: [path] });
    assertEquals([loaded.policy.name, loaded.policy.root], ["near", join(top, "else")]);
  });

  test("keys and scripts in the workspace wait for trust", async () => {
    write("ws/key", "k");
    write("ws/s.yaml", "[]");
    const p = write(
      "p.yaml",
      policy("model: {provider: script, script: ws/s.yaml, api_key: {file: ws/key}}"),
    );
    assertEquals(await problems({ policies: [p] }), [
      "TOP/p.yaml:2:35: error: the script file `TOP/ws/s.yaml` lies in the workspace, which is not trusted; answer at a terminal, or pass `--trust` or `--untrusted` [in-untrusted-workspace]",
      "TOP/p.yaml:2:62: error: the key file `TOP/ws/key` lies in the workspace, which is not trusted; answer at a terminal, or pass `--trust` or `--untrusted` [in-untrusted-workspace]",
    ]);
    const loaded = await value({ policies: [p], trustFlag: "trusted" });
    assertEquals(loaded.content.items.map((i) => i.path), ["key", "s.yaml"]);
  });

  const namedThere: readonly { readonly key: string; readonly yaml: string; readonly shown: string }[] = [
    { key: "model.api_key.file", yaml: "model: {api_key: {file: ws/f}}", shown: "key file" },
    { key: "model.api_key.command", yaml: "model: {api_key: {command: [TOP/ws/f]}}", shown: "program file" },
    {
      key: "skills.secrets.*.*.file",
      yaml: "skills: {secrets: {s: {KEY_ONE: {file: ws/f}}}}",
      shown: "key file",
    },
    {
      key: "mcp_servers.*.command, the program",
      yaml: "mcp_servers: {s: {command: [./ws/f], tools: [t]}}",
      shown: "program file",
    },
    {
      key: "mcp_servers.*.command, what an interpreter is given",
      yaml: "mcp_servers: {s: {command: [node, -x, ws/f, ws], tools: [t]}}",
      shown: "program file",
    },
    {
      key: "mcp_servers.*.env.*.file",
      yaml: "mcp_servers: {s: {command: [/bin/x], env: {A: {file: ws/f}}, tools: [t]}}",
      shown: "key file",
    },
    {
      key: "mcp_servers.*.headers.*.file",
      yaml: "mcp_servers: {s: {url: 'https://a.example', headers: {A: {file: ws/f}}, tools: [t]}}",
      shown: "key file",
    },
    { key: "audit.key.file", yaml: "audit: {key: {file: ws/f}}", shown: "key file" },
  ];
  for (const { key, yaml, shown } of namedThere) {
    test(`${key} in the workspace waits for trust, is part of what is asked about, and is protected`, async () => {
      const file = write("ws/f", "k");
      const p = write("p.yaml", policy(yaml.replace("TOP", top)));
      const refused = await load({ policies: [p], trustFlag: "untrusted" });
      assertEquals(refused.problems.map((x) => `${x.code}: ${x.message.replaceAll(top, "TOP")}`), [
        `in-untrusted-workspace: the ${shown} \`TOP/ws/f\` lies in the workspace, which is not trusted`,
      ]);
      const first = await value({ policies: [p], trustFlag: "trusted" });
      assertEquals(first.content.items.map((i) => i.path), ["f"]);
      assert(first.policy.protect.some((entry) => entry.pattern.test(file)));
      write("ws/f", "other");
      const second = await value({ policies: [p], trustFlag: "trusted" });
      assert(first.content.hash !== second.content.hash);
    });
  }

  test("what a policy of the workspace names in the workspace is asked about as well", async () => {
    const p = write("ws/p.yaml", policy("skills: {sources: [{path: tools}]}"));
    write("ws/tools/s/SKILL.md", "one");
    const asked: string[] = [];
    const options = () => ({ ...ask("trusted", asked), policies: [p] });
    await value(options());
    await value(options());
    assertEquals(asked, ["/ws policy p.yaml 1", "/ws policy p.yaml 1, skills tools 1"]);
    write("ws/tools/s/SKILL.md", "two");
    assertEquals(await codes({ policies: [p] }), ["in-untrusted-workspace"]);
  });

  test("a workspace does not bring the answers about itself", async () => {
    project();
    const env = { XDG_STATE_HOME: join(top, "ws/state") };
    const asked: string[] = [];
    const first = await value({ ...ask("trusted", asked), env });
    assertStringIncludes(first.notices.join(), "lies in the workspace, so answers about trust are not kept");
    assertEquals(existsSync(join(top, "ws/state")), false);
    await value({ ...ask("trusted", asked), env });
    assertEquals(asked.length, 2);
    write(
      "ws/state/writ/trust.json",
      JSON.stringify({
        version: 1,
        answers: [{ root: join(top, "ws"), hash: first.content.hash, answer: "trusted" }],
      }),
    );
    assertEquals(await codes({ env }), ["trust-needed"]);
  });

  test("a damaged store holds no answers", async () => {
    project();
    write("home/.local/state/writ/trust.json", "{");
    const loaded = await load(ask("trusted", []));
    assertEquals([loaded.ok, loaded.problems.map((p) => [p.severity, p.code])], [true, [[
      "warning",
      "trust-store",
    ]]]);
  });
});

test("examples are decided against the merged policy", async () => {
  const yaml = policy(
    "permissions: {deny: [{id: d, tool: shell, command: ['rm *'], match: rm x, no_match: ls}]}",
  );
  write("home/.config/writ/policy.yaml", yaml);
  const seen: string[] = [];
  const matchesExample: LoadInput["matchesExample"] = (p) => (rule, example) => {
    seen.push(`${p.layers.length} ${rule.id} ${example}`);
    return true;
  };
  assertEquals(await problems({ matchesExample }), [
    "TOP/home/.config/writ/policy.yaml:2:85: error: rule `d` matches `ls`, which it must not; the rule is `shell(rm *)`; change it or the example [example-fails]",
  ]);
  assertEquals(seen, ["1 d rm x", "1 d ls"]);
});

test("the revision follows the bytes of the files", async () => {
  write("home/.config/writ/policy.yaml", policy("name: a"));
  const first = (await value()).policy.revision;
  assertEquals((await value()).policy.revision, first);
  write("home/.config/writ/policy.yaml", policy("name: b"));
  const second = (await value()).policy.revision;
  assert(first !== second && /^[0-9a-f]{64}$/.test(first));
});
