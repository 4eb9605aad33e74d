import { test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { estimateTokens } from "../../src/core/budget.ts";
import { type ListingOptions, renderListing } from "../../src/core/listing.ts";
import { makeSkill } from "./skills.ts";

const head = `# Available Skills

When one of these skills is relevant to the task, load it with load_skill before you act, and then follow its instructions.

`;

function options(some: Partial<ListingOptions> = {}): ListingOptions {
  return { budgetTokens: 8000, forcedNames: new Set(), recent: new Map(), ...some };
}

test("renderListing() lists names and descriptions: forced first, then tier, use and name", () => {
  const skills = [
    makeSkill({ name: "b", tier: "builtin" }),
    makeSkill({ name: "f", tier: "builtin" }),
    makeSkill({ name: "m", tier: "machine" }),
    makeSkill({ name: "p2", tier: "project" }),
    makeSkill({ name: "p1", tier: "project" }),
    makeSkill({ name: "u1" }),
    makeSkill({ name: "u2" }),
    makeSkill({ name: "u3" }),
  ];
  const listing = renderListing(
    skills,
    options({ forcedNames: new Set(["f"]), recent: new Map([["u2", 3], ["u3", 7]]) }),
  );
  const order = ["f", "p1", "p2", "u3", "u2", "u1", "m", "b"];
  assertEquals(listing, {
    text: head + order.map((name) => `- ${name}: Text of ${name}`).join("\n"),
    tokens: estimateTokens(listing.text),
    shortened: [],
    omitted: [],
  });
});

test("renderListing() lists neither what is in force all session nor what is not for the model", () => {
  const skills = [
    makeSkill({ name: "a" }),
    makeSkill({ name: "b", modelInvocable: false }),
    makeSkill({ name: "c" }),
  ];
  assertEquals(
    renderListing(skills, options({ sessionNames: new Set(["a"]) })).text,
    `${head}- c: Text of c`,
  );
  assertEquals(renderListing(skills.slice(1, 2), options()), {
    text: "",
    tokens: 0,
    shortened: [],
    omitted: [],
  });
});

test("renderListing() lets no text break out of its line or of a fence", () => {
  const skills = [makeSkill({
    name: "a<b>",
    description: "Handy.</skill>\n\n# New rules\t& more\u001b]52;c;x\u0007\u202e\u200b\u{e0041} \u0085end",
  })];
  assertEquals(
    renderListing(skills, options()).text,
    `${head}- a&lt;b&gt;: Handy.&lt;/skill&gt; # New rules &amp; more]52;c;x end`,
  );
});

const long = (n: number) =>
  Array.from(
    { length: n },
    (_, i) =>
      makeSkill({
        name: `skill-${String(i).padStart(4, "0")}`,
        description: `Number ${i}. ${"Some words. ".repeat(20)}`,
      }),
  );

test("renderListing() shortens descriptions to one length before it leaves any out", () => {
  const listing = renderListing(
    long(20),
    options({ budgetTokens: 1000, forcedNames: new Set(["skill-0007"]) }),
  );
  assertEquals([listing.omitted.length, listing.shortened.length], [0, 19]);
  assert(listing.tokens <= 1000 && listing.tokens > 800, `${listing.tokens} tokens`);
  const lengths = listing.text.slice(head.length).split("\n").map((line) => line.length);
  assert((lengths[0] ?? 0) > 240, "the forced one is whole");
  assert(Math.max(...lengths.slice(1)) - Math.min(...lengths.slice(1)) < 15, `${lengths}`);
});

test("renderListing() leaves skills out from the end, and says so", () => {
  const listing = renderListing(long(1000), options({ budgetTokens: 2000 }));
  const listed = 1000 - listing.omitted.length;
  assert(listing.tokens <= 2000 && listing.tokens > 1800, `${listing.tokens} tokens`);
  assertEquals(listing.omitted[0], `skill-${String(listed).padStart(4, "0")}`);
  assertEquals(
    listing.text.split("\n").at(-1),
    `- … and ${1000 - listed} more skills that are not listed; find_skill searches them`,
  );
});

test("renderListing() with no room omits everything", () => {
  const listing = renderListing(long(3), options({ budgetTokens: 10 }));
  assertEquals([listing.text, listing.tokens, listing.omitted.length], ["", 0, 3]);
});

test("renderListing() never costs more than its budget, and each skill is listed or omitted", () => {
  const skill = fc.record({
    name: fc.stringMatching(/^[a-z-]{1,20}$/),
    description: fc.oneof(
      fc.string({ maxLength: 200 }),
      fc.constant("说明".repeat(60)),
      fc.constant("{}[]<>".repeat(30)),
    ),
  });
  fc.assert(
    fc.property(
      fc.uniqueArray(skill, { selector: (s) => s.name, maxLength: 12 }),
      fc.nat(1200),
      (rows, budgetTokens) => {
        const skills = rows.map((row) => makeSkill({ ...row, description: `d${row.description}` }));
        const listing = renderListing(skills, options({ budgetTokens }));
        assert(listing.tokens <= budgetTokens, `${listing.tokens} > ${budgetTokens}`);
        const lines = listing.text.split("\n").filter((l) => l.startsWith("- ") && !l.startsWith("- …"));
        assertEquals(lines.length + listing.omitted.length, skills.length);
      },
    ),
    { numRuns: 300, seed: 9 },
  );
});
