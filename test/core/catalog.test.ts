import { test } from "bun:test";
import { assertEquals } from "@std/assert";
import { type CatalogRules, mergeCatalog, unavailable, whyAbsent } from "../../src/core/catalog.ts";
import type { LayerName } from "../../src/core/decision.ts";
import type { ForcedSkill, Pin, SkillTier } from "../../src/core/policy.ts";
import { showProblem } from "../../src/core/problem.ts";
import type { Skill } from "../../src/core/skill.ts";
import type { CommandTool } from "../../src/core/command_tool.ts";
import { makeSkill } from "./skills.ts";

const open: CatalogRules = { forced: [], disabled: [], undeclaredTools: "read_only" };

function forced(skill: string, layer: LayerName): ForcedSkill {
  const at = { file: `/${layer}.yaml`, line: 3, col: 5 };
  return { skill, layer, at, nameAt: at, arguments: "", bounding: false, when: { at: "session" } };
}

function merged(skills: readonly Skill[], rules: Partial<CatalogRules> = {}) {
  const { catalog, errors } = mergeCatalog(skills, { ...open, ...rules });
  return {
    items: catalog.items.map((s) => `${s.name} ${s.tier}`),
    absent: catalog.absent.map((a) => `${a.file} ${a.code}`),
    errors: errors.map((e) => `${e.path} ${e.code}`),
  };
}

test("mergeCatalog() lets a higher tier stand before a lower one, visibly", () => {
  const skills = (["user", "builtin", "project", "machine"] as const).map((tier) =>
    makeSkill({ name: "a", tier })
  );
  const { catalog, errors } = mergeCatalog([...skills, makeSkill({ name: "b" })], open);
  assertEquals(errors, []);
  assertEquals(catalog.names, ["a", "b"]);
  assertEquals(catalog.get("a"), {
    ...makeSkill({ name: "a", tier: "project" }),
    shadows: [
      { tier: "user", file: "/user/a/SKILL.md" },
      { tier: "machine", file: "/machine/a/SKILL.md" },
      { tier: "builtin", file: "/builtin/a/SKILL.md" },
    ],
  });
  assertEquals([catalog.get("A"), catalog.get("a "), whyAbsent(catalog, "a")], [
    undefined,
    undefined,
    undefined,
  ]);
});

test("mergeCatalog() does not depend on the order of the skills", () => {
  const skills = [
    makeSkill({ name: "b" }),
    makeSkill({ name: "a", tier: "project" }),
    makeSkill({ name: "a", tier: "user" }),
    makeSkill({ name: "c", file: "/x" }),
    makeSkill({ name: "c", file: "/y" }),
  ];
  assertEquals(merged(skills), merged([...skills].reverse()));
});

test("mergeCatalog() refuses two of one name in one tier and leaves the others alone", () => {
  const twins = [
    makeSkill({ name: "a", file: "/u/1/SKILL.md" }),
    makeSkill({ name: "a", file: "/u/2/SKILL.md" }),
  ];
  const { catalog, errors } = mergeCatalog([...twins, makeSkill({ name: "b" })], open);
  const message = "`/u/1/SKILL.md` and `/u/2/SKILL.md` have the same name `a`; rename all but one";
  assertEquals(catalog.names, ["b"]);
  assertEquals(errors, [
    { path: "/u/1/SKILL.md", code: "duplicate-name", message },
    { path: "/u/2/SKILL.md", code: "duplicate-name", message },
  ]);
  assertEquals(whyAbsent(catalog, "a"), `/u/1/SKILL.md: ${message}; /u/2/SKILL.md: ${message}`);
});

test("mergeCatalog() resolves the name of a refused pair from the other tiers", () => {
  assertEquals(
    merged([
      makeSkill({ name: "a", tier: "builtin" }),
      makeSkill({ name: "a", file: "/u/1" }),
      makeSkill({ name: "a", file: "/u/2" }),
    ]),
    {
      items: ["a builtin"],
      absent: ["/u/1 duplicate-name", "/u/2 duplicate-name"],
      errors: ["/u/1 duplicate-name", "/u/2 duplicate-name"],
    },
  );
});

test("mergeCatalog() folds one file that two locations of a tier lead to", () => {
  assertEquals(merged([makeSkill({ name: "a" }), makeSkill({ name: "a" })]), {
    items: ["a user"],
    absent: [],
    errors: [],
  });
});

const standIn = [
  ["machine", ["a machine"], ["project", "user"]],
  ["user", ["a user"], ["project"]],
  ["project", ["a project"], []],
  ["builtin", ["a machine"], ["project", "user"]],
] as const;

