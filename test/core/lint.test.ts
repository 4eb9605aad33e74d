import { assertEquals, assertMatch } from "@std/assert";
import { describe, test } from "bun:test";
import { lintPolicy } from "../../src/core/lint.ts";
import type { Layer } from "../../src/core/policy.ts";
import { pathPattern } from "../../src/load/policy_matchers.ts";
import { type Entries, layerOf, ruleContext } from "../support/rules.ts";

const wrappers = ["env", "timeout", "xargs", "uv run", "docker run", "npx jest"];
const runsOthers = (words: readonly string[]) => wrappers.includes(words.join(" "));
const protect = ["/ws/.writ/**", "/ws/AGENTS.md"].map((glob) => {
  const made = pathPattern(glob, ruleContext);
  if ("error" in made) throw new Error(made.error);
  return { ...made, shown: glob.slice(4) };
});
const enabled = ["read_file", "list_files", "search_text", "git_diff", "write_file", "edit_file", "shell"];

type Found = readonly (readonly [code: string, line: number])[];

function lint(
  layers: readonly Layer[],
  more: { readonly tried?: readonly string[]; readonly enabled?: readonly string[] } = {},
) {
  return lintPolicy({
    policy: {
      layers,
      protect,
      tools: { enabled: more.enabled ?? enabled, shell: { timeoutMs: 1, maxTimeoutMs: 1, maxOutput: 1 } },
      root: "/ws",
    },
    home: "/home/u",
    tried: new Set(more.tried ?? layers.flatMap((l) => l.rules.map((r) => r.id))),
    runsOthers,
  });
}

function found(entries: Entries): Found {
  return lint([layerOf("user", entries)]).map((p) => [p.code, p.at?.line ?? 0]);
}

const cases: readonly (readonly [name: string, rules: Entries, want: Found])[] = [
  ["nothing in a plain policy", {
    deny: [{ tool: "*", path: "@secrets" }, "shell(sudo *)"],
    ask: ["shell(git push *)"],
    allow: ["read_file", "edit_file(src/**)", "shell(git status)", "shell(git diff *)", "shell(bun test *)"],
  }, []],
  // dead
  ["an except that takes all", { deny: [{ tool: "read_file", path: "a/*.env", except: "a/**" }] }, [[
    "dead-rule",
    1,
  ]]],
  ["an except that takes a part", { deny: [{ tool: "read_file", path: "**/*.env", except: "a/**" }] }, []],
  ["an except over commands", { allow: [{ tool: "shell", command: "git push *", except: "git *" }] }, [[
    "dead-rule",
    21,
  ]]],
  ["a tool that is not enabled", { allow: ["fetch_url(a.example)"], deny: ["fetch_url(b.example)"] }, [[
    "dead-rule",
    21,
  ]]],
  ["one of two tools", { allow: [{ tool: ["fetch_url", "read_file"] }] }, [["broad-rule", 21]]],
  ["a risk that the tool never has", {
    allow: [{ tool: "list_files", risk: "write" }],
    deny: [{ tool: "list_files", risk: "write" }],
  }, [
    ["dead-rule", 21],
  ]],
  ["a source for what is no read", { allow: [{ tool: "edit_file", path: "a", sourced_by: "skill:x" }] }, [[
    "dead-rule",
    21,
  ]]],
  ["a glob over protected files", { allow: ["edit_file(.writ/**)", "edit_file(.writ/policy.yaml)"] }, [[
    "dead-rule",
    21,
  ]]],
  // shadowed
  ["an allow under a deny", { deny: ["shell(git *)"], allow: ["shell(git push origin)"] }, [[
    "shadowed-rule",
    21,
  ]]],
  ["an allow under an ask", { ask: ["edit_file(src/**)"], allow: ["edit_file(src/a)"] }, [[
    "shadowed-rule",
    21,
  ]]],
  ["an ask under a deny", { deny: ["shell(git push *)"], ask: ["shell(git push --force *)"] }, [[
    "shadowed-rule",
    11,
  ]]],
  ["an allow that a deny meets in part", { deny: ["shell(git push *)"], allow: ["shell(git *)"] }, []],
  ["an allow in another mode than the deny", {
    deny: [{ tool: "shell", command: "npm *", mode: "unattended" }],
    allow: ["shell(npm test)"],
  }, []],
  // doubled
  ["two that say the same", { allow: ["shell(npm test)", "shell(npm  test)"] }, [["duplicate-rule", 22]]],
  ["one within another", { allow: ["edit_file(src/a)", "edit_file(src/**)"] }, [["redundant-rule", 21]]],
  ["one deny within another", { deny: ["shell(git push *)", "shell(git push --force *)"] }, [[
    "redundant-rule",
    2,
  ]]],
  ["an ask that no grant answers, within one that a grant does", {
    ask: ["shell(git push *)", { tool: "shell", command: "git push --force *", always: true }],
  }, []],
  ["exact words that answer the risk floor", { allow: ["shell(git push *)", "shell(git push --force)"] }, []],
  [
    "exact words of a command that runs another",
    { allow: ["shell(timeout 5 *)", "shell(timeout 5 ls)"] },
    [],
  ],
  ["a protected file that is named", { allow: ["edit_file(*.md)", "edit_file(AGENTS.md)"] }, []],
  // broad
  ["what ships", { allow: ["shell(@test-runners)"] }, []],
  ["what ships, and an entry of one's own", {
    allow: [{ tool: "shell", command: ["@test-runners", "env *"] }],
  }, [["broad-rule", 21]]],
  ["an entry of one's own that ships as well", { allow: ["shell(npx jest *)"] }, [["broad-rule", 21]]],
  ["every command", { allow: ["shell"] }, [["broad-rule", 21]]],
  ["every command by a star", { allow: ["shell(*)"] }, [["broad-rule", 21]]],
  ["every command that reads", { allow: [{ tool: "shell", risk: "read" }] }, []],
  ["every tool", { allow: ["*"] }, [["broad-rule", 21], ["broad-rule", 21], ["broad-rule", 21]]],
  ["an interpreter", {
    allow: ["shell(python3.12 *)", "shell(node -e *)", "shell(deno run *)", "shell(bash -c *)"],
  }, [
    ["broad-rule", 21],
    ["broad-rule", 22],
    ["broad-rule", 23],
    ["broad-rule", 24],
  ]],
  ["an interpreter with its program", {
    allow: ["shell(python -m pytest *)", "shell(node build.js *)", "shell(bun test *)", "shell(make test)"],
  }, []],
  ["a wrapper", { allow: ["shell(env *)", "shell(uv run *)"] }, [
    ["broad-rule", 21],
    ["broad-rule", 22],
  ]],
  [
    "every file",
    { allow: ["edit_file(**)", "write_file(/**)", "write_file(~/**)", "edit_file"] },
    [
      ["broad-rule", 21],
      ["redundant-rule", 23],
      ["broad-rule", 22],
      ["broad-rule", 24],
    ].sort(([, a], [, b]) => Number(a) - Number(b)) as unknown as Found,
  ],
  ["every file to read", { allow: ["read_file(**)", "list_files"] }, []],
];

