// A day's work in a box, as a user would do it: each command is a script of the workspace, so that only the box decides.
import { describe, test } from "bun:test";
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { chmodSync, existsSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { findWalls } from "../../src/sandbox/backend.ts";
import { type Machine, withMachine } from "../support/machine.ts";
import { play, type Result } from "../support/play.ts";
import { binary } from "../support/runtimes.ts";

type Work = {
  readonly name: string;
  readonly script: string;
  /** Programs without which it is passed over. */
  readonly needs?: readonly string[];
  readonly says: RegExp;
  /** By Landlock it cannot work, and the result says this before it names the box that can. */
  readonly lacks?: string;
};

const git = "without bubblewrap a git folder is read-only in a box";
const folder = "without bubblewrap a folder that holds something protected";
const own = "without bubblewrap a box has no terminals, no shared memory";
const network = "the default box has no network";

const days: readonly Work[] = [
  {
    name: "a commit",
    script: "echo 2 >> src/a.txt; git commit -qam second; git log -1 --format=%s",
    says: /second/,
    lacks: git,
  },
  {
    name: "a branch and a merge",
    script:
      "git checkout -qb topic; git commit -q --allow-empty -m t; git checkout -q main; git merge -q topic; git log -1 --format=%s",
    says: /^t$/m,
    lacks: git,
  },
  {
    name: "a new repository",
    script: "git init -q inner && cd inner && git commit -q --allow-empty -m first && git log --format=%s",
    says: /first/,
    lacks: folder,
  },
  {
    name: "names in Chinese",
    script: "mkdir -p 目录; echo 你好 > '目录/文 件.txt'; cat 目录/*.txt; git add -A; git status --short",
    says: /你好\nA {2}"?.*目录|你好/,
    lacks: folder,
  },
  {
    name: "names in Chinese, where there is room",
    script: "mkdir -p src/目录; echo 你好 > 'src/目录/文 件.txt'; cat src/目录/*",
    says: /^你好$/m,
  },
  {
    name: "a file in /tmp",
    script: "echo kept > /tmp/y; cat /tmp/y; mktemp",
    says: /kept\n\/tmp\/tmp\./,
    lacks: folder,
  },
  { name: "a file in $TMPDIR", script: 'echo kept > "$TMPDIR/y"; cat "$TMPDIR/y"; mktemp', says: /kept\n/ },
  {
    name: "a long pipe",
    script: "seq 300000 | sort -rn | awk '{ s += $1 % 7 } END { print s }' | rev | rev | tr 9 o",
    says: /^8oooo8$/m,
  },
  { name: "a pipe that is left early", script: "yes | head -c 1000000 | wc -c", says: /1000000/ },
  {
    name: "a named pipe",
    script:
      'mkfifo "$TMPDIR/p"; (echo through > "$TMPDIR/p" &) ; cat "$TMPDIR/p"; diff <(echo a) <(echo a) && echo same',
    says: /through\nsame/,
  },
  {
    name: "a server in the background and its client",
    script:
      "python3 -m http.server 8123 --bind 127.0.0.1 > /dev/null 2>&1 & for i in 1 2 3 4 5 6 7 8 9 10; do curl -sSf http://127.0.0.1:8123/src/a.txt && exit; sleep 0.3; done; exit 1",
    needs: ["python3", "curl"],
    says: /one\ntwo/,
    lacks: network,
  },
  {
    name: "npm test with a server on loopback",
    script:
      `mkdir -p src/app && cd src/app && printf '{"name":"a","scripts":{"test":"node --test"}}' > package.json && cat > a.test.js <<'X'
const h = require("http"), a = require("assert");
require("node:test")("serves", async () => {
  const s = h.createServer((q, r) => r.end("hi"));
  await new Promise((d) => s.listen(0, "127.0.0.1", d));
  try { a.equal(await (await fetch("http://127.0.0.1:" + s.address().port)).text(), "hi"); } finally { s.close(); }
});
X
npm test 2>&1`,
    needs: ["node", "npm"],
    says: /pass 1/,
    lacks: network,
  },
  {
    name: "several processes of Python",
    script: "python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-1, -2]))'",
    needs: ["python3"],
    says: /\[1, 2\]/,
    lacks: own,
  },
  {
    name: "a terminal of its own",
    script: 'python3 -c \'import pty; pty.spawn(["echo", "in it"])\'',
    needs: ["python3"],
    says: /in it/,
    lacks: own,
  },
  {
    name: "a socket of its own",
    script: "python3 -c \"import socket; socket.socket(1).bind('src/s'); print('bound')\"; exit $?",
    needs: ["python3"],
    says: /bound/,
    lacks: own,
  },
  {
    name: "a program in C",
    script:
      `cd src && printf '#include <stdio.h>\\nint main(){puts("compiled");}' > m.c && gcc m.c -o m && printf 'all:\\n\\t./m\\n' > Makefile && make -s`,
    needs: ["gcc", "make"],
    says: /compiled/,
  },
  { name: "what is left running", script: "sleep 300 & echo started", says: /^started\n$/ },
  {
    name: "toolchains below home",
    script: "node-of-nvm; bun-of-home; deno-of-home; cargo-of-home",
    says: /nvm lib\nbun lib\ndeno lib\ncargo lib stable\n/,
  },
  {
    name: "what a tool keeps in its home",
    script: "mkdir -p ~/.cache/x && echo cached > ~/.cache/x/y && cat ~/.cache/x/y",
    says: /cached/,
  },
];

/** Installations below home, each with a program that needs what lies beside it; the last one needs its second folder too. */
const tools = [
  ["node-of-nvm", ".nvm/versions/node/v20/bin", 'cat "$(dirname "$0")/../lib/text"', "nvm lib"],
  ["bun-of-home", ".bun/bin", 'cat "$(dirname "$0")/../lib/text"', "bun lib"],
  ["deno-of-home", ".deno/bin", 'cat "$(dirname "$0")/../lib/text"', "deno lib"],
  [
    "cargo-of-home",
    ".cargo/bin",
    'echo "$(cat "$(dirname "$0")/../lib/text") $(cat "$RUSTUP_HOME/default")"',
    "cargo lib",
  ],
] as const;

function toolchains(m: Machine): string {
  for (const [name, bin, script, text] of tools) {
    chmodSync(m.write(`home/${bin}/${name}`, `#!/bin/sh\n${script}\n`), 0o755);
    m.write(`home/${bin}/../lib/text`, `${text}\n`);
  }
  m.write("home/.rustup/default", "stable\n");
  m.write("home/.cargo/credentials.toml", "canary\n");
  return [...tools.map(([, bin]) => join(m.home, bin)), m.env["PATH"] ?? ""].join(":");
}

const has = (program: string) =>
  (process.env["PATH"] ?? "").split(":").some((f) => existsSync(join(f, program)));
const works = days.filter(({ needs = [] }) => needs.every(has));

async function resultsOf(m: Machine, backend: string): Promise<readonly Result[]> {
  m.write("repo/.gitignore", "work/\n");
  m.write("home/.gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.com\n");
  works.forEach(({ script }, at) => m.write(`repo/work/${at}.sh`, `set -e\n${script}\n`));
  const { results, ended } = await play(m, {
    policy: [
      "limits: {tool_calls: 300, iterations: 300}",
      `sandbox: {backend: ${backend}, boxes: {host: {mode: "off"}, net: {network: all}}}`,
    ],
    calls: works.map((_, at) => ({ shell: { command: `bash work/${at}.sh` } })),
    allow: ["shell(bash *)"],
    env: { PATH: toolchains(m) },
  });
  assertEquals(results.length, works.length, ended.stderr);
  return results;
}

for (const backend of ["bwrap", "landlock"] as const) {
  const found = await findWalls({ backend, folder: "/tmp", self: [binary], writable: [] });
  describe(`a day's work in a box by ${backend}`, () => {
    test.skipIf(!found.ok)(
      "works, or is refused with the name of the box in which it works",
      () =>
        withMachine(async (m) => {
          const results = await resultsOf(m, backend);
          works.forEach(({ name, says, lacks }, at) => {
            const text = results[at]?.text ?? "";
            if (backend === "bwrap" || lacks === undefined) {
              return assertMatch(text, says, `${name}: ${text}`);
            }
            assertEquals([name, results[at]?.ok], [name, false], text);
            assertStringIncludes(text, lacks);
            assertStringIncludes(text, "host (no sandbox)");
          });
        }),
    );
  });
}