for (const [layer, items, out] of standIn) {
  test(`mergeCatalog() gives a skill that the ${layer} layer forces only from tiers of its authority`, () => {
    const skills = (["builtin", "machine", "user", "project"] as const).map((tier) =>
      makeSkill({ name: "a", tier })
    );
    assertEquals(merged(skills, { forced: [forced("a", layer)] }), {
      items: [...items],
      absent: out.map((tier) => `/${tier}/a/SKILL.md forced-tier`),
      errors: out.map((tier) => `/${tier}/a/SKILL.md forced-tier`),
    });
  });
}

test("mergeCatalog() takes the highest of the layers that force a skill", () => {
  const skills = [makeSkill({ name: "a", tier: "project" }), makeSkill({ name: "a", tier: "user" })];
  assertEquals(merged(skills, { forced: [forced("a", "project"), forced("a", "user")] }).items, ["a user"]);
});

test("unavailable() reports a forced skill that is missing, with the reason and the place of the entry", () => {
  const all = [forced("a", "machine"), forced("b", "user"), forced("c", "user"), forced("d", "user")];
  const { catalog, errors } = mergeCatalog(
    [makeSkill({ name: "a", tier: "project" }), makeSkill({ name: "d" })],
    { ...open, forced: all },
  );
  assertEquals(catalog.names, ["d"]);
  assertEquals(errors, [{
    path: "/project/a/SKILL.md",
    code: "forced-tier",
    message: "the machine policy forces `a`, which the project tier cannot provide",
  }]);
  const broken = [{ path: "/user/c/SKILL.md", code: "yaml", message: "it cannot be read" }];
  assertEquals(
    unavailable(catalog, { skills: { forced: all }, gates: [] }, broken).map(showProblem),
    [
      "/machine.yaml:3:5: error: the forced skill `a` is not available: /project/a/SKILL.md: the machine policy forces `a`, " +
      "which the project tier cannot provide; `writ skill list` shows what is there [forced-skill-missing]",
      "/user.yaml:3:5: error: the forced skill `b` is not available; expected a skill of that name in `skills.sources`; " +
      "`writ skill list` shows what is there [forced-skill-missing]",
      "/user.yaml:3:5: error: the forced skill `c` is not available: /user/c/SKILL.md: it cannot be read; " +
      "`writ skill list` shows what is there [forced-skill-missing]",
    ],
  );
});

test("mergeCatalog() removes disabled skills without calling it an error", () => {
  const skills = [
    makeSkill({ name: "exp-a" }),
    makeSkill({ name: "exp-b", tier: "project" }),
    makeSkill({ name: "c" }),
  ];
  assertEquals(merged(skills, { disabled: [{ glob: "exp-*", layer: "user" }] }), {
    items: ["c user"],
    absent: ["/project/exp-b/SKILL.md disabled", "/user/exp-a/SKILL.md disabled"],
    errors: [],
  });
});

test("mergeCatalog() lets a project disable only its own skills", () => {
  const skills = [
    makeSkill({ name: "a" }),
    makeSkill({ name: "a", tier: "project" }),
    makeSkill({ name: "b" }),
  ];
  assertEquals(merged(skills, { disabled: [{ glob: "*", layer: "project" }] }).items, ["a user", "b user"]);
});

test("mergeCatalog() refuses undeclared tools where the policy says so", () => {
  const skills = [
    makeSkill({ name: "none" }),
    makeSkill({ name: "star", allowedTools: ["Read", "*"] }),
    makeSkill({ name: "fine", allowedTools: [] }),
  ];
  assertEquals(merged(skills, { undeclaredTools: "reject" }), {
    items: ["fine user"],
    absent: ["/user/none/SKILL.md allowed-tools-missing", "/user/star/SKILL.md allowed-tools-wildcard"],
    errors: ["/user/none/SKILL.md allowed-tools-missing", "/user/star/SKILL.md allowed-tools-wildcard"],
  });
  assertEquals(merged(skills, { undeclaredTools: "unbounded" }).items, [
    "fine user",
    "none user",
    "star user",
  ]);
});

test("mergeCatalog() leaves out skills whose server is down, with the reason", () => {
  const skills = [
    makeSkill({ name: "fine", requires: ["mcp.docs.find"] }),
    makeSkill({ name: "one", requires: ["mcp.gone.x"] }),
    makeSkill({ name: "any", requires: ["mcp__gone"] }),
  ];
  const { catalog, errors } = mergeCatalog(skills, {
    ...open,
    knownTools: new Set(["mcp.docs.find"]),
    lacking: new Map([["mcp.gone.x", "the server `gone` is not available: no program"]]),
  });
  const message = "it needs a tool of a server: the server `gone` is not available: no program";
  assertEquals([catalog.names, errors], [["fine"], [
    { path: "/user/any/SKILL.md", code: "server-down", message },
    { path: "/user/one/SKILL.md", code: "server-down", message },
  ]]);
});

