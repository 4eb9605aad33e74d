import { assert, assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import fc from "fast-check";
import { decide } from "../../src/core/decide.ts";
import type { Facts, Part, PathFact, Subject } from "../../src/core/facts.ts";
import { nearMisses, showNearMiss } from "../../src/core/near_miss.ts";
import type { Layer } from "../../src/core/policy.ts";
import { parseShell } from "../../src/shell/parse.ts";
import { type Entries, layerOf } from "../support/rules.ts";
import { callOf } from "../support/calls.ts";
import { type Family, part, questionOf, tries } from "./decide_generators.ts";

const standing = { root: "/ws", active: [], bounds: [], blocks: [] };

function facts(tool: string, subjects: readonly Subject[], more: Partial<Facts> = {}): Facts {
  return callOf(tool, subjects, { risk: tool === "read_file" ? "read" : "execute", ...more });
}

function shell(text: string): Facts {
  return facts("shell", parseShell(text).parts.map((p): Subject => ({ kind: "part", part: p })));
}

function words(text: string, more: Partial<Part> = {}): Facts {
  return facts("shell", [{ kind: "part", part: part(text, more) }]);
}

function file(tool: string, path: string, more: Partial<PathFact> = {}): Facts {
  const fact = { written: path, absolute: path, resolved: path, inWorkspace: true, ...more };
  return facts(tool, [{ kind: "path", tool, path: fact, operand: false }]);
}

function host(name: string): Facts {
  return facts("fetch_url", [{ kind: "host", host: { written: name, host: name, private: false } }]);
}

function whole(tool: string, more: Partial<Facts>): Facts {
  return facts(tool, [{ kind: "call" }], more);
}

function near(layers: readonly Layer[], call: Facts) {
  return nearMisses({ layers, facts: call, standing, home: "/home/u" });
}

type Row = readonly [name: string, rules: Entries, call: Facts, why: readonly string[]];

describe("nearMisses() says what kept a rule from matching", () => {
  const allow = (...entries: NonNullable<Entries["allow"]>): Entries => ({ allow: entries });
  const rows: readonly Row[] = [
    ["a word", allow("shell(gh pr view *)"), shell("gh pr merge 1"), [
      "word 3 is `view`, the call has `merge`",
    ]],
    ["a word that is not there", allow("shell(npm run build)"), shell("npm run"), [
      "word 3 is `build`, the call ends before it",
    ]],
    ["a word too many", allow("shell(npm test)"), shell("npm test -- x"), [
      "the rule ends after word 2, the call goes on with `--`",
    ]],
    ["a word of unknown value", allow("shell(npm run build)"), shell("npm run $X"), [
      "word 3 is `build`; what `$X` becomes is only known when it runs",
    ]],
    ["the spelling of the program", allow("shell(npm *)"), shell("./npm install"), [
      "word 1 is `npm`, the call runs `./npm`: an allow rule names a program as it is written",
    ]],
    ["a risky option", allow("shell(sort *)"), shell("sort -o out in"), [
      "`*` does not cover the option `-o` (`-o`), since with it the program writes; a rule must name it",
    ]],
    ["an assignment", allow("shell(npm *)"), shell("CI=1 npm test"), [
      "the call sets `CI=1`, which the rule does not name",
    ]],
    ["an assignment that is not there", allow("shell(CI=1 npm test)"), shell("npm test"), [
      "the rule names `CI=1`, which the call does not set",
    ]],
    ["being inside", allow("shell(npm *)"), shell("nohup npm test"), [
      "it runs inside another command; an allow rule covers only what the text itself names",
    ]],
    ["a value that is only known later", allow("shell(npm *)"), shell("npm run $X"), [
      "`$X` is a variable; no allow rule covers that",
    ]],
    ["another program altogether", allow("shell(npm *)"), shell("cargo build"), []],
    ["a deny that stops short", { deny: ["shell(git push --force *)"] }, shell("git -C sub push origin"), [
      "word 3 is `--force`, the call has `origin`",
    ]],
    ["a deny without a star", { deny: ["shell(git push)"] }, shell("git push origin"), [
      "the rule ends after word 2, the call goes on with `origin`",
    ]],
    ["a deny of another subcommand", { deny: ["shell(git push *)"] }, shell("git status"), [
      "word 2 is `push`, the call has `status`",
    ]],
    ["a path segment", allow("edit_file(src/lib/**)"), file("edit_file", "/ws/src/app/a"), [
      "segment 2 is `lib`, the path has `app`",
    ]],
    [
      "where a link leads",
      allow("edit_file(src/**)"),
      file("edit_file", "/ws/src/a", { resolved: "/etc/a", inWorkspace: false }),
      ["segment 1 is `ws`, the path has `etc`, since `/ws/src/a` leads to `/etc/a`"],
    ],
    ["a path that leads nowhere", allow("edit_file(src/**)"), {
      ...file("edit_file", "/ws/src/a"),
      subjects: [{
        kind: "path",
        tool: "edit_file",
        path: { written: "a", absolute: "/ws/a", inWorkspace: true },
        operand: false,
      }],
    }, ["where the path leads cannot be resolved"]],
    ["a path longer than any that a system takes", { deny: ["read_file(secret/**)"] }, {
      ...file("read_file", `/ws/${"d/".repeat(3000)}`),
    }, ["where the path leads cannot be resolved"]],
    ["a call that is refused whatever rules say", allow("shell(git status)"), {
      ...shell("git push"),
      errors: [{ code: "unclear_syntax", message: "it can be read in two ways" }],
    }, []],
    ["a host label", allow("fetch_url(docs.example.com)"), host("api.example.com"), [
      "label 3 from the right is `docs`, the host has `api`",
    ]],
    ["a longer host", allow("fetch_url(example.com)"), host("www.example.com"), [
      "the rule names `example.com`, the host goes on with `www`",
    ]],
    ["the domain itself", allow("fetch_url(*.example.com)"), host("example.com"), [
      "it is about hosts under `example.com`, not `example.com` itself",
    ]],
    ["a shorter host", allow("fetch_url(docs.example.com)"), host("example.com"), [
      "label `docs` is missing in `example.com`",
    ]],
    ["an address", allow("fetch_url(docs.example.com)"), host("93.184.216.34"), [
      "it names `docs.example.com`, the host is `93.184.216.34`",
    ]],
    ["an except", { deny: [{ tool: "read_file", path: "**/.env*", except: "**/.env.example" }] }, {
      ...file("read_file", "/ws/.env.example"),
    }, ["its `except` takes that out: **/.env.example"]],
    [
      "what is searched for",
      allow("find_skill(review-*)"),
      whole("find_skill", { args: { query: "deploy" } }),
      [
        "it names the skill `review-*`, the call `deploy`",
      ],
    ],
    ["a skill", allow("load_skill(review-*)"), whole("load_skill", { args: { name: "deploy" } }), [
      "it names the skill `review-*`, the call `deploy`",
    ]],
    [
      "an argument",
      allow({ tool: "mcp.gh.merge", arg: { repo: "a", id: ["1", "2"] } }),
      whole("mcp.gh.merge", { args: { repo: "a", id: 5 } }),
      ["argument `id` is `1, 2`, the call has `5`"],
    ],
    ["an argument that is not there", allow({ tool: "mcp.gh.merge", arg: { repo: "a" } }), {
      ...whole("mcp.gh.merge", {}),
    }, ["argument `repo` is `a`, the call has none"]],
    ["the box of a call", allow("shell(npm *)"), { ...words("npm test"), box: "install" }, [
      "the call would run in box `install`, which the rule does not name",
    ]],
    ["the box of a rule", allow({ tool: "shell", command: "npm *", box: "install" }), words("npm test"), [
      "it is for box install, the call is for `default`",
    ]],
    ["the risk", allow({ tool: "shell", risk: "read" }), words("npm test"), [
      "it is about risk read, the call is execute",
    ]],
    ["the mode", allow({ tool: "shell", mode: "unattended" }), words("npm test"), [
      "it is for unattended runs, this one is interactive",
    ]],
    ["the workspace", allow({ tool: "shell", workspace: "/other" }), words("npm test"), [
      "it is for the workspace `/other`, this is `/ws`",
    ]],
    ["the source", allow({ tool: "read_file", sourced_by: "skill:review" }), {
      ...file("read_file", "/etc/a", { inWorkspace: false }),
    }, ["it is for calls sourced by skill:review; of the active skills none counts for it"]],
    ["another tool", allow("write_file(src/**)"), file("edit_file", "/ws/test/a"), []],
    ["an allow of what a rule forbids", { ...allow("shell(git push origin)"), deny: ["shell(git push *)"] }, {
      ...shell("git push x"),
    }, []],
    ["a rule that matches", allow("shell(npm *)"), words("npm test"), []],
    ["an operand", allow("read_file(/etc/hosts)"), {
      ...words("cat /etc/passwd"),
      subjects: [
        { kind: "part", part: part("cat /etc/passwd") },
        { ...file("read_file", "/etc/passwd").subjects[0], operand: true } as Subject,
      ],
    }, []],
  ];
  for (const [name, rules, call, why] of rows) {
    test(name, () => assertEquals(near([layerOf("user", rules)], call).map((n) => n.why), why));
  }

  test("what a project may not say", () => {
    const layers = [layerOf("user", {}), layerOf("project", { allow: ["shell(npm test)"] })];
    assertEquals(near(layers, words("npm test")).map((n) => n.why), [
      "it matches, but no upper layer delegates such calls to the project",
    ]);
    const delegating = [layerOf("user", {}, { delegate: ["shell(npm *)"] }), ...layers.slice(1)];
    assertEquals(near(delegating, words("npm test")), []);
  });

  test("the nearest come first, each rule once, five at most, none for what is allowed", () => {
    const layer = layerOf("user", {
      deny: ["shell(git push --force *)"],
      allow: [
        "shell(git status)",
        "shell(git fetch)",
        "shell(git stash list *)",
        "shell(ls *)",
        "shell(cat *)",
      ],
    });
    const call = shell("ls; git stash push; git stash drop; git fetch -p; git log --all");
    assertEquals(near([layer], call).map((n) => [n.rule, n.subject]), [
      ["user.allow[22]", "git fetch -p"],
      ["user.allow[23]", "git stash push"],
      ["user.allow[21]", "git stash push"],
      ["user.deny[1]", "git stash push"],
    ]);
    const many = Array.from({ length: 9 }, (_, i) => `shell(git fetch -${i})`);
    assertEquals(near([layerOf("user", { allow: many })], shell("git fetch --all")).length, 5);
  });
});

describe("showNearMiss()", () => {
  test("names the rule, its place and the difference", () => {
    const [miss] = near([layerOf("user", { allow: ["shell(git status)"] })], shell("git push"));
    assertEquals(
      showNearMiss(miss!),
      "near miss: allow rule user.allow[21] (shell(git status)) at /user.yaml:21:3: word 2 is `status`, the call has `push`",
    );
  });
});

describe("laws of near misses", () => {
  const families: readonly Family[] = ["shell", "file", "host", "plain"];
  const question = fc.constantFrom(...families).chain((f) => questionOf(f));

  test("a near miss is no rule that voted about that subject, and a rule of the policy", () => {
    let seen = 0;
    fc.assert(
      fc.property(question, (q) => {
        const { layers, facts, root, active, vouched } = q;
        const standing = { root, active, vouched, bounds: [], blocks: [] };
        const all = nearMisses({ layers, facts, standing, home: "/home/u", most: 1000 });
        const { causes } = decide(layers, facts, standing);
        for (const near of all) {
          seen++;
          assert(q.layers.some((l) => l.rules.some((r) => r.id === near.rule)));
          assert(near.why !== "");
          assert(causes.every((c) => c.by !== "rule" || c.rule !== near.rule || c.subject !== near.subject));
        }
      }),
      tries(1_500),
    );
    assert(seen > 500, `only ${seen} near misses were looked at`);
  }, 60_000);
});
