import { assertEquals, assertNotEquals } from "@std/assert";
import { afterEach, beforeEach, describe, test } from "bun:test";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import {
  decideTrust,
  isAsSeen,
  readTrust,
  storedTrust,
  storeTrust,
  type TrustAnswer,
  type TrustSetting,
  workspaceContent,
} from "../../src/load/trust.ts";

describe("decideTrust()", () => {
  type Flag = TrustAnswer | undefined;
  const rows: readonly (readonly [TrustSetting, Flag, Flag, "yes" | "no", string])[] = [
    ["trusted", undefined, undefined, "no", "trusted"],
    ["trusted", "untrusted", undefined, "yes", "untrusted"],
    ["trusted", undefined, "untrusted", "yes", "trusted"],
    ["untrusted", undefined, "trusted", "yes", "untrusted"],
    ["untrusted", "trusted", undefined, "yes", "untrusted"],
    ["ask", undefined, undefined, "yes", "ask"],
    ["ask", undefined, undefined, "no", "unanswered"],
    ["ask", "trusted", "untrusted", "no", "trusted"],
    ["ask", "untrusted", "trusted", "yes", "untrusted"],
    ["ask", undefined, "trusted", "no", "trusted"],
    ["ask", undefined, "untrusted", "yes", "untrusted"],
  ];
  for (const [setting, flag, stored, interactive, expected] of rows) {
    test(`${setting}, flag ${flag}, stored ${stored}, terminal ${interactive}: ${expected}`, () => {
      const given = {
        setting,
        interactive,
        ...(flag === undefined ? {} : { flag }),
        ...(stored === undefined ? {} : { stored }),
      };
      assertEquals(decideTrust(given), expected);
    });
  }
});

let top = "";
beforeEach(() => top = realpathSync(mkdtempSync(join(tmpdir(), "writ-trust-"))));
afterEach(() => rmSync(top, { recursive: true, force: true }));

function write(path: string, text: string): void {
  mkdirSync(dirname(join(top, path)), { recursive: true });
  writeFileSync(join(top, path), text);
}

describe("workspaceContent()", () => {
  const content = (limits?: { files: number; bytes: number }) =>
    workspaceContent({
      root: join(top, "ws"),
      cwd: join(top, "ws/a/b"),
      policies: [{ path: join(top, "ws/.writ/policy.yaml"), bytes: new TextEncoder().encode("p") }],
      skillFolders: [join(top, "ws/.writ/skills"), join(top, "ws/.agents/skills")],
      instructions: ["AGENTS.md"],
      files: [],
      ...(limits === undefined ? {} : { limits }),
    });
  beforeEach(() => {
    write("ws/.agents/skills/s/SKILL.md", "body");
    write("ws/.agents/skills/s/scripts/x.sh", "echo");
    write("ws/AGENTS.md", "root");
    write("ws/a/b/AGENTS.md", "leaf");
    write("ws/src/AGENTS.md", "elsewhere");
  });

  test("lists what is there, from the root down to the current folder", () => {
    assertEquals(content().items, [
      { path: ".agents/skills", kind: "skills", files: 2 },
      { path: ".writ/policy.yaml", kind: "policy", files: 1 },
      { path: "AGENTS.md", kind: "instructions", files: 1 },
      { path: "a/b/AGENTS.md", kind: "instructions", files: 1 },
    ]);
    assertEquals(content().complete, true);
  });

  test("knows each file by its hash, until its bytes are others", () => {
    const seen = content();
    assertEquals([...seen.hashes.keys()].map((p) => p.slice(top.length + 1)).sort(), [
      "ws/.agents/skills/s/SKILL.md",
      "ws/.agents/skills/s/scripts/x.sh",
      "ws/AGENTS.md",
      "ws/a/b/AGENTS.md",
    ]);
    const script = join(top, "ws/.agents/skills/s/scripts/x.sh");
    const other = join(top, "ws/.agents/skills/s/scripts/y.sh");
    assertEquals([isAsSeen(seen, script), isAsSeen(seen, other)], [true, false]);
    write("ws/.agents/skills/s/scripts/x.sh", "ecHo");
    write("ws/.agents/skills/s/scripts/y.sh", "echo");
    assertEquals([isAsSeen(seen, script), isAsSeen(seen, other)], [false, false]);
  });

  const changes: readonly (readonly [string, () => void])[] = [
    ["a byte of a script", () => write("ws/.agents/skills/s/scripts/x.sh", "ecHo")],
    ["a new file", () => write("ws/.agents/skills/s/scripts/y.sh", "echo")],
    ["a name", () => renameSync(join(top, "ws/.agents/skills/s"), join(top, "ws/.agents/skills/t"))],
    ["a link", () => symlinkSync("x.sh", join(top, "ws/.agents/skills/s/scripts/l"))],
    ["an instruction file on the way", () => write("ws/a/AGENTS.md", "x")],
  ];
  for (const [name, change] of changes) {
    test(`changes with ${name}`, () => {
      const before = content().hash;
      assertEquals(content().hash, before);
      change();
      assertNotEquals(content().hash, before);
    });
  }

  test("does not change with what the workspace does not bring", () => {
    const before = content().hash;
    write("ws/src/AGENTS.md", "changed");
    write("ws/src/main.ts", "x");
    assertEquals(content().hash, before);
  });

  test("follows links within the workspace, and ends in a loop", () => {
    write("ws/shared/t/SKILL.md", "one");
    symlinkSync("../../shared/t", join(top, "ws/.agents/skills/t"));
    symlinkSync("..", join(top, "ws/.agents/skills/loop"));
    const before = content().hash;
    write("ws/shared/t/SKILL.md", "two");
    assertNotEquals(content().hash, before);
  });

  test("more than the bounds allow is not vouched for", () => {
    assertEquals([content({ files: 2, bytes: 1000 }).complete, content({ files: 100, bytes: 5 }).complete], [
      false,
      false,
    ]);
  });
});

describe("stored answers", () => {
  test("are kept by root and content, the newest counts", () => {
    const state = join(top, "state");
    assertEquals(readTrust(state), { answers: [], problems: [] });
    storeTrust(state, { root: "/a", hash: "1", answer: "trusted" });
    storeTrust(state, { root: "/a", hash: "2", answer: "untrusted" });
    storeTrust(state, { root: "/a", hash: "1", answer: "untrusted" });
    const store = readTrust(state);
    assertEquals(
      [["/a", "1"], ["/a", "2"], ["/b", "1"]].map(([root = "", hash = ""]) => storedTrust(store, root, hash)),
      [
        "untrusted",
        "untrusted",
        undefined,
      ],
    );
    assertEquals(readdirSync(state), ["trust.json"]);
    assertEquals([statSync(state).mode & 0o777, statSync(join(state, "trust.json")).mode & 0o777], [
      0o700,
      0o600,
    ]);
  });

  for (
    const text of [
      "",
      "[]",
      '{"version": 2, "answers": []}',
      '{"version": 1, "answers": [{"root": "/a"}]}',
      '{"version": 1}',
    ]
  ) {
    test(`a store that reads \`${text}\` is damaged`, () => {
      write("state/trust.json", text);
      const store = readTrust(join(top, "state"));
      assertEquals([store.answers, store.problems.map((p) => p.code)], [[], ["trust-store"]]);
    });
  }
});