describe("lintPolicy()", () => {
  for (const [name, rules, want] of cases) test(name, () => assertEquals(found(rules), want));

  test("rules of an upper layer shadow those of a lower one, and deny alone doubles them", () => {
    const upper = layerOf("machine", {
      deny: ["shell(git push *)"],
      allow: ["shell(git diff *)"],
      ask: ["shell(npm *)"],
    });
    const lower = layerOf("user", {
      deny: ["shell(git push --force *)"],
      ask: ["shell(npm test)"],
      allow: ["shell(git diff *)", "shell(npm ci)", "shell(git push)"],
    });
    assertEquals(lint([upper, lower]).map((p) => [p.code, p.at?.file, p.at?.line]), [
      ["redundant-rule", "/user.yaml", 1],
      ["shadowed-rule", "/user.yaml", 22],
      ["shadowed-rule", "/user.yaml", 23],
    ]);
    // What a lower layer forbids does not make the upper one wrong.
    assertEquals(
      lint([
        layerOf("machine", { allow: ["shell(git push *)"] }),
        layerOf("user", { deny: ["shell(git *)"] }),
      ]),
      [],
    );
  });

  test("a machine's default that is not allow is a floor", () => {
    const at = { file: "/machine.yaml", line: 5, col: 12 };
    const machine = layerOf("machine", {}, {
      defaults: { read: { effect: "allow", at }, execute: { effect: "ask", at } },
    });
    assertEquals(lint([machine, layerOf("user", { allow: ["read_file", "git_diff"] })]), [{
      code: "default-floor",
      severity: "warning",
      message:
        "the machine's default `ask` for risk execute is a floor: no allow rule of a lower layer loosens it; the user layer has 2 now",
      at,
      hint: "leave the default to the lower layers, or add the allow rules here",
    }]);
    const user = layerOf("user", {}, { defaults: { execute: { effect: "ask", at } } });
    assertEquals(lint([user]), []);
  });

  test("a project's allow that nothing delegates has no effect", () => {
    const user = layerOf("user", {}, { delegate: ["shell(npm run *)"] });
    const project = layerOf("project", {
      allow: ["shell(npm run build)", "shell(npm ci)"],
      deny: ["shell(npm ci)"],
    });
    assertEquals(lint([user, project]).map((p) => [p.code, p.at?.line]), [["shadowed-rule", 22]]);
    const other = layerOf("project", { allow: ["shell(npm run build)", "shell(npm ci)"] });
    assertEquals(lint([user, other]).map((p) => [p.code, p.at?.line]), [["not-delegated", 22]]);
  });

  test("a rule with wildcards and no example is untried, shipped sets apart", () => {
    const layer = layerOf("user", {
      deny: [{ tool: "*", path: "@secrets" }, { tool: "read_file", path: ["@secrets", "**/*.key"] }],
      allow: [
        "shell(npm run *)",
        "shell(npm test)",
        "edit_file(src/**)",
        "edit_file(a.md)",
        "shell(npm ci *)",
        { tool: "shell", command: "@git-read" },
      ],
    });
    const lines = lint([layer], { tried: ["user.allow[25]"] }).map((p) => [p.code, p.at?.line]);
    assertEquals(lines, [["no-examples", 2], ["no-examples", 21], ["no-examples", 23]]);
  });

  test("says what is wrong, where, and what to do", () => {
    const [shadowed, broad] = lint([
      layerOf("user", { deny: ["shell(git *)"], allow: ["shell(git push)", "shell(python3 *)"] }),
    ]);
    assertEquals(shadowed, {
      code: "shadowed-rule",
      severity: "warning",
      message:
        "allow rule `shell(git push)` (user.allow[21]) never counts: deny rule `shell(git *)` (user.deny[1]) at /user.yaml:1:3 covers all of it",
      at: { file: "/user.yaml", line: 21, col: 3 },
      hint: "the strictest rule wins whatever the order; remove one of them, or narrow the stricter one",
    });
    assertMatch(
      broad?.message ?? "",
      /is very broad: `python3 \*` lets `python3` run any program text or file$/,
    );
  });

  test("a thousand rules that have nothing in common are no trouble", () => {
    const many = Array.from({ length: 1000 }, (_, i) => `shell(tool${i} *)`);
    const layer = layerOf("user", { allow: many });
    assertEquals(lint([layer]).length, 0);
  });
});
