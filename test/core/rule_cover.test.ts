import { assert, assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import fc from "fast-check";
import type { Effect } from "../../src/core/decision.ts";
import { coversRule } from "../../src/core/rule_cover.ts";
import { matchesSubject, type Reach, type Rule } from "../../src/core/rule.ts";
import type { RuleEntry } from "../../src/load/policy_schema.ts";
import { ruleOf } from "../support/rules.ts";
import { type Family, questionOf, tries } from "./decide_generators.ts";

const base = { root: "/ws", home: "/home/u" };
const reachOf = (effect: Effect): Reach => (effect === "allow" ? "allow" : "restrict");

function covers(
  wide: RuleEntry,
  narrow: RuleEntry,
  effects: readonly [Effect, Effect] = ["allow", "allow"],
): boolean {
  const [w, n] = [ruleOf(wide, effects[0]), ruleOf(narrow, effects[1])];
  return coversRule(w, n, { wide: reachOf(w.effect), narrow: reachOf(n.effect) }, base);
}

describe("coversRule() between rules that allow", () => {
  const rows: readonly (readonly [wide: RuleEntry, narrow: RuleEntry, covers: boolean])[] = [
    ["shell(git *)", "shell(git push *)", true],
    ["shell(git *)", "shell(git push)", true],
    ["shell(git push *)", "shell(git *)", false],
    ["shell(git push)", "shell(git push *)", false],
    ["shell(git push)", "shell(git push)", true],
    ["shell(git *)", "shell(git -c a=b push)", false],
    ["shell(find *)", "shell(find . -name x)", true],
    ["shell(find *)", "shell(find . -delete)", false],
    ["shell(*)", "shell(timeout 5 ls)", false],
    ["shell(*)", "shell(*)", true],
    ["shell(npm *)", "shell(./npm test)", false],
    ["shell(npm *)", "shell(CI=1 npm test)", false],
    ["shell(CI=1 npm *)", "shell(CI=1 npm test)", true],
    ["shell", "shell(git push *)", false],
    ["shell", "shell", true],
    ["read_file", "read_file(/etc/hosts)", false],
    ["edit_file(src/**)", "edit_file(src/a.ts)", true],
    ["edit_file(src/**)", "edit_file(src/lib/**)", true],
    ["edit_file(src/**)", "edit_file(src/*.ts)", true],
    ["edit_file(src/**)", "edit_file(src2/a)", false],
    ["edit_file(src/*.ts)", "edit_file(src/**)", false],
    ["edit_file(src/*.ts)", "edit_file(src/a.ts)", true],
    ["edit_file(src/*.ts)", "edit_file(./src/*.ts)", true],
    ["edit_file(a/**/b/**)", "edit_file(a/c)", false],
    ["edit_file(/**)", "edit_file(src/**)", true],
    ["edit_file(~/**)", "edit_file(~/notes/*)", true],
    ["edit_file(src/**)", "write_file(src/a)", false],
    [{ tool: ["edit_file", "write_file"], path: "src/**" }, "write_file(src/a)", true],
    [{ tool: "*_file", path: "src/**" }, "write_file(src/a)", true],
    ["fetch_url(*)", "fetch_url(*.example.com)", true],
    ["fetch_url(*.example.com)", "fetch_url(a.example.com)", true],
    ["fetch_url(*.example.com)", "fetch_url(*.b.example.com)", true],
    ["fetch_url(*.example.com)", "fetch_url(example.com)", false],
    ["fetch_url(*.example.com)", "fetch_url(notexample.com)", false],
    ["fetch_url(a.example.com)", "fetch_url(*.example.com)", false],
    ["fetch_url(a.example.com)", "fetch_url(b.example.com)", false],
    ["fetch_url(a.example.com)", "fetch_url(a.example.com)", true],
    ["fetch_url(a.example.com)", "fetch_url(*)", false],
    ["fetch_url(*.example.com)", "fetch_url(*.example.org)", false],
    ["fetch_url(*.example.com)", "fetch_url(*.notexample.com)", false],
    ["fetch_url(*.example.com)", "fetch_url(*.example.com)", true],
    ["fetch_url(*.example.com)", "fetch_url(@private)", false],
    [{ tool: "mcp.x", arg: { a: "1" } }, "mcp.x", false],
    ["fetch_url(@private)", "fetch_url(localhost)", false],
    ["fetch_url(@private)", "fetch_url(@private)", true],
    ["load_skill(review-*)", "load_skill(review-pr)", true],
    ["load_skill(review-*)", "load_skill", false],
    ["mcp.gh.*", "mcp.gh.merge", true],
    ["mcp.*", "mcp.gh.*", true],
    [{ tool: "mcp.x", arg: { a: "1*" } }, { tool: "mcp.x", arg: { a: "12", b: "3" } }, true],
    [{ tool: "mcp.x", arg: { a: "1*" } }, { tool: "mcp.x", arg: { b: "3" } }, false],
    ["shell(git *)", { tool: "shell", command: "git push", box: "push" }, false],
    [{ tool: "shell", command: "git *", box: ["push", "default"] }, "shell(git push)", true],
    [{ tool: "shell", command: "git *", box: "push" }, "shell(git push)", false],
    ["shell(git *)", { tool: "shell", command: "git push", risk: "network" }, true],
    [{ tool: "shell", command: "git *", risk: ["read", "network"] }, {
      tool: "shell",
      command: "git *",
      risk: "read",
    }, true],
    [{ tool: "shell", command: "git *", risk: "read" }, "shell(git push)", false],
    ["shell(git *)", { tool: "shell", command: "git push", mode: "unattended" }, true],
    [{ tool: "shell", command: "git *", mode: "unattended" }, "shell(git push)", false],
    ["shell(git *)", { tool: "shell", command: "git push", workspace: "/ws" }, true],
    [{ tool: "shell", command: "git *", workspace: "/ws" }, {
      tool: "shell",
      command: "git *",
      workspace: "/x",
    }, false],
    [{ tool: "read_file", sourced_by: "skill:*" }, { tool: "read_file", sourced_by: "skill:a" }, true],
    [{ tool: "read_file", sourced_by: "skill:a" }, { tool: "read_file", sourced_by: "skill:*" }, false],
    [{ tool: "shell", command: "git *", except: "git push *" }, "shell(git log)", false],
    ["shell(git *)", { tool: "shell", command: "git *", except: "git push *" }, true],
    [
      { tool: "shell", command: "git *", except: "git push *" },
      { tool: "shell", command: "git l *", except: ["git push *", "git x"] },
      true,
    ],
    [{ tool: "shell", command: "git *", except: "git push *" }, {
      tool: "shell",
      command: "git l *",
      except: "git x",
    }, false],
    [{ tool: "edit_file", path: "src/**", except: "src/a" }, {
      tool: "edit_file",
      path: "src/**",
      except: "src/b",
    }, false],
    [{ tool: "edit_file", path: "src/**", except: "src/a" }, {
      tool: "edit_file",
      path: "src/*",
      except: "src/a",
    }, true],
    [{ tool: "fetch_url", host: "*", except: "a.b" }, { tool: "fetch_url", host: "*", except: "b.a" }, false],
    [
      { tool: "fetch_url", host: "*", except: "a.b" },
      { tool: "fetch_url", host: "x.y", except: "a.b" },
      true,
    ],
    ["shell(git)", "shell(git push)", false],
    ["shell(CI=1 npm *)", "shell(CI=2 npm test)", false],
    ["shell(find . -delete *)", "shell(find . -delete x)", true],
    ["edit_file(src/{a,b}/**)", "edit_file(src/{a,b}/x)", false],
    [{ tool: "shell", command: "git *", box: "push" }, {
      tool: "shell",
      command: "git *",
      box: ["push", "other"],
    }, false],
  ];
  for (const [wide, narrow, want] of rows) {
    test(`${JSON.stringify(wide)} and ${JSON.stringify(narrow)}`, () =>
      assertEquals(covers(wide, narrow), want));
  }
});

describe("coversRule() between one that restricts and one that allows", () => {
  const rows: readonly (readonly [deny: RuleEntry, allow: RuleEntry, covers: boolean])[] = [
    ["shell", "shell(git push *)", true],
    ["*", "edit_file(src/**)", true],
    ["shell(git push *)", "shell(git push origin)", true],
    ["shell(git push *)", "shell(git push)", true],
    ["shell(git push)", "shell(git push *)", false],
    ["shell(sudo *)", "shell(/usr/bin/sudo ls)", true],
    ["shell(find *)", "shell(find . -delete)", true],
    ["shell(npm *)", "shell(CI=1 npm test)", true],
    ["shell(CI=1 npm *)", "shell(npm test)", false],
    ["edit_file(src/**)", "edit_file(src/a)", true],
    ["shell(git push *)", { tool: "shell", command: "git push *", box: "push" }, true],
    [{ tool: "shell", command: "git push *", box: "push" }, "shell(git push *)", false],
    [{ tool: "shell", command: "git push *", box: "default" }, "shell(git push *)", true],
    [{ tool: "*", path: "@secrets", except: "**/.env.example" }, "read_file(.env)", false],
    ["shell(CI=1 npm *)", "shell(CI=1 npm test)", true],
    ["shell(git push origin *)", "shell(git push *)", false],
  ];
  for (const [deny, allow, want] of rows) {
    test(`${JSON.stringify(deny)} and ${JSON.stringify(allow)}`, () =>
      assertEquals(covers(deny, allow, ["deny", "allow"]), want));
  }
});

test("coversRule() of a glob that cannot be read says no", () => {
  const rule = (path: string) => ruleOf(`edit_file(${path})`);
  const unread = {
    ...rule("**"),
    path: [{ source: "a**", literal: false, pattern: rule("**").path![0]!.pattern }],
  };
  const reaches = { wide: "allow", narrow: "allow" } as const;
  const rows = [[unread, rule("a")], [rule("**"), unread], [unread, unread]] as const;
  assertEquals(rows.map(([wide, narrow]) => coversRule(wide, narrow, reaches, base)), [false, false, false]);
});

test("coversRule() between two that restrict is about all boxes unless they are named", () => {
  const deny = (wide: RuleEntry, narrow: RuleEntry) => covers(wide, narrow, ["deny", "deny"]);
  const boxed = { tool: "shell", command: "git push", box: "default" };
  assertEquals([deny(boxed, "shell(git push)"), deny("shell(git push)", boxed)], [false, true]);
});

describe("laws of covering", () => {
  const families: readonly Family[] = ["shell", "file", "host", "plain"];
  const question = fc.constantFrom(...families).chain((f) => questionOf(f));

  test("whatever the narrow rule matches, the wide one matches", () => {
    let covered = 0, matched = 0;
    fc.assert(
      fc.property(question, question, (one, two) => {
        const rules = [one, two].flatMap((q) => q.layers.flatMap((l) => l.rules));
        const matches = (rule: Rule, q: typeof one) =>
          q.facts.subjects.map((s) => matchesSubject(rule, q.facts, s, reachOf(rule.effect), q.root));
        for (const wide of rules) {
          for (const narrow of rules) {
            if (wide.effect === "allow" && narrow.effect !== "allow") continue;
            const reaches = { wide: reachOf(wide.effect), narrow: reachOf(narrow.effect) };
            if (wide === narrow || !coversRule(wide, narrow, reaches, base)) continue;
            covered++;
            for (const q of [one, two]) {
              const [w, n] = [matches(wide, q), matches(narrow, q)];
              n.forEach((hit, i) => {
                if (!hit) return;
                matched++;
                assert(
                  w[i],
                  `${wide.text} does not cover ${narrow.text} on ${JSON.stringify(q.facts.subjects[i])}`,
                );
              });
            }
          }
        }
      }),
      tries(1_500),
    );
    assert(covered > 500 && matched > 200, `only ${covered} pairs and ${matched} matches were looked at`);
  }, 60_000);

  test("every rule covers itself", () => {
    fc.assert(
      fc.property(question, ({ layers }) => {
        for (const rule of layers.flatMap((l) => l.rules)) {
          const reach = reachOf(rule.effect);
          assert(coversRule(rule, rule, { wide: reach, narrow: reach }, base), rule.text);
        }
      }),
      tries(300),
    );
  }, 60_000);
});