test("mergeCatalog() leaves out skills whose tools do not exist", () => {
  const skills = [
    makeSkill({ name: "fine", requires: ["git_diff", "Read", "mcp__docs"] }),
    makeSkill({ name: "poor", requires: ["git_diff", "send_mail"] }),
  ];
  const { catalog, errors } = mergeCatalog(skills, {
    ...open,
    knownTools: new Set(["git_diff", "read_file", "mcp.docs.find"]),
  });
  assertEquals([catalog.names, errors], [["fine"], [{
    path: "/user/poor/SKILL.md",
    code: "tools-missing",
    message: "its `tools` names `send_mail`, which does not exist here",
  }]]);
  assertEquals(merged(skills).items, ["fine user", "poor user"]);
});

test("unavailable() refuses a fork in every request, and takes it for a gate", () => {
  const { catalog } = mergeCatalog([makeSkill({ name: "a", mode: "fork" })], open);
  const at = { file: "p.yaml", line: 1, col: 1 };
  const entry = { skill: "a", layer: "user", at, nameAt: at, arguments: "", bounding: false } as const;
  const found = unavailable(catalog, {
    skills: {
      forced: [{ ...entry, when: { at: "session" } }, { ...entry, when: { at: "gate", gate: "g" } }],
    },
    gates: [],
  });
  assertEquals(found.map((p) => p.code), ["forced-skill-fork"]);
});

test("unavailable() names gates that wait for a fork which the skill is not", () => {
  const { catalog } = mergeCatalog([makeSkill({ name: "a", mode: "fork" }), makeSkill({ name: "b" })], open);
  const at = { file: "p.yaml", line: 1, col: 1 };
  const gate = { layer: "user", at, before: [], evidence: [] } as const;
  const found = unavailable(catalog, {
    skills: { forced: [] },
    gates: [
      { ...gate, id: "a", skill: "a", by: "fork" },
      { ...gate, id: "b", skill: "b", by: "fork" },
      { ...gate, id: "here", skill: "b" },
      { ...gate, id: "absent", skill: "c", by: "fork" },
      { ...gate, id: "none" },
    ],
  });
  assertEquals(found.map((p) => [p.code, p.severity, p.message]), [[
    "gate-unreachable",
    "error",
    "the gate `b` waits for the verdict of a fork, and the skill `b` runs as none",
  ]]);
});

const tool = (name: string): CommandTool => ({
  name,
  description: "d",
  inputSchema: { type: "object" },
  command: ["true"],
});

const sharing: readonly (readonly [string, readonly Skill[], readonly string[], readonly string[]])[] = [
  [
    "of one tier: both are refused",
    [
      makeSkill({ name: "a", tools: [tool("t"), tool("u")] }),
      makeSkill({ name: "b", tools: [tool("t")] }),
      makeSkill({ name: "c", tools: [tool("v")] }),
    ],
    ["c user"],
    ["/user/a/SKILL.md duplicate-tool", "/user/b/SKILL.md duplicate-tool"],
  ],
  [
    "of different authority: the lower one is refused, and takes no name from others",
    [
      makeSkill({ name: "a", tier: "machine", tools: [tool("t")] }),
      makeSkill({ name: "b", tier: "project", tools: [tool("t"), tool("u")] }),
      makeSkill({ name: "c", tier: "project", tools: [tool("u")] }),
    ],
    ["a machine", "c project"],
    ["/project/b/SKILL.md duplicate-tool"],
  ],
  [
    "with one that stands before a lower one, which comes up",
    [
      makeSkill({ name: "a", tier: "machine", tools: [tool("t")] }),
      makeSkill({ name: "b", tier: "project", tools: [tool("t")] }),
      makeSkill({ name: "b", tier: "user" }),
    ],
    ["a machine", "b user"],
    ["/project/b/SKILL.md duplicate-tool"],
  ],
  [
    "of one name, of which only one counts",
    [
      makeSkill({ name: "a", tier: "user", tools: [tool("t")] }),
      makeSkill({ name: "a", tier: "project", tools: [tool("t")] }),
    ],
    ["a project"],
    [],
  ],
];

for (const [name, skills, items, errors] of sharing) {
  test(`mergeCatalog() with command tools of one name in skills ${name}`, () => {
    const expected = { items, absent: errors, errors };
    assertEquals(merged(skills), expected);
    assertEquals(merged([...skills].reverse()), expected);
  });
}

