// Every code of a fault that can be printed stands in a topic of the help, and no topic explains a code that there is not.
import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

function texts(folder: string, ending: string, without = /^$/): readonly string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(ending) && !without.test(path)).map((path) =>
      readFileSync(join(root, folder, path), "utf8")
    );
}

const sources = texts("src", ".ts");
// Problems of the HTTP API have a table of their own, made of the statuses that it answers with.
const own = texts("src", ".ts", /^(?:http|server)\b/);
const word = "([a-z][a-z0-9]*(?:[-_][a-z0-9]+)*)";
const joined = "([a-z][a-z0-9]*(?:[-_][a-z0-9]+)+)";
const makers =
  "fault|warning|error|warn|refuse|refusal|failed|failedMidway|folderProblem|report|reportAt|absence|ModelFailure|refused";
const forms: readonly RegExp[] = [
  new RegExp(`\\bcode: "${word}"`, "g"),
  new RegExp(`\\b(?:${makers})\\((?:[^()"\`]*?(?:"(?:text|file)"\\s*,\\s*)?)"${joined}"`, "g"),
  /\breason: "((?:frontmatter|body|name|description|yaml|duplicate)-[a-z-]+)"/g,
  new RegExp(`\\bcode: [^,;\\n]*\\? "${word}"`, "g"),
  new RegExp(`\\bcode: [^,;\\n]*\\? "[a-z-]+" : "${word}"`, "g"),
];
const codes = new Set(
  own.flatMap((text) => forms.flatMap((form) => [...text.matchAll(form)].map((found) => found[1] ?? ""))),
);
// Put together from the name of a field.
const composed = ["name", "description"].flatMap((field) =>
  ["missing", "type", "coerced", "too-long"].map((fault) => `${field}-${fault}`)
);

describe("codes of faults", () => {
  test("are found in the sources", () => {
    const some = [
      "unknown-key",
      "tools-json-invalid",
      "no-policy",
      "script_ended",
      "no_match",
      "frontmatter-missing",
    ];
    assertEquals(some.filter((code) => !codes.has(code)), []);
    assertEquals(codes.size > 150, true);
  });

  test("each stand in a topic of the help", () => {
    const help = texts("src/cli/help", ".md").join("\n");
    assertEquals([...codes, ...composed, "unreported"].filter((code) => !help.includes(`\`${code}\``)), []);
  });

  test("that the topic explains are there", () => {
    const topic = readFileSync(join(root, "src/cli/help/errors.md"), "utf8");
    const explained = [...topic.matchAll(/^\|(.+?)\|/gm)].flatMap(([, cell = ""]) =>
      [...cell.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code)
    );
    const all = sources.join("\n");
    assertEquals(explained.filter((code) => !composed.includes(code) && !all.includes(`"${code}"`)), []);
    assertEquals(explained.length, new Set(explained).size);
  });
});
