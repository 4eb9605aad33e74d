import { test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { type CatalogRules, mergeCatalog } from "../../src/core/catalog.ts";
import { compareCatalogs } from "../../src/core/catalog_change.ts";
import { renderChanges } from "../../src/core/listing.ts";
import type { Skill } from "../../src/core/skill.ts";
import { makeSkill, word } from "./skills.ts";

const open: CatalogRules = { forced: [], disabled: [], undeclaredTools: "read_only" };
const catalogOf = (skills: readonly Skill[]) => mergeCatalog(skills, open).catalog;
const options = { budgetTokens: 500, forcedNames: new Set<string>(), recent: new Map<string, number>() };

const base = makeSkill({ name: "a" });
const edits: readonly (readonly [string, Partial<Skill>, "same" | "changed"])[] = [
  ["nothing", {}, "same"],
  ["description", { description: "other" }, "changed"],
  ["version", { version: "2" }, "changed"],
  ["bound", { allowedTools: [] }, "changed"],
  ["pattern", { patterns: [word("x")] }, "changed"],
  ["flag", { modelInvocable: false }, "changed"],
  ["file", { file: "/elsewhere/SKILL.md" }, "changed"],
  ["tier", { tier: "project" }, "changed"],
];

for (const [what, edit, expected] of edits) {
  test(`compareCatalogs() sees a change of ${what}: ${expected}`, () => {
    const change = compareCatalogs(catalogOf([base]), catalogOf([{ ...base, ...edit }]));
    assertEquals(change, expected === "same" ? undefined : { added: [], removed: [], changed: ["a"] });
  });
}

test("renderChanges() tells what concerns the model, and nothing else", () => {
  const before = catalogOf([
    base,
    makeSkill({ name: "b" }),
    makeSkill({ name: "hidden", modelInvocable: false }),
  ]);
  const after = catalogOf([
    { ...base, modelInvocable: false },
    makeSkill({ name: "new", modelInvocable: false }),
  ]);
  const change = compareCatalogs(before, after);
  assert(change !== undefined);
  assertEquals(change, { added: ["new"], removed: ["b", "hidden"], changed: ["a"] });
  assertEquals(
    renderChanges(change, before, after, options).text,
    "<environment>\nThese skills are no longer available: a, b\n</environment>",
  );
  const quiet = compareCatalogs(
    catalogOf([]),
    catalogOf([makeSkill({ name: "new", modelInvocable: false })]),
  );
  assert(quiet !== undefined);
  assertEquals(renderChanges(quiet, catalogOf([]), after, options).text, "");
});

test("renderChanges() is bounded, however much has changed", () => {
  const many = (from: number) =>
    catalogOf(
      Array.from(
        { length: 1000 },
        (_, i) => makeSkill({ name: `s-${from + i}`, description: "d ".repeat(60) }),
      ),
    );
  const [before, after] = [many(0), many(1000)];
  const change = compareCatalogs(before, after);
  assert(change !== undefined);
  const { text, tokens, omitted } = renderChanges(change, before, after, options);
  assert(tokens < 900, `${tokens}`);
  assert(omitted.length > 900 && text.includes("and 950 more"), text.slice(-100));
});
