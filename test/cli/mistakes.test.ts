// Mistakes that people make in policies, skills, scripts, flags and the environment, each with all that it says: read by somebody
// who has no documents, every line must name the place, what was found, and what to do.
import { assertEquals, assertMatch } from "@std/assert";
import { afterEach, beforeEach, describe, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import colors from "picocolors";
import { parse } from "yaml";
import { assetFolder } from "../../src/load/assets.ts";
import { runCommand } from "../../src/cli/run.ts";
import { escapeTerminal } from "../../src/core/text.ts";

type Row = {
  readonly name: string;
  /** Files below the top: `p.yaml` is the policy of `check`, `config/` that of the user, `ws/` the workspace and current folder. */
  readonly files?: { readonly [path: string]: string };
  readonly env?: { readonly [name: string]: string };
  /** Absent: `policy check ../p.yaml`. */
  readonly args?: readonly string[];
  /** Exit code; absent: 2. */
  readonly code?: number;
  /** Standard error, and before it the findings of a lint on standard output: line by line, `TOP` for the folder of the case,
   * `SHIPPED` for that of the skills that come with Writ. */
  readonly says: readonly string[];
};

const rows = parse(
  readFileSync(new URL("../cases/mistakes.yaml", import.meta.url), "utf8"),
) as readonly Row[];

let top = "";
beforeEach(() => {
  top = realpathSync(mkdtempSync(join(tmpdir(), "writ-mistakes-")));
  for (const folder of ["home", "ws/.git", "config"]) mkdirSync(join(top, folder), { recursive: true });
});
afterEach(() => rmSync(top, { recursive: true, force: true }));

async function said({ files = {}, env = {}, args = ["policy", "check", "../p.yaml"] }: Row) {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(top, path)), { recursive: true });
    writeFileSync(join(top, path), text);
  }
  const notes: string[] = [];
  const paint = colors.createColors(false);
  const code = await runCommand({
    host: {
      args,
      env: {
        PATH: "/usr/bin:/bin",
        XDG_CONFIG_HOME: join(top, "config"),
        XDG_STATE_HOME: join(top, "state"),
        ...env,
      },
      cwd: join(top, "ws"),
      home: join(top, "home"),
      user: "somebody",
      platform: "linux-x64",
      machineFolder: join(top, "machine"),
      stdinIsTerminal: false,
      stdoutIsTerminal: false,
      stderrIsTerminal: false,
    },
    output: {
      result: (text) => void (args.includes("lint") ? notes.push(...text.trimEnd().split("\n")) : 0),
      note: (line) => void notes.push(...line.split("\n")),
      safe: escapeTerminal,
      paint,
      paintResult: paint,
      flush: () => Promise.resolve(undefined),
    },
  });
  const shown = notes.map((line) => line.replaceAll(top, "TOP").replaceAll(assetFolder("skills"), "SHIPPED"));
  return { code, says: shown };
}

describe("mistakes", () => {
  for (const row of rows) {
    test(row.name, async () => {
      assertEquals(await said(row), { code: row.code ?? 2, says: [...row.says] });
    });
  }

  test("are many, each told once by its name, and each told at all", () => {
    assertEquals(new Set(rows.map((r) => r.name)).size, rows.length);
    assertEquals(rows.length >= 60, true);
    assertEquals(rows.filter((r) => r.says.length === 0).map((r) => r.name), []);
  });

  test("in files are told with the file, line and column, and no code stands for the words", () => {
    for (const { says, files } of rows) {
      for (const line of says.filter((l) => /\.(yaml|json|md):/.test(l) && files !== undefined)) {
        assertMatch(line, /^TOP\/[^ ]+:\d+:\d+: (error|warning): [^[]|`[^`]+\.(yaml|json)|\.md: /);
      }
    }
  });
});
