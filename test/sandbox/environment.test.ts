import { assertEquals } from "@std/assert";
import { afterEach, beforeEach, describe, test } from "bun:test";
import { mkdirSync, symlinkSync } from "node:fs";
import { isNeverPassed } from "../../src/core/env_names.ts";
import { childEnvironment } from "../../src/sandbox/environment.ts";
import { makeWorkspace, type Workspace } from "../tools/workspace.ts";

const constants = {
  TERM: "dumb",
  PAGER: "cat",
  GIT_PAGER: "cat",
  GIT_EDITOR: "false",
  GIT_TERMINAL_PROMPT: "0",
};

describe("childEnvironment()", () => {
  let ws: Workspace;
  beforeEach(() => ws = makeWorkspace());
  afterEach(() => ws.remove());
  const plan = (allow: readonly string[]) => ({
    allow,
    home: ws.home,
    tmp: `${ws.home}/tmp`,
    writable: [ws.root, ws.home],
  });

  test("passes what is allowed and nothing else", () => {
    const source = {
      PATH: ws.outside,
      LANG: "de_DE.UTF-8",
      EDITOR: "vi",
      AWS_REGION: "x",
      TERM: "xterm",
      HOME: "/real",
    };
    assertEquals(childEnvironment(source, plan(["PATH", "LANG", "LC_ALL", "TERM"])), {
      LANG: "de_DE.UTF-8",
      PATH: ws.outside,
      HOME: ws.home,
      TMPDIR: `${ws.home}/tmp`,
      ...constants,
    });
  });

  test("never passes steering or secret variables, also when they are allowed", () => {
    const names = [
      "BASH_ENV",
      "ENV",
      "BASH_FUNC_ls%%",
      "LD_PRELOAD",
      "DYLD_INSERT_LIBRARIES",
      "GIT_DIR",
      "GIT_SSH_COMMAND",
      "BUN_OPTIONS",
      "BUN_BE_BUN",
      "NODE_OPTIONS",
      "NODE_TLS_REJECT_UNAUTHORIZED",
      "WRIT_POLICY",
      "JAVA_TOOL_OPTIONS",
      "MY_OPTIONS",
      "IFS",
      "PERL5OPT",
      "ANTHROPIC_API_KEY",
      "APIKEY",
      "GITHUB_TOKEN",
      "github_token",
      "DB_PASSWORD",
      "AWS_SECRET_ACCESS_KEY",
      "SECRETS",
      "GOOGLE_APPLICATION_CREDENTIALS",
      "KEY_FILE",
    ];
    assertEquals(names.filter((name) => !isNeverPassed(name)), []);
    const source = Object.fromEntries(names.map((name) => [name, "x"]));
    const env = childEnvironment(source, plan(names));
    assertEquals(names.filter((name) => name in env), []);
  });

  test("harmless names that only look a little like it may pass", () => {
    const names = [
      "PATH",
      "LANG",
      "TZ",
      "SSH_AUTH_SOCK",
      "TOKENIZERS_PARALLELISM",
      "KEYBOARD_LAYOUT",
      "ENVIRONMENT",
      "CI",
    ];
    assertEquals(names.filter(isNeverPassed), []);
  });

  test("an exported function is recognised by its value", () => {
    const env = childEnvironment({ LANG: "() { :; }; echo hi", TZ: "UTC" }, plan(["LANG", "TZ"]));
    assertEquals([env["LANG"], env["TZ"]], [undefined, "UTC"]);
  });

  test("PATH loses relative folders, missing ones and those that a command may write to, links included", () => {
    mkdirSync(`${ws.root}/bin`);
    mkdirSync(`${ws.home}/bin`);
    mkdirSync(`${ws.outside}/bin`);
    mkdirSync(`${ws.root}-other`);
    symlinkSync(ws.root, `${ws.outside}/link`);
    const path = [
      "",
      ".",
      "node_modules/.bin",
      `${ws.root}/bin`,
      `${ws.root}/`,
      `${ws.outside}/../ws/bin`,
      `${ws.outside}/link/bin`,
      `${ws.outside}/none`,
      `${ws.home}/bin`,
      `${ws.outside}/bin`,
      `${ws.root}-other`,
    ].join(":");
    assertEquals(
      childEnvironment({ PATH: path }, plan(["PATH"]))["PATH"],
      `${ws.outside}/bin:${ws.root}-other`,
    );
  });

  test("without a usable PATH the system's folders are searched", () => {
    const system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    assertEquals(
      [
        childEnvironment({ PATH: "." }, plan(["PATH"]))["PATH"],
        childEnvironment({ PATH: ws.outside }, plan([]))["PATH"],
      ],
      [system, system],
    );
  });
});
