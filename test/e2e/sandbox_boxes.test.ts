// Boxes of what a policy starts beside commands: tools of skills, and servers that are programs.
import { describe, test } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { chmodSync, existsSync, realpathSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { findWalls } from "../../src/sandbox/backend.ts";
import { type Machine, withMachine } from "../support/machine.ts";
import { play } from "../support/play.ts";
import { binary, root } from "../support/runtimes.ts";

const bun = realpathSync(join(root, "node_modules/.bin/bun"));
const server = join(root, "test/support/mcp/reaching_server.ts");

/** A skill whose tool says what it can read, and whether it can write into its own folder. */
function skill(m: Machine): void {
  const folder = "config/writ/skills/deploy";
  m.write(
    `${folder}/SKILL.md`,
    "---\nname: deploy\ndescription: Puts a release in place.\n---\nAsk for the target.\n",
  );
  const tool = {
    name: "target",
    description: "Says where.",
    input_schema: { type: "object" },
    command: ["./target.sh"],
  };
  m.write(`${folder}/tools.json`, JSON.stringify([tool]));
  const script = `#!/bin/sh
cat note.txt "${m.top}/known" "${m.top}/secret" 2>/dev/null
echo x > made 2>/dev/null && echo wrote
exit 0
`;
  chmodSync(m.write(`${folder}/target.sh`, script), 0o755);
  m.write(`${folder}/note.txt`, "the skill's own\n");
  m.write("known", "known hosts\n");
  m.write("secret", "canary\n");
}

async function withPort(use: (port: number) => Promise<void>): Promise<void> {
  const listener = createServer((socket) => socket.destroy()).listen(0, "127.0.0.1");
  await new Promise((done) => listener.once("listening", done));
  const address = listener.address();
  try {
    await use(typeof address === "object" && address !== null ? address.port : 0);
  } finally {
    listener.close();
  }
}

for (const backend of ["bwrap", "landlock"] as const) {
  const found = await findWalls({ backend, folder: "/tmp", self: [binary], writable: [] });
  if (!found.ok) {
    test.skip(`boxes by ${backend}, which this machine does not offer`, () => {});
    continue;
  }
  describe(`the box of a skill's tools, by ${backend}`, () => {
    const calls = [{ load_skill: { name: "deploy" } }, { target: {} }];
    const policy = (m: Machine) => [
      `sandbox: {backend: ${backend}, boxes: {push: {read: ["${m.top}/known"], note: releases}}}`,
      "skills: {boxes: {deploy: push}}",
    ];

    test("opens what it says and nothing else, and stands in the log", () =>
      withMachine(async (m) => {
        skill(m);
        const allow = [{ tool: "skill.deploy.target", box: "push" }];
        const { results } = await play(m, { policy: policy(m), calls, allow });
        const { ok, text, box } = results[1] ?? {};
        assertEquals([ok, text, box], [true, "the skill's own\nknown hosts\n", "push"]);
        assertEquals(existsSync(join(m.top, "config/writ/skills/deploy/made")), false);
      }));

    test("is asked about where no rule names it", () =>
      withMachine(async (m) => {
        skill(m);
        const { results } = await play(m, { policy: policy(m), calls, allow: ["skill.deploy.target"] });
        assertEquals([results[1]?.ok, results[1]?.code], [false, "denied"]);
        assertStringIncludes(results[1]?.text ?? "", "it would run in box `push`");
      }));

    test("is the default one where the policy names none", () =>
      withMachine(async (m) => {
        skill(m);
        const plain = [`sandbox: {backend: ${backend}}`];
        const { results } = await play(m, { policy: plain, calls, allow: ["skill.deploy.target"] });
        assertEquals([results[1]?.ok, results[1]?.text], [true, "the skill's own\n"]);
      }));
  });

  describe(`the box of a server that is a program, by ${backend}`, () => {
    const policy = (box: string) => [
      `sandbox: {backend: ${backend}, boxes: {tools: {read: ["${root}"]}, net: {network: all, read: ["${root}"]}, host: {mode: "off"}}}`,
      `mcp_servers: {reach: {command: ["${bun}", "${server}"], tools: {try: read}${
        box === "" ? "" : `, box: ${box}`
      }}}`,
    ];
    const attempts = (m: Machine, port: number) =>
      [
        { read: join(m.repo, "src/a.txt") },
        { read: join(m.top, "secret") },
        { read: join(m.top, "policy.yaml") },
        { write: join(m.repo, "src/made") },
        { write: join(m.top, "made") },
        { write: join(m.repo, ".git/hooks/pre-commit") },
        { port },
      ].map((args) => ({ "mcp.reach.try": args }));
    const held = ["read one\ntwo", "refused", "refused", "written", undefined, "refused"];
    const free = ["read one\ntwo", "read canary", undefined, "written", "written", "written"];
    const cases = [
      ["", [...held, "no connection"]],
      ["tools", [...held, "no connection"]],
      ["net", [...held, "connected"]],
      ["host", [...free, "connected"]],
    ] as const;
    for (const [box, wanted] of cases) {
      // Bun reads the folder around what it runs, which by Landlock is there with a box that names it.
      if (box === "" && backend === "landlock") continue;
      test(`${box === "" ? "none of its own" : `\`${box}\``}: what its calls reach`, () =>
        withMachine((m) =>
          withPort(async (port) => {
            m.write("secret", "canary\n");
            const { results, ended } = await play(m, {
              policy: policy(box),
              calls: attempts(m, port),
              allow: ["mcp.reach.try"],
            });
            const said = results.map((r, at) => wanted[at] === undefined ? undefined : r.text);
            assertEquals(said, [...wanted], ended.stderr);
            // Around a workspace that lies in the folder for temporary files is a private one.
            assertEquals(existsSync(join(m.top, "made")), box === "host");
          })
        ));
    }

    test("what it started is gone after the run", () =>
      withMachine(async (m) => {
        m.write("server.sh", `sleep 3021 & exec "${bun}" "${server}"\n`);
        const [boxes = "", servers = ""] = policy("tools");
        const started = servers.replace(`"${bun}", "${server}"`, `bash, "${m.top}/server.sh"`);
        const { ended, results } = await play(m, {
          policy: [boxes, started],
          calls: [{ "mcp.reach.try": { read: join(m.repo, "src/a.txt") } }, {
            shell: { command: "pgrep -fc sleep.3021", box: "host" },
          }],
          allow: ["mcp.reach.try", { tool: "shell", command: ["pgrep *"], box: "host" }],
        });
        assertEquals(results.map((r) => r.text), ["read one\ntwo", "1\n"], ended.stderr);
        const left = await m.program(["sh", "-c", "pgrep -fc 'sleep [3]021' || true"]);
        assertEquals(left.stdout.trim(), "0");
      }));
  });
}
