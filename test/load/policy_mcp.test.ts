import { describe, test } from "bun:test";
import { assertEquals } from "@std/assert";
import type { McpServer } from "../../src/core/mcp.ts";
import type { Problem } from "../../src/core/problem.ts";
import { loadPolicyFile, type PolicyLayer } from "../../src/load/policy_file.ts";
import { mergePolicy, type MergeResult } from "../../src/load/policy_merge.ts";

type Text = readonly [layer: PolicyLayer, path: string, yaml: string];

function merge(...texts: readonly Text[]): MergeResult {
  const files = texts.map(([layer, path, yaml]) => {
    const loaded = loadPolicyFile(`version: 1\n${yaml}`, path, layer, "0.1.0");
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
    return loaded.value;
  });
  return mergePolicy({
    files,
    revision: "r",
    root: "/ws",
    home: "/home/u",
    protect: { skillFolders: [], gitFolders: [], own: [] },
  });
}

function serversOf(...texts: readonly Text[]): readonly McpServer[] {
  const merged = merge(...texts);
  if (!merged.ok) throw new Error(JSON.stringify(merged.problems));
  return merged.value.policy.mcpServers;
}

describe("servers of a policy", () => {
  test("have defaults, and paths from the folder of their file", () => {
    assertEquals(
      serversOf(["user", "/conf/p.yaml", "mcp_servers:\n  m: {command: [./m, -x], tools: [query, query]}"]),
      [{
        name: "m",
        layer: "user",
        at: { file: "/conf/p.yaml", line: 3, col: 3 },
        reach: { kind: "command", argv: ["./m", "-x"], cwd: "/conf", env: {} },
        tools: [{ name: "query", risk: "execute", at: { file: "/conf/p.yaml", line: 3, col: 35 } }],
        required: false,
        startMs: 10_000,
        callMs: 120_000,
      }],
    );
  });

  test("of all layers stand in the order of their names, with all that they say", () => {
    const [a, b] = serversOf(
      [
        "machine",
        "/etc/writ/policy.yaml",
        'mcp_servers:\n  b: {url: "https://h/mcp", headers: {Authorization: {env: T, prefix: "Bearer "}, X: y}, ' +
        "tools: {q: read, w.x: destructive}, required: true, timeout: 3s, call_timeout: 1m}",
      ],
      [
        "user",
        "/conf/p.yaml",
        "mcp_servers:\n  a: {command: [~/bin/a], env: {A: b, K_TOKEN: {file: k}}, tools: {q: write}}",
      ],
    );
    assertEquals(
      [a?.name, a?.reach, a?.tools.map((t) => [t.name, t.risk])],
      [
        "a",
        {
          kind: "command",
          argv: ["/home/u/bin/a"],
          cwd: "/conf",
          env: { A: { text: "b" }, K_TOKEN: { file: "/conf/k", prefix: "" } },
        },
        [["q", "write"]],
      ],
    );
    assertEquals(
      [
        b?.name,
        b?.layer,
        b?.reach,
        b?.tools.map((t) => [t.name, t.risk]),
        b?.required,
        b?.startMs,
        b?.callMs,
      ],
      [
        "b",
        "machine",
        {
          kind: "url",
          url: "https://h/mcp",
          headers: { Authorization: { env: "T", prefix: "Bearer " }, X: { text: "y" } },
        },
        [["q", "read"], ["w.x", "destructive"]],
        true,
        3000,
        60_000,
      ],
    );
  });

  const twice = (first: Text, second: Text): readonly Problem[] => {
    const merged = merge(first, second);
    return merged.ok ? [] : merged.problems;
  };
  const one = "mcp_servers:\n  m: {command: [a], tools: [q]}";
  for (const layer of ["machine", "user"] as const) {
    test(`are described once: a second time, here in the ${layer} layer, is a Problem with both places`, () => {
      assertEquals(twice([layer, "/a.yaml", one], ["user", "/b.yaml", one]), [{
        code: "set-twice",
        severity: "error",
        message: "the server `m` is described twice, at /a.yaml:3:3 and at /b.yaml:3:3",
        at: { file: "/b.yaml", line: 3, col: 3 },
        hint: "keep one of them, or choose another name",
      }]);
    });
  }

  test("show their values in `policy show`, but nothing of headers and variables", () => {
    const merged = merge([
      "user",
      "/p.yaml",
      'mcp_servers:\n  m: {url: "https://h/", headers: {X: y}, tools: {q: read}, required: true}',
    ]);
    assertEquals(
      merged.ok
        ? merged.value.origin.filter((o) => o.key.startsWith("mcp_servers")).map((o) => [o.key, o.value])
        : [],
      [
        ["mcp_servers.m.url", "https://h/"],
        ["mcp_servers.m.required", true],
        ["mcp_servers.m.headers.X", "…"],
        ["mcp_servers.m.tools.q", "read"],
      ],
    );
  });

  test("are none of a project's business", () => {
    const loaded = loadPolicyFile(`version: 1\n${one}`, "/ws/.writ/policy.yaml", "project", "0.1.0");
    assertEquals(loaded.problems.map((p) => [p.code, p.at?.line, p.at?.col]), [[
      "not-allowed-in-project",
      2,
      1,
    ]]);
  });
});
