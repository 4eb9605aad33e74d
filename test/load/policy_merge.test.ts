import { assert, assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import fc from "fast-check";
import type { Policy } from "../../src/core/policy.ts";
import type { Rule } from "../../src/core/rule.ts";
import { loadPolicyFile, type PolicyFile, type PolicyLayer } from "../../src/load/policy_file.ts";
import { type Merged, mergePolicy, policyRevision } from "../../src/load/policy_merge.ts";
import { decide } from "../../src/core/decide.ts";
import { checkExamples } from "../../src/load/policy_rules.ts";

type Text = readonly [layer: PolicyLayer, yaml: string];

function file([layer, yaml]: Text, index: number): PolicyFile {
  const loaded = loadPolicyFile(
    yaml.startsWith("{") ? yaml : `version: 1\n${yaml}`,
    `/conf/${layer}/p${index}.yaml`,
    layer,
    "0.1.0",
  );
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return loaded.value;
}

function merge(...texts: readonly Text[]): Merged {
  const merged = mergePolicy({
    files: texts.map(file),
    revision: "r",
    root: "/ws",
    home: "/home/u",
    protect: {
      skillFolders: ["/ws/.writ/skills"],
      gitFolders: ["/repo/store"],
      own: ["/home/u/.config/writ"],
    },
  });
  if (!merged.ok) throw new Error(JSON.stringify(merged.problems));
  return merged.value;
}

const plain = (value: unknown) => JSON.parse(JSON.stringify(value));

describe("mergePolicy() without files", () => {
  const { policy, origin } = merge();
  test("gives the embedded values", () => {
    const { protect: _, ...rest } = policy;
    assertEquals(plain(rest), {
      revision: "r",
      files: [],
      root: "/ws",
      model: {
        provider: "anthropic",
        name: "",
        apiKey: { env: "ANTHROPIC_API_KEY" },
        headers: {},
        request: {},
        maxOutputTokens: 8192,
        contextTokens: 200_000,
        timeoutMs: 600_000,
        idleTimeoutMs: 120_000,
        retries: 4,
      },
      limits: { iterations: 50, toolCalls: 200, wallTimeMs: 1_800_000, sameCall: 3 },
      skills: {
        sources: ["builtin", "machine", "user", "project"].map((tier) => ({ kind: "tier", tier })),
        scope: "turn",
        forced: [],
        triggers: [],
        disabled: [],
        modelChoice: true,
        undeclaredTools: "read_only",
        combineBounds: "intersection",
        listingTokens: 8000,
        activeTokens: 50_000,
        pins: [],
        requirePins: false,
        secrets: [],
        boxes: [],
      },
      layers: [],
      gates: [],
      instructions: ["AGENTS.md"],
      trust: "ask",
      sandbox: {
        mode: "required",
        backend: "auto",
        network: "none",
        read: ["system", "tools", "workspace", "home"],
        write: ["workspace", "home"],
        hide: ["/home/u/.ssh", "/home/u/.aws", "/home/u/.gnupg", "/home/u/.config"],
        limits: { processes: 256, memory: 2 ** 31 },
        boxes: [],
      },
      shellEnv: ["PATH", "LANG", "LC_ALL", "TZ", "TERM"],
      tools: {
        enabled: ["read_file", "list_files", "search_text", "git_diff", "write_file", "edit_file", "shell"],
        shell: { timeoutMs: 120_000, maxTimeoutMs: 1_800_000, maxOutput: 65_536 },
      },
      mcpServers: [],
      askTimeoutMs: 300_000,
      redact: { builtin: true, env: [], patterns: [] },
      audit: {},
      server: {
        allowRemote: false,
        hosts: [],
        origins: [],
        inspector: false,
        drainGraceMs: 25_000,
        maxSessions: 1000,
        maxConcurrentTurns: 16,
        idleUnloadMs: 900_000,
        workspaces: [],
        profiles: {},
      },
    });
  });
  test("says that they are", () => {
    assertEquals(origin.filter((o) => o.layer !== "default" || o.at !== "default"), []);
    assertEquals(origin.find((o) => o.key === "limits.iterations"), {
      key: "limits.iterations",
      value: 50,
      layer: "default",
      at: "default",
    });
  });
});

describe("mergePolicy()", () => {
  const rows: readonly {
    readonly name: string;
    readonly texts: readonly Text[];
    readonly pick: (policy: Policy) => unknown;
    readonly expected: unknown;
  }[] = [
    {
      name: "limits take the least of all layers",
      texts: [
        ["machine", "limits: {iterations: 40, wall_time: 10m}"],
        ["user", "limits: {iterations: 70, tool_calls: 500, wall_time: 5m, tokens: 9}"],
        ["project", "limits: {iterations: 30, tool_calls: 600, same_call: 9, tokens: 8}"],
      ],
      pick: (p) => p.limits,
      expected: { iterations: 30, toolCalls: 500, wallTimeMs: 300_000, sameCall: 3, tokens: 8 },
    },
    {
      name: "the least limit on costs; prices are one value, choices are taken by name, each whole",
      texts: [
        [
          "machine",
          "limits: {cost_usd: 2}\nmodel: {choices: {fast: {name: m-1, prices: {input: 1, output: 2, cache_read: 3, cache_write: 4}}}}",
        ],
        [
          "user",
          "limits: {cost_usd: 3}\nmodel:\n  prices: {input: 5, output: 6, cache_read: 7, cache_write: 8}\n" +
          "  choices: {fast: {name: u-1, prices: {input: 9, output: 9, cache_read: 9, cache_write: 9}, context_tokens: 9000}, " +
          "deep: {name: u-2, prices: {input: 1, output: 1, cache_read: 1, cache_write: 1}, context_tokens: 90000}}",
        ],
        ["project", "limits: {cost_usd: 1.5}"],
      ],
      pick: (p) => [p.limits.costUsd, p.model.prices, p.model.choices],
      expected: [1.5, { input: 5, output: 6, cacheRead: 7, cacheWrite: 8 }, {
        fast: { name: "m-1", prices: { input: 1, output: 2, cacheRead: 3, cacheWrite: 4 } },
        deep: {
          name: "u-2",
          prices: { input: 1, output: 1, cacheRead: 1, cacheWrite: 1 },
          contextTokens: 90_000,
        },
      }],
    },
    {
      name: "a user may raise an embedded limit, a project may not",
      texts: [["user", "limits: {iterations: 90}"], ["project", "limits: {iterations: 80, tool_calls: 900}"]],
      pick: (p) => [p.limits.iterations, p.limits.toolCalls],
      expected: [80, 200],
    },
    {
      name: "the upper layer has the word on the model",
      texts: [
        [
          "machine",
          "model: {name: a, headers: {x-a: '1'}, request: {thinking: {type: enabled}}, base_url: 'https://gw.example'}",
        ],
        [
          "user",
          "model: {name: b, retries: 1, headers: {x-a: '2', x-b: '3'}, request: {thinking: {}, effort: low}, script: s.yaml}",
        ],
      ],
      pick: (
        p,
      ) => [p.model.name, p.model.retries, p.model.headers, p.model.request, p.model.baseUrl, p.model.script],
      expected: [
        "a",
        1,
        { "x-a": "1", "x-b": "3" },
        { thinking: { type: "enabled" }, effort: "low" },
        "https://gw.example",
        "/conf/user/s.yaml",
      ],
    },
    {
      name: "of the server the upper layer decides, and paths start at their file",
      texts: [
        [
          "machine",
          "server: {listen: 'unix:run/w.sock', token_file: tokens, workspaces: [/srv/*, ws], profiles: {a: p/a.yaml}}",
        ],
        [
          "user",
          "server: {hosts: [w.example], origins: ['https://t.example'], allow_remote: true, inspector: false, profiles: {b: ~/b.yaml}}",
        ],
        ["user", "server: {drain_grace: 5s, max_sessions: 3, max_concurrent_turns: 2, idle_unload: 1m}"],
      ],
      pick: (p) => p.server,
      expected: {
        listen: "unix:/conf/machine/run/w.sock",
        tokenFile: "/conf/machine/tokens",
        allowRemote: true,
        hosts: ["w.example"],
        origins: ["https://t.example"],
        inspector: false,
        drainGraceMs: 5000,
        maxSessions: 3,
        maxConcurrentTurns: 2,
        idleUnloadMs: 60_000,
        workspaces: ["/srv/*", "/conf/machine/ws"],
        profiles: { a: "/conf/machine/p/a.yaml", b: "/home/u/b.yaml" },
      },
    },
    {
      name: "paths start at their file, at home, or are absolute",
      texts: [
        ["machine", "audit: {dir: ../logs, heads: ../heads.jsonl, key: {file: ~/audit.key}, keep: 90d}"],
        [
          "user",
          "model: {api_key: {file: ~/key}}\nskills: {sources: [user, {path: s}, {path: /opt/s, tier: project}]}",
        ],
      ],
      pick: (p) => [p.auditDir, p.audit, p.model.apiKey, plain(p.skills.sources)],
      expected: [
        "/conf/logs",
        { keepDays: 90, heads: "/conf/heads.jsonl", key: { file: "/home/u/audit.key" } },
        { file: "/home/u/key" },
        [
          { kind: "tier", tier: "user" },
          {
            kind: "path",
            path: "/conf/user/s",
            tier: "user",
            at: { file: "/conf/user/p1.yaml", line: 3, col: 26 },
          },
          {
            kind: "path",
            path: "/opt/s",
            tier: "project",
            at: { file: "/conf/user/p1.yaml", line: 3, col: 37 },
          },
        ],
      ],
    },
    {
      name: "a folder of skills counts where the layers above list its tier",
      texts: [
        ["machine", "skills: {sources: [builtin, machine, {path: /opt/m}]}"],
        ["user", "skills: {sources: [machine, user, {path: /opt/u}]}"],
      ],
      pick: (p) => plain(p.skills.sources),
      expected: [{ kind: "tier", tier: "machine" }],
    },
    {
      name: "environment and tools intersect, whoever is first",
      texts: [
        ["machine", "sandbox: {env: [TZ, PATH, HOME]}\ntools: {enabled: [shell, read_file]}"],
        ["user", "sandbox: {env: [PATH, TZ, LANG]}\ntools: {enabled: [read_file, write_file, shell]}"],
      ],
      pick: (p) => [p.shellEnv, p.tools.enabled],
      expected: [["PATH", "TZ"], ["read_file", "shell"]],
    },
    {
      name: "an empty list is a list",
      texts: [[
        "user",
        "sandbox: {env: []}\ntools: {enabled: []}\nskills: {sources: []}\nworkspace: {instructions: []}",
      ]],
      pick: (p) => [p.shellEnv, p.tools.enabled, p.skills.sources, p.instructions],
      expected: [[], [], [], []],
    },
    {
      name: "the strictest word on trust, sandbox, bounds and choice",
      texts: [
        [
          "machine",
          "workspace: {trust: trusted}\nsandbox: {mode: 'off'}\nskills: {undeclared_tools: unbounded, combine_bounds: union, model_choice: true}",
        ],
        [
          "user",
          "workspace: {trust: untrusted}\nsandbox: {mode: required}\nskills: {undeclared_tools: reject, combine_bounds: intersection, model_choice: false}",
        ],
      ],
      pick: (
        p,
      ) => [
        p.trust,
        p.sandbox.mode,
        p.skills.undeclaredTools,
        p.skills.combineBounds,
        p.skills.modelChoice,
      ],
      expected: [
        "untrusted",
        "required",
        "reject",
        "intersection",
        false,
      ],
    },
    {
      name: "the default box is what every layer names, and hides what any of them names",
      texts: [
        [
          "machine",
          "sandbox: {backend: bwrap, network: all, read: [system, workspace, /opt], write: [workspace], hide: [/etc/a], limits: {memory: 1GiB}}",
        ],
        [
          "user",
          "sandbox: {network: none, read: [system, tools, /opt/x, workspace], write: [workspace, home], hide: [~/b], limits: {memory: 2GiB, processes: 9}}",
        ],
        ["project", "sandbox: {hide: [/c]}"],
      ],
      pick: (p) => [
        p.sandbox.backend,
        p.sandbox.network,
        p.sandbox.read,
        p.sandbox.write,
        p.sandbox.hide.slice(4),
        p.sandbox.limits,
      ],
      expected: [
        "bwrap",
        "none",
        ["system", "workspace", { path: "/opt/x" }],
        ["workspace"],
        ["/etc/a", "/home/u/b", "/c"],
        { processes: 9, memory: 2 ** 30 },
      ],
    },
    {
      name: "boxes of two layers: the names of the upper one, and of each what both say",
      texts: [
        [
          "machine",
          "sandbox: {boxes: {a: {network: all, env: [X, Y], read: [/d]}, b: {mode: 'off'}, c: {network: all}}}",
        ],
        [
          "user",
          "sandbox: {boxes: {a: {network: all, env: [Y, Z], read: [/d/e, /f]}, b: {network: all}, d: {network: all}}}",
        ],
      ],
      pick: (p) => p.sandbox.boxes,
      expected: [
        { name: "a", network: "all", read: [{ path: "/d/e" }], write: [], env: ["Y"], sockets: [] },
        { name: "b", read: [], write: [], env: [], sockets: [] },
        { name: "c", network: "all", read: [], write: [], env: [], sockets: [] },
      ],
    },
    {
      name: "time limits of commands take the least, and the default stays below the most",
      texts: [
        ["machine", "tools: {shell: {max_timeout: 60s, max_output: 1000}}"],
        [
          "user",
          "tools: {shell: {timeout: 100s, max_timeout: 90s, max_output: 2000}}\npermissions: {ask_timeout: 1m}",
        ],
      ],
      pick: (p) => [p.tools.shell, p.askTimeoutMs],
      expected: [{ timeoutMs: 60_000, maxTimeoutMs: 60_000, maxOutput: 1000 }, 60_000],
    },
    {
      name: "lists of all layers unite",
      texts: [
        ["machine", "secrets: {redact: {env: [A, B], patterns: [tok]}}\nskills: {disabled: [a]}"],
        ["user", "secrets: {redact: {env: [B, C], patterns: [pw]}}\nskills: {disabled: [b]}"],
        [
          "project",
          "secrets: {redact: {env: [D]}}\nskills: {disabled: [c], triggers: {s: {patterns: [go]}}}",
        ],
      ],
      pick: (p) => [
        p.redact.env,
        p.redact.patterns.map((x) => x.source),
        p.skills.disabled.map(({ glob, layer }) => ({ glob, layer })),
        p.skills.triggers.map((t) => [t.skill, t.layer, t.pattern.source, t.pattern.test("GO")]),
      ],
      expected: [
        ["A", "B", "C", "D"],
        ["tok", "pw"],
        [{ glob: "a", layer: "machine" }, { glob: "b", layer: "user" }, { glob: "c", layer: "project" }],
        [["s", "project", "go", true]],
      ],
    },
    {
      name: "a skill forced by several layers is loaded once, with the upper layer's arguments",
      texts: [
        ["machine", "skills: {forced: [{skill: s, when: session, arguments: a}]}"],
        [
          "user",
          "skills: {forced: [{skill: s, when: session, bounding: true, arguments: b}, {skill: t, when: session}]}",
        ],
      ],
      pick: (p) =>
        p.skills.forced.map(({ skill, layer, arguments: a, bounding }) => [skill, layer, a, bounding]),
      expected: [["s", "machine", "a", true], ["t", "user", "", false]],
    },
  ];
  for (const row of rows) {
    test(row.name, () => assertEquals(row.pick(merge(...row.texts).policy), row.expected));
  }

  test("rules of all files of a layer are one list each, numbered through", () => {
    const { policy } = merge(
      [
        "user",
        "permissions: {default: ask, deny: ['shell(sudo *)'], allow: [read_file], delegate: ['shell(npm run *)']}",
      ],
      ["user", "permissions: {deny: [{id: own, tool: write_file}, shell]}"],
      ["project", "permissions: {allow: ['shell(npm run build)']}"],
    );
    assertEquals(
      policy.layers.map((l) => [
        l.name,
        l.rules.map((r) => [r.id, r.effect, r.text]),
        Object.fromEntries(Object.entries(l.defaults).map(([risk, d]) => [risk, d.effect])),
        l.delegates.map((d) => d.tools),
      ]),
      [
        [
          "user",
          [
            ["user.deny[0]", "deny", "shell(sudo *)"],
            ["own", "deny", "write_file"],
            ["user.deny[2]", "deny", "shell"],
            ["user.allow[0]", "allow", "read_file"],
          ],
          { read: "ask", write: "ask", execute: "ask", network: "ask", destructive: "ask" },
          [["shell"]],
        ],
        ["project", [["project.allow[0]", "allow", "shell(npm run build)"]], {}, []],
      ],
    );
  });

  test("a rule as a mapping, compiled and in one line", () => {
    const { policy } = merge([
      "user",
      `permissions:
  sets: {ours: ["*.corp.example", Docs.Example.]}
  ask:
    - {id: a, tool: [read_file, "skill.x.*"], path: ["@secrets", "src/*"], except: ["**/.env.example"], reason: why, always: true}
    - {tool: fetch_url, host: "@ours", mode: unattended, risk: [network], arg: {url: "*x*"}}
    - {tool: "load_skill(review-*)", sourced_by: "skill:*", workspace: ~/w}
  allow:
    - {tool: read_file, sourced_by: ["skill:guardian"]}`,
    ]);
    const rules = policy.layers[0]!.rules;
    const seen = rules.map(({ path, exceptPath, at, ...rest }: Rule) => ({
      ...plain(rest),
      line: at.line,
      ...(path === undefined ? {} : { paths: path.length, last: path.at(-1)?.source }),
      ...(exceptPath === undefined ? {} : { except: exceptPath.map((p) => p.source) }),
    }));
    const secrets = policy.layers[0]!.rules[0]!.path!.length - 1;
    assert(secrets > 30);
    assertEquals(seen, [
      {
        id: "a",
        tools: ["read_file", "skill.x.*"],
        effect: "ask",
        layer: "user",
        text: "read_file, skill.x.* path @secrets, src/* except **/.env.example",
        reason: "why",
        always: true,
        line: 5,
        paths: secrets + 1,
        last: "src/*",
        except: ["**/.env.example"],
      },
      {
        id: "user.ask[1]",
        tools: ["fetch_url"],
        host: [{ kind: "under", domain: "corp.example" }, { kind: "exact", host: "docs.example" }],
        args: { url: ["*x*"] },
        risk: ["network"],
        mode: "unattended",
        effect: "ask",
        layer: "user",
        text: "fetch_url(@ours) arg url=*x* risk network mode unattended",
        line: 6,
      },
      {
        id: "user.ask[2]",
        tools: ["load_skill"],
        skill: ["review-*"],
        sourcedBy: ["skill:*"],
        workspace: "/home/u/w",
        effect: "ask",
        layer: "user",
        text: "load_skill(review-*) sourced_by skill:* workspace ~/w",
        line: 7,
      },
      {
        id: "user.allow[0]",
        tools: ["read_file"],
        risk: ["read"],
        sourcedBy: ["skill:guardian"],
        effect: "allow",
        layer: "user",
        text: "read_file sourced_by skill:guardian",
        line: 9,
      },
    ]);
  });

  test("gates", () => {
    const { policy } = merge([
      "user",
      `skills:
  forced:
    - {skill: guardian, when: session}
    - {skill: guardian, before: ["shell(git merge *)", {id: m, tool: shell, command: [gh pr merge *]}], evidence: [git_diff], verdict: [PASS], arguments: x}
    - {id: tested, before: ["shell(git push *)"], evidence: ["shell(@test-runners)"]}`,
    ]);
    assertEquals(
      policy.gates.map((g) => [
        g.id,
        g.before.map((r) => [r.id, r.effect]),
        g.evidence.map((r) => [r.id, r.effect, r.text]),
        g.skill,
        g.verdict,
        g.at.line,
      ]),
      [
        [
          "user.forced[1]",
          [["user.forced[1].before[0]", "deny"], ["m", "deny"]],
          [["user.forced[1].evidence[0]", "allow", "git_diff"]],
          "guardian",
          ["PASS"],
          5,
        ],
        [
          "tested",
          [["tested.before[0]", "deny"]],
          [["tested.evidence[0]", "allow", "shell(@test-runners)"]],
          undefined,
          undefined,
          6,
        ],
      ],
    );
    assertEquals(policy.skills.forced.map((f) => [f.skill, f.arguments, f.when]), [
      ["guardian", "", { at: "session" }],
      ["guardian", "x", { at: "gate", gate: "user.forced[1]" }],
    ]);
  });

  test("gates on the end of a turn, and gates that are not used up", () => {
    const { policy, origin } = merge([
      "user",
      `skills:
  forced:
    - {skill: g, before: finish, evidence: [git_diff], verdict: [PASS, FAIL], by: fork}
    - {id: both, before: ["shell(git push *)", finish, git_diff], evidence: [read_file], gate_retries: 0, reuse: true}
    - {before: ["shell(x)"], evidence: [read_file], reuse: false}
    - {skill: g, when: [session]}`,
    ]);
    assertEquals(
      policy.gates.map((g) => [g.id, g.before.map((r) => r.id), g.finish?.retries, g.reuse, g.by]),
      [
        ["user.forced[0]", [], 3, undefined, "fork"],
        ["both", ["both.before[0]", "both.before[2]"], 0, true, undefined],
        ["user.forced[2]", ["user.forced[2].before[0]"], undefined, undefined, undefined],
      ],
    );
    assertEquals(policy.skills.forced.map((f) => f.when), [
      { at: "gate", gate: "user.forced[0]" },
      { at: "session" },
    ]);
    assertEquals(origin.filter((o) => o.key === "skills.forced").map((o) => o.value), [
      "skill g, before finish, evidence git_diff, verdict PASS or FAIL, by a fork",
      "gate, before shell(git push *), finish, git_diff, evidence read_file, reuse, gate_retries 0",
      "gate, before shell(x), evidence read_file",
      "skill g, when session",
    ]);
  });

  test("risky options of the policy reach the command patterns of every layer", () => {
    const { policy } = merge(
      ["machine", "permissions: {allow: ['shell(tool *)']}"],
      ["user", "permissions: {risky_options: ['/usr/bin/tool --exec', 'tool sub -x']}"],
    );
    assertEquals(policy.layers[0]!.rules[0]!.command![0]!.risky, [
      { program: "tool", option: "--exec", kind: "runs" },
      { program: "tool", sub: "sub", option: "-x", kind: "runs" },
    ]);
  });

  test("origin names the file, line and column of every value", () => {
    const { origin } = merge(
      ["machine", "limits: {iterations: 5}\nmodel: {headers: {x-token: secret}}"],
      [
        "user",
        "permissions: {deny: ['shell(sudo *)'], default: {read: deny}}\nsecrets: {redact: {env: [T]}}",
      ],
    );
    assertEquals(
      origin.filter((o) => o.layer !== "default").sort((a, b) => a.key < b.key ? -1 : 1),
      [
        {
          key: "limits.iterations",
          value: 5,
          layer: "machine",
          at: { file: "/conf/machine/p0.yaml", line: 2, col: 22 },
        },
        {
          key: "model.headers.x-token",
          value: "…",
          layer: "machine",
          at: { file: "/conf/machine/p0.yaml", line: 3, col: 19 },
        },
        {
          key: "permissions.default.read",
          value: "deny",
          layer: "user",
          at: { file: "/conf/user/p1.yaml", line: 2, col: 56 },
        },
        {
          key: "permissions.deny",
          value: "user.deny[0]: shell(sudo *)",
          layer: "user",
          at: { file: "/conf/user/p1.yaml", line: 2, col: 22 },
        },
        {
          key: "secrets.redact.env",
          value: "T",
          layer: "user",
          at: { file: "/conf/user/p1.yaml", line: 3, col: 26 },
        },
      ],
    );
  });

  test("examples come with their rule and are decided by who can", () => {
    const { examples } = merge([
      "user",
      "permissions: {allow: [{id: g, tool: shell, command: ['git diff *'], match: [git diff, git log], no_match: git push}]}",
    ]);
    assertEquals(examples.map((e) => [e.rule.id, e.text, e.want]), [
      ["g", "git diff", "match"],
      ["g", "git log", "match"],
      ["g", "git push", "no_match"],
    ]);
    const problems = checkExamples(examples, (rule, text) => rule.id === "g" && text !== "git log");
    assertEquals(problems, [
      {
        code: "example-fails",
        severity: "error",
        message: "rule `g` does not match its example `git log`",
        at: { file: "/conf/user/p0.yaml", line: 2, col: 87 },
        hint: "the rule is `shell(git diff *)`; change it or the example",
      },
      {
        code: "example-fails",
        severity: "error",
        message: "rule `g` matches `git push`, which it must not",
        at: { file: "/conf/user/p0.yaml", line: 2, col: 107 },
        hint: "the rule is `shell(git diff *)`; change it or the example",
      },
    ]);
  });

  test("the revision changes with layer, path and every byte", () => {
    const bytes = new TextEncoder().encode("version: 1\n");
    const one = { layer: "user", path: "/a", bytes };
    const revisions = [
      [],
      [one],
      [one, one],
      [{ ...one, layer: "machine" }],
      [{ ...one, path: "/b" }],
      [{ ...one, bytes: bytes.slice(1) }],
    ].map(policyRevision);
    assertEquals(new Set(revisions).size, revisions.length);
    assertEquals(policyRevision([one]), policyRevision([{ ...one }]));
  });
});

test("h-po-01: a project's allow does not lift a user's deny, and the decision names the user's rule", () => {
  const { policy } = merge(["user", "permissions: {deny: [shell]}"], [
    "project",
    "permissions: {allow: [shell]}",
  ]);
  const facts = {
    tool: "shell",
    args: { command: "id" },
    risk: "execute",
    subjects: [{ kind: "call" }],
    box: "default",
    sourcedBy: [],
    mode: "unattended",
    errors: [],
  } as const;
  const verdict = decide(policy.layers, facts, { root: "/ws", active: [], bounds: [], blocks: [] });
  assertEquals([verdict.effect, verdict.causes[0]], ["deny", {
    by: "rule",
    effect: "deny",
    rule: "user.deny[0]",
    layer: "user",
    at: { file: "/conf/user/p0.yaml", line: 2, col: 22 },
    text: "shell",
  }]);
});

describe("what is always protected", () => {
  const { policy } = merge([
    "user",
    "workspace: {protect: ['infra/**'], instructions: [AGENTS.md, docs/RULES.md]}\nmodel: {api_key: {file: /run/key}}",
  ]);
  const shown = (path: string) => policy.protect.find((p) => p.pattern.test(path))?.shown;
  const rows: readonly (readonly [path: string, by: string | undefined])[] = [
    ["/ws/.writ/policy.yaml", ".writ/**"],
    ["/ws/.writ", ".writ/**"],
    ["/ws/sub/.WRIT/x", ".writ/**"],
    ["/ws/.git/hooks/pre-commit", ".git/hooks/**"],
    ["/ws/.git/hooks", ".git/hooks/**"],
    ["/ws/.Git/Config", ".git/{config,config.worktree,commondir}"],
    ["/ws/a/.git/config.worktree", ".git/{config,config.worktree,commondir}"],
    ["/ws/.git/worktrees/x/gitdir", ".git/{info,modules,worktrees}/**"],
    ["/ws/.git/modules/m/hooks/x", ".git/{info,modules,worktrees}/**"],
    ["/ws/.git/info/exclude", ".git/{info,modules,worktrees}/**"],
    ["/ws/bare.git/hooks/x", ".git/hooks/**"],
    ["/repo/store/hooks/x", "/repo/store/hooks/**"],
    ["/repo/store/config", "/repo/store/{config,config.worktree,commondir}"],
    ["/ws/wt/.git", ".git"],
    ["/conf/user/p0.yaml", "/conf/user/p0.yaml"],
    ["/ws/AGENTS.md", "AGENTS.md"],
    ["/ws/sub/deep/agents.md", "AGENTS.md"],
    ["/ws/docs/RULES.md", "docs/RULES.md"],
    ["/ws/.writ/skills/x/SKILL.md", ".writ/**"],
    ["/home/u/.config/writ/policy.d/x.yaml", "/home/u/.config/writ/**"],
    ["/run/key", "/run/key/**"],
    ["/ws/infra/main.tf", "infra/**"],
    ["/ws/.git/HEAD", undefined],
    ["/ws/.git/index", undefined],
    ["/ws/.github/workflows/x.yml", undefined],
    ["/ws/.gitignore", undefined],
    ["/ws/config", undefined],
    ["/ws/src/hooks/x", undefined],
    ["/ws/.writable", undefined],
    ["/ws/docs/AGENTS.md.bak", undefined],
    ["/ws/infrastructure", undefined],
  ];
  for (const [path, by] of rows) {
    test(`${path} ${by === undefined ? "is free" : `by ${by}`}`, () => assertEquals(shown(path), by));
  }
});

describe("adding a project file never loosens", () => {
  const limit = fc.record({
    iterations: fc.integer({ min: 1, max: 100 }),
    tool_calls: fc.integer({ min: 0, max: 400 }),
    wall_time: fc.integer({ min: 1, max: 60 }).map((m) => `${m}m`),
    same_call: fc.integer({ min: 1, max: 9 }),
    tokens: fc.integer({ min: 1, max: 9 }),
  }, { requiredKeys: [] });
  const names = fc.subarray(["PATH", "LANG", "HOME", "TZ", "EDITOR"]);
  const tools = fc.subarray(["read_file", "shell", "write_file", "git_diff"]);
  const upper = fc.record({
    limits: limit,
    env: fc.option(names, { nil: undefined }),
    tools: fc.option(tools, { nil: undefined }),
    trust: fc.constantFrom("trusted", "ask", "untrusted", undefined),
    mode: fc.constantFrom("required", "off", undefined),
    protect: fc.subarray(["a", "b/**", "c"]),
    disabled: fc.subarray(["x", "y-*"]),
  });
  const project = fc.record({
    limits: limit,
    protect: fc.subarray(["d", "e/**"]),
    disabled: fc.subarray(["z", "w"]),
    forced: fc.subarray(["s", "t"]),
    gate: fc.boolean(),
    redact: fc.subarray(["T1", "T2"]),
    deny: fc.subarray(["shell", "read_file(src/**)"]),
  });
  type Upper = typeof upper extends fc.Arbitrary<infer T> ? T : never;
  type Project = typeof project extends fc.Arbitrary<infer T> ? T : never;
  const upperYaml = (u: Upper) =>
    JSON.stringify({
      version: 1,
      limits: u.limits,
      sandbox: {
        ...(u.env === undefined ? {} : { env: u.env }),
        ...(u.mode === undefined ? {} : { mode: u.mode }),
      },
      tools: u.tools === undefined ? {} : { enabled: u.tools },
      workspace: { ...(u.trust === undefined ? {} : { trust: u.trust }), protect: u.protect },
      skills: { disabled: u.disabled },
    });
  const projectYaml = (p: Project) =>
    JSON.stringify({
      version: 1,
      limits: p.limits,
      workspace: { protect: p.protect },
      skills: {
        disabled: p.disabled,
        forced: [
          ...p.forced.map((skill) => ({ skill, when: "session" })),
          ...(p.gate ? [{ before: ["shell(git push *)"], evidence: ["git_diff"] }] : []),
        ],
      },
      secrets: { redact: { env: p.redact } },
      permissions: { deny: p.deny },
    });
  const within = <T>(small: readonly T[], large: readonly T[]) => small.every((x) => large.includes(x));

  function tighter(after: Policy, before: Policy): readonly string[] {
    const faults: string[] = [];
    const claim = (name: string, holds: boolean) => holds || faults.push(name);
    for (const key of ["iterations", "toolCalls", "wallTimeMs", "sameCall"] as const) {
      claim(key, after.limits[key] <= before.limits[key]);
    }
    claim(
      "tokens",
      before.limits.tokens === undefined || (after.limits.tokens ?? Infinity) <= before.limits.tokens,
    );
    claim("env", within(after.shellEnv, before.shellEnv));
    claim("tools", within(after.tools.enabled, before.tools.enabled));
    claim("sandbox", after.sandbox.mode === before.sandbox.mode || after.sandbox.mode === "required");
    claim(
      "trust",
      ["untrusted", "ask", "trusted"].indexOf(after.trust) <=
        ["untrusted", "ask", "trusted"].indexOf(before.trust),
    );
    claim("protect", within(before.protect.map((p) => p.shown), after.protect.map((p) => p.shown)));
    claim(
      "disabled",
      within(before.skills.disabled.map((d) => d.glob), after.skills.disabled.map((d) => d.glob)),
    );
    claim(
      "forced",
      within(before.skills.forced.map((f) => f.skill), after.skills.forced.map((f) => f.skill)),
    );
    claim("gates", within(before.gates.map((g) => g.id), after.gates.map((g) => g.id)));
    claim("redact", within(before.redact.env, after.redact.env));
    claim(
      "rules",
      within(
        before.layers.flatMap((l) => l.rules.map((r) => r.id)),
        after.layers.flatMap((l) => l.rules.map((r) => r.id)),
      ),
    );
    claim("model", JSON.stringify(after.model) === JSON.stringify(before.model));
    claim("shell", JSON.stringify(after.tools.shell) === JSON.stringify(before.tools.shell));
    return faults;
  }

  test("whatever machine, user and project say", () => {
    fc.assert(
      fc.property(upper, upper, project, (m, u, p) => {
        const outer: readonly Text[] = [["machine", upperYaml(m)], ["user", upperYaml(u)]];
        const before = merge(...outer).policy;
        const after = merge(...outer, ["project", projectYaml(p)]).policy;
        assertEquals(tighter(after, before), []);
      }),
      { numRuns: 200 },
    );
  });

  test("and a user file never loosens what the machine sets", () => {
    fc.assert(
      fc.property(upper, upper, (m, u) => {
        const every = {
          ...m,
          limits: { iterations: 9, tool_calls: 9, wall_time: "9m", same_call: 2, tokens: 5 },
          env: m.env ?? ["PATH"],
          tools: m.tools ?? ["shell"],
          trust: m.trust ?? "ask",
          mode: m.mode ?? "required",
        };
        const machine: Text = ["machine", upperYaml(every as Upper)];
        assertEquals(tighter(merge(machine, ["user", upperYaml(u)]).policy, merge(machine).policy), []);
      }),
      { numRuns: 200 },
    );
  });

  test("the order of files in a layer does not change what is in force", () => {
    fc.assert(
      fc.property(fc.shuffledSubarray(["a", "b", "c", "d"], { minLength: 4 }), (names) => {
        const texts: readonly Text[] = names.map((
          n,
        ) => ["user", `workspace: {protect: [${n}]}\npermissions: {deny: [{id: ${n}, tool: shell}]}`]);
        const { policy } = merge(...texts);
        assertEquals(policy.layers[0]!.rules.map((r) => r.id).sort(), ["a", "b", "c", "d"]);
        assertEquals(policy.protect.slice(-4).map((p) => p.shown).sort(), ["a", "b", "c", "d"]);
      }),
      { numRuns: 24 },
    );
  });
});

describe("pins and secrets of skills", () => {
  const [zeros, ones] = ["0", "1"].map((digit) => `sha256:${digit.repeat(64)}`);

  test("pins of all layers unite, and one that is said twice is the upper layer's", () => {
    const { policy, origin } = merge(
      ["machine", `skills: {pins: {a: "${zeros}"}, require_pins: false}`],
      ["user", `skills: {pins: {a: "${zeros}", b: "${ones}"}, require_pins: true}`],
    );
    assertEquals(policy.skills.pins.map((p) => [p.skill, p.hash, p.layer, p.at.line]), [
      ["a", zeros, "machine", 2],
      ["b", ones, "user", 2],
    ]);
    assertEquals(policy.skills.requirePins, true);
    assertEquals(origin.filter((o) => o.key.startsWith("skills.pins")).map((o) => [o.key, o.value]), [
      ["skills.pins.a", zeros as string],
      ["skills.pins.b", ones as string],
    ]);
  });

  test("secrets are placed beside their file, and `policy show` tells the place, never what is there", () => {
    const { policy, origin } = merge([
      "user",
      "skills: {secrets: {deploy: {A: {file: token}, B: {env: X}}}}",
    ]);
    assertEquals(policy.skills.secrets.map(({ at: _, ...secret }) => secret), [
      { skill: "deploy", variable: "A", source: { file: "/conf/user/token" } },
      { skill: "deploy", variable: "B", source: { env: "X" } },
    ]);
    assertEquals(
      origin.filter((o) => o.key.startsWith("skills.secrets")).map((o) => [o.key, o.value]),
      [["skills.secrets.deploy.A", "file /conf/user/token"], ["skills.secrets.deploy.B", "env X"]],
    );
    assert(policy.protect.some((p) => p.pattern.test("/conf/user/token")));
  });

  test("of entries that force one skill the narrower tier counts", () => {
    const tierOf = (machine: string, user: string) =>
      merge(
        ["machine", `skills: {forced: [{skill: s, when: session${machine}}]}`],
        ["user", `skills: {forced: [{skill: s, when: session${user}}]}`],
      ).policy.skills.forced.map((f) => f.tier);
    assertEquals(tierOf("", ", tier: builtin"), ["builtin"]);
    assertEquals(tierOf("", ", tier: project"), [undefined]);
    assertEquals(tierOf(", tier: project", ", tier: user"), ["user"]);
    assertEquals(tierOf(", tier: user", ", tier: project"), ["user"]);
  });
});
