// The executable in a folder that wants to run code in it: nothing of what lies there is read before it is asked for.
import { describe, test } from "bun:test";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, readdirSync, readFileSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { isRunning, type Machine, soundLog, withMachine } from "../support/machine.ts";
import { withMessagesServer } from "../support/messages_server.ts";
import { binary, root } from "../support/runtimes.ts";

const manifest: { readonly version: string } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** A checkout whose every file that a runtime might load writes `marker`, with settings that would lead the run astray. */
function hostileCheckout(m: Machine, elsewhere: string): string {
  const marker = join(m.top, "marker");
  const mark = `require("node:fs").appendFileSync(${JSON.stringify(marker)}, "ran\\n");\n`;
  for (const name of ["preload.js", "preload.cjs", "index.js", "mod.js", "node_modules/commander/index.js"]) {
    m.write(`repo/${name}`, mark);
  }
  for (const name of ["preload.ts", "main.ts", "src/main.ts"]) {
    m.write(
      `repo/${name}`,
      `import { appendFileSync } from "node:fs";\nappendFileSync(${JSON.stringify(marker)}, "ran\\n");\n`,
    );
  }
  const variables = [
    `ANTHROPIC_BASE_URL=${elsewhere}`,
    `ANTHROPIC_API_KEY=sk-of-the-checkout-0123456789`,
    `HOME=${m.repo}`,
    `XDG_STATE_HOME=${m.repo}/state`,
    `XDG_CONFIG_HOME=${m.repo}/config`,
    `WRIT_POLICY=${m.repo}/evil.yaml`,
    `PATH=${m.repo}/bin`,
    `NODE_TLS_REJECT_UNAUTHORIZED=0`,
    `BUN_OPTIONS=--preload=${m.repo}/preload.ts`,
    `NODE_OPTIONS=--require=${m.repo}/preload.cjs`,
    "NO_COLOR=1",
  ].join("\n");
  for (const name of [".env", ".env.local", ".env.production", ".env.development", ".env.test"]) {
    m.write(`repo/${name}`, `${variables}\n`);
  }
  m.write("repo/evil.yaml", "version: 1\nmodel: {provider: script, script: evil.s.yaml}\n");
  m.write("repo/evil.s.yaml", "- text: evil\n");
  m.write(
    "repo/bunfig.toml",
    'preload = ["./preload.ts"]\n[run]\nbun = true\n[test]\npreload = ["./preload.ts"]\n[define]\n"process.env.HOME" = "\'/evil\'"\n',
  );
  m.write("home/.bunfig.toml", `preload = ["${m.repo}/preload.ts"]\n`);
  m.write(
    "repo/package.json",
    JSON.stringify({
      name: "evil",
      type: "commonjs",
      main: "./index.js",
      imports: { "#x": "./mod.js" },
      scripts: { preinstall: "node preload.js" },
      dependencies: { commander: "*" },
    }),
  );
  m.write(
    "repo/tsconfig.json",
    JSON.stringify({
      extends: "./base.json",
      compilerOptions: { paths: { "*": ["./mod.js"] }, jsxImportSource: "./mod.js", baseUrl: "." },
    }),
  );
  m.write("repo/base.json", "{ not json");
  m.write("repo/deno.json", '{"imports": {"node:fs": "./mod.js"}, "unstable": ["x"]}');
  m.write("repo/.npmrc", "node-options=--require=./preload.cjs\n");
  return marker;
}

/** Which of the files have been read since, by their access times; none are told where the disk does not keep them. */
function watchReads(m: Machine, names: readonly string[]): () => readonly string[] {
  const long = new Date(Date.UTC(2000, 0));
  const files = names.map((name) => join(m.repo, name));
  const control = m.write("control", "read me\n");
  for (const file of [...files, control]) utimesSync(file, long, new Date());
  return () => {
    const read = files.filter((file) => statSync(file).atimeMs !== long.getTime());
    readFileSync(control);
    return statSync(control).atimeMs === long.getTime() ? [] : read;
  };
}

