import { assertEquals, assertStringIncludes } from "@std/assert";
import { describe, test } from "bun:test";
import { gateLabel } from "../../src/core/gate_label.ts";
import { isError } from "../../src/core/problem.ts";
import { mergePolicy } from "../../src/load/policy_merge.ts";
import { loadPolicyFile } from "../../src/load/policy_file.ts";

const push = "push: {network: all, sockets: [SSH_AUTH_SOCK]}";
const gate = (before: string) => `skills: {forced: [{before: [${before}], evidence: [git_diff]}]}`;
const gated = gate(`{tool: shell, command: ["git push *"], box: push}`);

const cases:
  readonly (readonly [name: string, label: "enforced" | "advice", reason: string, yaml: string])[] = [
    [
      "the end of a turn",
      "enforced",
      "nothing but Writ ends a turn well",
      "skills: {forced: [{before: finish, evidence: [git_diff]}]}",
    ],
    ["a call in any box", "advice", "another program could do", gate(`"shell(git push *)"`)],
    [
      "a box that alone has the network",
      "enforced",
      "only in box `push`",
      `${gated}\nsandbox: {boxes: {${push}}}`,
    ],
    [
      "the same, and a rule that lets just that in",
      "enforced",
      "only in box `push`",
      `${gated}\nsandbox: {boxes: {${push}}}\npermissions: {allow: [{tool: shell, command: git push origin main, box: push}]}`,
    ],
    [
      "the same, and a rule that lets more in",
      "advice",
      "the rule `user.allow[0]` lets other commands into the box",
      `${gated}\nsandbox: {boxes: {${push}}}\npermissions: {allow: [{tool: shell, command: "curl *", box: push}]}`,
    ],
    [
      "a box as a whole, whatever is let in",
      "enforced",
      "only in box `push`",
      `${
        gate("{tool: shell, box: push}")
      }\nsandbox: {boxes: {${push}}}\npermissions: {allow: [{tool: shell, command: "curl *", box: push}]}`,
    ],
    ["no sandbox", "advice", "`sandbox.mode` is `off`", `${gated}\nsandbox: {mode: "off", boxes: {${push}}}`],
    [
      "the network for all",
      "advice",
      "`sandbox.network` is `all`",
      `${gated}\nsandbox: {network: all, boxes: {${push}}}`,
    ],
    [
      "a box that opens nothing",
      "advice",
      "the box `push` opens nothing that the default one has not",
      `${gated}\nsandbox: {boxes: {push: {}}}`,
    ],
    [
      "another box with the network",
      "advice",
      "the box `install` opens the network as well",
      `${gated}\nsandbox: {boxes: {${push}, install: {network: all}}}`,
    ],
    [
      "a box without a sandbox",
      "advice",
      "the box `host` opens everything as well",
      `${gated}\nsandbox: {boxes: {${push}, host: {mode: "off"}}}`,
    ],
    [
      "another box with other things",
      "enforced",
      "only in box `push`",
      `${gated}\nsandbox: {boxes: {${push}, data: {read: [/data]}}}`,
    ],
    [
      "a skill whose tools run in the box",
      "advice",
      "the tools of the skill `deploy` run in the box `push` as well",
      `skills: {boxes: {deploy: push}, forced: [{before: [{tool: shell, box: push}], evidence: [git_diff]}]}\nsandbox: {boxes: {${push}}}`,
    ],
    [
      "a server at an address",
      "advice",
      "the server `s` reaches the network as well",
      `${gated}\nsandbox: {boxes: {${push}}}\nmcp_servers: {s: {url: "https://x.example/", tools: [a]}}`,
    ],
    [
      "a server in the default box",
      "enforced",
      "only in box `push`",
      `${gated}\nsandbox: {boxes: {${push}}}\nmcp_servers: {s: {command: [/bin/true], tools: [a]}}`,
    ],
    [
      "pages",
      "advice",
      "`fetch_url` reaches the network as well",
      `${gated}\nsandbox: {boxes: {${push}}}\ntools: {enabled: [shell, git_diff, fetch_url]}`,
    ],
  ];

describe("gateLabel() of", () => {
  for (const [name, label, reason, yaml] of cases) {
    test(name, () => {
      const loaded = loadPolicyFile(`version: 1\n${yaml}\n`, "/p.yaml", "user", "0.1.0");
      const files = loaded.ok ? [loaded.value] : [];
      const merged = mergePolicy({
        files,
        revision: "r",
        root: "/ws",
        home: "/home/u",
        protect: { skillFolders: [], gitFolders: [], own: [] },
      });
      assertEquals([...loaded.problems, ...merged.problems].filter(isError), []);
      const { policy } = merged.ok ? merged.value : merged.rest;
      const labels = policy.gates.map((g) => gateLabel(g, policy));
      assertEquals(labels.map((l) => l.label), [label]);
      assertStringIncludes(labels[0]?.reason ?? "", reason);
    });
  }
});
