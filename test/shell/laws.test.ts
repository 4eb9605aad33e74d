import { afterAll, describe, test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { type CommandPattern, matchesCommand, parseCommandPattern } from "../../src/core/command.ts";
import { parseShell } from "../../src/shell/parse.ts";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stricter } from "../../src/core/decision.ts";
import { embeddedDefaults } from "../../src/core/policy.ts";
import { hostileCalls, plantHostile } from "../support/hostile.ts";
import { judgeAsLoop } from "../support/judged_as_loop.ts";
import { layerOf } from "../support/rules.ts";
import { generator, mutate, seeds } from "./differential.ts";

function pattern(text: string): CommandPattern {
  const parsed = parseCommandPattern(text);
  assert(!("error" in parsed), text);
  return parsed;
}

test("what an allow pattern covers, the same pattern as a deny matches", () => {
  const random = generator(7);
  const pick = () => seeds[Math.floor(random() * seeds.length)] ?? "";
  const sources = [...seeds, ...Array.from({ length: 500 }, () => mutate(pick(), pick(), random))];
  const gaps: string[] = [];
  let covered = 0;
  for (const part of sources.flatMap((source) => parseShell(source).parts)) {
    for (let length = 1; length <= part.argv.length; length++) {
      for (const rest of [true, false]) {
        const words = part.argv.slice(0, length);
        const made = { source: words.join(" "), assignments: part.assignments, words, rest };
        if (!matchesCommand(made, part, "allow")) continue;
        covered++;
        if (!matchesCommand(made, part, "restrict")) gaps.push(part.text);
      }
    }
  }
  assertEquals(gaps, []);
  assert(covered > 500, `only ${covered} were covered`);
});

type Wrap = {
  /** Takes the words of one command, or any text. */
  readonly takes: "words" | "text";
  /** The result is again one command. */
  readonly gives: "words" | "text";
  readonly quote: "" | "'" | '"' | "`";
  readonly of: (command: string) => string;
};
const text = (of: Wrap["of"], quote: Wrap["quote"] = ""): Wrap => ({
  takes: "text",
  gives: "text",
  quote,
  of,
});
const words = (of: Wrap["of"]): Wrap => ({ takes: "words", gives: "words", quote: "", of });
const quotes = (of: Wrap["of"], quote: Wrap["quote"] = "'"): Wrap => ({
  takes: "text",
  gives: "words",
  quote,
  of,
});

// Lists, groups, control flow, negation, background and redirections of descriptors hide nothing.
const open: readonly Wrap[] = [
  words((c) => c),
  text((c) => `(${c}\n)`),
  text((c) => `{ ${c}\n}`),
  text((c) => `true && ${c}`),
  text((c) => `if true; then ${c}\nfi`),
  text((c) => `for i in 1; do ${c}\ndone`),
  { takes: "words", gives: "text", quote: "", of: (c) => `! ${c} &` },
  { takes: "words", gives: "text", quote: "", of: (c) => `ls | ${c} | cat` },
  { takes: "words", gives: "text", quote: "", of: (c) => `2>&1 ${c}` },
];
const hiding: readonly Wrap[] = [
  text((c) => `f() { ${c}\n}; f`),
  { takes: "words", gives: "text", quote: "", of: (c) => `time ${c}` },
  { takes: "words", gives: "text", quote: "", of: (c) => `A=1 ${c}` },
  text((c) => `echo "$(${c}\n)"`),
  text((c) => `echo \`${c}\``, "`"),
  text((c) => `cat <(${c}\n)`),
  text((c) => `cat <<EE\n$(${c}\n)\nEE`),
  text((c) => `x=\${y:-$(${c}\n)}`),
  words((c) => `sudo -u root ${c}`),
  words((c) => `env -i A=1 ${c}`),
  words((c) => `timeout -k 1 5 ${c}`),
  words((c) => `nohup nice -n 3 setsid ${c}`),
  words((c) => `command ${c}`),
  words((c) => `busybox ${c}`),
  words((c) => `xargs -0 ${c}`),
  words((c) => `find . -exec ${c} {} +`),
  words((c) => `$X ${c}`),
  quotes((c) => `eval '${c}'`),
  quotes((c) => `sh -c '${c}'`),
  quotes((c) => `bash -lc "${c}"`, '"'),
  quotes((c) => `trap '${c}' EXIT`),
  quotes((c) => `watch '${c}'`),
  quotes((c) => `su - -c '${c}'`),
  quotes((c) => `sh <<< '${c}'`),
  text((c) => `sudo sh <<'E'\n${c}\nE`),
  text((c) => `sudo echo '${c}' | bash`, "'"),
];

test("a deny pattern reaches a command through every pair of wrappings", () => {
  const deny = pattern("git push *");
  const missed: string[] = [];
  let tried = 0;
  for (const outer of [...open, ...hiding]) {
    for (const inner of [...open, ...hiding]) {
      if (outer.takes === "words" && inner.gives !== "words") continue;
      const once = inner.of("git -C x push origin");
      // Inside quotes others of the same kind end them, and what double quotes hold is expanded one level out.
      if (outer.quote !== "" && /[`'"$]/.test(once)) continue;
      // The inner here-document's last line would end the outer one.
      if (once.includes("\nE") && outer.of("").includes("\nE")) continue;
      tried++;
      const command = outer.of(once);
      const { errors, parts } = parseShell(command);
      if (errors.length > 0 || !parts.some((p) => matchesCommand(deny, p, "restrict"))) missed.push(command);
    }
  }
  assertEquals(missed, []);
  assert(tried > 500, `only ${tried} pairs`);
});

test("a star covers a command through what hides nothing, and through nothing else", () => {
  const allow = [
    pattern("git *"),
    pattern("true"),
    pattern("ls"),
    pattern("cat"),
    pattern("echo *"),
    pattern("f"),
  ];
  const covered = (wrap: Wrap) =>
    parseShell(wrap.of("git status")).parts.every((part) =>
      allow.some((a) => matchesCommand(a, part, "allow"))
    );
  assertEquals(open.map(covered), open.map(() => true));
  assertEquals(hiding.map(covered), hiding.map(() => false));
});

describe("a hostile call ends with a decision and its causes", () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "writ-hostile-")));
  plantHostile(root);
  afterAll(() => rmSync(root, { recursive: true }));
  const rules = [
    layerOf("user", {
      allow: ["shell(git status *)", "shell(w *)", "read_file(src/**)"],
      deny: ["shell(rm *)"],
    }),
  ];
  for (const { kind, tool, args } of hostileCalls) {
    test(`${tool}: ${kind}`, () => {
      for (const layers of [[], rules]) {
        const { facts, verdict } = judgeAsLoop(tool, args, { root, layers });
        const [first] = verdict.causes;
        assertEquals(first.effect, verdict.effect);
        if (facts.errors.length > 0) assertEquals(verdict.effect, "deny");
        // Without a rule that covers it, never wider than the default.
        const allowed = layers.length > 0 &&
          verdict.causes.some((c) => c.by === "rule" && c.effect === "allow");
        const narrow = stricter(verdict.effect, embeddedDefaults[facts.risk]) === verdict.effect;
        assert(allowed || narrow, JSON.stringify(verdict));
      }
    });
  }
});