test("mergeCatalog() finds what a skill needs among its own tools, built-in ones and those of servers", () => {
  const knownTools = new Set(["read_file", "mcp.gh.list"]);
  const skills = [
    makeSkill({ name: "a", requires: ["t", "Read", "mcp__gh__list"], tools: [tool("t")] }),
    makeSkill({ name: "b", requires: ["t"] }),
  ];
  assertEquals(merged(skills, { knownTools }), {
    items: ["a user"],
    absent: ["/user/b/SKILL.md tools-missing"],
    errors: ["/user/b/SKILL.md tools-missing"],
  });
});

const zeros = `sha256:${"0".repeat(64)}`;
const ones = `sha256:${"1".repeat(64)}`;

function pin(skill: string, layer: LayerName = "user", hash = zeros): Pin {
  return { skill, hash, layer, at: { file: `/${layer}.yaml`, line: 4, col: 7 } };
}

const hashesOf = (skills: readonly Skill[], hash: string) =>
  new Map(skills.map((s) => [s.folder, { ok: true, hash } as const]));

test("mergeCatalog() keeps a pinned skill whose folder has the hash, and says so", () => {
  const skills = [makeSkill({ name: "a" }), makeSkill({ name: "b" })];
  const { catalog } = mergeCatalog(skills, { ...open, pins: [pin("a")], hashes: hashesOf(skills, zeros) });
  assertEquals(catalog.items.map((s) => [s.name, s.pin]), [["a", zeros], ["b", undefined]]);
});

test("mergeCatalog() refuses a pinned skill with another hash, with none, and one that was not hashed", () => {
  const skills = [makeSkill({ name: "a" })];
  const reasonOf = (hashes: CatalogRules["hashes"]) =>
    whyAbsent(
      mergeCatalog(skills, { ...open, pins: [pin("a")], ...(hashes === undefined ? {} : { hashes }) })
        .catalog,
      "a",
    );
  const rest =
    `; \`${zeros}\` is pinned at /user.yaml:4:7: look at what changed, then pin it again with \`writ skill pin\``;
  assertEquals(
    reasonOf(hashesOf(skills, ones)),
    `/user/a/SKILL.md: its folder has the hash \`${ones}\`${rest}`,
  );
  assertEquals(
    reasonOf(new Map([["/user/a", { ok: false, message: "it holds a link" }]])),
    `/user/a/SKILL.md: it holds a link${rest}`,
  );
  assertEquals(reasonOf(undefined), `/user/a/SKILL.md: its folder was not hashed${rest}`);
});

test("mergeCatalog() takes a pinned skill from no tier of less authority, whatever its hash", () => {
  const skills = (["project", "user", "machine"] as const).map((tier) => makeSkill({ name: "a", tier }));
  const hashes = hashesOf(skills, zeros);
  const items = (layer: LayerName) => merged(skills, { pins: [pin("a", layer)], hashes });
  assertEquals(items("user"), {
    items: ["a user"],
    absent: ["/project/a/SKILL.md pinned-tier"],
    errors: ["/project/a/SKILL.md pinned-tier"],
  });
  assertEquals(items("machine").items, ["a machine"]);
  // Where the higher one has changed, the lower one that has not comes up.
  const other = new Map([...hashes, ["/user/a", { ok: true, hash: ones } as const]]);
  assertEquals(merged(skills, { pins: [pin("a")], hashes: other }).items, ["a machine"]);
});

test("mergeCatalog() wants a pin of every skill that does not ship with Writ, when told to", () => {
  const skills = [makeSkill({ name: "a", tier: "builtin" }), makeSkill({ name: "b", tier: "machine" })];
  assertEquals(merged(skills, { requirePins: true }), {
    items: ["a builtin"],
    absent: ["/machine/b/SKILL.md pin-missing"],
    errors: ["/machine/b/SKILL.md pin-missing"],
  });
});

const tierRows: readonly (readonly [string, LayerName, SkillTier, readonly string[]])[] = [
  ["a lower tier, admitted", "machine", "project", ["a project"]],
  ["its own layer's tier", "user", "user", ["a user"]],
  ["a higher tier than its layer", "user", "machine", ["a machine"]],
  ["what ships with Writ alone", "user", "builtin", ["a builtin"]],
];
for (const [name, layer, tier, items] of tierRows) {
  test(`mergeCatalog() with a forced entry that names ${name}`, () => {
    const skills = (["builtin", "machine", "user", "project"] as const).map((t) =>
      makeSkill({ name: "a", tier: t })
    );
    assertEquals(merged(skills, { forced: [{ ...forced("a", layer), tier }] }).items, items);
  });
}
