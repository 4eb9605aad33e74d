import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { afterEach, beforeEach, describe, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import colors from "picocolors";
import { answerKeeper } from "../../src/cli/answer_keeper.ts";
import type { Output } from "../../src/cli/output.ts";
import type { Settings } from "../../src/session/settings.ts";
import type { GrantRule } from "../../src/core/grant_rule.ts";

const push: GrantRule = { tool: "shell", kind: "command", text: "git push", box: "default" };
let top = "";
let notes: string[] = [];
beforeEach(() => {
  top = realpathSync(mkdtempSync(join(tmpdir(), "writ-keeper-")));
  notes = [];
});
afterEach(() => rmSync(top, { recursive: true, force: true }));

function keeper(more: { readonly root?: string; readonly replacedBy?: Settings["replacedBy"] } = {}) {
  const { root = join(top, "ws"), replacedBy } = more;
  const settings = {
    policy: { root },
    surroundings: { env: { XDG_CONFIG_HOME: join(top, "config") }, platform: "linux", cwd: root, home: top },
    ...(replacedBy === undefined ? {} : { replacedBy }),
  } as unknown as Settings;
  const output = {
    note: (line: string) => notes.push(line),
    safe: (text: string) => text,
    paint: colors.createColors(false),
  } as unknown as Output;
  return answerKeeper(settings, output);
}
const file = () => join(top, "config/writ/policy.d/approved.yaml");

describe("answerKeeper()", () => {
  test("writes the rule with the workspace into the user's own policy, and says where", async () => {
    const kept = keeper();
    assertEquals(kept.refused, undefined);
    assertEquals(await kept.keep([push]), { ok: true });
    assertMatch(readFileSync(file(), "utf8"), /tool: shell, command: git push, workspace: \/.*\/ws \}/);
    assertEquals(notes, [`  kept in ${file()}`]);
    assert(!existsSync(join(top, "config/writ/policy.d/.approved.lock")));
  });

  test("many at once lose nothing", async () => {
    const rules = Array.from({ length: 8 }, (_, i): GrantRule => ({ ...push, text: `git push ${i}` }));
    const results = await Promise.all(rules.map((rule) => keeper().keep([rule])));
    assertEquals(results, rules.map(() => ({ ok: true })));
    for (const rule of rules) assertStringIncludes(readFileSync(file(), "utf8"), `command: ${rule.text},`);
  });

  const refusals: readonly (readonly [string, () => ReturnType<typeof keeper>, string])[] = [
    [
      "--policy",
      () => keeper({ replacedBy: "--policy" }),
      "your own policy is replaced by --policy in this run",
    ],
    [
      "WRIT_POLICY",
      () => keeper({ replacedBy: "WRIT_POLICY" }),
      "your own policy is replaced by WRIT_POLICY in this run",
    ],
    [
      "settings that lie in the workspace",
      () => keeper({ root: top }),
      "your own policy lies in the workspace, where it counts only as far as the workspace is trusted",
    ],
  ];
  for (const [name, make, why] of refusals) {
    test(`keeps nothing with ${name}`, async () => {
      assertEquals(make().refused, why);
      assertEquals(await make().keep([push]), { ok: false, message: why });
      assert(!existsSync(file()));
    });
  }

  test("says what is wrong with the file, and leaves it", async () => {
    mkdirSync(join(top, "config/writ/policy.d"), { recursive: true });
    writeFileSync(file(), "version: 1\nallow: []\n");
    const kept = await keeper().keep([push]);
    assert(!kept.ok);
    assertMatch(kept.message, /approved\.yaml:2:1: error: /);
    assertEquals(readFileSync(file(), "utf8"), "version: 1\nallow: []\n");
    assertMatch(notes[0] ?? "", /^ {2}not kept for good: /);
  });
});