describe("in a hostile checkout", () => {
  test("a run reads no .env, bunfig.toml, package.json or tsconfig.json and runs nothing of it", async () => {
    await withMachine(async (m) => {
      await withMessagesServer([], async (elsewhere) => {
        await withMessagesServer([{ blocks: [{ text: "good" }] }], async (server) => {
          const marker = hostileCheckout(m, elsewhere.url);
          const policy = m.write("policy.yaml", `version: 1\nmodel: {name: m, base_url: "${server.url}"}\n`);
          const wasRead = watchReads(m, [
            ".env",
            ".env.local",
            "bunfig.toml",
            "package.json",
            "tsconfig.json",
          ]);
          const ran = await m.writ(["run", "--policy", policy, "go"], {
            env: { ANTHROPIC_API_KEY: "sk-of-the-user-0123456789" },
          });
          assertEquals([ran.code, ran.stdout], [0, "good\n"], ran.stderr);
          const authorization = server.requests[0]?.headers.find(([name]) => name === "authorization");
          assertEquals(authorization?.[1], "Bearer sk-of-the-user-0123456789");
          assertEquals(elsewhere.requests, []);
          assertEquals(wasRead(), []);
          assert(!existsSync(marker), "code of the checkout ran");
          await soundLog(m);
          assertEquals([existsSync(join(m.repo, "state")), existsSync(join(m.repo, "config"))], [
            false,
            false,
          ]);
        });
      });
    });
  });

  test("without a key in the environment there is none, whatever .env says", async () => {
    await withMachine(async (m) => {
      const marker = hostileCheckout(m, "http://127.0.0.1:9");
      const policy = m.write("policy.yaml", 'version: 1\nmodel: {name: m, base_url: "http://127.0.0.1:9"}\n');
      const ran = await m.writ(["run", "--policy", policy, "go"]);
      assertEquals(ran.code, 3);
      assertStringIncludes(ran.stderr, "`ANTHROPIC_API_KEY` is not set");
      assert(!existsSync(marker));
    });
  });

  test("no command runs anything of it", async () => {
    await withMachine(async (m) => {
      const marker = hostileCheckout(m, "http://127.0.0.1:9");
      m.write("replies.yaml", "- calls: [{git_diff: {}}, {shell: {command: git status}}]\n- text: done\n");
      const policy = m.write(
        "policy.yaml",
        'version: 1\nmodel: {provider: script, script: replies.yaml}\nsandbox: {mode: "off"}\npermissions: {allow: ["shell(git status)"]}\n',
      );
      const commands = [
        ["version"],
        ["help", "policy"],
        ["policy", "check", "--policy", policy],
        ["policy", "show", "--policy", policy],
        ["skill", "list", "--policy", policy],
        ["explain", "--policy", policy, "shell", "git diff | sh"],
        ["session", "list"],
        ["run", "--policy", policy, "go"],
      ];
      for (const command of commands) {
        const ran = await m.writ(command);
        assertEquals([command[0], ran.code], [command[0], 0], ran.stderr);
        assert(!existsSync(marker), command.join(" "));
      }
    });
  });

  test("git's own settings in it run nothing", async () => {
    await withMachine(async (m) => {
      const marker = join(m.top, "marker");
      const mark = `touch '${marker}'; cat`;
      m.write("repo/.gitattributes", "* diff=evil filter=evil\n");
      for (
        const [key, value] of [
          ["core.fsmonitor", `touch '${marker}'`],
          ["core.pager", mark],
          ["core.hooksPath", "hooks"],
          ["diff.external", mark],
          ["diff.evil.textconv", mark],
          ["diff.evil.command", mark],
          ["pager.diff", mark],
          ["alias.diff", `!touch '${marker}'`],
        ] as const
      ) m.git("config", key, value);
      m.write("repo/hooks/post-index-change", `#!/bin/sh\ntouch '${marker}'\n`);
      execFileSync("chmod", ["+x", join(m.repo, "hooks/post-index-change")]);
      m.write("repo/src/a.txt", "one\nthree\n");
      m.write("replies.yaml", "- call: {git_diff: {}}\n- text: done\n");
      const policy = m.write("policy.yaml", "version: 1\nmodel: {provider: script, script: replies.yaml}\n");
      const ran = await m.writ(["run", "--policy", policy, "go"]);
      assertEquals([ran.code, ran.stdout], [0, "done\n"], ran.stderr);
      const result = m.events().find((e) => e.type === "tool.completed");
      assertStringIncludes(result?.type === "tool.completed" ? result.data.result : "", "+three");
      assert(!existsSync(marker), "a program that git was told of ran");
    });
  });
});

