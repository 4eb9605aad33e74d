import { test } from "bun:test";
import { assertEquals } from "@std/assert";
import { type Mutant, mutantsOf } from "../../scripts/mutation_mutants.ts";
import { regexMutants } from "../../scripts/mutation_regex.ts";
import { withSwitches } from "../../scripts/mutation_switches.ts";

/** Each mutant as its kind and the whole source with it. */
function changesOf(source: string): readonly string[] {
  return mutantsOf(source).map((m: Mutant) =>
    `${m.kind}: ${source.slice(0, m.start)}${m.text}${source.slice(m.end)}`
  );
}

const rows: readonly (readonly [source: string, changes: readonly string[]])[] = [
  ["x = a === b;", ["statement: ", "comparison: x = a !== b;"]],
  ["x = a < b;", ["statement: ", "comparison: x = a <= b;", "comparison: x = a >= b;"]],
  ["x = a - b;", ["statement: ", "arithmetic: x = a + b;"]],
  ["x = a + `b`;", ["statement: ", "text: x = a + ``;"]],
  ["x = a && b;", [
    "statement: ",
    "logical: x = a || b;",
    "operand: x = true && b;",
    "operand: x = a && true;",
  ]],
  ["x = a || b;", [
    "statement: ",
    "logical: x = a && b;",
    "operand: x = false || b;",
    "operand: x = a || false;",
  ]],
  ["x = a ?? b;", ["statement: ", "fallback: x = b;", "fallback: x = a;"]],
  ["x = a[0] ?? b;", ["statement: ", "fallback: x = b;"]],
  ["const x = !a;", ["negation: const x = a;"]],
  ["const x = a?.b?.[0];", ["optional: const x = a?.b[0];", "optional: const x = a.b?.[0];"]],
  ["const x = a ? b : c;", ["condition: const x = true ? b : c;", "condition: const x = false ? b : c;"]],
  ["if (a) { b(); }", [
    "condition: if (true) { b(); }",
    "condition: if (false) { b(); }",
    "block: if (a) ",
    "statement: if (a) {  }",
  ]],
  ["while (a) i++;", ["condition: while (false) i++;", "statement: while (a) ", "update: while (a) i--;"]],
  ["const x = a.some(b);", ["method: const x = a.every(b);"]],
  ["const x = a?.filter(b).length;", [
    "method: const x = a.length;",
    "optional: const x = a.filter(b).length;",
  ]],
  ["const x = (a ?? []).slice(1);", [
    "method: const x = (a ?? []);",
    "fallback: const x = ([]).slice(1);",
    "fallback: const x = (a).slice(1);",
    'list: const x = (a ?? ["mutant"]).slice(1);',
  ]],
  ["const x = { a: true };", ["object: const x = {};", "boolean: const x = { a: false };"]],
  ["const f = () => 1;", ["result: const f = () => undefined;"]],
  ["switch (a) { case 1: break; case 2: { } }", ["case: switch (a) { case 1:  case 2: { } }"]],
  // Words of a table are data, words in a function are not; types are none of both.
  ['const table = { a: "b" };', ["object: const table = {};"]],
  ['const f = () => "a" as "a" | "b";', [
    "result: const f = () => undefined;",
    'text: const f = () => "" as "a" | "b";',
  ]],
  ['import { a } from "b"; type T = "c"[];', []],
];
for (const [source, changes] of rows) {
  test(`mutantsOf() of ${source}`, () => assertEquals(changesOf(source), changes));
}

const expressions: readonly (readonly [literal: string, mutants: readonly string[]])[] = [
  ["/^a+$/", ["/a+$/", "/^a$/", "/^a+/"]],
  ["/[^a-z]\\d/i", ["/[a-z]\\d/i", "/[^a-z]\\D/i", "/[^a-z]\\d/"]],
  ["/(?:a|b)?[*+]{2,}\\b/g", [
    "/(?:a|b)[*+]{2,}\\b/g",
    "/(?:a|b)?[^*+]{2,}\\b/g",
    "/(?:a|b)?[*+]\\b/g",
    "/(?:a|b)?[*+]{2,}/g",
  ]],
  ["/[a[b]/", ["/[^a[b]/"]],
  ["/a\\+\\^\\$/", []],
];
for (const [literal, mutants] of expressions) {
  test(`regexMutants() of ${literal}`, () => assertEquals(regexMutants(literal), mutants));
}

const program = `
const limit = 2;
function pick(list, name) {
  let count = 0;
  for (const one of list) {
    if (one.kind === "a" && one.name?.startsWith(name)) count += 1;
    else count--;
  }
  switch (count) {
    case 0:
      return "none";
    default:
      return count > limit ? "many" : \`\${count}\`;
  }
}
return [pick([], "x"), pick([{ kind: "a", name: "xy" }, { kind: "b" }], "x"), pick(Array(3).fill({ kind: "a", name: "x" }), "x")];
`;

function runs(source: string, mutant?: number): unknown {
  try {
    return new Function("__mutant", source)(mutant);
  } catch (error) {
    return String(error);
  }
}

test("withSwitches() changes nothing while all mutants are asleep, and with one awake what that mutant changes", () => {
  const source = program.replace(/return (?=\[pick)/, "globalThis.picked = ");
  const mutants = mutantsOf(source);
  const switched = withSwitches(source, mutants, 100);
  const back = (text: string) => text.replace("globalThis.picked = ", "return ");
  assertEquals(runs(back(switched)), ["none", "none", "many"]);
  for (const [i, m] of mutants.entries()) {
    const alone = source.slice(0, m.start) + m.text + source.slice(m.end);
    const empty = m.text === "" && m.form === "statements";
    const expected = runs(back(empty ? source.slice(0, m.start) + "{}" + source.slice(m.end) : alone));
    assertEquals(runs(back(switched), 100 + i), expected, `${m.kind}: ${alone}`);
  }
});
