// A repository whose settings name programs, against Writ's own git: the tool git_diff and what evidence for a gate is compared by.
import { describe, test } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { appendFileSync, chmodSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { findWalls } from "../../src/sandbox/backend.ts";
import { eventsOf, type Machine, withMachine } from "../support/machine.ts";
import { play } from "../support/play.ts";
import { binary } from "../support/runtimes.ts";

/** Settings whose value is a program, or a folder of programs. */
const programs = [
  "alias.diff",
  "alias.rev-parse",
  "alias.ls-files",
  "alias.for-each-ref",
  "core.alternateRefsCommand",
  "core.askPass",
  "core.editor",
  "core.fsmonitor",
  "core.gitProxy",
  "core.pager",
  "core.sshCommand",
  "credential.helper",
  "diff.evil.command",
  "diff.evil.textconv",
  "diff.external",
  "filter.evil.clean",
  "filter.evil.process",
  "filter.evil.smudge",
  "gpg.program",
  "gpg.ssh.program",
  "interactive.diffFilter",
  "merge.evil.driver",
  "pager.diff",
  "pager.ls-files",
  "remote.origin.uploadpack",
  "sequence.editor",
  "submodule.inner.update",
  "uploadpack.packObjectsHook",
] as const;
const hooks = [
  "post-index-change",
  "pre-commit",
  "post-checkout",
  "fsmonitor-watchman",
  "reference-transaction",
];

/** Each program leaves a file of its own name in `marks`. */
function settingsFor(marks: string, called: string): string {
  return programs.map((name) => {
    const [first = "", ...rest] = name.split(".");
    const key = rest.at(-1);
    const section = rest.length > 1 ? `[${first} "${rest.slice(0, -1).join(".")}"]` : `[${first}]`;
    const bang = first === "alias" || first === "submodule" ? "!" : "";
    return `${section}\n\t${key} = "${bang}touch ${marks}/${called}-${name}; cat"\n`;
  }).join("") +
    `[core]\n\thooksPath = ${marks}/../hooks\n[filter "evil"]\n\trequired = true\n[diff "evil"]\n\tcachetextconv = true\n`;
}

function hostile(m: Machine): string {
  const marks = join(m.top, "marks");
  mkdirSync(marks);
  for (const hook of hooks) {
    chmodSync(m.write(`hooks/${hook}`, `#!/bin/sh\ntouch ${marks}/hook-${hook}\n`), 0o755);
    chmodSync(m.write(`repo/.git/hooks/${hook}`, `#!/bin/sh\ntouch ${marks}/own-hook-${hook}\n`), 0o755);
  }
  m.write("inner/b.txt", "b\n");
  const inner = (...args: readonly string[]) => m.git("-C", join(m.top, "inner"), ...args);
  inner("init", "-q");
  inner("-c", "user.name=T", "-c", "user.email=t@t", "add", "-A");
  inner("-c", "user.name=T", "-c", "user.email=t@t", "commit", "-qm", "inner");
  const quiet = ["-c", "core.hooksPath=/dev/null", "-c", "protocol.file.allow=always"];
  m.git(...quiet, "submodule", "--quiet", "add", "--name", "inner", join(m.top, "inner"), "inner");
  m.write("repo/.gitattributes", "* diff=evil filter=evil merge=evil\n");
  m.git(...quiet, "add", "-A");
  m.git(...quiet, "commit", "-qm", "attributes");
  m.git("config", "include.path", join(m.repo, "more"));
  m.git("config", `includeIf.gitdir:${m.repo}/.path`, join(m.repo, "more"));
  m.write("repo/more", settingsFor(marks, "included"));
  for (const config of ["repo/.git/config", "repo/.git/modules/inner/config"]) {
    appendFileSync(join(m.top, config), settingsFor(marks, "own"));
  }
  return marks;
}

const calls = [
  { git_diff: {} },
  { git_diff: { staged: true } },
  { git_diff: { ref: "HEAD~1" } },
  { git_diff: { ref: "HEAD~1..HEAD", path: "src" } },
  { shell: { command: "gh pr merge 1" } },
];
const forced = "skills: {forced: [{id: review, before: ['shell(gh pr merge *)'], evidence: [git_diff]}]}";

for (const sandbox of ["off", "bwrap", "landlock"] as const) {
  const found = sandbox === "off" ||
    (await findWalls({ backend: sandbox, folder: "/tmp", self: [binary], writable: [] })).ok;
  const how = sandbox === "off" ? 'mode: "off"' : `backend: ${sandbox}`;
  describe(`with sandbox ${sandbox}`, () => {
    test.skipIf(!found)(
      "nothing that a repository names is run by Writ's own git",
      () =>
        withMachine(async (m) => {
          const marks = hostile(m);
          m.write("repo/src/a.txt", "one\nthree\n");
          m.write("repo/inner/b.txt", "c\n");
          const { results, ended } = await play(m, {
            policy: [`sandbox: {${how}}`, forced],
            calls,
            allow: ["git_diff", "shell(gh *)"],
          });
          assertEquals(readdirSync(marks), [], ended.stderr);
          assertEquals(
            results.slice(0, 4).map((r) => r.ok),
            [true, true, true, true],
            JSON.stringify(results),
          );
          assertStringIncludes(results[0]?.text ?? "", "+three");
          // The evidence stands, since the content was seen to be the same: the gate lets the last call through.
          assertEquals(eventsOf(m.events(), "gate.blocked"), []);
          assertEquals(eventsOf(m.events(), "tool.started").at(-1)?.data.tool, "shell");
        }),
    );
  });
}

test("a git that is not kept from it runs them", () =>
  withMachine(async (m) => {
    const marks = hostile(m);
    m.write("repo/src/a.txt", "one\nthree\n");
    await m.program(["git", "diff"]);
    await m.program(["git", "status"]);
    const ran = readdirSync(marks);
    assertEquals(ran.some((name) => name.includes("core.fsmonitor")), true, ran.join());
    assertEquals(ran.some((name) => name.includes("filter.evil")), true, ran.join());
  }));