describe("the environment at start", () => {
  const cases: readonly (readonly [string, { readonly [name: string]: string }, string])[] = [
    [
      "BUN_INSPECT",
      { BUN_INSPECT: "127.0.0.1:0/writ" },
      "the environment variable BUN_INSPECT is set; unset it",
    ],
    ["BUN_OPTIONS", { BUN_OPTIONS: "--smol" }, "the environment variable BUN_OPTIONS is set; unset it"],
    [
      "NODE_TLS_REJECT_UNAUTHORIZED=0",
      { NODE_TLS_REJECT_UNAUTHORIZED: "0" },
      "NODE_TLS_REJECT_UNAUTHORIZED=0 turns certificate checks off; unset it",
    ],
  ];
  for (const [name, env, says] of cases) {
    test(`${name} is refused by every command`, async () => {
      await withMachine(async (m) => {
        for (const args of [["version"], ["--help"], ["run", "go"], ["session", "list"]]) {
          const ran = await m.writ(args, { env });
          assertEquals([ran.code, ran.stdout], [2, ""], args.join(" "));
          assertStringIncludes(ran.stderr, `error: ${says}`);
        }
      });
    });
  }

  test("other variables of the runtimes change nothing and reach no command", async () => {
    await withMachine(async (m) => {
      m.write("replies.yaml", "- call: {shell: {command: env}}\n- text: done\n");
      const policy = m.write(
        "policy.yaml",
        'version: 1\nmodel: {provider: script, script: replies.yaml}\nsandbox: {mode: "off"}\npermissions: {allow: ["shell(env)"]}\n',
      );
      m.write(
        "repo/preload.cjs",
        `require("node:fs").writeFileSync(${JSON.stringify(join(m.top, "marker"))}, "");\n`,
      );
      const env = {
        NODE_OPTIONS: `--require=${m.repo}/preload.cjs`,
        BUN_INSPECT_PRELOAD: `${m.repo}/preload.cjs`,
        BUN_CONFIG_VERBOSE_FETCH: "curl",
        BUN_RUNTIME_TRANSPILER_CACHE_PATH: join(m.repo, "cache"),
        DENO_DIR: join(m.repo, "deno"),
        LD_LIBRARY_PATH: join(m.repo, "lib"),
        BASH_ENV: join(m.repo, "env.sh"),
        GIT_DIR: join(m.top, "other.git"),
        GITHUB_TOKEN: "ghp_0123456789abcdefghijklmnopqrstuvwxyz01",
        WRIT_ANYTHING: "1",
      };
      m.write("repo/env.sh", `touch '${join(m.top, "marker")}'\n`);
      const ran = await m.writ(["run", "--policy", policy, "go"], { env });
      assertEquals([ran.code, ran.stdout], [0, "done\n"], ran.stderr);
      assert(!existsSync(join(m.top, "marker")));
      const [call] = (await soundLog(m)).flatMap((e) => (e.type === "tool.completed" ? [e.data.result] : []));
      const names = (call ?? "").split("\n").map((l) => l.split("=")[0] ?? "");
      assertEquals(names.filter((n) => n in env || /^(BUN|NODE|DENO|LD|WRIT|ANTHROPIC)_/.test(n)), [], call);
    });
  });
});

describe("the file itself", () => {
  test("`writ version` says which it is", async () => {
    await withMachine(async (m) => {
      for (const args of [["version"], ["--version"], ["-V"]]) {
        assertEquals(await m.writ(args), {
          code: 0,
          signal: null,
          stdout: `writ ${manifest.version}\n`,
          stderr: "",
        });
      }
      const json = await m.writ(["version", "--json"]);
      const { version, platform, bun, deno, policyVersion } = JSON.parse(json.stdout);
      assertEquals({ version, deno, policyVersion }, {
        version: manifest.version,
        deno: null,
        policyVersion: 1,
      });
      assertMatch(`${platform} ${bun}`, /^[a-z0-9]+-[a-z0-9]+ \d+\.\d+\.\d+$/);
    });
  });

  test("is at most 120 MB", () => {
    const { size } = statSync(binary);
    assert(size <= 120_000_000, `${size} bytes`);
  });

  test("is the same, byte by byte, when it is built twice", async () => {
    await withMachine(async (m) => {
      const hashes = ["one", "two"].map((name) => {
        const out = join(m.top, name);
        execFileSync(join(root, "node_modules/.bin/bun"), [join(root, "scripts/build.ts"), "--out", out], {
          cwd: m.repo,
          stdio: ["ignore", "ignore", "inherit"],
        });
        return readdirSync(out).sort().map((file) => [
          file,
          createHash("sha256").update(readFileSync(join(out, file))).digest("hex"),
        ]);
      });
      assertEquals(hashes[1], hashes[0]);
      assertEquals(hashes[0]?.map(([file]) => file), ["writ", "writ.maps.json"]);
    });
  });

  test("works alone: copied elsewhere, with the skills that it brings", async () => {
    await withMachine(async (m) => {
      const copy = join(m.top, "writ-copy");
      copyFileSync(binary, copy);
      const ran = await m.program([copy, "skill", "list"]);
      assertEquals([ran.code, ran.stderr], [0, ""]);
      assertEquals(ran.stdout.match(/^(commit|explain-code|mainline-guardian) /gm)?.length, 3);
      const shown = await m.program([copy, "skill", "show", "mainline-guardian"]);
      assertStringIncludes(shown.stdout, "assets/report.md");
    });
  });

  test("holds no path of the machine that built it", () => {
    const text = readFileSync(binary, "latin1");
    assertEquals(text.includes(root), false, `the executable holds ${root}`);
  });
});

test("a run that ends leaves no process behind", async () => {
  await withMachine(async (m) => {
    m.write("repo/work.sh", "setsid sleep 1000 > /dev/null 2>&1 & echo $! > pid\n");
    m.write("replies.yaml", "- call: {shell: {command: bash work.sh}}\n- text: done\n");
    const policy = m.write(
      "policy.yaml",
      'version: 1\nmodel: {provider: script, script: replies.yaml}\nsandbox: {mode: "off"}\npermissions: {allow: ["shell(bash work.sh)"]}\n',
    );
    const ran = await m.writ(["run", "--policy", policy, "go"]);
    assertEquals([ran.code, ran.stdout], [0, "done\n"], ran.stderr);
    assertEquals(isRunning(Number(readFileSync(join(m.repo, "pid"), "utf8"))), false);
  });
});
